import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from pipelines.graph.facts import Match, compare_value, list_periods, parse_period, read_shown, read_wanted
from pipelines.graph.values import Date, render_date


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


def test_a_date_in_markup_counts_as_shown():
    assert compare("birth_date", "2 April 1871", "1871", iso="1871-04-02") == "yes"


@pytest.mark.parametrize("text", ["1900s", "the 1800s", "870s", "7th century", "century", "1870", "s", ""])
def test_what_two_readers_may_take_differently_is_no_period(text):
    assert parse_period(text) is None


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


@given(st.dates(), st.dates())
def test_a_coarser_date_never_speaks_against_a_finer_one_within_it(day, other):
    assume(day.year >= 100 and other.year >= 100)
    wanted = read_wanted("birth_date", render_date(Date(day.year, day.month, day.day))[0])
    shown = read_shown(render_date(Date(other.year))[0], "", "birth_date")
    assert compare_value(wanted, shown) is (Match.OPEN if day.year == other.year else Match.NO)
