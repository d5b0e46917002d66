from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.config.settings import PathsConfig
from pipelines.graph.facts import read_askable
from pipelines.graph.walks import (
    CLOSED,
    DISAMBIGUATION,
    GENERIC,
    HUB,
    LIST,
    MOST_STEPS,
    REASONS,
    SPLITS,
    Ratings,
    Rows,
    Starts,
    Terrain,
    WalkGraph,
    WalkRules,
    extend_reach,
    find_bit,
    place_answers,
    read_flags,
    sample_walks,
)
from pipelines.run.assembly import Assembly
from pipelines.run.workspace import Workspace
from pipelines.splits import SplitRule
from schemas.datasets import Difficulty, ReleaseEntry

ALL = SplitRule({"sft": 1.0}, seed=0)


def draw(seed=1):
    return (seed,)


def make_rules(hub_in_degree=100, splits=ALL, **settings):
    return WalkRules(PathsConfig(**settings), hub_in_degree, 6, splits)


@pytest.fixture(scope="module")
def graph(demo, demo_corpus, demo_relations) -> WalkGraph:
    """The rules of the demo, without sentences."""
    rules = Assembly(demo.config, Workspace(demo.root), demo_corpus).graph.rules
    return WalkGraph(demo_corpus, make_rules(hub_in_degree=rules.hub_in_degree, splits=rules.splits), demo_relations)


def test_marks_are_kept_and_another_rule_makes_others(toy, toy_relations, tmp_path):
    first = WalkGraph(toy, make_rules(), toy_relations, kept=tmp_path)
    assert first.marks.tolist() == WalkGraph(toy, make_rules(), toy_relations).marks.tolist()
    (path,) = tmp_path.glob("reach-*.npy")
    written = path.stat().st_mtime_ns
    assert WalkGraph(toy, make_rules(weights=(1, 1, 1)), toy_relations, kept=tmp_path).marks.any()
    assert path.stat().st_mtime_ns == written
    assert WalkGraph(toy, make_rules(text_hops=True), toy_relations, kept=tmp_path).marks.any()
    assert len(list(tmp_path.iterdir())) == 2


NODES = 12
GOLDEN = [[1, 2, 9, 4, 3], [5, 8, 6, 1, 2], [9, 1, 2, 3, 8]]
EDGES = st.sets(st.tuples(st.integers(0, NODES - 1), st.integers(0, NODES - 1)), max_size=70)
STEPS = 4


def make_rows(edges, count=NODES):
    edges = sorted(edges)
    degrees = np.bincount([source for source, _ in edges], minlength=count) if edges else np.zeros(count, dtype=int)
    offsets = np.concatenate([[0], np.cumsum(degrees)]).astype(np.int64)
    return Rows(offsets, np.array([target for _, target in edges], dtype=np.uint32))


def make_terrain(edges, flags=None, count=NODES, **more):
    given = np.zeros(count, dtype=np.uint8)
    for node, flag in (flags or {}).items():
        given[node] = flag
    return Terrain(make_rows(edges, count), None, given) if not more else Terrain(**more, flags=given)


def make_starts(nodes, lengths=STEPS, first=0, bits=0):
    count = len(nodes)
    return Starts(
        np.asarray(nodes),
        np.broadcast_to(np.asarray(lengths), count),
        np.arange(first, first + count, dtype=np.uint64),
        np.full(count, bits),
    )


def count_refused(sampled):
    counts = sampled.refused.sum(axis=0).tolist()
    return {reason: count for reason, count in zip(REASONS, counts, strict=True) if count}


def as_lists(sampled):
    names = ("nodes", "edges", "related", "whole", "refused")
    return [getattr(sampled, name).tolist() for name in names]


@st.composite
def terrains(draw):
    links = make_rows(draw(EDGES)) if draw(st.booleans()) else None
    relations = make_rows(draw(EDGES)) if links is None or draw(st.booleans()) else None
    flags = np.array(draw(st.lists(st.sampled_from([0, 0, 0, 0, HUB, LIST]), min_size=NODES, max_size=NODES)))
    marks = draw(st.lists(st.sampled_from([0, 1, 3, 7, 15, 15, 15]), min_size=NODES, max_size=NODES))
    reach = np.array(marks, dtype=np.uint16) if draw(st.booleans()) else None
    return Terrain(links, relations, flags.astype(np.uint8), reach)


def list_moves(terrain, visited, left):
    """Return what the rules allow as a next step, by a loop over everything."""
    found = set()
    for related, rows in ((False, terrain.links), (True, terrain.relations)):
        if rows is None:
            continue
        for edge in range(rows.offsets[visited[-1]], rows.offsets[visited[-1] + 1]):
            target = int(rows.targets[edge])
            far = terrain.reach is not None and not int(terrain.reach[target]) >> left & 1
            if not terrain.flags[target] and target not in visited and not far:
                found.add((target, edge, related))
    return found


