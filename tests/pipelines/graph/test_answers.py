import datetime

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from pipelines.graph.answers import Repeat, compare_answers, derive_answer, find_repeats, make_answer, type_answer
from pipelines.graph.values import KNOWN_UNITS, Date, Number, parse_number, render_date, render_number


@pytest.mark.parametrize(
    ("text", "iso", "value", "precision"),
    [
        ("5 April 1931", "", "1931-04-05", "day"), ("April 5, 1931 (aged 62)", "", "1931-04-05", "day"),
        ("1931-04-05", "", "1931-04-05", "day"), ("", "1931-04-05", "1931-04-05", "day"),
        ("April 1931", "1931-04-05", "1931-04-05", "day"), ("April 1931", "", "1931-04", "month"),
        ("1931", "", "1931", "year"), ("44 BC", "", "-0043", "year"),
    ],
)  # fmt: skip
def test_a_date_is_canonical_with_its_precision(text, iso, value, precision):
    answer = type_answer(text, iso, "birth_date")
    assert answer is not None
    assert (answer.type, answer.value, answer.precision, answer.key) == ("date", value, precision, f"date:{value}")
    if text == "5 April 1931":
        forms = {"April 5, 1931", "1931-04-05", "05 April 1931", "5th April 1931", "5 Apr 1931"}
        assert forms <= set(answer.aliases)


@pytest.mark.parametrize(
    ("text", "relation", "value", "unit"),
    [
        ("320 m", "height", "320", "m"), ("18 m (59 ft)", "height", "18", "m"), ("1,204", "population", "1204", ""),
        ("12.50 kilograms", "mass", "12.5", "kg"), ("\u22125 °C", "record_low", "-5", "°C"),
        ("13 km²", "area", "13", "km2"), ("3.5 million", "budget", "3500000", ""), ("320", "elevation_m", "320", "m"),
        ("1,204\u00a0inhabitants", "population", "1204", "inhabitants"),
        ("900 long tons", "ship_displacement", "900", "long ton"),
    ],
)  # fmt: skip
def test_a_number_is_canonical_with_its_unit(text, relation, value, unit):
    answer = typed(text, relation)
    assert (answer.type, answer.value, answer.unit) == ("number", value, unit)


@pytest.mark.parametrize(
    ("text", "type_", "relations"),
    [
        ("1931", "date", "opened yearbuilt established_date1 pub_date finalyear population_census_year"),
        ("1931", "number", "number_built"), ("Ana Dvořák", "name", "label"), ("Union of the Centre", "name", "label"),
        ("12 Angry Men", "name", "label"), ("7th Avenue", "name", "label"), ("oil on canvas", "string", "label"),
        ("Salt and honour", "string", "label"),
    ],
)  # fmt: skip
def test_the_type_depends_on_capitals_and_a_bare_year_on_its_relation(text, type_, relations):
    for relation in relations.split():
        answer = typed(text, relation)
        assert (answer.type, answer.value) == (type_, text)


@pytest.mark.parametrize(
    "text",
    [
        "", "   ", "(unknown)", "unknown", "various", "about 300", "c. 1931", "~300", "300?", "1931 or 1932",
        "Ana Kelm, Bo Tarn", "Ana Kelm and Bo Tarn", "granite; sandstone", "granite\nsandstone", "10\u201320 m",
        "1914\u20131918", "5 April 1931 \u2013 6 May 1932", "24 x 30 cm", "https://kelm.org", "www.kelm.org",
        "It was built by Kelm in the year.", "The bridge was opened by a king", "19th century", "1930s", "6 ft 2 in",
        "{{circa}}", "Kelm Bridge.jpg", "Kelm (Tarn", "spring 1931", "over 9000 people",
    ],
)  # fmt: skip
def test_what_is_no_single_certain_value_is_refused(text):
    assert type_answer(text, "", "built") is None


@pytest.mark.parametrize(
    ("value", "derivation", "derived"),
    [
        ("5 April 1931", "year", "1931"), ("5 April 1931", "month", "1931-04"), ("April 1931", "year", "1931"),
        ("April 1931", "month", None), ("1931", "year", None), ("320 m", "year", None),
    ],
)  # fmt: skip
def test_a_coarser_date_is_derived_from_a_fuller_one_alone(value, derivation, derived):
    found = derive_answer(typed(value, "opened"), derivation)
    assert (found and (found.value, found.key)) == (derived and (derived, f"date:{derived}"))


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


@given(VALUES, VALUES, UNITS, UNITS)
def test_a_changed_number_is_never_right(value, other, unit, other_unit):
    assume(value != other)
    answer = make_answer(render_number(make_number(value, unit))[0], make_number(value, unit))
    wrong = render_number(make_number(other, other_unit))
    assert "correct" not in {compare_answers(form, answer) for form in wrong}


REFERENCES = st.one_of(
    DATES.map(lambda date: make_answer(render_date(date)[0], date)),
    st.builds(make_number, VALUES, UNITS).map(lambda number: make_answer(render_number(number)[0], number)),
    st.from_regex(r"[A-Z][a-z]{2,8}( [A-Z][a-z]{2,8})?", fullmatch=True).map(typed),
)


@given(REFERENCES, REFERENCES)
def test_two_references_never_contradict_one_another(first, second):
    assert compare_answers(first.surface, first) == "correct"
    verdicts = {compare_answers(first.surface, second), compare_answers(second.surface, first)}
    assert verdicts != {"correct", "incorrect"}


def test_many_different_answers_are_compared_with_a_bounded_number_and_still_found_by_their_words():
    assert find_repeats(["1.5", "15", "-15"], "number") == ()
    names = [f"Ana {chr(97 + n % 26)}{chr(97 + n // 26 % 26)}{chr(97 + n // 676)}" for n in range(5_000)]
    dates = [f"12 May {1000 + n}" for n in range(500)]
    assert find_repeats([*names, names[-1]], "name") == (Repeat(names[-1], 2),)
    assert find_repeats([*dates, dates[-1], "1000-05-12"], "date") == (Repeat(dates[0], 2), Repeat(dates[-1], 2))
