import pytest
from rich.console import Console

from pipelines.release.publish import publish_releases
from pipelines.run.shards import Origin, ShardInput, ShardRows, seal_stage, write_shard
from pipelines.run.views import write_catalogue
from pipelines.run.workspace import Workspace
from pipelines.stages.releases import Releases
from schemas.base import Failure, Rejection
from schemas.datasets import Difficulty, Trajectory
from tests.pipelines.release.builders import make_context, make_material


class FakeStage:
    """The name and the row type of a stage; its rows are written by hand."""

    version = 1

    def __init__(self, name, output):
        self.name, self.output = name, output

    def prompts(self):
        return {}

    def models(self):
        return ()


def write_stage(root, stage, key, rows, rejected=(), failed=(), seal=True):
    folder = Workspace(root).stage(stage.name, key)
    folder.path.mkdir(parents=True)
    kept = tuple(row.record_id for row in rows)
    refused = (*(row.record_id for row in rejected), *(row.record_id for row in failed))
    came = ShardInput((*kept, *refused), kept)
    write_shard(stage, folder, 0, came, ShardRows(list(rows), list(rejected), list(failed)))
    if seal:
        seal_stage(stage, folder, 1, Origin((), "", ""))


@pytest.fixture
def workspace(tmp_path):
    return make_workspace(tmp_path / "it's a workspace")


def make_workspace(root):
    """Difficulty and trajectories sealed, releases published, one stage unfinished, all by hand."""
    questions, trajectories, entries = make_material(root)
    refused = [
        Rejection(record_id="question-refused0000001", reason="solved-without-tools", detail="3 of 8"),
        Rejection(record_id="question-refused0000002", reason="unscored"),
    ]
    failed = [Failure(record_id="question-failed00000001", error="unparseable-reply", detail="<script>")]
    write_stage(root, FakeStage("difficulty", Difficulty), "d" * 16, questions, refused, failed)
    write_stage(root, FakeStage("difficulty", Difficulty), "0" * 16, questions[:1])
    write_stage(root, FakeStage("trajectories", Trajectory), "t" * 16, trajectories)
    write_stage(root, FakeStage("rollouts", Trajectory), "r" * 16, [], seal=False)
    folder = Workspace(root).stage("releases", "e" * 16)
    folder.path.mkdir(parents=True)
    kept = tuple(dict.fromkeys(entry.parent_id for entry in entries))
    write_shard(Releases(), folder, 0, ShardInput(kept, kept), ShardRows(list(entries)))
    seal_stage(Releases(), folder, 1, Origin((), "", ""))
    keys = {"difficulty": "d" * 16, "trajectories": "t" * 16, "releases": "e" * 16, "rollouts": "r" * 16}
    Workspace(root).note_latest(keys)
    publish_releases(root, questions, trajectories, entries, make_context())
    return root


@pytest.fixture
def catalogue(workspace):
    return write_catalogue(workspace)


def show(rendered):
    """Return what a console of 200 columns prints."""
    console = Console(width=200)
    with console.capture() as capture:
        console.print(rendered)
    return capture.get()
