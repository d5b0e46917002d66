"""A stage with a damaged file is made again, shard by shard, and stages after it follow where its rows have changed."""

import pytest

from pipelines.errors import ConfigError, CorruptInput, Damaged
from pipelines.run.chains import run_stages
from pipelines.run.integrity import examine_stage
from pipelines.run.mending import mend_stage, run_mending
from pipelines.run.progress import SilentReporter
from pipelines.run.runner import select_stages
from pipelines.run.workspace import Workspace, read_names
from schemas.manifest import Usage
from tests.chaos.driving import digest_files
from tests.pipelines.run.test_chains import CORPUS, SHARD_ROWS, plan


def run(planned):
    return [report.stage for report in run_stages(planned, CORPUS, SHARD_ROWS, SilentReporter()) if report.ran]


def mend(planned):
    for each in planned:
        mend_stage(examine_stage(each.folder))


@pytest.fixture
def planned(tmp_path):
    made = plan(tmp_path, {}, {}, {})
    run(made)
    return made


def test_only_the_shard_with_a_damaged_file_is_made_again_and_has_its_bytes(planned, tmp_path):
    before = digest_files(tmp_path, "stages/**/*.parquet")
    folder = planned[2].folder
    folder.failed(3).write_bytes(b"damaged")
    mend(planned)
    again = plan(tmp_path, {}, {}, {})
    assert run(again) == ["questions"]
    assert len(again[2].stage.begun) <= SHARD_ROWS
    assert digest_files(tmp_path, "stages/**/*.parquet") == before


def test_a_sidecar_comes_back_from_the_manifest_and_nothing_runs(planned):
    folder = planned[1].folder
    whole = folder.read_sidecar(2)
    folder.sidecar(2).unlink()
    mend(planned)
    assert folder.read_sidecar(2) == whole
    assert run(planned) == []


def test_a_stage_whose_input_was_made_again_with_other_rows_is_made_again(planned, tmp_path):
    folder = planned[1].folder
    folder.part(0).write_bytes(b"damaged")
    mend(planned)
    changed = plan(tmp_path, {}, {}, {})
    changed[1].stage.refused = 3
    assert run(changed) == ["paths", "questions", "rewrites"]
    assert len(changed[2].stage.begun) <= SHARD_ROWS


def test_a_damaged_manifest_is_made_from_the_sidecars(planned):
    folder = planned[3].folder
    before = folder.read_manifest()
    folder.manifest.write_text(folder.manifest.read_text().replace(f'"rows_in": {before.rows_in}', '"rows_in": 7'))
    with pytest.raises(Damaged, match="manifest"):
        folder.read_manifest()
    mend(planned)
    run(planned)
    assert not planned[3].stage.begun[before.rows_in :]
    assert folder.read_manifest().digest == before.digest


def test_what_stopped_runs_used_stays_counted(planned):
    folder = planned[2].folder
    folder.note_stopped(Usage(calls=7, cost=0.5))
    folder.manifest.unlink()
    run(planned)
    next(folder.path.glob("stopped-*")).unlink()
    assert [finding.what for finding in examine_stage(folder).findings] == ["are not those the manifest has the sum of"]
    mend(planned)
    assert folder.read_stopped() == Usage(calls=7, cost=0.5)
    assert examine_stage(folder).findings == []


def test_a_stage_that_is_asked_for_alone_says_that_its_damaged_input_comes_first(planned):
    planned[1].folder.part(0).unlink()
    mend(planned)
    with pytest.raises(ConfigError, match="run `synth run --until paths` first"):
        select_stages(planned, "", ["questions"])


def test_a_run_begins_again_without_what_it_found_damaged(tmp_path):
    workspace, said = Workspace(tmp_path), []
    file = workspace.corpora / "toywiki" / "graph" / "targets.npy"
    file.parent.mkdir(parents=True)

    def make():
        if file.parents[1].exists():
            raise Damaged(file, "has other bytes than were written")
        return "done"

    assert run_mending(workspace, make, said.append) == "done"
    assert len(said) == 1
    assert str(file) in said[0]


def test_what_no_run_makes_is_not_taken_away(tmp_path):
    workspace = Workspace(tmp_path / "workspace")
    other = tmp_path / "other" / "pages.arrow"
    other.parent.mkdir()
    other.write_bytes(b"kept")

    def make():
        raise Damaged(other, "has other bytes than were written")

    with pytest.raises(CorruptInput, match=r"pages\.arrow: has other bytes .* no file of this workspace"):
        run_mending(workspace, make, lambda _: None)
    assert other.read_bytes() == b"kept"


def test_damaged_notes_are_removed_and_told(tmp_path):
    workspace, said = Workspace(tmp_path), []
    workspace.note_latest({"seeds": "0123456789abcdef"})
    note = tmp_path / "latest.json"
    note.write_text(note.read_text().replace("0123", "0133"))
    with pytest.raises(Damaged):
        read_names(note)
    assert run_mending(workspace, workspace.read_latest, said.append) == {}
    assert "latest.json: has other bytes than were written; `synth run` notes again what it uses" in said[0]
