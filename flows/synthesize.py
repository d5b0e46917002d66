"""The whole pipeline as a flow: the functions and the bytes of ``synth run``, with a task for each shard.

Manifests decide what is done, so Prefect caches nothing and stores no results.
"""

import asyncio
from contextlib import closing
from pathlib import Path
from typing import Any

from prefect import flow, task
from prefect.cache_policies import NO_CACHE
from prefect.utilities.annotations import quote

from pipelines.cli.commands import finish_run, list_asked_roles, load_config
from pipelines.errors import BudgetSpent, ConfigError, ConservationError, GateNotMet
from pipelines.run.assembly import Assembly
from pipelines.run.corpora import ensure_corpus
from pipelines.run.progress import SilentReporter
from pipelines.run.runner import (
    PlannedStage,
    count_shards,
    find_last,
    list_pending_shards,
    list_sources,
    run_planned_whole,
    seal_planned,
    select_stages,
    watching_replies,
    write_record_shards,
)
from pipelines.run.stage import RecordStage
from pipelines.run.stopping import heeding_signals
from pipelines.run.workspace import Workspace
from pipelines.services.clients.serving import owned_servers

SHARDS = 2
"""Shards of one stage at a time; records in flight within a shard are those of its stage."""
_FINAL = (BudgetSpent, ConfigError, ConservationError, GateNotMet)
"""Errors that another try of a task would only meet again."""


@flow(name="synthesize", log_prints=True)
def synthesize(
    workspace: str = "workspace",
    recipe: str = "",
    settings: list[str] | None = None,
    until: str = "",
    configs: list[str] | None = None,
    models: str = "",
) -> list[str]:
    """Run a recipe in a workspace and return the releases' folders; stages and shards that are done are skipped."""
    config = load_config(
        recipe, [Path(path) for path in configs or []], settings or [], (), models, find_last(until, [])
    )
    space = Workspace(Path(workspace).resolve())
    with space.claim():
        corpus, _ = ensure_corpus(config.corpus, space, SilentReporter(), config.runtime.workers)
        with closing(Assembly(config, space, corpus)) as assembly:
            planned = assembly.plan_stages(until)
            chosen = select_stages(planned, until, [])
            with owned_servers(config.models, list_asked_roles(config, chosen), space.logs):
                for plan in chosen:
                    if plan.folder.read_manifest() is None:
                        shards = submit_stage(plan, config.runtime.shard_rows)
                        seal_planned(plan, shards, assembly.corpus_entry)
            releases, _, nothing = finish_run(assembly, planned, chosen)
    if nothing:
        raise GateNotMet(nothing)
    return [str(release.path) for release in releases]


def submit_stage(plan: PlannedStage, shard_rows: int) -> int:
    """Run what is missing of a stage as tasks and return its number of shards."""
    if not isinstance(plan.stage, RecordStage):
        return run_whole(_quote(plan), shard_rows)
    with heeding_signals():
        # Prefect's own handler of SIGTERM would raise amid the loop, and requests in flight would be paid for nothing.
        asyncio.run(_run_pending(plan))
    return count_shards(plan)


def _quote(plan: PlannedStage) -> Any:  # noqa: ANN401 - the task gets the plan itself
    """Hide a plan from Prefect, which would walk through all of it in search of futures."""
    return quote(plan)


async def _run_pending(plan: PlannedStage) -> None:
    """Run the missing shards; the first error is raised after all of them have ended."""
    places = asyncio.Semaphore(SHARDS)

    async def run(shard: int) -> None:
        async with places:
            await run_shard(_quote(plan), shard)

    outcomes = await asyncio.gather(*map(run, list_pending_shards(plan)), return_exceptions=True)
    for outcome in outcomes:
        if isinstance(outcome, BaseException):
            raise outcome


def is_worth_another_try(_task: object, _run: object, state: Any) -> bool:  # noqa: ANN401 - Prefect's own state
    """Whether a task that failed may succeed when it is tried again."""
    return not isinstance(state.data, _FINAL)


@task(
    cache_policy=NO_CACHE,
    persist_result=False,
    retries=2,
    retry_delay_seconds=[1, 5],
    retry_condition_fn=is_worth_another_try,
    task_run_name="{plan.name}-{shard:05d}",
)
async def run_shard(plan: PlannedStage, shard: int) -> None:
    """Run one shard of a record stage on the loop of its stage."""
    assert isinstance(plan.stage, RecordStage)
    with watching_replies(plan):
        await write_record_shards(plan.stage, plan.folder, list_sources(plan, [shard]), plan.in_flight)


@task(cache_policy=NO_CACHE, persist_result=False, retries=0, task_run_name="{plan.name}-whole")
def run_whole(plan: PlannedStage, shard_rows: int) -> int:
    """Run a stage that sees its whole dataset; return its number of shards."""
    return run_planned_whole(plan, shard_rows)
