"""Agreement of two judges: intervals and kappa."""

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.agent.agreement import (
    Rate,
    bound_mean,
    cohen_kappa,
    correct_share,
    fleiss_kappa,
    wilson_interval,
)
from pipelines.errors import ConfigError


def test_the_published_audit_example_holds():
    low, high = wilson_interval(95, 100)
    assert (round(low, 3), round(high, 3)) == (0.888, 0.978)


@given(st.integers(0, 500), st.integers(0, 500))
def test_the_interval_holds_the_share(successes, failures):
    trials = successes + failures
    low, high = wilson_interval(successes, trials)
    assert 0.0 <= low <= (successes / trials if trials else 0.5) <= high <= 1.0


def test_more_successes_than_trials_are_refused():
    with pytest.raises(ConfigError, match="3 successes of 2"):
        wilson_interval(3, 2)


def test_kappa_of_cohens_example():
    first = ["yes"] * 25 + ["no"] * 25
    second = ["yes"] * 20 + ["no"] * 5 + ["yes"] * 10 + ["no"] * 15
    assert cohen_kappa(first, second) == pytest.approx(0.4)


FLEISS = ((0, 0, 0, 0, 14), (0, 2, 6, 4, 2), (0, 0, 3, 5, 6), (0, 3, 9, 2, 0), (2, 2, 8, 1, 1),
          (7, 7, 0, 0, 0), (3, 2, 6, 3, 0), (2, 5, 3, 2, 2), (6, 5, 2, 1, 0), (0, 2, 2, 3, 7))  # fmt: skip
"""Fourteen raters, ten rows, five labels: the worked example of Fleiss' kappa."""


def test_kappa_of_many_raters():
    rows = [[str(label) for label, count in enumerate(row) for _ in range(count)] for row in FLEISS]
    assert fleiss_kappa(rows) == pytest.approx(0.210, abs=0.001)
    assert fleiss_kappa([["yes", "yes"], ["yes", "yes", "yes"]]) == 1.0
    with pytest.raises(ConfigError, match="two labels"):
        fleiss_kappa([["yes"]])


def test_the_corrected_interval_covers_the_truth_as_often_as_it_says():
    rng, covered = Random(5), 0
    for _ in range(400):
        wrong, right = (sum(rng.random() < rate for _ in range(300)) for rate in (0.93, 0.85))
        accepted = sum(rng.random() < (0.85 if rng.random() < 0.2 else 0.07) for _ in range(400))
        found = correct_share(Rate(accepted, 400), Rate(wrong, 300), Rate(right, 300))
        covered += found.low <= 0.2 <= found.high
    assert covered >= 0.93 * 400


@given(st.tuples(*[st.integers(0, 50)] * 3), st.tuples(*[st.integers(1, 50)] * 3))
def test_a_corrected_share_lies_between_0_and_1(counts, more):
    found = correct_share(*(Rate(count, count + extra) for count, extra in zip(counts, more, strict=True)))
    assert 0.0 <= found.low <= found.high <= 1.0
    assert 0.0 <= found.share <= 1.0


def test_a_share_has_its_wilson_interval():
    found = bound_mean(30, 100, 1)
    assert (found.low, found.high) == pytest.approx(wilson_interval(30, 100))
    assert found.middle == 0.3
