import pytest

from pipelines.cli.status import format_bytes, render_status, summarise_workspace
from pipelines.errors import ConfigError
from pipelines.run.workspace import Workspace
from schemas.manifest import ShardSidecar, Usage
from tests.pipelines.cli.conftest import show


def test_status_shows_every_key_and_which_the_last_run_used(workspace):
    found = {(stage.stage, stage.key[0]): stage for stage in summarise_workspace(workspace).stages}
    assert found["difficulty", "d"].latest
    assert not found["difficulty", "0"].latest
    assert found["difficulty", "d"].rejected == 2


def test_an_unsealed_stage_shows_its_finished_shards(workspace):
    assert "1 shards done" in show(render_status(summarise_workspace(workspace)))
    rollouts = next(stage for stage in summarise_workspace(workspace).stages if stage.stage == "rollouts")
    assert not rollouts.sealed
    assert rollouts.shards_done == 1


def test_stages_stand_in_pipeline_order(workspace):
    names = [stage.stage for stage in summarise_workspace(workspace).stages]
    assert names == ["difficulty", "difficulty", "rollouts", "trajectories", "releases"]


def test_releases_and_folders_are_measured(workspace):
    status = summarise_workspace(workspace)
    assert [(release.dataset, release.rows) for release in status.releases] == [("rl", 2), ("sft", 4), ("vqa", 7)]
    assert {name for name, size in status.folders if size} == {"images", "releases", "stages"}


def test_a_missing_workspace_is_named(tmp_path):
    with pytest.raises(ConfigError, match="nowhere"):
        summarise_workspace(tmp_path / "nowhere")


@pytest.mark.parametrize(("count", "text"), [(0, "0 B"), (999, "999 B"), (1500, "1.5 kB"), (2_500_000, "2.5 MB")])
def test_bytes_are_formatted_for_reading(count, text):
    assert format_bytes(count) == text


def write_usage(root, usage):
    """A stage of 3 rows in and 2 kept that used something."""
    folder = Workspace(root).stage("rewrites", "a" * 16)
    folder.path.mkdir(parents=True)
    rows = {"rows_in": 3, "kept": 2, "rejected": {"answer-leak": 1}, "failed": 0, "rows_out": 2}
    sidecar = ShardSidecar(shard=0, source="", **rows, files=(), usage=usage, seconds=1.0)
    folder.sidecar(0).write_text(sidecar.model_dump_json())


def test_a_stage_shows_what_it_asked_and_what_a_kept_row_cost(tmp_path):
    used = {"calls": 30, "cached_calls": 10, "tokens_in": 900, "tokens_out": 100, "gpu_seconds": 1800.0, "cost": 0.5}
    write_usage(tmp_path, Usage(**used))
    (stage,) = summarise_workspace(tmp_path).stages
    assert (stage.requests, stage.recorded, stage.hit_rate) == (40, 10, 0.25)
    assert (stage.tokens, stage.gpu_hours, stage.cost, stage.cost_per_kept_row) == (1000, 0.5, 0.5, 0.25)
    assert {"asked", "25%", "1,000", "GPU-h", "0.25"} <= set(show(render_status(summarise_workspace(tmp_path))).split())


def test_what_nobody_counts_has_no_column(tmp_path):
    write_usage(tmp_path, Usage(calls=3))
    (stage,) = summarise_workspace(tmp_path).stages
    assert (stage.hit_rate, stage.cost_per_kept_row) == (0.0, 0.0)
    words = show(render_status(summarise_workspace(tmp_path))).split()
    assert "asked" in words
    assert not {"GPU-h", "cost", "tokens"} & set(words)


def test_a_stage_that_asks_nobody_has_no_hit_rate_and_without_kept_rows_no_price(workspace):
    found = {stage.stage: stage for stage in summarise_workspace(workspace).stages}
    assert found["trajectories"].hit_rate is None
    assert found["rollouts"].cost_per_kept_row is None
