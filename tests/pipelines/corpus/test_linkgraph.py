from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.corpus.linkgraph import LinkGraph, build_graph
from pipelines.errors import ConfigError

NODES = 9
LINKS = st.lists(st.tuples(st.integers(0, NODES - 1), st.integers(0, NODES - 1), st.integers(0, 99)), max_size=60)
TYPES = {"offsets": "int64", "targets": "uint32", "positions": "uint32",
         "in_offsets": "int64", "in_sources": "uint32", "in_degree": "uint32"}  # fmt: skip


def make_block(links):
    return tuple(np.array(links, dtype=np.uint32).reshape(-1, 3).T)


def write(folder, count, links):
    return build_graph(folder, count, [make_block(links)])


def read_files(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir()}


@given(LINKS, st.sets(st.integers(1, NODES - 1)), st.randoms())
def test_a_graph_is_what_a_dictionary_of_first_positions_says_however_it_is_cut(tmp_path_factory, links, cuts, random):
    whole, cut = (tmp_path_factory.mktemp("graph") for _ in range(2))
    graph = write(whole, NODES, links)
    first = {}
    for source, target, position in links:
        if source != target:
            first[source, target] = min(position, first.get((source, target), 99))
    assert graph.link_count == len(first)
    for node in range(NODES):
        wanted = sorted(target for source, target in first if source == node)
        assert graph.targets_of(node).tolist() == wanted
        assert graph.positions_of(node).tolist() == [first[node, target] for target in wanted]
        assert graph.sources_of(node).tolist() == sorted(source for source, target in first if target == node)
        assert graph.in_degree[node] == len(graph.sources_of(node))
    shuffled = list(links)
    random.shuffle(shuffled)
    bounds = pairwise([0, *sorted(cuts), NODES])
    build_graph(
        cut, NODES, [make_block([link for link in shuffled if start <= link[0] < end]) for start, end in bounds]
    )
    assert read_files(cut) == read_files(whole)


def test_files_are_those_of_numpy_and_scratch_is_left_empty(tmp_path):
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    rng = np.random.default_rng(1)
    blocks = [
        tuple(rng.integers((100 * number, 0, 0), (100 * number + 100, 1000, 9999), (500, 3), dtype=np.uint32).T)
        for number in range(10)
    ]
    graph = build_graph(tmp_path / "graph", 1000, blocks, scratch)
    assert graph.link_count > 4900
    assert list(scratch.iterdir()) == []
    for name, kind in TYPES.items():
        assert getattr(graph, name).dtype == kind
        np.save(tmp_path / "again.npy", np.asarray(getattr(graph, name)))
        assert (tmp_path / "again.npy").read_bytes() == (tmp_path / "graph" / f"{name}.npy").read_bytes()


@pytest.mark.parametrize("cut", [0, 40, 1000])
def test_a_cut_array_is_refused_by_name(tmp_path, cut):
    write(tmp_path, 300, [(node, 299 - node, node) for node in range(300)])
    path = tmp_path / "targets.npy"
    path.write_bytes(path.read_bytes()[:cut])
    with pytest.raises(ConfigError, match=r"targets\.npy is not a complete array"):
        LinkGraph.open(tmp_path)
