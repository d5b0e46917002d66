from pathlib import Path

import pytest

from pipelines.errors import ConfigError
from pipelines.names import fold_name, is_common_word
from tests.planted.words import load_half, load_vocabulary

OPEN, HELD_OUT = load_half("open"), load_half("held-out")
SUFFIXES, QUESTION = 'suffixes = ["ian", "ese", "er", "ean"]', "What is the height of {ref}?"


def write(folder, replaced, by):
    text = (Path(__file__).parent / "data/open.toml").read_text("utf-8")
    assert replaced in text
    path = folder / "mine.toml"
    path.write_text(text.replace(replaced, by), "utf-8")
    return path


def test_the_halves_share_nothing_and_each_has_names_of_ordinary_words():
    for key in set(type(OPEN).model_fields) - {"half"}:
        assert not set(getattr(OPEN, key)) & set(getattr(HELD_OUT, key)), key
    for half in (OPEN, HELD_OUT):
        assert any(all(is_common_word(part) for part in fold_name(name).split()) for name in half.ordinary)


def test_the_added_vocabulary_of_a_file_is_read(tmp_path):
    words = load_vocabulary(write(tmp_path, '"Brel", "Dov"', '"Quorn", "Dov"'))
    assert (words.half, words.starts[0], words.questions) == ("added", "Quorn", OPEN.questions)


@pytest.mark.parametrize(
    ("replaced", "by", "said"),
    [
        ("starts =", "begins =", "Extra inputs"),
        ('"Brel"', "7", "starts.0"),
        ('"Brel"', '" "', "starts.0"),
        ('"Brel"', '"brel"', "starts.0"),
        ('"Brel"', '"Br-l"', "starts.0"),
        ('"Orla"', '"Orla B"', "given.0"),
        ('["Netherlands", "Dutch"]', '["Netherlands"]', "demonyms."),
        (QUESTION, "What is the height?", "one {ref}"),
        (QUESTION, "What is the {size} of {ref}?", "one {ref}"),
        (QUESTION, "What is the height of {ref!r}?", "one {ref}"),
        (QUESTION, "What is the height of {ref:>99}?", "one {ref}"),
        (QUESTION, "What is the height of {ref.name}?", "one {ref}"),
        (QUESTION, "What are the 2 heights of {ref}?", "no digits"),
        (QUESTION, "What is the height of {ref}}?", "questions.0"),
        (SUFFIXES, "suffixes = []", "suffixes"),
        (SUFFIXES, "suffixes = 3", "suffixes"),
        ("starts = [", "starts = [[", "cannot be read"),
        ('"Olive Brown"', '"Olive"', "ordinary.0"),
        ('"Olive Brown"', '"Olive brown"', "ordinary.0"),
    ],
)
def test_a_wrong_file_is_refused_with_what_is_allowed(tmp_path, replaced, by, said):
    with pytest.raises(ConfigError, match="vocabulary") as caught:
        load_vocabulary(write(tmp_path, replaced, by))
    assert said in str(caught.value)


def test_a_file_that_cannot_be_read_is_refused(tmp_path):
    (tmp_path / "bytes.toml").write_bytes(b"\xff\xfe\x00")
    for name in ("none.toml", "bytes.toml"):
        with pytest.raises(ConfigError, match="cannot be read"):
            load_vocabulary(tmp_path / name)
