"""Even samples and the mix of search-free questions, against a search over everything that could be kept."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.checks.balance import Needed, fit_mix, narrow_bounds, refuse_mix, sample, share_out

COUNTS = st.dictionaries(st.sampled_from("abcdefgh"), st.integers(0, 30))
BOUNDS = st.sampled_from([(0.0, 1.0), (0.3, 0.34), (0.0, 0.32), (0.32, 1.0), (0.5, 0.5), (0.0, 0.0), (1.0, 1.0)])


@given(COUNTS, st.integers(0, 150))
def test_a_share_goes_out_whole_and_no_category_could_have_one_more_without_being_the_largest(counts, total):
    kept = share_out(counts, total)
    assert sum(kept.values()) == min(total, sum(counts.values()))
    assert all(0 <= kept[name] <= counts[name] for name in counts)
    short = [kept[name] for name in counts if kept[name] < counts[name]]
    assert all(max(kept.values()) - each <= 1 for each in short)


@given(COUNTS, st.integers(0, 150), st.sampled_from([1.0, 1.5, 3.0]))
def test_no_category_of_a_sample_is_larger_than_its_spread(counts, total, spread):
    kept = sample(counts, total, spread)
    present = [count for count in kept.values() if count]
    assert sum(present) <= total
    assert all(count <= max(1, spread / len(present) * sum(present) + 1e-9) for count in present)


@given(st.integers(0, 14), st.integers(0, 14), BOUNDS)
def test_a_mix_keeps_as_many_as_any_that_is_within_the_bounds(free, required, bounds):
    low, high = bounds
    fitting = [
        (kept, beside)
        for kept in range(free + 1)
        for beside in range(required + 1)
        if kept + beside == 0 or low - 1e-12 <= kept / (kept + beside) <= high + 1e-12
    ]
    found = fit_mix(free, required, low, high)
    assert found in fitting
    assert sum(found) == max(map(sum, fitting))


def ask(needs, split="rl"):
    return [Needed(f"q-{number:03d}", split, need) for number, need in enumerate(needs)]


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


def test_what_was_not_measured_is_neither_counted_nor_refused():
    assert refuse_mix(ask(["", "search-free", "text", ""]), (0.5, 0.5)) == {}


def test_each_split_has_its_own_mix():
    questions = [*ask(["search-free", "image"]), Needed("q-900", "eval", "search-free")]
    assert list(refuse_mix(questions, (0.5, 0.5))) == ["q-900"]


@given(BOUNDS, st.floats(0.0, 1.0))
def test_narrowed_bounds_lie_within_the_bounds(bounds, part):
    low, high = narrow_bounds(bounds, part)
    assert bounds[0] - 1e-9 <= low <= high + 1e-9 <= bounds[1] + 2e-9
