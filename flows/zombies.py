"""Flow runs whose process is gone while Prefect still calls them running, such as those of a worker that was ended.

A run notes in its workspace who it is once it holds it. Whoever holds the workspace next knows thereby that the run
before it is over, whatever the server says; no clock, host name or tag is asked.
"""

import time
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
    closed = _close_noted(note, run)
    write_text(note, f"{run}\n")
    return closed


def close_left_run(workspace: Workspace) -> UUID | None:
    """Close the run that held a workspace last, unless the workspace is held."""
    try:
        with workspace.claim(holder="nightly"):
            return _close_noted(workspace.root / "flow-run.txt", None)
    except WorkspaceBusy:
        return None


def _close_noted(note: Path, successor: UUID | None) -> UUID | None:
    if (noted := _read_note(note)) is None:
        return None
    with get_client(sync_client=True) as client:
        if noted == successor or not _stays_live(client, noted):
            return None
        message = "Its process is gone; the next run of its workspace found this out."
        client.set_flow_run_state(noted, Crashed(message=message), force=True)
    return noted


def _read_note(note: Path) -> UUID | None:
    """Return the run that a file names; None if it names none, as a file that a lost disk left empty."""
    try:
        return UUID(note.read_text(encoding="ascii").strip())
    except (FileNotFoundError, ValueError):
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