@given(terrains(), st.integers(0, 2**64 - 1))
def test_every_step_is_allowed_and_a_walk_ends_early_only_where_nothing_is(terrain, seed):
    lengths = np.arange(NODES * 3) % (STEPS + 1)
    starts = make_starts(list(range(NODES)) * 3, lengths)
    sampled = sample_walks(terrain, starts, *draw(seed))
    for walk, length in enumerate(lengths.tolist()):
        visited = [walk % NODES]
        for step in range(sampled.edges.shape[1]):
            target, edge = int(sampled.nodes[walk, step + 1]), int(sampled.edges[walk, step])
            if target < 0:
                assert edge == -1
                assert (sampled.nodes[walk, step + 1 :] == -1).all()
                break
            assert (target, edge, bool(sampled.related[walk, step])) in list_moves(terrain, visited, length - step - 1)
            visited.append(target)
        assert sampled.whole[walk] == (len(visited) == length + 1)
        dead_end = sampled.refused[walk, REASONS.index("dead-end")]
        assert dead_end == (not sampled.whole[walk])
        if dead_end:
            assert not list_moves(terrain, visited, length - len(visited))


@given(terrains(), st.permutations(range(20)), st.integers(0, 20))
def test_a_walk_does_not_depend_on_what_is_drawn_with_it(terrain, order, cut):
    rules = draw(5)
    starts = make_starts([number % NODES for number in range(20)])
    together = as_lists(sample_walks(terrain, starts, *rules))
    for part in (np.array(order[:cut], dtype=int), np.array(order[cut:], dtype=int)):
        cut_starts = Starts(starts.nodes[part], starts.lengths[part], starts.identities[part], starts.bits[part])
        for whole, alone in zip(together, as_lists(sample_walks(terrain, cut_starts, *rules)), strict=True):
            assert [whole[walk] for walk in part] == alone


def test_walks_are_these_to_the_bit():
    edges = {(source, (source * 5 + step) % NODES) for source in range(NODES) for step in range(1, 8)}
    terrain = Terrain(make_rows(edges), make_rows({(1, 2), (2, 9), (9, 1)}), np.zeros(NODES, dtype=np.uint8))
    sampled = sample_walks(terrain, make_starts([1, 5, 9]), *draw(7))
    assert sampled.nodes.tolist() == GOLDEN
    assert sample_walks(terrain, make_starts([1, 5, 9]), *draw(8)).nodes.tolist() != GOLDEN


@pytest.mark.parametrize(("allowed", "refused"), [(4, 0), (3, 5), (3, 400)])
def test_every_allowed_link_is_taken_equally_often(allowed, refused):
    # With 400 refused beside 3, ten draws mostly find none, and the page is looked through.
    targets = np.random.default_rng(1).permutation(np.arange(1, allowed + refused + 1))
    terrain = make_terrain(
        {(0, target) for target in targets.tolist()},
        dict.fromkeys(targets[allowed:].tolist(), HUB),
        count=allowed + refused + 1,
    )
    sampled = sample_walks(terrain, make_starts([0] * 6000, 1), *draw(3))
    counts = np.bincount(sampled.nodes[:, 1], minlength=allowed + refused + 1)[targets[:allowed]]
    assert counts.sum() == 6000
    assert abs(counts - 6000 / allowed).max() < 5 * np.sqrt(6000 / allowed)


@pytest.mark.parametrize(
    ("flag", "reason"),
    [
        (HUB, "hub"), (LIST, "list-page"), (DISAMBIGUATION, "disambiguation-page"),
        (LIST | DISAMBIGUATION, "list-page"), (HUB | LIST | DISAMBIGUATION, "hub"),
    ],
)  # fmt: skip
def test_a_refused_link_is_counted_with_its_reason(flag, reason):
    sampled = sample_walks(make_terrain({(0, 1)}, {1: flag}), make_starts([0], 1), *draw(1))
    # Looked at twice: as the only draw, and when the page is looked through.
    assert count_refused(sampled) == {reason: 2, "dead-end": 1}
    assert not sampled.whole[0]


def test_links_that_do_not_read_are_refused_and_relations_are_not_asked_about():
    asked = []

    def read_even(sources, edges):
        asked.extend(zip(sources.tolist(), edges.tolist(), strict=True))
        return edges % 2 == 0

    links, relations = make_rows({(0, target) for target in range(1, 9)} | {(9, 10)}), make_rows({(9, 11)})
    terrain = make_terrain(None, links=links, relations=relations)
    sampled = sample_walks(terrain, make_starts([0] * 200 + [9], 1), *draw(1), read_even)
    assert sampled.whole.all()
    assert set(sampled.edges[:-1, 0].tolist()) == {0, 2, 4, 6}
    assert set(asked) == {(0, edge) for edge in range(8)}
    assert count_refused(sampled) == {"unreadable": sum(edge % 2 for _, edge in asked)}


def test_with_look_ahead_a_narrow_bridge_is_walked_as_often_as_a_wide_one():
    # Node 1 leads on by 1 of its 10 links, node 2 by 10 of 10.
    narrow, wide = {(1, target) for target in (3, *range(20, 29))}, {(2, target) for target in range(3, 13)}
    reach = np.zeros(30, dtype=np.uint16)
    reach[0], reach[1], reach[2], reach[3:13] = 4, 2, 2, 1
    terrain = replace(make_terrain({(0, 1), (0, 2)} | narrow | wide, count=30), reach=reach)
    sampled = sample_walks(terrain, make_starts([0] * 4000, 2), *draw(1))
    assert sampled.whole.all()
    assert abs((sampled.nodes[:, 1] == 1).mean() - 1 / 2) < 0.04


