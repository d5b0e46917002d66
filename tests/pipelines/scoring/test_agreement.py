import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.errors import ConfigError
from pipelines.scoring.agreement import cohen_kappa, wilson_interval


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
