"""Agreement of two judges: intervals and kappa."""

import pytest

from pipelines.agent.agreement import (
    bound_mean,
    cohen_kappa,
    fleiss_kappa,
    wilson_interval,
)


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


def test_a_share_has_its_wilson_interval():
    found = bound_mean(30, 100, 1)
    assert (found.low, found.high) == pytest.approx(wilson_interval(30, 100))
    assert found.middle == 0.3
