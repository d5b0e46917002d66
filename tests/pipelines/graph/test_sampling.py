from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.graph.walks import (
    ASKED,
    BATCH,
    DISAMBIGUATION,
    HUB,
    LIST,
    REASONS,
    Draw,
    Rows,
    Starts,
    Terrain,
    sample_walks,
)

NODES = 12
GOLDEN = [[1, 7, 0, 5, 3], [5, 8, 6, 1, 2], [9, 10, 6, 8, 7]]
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


@given(terrains(), st.integers(0, 2**64 - 1), st.sampled_from([0, 1, 10]), st.sampled_from([0.0, 0.4, 1.0]))
def test_every_step_is_allowed_and_a_walk_ends_early_only_where_nothing_is(terrain, seed, tries, preference):
    lengths = np.arange(NODES * 3) % (STEPS + 1)
    starts = make_starts(list(range(NODES)) * 3, lengths)
    sampled = sample_walks(terrain, starts, Draw(seed, tries, preference))
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
    draw = Draw(seed=5, relation_preference=0.5)
    starts = make_starts([number % NODES for number in range(20)])
    together = as_lists(sample_walks(terrain, starts, draw))
    for part in (np.array(order[:cut], dtype=int), np.array(order[cut:], dtype=int)):
        cut_starts = Starts(starts.nodes[part], starts.lengths[part], starts.identities[part], starts.bits[part])
        for whole, alone in zip(together, as_lists(sample_walks(terrain, cut_starts, draw)), strict=True):
            assert [whole[walk] for walk in part] == alone


def test_more_walks_than_one_batch_holds_are_the_same_as_each_alone():
    edges = {(source, (source * 7 + step) % 50) for source in range(50) for step in range(1, 12)}
    terrain = make_terrain(edges, {3: HUB, 4: LIST}, count=50)
    count = BATCH + 100
    many = sample_walks(terrain, make_starts(np.arange(count) % 50), Draw(1))
    assert many.whole.all()
    for walk in (0, BATCH - 1, BATCH, count - 1):
        alone = sample_walks(terrain, make_starts([walk % 50], first=walk), Draw(1))
        assert alone.nodes[0].tolist() == many.nodes[walk].tolist()


def test_walks_are_these_to_the_bit():
    edges = {(source, (source * 5 + step) % NODES) for source in range(NODES) for step in range(1, 8)}
    terrain = Terrain(make_rows(edges), make_rows({(1, 2), (2, 9), (9, 1)}), np.zeros(NODES, dtype=np.uint8))
    sampled = sample_walks(terrain, make_starts([1, 5, 9]), Draw(seed=7, relation_preference=0.5))
    assert sampled.nodes.tolist() == GOLDEN
    assert sample_walks(terrain, make_starts([1, 5, 9]), Draw(seed=8)).nodes.tolist() != GOLDEN


@pytest.mark.parametrize(("allowed", "refused"), [(4, 0), (3, 5), (3, 400)])
def test_every_allowed_link_is_taken_equally_often(allowed, refused):
    # With 400 refused beside 3, ten draws mostly find none, and the page is looked through.
    targets = np.random.default_rng(1).permutation(np.arange(1, allowed + refused + 1))
    terrain = make_terrain(
        {(0, target) for target in targets.tolist()},
        dict.fromkeys(targets[allowed:].tolist(), HUB),
        count=allowed + refused + 1,
    )
    sampled = sample_walks(terrain, make_starts([0] * 6000, 1), Draw(3))
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
    sampled = sample_walks(make_terrain({(0, 1)}, {1: flag}), make_starts([0], 1), Draw(1))
    # Looked at twice: as the only draw, and when the page is looked through.
    assert count_refused(sampled) == {reason: 2, "dead-end": 1}
    assert not sampled.whole[0]


