import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.graph.values import Date, find_roman_numbers, find_spelled_numbers, parse_date, parse_number


@pytest.mark.parametrize(
    "text", ["31 April 1931", "1931-13", "0 April 1931", "79", "05/04/1931", "April", "1931-02-30"]
)
def test_what_is_no_date_or_could_be_two_is_not_parsed(text):
    assert parse_date(text) is None


def test_the_leap_day_of_a_julian_century_year_is_a_date():
    assert parse_date("29 February 1700") == Date(1700, 2, 29)


@pytest.mark.parametrize("text", ["12,5", "1,2345", "1930s", "5 M", "12 Angry Men", "1e5", "--5", "5 m 3", "$5 m"])
def test_what_is_no_plain_number_is_not_parsed(text):
    assert parse_number(text) is None


def test_case_tells_units_apart():
    assert parse_number("5 MW").unit == "MW"
    assert parse_number("5 Metres").unit == "m"


@pytest.mark.parametrize(
    ("text", "number"),
    [("three hundred and twenty", 320), ("nineteen thirty one", 1931), ("two thousand nine", 2009), ("third", 3)],
)
def test_spelled_numbers_are_found(text, number):
    assert number in find_spelled_numbers(text.split())


@given(st.integers(2, 3999))
def test_roman_numerals_are_read_back(number):
    marks = [
        (1000, "M"),
        (900, "CM"),
        (500, "D"),
        (400, "CD"),
        (100, "C"),
        (90, "XC"),
        (50, "L"),
        (40, "XL"),
        (10, "X"),
    ]
    marks += [(9, "IX"), (5, "V"), (4, "IV"), (1, "I")]
    numeral, rest = "", number
    for value, mark in marks:
        numeral, rest = numeral + mark * (rest // value), rest % value
    assert find_roman_numbers(f"built in {numeral}.") == ({number} if len(numeral) > 1 else set())
