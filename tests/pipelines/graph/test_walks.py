from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.graph.facts import read_attributes, read_relations
from pipelines.graph.walks import SPLITS, Order, WalkGraph, WalkRules, find_hub_threshold
from pipelines.ids import SplitRule
from pipelines.run.assembly import Assembly
from pipelines.run.workspace import Workspace
from schemas.datasets import Path, Seed

ALL = SplitRule(1.0, 0.0, 0.0, seed=0)


def make_rules(**changes):
    values = {
        "hops": (2, 3, 4),
        "weights": (0.4, 0.4, 0.2),
        "hub_in_degree": 100,
        "text_hops": False,
        "max_answer_tokens": 6,
        "splits": ALL,
    }
    return WalkRules(**(values | changes))


@pytest.fixture(scope="module")
def graph(demo, demo_corpus, demo_relations) -> WalkGraph:
    """The rules of the demo, without sentences."""
    rules = Assembly(demo.config, Workspace(demo.root), demo_corpus).graph.rules
    return WalkGraph(demo_corpus, make_rules(hub_in_degree=rules.hub_in_degree, splits=rules.splits), demo_relations)


def list_orders(graph, tries=2):
    """Return walks of every length from every article."""
    return [
        Order(node, split, identity=node * 1000 + number, length=length)
        for node in graph.corpus.article_nodes()
        for split in SPLITS
        for length, _ in graph.lengths_from(node, split)
        for number in range(tries)
    ]


def take_walks(graph, seed=3, tries=2):
    """Return (node, split, walk) of some walks of every length from every article."""
    drawn = graph.draw_walks(list_orders(graph, tries), seed)
    return [(one.order.node, one.order.split, graph.read_walk(one)) for one in drawn]


def take_walk(graph, seed=1, **order):
    return graph.read_walk(graph.draw_walks([Order(**order)], seed)[0])


def test_the_look_ahead_agrees_with_brute_force(graph):
    corpus, rules = graph.corpus, graph.rules

    def allowed(node):
        page = corpus.page(node)
        return not (page.is_list or page.is_disambiguation) and page.in_degree <= rules.hub_in_degree

    @cache
    def ends(node, split, left):
        if left:
            return any(allowed(f.target) and ends(f.target, split, left - 1) for f in read_relations(corpus, node))
        own = rules.splits.place("entity", corpus.page(node).title) == split
        attributes = read_attributes(corpus, node, rules.max_answer_tokens)
        return allowed(node) and own and any(rules.splits.place("answer", a.answer.key) == split for a in attributes)

    for split in SPLITS:
        for left in range(5):
            wanted = [ends(node, split, left) for node in corpus.article_nodes()]
            assert graph.can_reach(split, left).tolist() == wanted


def test_a_walk_ends_and_is_answered_in_its_own_split(graph):
    place = graph.rules.splits.place
    for _, split, walk in take_walks(graph):
        if walk:
            assert place("entity", graph.corpus.page(walk.moves[-1].target).title) == split
            assert {place("answer", attribute.answer.key) for attribute in walk.attributes} == {split}


def test_a_relation_is_walked_before_any_sentence(toy, toy_relations):
    kelm = toy.find("Kelm Bridge")
    with_facts = WalkGraph(toy, make_rules(text_hops=True), toy_relations)
    walks = [take_walk(with_facts, node=kelm, split="sft", identity=number, length=2) for number in range(20)]
    assert all(walk.moves[0].fact is not None for walk in walks)


def test_every_step_along_a_link_carries_the_sentence_around_it(demo, demo_corpus, demo_relations):
    rules = Assembly(demo.config, Workspace(demo.root), demo_corpus).graph.rules
    graph = WalkGraph(demo_corpus, replace(rules, relation_preference=0.0), demo_relations)
    moves = [(node, walk.moves[0]) for node, _, walk in take_walks(graph, tries=1) if walk]
    linked = [(node, move) for node, move in moves if move.fact is None]
    assert len(linked) > 100
    for node, move in linked:
        assert demo_corpus.graph.find_link(node, move.target) == move.link.start
        assert move.clause.start <= move.link.start < move.link.end <= move.clause.end


def test_a_walk_is_the_same_alone_and_among_others(graph):
    orders = list_orders(graph)
    together = graph.draw_walks(orders, seed=3)
    for drawn in together[::37]:
        (alone,) = graph.draw_walks([drawn.order], seed=3)
        assert (graph.read_walk(alone), alone.refused) == (graph.read_walk(drawn), drawn.refused)


