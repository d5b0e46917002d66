import datetime
from decimal import Decimal

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from pipelines.graph.answers import compare_answers, make_answer, type_answer
from pipelines.graph.values import KNOWN_UNITS, Date, Number, parse_number, render_date, render_number

DATES = st.dates(datetime.date(1000, 1, 1), datetime.date(2100, 12, 31)).map(
    lambda day: Date(day.year, day.month, day.day)
)
VALUES = st.decimals(-(10**9), 10**9, allow_nan=False, allow_infinity=False, places=2)
UNITS = st.sampled_from(["", *sorted(KNOWN_UNITS), "inhabitants"])


def typed(text, relation="label"):
    answer = type_answer(text, "", relation)
    assert answer is not None
    return answer


def make_number(value, unit):
    number = parse_number(f"{value:f}")
    assert number is not None
    return Number(number.value, unit)


@pytest.mark.parametrize(
    ("given_", "reference", "verdict"),
    [
        ("2009-11-20", "20 November 2009", "correct"), ("On November 20, 2009.", "20 November 2009", "correct"),
        ("20/11/2009", "20 November 2009", "correct"), ("2009", "20 November 2009", "incorrect"),
        ("November 2009", "20 November 2009", "incorrect"), ("21 November 2009", "20 November 2009", "incorrect"),
        ("05/04/1931", "5 April 1931", "unscored"), ("in 1931", "1931", "correct"), ("1932", "1931", "incorrect"),
        ("1931 or 1932", "1931", "incorrect"), ("1931\u20131932", "1931", "incorrect"),
        ("c. 1931", "1931", "incorrect"), ("April 1931", "1931", "unscored"),
        ("it opened in 1930", "1931", "incorrect"), ("Nov 20th, 2009", "20 November 2009", "correct"),
        ("20.11.2009", "20 November 2009", "correct"), ("20. 11. 2009", "20 November 2009", "correct"),
        ("20. November 2009", "20 November 2009", "correct"),
        ("Friday, 20 November 2009", "20 November 2009", "correct"), ("20/11/09", "20 November 2009", "unscored"),
        ("the year 1931", "1931", "correct"), ("4/1931", "April 1931", "correct"),
        ("13/1931", "April 1931", "incorrect"),
    ],
)  # fmt: skip
def test_dates_are_compared_by_value_and_precision(given_, reference, verdict):
    assert compare_answers(given_, typed(reference, "opened")) == verdict


@pytest.mark.parametrize(
    ("given_", "reference", "verdict"),
    [
        ("35", "3.5", "incorrect"), ("5 °C", "-5 °C", "incorrect"), ("\u22125 °C", "-5 °C", "correct"),
        ("1204", "1,204", "correct"), ("1,204 people", "1,204", "correct"), ("1.204", "1,204", "unscored"),
        ("320", "320 m", "correct"), ("320 metres", "320 m", "correct"), ("320 m (1,050 ft)", "320 m", "correct"),
        ("1,050 ft", "320 m", "correct"), ("320 ft", "320 m", "incorrect"), ("320 or 330 m", "320 m", "incorrect"),
        ("320-330 m", "320 m", "incorrect"), ("3.5", "35", "incorrect"), ("-5", "5", "incorrect"),
        ("5", "-5", "incorrect"), ("minus 5 °C", "-5 °C", "correct"), ("1,234", "1.234", "unscored"),
        ("1.500.000", "1,500,000", "correct"), ("1.5 million", "1,500,000", "correct"), ("5000 m", "5 km", "correct"),
        ("3.1 mi", "5 km", "correct"), ("3 mi", "5 km", "unscored"), ("5001 m", "5 km", "unscored"),
        ("5 miles", "5 km", "incorrect"), ("5 kg", "5 km", "unscored"), ("1,050 ft (320 m)", "320 m", "correct"),
        ("212 °F", "100 °C", "correct"), ("twenty-one", "21", "correct"),
        ("one hundred and five metres", "105 m", "correct"), ("twelve", "12", "correct"),
        ("the bridge", "12", "unscored"), ("twenty-ish", "12", "incorrect"),
    ],
)  # fmt: skip
def test_numbers_are_compared_by_value_and_unit(given_, reference, verdict):
    assert compare_answers(given_, typed(reference)) == verdict