BITS = st.lists(st.integers(0, 7), min_size=NODES, max_size=NODES)
FLAGS = st.lists(st.sampled_from([0, 0, HUB]), min_size=NODES, max_size=NODES)


@given(st.lists(EDGES, min_size=1, max_size=2), BITS, FLAGS, st.integers(0, MOST_STEPS))
def test_marks_say_what_a_search_over_all_walks_finds(edges, ends, flags, steps):
    union = set().union(*edges)

    @cache
    def ends_in(node, number, left):
        if not left:
            return bool(ends[node] >> number & 1)
        ahead = [target for source, target in union if source == node and not flags[target]]
        return any(ends_in(target, number, left - 1) for target in ahead)

    rows = [make_rows(of_kind) for of_kind in edges]
    marks = extend_reach(np.array(ends, dtype=np.uint8), rows, np.array(flags, dtype=np.uint8), steps)
    assert marks.dtype == np.uint16
    for number, split in enumerate(SPLITS):
        for left in range(steps + 1):
            wanted = [ends_in(node, number, left) for node in range(NODES)]
            assert ((marks >> find_bit(split, steps) + left) & 1 == 1).tolist() == wanted


@pytest.mark.parametrize("max_tokens", [0, 1, 6])
def test_answers_are_placed_as_the_attributes_of_each_page_say(demo_corpus, max_tokens):
    splits, flags = SplitRule({"sft": 0.5, "rl": 0.3, "eval": 0.2}, seed=3), read_flags(demo_corpus, 60)
    wanted = []
    for node in demo_corpus.article_nodes():
        own = splits.place("entity", demo_corpus.page(node).title)
        asked = read_askable(demo_corpus, node, max_tokens)
        keys = [a.answer.key for a in asked if a.fact.target < 0 or not flags[a.fact.target]]
        ends = any(splits.place("answer", key) == own for key in keys)
        wanted.append((ends and not flags[node]) << SPLITS.index(own))
    assert place_answers(demo_corpus, splits, max_tokens, flags).tolist() == wanted
    assert set(wanted) == {0, 1, 2, 4}


def test_no_anchor_answer_node_answer_or_picture_is_in_two_splits(demo):
    entries = {entry.parent_id for entry in demo.rows("releases", ReleaseEntry)}
    rows = [row for row in demo.rows("difficulty", Difficulty) if row.record_id in entries]
    assert {row.split for row in rows} == {"sft", "rl", "eval"}
    for read in (
        lambda row: row.proof.nodes[0].page_id,
        lambda row: row.proof.nodes[-1].page_id,
        lambda row: row.answer.key,
        lambda row: row.picture.sha256,
    ):
        places = {(read(row), row.split) for row in rows}
        assert len(places) == len({place for place, _ in places})
    ends = {(node.page_id, row.split) for row in rows for node in (row.proof.nodes[0], row.proof.nodes[-1])}
    assert len(ends) == len({page for page, _ in ends}), "an anchor of one split is an answer node of another"


@pytest.mark.parametrize("refused", [0, 400])
def test_with_ratings_an_allowed_link_is_taken_as_often_as_its_rating_says(refused):
    # With 400 refused beside 3, ten draws mostly find none, and the page is looked through.
    count = 4 + refused
    terrain = make_terrain(
        {(0, target) for target in range(1, count)}, dict.fromkeys(range(4, count), HUB), count=count
    )
    assert terrain.links is not None
    nodes = np.ones(count, dtype=np.float32)
    nodes[1:4] = 0.16, 0.08, 0.04
    ratings = Ratings(nodes, np.zeros(count, dtype=np.uint32), np.empty(0, dtype=np.float32))
    sampled = sample_walks(replace(terrain, ratings=ratings), make_starts([0] * 7000, 1), *draw(3))
    counts = np.bincount(sampled.nodes[:, 1], minlength=count)[1:4]
    assert counts.sum() == 7000
    assert abs(counts - [4000, 2000, 1000]).max() < 5 * np.sqrt(4000)


def test_no_link_leads_to_a_generic_thing_and_a_relation_leads_to_one_once_a_walk():
    links = replace(make_rows({(0, 5), (1, 5)}), closed=CLOSED | GENERIC)
    relations = make_rows({(2, 5), (5, 6), (5, 3)})
    flags = np.zeros(NODES, dtype=np.uint8)
    flags[[5, 6]] = GENERIC
    sampled = sample_walks(Terrain(links, relations, flags), make_starts([0, 1, 2, 2, 2], [1, 1, 2, 2, 2]), *draw(1))
    assert sampled.whole.tolist() == [False, False, True, True, True]
    assert sampled.nodes[2:, 1:].tolist() == [[5, 3]] * 3
    assert count_refused(sampled)["generic"] >= 2
