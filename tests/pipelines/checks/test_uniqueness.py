import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipelines.checks.uniqueness import (
    Fit,
    NearMissSearch,
    check_answer_unchanged,
    check_fit,
    check_near_misses,
    count_fit,
    find_near_misses,
)
from pipelines.graph.proofs import make_query
from pipelines.graph.query import Indexes
from schemas.datasets import Rewrite
from tests.pipelines.painters import TYPE, add_pages, ask_back, born, paint


def test_every_rewrite_of_the_demo_keeps_its_answer_and_fits_one_entity(demo, demo_ground):
    for row in demo.rows("rewrites", Rewrite):
        query = make_query(demo_ground.corpus, row.proof)
        assert check_answer_unchanged(demo_ground, query, row.answer.key).passed
        for node in range(1, len(row.proof.nodes)):
            threshold = demo.config.rewrites.min_alone_first if node == 1 else demo.config.rewrites.min_alone
            assert check_fit(count_fit(demo_ground, query, node, threshold), threshold).passed


def judge(corpus, *facts, cap=50):
    """Return all that says whether the painter born at Ostrel in the 1870s is one: counts, and the near misses."""
    ground, query = Indexes(corpus), ask_back(corpus, "Ostrel", *facts)
    fit = count_fit(ground, query, 1, 2)
    return fit, check_fit(fit, 2), check_near_misses(find_near_misses(ground, query, 1, cap))


def is_accepted(corpus, *facts):
    _, counted, looked_up = judge(corpus, *facts)
    return counted.passed and looked_up.passed


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


FIELDS = {
    "birth_place": ("[[Ostrel]]", "Ostrel", "[[Old Ostrel|home]]", "{{ubl|[[Marn]]|[[Ostrel]]}}"),
    "birth_date": ("{{birth date|1874|5|6}}", "1874", "1870s", "May 1874"),
}
UNREAD = {"birth_place": "{{strange|x}}", "birth_date": "c. 1874"}
SENTENCES = {
    "birth_place": (
        "Vera Wick was born in [[Ostrel]].",
        "She was born at Ostrel.",
        "Born at [[Ostrel|home]], she grew.",
    ),
    "birth_date": ("Vera Wick was born in 1874.", "She was born on 6 May 1874.", "She was born in the 1870s."),
}
FILLERS = ("", "She painted.", "She was born to a banker.", "She knew [[Lumby]].", "She lived until 1930.")


@st.composite
def draw_twins(draw):
    """A page of someone who fits: each fact in the infobox, or unreadable or left out there and said in prose."""
    fields, prose = [], [draw(st.sampled_from(FILLERS))]
    for key, forms in FIELDS.items():
        shown = draw(st.sampled_from((*forms, UNREAD[key], "")))
        fields += [f"{key} = {shown}"] if shown else []
        if shown not in forms or draw(st.booleans()):
            prose.append(draw(st.sampled_from(SENTENCES[key])))
    return paint("Vera Wick", *draw(st.permutations(fields)), prose=" ".join(draw(st.permutations(prose))))


@settings(max_examples=150)
@given(draw_twins())
def test_one_who_fits_is_never_passed_over_whatever_the_infobox_leaves_out(painters, twin):
    assert is_accepted(painters)
    assert not is_accepted(add_pages(painters, Vera_Wick=twin))


@settings(max_examples=40)
@given(st.sampled_from(["[[Ostrel]]", "Ostrel", "[[Old Ostrel|home]]"]), st.integers(1870, 1879))
def test_a_twin_flips_the_verdict(painters, town, year):
    assert is_accepted(painters)
    assert not is_accepted(add_pages(painters, Vera_Wick=paint("Vera Wick", f"birth_place = {town}", born(year))))
