"""``synth prune``: what nothing living needs, as a table, and gone."""

from collections.abc import Sequence
from pathlib import Path

from rich.box import SIMPLE_HEAD
from rich.console import Group
from rich.table import Column, Table
from rich.text import Text

from pipelines.cli.status import format_bytes
from pipelines.errors import ConfigError
from pipelines.run.pruning import Leftover, find_leftovers, remove_leftovers
from pipelines.run.workspace import Workspace


def prune_workspace(root: Path, apply: bool) -> list[Leftover]:
    """Return what nothing living needs in a workspace that no run holds, and remove it if ``apply``.

    Raises:
        ConfigError: if there is no such workspace, or a release in it cannot be read.
        CorruptInput: if a manifest is damaged.
        Unavailable: if a run holds the workspace.
    """
    if not root.is_dir():
        raise ConfigError(f"workspace {root}: no such folder; run `synth run` first")
    workspace = Workspace(root.resolve())
    with workspace.claim(holder="prune"):
        leftovers = find_leftovers(workspace)
        if apply:
            remove_leftovers(leftovers)
    return leftovers


def render_leftovers(leftovers: Sequence[Leftover], applied: bool) -> Group:
    """Return the table, and what was done or how to do it."""
    if not leftovers:
        return Group(Text("nothing to remove: everything here is needed"))
    number, size = Column("number", justify="right"), Column("size", justify="right", no_wrap=True)
    table = Table("kind", number, size, "why", box=SIMPLE_HEAD, padding=(0, 1, 0, 0))
    for found in leftovers:
        table.add_row(Text(found.kind), f"{len(found.paths):,}", format_bytes(found.bytes), Text(found.why))
    total = format_bytes(sum(found.bytes for found in leftovers))
    done = f"{total} removed" if applied else f"{total} would go; nothing is changed yet: say --yes"
    return Group(table, Text(done))
