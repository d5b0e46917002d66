"""A stage with a damaged file is made again, shard by shard, and stages after it follow where its rows have changed."""

import json
import shutil
import subprocess
import sys
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar
from uuid import uuid4

import duckdb
import pytest

from pipelines.checksums import read_note, seal_note, write_checksums
from pipelines.errors import ConfigError, CorruptInput, Damaged
from pipelines.files import write_text
from pipelines.run.chains import run_stages
from pipelines.run.integrity import (
    count_replies,
    examine_catalogue,
    examine_stage,
    find_damage,
    find_replied_pictures,
    read_pictures,
)
from pipelines.run.mending import check_pictures, mend_stage, mend_stages, run_mending
from pipelines.run.progress import SilentReporter
from pipelines.run.runner import PlannedStage, select_stages
from pipelines.run.workspace import StageFolder, Workspace, read_names, write_model
from pipelines.services.clients.replies import Table, open_ledger, sum_row
from schemas.base import Record
from schemas.datasets import Picture, Seed
from schemas.manifest import Usage
from tests.chaos.driving import digest_files
from tests.pipelines.release.builders import make_picture
from tests.pipelines.run.test_chains import CORPUS, SHARD_ROWS, Step, plan


def run(planned):
    return [report.stage for report in run_stages(planned, CORPUS, SHARD_ROWS, SilentReporter()) if report.ran]


def mend(planned):
    for each in planned:
        mend_stage(examine_stage(each.folder))


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """The folder of three stages that have run."""
    root = tmp_path_factory.mktemp("whole")
    run(plan(root, {}, {}, {}))
    return root


@pytest.fixture
def planned(whole, tmp_path):
    shutil.copytree(whole, tmp_path, dirs_exist_ok=True)
    return plan(tmp_path, {}, {}, {})


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
    assert not planned[3].stage.begun
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


def test_an_unsealed_stage_is_unfinished_and_one_without_its_manifest_is_damaged(planned):
    folder = planned[2].folder
    folder.failed(3).write_bytes(b"damaged")
    mend(planned)
    assert examine_stage(folder, was_sealed=True).findings == []
    run(planned)
    folder.manifest.unlink()
    assert [found.what for found in examine_stage(folder, was_sealed=True).findings] == [
        "is missing, and the stage was complete"
    ]


HOLDER = "import duckdb, sys; held = duckdb.connect(sys.argv[1]); print(1, flush=True); sys.stdin.read()"


