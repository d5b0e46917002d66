import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.graph.facts import Match, compare_value, list_periods, parse_period, read_shown, read_wanted
from pipelines.graph.values import (
    Date,
    Number,
    compare_measures,
    find_dates,
    find_measures,
    find_spelled_numbers,
    render_date,
    sum_spelled,
)


def compare(relation, wanted, shown, iso=""):
    return compare_value(read_wanted(relation, wanted), read_shown(shown, iso, relation)).value


@pytest.mark.parametrize(
    ("relation", "wanted", "shown", "result"),
    [
        ("movement", "Luminist", "Luminist", "yes"), ("movement", "Luminist", "luminíst", "yes"),
        ("movement", "Luminist", "Tonalist", "no"), ("movement", "Luminist", "Luminist and Tonalist", "open"),
        ("movement", "Luminist, Tonalist", "Luminist", "open"), ("movement", "Luminist", "", "open"),
        ("birth_date", "2 April 1871", "April 2, 1871", "yes"), ("birth_date", "2 April 1871", "3 April 1871", "no"),
        ("birth_date", "2 April 1871", "1871", "open"), ("birth_date", "2 April 1871", "April 1871", "open"),
        ("birth_date", "1871", "2 April 1871", "yes"), ("birth_date", "1870s", "2 April 1871", "yes"),
        ("birth_date", "1870s", "1881", "no"), ("birth_date", "1870s", "c. 1871", "open"),
        ("birth_date", "1870s", "19th century", "open"), ("birth_date", "19th century", "19th century", "yes"),
        ("birth_date", "19th century", "1801", "yes"), ("birth_date", "19th century", "1900", "yes"),
        ("birth_date", "19th century", "1901", "no"), ("birth_date", "2 April 1871", "unknown", "open"),
        ("length", "320 m", "320 m", "yes"), ("length", "35 m", "3.5 m", "no"),
        ("temperature", "5 °C", "-5 °C", "no"), ("length", "320 m", "1,050 ft", "open"),
        ("length", "320 m", "about 320 m", "open"), ("length", "1200 m", "1,200 m", "yes"),
        ("spans", "3", "three or four", "open"),
    ],
)  # fmt: skip
def test_a_shown_value_fits_or_not_or_leaves_it_open(relation, wanted, shown, result):
    assert compare(relation, wanted, shown) == result


@pytest.mark.parametrize(
    ("text", "years"),
    [("1870s", (1870, 1879)), ("the 1870s", (1870, 1879)), ("19th-century", None), ("19th century", (1801, 1900))],
)
def test_decades_and_centuries_are_spans_of_years(text, years):
    assert parse_period(text) == (years or (1801, 1900))


@given(st.dates().filter(lambda day: 1000 < day.year <= 9900))
def test_a_date_fits_its_own_decade_and_century_and_no_other(day):
    date = Date(day.year, day.month, day.day)
    shown = read_shown(render_date(date)[0], "", "birth_date")
    for period in list_periods(date):
        first, last = parse_period(period)
        assert first <= day.year <= last
        assert compare_value(read_wanted("birth_date", period), shown) is Match.YES
    assert len(list_periods(date)) == (2 if day.year // 10 % 10 else 1)


@pytest.mark.parametrize(
    ("text", "number"),
    [("three hundred and twenty", 320), ("nineteen thirty one", 1931), ("two thousand nine", 2009), ("third", 3)],
)
def test_spelled_numbers_are_found(text, number):
    assert number in find_spelled_numbers(text.split())


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("zero", 0), ("twelve", 12), ("twenty one", 21), ("one hundred", 100), ("one hundred and five", 105),
        ("three hundred and twenty thousand", 320_000), ("two million three hundred", 2_000_300),
        ("one thousand one hundred", 1_100),
    ],
)  # fmt: skip
def test_a_number_in_words_is_summed(text, value):
    assert sum_spelled(text.split()) == value


@pytest.mark.parametrize(
    ("text", "dates"),
    [
        ("X (5 April 1931 – June 3, 1999) was born", ["1931-04-05", "1999-06-03"]),
        ("It was opened on 20.11.2009 and on 2009-11-20.", ["2009-11-20", "2009-11-20"]),
        ("from May 1900 until 1939", ["1900-05", "1939"]), ("in 44 BC and AD 79", ["-0043", "0079"]),
        ("The town was established in 957.", ["0957"]), ("The first edition in 957 pages", []),
        ("1204 m high, 12 345 people, 1,931 books, 1931.5 units", []), ("a 1,204-metre road of 300 days", []),
        ("the 19th century, the 1870s", []),
    ],
)  # fmt: skip
def test_dates_of_a_text_are_found_at_their_precision(text, dates):
    assert [spot.value.iso for spot in find_dates(text)] == dates


@pytest.mark.parametrize(
    ("text", "measures"),
    [
        ("The bridge is 320 metres long.", [("320", "m")]),
        ("It covers 5,000 square kilometres (1,900 sq mi).", [("5000", "km2"), ("1900", "sqmi")]),
        ("It has 1,234,567 inhabitants.", [("1234567", "")]),
        ("3.5 million visitors paid US$5 million", [("3500000", ""), ("5000000", "$")]),
        ("a temperature of −5 °C, 10–20 km away", [("-5", "°C"), ("10", ""), ("20", "km")]),
        ("twelve metres, 5 in Lumby, the 19th century", [("12", "m"), ("5", "")]),
        ("a 30-minute film", [("30", "min")]),
        ("on 5 April 1931", []),
    ],
)
def test_numbers_of_a_text_are_found_with_their_units(text, measures):
    assert [(spot.value.value, spot.value.unit) for spot in find_measures(text)] == measures


@pytest.mark.parametrize(
    ("first", "second", "likeness"),
    [
        (("5", "km"), ("5000", "m"), "same"), (("5", "km"), ("3.1", "mi"), "same"),
        (("320", "m"), ("1050", "ft"), "same"), (("100", "°C"), ("212", "°F"), "same"),
        (("0", "°C"), ("273.15", "K"), "same"), (("1", "ha"), ("10000", "m2"), "same"),
        (("5", "km"), ("5001", "m"), "close"), (("5", "km"), ("3", "mi"), "close"),
        (("5", "km"), ("5", "mi"), "other"), (("5", "°C"), ("-5", "°C"), "other"),
        (("5", "km"), ("5", "kg"), "apart"), (("5", "km"), ("5", ""), "apart"), (("5", "$"), ("5", "€"), "apart"),
        (("5", "inhabitants"), ("6", "inhabitants"), "other"),
    ],
)  # fmt: skip
def test_measures_compare_by_what_they_measure(first, second, likeness):
    assert compare_measures(Number(*first), Number(*second)) == likeness