@pytest.mark.parametrize(
    ("given_", "reference", "verdict"),
    [
        ("Dvorak", "Dvořák", "correct"), ("the Kelm Bridge", "Kelm Bridge", "correct"),
        ("Kelm", "Kelm Bridge", "unscored"), ("Bo Kelm", "Ana Kelm", "unscored"),
        ("Bo Tarn", "Ana Kelm", "incorrect"), ("Ana Kelm or Bo Tarn", "Ana Kelm", "incorrect"),
        ("Ana Kelm and Bo Tarn", "Ana Kelm", "incorrect"), ("either Ana Kelm / Bo Tarn", "Ana Kelm", "incorrect"),
        ("UOC", "Union of Orn Citizens", "unscored"), ("Vitamin", "Vitamin A", "unscored"),
        ("Vitamin B", "Vitamin A", "unscored"), ("Hague", "The Hague", "correct"), ("U.S.", "US", "correct"),
        ("USA", "United States", "unscored"), ("NO", "Norway", "incorrect"), ("oil", "oil on canvas", "unscored"),
        ("tempera", "oil on canvas", "unscored"), ("1931", "oil on canvas", "incorrect"),
        ("Apollo 13", "Apollo 1", "unscored"),
    ],
)  # fmt: skip
def test_text_is_compared_whole_and_folded(given_, reference, verdict):
    assert compare_answers(given_, typed(reference)) == verdict


@given(DATES)
def test_every_rendering_of_a_date_is_right(date):
    answer = make_answer(render_date(date)[0], date)
    assert {compare_answers(form, answer) for form in render_date(date)} == {"correct"}


@given(DATES, DATES)
def test_another_date_is_never_right(date, other):
    assume(date != other)
    answer = make_answer(render_date(date)[0], date)
    assert "correct" not in {compare_answers(form, answer) for form in render_date(other)}


@given(VALUES, UNITS)
def test_every_rendering_of_a_number_is_right(value, unit):
    number = make_number(value, unit)
    answer = make_answer(render_number(number)[0], number)
    assert {compare_answers(form, answer) for form in render_number(number)} == {"correct"}


@given(VALUES, VALUES, UNITS, UNITS)
def test_a_changed_number_is_never_right(value, other, unit, other_unit):
    assume(value != other)
    answer = make_answer(render_number(make_number(value, unit))[0], make_number(value, unit))
    wrong = render_number(make_number(other, other_unit))
    assert "correct" not in {compare_answers(form, answer) for form in wrong}


@given(
    st.from_regex(r"[A-Z][a-z]{2,8} [A-Z][a-z]{2,8}", fullmatch=True), st.from_regex(r"[A-Z][a-z]{2,8}", fullmatch=True)
)
def test_a_part_or_an_extension_of_a_name_is_never_right(name, more):
    answer = typed(name)
    assume(more.lower() not in name.lower())
    assert compare_answers(f"{name} {more}", answer) != "correct"
    assert compare_answers(name.split()[1], answer) != "correct"


@given(st.text(max_size=80), st.text(max_size=40))
def test_any_answer_gets_a_verdict(given_, text):
    reference = type_answer(text, "", "opened")
    if reference is not None:
        assert compare_answers(given_, reference) in ("correct", "incorrect", "unscored")


REFERENCES = st.one_of(
    DATES.map(lambda date: make_answer(render_date(date)[0], date)),
    st.builds(make_number, VALUES, UNITS).map(lambda number: make_answer(render_number(number)[0], number)),
    st.from_regex(r"[A-Z][a-z]{2,8}( [A-Z][a-z]{2,8})?", fullmatch=True).map(typed),
)


@given(REFERENCES)
def test_a_reference_is_right_for_itself(reference):
    assert compare_answers(reference.surface, reference) == "correct"


@given(REFERENCES, REFERENCES)
def test_two_references_never_contradict_one_another(first, second):
    verdicts = {compare_answers(first.surface, second), compare_answers(second.surface, first)}
    assert verdicts != {"correct", "incorrect"}


@given(VALUES, UNITS, st.sampled_from([-1, 1]))
def test_one_unit_of_the_last_place_is_another_number(value, unit, step):
    number = make_number(value, unit)
    decimals = len(number.value.partition(".")[2])
    beside = make_number(value + step * Decimal(1).scaleb(-decimals), unit)
    reference = make_answer(render_number(number)[0], number)
    assert compare_answers(render_number(beside)[0], reference) == "incorrect"


@pytest.mark.parametrize("alias", ["ES", "Fo", "NO"])
def test_a_short_alias_is_right_alone_and_never_inside_a_word(alias):
    reference = typed("Ana Kelm").model_copy(update={"aliases": (alias,)})
    assert compare_answers(alias, reference) == "correct"
    assert compare_answers(f"{alias}tre", reference) != "correct"
    assert compare_answers(f"the {alias} of it", reference) != "correct"
