from dataclasses import replace
from functools import cache, lru_cache

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.graph.facts import read_attributes, read_relations
from pipelines.graph.walks import REACH_VERSION, SPLITS, Order, WalkGraph, WalkRules, digest_tables, find_hub_threshold
from pipelines.ids import SplitRule, digest_value
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


def test_no_walk_visits_an_entity_twice(graph):
    walks = [(node, walk) for node, _, walk in take_walks(graph) if walk]
    assert len(walks) > 300
    for node, walk in walks:
        visited = [node, *(move.target for move in walk.moves)]
        assert len(set(visited)) == len(visited)


def test_hubs_lists_and_disambiguation_pages_are_never_stepped_on(graph):
    for _, _, walk in take_walks(graph):
        for move in walk.moves if walk else ():
            page = graph.corpus.page(move.target)
            assert not page.is_list
            assert not page.is_disambiguation
            assert page.in_degree <= graph.rules.hub_in_degree


def test_a_walk_ends_and_is_answered_in_its_own_split(graph):
    place = graph.rules.splits.place
    for _, split, walk in take_walks(graph):
        if walk:
            assert place("entity", graph.corpus.page(walk.moves[-1].target).title) == split
            assert {place("answer", attribute.answer.key) for attribute in walk.attributes} == {split}


def test_each_move_is_a_relation_of_the_entity_before(graph):
    for node, _, walk in take_walks(graph, tries=1):
        for move in walk.moves if walk else ():
            assert move.fact in read_relations(graph.corpus, node)
            node = move.target


def test_walks_are_the_same_for_the_same_seed_and_differ_for_another(graph):
    assert take_walks(graph, seed=5) == take_walks(graph, seed=5)
    assert take_walks(graph, seed=5) != take_walks(graph, seed=6)


def test_a_walk_has_the_length_that_was_asked_for(toy, toy_relations):
    graph = WalkGraph(toy, make_rules(), toy_relations)
    walk = take_walk(graph, node=toy.find("Kelm Bridge"), split="sft", identity=1, length=2)
    assert [toy.page(move.target).title for move in walk.moves] == ["Mira Tolland", "Ostrel"]
    assert [attribute.fact.key for attribute in walk.attributes] == ["established_date"]


def test_a_hub_ends_no_walk(toy, toy_relations):
    kelm = toy.find("Kelm Bridge")
    assert [length for length, _ in WalkGraph(toy, make_rules(), toy_relations).lengths_from(kelm, "sft")] == [2, 3, 4]
    few = WalkGraph(toy, make_rules(hub_in_degree=2), toy_relations)
    assert few.lengths_from(kelm, "sft") == []


def test_a_relation_is_walked_before_any_sentence(toy, toy_relations):
    kelm = toy.find("Kelm Bridge")
    with_facts = WalkGraph(toy, make_rules(text_hops=True), toy_relations)
    walks = [take_walk(with_facts, node=kelm, split="sft", identity=number, length=2) for number in range(20)]
    assert all(walk.moves[0].fact is not None for walk in walks)


def test_a_preference_of_nothing_walks_a_sentence_before_any_relation(toy, toy_relations):
    kelm = toy.find("Kelm Bridge")
    for preference, wanted in ((0.0, {False}), (0.5, {False, True}), (1.0, {True})):
        graph = WalkGraph(toy, make_rules(text_hops=True, relation_preference=preference), toy_relations)
        walks = [take_walk(graph, node=kelm, split="sft", identity=number, length=2) for number in range(40)]
        assert {walk.moves[0].fact is not None for walk in walks} == wanted


def test_a_relation_is_walked_where_no_sentence_leads_on(toy, toy_relations):
    graph = WalkGraph(toy, make_rules(text_hops=True, relation_preference=0.0), toy_relations)
    walk = take_walk(graph, node=toy.find("Mira Tolland"), split="sft", identity=1, length=2)
    assert walk.moves[0].fact.key == "birth_place"


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


def test_a_walk_from_where_no_answer_can_be_reached_is_not_drawn(toy, toy_relations):
    graph = WalkGraph(toy, make_rules(), toy_relations)
    lumby = toy.find("Lumby")
    with pytest.raises(ValueError, match=f"no answer in reach of node {lumby}"):
        graph.draw_walks([Order(lumby, "sft", 1)], seed=1)
    assert graph.draw_walks([], seed=1) == []


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


def test_without_look_ahead_walks_end_at_the_same_answers_and_fail_elsewhere(graph):
    blind = WalkGraph(graph.corpus, replace(graph.rules, look_ahead=False), graph.relations)
    drawn = blind.draw_walks(list_orders(blind), seed=3)
    whole = [(one, walk) for one in drawn if (walk := blind.read_walk(one)) is not None]
    assert 300 < len(whole) < 0.9 * len(drawn)
    assert all(graph.can_reach(one.order.split, 0)[walk.moves[-1].target] for one, walk in whole)
    assert all(one.refused.keys() & {"out-of-reach", "dead-end"} for one in drawn if blind.read_walk(one) is None)
    assert any(one.refused == {"out-of-reach": 1} for one in drawn)


def test_kept_marks_are_named_by_version_tables_corpus_and_rules(toy, toy_relations, tmp_path):
    assert WalkGraph(toy, make_rules(), toy_relations, kept=tmp_path).marks.any()
    decides = [4, 100, False, 6, repr(ALL)]
    name = digest_value([REACH_VERSION, digest_tables(), toy.digest, decides])[:16]
    assert [path.name for path in tmp_path.iterdir()] == [f"reach-{name}.npy"]


def test_the_rule_of_looking_ahead_does_not_change_the_marks(toy, toy_relations, tmp_path):
    for look_ahead in (True, False):
        assert WalkGraph(toy, make_rules(look_ahead=look_ahead), toy_relations, kept=tmp_path).marks.any()
    assert len(list(tmp_path.iterdir())) == 1


def test_a_sentence_is_a_hop_where_no_relation_leads_on_and_only_when_allowed(toy, toy_relations):
    # Valdonia's page has no relation, but a sentence that links to Ostrel.
    valdonia = toy.find("Valdonia")
    spoken = WalkGraph(toy, make_rules(text_hops=True), toy_relations)
    assert [length for length, _ in spoken.lengths_from(valdonia, "sft")] == [2, 3, 4]
    assert WalkGraph(toy, make_rules(), toy_relations).lengths_from(valdonia, "sft") == []


def test_weights_of_lengths_out_of_reach_are_left_out(toy, toy_relations):
    graph = WalkGraph(toy, make_rules(), toy_relations)
    assert graph.lengths_from(toy.find("Lumby"), "sft") == []
    assert graph.lengths_from(toy.find("Kelm Bridge"), "rl") == []


@lru_cache(maxsize=1)
def list_in_degrees():
    return np.array([5, 1, 9, 3, 7, 0, 2, 8, 6, 4], dtype=np.uint32)


def test_on_a_small_corpus_the_share_decides_who_is_a_hub():
    degrees = list_in_degrees()
    threshold = find_hub_threshold(degrees, 10_000, 0.2, small=True)
    assert sorted(degrees[degrees > threshold].tolist()) == [8, 9]


def test_on_a_whole_wikipedia_the_number_decides():
    assert find_hub_threshold(list_in_degrees(), 10_000, 0.2, small=False) == 10_000
    assert find_hub_threshold(np.array([], dtype=np.uint32), 10_000, 0.2, small=True) == 10_000


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
