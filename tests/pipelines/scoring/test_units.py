from decimal import Decimal

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from pipelines.graph.values import Number, compare_measures, format_decimal

LENGTHS = st.sampled_from(["m", "km", "cm", "ft", "in", "mi", "yd"])
VALUES = st.decimals(1, 10**6, places=1, allow_nan=False).map(format_decimal)


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


@given(VALUES, LENGTHS, VALUES, LENGTHS)
def test_order_does_not_matter(value, unit, other, other_unit):
    first, second = Number(value, unit), Number(other, other_unit)
    assert compare_measures(first, second) == compare_measures(second, first)


@given(VALUES, LENGTHS)
def test_a_measure_is_the_same_as_itself_and_not_as_its_neighbour(value, unit):
    number = Number(value, unit)
    step = Decimal(1).scaleb(int(Decimal(value).as_tuple().exponent))
    beside = Number(format_decimal(Decimal(value) + step), unit)
    assert compare_measures(number, number) == "same"
    assert compare_measures(number, beside) == "other"


@given(VALUES, VALUES)
def test_between_metric_units_only_equal_lengths_are_the_same(value, other):
    assume(Decimal(value) * 1000 != Decimal(other))
    assert compare_measures(Number(value, "km"), Number(other, "m")) != "same"
