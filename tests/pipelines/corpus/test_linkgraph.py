from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.corpus.linkgraph import ArrayFile, LinkGraph, build_graph
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


def test_duplicates_keep_the_first_position_and_self_links_go(tmp_path):
    graph = write(tmp_path, 3, [(0, 1, 50), (0, 1, 10), (0, 0, 1), (2, 1, 5), (0, 2, 7)])
    assert graph.targets_of(0).tolist() == [1, 2]
    assert graph.positions_of(0).tolist() == [10, 7]
    assert (graph.find_link(0, 1), graph.find_link(1, 0), graph.find_link(2, 1)) == (10, -1, 5)


def test_a_folder_called_like_a_column_changes_nothing(tmp_path):
    links = [(0, 1, 50), (2, 1, 5), (0, 2, 7)]
    plain, named = tmp_path / "plain", tmp_path / "source=0" / "target=1"
    write(plain, 3, links)
    write(named, 3, links)
    assert read_files(named) == read_files(plain)


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


@pytest.mark.parametrize("count", [0, 2])
def test_a_graph_without_links_opens(tmp_path, count):
    write(tmp_path, count, [])
    graph = LinkGraph.open(tmp_path)
    assert (graph.node_count, graph.link_count) == (count, 0)


def test_a_growing_file_that_is_given_up_says_that_it_is_empty(tmp_path):
    def write_twice(file):
        file.append(np.arange(10))
        file.append(np.array(["no number"]))

    with pytest.raises(ValueError, match="no number"), ArrayFile(tmp_path / "a.npy", np.uint32) as file:
        write_twice(file)
    assert len(np.load(tmp_path / "a.npy")) == 0


@pytest.mark.parametrize("cut", [0, 40, 1000])
def test_a_cut_array_is_refused_by_name(tmp_path, cut):
    write(tmp_path, 300, [(node, 299 - node, node) for node in range(300)])
    path = tmp_path / "targets.npy"
    path.write_bytes(path.read_bytes()[:cut])
    with pytest.raises(ConfigError, match=r"targets\.npy is not a complete array"):
        LinkGraph.open(tmp_path)
