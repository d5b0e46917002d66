import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.graph.values import Date, find_dates, find_measures, render_date


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


@given(st.dates().map(lambda day: Date(day.year, day.month, day.day)).filter(lambda date: date.year >= 1000))
def test_every_rendering_of_a_date_is_found_in_a_sentence(date):
    for form in render_date(date):
        assert [spot.value for spot in find_dates(f"She was born on {form} in Lumby.")] == [date]


@given(st.text(max_size=200))
def test_spots_are_spans_of_the_text_in_order(text):
    for spots in (find_dates(text), find_measures(text)):
        assert all(0 <= spot.start < spot.end <= len(text) for spot in spots)
        assert [spot.start for spot in spots] == sorted(spot.start for spot in spots)


def test_a_page_of_dates_is_looked_through_once():
    text = "On 4 June 1814 came 12 km. " * 3000
    assert [(spot.value.value, spot.value.unit) for spot in find_measures(text)] == [("12", "km")] * 3000
