"""No text, however odd, makes a check or a comparison raise."""

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.checks.leakage import check_answer, check_demonyms, check_file_names, check_names, find_numbers
from pipelines.graph.answers import compare_answers, type_answer
from pipelines.graph.values import parse_date, parse_number
from schemas.proofs import Answer

PIECES = st.sampled_from([
    ".", ",", " ", "-", "(", ")", "'", "/", "_", "\n", "\u200b", "\ud7af", "12", "345", "000", "5", "1931", "\u0663",
    "\u00b2", "\u216b", "\u00bd", " thousand", " m\u0131llion", " billion", "hundred", " and ", "XIV", " Apr\u0131l ",
    " au\u017fust ", " May ", "BC", "AD ", "st", "km", "$", "US$", "\u212a", "inf", "nan", "E9", "\u0e17", "the ",
    "U.N.",
])  # fmt: skip
TEXT = st.one_of(st.text(max_size=30), st.lists(st.one_of(PIECES, st.text(max_size=2)), max_size=9).map("".join))
KIND = st.sampled_from(["date", "number", "name", "string"])


def make_answer(kind, value, surface):
    return Answer(type=kind, value=value, precision="", unit="", surface=surface, aliases=(value + surface,), key=value)


@given(TEXT)
def test_any_text_can_be_looked_through_for_numbers(text):
    assert all(number >= 0 for number in find_numbers(text))


@given(TEXT, st.lists(st.lists(TEXT, max_size=3), max_size=3))
def test_any_text_can_be_checked_for_any_names(text, names):
    assert check_names(text, names).outcome in ("PASS", "FAIL", "UNKNOWN")


@given(TEXT, st.lists(st.lists(TEXT, max_size=3), max_size=3))
def test_any_text_can_be_checked_for_any_demonyms(text, names):
    assert check_demonyms(text, names).outcome in ("PASS", "FAIL", "UNKNOWN")


@given(st.lists(TEXT, max_size=3), st.lists(st.lists(TEXT, max_size=2), max_size=2), KIND, TEXT)
def test_any_file_names_can_be_checked_for_any_names_and_answer(files, names, kind, value):
    answer = make_answer(kind, value, value)
    assert check_file_names(files, names, answer).outcome in ("PASS", "FAIL", "UNKNOWN")


@pytest.mark.parametrize(
    "unit", ["one ", "hundred and ", "1 2-", "12,345,", "NO", "k e l ", "%41", "&amp;", "\U0001f1ea", "'"]
)
def test_a_long_text_of_one_kind_is_read_to_its_end(unit):
    names = (("Kelmor Bridge", "KB", "\U0001f1ea\U0001f1f8", "Nice"), ("Henry VIII",))
    text = unit * 5000 + " the Kelmorian Kelmor of 7 m"
    assert check_names(text, names).code == "alias-leak"
    assert check_demonyms(text, names).code == "demonym-leak"
    assert check_answer(text, type_answer("7 m", "", "label")).code == "answer-leak"


@given(TEXT, KIND, TEXT, TEXT)
def test_any_text_can_be_checked_for_and_compared_with_any_answer(text, kind, value, surface):
    answer = make_answer(kind, value, surface)
    assert check_answer(text, answer).outcome in ("PASS", "FAIL", "UNKNOWN")
    assert compare_answers(text, answer) in ("correct", "incorrect", "unscored")


@given(TEXT, TEXT, TEXT)
def test_any_value_can_be_typed_and_is_right_by_its_own_words(text, iso, relation):
    answer = type_answer(text, iso, relation)
    assert answer is None or compare_answers(answer.surface, answer) == "correct"


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("12.345.678 people", 12_345_678), ("12.345", 12_345), ("12,345.6", "12345.6"), ("3 Million", 3_000_000),
        ("12.345,6", "12345.6"), ("1,5", "1.5"), ("12,34,567", 1_234_567), ("1_204", 1204), ("3\u00bd", "3.5"),
        ("two and a half", "2.5"), ("9\u00d710^6", 9_000_000), ("4 dozen", 48), ("l93l", 1931), ("1 9 3 1", 1931),
        ("forty-second", 42), ("fortieth", 40), ("nineteen oh five", 1905), ("mcmxxxi", 1931),
        ("2.5 crore", 25_000_000),
        ("one " * 40 + "seven hundred and twelve", 712),
    ],
)  # fmt: skip
def test_grouped_numbers_are_read_in_every_way(text, number):
    assert Decimal(number) in find_numbers(text)


@pytest.mark.slow
def test_a_number_of_a_million_digits_is_no_accident():
    assert find_numbers("9" * 1_000_001 + " million")


@pytest.mark.parametrize("text", ["5 Au\u017fust 1931", "Apr\u0131l 1931", "5 Apr\u0130L 1931"])
def test_a_month_in_letters_that_only_look_alike_is_no_date(text):
    assert parse_date(text) is None


def test_a_scale_in_letters_that_only_look_alike_scales_nothing():
    assert getattr(parse_number("3 m\u0131llion"), "value", "3") == "3"


@pytest.mark.parametrize(("kind", "value"), [("number", "about 3"), ("date", "spring")])
def test_an_answer_that_cannot_be_read_is_unknown_and_never_passes(kind, value):
    assert check_answer("How many are there?", make_answer(kind, value, value)).outcome == "UNKNOWN"
