"""``synth prune``: what nothing living needs, as a table, and gone."""

from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.console import Group
from rich.table import Column, Table
from rich.text import Text

from pipelines.cli.console import to_json
from pipelines.cli.plan import find_built_corpus, read_rounds
from pipelines.cli.status import format_bytes
from pipelines.config.loading import make_config
from pipelines.config.settings import RunConfig
from pipelines.corpus.store import Corpus
from pipelines.errors import ConfigError
from pipelines.run.assembly import Assembly
from pipelines.run.naming import KeptRun, list_kept
from pipelines.run.pruning import Kind, Leftover, StageKey, find_leftovers, find_living, remove_leftovers
from pipelines.run.workspace import Workspace


def prune_workspace(root: Path, keep: RunConfig | None, named: Sequence[Kind], apply: bool) -> list[Leftover]:
    """Return what nothing living needs, and remove what goes of it if ``apply``.

    Args:
        root: the workspace. No run may hold it.
        keep: a configuration that is living beside that of the last run; None for no other.
        named: which of the costly kinds go, too.
        apply: remove; otherwise nothing is changed.

    Raises:
        ConfigError: if there is no such workspace, or a release in it cannot be read.
        CorruptInput: if a manifest, a part or the store of replies is damaged.
        Unavailable: if a run holds the workspace.
    """
    if not root.is_dir():
        raise ConfigError(f"workspace {root}: no such folder; run `synth run` first")
    workspace = Workspace(root.resolve())
    more = list_stage_keys(keep, workspace) if keep else []
    more += [key for run in list_kept(workspace) for key in list_kept_keys(run)]
    with workspace.claim(holder="prune"):
        leftovers = find_leftovers(workspace, find_living(workspace, more), named)
        if apply:
            remove_leftovers(workspace, leftovers)
    return leftovers


def list_stage_keys(config: RunConfig, workspace: Workspace, last: str = "") -> list[StageKey]:
    """Return the corpus and the stages, with their keys, that a run by a configuration would use up to a stage or all.

    Raises:
        ConfigError: if its corpus is not built here, so that it has no stages here either.
    """
    folder = find_built_corpus(config, workspace)
    if folder is None:
        raise ConfigError(f"prune: the workspace has no corpus of recipe {config.recipe} that could be kept")
    with closing(Corpus.open(folder)) as corpus, closing(Assembly(config, workspace, corpus)) as assembly:
        # What a later round draws is read from the rounds before it.
        earlier = read_rounds(assembly).keys if config.targets.wanted else []
        planned = [] if last == "corpus" else assembly.plan_stages(last)
        return [("corpus", folder.name), *earlier, *((plan.name, plan.key) for plan in planned)]


def list_kept_keys(run: KeptRun) -> list[StageKey]:
    """Return what a kept run would use, so that what it made before it was stopped stays; nothing without a corpus.

    It is planned whole: what it made stays its own when it is then run up to an earlier stage. A run that lacks models
    for all stages can have made only those up to its last one.

    Raises:
        ConfigError: if its configuration cannot be read any more, so that nobody knows what it needs.
    """
    refusal: ConfigError | None = None
    for last in dict.fromkeys(("", run.note.last)):
        try:
            config = make_config(run.read_tables(), (), last)
            is_built = find_built_corpus(config, run.workspace) is not None
            return list_stage_keys(config, run.workspace, last) if is_built else []
        except ConfigError as error:
            refusal = error
    raise ConfigError(
        f"prune: run {run.name} cannot be planned, so what it needs is not known ({refusal}); mend it, or say "
        f"`synth runs --forget {run.name}`"
    ) from refusal


def describe_leftovers(leftovers: Sequence[Leftover]) -> list[dict[str, Any]]:
    """Return what was found as a JSON value."""
    shown = ("kind", "name", "number", "bytes", "why", "goes", "paths")
    return [{name: to_json(getattr(found, name)) for name in shown} for found in leftovers]


def render_leftovers(leftovers: Sequence[Leftover], applied: bool) -> Group:
    """Return the table, and what was done or how to do it."""
    if not leftovers:
        return Group(Text("nothing to remove: everything here is needed"))
    number, size = Column("number", justify="right"), Column("size", justify="right", no_wrap=True)
    table = Table("kind", number, size, "why", box=SIMPLE_HEAD, padding=(0, 1, 0, 0))
    for found in leftovers:
        kind = found.kind if found.name == found.kind else f"{found.kind}: {found.name}"
        why = found.why if found.goes else f"stays: {found.why}"
        table.add_row(Text(kind), f"{found.number:,}", format_bytes(found.bytes), Text(why))
    total = format_bytes(sum(found.bytes for found in leftovers if found.goes))
    done = f"{total} removed" if applied else f"{total} would go; nothing is changed yet: say --yes"
    return Group(table, Text(done))
