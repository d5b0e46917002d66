"""``synth push`` on the console: the plan as a table, and leave to carry it out."""

from collections import Counter
from collections.abc import Callable
from pathlib import PurePosixPath
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.console import Group
from rich.table import Table
from rich.text import Text

from pipelines.cli.console import to_json
from pipelines.cli.status import format_bytes
from pipelines.errors import ConfigError
from pipelines.release.push import PushPlan


def describe_plan(plan: PushPlan) -> dict[str, Any]:
    """Return a plan as a JSON value, without the contents and digests of files."""
    shown = (
        "repo",
        "url",
        "private",
        "pull_request",
        "dataset",
        "version",
        "root",
        "changes",
        "same",
        "kept",
        "replaced",
        "parent",
        "tagged",
    )
    return {name: to_json(getattr(plan, name)) for name in shown}


def render_plan(plan: PushPlan) -> Group:
    """Return a plan as a table of its files by folder, with where it goes and what stays."""
    kind = "private" if plan.private else "public"
    place = f"{kind} repository" if plan.parent else f"new {kind} repository"
    way = "a pull request to" if plan.pull_request else "one commit to"
    title = Text(f"{plan.dataset} {plan.version}: {way} the {place} {plan.url}")
    table = Table("folder", "what", box=SIMPLE_HEAD)
    table.add_column("files", justify="right")
    table.add_column("size", justify="right")
    counts, sizes = Counter[tuple[str, str]](), Counter[tuple[str, str]]()
    for change in plan.changes:
        place_of = (PurePosixPath(change.path).parent.as_posix(), change.state)
        counts[place_of] += 1
        sizes[place_of] += change.bytes
    for folder, state in sorted(counts):
        table.add_row(Text(folder), state, str(counts[folder, state]), format_bytes(sizes[folder, state]))
    lines = [Text(f"overwritten, though not ours: {told}") for told in plan.replaced]
    size = sum(change.bytes for change in plan.changes if change.state != "deleted")
    lines.append(Text(f"{format_bytes(size)} to send."))
    lines.append(Text(f"{plan.same} files are there already; {plan.kept} others in the repository stay as they are."))
    lines.append(Text(f"root {plan.root}"))
    if plan.done:
        lines.append(Text(f"Nothing to send: tag {plan.tag} names commit {plan.tagged}."))
    return Group(title, table, *lines) if plan.changes else Group(title, *lines)


def check_approval(plan: PushPlan, yes: bool, ask: Callable[[str], bool] | None) -> None:
    """Return only if a plan may be carried out.

    Args:
        plan: what was shown.
        yes: whether that was said beforehand.
        ask: puts a question to the user; None where there is no terminal.

    Raises:
        ConfigError: if there is nobody to ask, or the answer was no.
    """
    if yes:
        return
    if ask is None:
        raise ConfigError("push: nothing was sent, for there is no terminal to ask in; say --yes to send it")
    if not ask(f"Send this to {plan.repo}?"):
        raise ConfigError("push: nothing was sent")
