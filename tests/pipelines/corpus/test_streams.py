import bz2
import random
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.corpus.dump import ByteRange, cover_file, plan_ranges, read_blocks, read_pages, read_range, sample_ranges
from pipelines.errors import ConfigError, CorruptInput

MAGIC = b"BZh91AY&SY"


def make_noise(size: int, seed: int = 0) -> str:
    """Text that bz2 cannot make much smaller, so that a small file has many ranges."""
    return random.Random(seed).randbytes(size // 2).hex()


@pytest.fixture
def dump(write_dump):
    return write_dump(*[(f"T{number}", make_noise(4000, number)) for number in range(40)])


def write_index(dump, offsets):
    lines = "".join(f"{offset}:{number}:T{number}: a\n" for number, offset in enumerate(offsets, start=1))
    name = dump.name.replace("multistream.xml", "multistream-index.txt")
    dump.with_name(name).write_bytes(bz2.compress(lines.encode()))


def find_streams(dump):
    whole = dump.read_bytes()
    return [place for place in range(len(whole)) if whole.startswith(MAGIC, place)]


def read_titles(dump, ranges):
    return [page.title for byte_range in ranges for page in read_range(dump, byte_range)]


def assert_covers(dump, ranges):
    assert [byte_range.number for byte_range in ranges] == list(range(len(ranges)))
    edges = [byte_range.start for byte_range in ranges] + [ranges[-1].end]
    assert [byte_range.end for byte_range in ranges] == edges[1:]
    assert (edges[0], edges[-1]) == (0, dump.stat().st_size)
    assert edges == sorted(set(edges))


@pytest.mark.parametrize("range_bytes", [1, 3000, 20_000, 10**9])
@pytest.mark.parametrize("name", ["toywiki-20250131-pages-articles-multistream.xml.bz2", "toywiki.xml"])
def test_ranges_cover_the_file_and_hold_each_page_once(write_dump, name, range_bytes):
    dump = write_dump(*[(f"T{number}", make_noise(4000, number)) for number in range(20)], name=name)
    ranges = plan_ranges(dump, range_bytes)
    assert_covers(dump, ranges)
    assert len(ranges) == {1: 20, 10**9: 1}.get(range_bytes, len(ranges))
    assert read_titles(dump, ranges) == [f"T{number}" for number in range(20)]


@given(st.lists(st.integers(0, 3000), min_size=1, max_size=12), st.integers(1, 9000))
def test_ranges_hold_the_pages_of_the_whole_in_order(tmp_path_factory, sizes, range_bytes):
    pages = [f"<page><title>{n}</title><ns>0</ns><id>{n}</id></page>{make_noise(0)}" for n in range(len(sizes))]
    texts = [page.replace("</id>", f"</id><revision><id>1</id><text>{make_noise(size)}</text></revision>")
             for page, size in zip(pages, sizes, strict=True)]  # fmt: skip
    dump = tmp_path_factory.mktemp("ranges") / "x.xml.bz2"
    streams = ["<mediawiki>", *texts, "</mediawiki>"]
    dump.write_bytes(b"".join(bz2.compress(stream.encode()) for stream in streams))
    ranges = plan_ranges(dump, range_bytes)
    assert_covers(dump, ranges)
    assert [page for byte_range in ranges for page in read_range(dump, byte_range)] == list(read_pages(dump))


def test_header_and_footer_are_no_ranges_of_their_own(dump):
    ranges = plan_ranges(dump, 1)
    assert [len(list(read_range(dump, byte_range))) for byte_range in ranges] == [1] * 40


def test_an_index_names_the_cuts(dump):
    starts = find_streams(dump)
    write_index(dump, [starts[1], starts[9], starts[20]])
    assert [byte_range.start for byte_range in plan_ranges(dump, 1)][:3] == [0, starts[9], starts[20]]


@pytest.mark.parametrize("shift", [1, -1, 10**12])
def test_a_stale_index_is_passed_over(dump, shift):
    expected = plan_ranges(dump, 10_000)
    write_index(dump, [place + shift for place in find_streams(dump)[1:-1]])
    assert plan_ranges(dump, 10_000) == expected


@pytest.mark.parametrize(
    "content", [b"", b"no bz2", bz2.compress(b"words: not offsets\n")[:-4], bz2.compress(b"x:1:y")]
)
def test_a_damaged_index_is_passed_over(dump, content):
    expected = plan_ranges(dump, 10_000)
    dump.with_name(dump.name.replace("multistream.xml", "multistream-index.txt")).write_bytes(content)
    assert plan_ranges(dump, 10_000) == expected


def test_the_index_of_a_part_is_found(write_dump):
    dump = write_dump(*[(f"T{n}", make_noise(4000, n)) for n in range(9)], name="x-multistream3.xml-p1p9.bz2")
    starts = find_streams(dump)
    lines = f"{starts[5]}:6:T5\n".encode()
    dump.with_name("x-multistream-index3.txt-p1p9.bz2").write_bytes(bz2.compress(lines))
    assert plan_ranges(dump, starts[2])[0].end == starts[5]


def test_false_magic_is_no_cut(write_dump, tmp_path):
    plain = write_dump(("A", "text"), name="a.xml").read_bytes()
    dump = tmp_path / "false.xml.bz2"
    # A stream inside the first stream's place: bytes that look like a start, in front of a real one.
    footer = plain.index(b"</mediawiki>")
    empty = bz2.compress(b"")
    dump.write_bytes(bz2.compress(plain[:footer]) + empty + bz2.compress(b" \n") + bz2.compress(plain[footer:]))
    assert plan_ranges(dump, 1) == (ByteRange(0, 0, dump.stat().st_size),)
    assert [page.title for page in read_pages(dump)] == ["A"]


def test_bytes_that_look_like_a_start_are_proved_by_unpacking(dump):
    whole = bytearray(dump.read_bytes())
    starts = find_streams(dump)
    place = starts[3] + 200
    whole[place : place + len(MAGIC)] = MAGIC  # the stream is damaged by it, the plan must not be
    dump.write_bytes(whole)
    assert place not in [byte_range.start for byte_range in plan_ranges(dump, 1)]


STEP = 1 << 18
"""Bytes that a search for a cut reads at a time."""


class CountedPath(type(Path())):
    """A path whose files, opened for reading, tell how many bytes each read gave."""

    def open(self, mode="rb"):
        return CountedFile(super().open(mode), self.reads)


class CountedFile:
    def __init__(self, file, reads):
        self._file, self._reads = file, reads

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self._file.close()

    def seek(self, *place):
        return self._file.seek(*place)

    def read(self, size):
        found = self._file.read(size)
        self._reads.append(len(found))
        return found


@pytest.mark.parametrize("name", ["x.xml.bz2", "x.xml"])
def test_planning_reads_a_small_share_of_a_dump(tmp_path, name):
    page = f"<page><title>A</title><ns>0</ns><id>1</id></page>{make_noise(60_000)}".encode()
    parts = [bz2.compress(part) if name.endswith("bz2") else part for part in (b"<mediawiki>", page, b"</mediawiki>")]
    dump = CountedPath(tmp_path / name)
    dump.reads = []
    (tmp_path / name).write_bytes(parts[0] + parts[1] * ((12 << 20) // len(parts[1])) + parts[2])
    ranges = plan_ranges(dump, 2 << 20)
    assert_covers(dump, ranges)
    assert len(ranges) == 6
    assert 0 < sum(dump.reads) < dump.stat().st_size // 3


@pytest.mark.parametrize("name", ["x.xml.bz2", "x.xml"])
def test_a_cut_is_found_where_two_steps_of_the_search_meet(tmp_path, name):
    first, second = (f"<page><title>{n}</title>{make_noise(700_000, n)}</page>".encode() for n in (1, 2))
    parts = [b"<mediawiki>", first, second, b"</mediawiki>"]
    parts = [bz2.compress(part) if name.endswith("bz2") else part for part in parts]
    dump = tmp_path / name
    dump.write_bytes(b"".join(parts))
    start = len(parts[0]) + len(parts[1])
    for steps in (1, 0):
        for before in range(12):
            aim = start - steps * STEP + before if steps else start - before
            assert plan_ranges(dump, aim)[0].end == start


def test_a_cut_is_proved_when_its_first_block_is_longer_than_a_step(tmp_path):
    page = f"<page><title>A</title>{make_noise(850_000)}</page>".encode()
    dump = tmp_path / "x.xml.bz2"
    parts = [bz2.compress(part) for part in (b"<mediawiki>", page, page, b"</mediawiki>")]
    assert len(parts[1]) > STEP
    dump.write_bytes(b"".join(parts))
    assert plan_ranges(dump, len(parts[1]))[0].end == len(parts[0]) + len(parts[1])


@pytest.mark.parametrize(("false_starts", "ranges"), [(7, 2), (8, 1)])
def test_a_search_gives_up_after_eight_false_starts(tmp_path, false_starts, ranges):
    header, page = bz2.compress(b"<mediawiki>"), bz2.compress(f"<page>{make_noise(2 * STEP)}".encode())
    dump = tmp_path / "x.xml.bz2"
    dump.write_bytes(header + page + (MAGIC + bytes(20_000)) * false_starts + page)
    assert len(plan_ranges(dump, len(header + page))) == ranges


def test_a_single_stream_is_one_range(write_dump, tmp_path):
    plain = write_dump(*[(f"T{number}", make_noise(4000, number)) for number in range(20)], name="a.xml")
    single = tmp_path / "single.xml.bz2"
    single.write_bytes(bz2.compress(plain.read_bytes()))
    assert plan_ranges(single, 1000) == (cover_file(single),)


def test_streams_cut_inside_pages_are_one_range(write_dump, tmp_path):
    plain = write_dump(*[(f"T{number}", make_noise(3000, number)) for number in range(9)], name="a.xml").read_bytes()
    pieces = tmp_path / "pieces.xml.bz2"
    pieces.write_bytes(b"".join(bz2.compress(plain[start : start + 5000]) for start in range(0, len(plain), 5000)))
    assert plan_ranges(pieces, 1000) == (cover_file(pieces),)
    assert len(list(read_pages(pieces))) == 9


@pytest.mark.parametrize("name", ["toywiki.xml.bz2", "toywiki.xml"])
def test_a_file_cut_after_planning_is_refused(write_dump, name):
    dump = write_dump(*[(f"T{number}", make_noise(4000, number)) for number in range(20)], name=name)
    ranges = plan_ranges(dump, 20_000)
    dump.write_bytes(dump.read_bytes()[: ranges[1].end - 100])
    with pytest.raises(CorruptInput, match="truncated"):
        read_titles(dump, ranges[1:])


@pytest.mark.parametrize("number", range(3))
def test_a_damaged_range_is_refused_and_the_others_are_read(dump, number):
    ranges = plan_ranges(dump, dump.stat().st_size // 3)[:3]
    whole = bytearray(dump.read_bytes())
    middle = (ranges[number].start + ranges[number].end) // 2
    whole[middle : middle + 40] = bytes(40)
    dump.write_bytes(whole)
    with pytest.raises(CorruptInput, match=dump.name):
        read_titles(dump, ranges[number : number + 1])
    assert read_titles(dump, ranges[:number] + ranges[number + 1 :])


def test_a_range_that_ends_inside_a_stream_is_refused(dump):
    first = plan_ranges(dump, 20_000)[0]
    with pytest.raises(CorruptInput, match="truncated inside a bz2 stream"):
        list(read_blocks(dump, ByteRange(0, 0, first.end - 50)))


def test_a_range_that_ends_inside_a_page_is_refused(write_dump):
    dump = write_dump(("A", "one"), ("B", "two"), name="a.xml")
    end = dump.read_bytes().index(b"two")
    with pytest.raises(CorruptInput, match="ends inside a page"):
        read_titles(dump, [ByteRange(0, 0, end)])


def test_a_range_that_begins_inside_a_page_is_refused(write_dump):
    dump = write_dump(("A", "one"), ("B", "two"), name="a.xml")
    start = dump.read_bytes().index(b"one")
    with pytest.raises(CorruptInput, match="between two pages"):
        read_titles(dump, [ByteRange(1, start, dump.stat().st_size)])


def test_what_stands_between_pages_is_refused(write_dump):
    dump = write_dump(("A", "one"), ("B", "two"), name="a.xml")
    dump.write_bytes(dump.read_bytes().replace(b"</page>\n  <page>", b"</page>\n  <pag>"))
    with pytest.raises(CorruptInput):
        list(read_pages(dump))


def test_a_bomb_is_unpacked_a_few_megabytes_at_a_time(tmp_path):
    path = tmp_path / "bomb.xml.bz2"
    path.write_bytes(bz2.compress(b"<mediawiki>" + bytes(40 << 20)))
    assert max(len(block) for block in read_blocks(path, cover_file(path))) <= 4 << 20


def test_trailing_garbage_is_refused(dump):
    dump.write_bytes(dump.read_bytes() + b"garbage at the end")
    with pytest.raises(CorruptInput, match="cannot be decompressed"):
        list(read_pages(dump))


def test_a_range_has_at_least_one_byte(dump, tmp_path):
    with pytest.raises(ConfigError, match="0 bytes a range"):
        plan_ranges(dump, 0)
    with pytest.raises(ConfigError, match="no dump at"):
        plan_ranges(tmp_path / "absent.xml.bz2", 10)


def test_samples_are_spread_over_a_dump_and_hold_whole_pages(write_dump):
    dump = write_dump(*((f"Page {number}", make_noise(400, number)) for number in range(400)))
    size = dump.stat().st_size
    samples = sample_ranges(dump, 4, size // 40)
    assert len(samples) == 4
    assert samples[-1].start > size // 2
    assert all(size // 40 <= piece.end - piece.start < size // 20 for piece in samples)
    titles = [read_titles(dump, [piece]) for piece in samples]
    assert all(titles)
    assert len({title for group in titles for title in group}) == sum(map(len, titles))


def test_a_dump_too_small_to_sample_is_taken_whole(dump):
    assert_covers(dump, sample_ranges(dump, 4, 1 << 20))
