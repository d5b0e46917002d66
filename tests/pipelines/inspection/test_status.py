import pytest
from rich.console import Console

from pipelines.errors import ConfigError
from pipelines.inspection.status import format_bytes, render_status, summarise_workspace


def test_status_shows_every_key_and_which_the_last_run_used(workspace):
    found = {(stage.stage, stage.key[0]): stage for stage in summarise_workspace(workspace).stages}
    assert found["difficulty", "d"].latest
    assert not found["difficulty", "0"].latest
    assert found["difficulty", "d"].rejected == 2


def test_an_unsealed_stage_shows_its_finished_shards(workspace):
    rollouts = next(stage for stage in summarise_workspace(workspace).stages if stage.stage == "rollouts")
    assert not rollouts.sealed
    assert rollouts.shards_done == 1


def test_stages_stand_in_pipeline_order(workspace):
    names = [stage.stage for stage in summarise_workspace(workspace).stages]
    assert names == ["difficulty", "difficulty", "rollouts", "trajectories", "releases"]


def test_releases_and_folders_are_measured(workspace):
    status = summarise_workspace(workspace)
    assert [(release.dataset, release.rows) for release in status.releases] == [("bridgevqa", 7), ("rl", 2), ("sft", 4)]
    assert {name for name, size in status.folders if size} == {"images", "releases", "stages"}


def test_status_renders(workspace):
    console = Console(width=160)
    with console.capture() as capture:
        console.print(render_status(summarise_workspace(workspace)))
    assert "1 shards done" in capture.get()


def test_a_missing_workspace_is_named(tmp_path):
    with pytest.raises(ConfigError, match="nowhere"):
        summarise_workspace(tmp_path / "nowhere")


@pytest.mark.parametrize(("count", "text"), [(0, "0 B"), (999, "999 B"), (1500, "1.5 kB"), (2_500_000, "2.5 MB")])
def test_bytes_are_formatted_for_reading(count, text):
    assert format_bytes(count) == text
