"""Shares of rounds: the most questions whose mix is within the tolerance."""

from itertools import product

from hypothesis import given, settings
from hypothesis import strategies as st

from pipelines.checks.mixes import fill_mix, list_short_rounds

SHARES = {1: 0.4, 3: 0.3, 5: 0.3}


def is_within(kept, tolerance):
    total = sum(kept.values())
    return all(abs(kept[kind] - share * total) <= tolerance * total + 1e-9 for kind, share in SHARES.items())


@settings(max_examples=60, deadline=None)
@given(
    available=st.fixed_dictionaries({kind: st.integers(0, 12) for kind in SHARES}),
    tolerance=st.sampled_from([0.0, 0.05, 0.2]),
)
def test_no_larger_mix_is_within_the_tolerance(available, tolerance):
    kept = fill_mix(available, SHARES, tolerance)
    assert is_within(kept, tolerance)
    assert all(kept[kind] <= available[kind] for kind in SHARES)
    others = (dict(zip(SHARES, counts, strict=True)) for counts in product(*(range(available[k] + 1) for k in SHARES)))
    assert sum(kept.values()) == max(sum(other.values()) for other in others if is_within(other, tolerance))


def test_what_is_short_holds_the_others_to_its_share():
    assert fill_mix({1: 200, 3: 100, 5: 25}, SHARES, 0.05) == {1: 43, 3: 32, 5: 25}


def test_without_one_kind_nothing_is_within_the_shares():
    assert fill_mix({1: 20, 3: 9}, SHARES, 0.05) == {1: 0, 3: 0, 5: 0}


def test_a_number_of_rounds_below_its_share_is_told_with_what_can_be_released():
    counts = {1: 30, 3: 15, 5: 25}
    (text,) = list_short_rounds(counts, SHARES, 0.05)
    assert text.startswith("15 of 70 questions have 3 rounds, 21.4%")
    assert f"at most {sum(fill_mix(counts, SHARES, 0.05).values())} of all" in text


def test_of_a_mix_within_the_tolerance_and_of_no_questions_nothing_is_told():
    assert list(list_short_rounds({1: 36, 3: 32, 5: 32}, SHARES, 0.05)) == []
    assert list(list_short_rounds({}, SHARES, 0.05)) == []
