from dataclasses import fields
from pathlib import Path

import pytest

from pipelines.errors import ConfigError
from pipelines.names import fold_name, is_common_word
from tests.planted.words import BY_HALF, load_vocabulary

OPEN, HELD_OUT = BY_HALF["open"], BY_HALF["held-out"]
LISTS = [field.name for field in fields(OPEN) if field.name != "half"]


def write(folder, replaced, by):
    text = (Path(__file__).parent / "data/open.toml").read_text("utf-8")
    assert replaced in text
    path = folder / "mine.toml"
    path.write_text(text.replace(replaced, by), "utf-8")
    return path


def test_there_are_two_halves_and_no_other():
    assert list(BY_HALF) == ["open", "held-out"]
    assert len(BY_HALF) == 2
    assert (OPEN.half, HELD_OUT.half) == ("open", "held-out")
    assert "added" not in BY_HALF


@pytest.mark.parametrize("key", LISTS)
def test_the_halves_share_nothing(key):
    assert not set(getattr(OPEN, key)) & set(getattr(HELD_OUT, key))


@pytest.mark.parametrize("half", [OPEN, HELD_OUT], ids=lambda words: words.half)
def test_some_names_are_made_of_words_that_are_ordinary_to_the_checks(half):
    assert any(all(is_common_word(part) for part in fold_name(name).split()) for name in half.ordinary)


def test_the_added_vocabulary_of_a_file_is_read(tmp_path):
    words = load_vocabulary(write(tmp_path, '"Brel", "Dov"', '"Quorn", "Dov"'))
    assert words.half == "added"
    assert words.starts[0] == "Quorn"
    assert words.questions == OPEN.questions


@pytest.mark.parametrize(
    ("replaced", "by", "said"),
    [
        ("starts =", "begins =", "missing or unknown: begins, starts"),
        ('"Brel"', "7", "starts: '7' is given, allowed is text"),
        ('"Brel"', '" "', "allowed is text"),
        ('"Brel"', '"brel"', "allowed is capitalised"),
        ('"Brel"', '"Br-l"', "allowed is letters alone"),
        ('"Orla"', '"Orla B"', "allowed is one word"),
        ('["Netherlands", "Dutch"]', '["Netherlands"]', "a list of a name and an adjective"),
        ("What is the height of {ref}?", "What is the height?", "one {ref}"),
        ("What is the height of {ref}?", "What is the {size} of {ref}?", "one {ref}"),
        ("What is the height of {ref}?", "What is the height of {ref!r}?", "one {ref}"),
        ("What is the height of {ref}?", "What is the height of {ref:>99}?", "one {ref}"),
        ("What is the height of {ref}?", "What is the height of {ref.name}?", "one {ref}"),
        ("What is the height of {ref}?", "What are the 2 heights of {ref}?", "no digits"),
        ("What is the height of {ref}?", "What is the height of {ref}}?", "one {ref}"),
        ('suffixes = ["ian", "ese", "er", "ean"]', "suffixes = []", "suffixes must be a list of 2"),
        ('suffixes = ["ian", "ese", "er", "ean"]', "suffixes = 3", "suffixes must be a list of 2"),
        ("starts = [", "starts = [[", "is no TOML"),
        ('"Olive Brown"', '"Olive"', "two capitalised words"),
        ('"Olive Brown"', '"Olive brown"', "two capitalised words"),
    ],
)
def test_a_file_that_does_not_hold_is_refused_with_what_is_allowed(tmp_path, replaced, by, said):
    with pytest.raises(ConfigError, match="vocabulary") as caught:
        load_vocabulary(write(tmp_path, replaced, by))
    assert said in str(caught.value)


def test_a_file_that_is_not_there_or_not_text_is_refused(tmp_path):
    with pytest.raises(ConfigError, match="cannot be read"):
        load_vocabulary(tmp_path / "none.toml")
    (tmp_path / "bytes.toml").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ConfigError, match="cannot be read"):
        load_vocabulary(tmp_path / "bytes.toml")
