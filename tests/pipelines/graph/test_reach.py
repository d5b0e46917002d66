import re
from functools import cache
from types import ModuleType

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.graph.facts import read_attributes
from pipelines.graph.walks import (
    DISAMBIGUATION,
    HUB,
    JOINED_EDGES,
    LIST,
    MOST_STEPS,
    SPLITS,
    Rows,
    digest_tables,
    extend_reach,
    place_answers,
    read_flags,
    show_mark,
)
from pipelines.ids import SplitRule
from tests.pipelines.graph.test_sampling import EDGES, NODES, make_rows

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
            assert show_mark(marks, split, left, steps).tolist() == wanted


def test_more_edges_than_are_joined_at_once_make_the_same_marks():
    rng, count = np.random.default_rng(1), 100_000
    sources, targets = np.sort(rng.integers(0, count - 1, JOINED_EDGES + 9)), rng.integers(0, count, JOINED_EDGES + 9)
    rows = Rows(np.searchsorted(sources, np.arange(count + 1)), targets.astype(np.uint32))
    ends, flags = (rng.random((2, count)) < [[0.02], [0.5]]).astype(np.uint8)
    wanted = np.zeros(count, dtype=bool)
    wanted[sources[(ends[targets] > 0) & (flags[targets] == 0)]] = True
    assert 0.2 < wanted.mean() < 0.8
    assert show_mark(extend_reach(ends, [rows], flags, 1), "sft", 1, 1).tolist() == wanted.tolist()


def test_flags_say_list_disambiguation_page_and_hub(toy):
    flags = read_flags(toy, hub_in_degree=2)
    named = {toy.page(node).title: int(flags[node]) for node in toy.article_nodes() if flags[node]}
    assert named.pop("List of bridges") == LIST
    assert named.pop("Kelm (disambiguation)") == DISAMBIGUATION
    assert set(named.values()) == {HUB}
    assert set(named) == {toy.page(node).title for node in toy.article_nodes() if toy.page(node).in_degree > 2}


@pytest.mark.parametrize("max_tokens", [0, 1, 6])
def test_answers_are_placed_as_the_attributes_of_each_page_say(demo_corpus, max_tokens):
    splits, flags = SplitRule(0.5, 0.3, 0.2, seed=3), read_flags(demo_corpus, 60)
    wanted = []
    for node in demo_corpus.article_nodes():
        own = splits.place("entity", demo_corpus.page(node).title)
        attributes = read_attributes(demo_corpus, node, max_tokens)
        ends = any(splits.place("answer", attribute.answer.key) == own for attribute in attributes)
        wanted.append((ends and not flags[node]) << SPLITS.index(own))
    assert place_answers(demo_corpus, splits, max_tokens, flags).tolist() == wanted
    assert set(wanted) == {0, 1, 2, 4}


def make_module(**constants):
    module = ModuleType("tables")
    vars(module).update(constants)
    return module


def test_a_changed_constant_changes_the_digest_of_the_tables_and_a_changed_order_does_not():
    tables = {"WORDS": frozenset(["map", "logo"]), "_PATTERN": re.compile("a+"), "_UNITS": {"m": ("metre", 1)}}
    digest = digest_tables([make_module(**tables)])
    changes = [
        {"WORDS": frozenset(["map"])},
        {"_PATTERN": re.compile("a+", re.IGNORECASE)},
        {"_PATTERN": re.compile("b+")},
        {"_UNITS": {"m": ("metre", 2)}},
        {"_MORE": 3},
    ]
    assert len({digest, *(digest_tables([make_module(**(tables | change))]) for change in changes)}) == 6
    reordered = {"_UNITS": {"m": ("metre", 1)}, "WORDS": frozenset(["logo", "map"]), "read": min}
    assert digest_tables([make_module(**(tables | reordered))]) == digest
