"""Exports of SFT releases: complete, reproducible, refused where a trainer would lose something."""

import errno
import hashlib
import json
import shutil
from dataclasses import replace

import pyarrow.parquet as pq
import pytest

from pipelines.errors import ConfigError, ConservationError, GateNotMet, Unavailable
from pipelines.release.exporters import registry
from pipelines.release.exporters.base import ExportOptions
from pipelines.release.exporters.conversations import read_conversations
from pipelines.release.exporters.registry import EXPORTERS, export_release
from tests.pipelines.release.exporters.trajectories import HOSTILE, make_release

SFT = ("llamafactory", "ms-swift", "trl", "verl-sft")
LINES = ("llamafactory", "ms-swift")


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    return tmp_path_factory.mktemp("exports")


@pytest.fixture(scope="module")
def release(root):
    return make_release(root, ("A page.", *HOSTILE))[0]


@pytest.fixture(scope="module")
def exports(root, release):
    """Each exporter's folder and report."""
    return {name: (root / "out" / name, export_release(release, root / "out" / name, name)) for name in SFT}


def read_rows(folder):
    lines = [
        json.loads(line) for path in folder.glob("*.jsonl") for line in path.read_text("utf-8").split("\n") if line
    ]
    return lines + [row for path in folder.glob("*.parquet") for row in pq.read_table(path).to_pylist()]


def hash_bytes(data):
    return hashlib.sha256(data).hexdigest()


@pytest.mark.parametrize("to", SFT)
def test_no_row_is_lost_and_reason_loss_credits_and_origin_travel_with_it(to, exports, release):
    folder, report = exports[to]
    rows = read_rows(folder)
    assert report.rows == len(rows) == 1 + len(HOSTILE)
    assert report.files == sum(path.is_file() for path in folder.rglob("*"))
    told = [json.loads(row["synth"]) for row in rows]
    assert [each["id"] for each in told] == [each.row.id for each in read_conversations(release)]
    assert all(each["stop_reason"] == "answered" and each["loss"].count(False) in (1, 2) for each in told)
    assert all(each["split"] == "train" and each["dialect"] == "synth" for each in told)
    assert (folder / "ATTRIBUTION.tsv").read_bytes() == (release / "ATTRIBUTION.tsv").read_bytes()
    origin = json.loads((folder / "export.json").read_text())
    assert (origin["to"], origin["version"], origin["rows"]) == (to, release.name, report.rows)
    longest = max(conversation.row.tokens for conversation in read_conversations(release))
    assert any(f"{longest:,} tokens" in note for note in report.notes)


@pytest.mark.parametrize("to", SFT)
def test_pictures_keep_their_bytes_and_order(to, exports, release):
    for row, conversation in zip(read_rows(exports[to][0]), read_conversations(release), strict=True):
        shown = [
            (exports[to][0] / image).read_bytes() if isinstance(image, str) else image["bytes"]
            for image in row["images"]
        ]
        assert shown == [each.content for each in conversation.pictures]
        named = [f"images/{hash_bytes(data)[:2]}/{hash_bytes(data)}.png" for data in shown]
        assert to not in LINES or row["images"] == named


@pytest.mark.parametrize("to", SFT)
def test_two_exports_are_the_same_bytes(to, exports, release, tmp_path):
    export_release(release, tmp_path / "again", to)
    first, again = exports[to][0], tmp_path / "again"
    names = sorted(path.relative_to(first) for path in first.rglob("*") if path.is_file())
    assert names == sorted(path.relative_to(again) for path in again.rglob("*") if path.is_file())
    assert all((first / name).read_bytes() == (again / name).read_bytes() for name in names)


@pytest.mark.parametrize(
    ("to", "flags"), [("llamafactory", True), ("trl", True), ("verl-sft", True), ("ms-swift", False)]
)
def test_loss_flags_that_a_reader_cannot_honour_are_counted(to, flags, exports, release):
    masked = sum(not each.said.loss for row in read_conversations(release) for each in row.exchanges)
    noted = [note for note in exports[to][1].notes if note.startswith(f"{masked} turns are trained on although")]
    assert len(noted) == flags