def test_a_catalogue_that_another_process_holds_is_no_damage(tmp_path):
    workspace, path = Workspace(tmp_path), tmp_path / "synth.duckdb"
    with duckdb.connect(str(path)) as made:
        made.execute("CREATE VIEW seeds AS SELECT 1")
    command = [sys.executable, "-c", HOLDER, str(path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as holder:
        assert holder.stdout.readline() == b"1\n"
        assert list(examine_catalogue(workspace)) == []
        holder.stdin.close()
    path.write_bytes(path.read_bytes()[:1000])
    assert [found.path for found in examine_catalogue(workspace)] == [path]


def test_a_check_looks_at_notes_without_a_seal(tmp_path):
    workspace = Workspace(tmp_path)
    (tmp_path / ".name").write_text("0" * 32)
    (tmp_path / "flow-run.txt").write_text(f"{uuid4()}\n")
    assert list(find_damage(tmp_path)) == []
    (tmp_path / ".name").write_text("0" * 31)
    (tmp_path / "flow-run.txt").write_text("")
    write_text(workspace.replies / "address", "mysql:")
    assert {found.path.name for found in find_damage(tmp_path)} == {".name", "flow-run.txt", "address"}


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


def test_the_cost_of_a_lost_shard_counts_once_however_often_mending_is_cut_short(planned):
    folder = planned[2].folder
    sidecar = folder.read_sidecar(3).model_copy(update={"usage": Usage(calls=4, cost=0.25)})
    for _ in range(2):
        write_model(folder.sidecar(3), sidecar)
        folder.failed(3).write_bytes(b"damaged")
        folder.unseal()
        mend(planned)
    assert folder.read_stopped() == Usage(calls=4, cost=0.25)


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


def fail_if_begun():
    raise AssertionError("the run began")


def make_row(key, text):
    return key, "model", 0, len(text), text, sum_row(key.encode(), b"model", text.encode())


@pytest.mark.parametrize(("lost", "meant"), [("stages", "latest.json"), ("corpus", "latest.json")])
def test_a_kind_of_files_that_is_gone_as_a_whole_is_asked_for_and_not_made_again(planned, tmp_path, lost, meant):
    workspace = Workspace(tmp_path)
    (workspace.corpora / "toywiki").mkdir(parents=True)
    workspace.note_latest({"corpus": "toywiki", "seeds": "key"})
    assert run_mending(workspace, lambda: "began", lambda _: None) == "began"
    shutil.rmtree(tmp_path / lost)
    (tmp_path / lost).mkdir()
    with pytest.raises(ConfigError, match=rf"{lost}: nothing of it is there.*is it mounted.*remove .*{meant}"):
        run_mending(workspace, fail_if_begun, lambda _: None)
    (tmp_path / meant).unlink()
    assert run_mending(workspace, lambda: "began", lambda _: None) == "began"


def test_a_workspace_of_which_only_the_corpus_was_made_misses_no_stages(tmp_path):
    workspace = Workspace(tmp_path)
    (workspace.corpora / "toywiki").mkdir(parents=True)
    workspace.note_latest({"corpus": "toywiki"})
    assert run_mending(workspace, lambda: "began", lambda _: None) == "began"


def test_a_lost_store_of_replies_stops_a_run_before_it_makes_an_empty_one(planned, tmp_path):
    workspace = Workspace(tmp_path)
    planned[2].folder.used(3).write_text("a" * 64)
    with pytest.raises(ConfigError, match=r"replies\.db: is missing; is it mounted.*make an empty file there"):
        run_mending(workspace, fail_if_begun, lambda _: None)
    assert run_mending(workspace, lambda: "began", lambda _: None, "env:REPLIES") == "began"
    assert not workspace.replies.exists()
    workspace.replies.mkdir()
    (workspace.replies / "replies.db").touch()
    assert run_mending(workspace, lambda: count_replies(workspace, ["a" * 64]), lambda _: None) == 0


def test_a_damaged_shard_whose_recorded_replies_are_gone_is_not_paid_again(planned, tmp_path):
    workspace, folder = Workspace(tmp_path), planned[2].folder
    keys = ["a" * 64, "b" * 64]
    folder.used(3).write_text("".join(f"{key}\n" for key in keys))
    folder.failed(3).write_bytes(b"damaged")
    with closing(open_ledger(workspace.replies, "")) as ledger:
        ledger.insert(Table.REPLIES, [make_row(keys[0], "{}")])
        with pytest.raises(ConfigError, match=r"questions/key: it is damaged, and 1 of the 2 recorded replies"):
            mend_stages(workspace, planned, None, lambda _: None)
        assert folder.read_sidecar(3) is not None
        ledger.insert(Table.REPLIES, [make_row(keys[1], "{}")])
    mend_stages(workspace, planned, None, lambda _: None)
    assert folder.read_sidecar(3) is None


class Shown(Seed):
    picture: Picture


@dataclass
class Painter(Step):
    """Gives each page a picture."""

    output: ClassVar[type[Record]] = Shown
    root: Path = Path()

    async def __call__(self, record):
        self.begun.append(record.page_id)
        return (Shown(**record.model_dump(), picture=make_picture(self.root, record.page_id)),)


class Source:
    """A corpus with the files of some pictures."""

    def __init__(self, files=None):
        self.files = files or {}

    def image_path(self, file):
        if file not in self.files:
            raise ConfigError(f"no {file}")
        return self.files[file]


def paint(root):
    planned = plan(root, {})
    place = StageFolder(root / "stages" / "questions" / "key")
    painter = Painter("questions", root=root)
    return [*planned, PlannedStage(painter, "key", place, (planned[-1],), "", in_flight=4)]


@pytest.fixture
def painted(tmp_path):
    made = paint(tmp_path)
    run(made)
    return made


def find_pictures(root):
    return sorted(root.glob("images/??/*.png"))


def test_a_damaged_picture_comes_back_from_the_corpus_and_files_of_others_stay(painted, tmp_path):
    (picture, other, *_), copy = find_pictures(tmp_path), tmp_path / "copy.png"
    cited = read_pictures(tmp_path.glob("stages/questions/*/part-*.parquet"))
    copy.write_bytes(picture.read_bytes())
    picture.write_bytes(b"damaged")
    (other.parent / "notes.txt").write_text("mine")
    said = []
    assert mend_stages(Workspace(tmp_path), painted, Source({cited[picture.stem].file: copy}), said.append) == {}
    assert [str(picture) in text for text in said] == [True]
    assert picture.read_bytes() == copy.read_bytes()
    assert (other.parent / "notes.txt").read_text() == "mine"


def test_a_damaged_picture_that_the_corpus_lacks_stays_until_its_shard_makes_it_again(painted, tmp_path):
    picture, workspace = find_pictures(tmp_path)[0], Workspace(tmp_path)
    whole = picture.read_bytes()
    picture.write_bytes(b"damaged")
    lost = mend_stages(workspace, painted, Source(), lambda _: None)
    assert picture.read_bytes() == b"damaged"
    assert list(lost) == [picture]
    with pytest.raises(ConfigError, match=rf"{picture.name}: rows cite it, and nothing here makes it again"):
        check_pictures(lost)
    assert run(paint(tmp_path)) == ["questions"]
    check_pictures(lost)
    assert picture.read_bytes() == whole


def test_a_picture_that_is_gone_with_the_sidecar_of_its_shard_is_made_again(painted, tmp_path):
    picture, folder = find_pictures(tmp_path)[0], painted[-1].folder
    whole = picture.read_bytes()
    picture.write_bytes(b"damaged")
    for sidecar in folder.path.glob("part-*.json"):
        sidecar.write_bytes(sidecar.read_bytes().replace(b"rows_in", b"rows-in"))
    lost = mend_stages(Workspace(tmp_path), painted, Source(), lambda _: None)
    assert run(paint(tmp_path)) == ["questions"]
    check_pictures(lost)
    assert picture.read_bytes() == whole
    assert folder.read_manifest() is not None


def test_pictures_that_are_gone_as_a_whole_are_asked_for(painted, tmp_path):
    for picture in find_pictures(tmp_path):
        picture.unlink()
    with pytest.raises(ConfigError, match=r"images: nothing of it is there.*is it mounted"):
        mend_stages(Workspace(tmp_path), painted, Source(), lambda _: None)
    assert run(painted) == []


def test_pictures_that_only_recorded_replies_name_are_found_in_one_pass(tmp_path):
    workspace = Workspace(tmp_path)
    names = {digit * 64 for digit in "abc"}
    with closing(open_ledger(workspace.replies, "")) as ledger:
        for sha256 in names:
            hit = {"hits": [{"picture": {"sha256": sha256, "extension": "jpg", "file": f"{sha256[0]}.jpg"}}]}
            ledger.insert(Table.REPLIES, [make_row(sha256, json.dumps(hit))])
    found = find_replied_pictures(workspace, names - {"a" * 64})
    assert {sha256: picture.file for sha256, picture in found.items()} == {"b" * 64: "b.jpg", "c" * 64: "c.jpg"}


def test_a_part_whose_columns_have_names_in_no_encoding_is_damaged(painted):
    part = next(painted[-1].folder.path.glob("part-*.parquet"))
    part.write_bytes(part.read_bytes().replace(b"sha256", b"\xa0ha256"))
    with pytest.raises(Damaged, match="cannot be read"):
        read_pictures([part])
