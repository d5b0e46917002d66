from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.corpus.linkgraph import ArrayFile, EdgeBlock, LinkGraph, build_graph
from pipelines.errors import ConfigError

NODES = 9
LINKS = st.lists(st.tuples(st.integers(0, NODES - 1), st.integers(0, NODES - 1), st.integers(0, 99)), max_size=60)
NAMES = ("offsets", "targets", "positions", "in_offsets", "in_sources", "in_degree")


def make_block(links):
    return EdgeBlock(*np.array(links, dtype=np.uint32).reshape(-1, 3).T)


def cut_blocks(links, cuts):
    """Return blocks in node order, cut before each of the nodes named."""
    bounds = [0, *sorted(cuts), NODES]
    return [make_block([link for link in links if first <= link[0] < after]) for first, after in pairwise(bounds)]


def read_files(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir()}


@given(LINKS)
def test_a_graph_is_what_a_dictionary_of_first_positions_says(tmp_path_factory, links):
    graph = build_graph(tmp_path_factory.mktemp("graph"), NODES, cut_blocks(links, range(1, NODES)))
    first = {}
    for source, target, position in links:
        if source != target:
            first[source, target] = min(position, first.get((source, target), 99))
    for node in range(NODES):
        wanted = sorted(target for source, target in first if source == node)
        assert graph.targets_of(node).tolist() == wanted
        assert graph.positions_of(node).tolist() == [first[node, target] for target in wanted]
        assert graph.sources_of(node).tolist() == sorted(source for source, target in first if target == node)
        assert graph.in_degree[node] == len(graph.sources_of(node))
    types = ["int64", "uint32", "uint32", "int64", "uint32", "uint32"]
    assert [getattr(graph, name).dtype for name in NAMES] == types


@given(LINKS, st.sets(st.integers(1, NODES - 1)), st.integers(1, 4000), st.randoms())
def test_the_bytes_depend_neither_on_blocks_nor_on_memory_nor_on_the_order_inside(
    tmp_path_factory, links, cuts, memory, random
):
    whole, cut = (tmp_path_factory.mktemp("graph") for _ in range(2))
    build_graph(whole, NODES, [make_block(links)])
    shuffled = list(links)
    random.shuffle(shuffled)
    build_graph(cut, NODES, cut_blocks(shuffled, cuts), memory=64 + memory % 200)
    assert read_files(cut) == read_files(whole)


def test_files_are_those_of_numpy_and_scratch_is_left_empty(tmp_path):
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    rng = np.random.default_rng(1)
    blocks = [
        EdgeBlock(*rng.integers((100 * number, 0, 0), (100 * number + 100, 1000, 9999), (500, 3), dtype=np.uint32).T)
        for number in range(10)
    ]
    graph = build_graph(tmp_path / "graph", 1000, blocks, scratch=scratch)
    assert graph.link_count > 4900
    assert list(scratch.iterdir()) == []
    for name in NAMES:
        np.save(tmp_path / "again.npy", np.asarray(getattr(graph, name)))
        assert (tmp_path / "again.npy").read_bytes() == (tmp_path / "graph" / f"{name}.npy").read_bytes()


def test_one_article_that_all_others_link_to_is_no_obstacle(tmp_path):
    sources = np.arange(1, 5000, dtype=np.uint32)
    block = EdgeBlock(sources, np.zeros_like(sources), sources)
    graph = build_graph(tmp_path, 5000, [block])
    assert graph.sources_of(0).tolist() == sources.tolist()


@pytest.mark.parametrize(
    ("blocks", "complaint"),
    [
        ([[(3, 1, 0)], [(2, 1, 0)]], "node 2 come after those of node 3"),
        ([[(3, 1, 0)], [(3, 2, 0)]], "node 3 come after those of node 3"),
        ([[(0, NODES, 0)]], f"names node {NODES}: expected nodes below {NODES}"),
        ([[(NODES, 0, 0)]], f"names node {NODES}: expected nodes below {NODES}"),
    ],
)
def test_a_block_that_breaks_the_contract_is_refused_and_leaves_nothing_that_opens(tmp_path, blocks, complaint):
    with pytest.raises(ValueError, match=complaint):
        build_graph(tmp_path, NODES, map(make_block, blocks))
    with pytest.raises(ConfigError, match=r"no offsets\.npy"):
        LinkGraph.open(tmp_path)


def test_a_block_of_uneven_arrays_is_refused(tmp_path):
    one, two = np.zeros(1, dtype=np.uint32), np.zeros(2, dtype=np.uint32)
    with pytest.raises(ValueError, match=r"\(1, 2, 2\) sources, targets and positions"):
        build_graph(tmp_path, 3, [EdgeBlock(one, two, two)])


def test_empty_blocks_and_no_articles_make_an_empty_graph(tmp_path):
    empty = np.empty(0, dtype=np.uint32)
    graph = build_graph(tmp_path, 0, [EdgeBlock(empty, empty, empty)])
    assert (graph.node_count, graph.link_count) == (0, 0)


def test_a_growing_file_that_is_given_up_says_that_it_is_empty(tmp_path):
    def write_twice(file):
        file.append(np.arange(10))
        file.append(np.array(["no number"]))

    with pytest.raises(ValueError, match="no number"), ArrayFile(tmp_path / "a.npy", np.uint32) as file:
        write_twice(file)
    assert len(np.load(tmp_path / "a.npy")) == 0
