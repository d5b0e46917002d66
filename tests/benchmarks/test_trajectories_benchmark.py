import pytest

from tests.benchmarks.trajectories import measure


@pytest.mark.slow
def test_the_benchmark_of_trajectories_keeps_every_rollout_of_a_small_size(tmp_path):
    measured = measure(tmp_path, (40, 300))
    assert [entry.what for entry in measured if entry.what.endswith("40 kept")]
    assert [entry.what for entry in measured if entry.what.endswith("300 kept")]
    assert list(tmp_path.iterdir()) == []
