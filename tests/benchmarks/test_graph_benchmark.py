import numpy as np
import pytest

from tests.benchmarks.graph import SMALL, measure, simulate_links


def test_simulated_links_come_in_node_order_with_hubs_and_about_as_many_as_asked_for():
    blocks = list(simulate_links(200_000, 2_000_000))
    sources = np.concatenate([block.sources for block in blocks])
    targets = np.concatenate([block.targets for block in blocks])
    assert len(blocks) == 4
    assert (np.diff(sources.astype(int)) >= 0).all()
    assert abs(len(sources) / 2_000_000 - 1) < 0.05
    in_degree = np.sort(np.bincount(targets, minlength=200_000))[::-1]
    assert in_degree[0] > 100 * in_degree[1000] > 100


@pytest.mark.slow
def test_the_benchmark_of_the_graph_runs_at_a_small_size(tmp_path):
    measured = measure(tmp_path, SMALL)
    assert len(measured) == 11
    assert all(entry.value for entry in measured)
