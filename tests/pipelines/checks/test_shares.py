"""Even samples, the mix of search-free questions and that of rounds, against all that could be kept."""

from collections import Counter
from dataclasses import replace
from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipelines.checks.sets import make_signature
from pipelines.checks.shares import (
    fill_mix,
    list_short_rounds,
    refuse_mix,
    refuse_rounds,
    share_out,
)
from pipelines.errors import GateNotMet
from tests.pipelines.release.builders import make_question

COUNTS = st.dictionaries(st.sampled_from("abcdefgh"), st.integers(0, 30))
BOUNDS = st.sampled_from([(0.0, 1.0), (0.3, 0.34), (0.0, 0.32), (0.32, 1.0), (0.5, 0.5), (0.0, 0.0), (1.0, 1.0)])


@given(COUNTS, st.integers(0, 150))
def test_a_share_goes_out_whole_and_no_category_could_have_one_more_without_being_the_largest(counts, total):
    kept = share_out(counts, total)
    assert sum(kept.values()) == min(total, sum(counts.values()))
    assert all(0 <= kept[name] <= counts[name] for name in counts)
    short = [kept[name] for name in counts if kept[name] < counts[name]]
    assert all(max(kept.values()) - each <= 1 for each in short)


@given(st.integers(0, 14), st.integers(0, 14), BOUNDS)
def test_a_mix_keeps_as_many_as_any_that_is_within_the_bounds(free, required, bounds):
    low, high = bounds
    fitting = [
        (kept, beside)
        for kept in range(free + 1)
        for beside in range(required + 1)
        if kept + beside == 0 or low - 1e-12 <= kept / (kept + beside) <= high + 1e-12
    ]
    kept = fill_mix({0: free, 1: required}, {0: bounds, 1: (1.0 - high, 1.0 - low)}, {0: low, 1: 1.0 - low})
    found = (kept[0], kept[1])
    assert found in fitting
    assert sum(found) == max(map(sum, fitting))
    assert found[1] == max(beside for each, beside in fitting if each + beside == sum(found))


SIGNATURE = make_signature(make_question(0, None, "rl"))


def ask(needs, split="rl"):
    rows = enumerate(needs)
    return [replace(SIGNATURE, record_id=f"q-{n:03d}", split=split, search_need=need) for n, need in rows]


@pytest.mark.parametrize(
    ("free", "image", "kept_free", "kept_image"),
    [(1600, 3400, 1600, 3400), (5000, 3400, 1751, 3400), (1600, 9000, 1600, 3733), (5, 0, 0, 0), (0, 9, 0, 0)],
)
def test_the_published_mix_has_a_floor_and_a_ceiling(free, image, kept_free, kept_image):
    questions = ask(["search-free"] * free + ["image"] * image)
    refused = refuse_mix(questions, (0.30, 0.34))
    kept = Counter(each.search_need for each in questions if each.record_id not in refused)
    assert (kept["search-free"], kept["image"]) == (kept_free, kept_image)
    assert {each.reason for each in refused.values()} <= {"search-free-over-share", "search-required-over-share"}


def test_the_reason_says_what_there_was_too_much_of_and_what_was_asked_for():
    (over,) = refuse_mix(ask(["search-free", "search-free", "text"]), (0.0, 0.5)).values()
    assert over.reason == "search-free-over-share"
    (over,) = refuse_mix(ask(["search-free", "text", "mixed"]), (0.5, 1.0)).values()
    assert over.reason == "search-required-over-share"
    assert "of rl, 1 need no search and 2 take one" in over.detail
    assert "50.0% to 100.0%" in over.detail


SHARES = {1: 0.4, 3: 0.3, 5: 0.3}


def fill(available, tolerance):
    bounds = {kind: (share - tolerance, share + tolerance) for kind, share in SHARES.items()}
    return fill_mix(available, bounds, SHARES)


def is_within(kept, tolerance):
    total = sum(kept.values())
    return all(abs(kept[kind] - share * total) <= tolerance * total + 1e-9 for kind, share in SHARES.items())


@settings(max_examples=60, deadline=None)
@given(
    available=st.fixed_dictionaries({kind: st.integers(0, 12) for kind in SHARES}),
    tolerance=st.sampled_from([0.0, 0.05, 0.2]),
)
def test_no_larger_mix_is_within_the_tolerance(available, tolerance):
    kept = fill(available, tolerance)
    assert is_within(kept, tolerance)
    assert all(kept[kind] <= available[kind] for kind in SHARES)
    others = (dict(zip(SHARES, counts, strict=True)) for counts in product(*(range(available[k] + 1) for k in SHARES)))
    assert sum(kept.values()) == max(sum(other.values()) for other in others if is_within(other, tolerance))


def draw_rounds(counts):
    numbers = [kind for kind, count in counts.items() for _ in range(count)]
    return [replace(SIGNATURE, record_id=f"q-{n:03d}", rounds=kind) for n, kind in enumerate(numbers)]


def test_a_number_of_rounds_that_is_missing_stops_with_the_setting_and_the_counts():
    with pytest.raises(GateNotMet, match=r"injections: .* 20 of 1, 9 of 3, 0 of 5") as stopped:
        refuse_rounds(draw_rounds({1: 20, 3: 9}), SHARES, 0.05)
    assert "injections.weights" in str(stopped.value)


ROUNDS = {1: 0.4, 3: 0.3, 5: 0.3}


def test_a_number_of_rounds_below_its_share_is_told_with_what_can_be_released():
    (text,) = list_short_rounds({1: 30, 3: 15, 5: 25}, ROUNDS, 0.05)
    assert text.startswith("15 of 70 questions have 3 rounds, 21.4%")
    assert "at most 60 of all" in text
