"""The workspace: one run at a time, whole files only, and clear words when it cannot be used."""

import errno
import os
from contextlib import suppress
from pathlib import Path

import pytest

from pipelines.errors import ConfigError, Unavailable, WorkspaceBusy
from pipelines.files import TEMP_PREFIX, clear_temps, explain_os_error, replacing, write_text
from pipelines.run.workspace import Workspace


def test_two_runs_in_one_workspace_do_not_mix(tmp_path: Path) -> None:
    with (
        Workspace(tmp_path).claim(),
        pytest.raises(Unavailable, match="another run holds it"),
        Workspace(tmp_path).claim(),
    ):
        pass


def test_who_is_refused_learns_which_command_holds_the_workspace(tmp_path: Path) -> None:
    workspace = Workspace(tmp_path)
    assert workspace.read_holder() == ""
    with workspace.claim(holder="prune"):
        with pytest.raises(WorkspaceBusy), workspace.claim():
            pass
        assert workspace.read_holder() == "prune"
    with workspace.claim():
        assert workspace.read_holder() == "run"
    assert workspace.read_holder() == ""


def test_a_workspace_is_free_again_after_a_run(tmp_path: Path) -> None:
    for _ in range(2):
        with Workspace(tmp_path / "new").claim():
            assert (tmp_path / "new").is_dir()


def test_a_workspace_under_a_file_is_our_mistake(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ConfigError, match="workspace"), Workspace(tmp_path / "file" / "inside").claim():
        pass


def test_an_interrupted_write_leaves_the_old_file(tmp_path: Path) -> None:
    target = tmp_path / "rows"
    write_text(target, "old")
    with suppress(InterruptedError), replacing(target) as temp:
        temp.write_text("half")
        raise InterruptedError
    assert target.read_text() == "old"
    assert [path.name for path in tmp_path.iterdir()] == ["rows"]


def test_leftovers_of_a_killed_run_are_cleared(tmp_path: Path) -> None:
    (tmp_path / f"{TEMP_PREFIX}part-1").write_text("half")
    (tmp_path / f"{TEMP_PREFIX}folder").mkdir()
    clear_temps(tmp_path)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("number", "kind", "words"),
    [
        (errno.ENOSPC, Unavailable, "disk is full"),
        (errno.EROFS, ConfigError, "no permission"),
        (errno.ENOTDIR, ConfigError, "is not a folder"),
        (errno.EIO, Unavailable, "Input/output error"),
    ],
)
def test_an_operating_system_error_says_what_to_do(number: int, kind: type[Exception], words: str) -> None:
    explained = explain_os_error(OSError(number, os.strerror(number), "/some/file"), "run")
    assert isinstance(explained, kind)
    assert words in str(explained)


def test_latest_is_written_only_when_it_changes(tmp_path: Path) -> None:
    workspace = Workspace(tmp_path)
    workspace.note_latest({"seeds": "a"})
    before = (tmp_path / "latest.json").stat().st_mtime_ns
    workspace.note_latest({"seeds": "a"})
    assert (tmp_path / "latest.json").stat().st_mtime_ns == before
    assert workspace.read_latest() == {"seeds": "a"}
