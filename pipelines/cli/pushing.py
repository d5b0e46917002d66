"""``synth push`` on the console: the plans as tables, and leave to carry them out."""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import fields
from pathlib import Path, PurePosixPath
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.console import Group
from rich.table import Table
from rich.text import Text

from pipelines.cli.console import emit, emit_json, emit_table, to_json
from pipelines.cli.status import format_bytes
from pipelines.errors import ConfigError
from pipelines.release.manifest import read_release_manifest
from pipelines.release.push import PushOptions, PushPlan, carry_out, plan_push

UNASKED = "push: nothing was sent, for there is no terminal to ask in; say --yes to send it"


def push_all(
    releases: Sequence[Path],
    repo: str,
    options: PushOptions,
    approve: Callable[[PushPlan], None] | None,
    as_json: bool,
) -> None:
    """Show the plan of each release and, once they are approved, push one after the other.

    As JSON a release that was sent, also before an error, is its receipt, any other its plan. Without ``approve``
    nothing is sent.

    Raises:
        ConfigError: if two are of one dataset, each would be a pull request that knows nothing of the others, or as
            ``approve`` and :func:`pipelines.release.push.plan_push`.
    """
    counts = Counter(read_release_manifest(release).dataset for release in releases)
    if twice := [dataset for dataset, count in counts.items() if count > 1]:
        raise ConfigError(f"push: two releases of {twice[0]} are named; a repository holds one, others by their tags")
    if options.pull_request and len(releases) > 1:
        raise ConfigError("push: --pr takes one release; push the next once that pull request is merged")
    plans = [plan_push(release, repo, options=options) for release in releases]
    if not as_json:
        emit_table(Group(*map(render_plan, plans)))
    told = [describe_plan(plan) for plan in plans]
    waiting = [place for place, plan in enumerate(plans) if not plan.done]
    try:
        if waiting and approve is not None:
            approve(plans[waiting[0]])
            for place in waiting:
                # Planned anew: the release before has changed the repository.
                receipt = carry_out(plan_push(releases[place], repo, options=options))
                told[place] = to_json(receipt)
                if not as_json:
                    emit(f"{receipt.url}: commit {receipt.commit} {receipt.tag}")
    finally:
        # Also report what was sent before an error.
        if as_json:
            emit_json(told[0] if len(told) == 1 else told)


def describe_plan(plan: PushPlan) -> dict[str, Any]:
    """Return a plan as a JSON value, without the contents and digests of files."""
    hidden = ("contents", "expected")
    return {each.name: to_json(getattr(plan, each.name)) for each in fields(plan) if each.name not in hidden}


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

    ``yes`` approves beforehand; ``ask`` puts a question to the user and is None where there is no terminal.

    Raises:
        ConfigError: if there is nobody to ask, or the answer was no.
    """
    if yes:
        return
    if ask is None:
        raise ConfigError(UNASKED)
    if not ask(f"Send this to {plan.repo}?"):
        raise ConfigError("push: nothing was sent")
