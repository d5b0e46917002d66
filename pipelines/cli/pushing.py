"""``synth push`` on the console: the plans, leave to carry them out, and receipts."""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import fields
from pathlib import Path, PurePosixPath
from typing import Any

from pipelines.cli.console import emit, emit_json, to_json
from pipelines.cli.status import format_bytes
from pipelines.errors import ConfigError
from pipelines.release.manifest import read_release_manifest
from pipelines.release.push import PushOptions, PushPlan, carry_out, plan_push


def push_all(
    releases: Sequence[Path],
    repo: str,
    options: PushOptions,
    approve: Callable[[str], None] | None,
    as_json: bool,
) -> None:
    """Show the plan of each release and, once they are approved, push one after the other.

    As JSON a release that was sent, also before an error, is its receipt, any other its plan. Without ``approve``
    nothing is sent.
    """
    counts = Counter(read_release_manifest(release).dataset for release in releases)
    if twice := [dataset for dataset, count in counts.items() if count > 1]:
        raise ConfigError(f"push: two releases of {twice[0]} are named; a repository holds one, others by their tags")
    if options.pull_request and len(releases) > 1:
        raise ConfigError("push: --pr takes one release; push the next once that pull request is merged")
    plans = [plan_push(release, repo, options=options) for release in releases]
    for line in (line for plan in plans for line in describe_plan(plan) if not as_json):
        emit(line)
    told = [_show_plan(plan) for plan in plans]
    waiting = [place for place, plan in enumerate(plans) if not plan.done]
    try:
        if waiting and approve is not None:
            approve(repo)
            for place in waiting:
                # Planned anew: the release before has changed the repository.
                receipt = carry_out(plan_push(releases[place], repo, options=options))
                told[place] = to_json(receipt)
                if not as_json:
                    emit(f"{receipt.url}: commit {receipt.commit} {receipt.tag}")
    finally:
        if as_json:
            emit_json(told[0] if len(told) == 1 else told)


def _show_plan(plan: PushPlan) -> dict[str, Any]:
    hidden = ("contents", "expected")
    return {each.name: to_json(getattr(plan, each.name)) for each in fields(plan) if each.name not in hidden}


def describe_plan(plan: PushPlan) -> Iterator[str]:
    """Yield a plan in lines: where it goes, its files by folder, and what stays."""
    kind = f"{'' if plan.parent else 'new '}{'private' if plan.private else 'public'} repository"
    way = "a pull request to" if plan.pull_request else "one commit to"
    yield f"{plan.dataset} {plan.version}: {way} the {kind} {plan.url}"
    counts, sizes = Counter[tuple[str, str]](), Counter[tuple[str, str]]()
    for change in plan.changes:
        place = (PurePosixPath(change.path).parent.as_posix(), change.state)
        counts[place] += 1
        sizes[place] += change.bytes
    for folder, state in sorted(counts):
        told = f"{counts[folder, state]} files, {format_bytes(sizes[folder, state])}"
        yield f"  {state} in {folder}: {told}"
    yield from (f"  overwritten, though not ours: {told}" for told in plan.replaced)
    yield f"  {plan.same} files are there already; {plan.kept} others in the repository stay as they are"
    yield f"  root {plan.root}"
    if plan.done:
        yield f"  Nothing to send: tag {plan.tag} names commit {plan.tagged}."


def check_approval(repo: str, yes: bool, ask: Callable[[str], bool] | None) -> None:
    """Return only if sending is approved: by ``yes``, or by ``ask``, which is None where there is no terminal."""
    if yes:
        return
    if ask is None:
        raise ConfigError("push: nothing was sent, for there is no terminal to ask in; say --yes to send it")
    if not ask(f"Send this to {repo}?"):
        raise ConfigError("push: nothing was sent")
