import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.corpus.linkgraph import EdgeBlock, LinkGraph, build_graph
from pipelines.errors import ConfigError

LINKS = st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5), st.integers(0, 999)), max_size=40)


def write(folder, count, links):
    columns = np.array(links, dtype=np.uint32).reshape(-1, 3).T
    return build_graph(folder, count, [EdgeBlock(*columns)])


def test_duplicates_keep_the_first_position_and_self_links_go(tmp_path):
    graph = write(tmp_path, 3, [(0, 1, 50), (0, 1, 10), (0, 0, 1), (2, 1, 5), (0, 2, 7)])
    assert graph.targets_of(0).tolist() == [1, 2]
    assert graph.positions_of(0).tolist() == [10, 7]
    assert graph.sources_of(1).tolist() == [0, 2]
    assert graph.in_degree.tolist() == [0, 2, 1]
    assert (graph.find_link(0, 1), graph.find_link(1, 0), graph.find_link(2, 1)) == (10, -1, 5)


@given(LINKS)
def test_in_links_mirror_out_links(tmp_path_factory, links):
    graph = write(tmp_path_factory.mktemp("graph"), 6, links)
    out = {(source, int(target)) for source in range(6) for target in graph.targets_of(source)}
    assert out == {(source, target) for source, target, _ in links if source != target}
    assert out == {(int(source), target) for target in range(6) for source in graph.sources_of(target)}
    assert graph.link_count == len(out) == int(graph.in_degree.sum())


def test_a_graph_without_links_opens(tmp_path):
    write(tmp_path, 2, [])
    graph = LinkGraph.open(tmp_path)
    assert (graph.node_count, graph.link_count, graph.targets_of(1).tolist()) == (2, 0, [])


def test_a_missing_array_is_named(tmp_path):
    with pytest.raises(ConfigError, match=r"no offsets\.npy"):
        LinkGraph.open(tmp_path)


@pytest.mark.parametrize("cut", [0, 40, 1000])
def test_a_cut_array_is_refused_by_name(tmp_path, cut):
    write(tmp_path, 300, [(node, 299 - node, node) for node in range(300)])
    path = tmp_path / "targets.npy"
    path.write_bytes(path.read_bytes()[:cut])
    with pytest.raises(ConfigError, match=r"targets\.npy is not a complete array"):
        LinkGraph.open(tmp_path)


@pytest.mark.parametrize("name", ["offsets", "targets", "positions", "in_offsets", "in_sources", "in_degree"])
def test_arrays_of_two_graphs_are_refused(tmp_path, name):
    write(tmp_path / "one", 4, [(0, 1, 5), (1, 2, 6)])
    write(tmp_path / "two", 6, [(0, 1, 5), (1, 2, 6), (4, 5, 7)])
    (tmp_path / "two" / f"{name}.npy").rename(tmp_path / "one" / f"{name}.npy")
    with pytest.raises(ConfigError, match="incomplete"):
        LinkGraph.open(tmp_path / "one")