def test_ms_swift_has_a_flag_on_every_message_of_the_model(exports, release):
    for row, conversation in zip(read_rows(exports["ms-swift"][0]), read_conversations(release), strict=True):
        last = [
            message["loss"]
            for message, after in zip(row["messages"], [*row["messages"][1:], {"role": ""}], strict=True)
            if message["role"] in ("assistant", "tool_call") and after["role"] != "tool_call"
        ]
        assert last == list(conversation.row.loss)


@pytest.mark.parametrize("to", LINES)
def test_the_tools_reach_the_model_once(to, exports, release):
    row, conversation = read_rows(exports[to][0])[0], next(read_conversations(release))
    system = row["system"] if to == "llamafactory" else row["messages"][0]["content"]
    assert json.loads(row["tools"]) == json.loads(conversation.tools)
    assert conversation.tools in conversation.system
    assert conversation.tools not in system


@pytest.mark.parametrize("to", SFT)
def test_as_text_every_turn_is_what_the_teacher_wrote(to, release, tmp_path):
    export_release(release, tmp_path / "out", to, ExportOptions(calls="text"))
    said = [exchange.said.text for exchange in next(read_conversations(release)).exchanges]
    row = read_rows(tmp_path / "out")[0]
    messages = row["conversations"] if to == "llamafactory" else row["messages"]
    pairs = [(each.get("from", each.get("role")), each.get("value", each.get("content"))) for each in messages]
    texts = [
        content if isinstance(content, str) else content[0]["text"]
        for who, content in pairs
        if who in ("gpt", "assistant")
    ]
    assert texts == said


@pytest.fixture
def spoiled(monkeypatch, tmp_path):
    """Put an exporter for TRL in place that does something after it wrote, or is checked otherwise."""

    def put(after=lambda written: written, **changes):
        exporter = EXPORTERS["trl"]
        changed = replace(exporter, write=lambda *arguments: after(exporter.write(*arguments)), **changes)
        monkeypatch.setattr(registry, "EXPORTERS", {"trl": changed})

    return put


def take_place(folder):
    folder.mkdir()
    (folder / "mine.txt").write_text("kept")


def test_an_export_is_never_written_over_not_even_one_that_appears_meanwhile(release, tmp_path, spoiled):
    take_place(tmp_path / "early")
    spoiled(lambda written: take_place(tmp_path / "late") or written)
    for name in ("early", "late"):
        with pytest.raises(ConfigError, match="there is something already"):
            export_release(release, tmp_path / name, "trl")
        assert [path.name for path in (tmp_path / name).iterdir()] == ["mine.txt"]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["early", "late"]


def fill_disk(written):
    raise OSError(errno.ENOSPC, "No space left on device")


@pytest.mark.parametrize(
    ("changes", "error", "message"),
    [
        ({"after": fill_disk}, Unavailable, "the disk is full"),
        (
            {"after": lambda written: replace(written, rows=written.rows - 1)},
            ConservationError,
            "18 rows released, 17 written",
        ),
    ],
)
def test_an_export_that_fails_loses_a_row_or_breaks_a_rule_leaves_nothing(
    release, tmp_path, spoiled, changes, error, message
):
    spoiled(**changes)
    with pytest.raises(error, match=message):
        export_release(release, tmp_path / "out", "trl")
    assert list(tmp_path.iterdir()) == []


def test_a_release_that_was_changed_is_refused(release, tmp_path):
    copy = tmp_path / "copy"
    shutil.copytree(release, copy)
    (copy / "ATTRIBUTION.tsv").chmod(0o644)
    (copy / "ATTRIBUTION.tsv").write_text("nobody")
    with pytest.raises(GateNotMet, match=r"ATTRIBUTION.tsv has changed"):
        export_release(copy, tmp_path / "out", "trl")


@pytest.mark.parametrize(
    ("to", "options", "reason"),
    [
        ("axolotl", {}, "trainer 'axolotl' is not known; known are llamafactory, ms-swift, trl, verl-sft"),
        ("trl", {"dialect": "mmsearch-r1"}, "leave the dialect as it is"),
        ("trl", {"dialect": "french"}, "dialect 'french'"),
        *(("llamafactory", {"name": name}, "it takes letters, digits") for name in ("a,b", "../x", "a b", "x" * 101)),
    ],
)
def test_options_that_no_trainer_could_use_are_refused(to, options, reason, release, tmp_path):
    with pytest.raises(ConfigError, match=reason):
        export_release(release, tmp_path / "out", to, ExportOptions(**options))
    assert not (tmp_path / "out").exists()
