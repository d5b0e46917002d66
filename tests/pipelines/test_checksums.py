import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.checksums import (
    BLOCK,
    CHECKSUMS,
    check_folder,
    is_sealed,
    open_checked,
    read_note,
    seal_file,
    seal_note,
    write_checksums,
)
from pipelines.errors import Damaged


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "inner").mkdir()
    (tmp_path / "inner" / "large").write_bytes(bytes(range(256)) * (3 * BLOCK // 256) + b"end")
    (tmp_path / "empty").write_bytes(b"")
    write_checksums(tmp_path)
    return tmp_path


def turn(path, place):
    data = bytearray(path.read_bytes())
    data[place] ^= 4
    path.write_bytes(data)


def test_a_block_with_other_bytes_is_named_when_it_is_read_and_the_others_are_not_looked_at(folder):
    path = folder / "inner" / "large"
    turn(path, BLOCK + 7)
    file = open_checked(path)
    file.check(0, BLOCK)
    file.check(2 * BLOCK, 3 * BLOCK + 3)
    with pytest.raises(
        Damaged, match=r"large: has other bytes than were written, from byte 65,536 on; run `synth run`"
    ):
        file.check(BLOCK - 1, BLOCK + 1)


def test_a_block_is_read_once_a_process(folder):
    path = folder / "inner" / "large"
    open_checked(path).check()
    turn(path, 0)
    open_checked(path).check()
    with pytest.raises(Damaged):
        open_checked(path).recheck()


def test_a_file_of_another_size_and_one_that_is_missing_are_named_at_once(folder):
    (folder / "empty").write_bytes(b"x")
    with pytest.raises(Damaged, match="empty: has 1 bytes; 0 were written"):
        open_checked(folder / "empty")
    (folder / "inner" / "large").unlink()
    with pytest.raises(Damaged, match="large: is missing"):
        open_checked(folder / "inner" / "large")


def test_a_small_folder_is_checked_whole_and_of_a_large_one_the_sizes(folder):
    turn(folder / "inner" / "large", 5)
    check_folder(folder, whole=BLOCK)
    with pytest.raises(Damaged, match="large"):
        check_folder(folder)


def test_damaged_checksums_are_named(folder):
    for place in (0, 9, -17, -1):
        turn(folder / CHECKSUMS, place)
        with pytest.raises(Damaged, match=CHECKSUMS):
            check_folder(folder)
        turn(folder / CHECKSUMS, place)
    (folder / CHECKSUMS).unlink()
    with pytest.raises(Damaged, match=CHECKSUMS):
        check_folder(folder)


NOTES = ("{}", '{\n "a": "b"\n}', '{"corpus": "toywiki-20260101-19ea68a0b8dc", "seeds": "15f127568137a5ef"}\n')


@given(text=st.sampled_from(NOTES), data=st.data())
def test_any_bit_of_a_note_that_turns_over_is_found(text, data, tmp_path_factory):
    path = tmp_path_factory.getbasetemp() / "note.json"
    sealed = bytearray(seal_note(text).encode())
    path.write_bytes(sealed)
    assert read_note(path).replace("\n", "").replace(" ", "") == text.replace("\n", "").replace(" ", "")
    place, bit = data.draw(st.integers(0, len(sealed) - 1)), data.draw(st.integers(0, 7))
    sealed[place] ^= 1 << bit
    path.write_bytes(sealed)
    with pytest.raises(Damaged):
        read_note(path)


def test_a_note_from_before_notes_were_sealed_is_read(tmp_path):
    (tmp_path / "latest.json").write_text('{"corpus": "x"}')
    assert read_note(tmp_path / "latest.json") == '{"corpus": "x"}'


def test_a_sealed_file_with_another_byte_is_found(tmp_path):
    path = tmp_path / "marks.npy"
    path.write_bytes(bytes(100))
    seal_file(path)
    assert is_sealed(path)
    for place in (0, 99, 100, 115):
        turn(path, place)
        assert not is_sealed(path)
        turn(path, place)
