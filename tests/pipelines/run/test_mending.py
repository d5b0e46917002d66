"""A stage with a damaged file is made again, shard by shard, and stages after it follow where its rows have changed."""

import json
import shutil

import pytest

from pipelines.checksums import read_note, seal_note, write_checksums
from pipelines.errors import ConfigError, CorruptInput, Damaged
from pipelines.files import write_text
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


def test_a_whole_note_of_another_version_stops_the_run_and_stays(planned):
    folder = planned[1].folder
    fields = json.loads(read_note(folder.sidecar(2)))
    write_text(folder.sidecar(2), seal_note(json.dumps(fields | {"of_tomorrow": 1})))
    before = folder.sidecar(2).read_bytes()
    with pytest.raises(ConfigError, match=r"part-00002\.json: another version of synth wrote it; use that version"):
        mend(planned)
    assert folder.sidecar(2).read_bytes() == before
    assert folder.manifest.is_file()


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


@pytest.fixture
def corpus_file(tmp_path):
    """A file of a corpus that has checksums."""
    file = tmp_path / "corpus" / "toywiki" / "graph" / "targets.npy"
    file.parent.mkdir(parents=True)
    file.write_bytes(b"targets")
    write_checksums(file.parents[1])
    return file


def read_damaged(file):
    raise Damaged(file, "has other bytes than were written")


def test_a_run_begins_again_without_a_corpus_that_it_found_damaged_which_goes_once_it_is_built(tmp_path, corpus_file):
    corpus, said = corpus_file.parents[1], []
    corpus_file.write_bytes(b"tarkets")

    def make():
        if corpus.exists():
            read_damaged(corpus_file)
        shutil.copytree(next(corpus.parent.glob(".damaged-*")), corpus)
        return "done"

    assert run_mending(Workspace(tmp_path), make, said.append) == "done"
    assert [str(corpus_file) in text for text in said] == [True]
    assert list(corpus.parent.iterdir()) == [corpus]


def test_a_damaged_corpus_that_could_not_be_built_comes_back(tmp_path, corpus_file):
    corpus = corpus_file.parents[1]
    corpus_file.write_bytes(b"tarkets")

    def make():
        if corpus.exists():
            read_damaged(corpus_file)
        raise ConfigError("the dump is gone")

    with pytest.raises(ConfigError, match="the dump is gone"):
        run_mending(Workspace(tmp_path), make, lambda _: None)
    assert corpus_file.read_bytes() == b"tarkets"


def test_a_corpus_whose_file_is_whole_when_it_is_read_again_is_kept_and_no_file_is_tried_for_ever(
    tmp_path, corpus_file
):
    tries = []

    def make():
        tries.append(corpus_file.stat().st_ino)
        read_damaged(corpus_file)

    with pytest.raises(CorruptInput, match="no run can make it: bring it back from a copy"):
        run_mending(Workspace(tmp_path), make, lambda _: None)
    assert tries == [corpus_file.stat().st_ino] * 2


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
