import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.agent.agreement import Interval, bound_mean, estimate_ratio, make_exact, wilson_interval

amounts = st.floats(0, 1e6).map(lambda number: round(number, 3))
intervals = st.tuples(amounts, amounts, amounts).map(lambda three: Interval(*sorted(three)))


@given(intervals, intervals)
def test_a_product_lies_within_its_bounds_and_no_wider_than_those_of_the_factors(one, other):
    found = one.times(other)
    assert found.low <= found.middle * (1 + 1e-9)
    assert found.middle <= found.high * (1 + 1e-9)
    assert found.low >= one.low * other.low * (1 - 1e-9)
    assert found.high <= one.high * other.high * (1 + 1e-9) + 1e-9


def test_what_is_known_exactly_adds_no_doubt():
    found = make_exact(3).times(Interval(1, 2, 4))
    assert (found.low, found.middle, found.high) == pytest.approx((3, 6, 12))


def test_a_share_has_its_wilson_interval():
    found = bound_mean(30, 100, 1)
    assert (found.low, found.high) == pytest.approx(wilson_interval(30, 100))
    assert found.middle == 0.3


def test_the_ratio_of_a_whole_lies_in_the_interval_of_nineteen_samples_in_twenty():
    draw, inside, trials = random.Random(7), 0, 400
    for _ in range(trials):
        # Rows of a group share a rate, as those of a shard may: their own spread would promise too much.
        rows = [draw.randint(5, 15) for _ in range(16)]
        rates = [draw.uniform(1, 5) for _ in rows]
        found = estimate_ratio([rate * count for rate, count in zip(rates, rows, strict=True)], rows)
        inside += found.low <= 3 <= found.high
    assert inside / trials > 0.92
