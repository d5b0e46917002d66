import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.graph.walks import COUNTED_STEPS, TRIES, count_choice, draw_units, draw_words, make_keys, mix_words

IDENTITIES = np.arange(20_000, dtype=np.uint64)


def test_words_are_those_of_splitmix64():
    # The first three outputs for seed 0 of the generator as published: its n-th state is n times the golden ratio.
    states = np.arange(1, 4, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    wanted = [0xE220A8397B1DCDAF, 0x6E789E6AA1B965F4, 0x06C45D188009454F]
    assert mix_words(states).tolist() == wanted
    assert draw_words(np.zeros(1, dtype=np.uint64), 2).tolist() == wanted[2:]


@given(st.integers(0, 2**64 - 1), st.integers(0, 2**64 - 1), st.integers(0, 2**33))
def test_a_choice_depends_on_seed_identity_and_counter_alone(seed, identity, counter):
    def draw(seed, identities, counter):
        return draw_words(make_keys(seed, np.array(identities, dtype=np.uint64)), counter).tolist()

    (alone,) = draw(seed, [identity], counter)
    assert draw(seed, [0, 1, identity], counter)[2] == alone
    assert alone not in (draw(seed ^ 1, [identity], counter) + draw(seed, [identity], counter + 1))


def test_units_of_neighbouring_identities_are_even_and_unrelated():
    keys = make_keys(7, IDENTITIES)
    first, second = draw_units(keys, 0), draw_units(keys, 1)
    for units in (first, second):
        assert 0 <= units.min() < 0.001 < 0.999 < units.max() < 1
        counts = np.bincount((units * 10).astype(int), minlength=10)
        assert abs(counts - 2000).max() < 200
    assert abs(np.corrcoef(first, second)[0, 1]) < 0.03
    assert abs(np.corrcoef(first[1:], first[:-1])[0, 1]) < 0.03


def list_choices(step):
    """Return the counters of every choice of a step."""
    tried = [count_choice(step, purpose, attempt) for purpose in ("link", "relation") for attempt in range(TRIES)]
    return [*tried, *(count_choice(step, purpose) for purpose in ("links-in-order", "relations-in-order", "coin"))]


def test_no_two_choices_of_a_walk_share_a_counter():
    counters = [counter for step in (0, 1, 2, COUNTED_STEPS - 1) for counter in list_choices(step)]
    assert len(set(counters)) == len(counters)
    assert max(counters) < 1 << 32


def test_choices_have_the_counters_that_walks_were_drawn_with():
    assert list_choices(2) == [*range(128, 138), *range(139, 149), 128 + 31, 128 + 42, 128 + 60]


@pytest.mark.parametrize(
    ("step", "purpose", "attempt"),
    [(-1, "coin", 0), (COUNTED_STEPS, "coin", 0), (0, "link", TRIES), (0, "relation", -1), (0, "links-in-order", 1)],
)
def test_a_choice_without_a_counter_is_refused(step, purpose, attempt):
    with pytest.raises(ValueError, match=f"attempt {attempt} at {purpose} of step {step}: expected attempts below"):
        count_choice(step, purpose, attempt)