def test_a_length_is_drawn_by_weight_from_those_in_reach(toy, toy_relations):
    kelm = toy.find("Kelm Bridge")
    graph = WalkGraph(toy, make_rules(weights=(0.7, 0.3, 0.0)), toy_relations)
    assert graph.lengths_from(kelm, "sft") == [(2, 0.7), (3, 0.3)]
    drawn = graph.draw_walks([Order(kelm, "sft", number) for number in range(1000)], seed=1)
    lengths = [len(walk.moves) for walk in map(graph.read_walk, drawn) if walk]
    assert set(lengths) == {2, 3}
    assert 0.65 < lengths.count(2) / len(lengths) < 0.75


def test_a_walk_that_ended_early_says_which_links_were_refused_and_why(toy, toy_relations):
    # Two architects born where the other lives: the only way on leads back.
    graph = WalkGraph(toy, make_rules(), toy_relations)
    drawn = graph.draw_walks(list_orders(graph, tries=20), seed=1)
    ended = [one for one in drawn if graph.read_walk(one) is None]
    assert all("dead-end" in one.refused for one in ended)
    refused = {reason for one in drawn for reason in one.refused}
    assert refused <= {"hub", "list-page", "disambiguation-page", "cycle", "out-of-reach", "unreadable", "dead-end"}


def test_marks_are_kept_and_another_rule_makes_others(toy, toy_relations, tmp_path):
    first = WalkGraph(toy, make_rules(), toy_relations, kept=tmp_path)
    assert first.marks.tolist() == WalkGraph(toy, make_rules(), toy_relations).marks.tolist()
    (path,) = tmp_path.glob("reach-*.npy")
    written = path.stat().st_mtime_ns
    assert WalkGraph(toy, make_rules(weights=(1, 1, 1)), toy_relations, kept=tmp_path).marks.any()
    assert path.stat().st_mtime_ns == written
    assert WalkGraph(toy, make_rules(text_hops=True), toy_relations, kept=tmp_path).marks.any()
    assert len(list(tmp_path.iterdir())) == 2


@pytest.mark.parametrize("spoil", ["cut", "longer", "of another type", "no array", "empty"])
def test_marks_that_are_damaged_or_of_another_length_are_found_anew(toy, toy_relations, tmp_path, spoil):
    wanted = WalkGraph(toy, make_rules(), toy_relations, kept=tmp_path).marks.tolist()
    (path,) = tmp_path.iterdir()
    whole = path.read_bytes()
    if spoil in ("cut", "no array", "empty"):
        path.write_bytes({"cut": whole[:-3], "no array": b"marks", "empty": b""}[spoil])
    else:
        np.save(
            path, np.array([*wanted, 0] if spoil == "longer" else wanted, dtype="u2" if spoil == "longer" else "i8")
        )
    assert WalkGraph(toy, make_rules(), toy_relations, kept=tmp_path).marks.tolist() == wanted
    assert [found.read_bytes() for found in tmp_path.iterdir()] == [whole]


def test_a_sentence_is_a_hop_where_no_relation_leads_on_and_only_when_allowed(toy, toy_relations):
    # Valdonia's page has no relation, but a sentence that links to Ostrel.
    valdonia = toy.find("Valdonia")
    spoken = WalkGraph(toy, make_rules(text_hops=True), toy_relations)
    assert [length for length, _ in spoken.lengths_from(valdonia, "sft")] == [2, 3, 4]
    assert WalkGraph(toy, make_rules(), toy_relations).lengths_from(valdonia, "sft") == []


@given(st.lists(st.integers(0, 1000), min_size=2, max_size=50, unique=True), st.floats(0.0, 0.5))
def test_at_least_one_and_never_more_than_the_share_are_hubs(degrees, share):
    threshold = find_hub_threshold(np.array(degrees, dtype=np.uint32), 10_000, share, small=True)
    hubs = sum(degree > threshold for degree in degrees)
    assert hubs == max(1, round(len(degrees) * share))


def test_paths_of_the_demo_stay_in_the_split_of_their_seed(demo, graph):
    seeds = {seed.record_id: seed for seed in demo.rows("seeds", Seed)}
    for path in demo.rows("paths", Path):
        assert path.split == seeds[path.parent_id].split
        assert graph.rules.splits.place("entity", path.nodes[-1].title) == path.split
        assert graph.rules.splits.place("entity", path.nodes[0].title) == path.split
