import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.graph.answers import compare_answers, derive_answer, make_answer, type_answer
from pipelines.graph.values import Date, render_date


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


@pytest.mark.parametrize(
    "relation", ["opened", "yearbuilt", "established_date1", "pub_date", "finalyear", "population_census_year"]
)
def test_a_bare_year_is_a_date_where_the_relation_asks_for_one(relation):
    answer = type_answer("1931", "", relation)
    assert answer is not None
    assert answer.type == "date"


@pytest.mark.parametrize("relation", ["population_total", "number_built", "pages", "built_by", "height"])
def test_a_bare_year_is_a_number_elsewhere(relation):
    answer = type_answer("1931", "", relation)
    assert answer is not None
    assert answer.type == "number"


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
    answer = type_answer(text, "", relation)
    assert answer is not None
    assert (answer.type, answer.value, answer.unit) == ("number", value, unit)


@pytest.mark.parametrize(
    ("text", "type_"),
    [
        ("Ana Dvořák", "name"), ("Union of the Centre", "name"), ("12 Angry Men", "name"), ("7th Avenue", "name"),
        ("oil on canvas", "string"), ("Salt and honour", "string"),
    ],
)  # fmt: skip
def test_text_is_a_name_when_its_words_are_capitalised(text, type_):
    answer = type_answer(text, "", "label")
    assert answer is not None
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


def test_markup_that_contradicts_the_text_is_refused():
    assert type_answer("6 April 1931", "1931-04-05", "born") is None


def test_all_ways_to_write_a_date_are_aliases():
    answer = type_answer("5 April 1931", "", "born")
    assert answer is not None
    assert {"April 5, 1931", "1931-04-05", "05 April 1931", "5th April 1931", "5 Apr 1931"} <= set(answer.aliases)


@pytest.mark.parametrize(
    ("first", "second"), [("Dvořák", "DVORAK"), ("1,204 m", "1204 metres"), ("April 1931", "1931-04")]
)
def test_equal_values_have_equal_keys(first, second):
    one, other = (type_answer(text, "", "label") for text in (first, second))
    assert one is not None
    assert other is not None
    assert one.key == other.key


@given(st.text(max_size=60), st.sampled_from(["opened", "height", "label"]))
def test_any_text_is_typed_or_refused_and_every_form_of_it_is_right(text, relation):
    answer = type_answer(text, "", relation)
    if answer is not None:
        assert answer.key
        assert all(compare_answers(form, answer) == "correct" for form in (answer.surface, *answer.aliases))


@pytest.mark.parametrize(
    ("relation", "unit"), [("area_sq_mi", "sqmi"), ("area_sq_km", "km2"), ("area_km2", "km2"), ("elevation_m", "m")]
)
def test_the_unit_in_a_key_is_read_whole(relation, unit):
    answer = type_answer("481354", "", relation)
    assert answer is not None
    assert (answer.unit, answer.key) == (unit, f"number:481354 {unit}")


@pytest.mark.parametrize(
    ("value", "derivation", "derived"),
    [
        ("5 April 1931", "year", "1931"), ("5 April 1931", "month", "1931-04"), ("April 1931", "year", "1931"),
        ("April 1931", "month", None), ("1931", "year", None), ("320 m", "year", None),
    ],
)  # fmt: skip
def test_a_coarser_date_is_derived_from_a_fuller_one_alone(value, derivation, derived):
    answer = type_answer(value, "", "opened")
    assert answer is not None
    found = derive_answer(answer, derivation)
    assert (found and (found.value, found.key)) == (derived and (derived, f"date:{derived}"))


@given(st.dates().map(lambda day: Date(day.year, day.month, day.day)), st.sampled_from(["month", "year"]))
def test_a_derived_answer_is_a_whole_answer_of_its_own(date, derivation):
    derived = derive_answer(make_answer(render_date(date)[0], date), derivation)
    assert derived is not None
    assert derived.precision == derivation
    assert compare_answers(derived.surface, derived) == "correct"
    assert compare_answers(render_date(date)[0], derived) != "correct"
    assert derived.surface not in derived.aliases
