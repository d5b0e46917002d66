"""Flow runs whose process is gone while Prefect still calls them running, such as those of a worker that was ended.

A run notes in its workspace who it is once it holds it. The next holder of the workspace thereby knows that the run
before it is over, whatever the server says; no clock, host name or tag is asked. A parent of runs in parts does not
hold the workspace and locks a file of its own.
"""

import fcntl
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from uuid import UUID

from prefect.client.orchestration import SyncPrefectClient, get_client
from prefect.exceptions import ObjectNotFound
from prefect.states import Crashed

from pipelines.errors import WorkspaceBusy
from pipelines.files import write_text
from pipelines.run.workspace import Workspace

SETTLING = 10.0
"""Seconds in which a run that has just let go of its workspace may still say itself how it ended."""
PARENT = ".nightly"
"""File that the parent of runs in parts locks; it holds the parent's flow run."""
LIVE = ("RUNNING", "PENDING", "CANCELLING")


def succeed(workspace: Workspace, run: UUID) -> UUID | None:
    """Note that this run holds the workspace, and close the one that held it before, if that never said how it ended.

    Args:
        workspace: held by the caller.
        run: id of the flow run.

    Returns:
        The run that was closed.
    """
    note = workspace.root / "flow-run.txt"
    closed = _close(_read_note(note), run)
    write_text(note, f"{run}\n")
    return closed


def close_left_run(workspace: Workspace) -> UUID | None:
    """Close the run that held a workspace last, unless the workspace is held."""
    try:
        with workspace.claim(holder="nightly"):
            noted = _read_note(workspace.root / "flow-run.txt")
    except WorkspaceBusy:
        return None
    # Without the claim: the server may be asked for a while, and a run that begins meanwhile would find it held.
    return _close(noted, None)


@contextmanager
def hold_parent(workspace: Workspace, run: UUID) -> Iterator[bool]:
    """Be the one parent of runs in parts of a workspace, and close the one before it whose process died.

    Args:
        workspace: of the runs; it is not held by a parent.
        run: id of the parent's flow run.

    Yields:
        Whether there is no other parent.
    """
    workspace.root.mkdir(parents=True, exist_ok=True)
    with (workspace.root / PARENT).open("a+", encoding="ascii", errors="replace") as note:
        try:
            fcntl.flock(note.fileno(), fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield False
            return
        except OSError:
            # A file system that locks no files does not tell whether the one before it lives.
            yield True
            return
        note.seek(0)
        _close(_parse_note(note.read()), run)
        note.truncate(0)
        note.write(f"{run}\n")
        note.flush()
        yield True


def _close(noted: UUID | None, successor: UUID | None) -> UUID | None:
    if noted is None or noted == successor:
        return None
    with get_client(sync_client=True) as client:
        if not _stays_live(client, noted):
            return None
        message = "Its process is gone; the next run of its workspace found this out."
        client.set_flow_run_state(noted, Crashed(message=message), force=True)
    return noted


def _read_note(note: Path) -> UUID | None:
    return _parse_note(note.read_text(encoding="ascii", errors="replace")) if note.is_file() else None


def _parse_note(text: str) -> UUID | None:
    """Return the run that a note names; None if it names none, as a file that a crash of the host left empty."""
    try:
        return UUID(text.strip())
    except ValueError:
        return None


def _stays_live(client: SyncPrefectClient, run: UUID) -> bool:
    """Return whether the server goes on calling a run live."""
    until = time.monotonic() + SETTLING
    while True:
        try:
            state = client.read_flow_run(run).state
        except ObjectNotFound:
            # The workspace was run under another server.
            return False
        if state is None or state.type.value not in LIVE:
            return False
        if time.monotonic() > until:
            return True
        time.sleep(0.5)
