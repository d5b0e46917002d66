from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.agent.agreement import Rate, cohen_kappa, correct_share, wilson_interval
from pipelines.errors import ConfigError


def test_the_published_audit_example_holds():
    low, high = wilson_interval(95, 100)
    assert (round(low, 3), round(high, 3)) == (0.888, 0.978)


@pytest.mark.parametrize(("plants", "bound"), [(29, 0.88), (59, 0.93), (149, 0.97), (299, 0.98)])
def test_no_miss_in_more_plants_proves_more(plants, bound):
    low, high = wilson_interval(plants, plants)
    assert low >= bound
    assert high == 1.0


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


def test_kappa_of_one_label_throughout_is_full_agreement():
    assert cohen_kappa(["a", "a"], ["a", "a"]) == 1.0


def test_labels_that_do_not_pair_up_are_refused():
    with pytest.raises(ConfigError):
        cohen_kappa(["a"], [])


def test_a_judge_that_never_errs_corrects_nothing():
    found = correct_share(Rate(30, 100), Rate(500, 500), Rate(500, 500))
    assert found.share == pytest.approx(0.3)
    low, high = wilson_interval(30, 100)
    assert found.low == pytest.approx(low, abs=0.02)
    assert found.high == pytest.approx(high, abs=0.02)


def test_what_a_lenient_judge_accepts_is_corrected_down():
    """A solver that is right one time in ten, and a judge that takes one wrong answer of ten."""
    found = correct_share(Rate(1710, 10_000), Rate(900, 1000), Rate(810, 1000))
    assert found.share == pytest.approx(0.1, abs=0.001)
    assert found.low < 0.1 < found.high


def test_the_corrected_interval_is_wider_than_that_of_a_known_judge():
    small, large = (correct_share(Rate(500, 1000), Rate(9 * n, 10 * n), Rate(9 * n, 10 * n)) for n in (3, 3000))
    assert small.high - small.low > large.high - large.low


def test_the_corrected_interval_covers_the_truth_as_often_as_it_says():
    rng, covered = Random(5), 0
    for _ in range(400):
        wrong, right = (sum(rng.random() < rate for _ in range(300)) for rate in (0.93, 0.85))
        accepted = sum(rng.random() < (0.85 if rng.random() < 0.2 else 0.07) for _ in range(400))
        found = correct_share(Rate(accepted, 400), Rate(wrong, 300), Rate(right, 300))
        covered += found.low <= 0.2 <= found.high
    assert covered >= 0.93 * 400


@pytest.mark.parametrize("rate", [0, 40, 50])
def test_a_judge_no_better_than_chance_says_nothing(rate):
    found = correct_share(Rate(30, 100), Rate(50, 100), Rate(rate, 100))
    assert (found.share, found.low, found.high) == (0.3, 0.0, 1.0)


@pytest.mark.parametrize("bad", [Rate(0, 0), Rate(3, 2), Rate(-1, 2)])
def test_a_rate_of_nothing_or_of_too_much_is_refused(bad):
    with pytest.raises(ConfigError, match=f"{bad.count} of {bad.trials}"):
        correct_share(Rate(1, 2), bad, Rate(1, 2))


@given(st.tuples(*[st.integers(0, 50)] * 3), st.tuples(*[st.integers(1, 50)] * 3))
def test_a_corrected_share_lies_between_0_and_1(counts, more):
    found = correct_share(*(Rate(count, count + extra) for count, extra in zip(counts, more, strict=True)))
    assert 0.0 <= found.low <= found.high <= 1.0
    assert 0.0 <= found.share <= 1.0
