import pytest

from pipelines.checks.uniqueness import (
    Fit,
    NearMissSearch,
    check_fit,
    check_near_misses,
    count_fit,
    find_near_misses,
)
from pipelines.graph.query import Indexes
from tests.pipelines.painters import TYPE, add_pages, ask_back, born, paint


def judge(corpus, *facts, cap=50):
    """Return all that says whether the painter born at Ostrel in the 1870s is one: counts, and the near misses."""
    ground, query = Indexes(corpus), ask_back(corpus, "Ostrel", *facts)
    fit = count_fit(ground, query, 1, 2)
    return fit, check_fit(fit, 2), check_near_misses(find_near_misses(ground, query, 1, cap))


def test_a_backward_hop_fits_one_entity_with_the_chain_and_several_without(painters):
    fit, counted, looked_up = judge(painters)
    assert (fit, counted.outcome, looked_up.outcome) == (Fit(1, 1, 2, capped=True), "PASS", "PASS")
    assert judge(painters, TYPE)[1].code == "not-unique"
    assert judge(painters, TYPE, ("height", "170 cm"))[1].code == "stands-alone"


@pytest.mark.parametrize(
    "twin",
    [
        paint("Vera Wick", "birth_place = [[Ostrel]]", born(1874)),
        paint("Vera Wick", "birth_place = [[Old Ostrel]]", "birth_date = 1874"),
        paint("Vera Wick", "birth_place = Ostrel", "birth_date = 1870s"),
        paint("Vera Wick", "birth_place = {{ubl|[[Lumby]]|[[Ostrel]]}}", born(1874)),
    ],
)
def test_a_twin_that_shows_everything_makes_the_descriptor_fit_two(painters, twin):
    _, counted, _ = judge(add_pages(painters, Vera_Wick=twin))
    assert (counted.outcome, counted.code) == ("FAIL", "not-unique")


def test_a_search_that_was_cut_never_passes():
    assert not check_near_misses(NearMissSearch(1, (), capped=True)).passed
    assert check_near_misses(NearMissSearch(1, (), capped=False)).passed