def test_a_node_is_stepped_on_only_with_as_many_steps_left_as_lead_to_an_answer():
    # Bits from 5 on are this walk's: node 1 is one step from an answer, node 2 is one, node 3 nothing.
    reach = np.zeros(NODES, dtype=np.uint16)
    reach[1], reach[2], reach[3] = 1 << 6, 1 << 5, 1 << 1 | 1
    terrain = replace(make_terrain({(0, 1), (0, 2), (0, 3), (1, 2), (1, 3)}), reach=reach)
    sampled = sample_walks(terrain, make_starts([0] * 50, 2, bits=5), Draw(1))
    assert {tuple(path) for path in sampled.nodes.tolist()} == {(0, 1, 2)}
    assert set(count_refused(sampled)) == {"out-of-reach"}


def test_draws_are_bounded_by_the_tries_and_by_the_links():
    links = {(0, target) for target in range(1, 40)}
    terrain = make_terrain(links, dict.fromkeys(range(1, 40), HUB), count=40)
    for tries in (0, 1, 10):
        sampled = sample_walks(terrain, make_starts([0], 1), Draw(1, tries))
        assert count_refused(sampled) == {"hub": tries + 39, "dead-end": 1}


@pytest.mark.parametrize(("preference", "share"), [(0.0, 0.0), (0.3, 0.3), (1.0, 1.0)])
def test_relations_are_preferred_as_often_as_asked_for(preference, share):
    terrain = make_terrain(None, links=make_rows({(0, 1), (0, 2)}), relations=make_rows({(0, 3)}))
    sampled = sample_walks(terrain, make_starts([0] * 4000, 1), Draw(1, relation_preference=preference))
    assert abs(sampled.related.mean() - share) < 0.03
    assert ((sampled.nodes[:, 1] == 3) == sampled.related[:, 0]).all()


def test_links_that_do_not_read_are_refused_and_relations_are_not_asked_about():
    asked = []

    def read_even(sources, edges):
        asked.extend(zip(sources.tolist(), edges.tolist(), strict=True))
        return edges % 2 == 0

    links, relations = make_rows({(0, target) for target in range(1, 9)} | {(9, 10)}), make_rows({(9, 11)})
    terrain = make_terrain(None, links=links, relations=relations)
    sampled = sample_walks(terrain, make_starts([0] * 200 + [9], 1), Draw(1), read_even)
    assert sampled.whole.all()
    assert set(sampled.edges[:-1, 0].tolist()) == {0, 2, 4, 6}
    assert set(asked) == {(0, edge) for edge in range(8)}
    assert count_refused(sampled) == {"unreadable": sum(edge % 2 for _, edge in asked)}


def make_two_bridges():
    """Return two steps from node 0: node 1 leads on by 1 of its 10 links, node 2 by 10 of 10."""
    narrow, wide = {(1, target) for target in (3, *range(20, 29))}, {(2, target) for target in range(3, 13)}
    reach = np.zeros(30, dtype=np.uint16)
    reach[0], reach[1], reach[2], reach[3:13] = 4, 2, 2, 1
    return replace(make_terrain({(0, 1), (0, 2)} | narrow | wide, count=30), reach=reach)


def test_with_look_ahead_a_narrow_bridge_is_walked_as_often_as_a_wide_one():
    sampled = sample_walks(make_two_bridges(), make_starts([0] * 4000, 2), Draw(1))
    assert sampled.whole.all()
    assert abs((sampled.nodes[:, 1] == 1).mean() - 1 / 2) < 0.04


def test_a_page_of_unreadable_links_is_asked_about_a_bounded_number_of_times():
    asked = []

    def refuse(sources, edges):
        asked.extend(edges.tolist())
        return np.zeros(len(edges), dtype=bool)

    links = {(0, target) for target in range(1, 300)}
    sampled = sample_walks(make_terrain(links, count=300), make_starts([0], 1), Draw(1), refuse)
    assert count_refused(sampled) == {"unreadable": 10 + ASKED, "dead-end": 1}
    assert len(asked) == 10 + ASKED < 299
