"""The one task: a shard of a stage. Manifests decide what is done, so Prefect caches nothing and stores no results."""

from functools import lru_cache
from pathlib import Path
from threading import Lock, get_ident
from typing import Any

from prefect import task
from prefect.cache_policies import NO_CACHE
from prefect.runtime import flow_run

from pipelines.config.settings import RunConfig
from pipelines.corpus.store import Corpus
from pipelines.errors import BudgetSpent, ConfigError, ConservationError, GateNotMet
from pipelines.run.assembly import Assembly
from pipelines.run.models import Roles
from pipelines.run.runner import PlannedStage, run_planned_shards, run_planned_whole
from pipelines.run.workspace import Workspace

THREADS = 2
"""Shards of one stage at a time in a process; requests in flight within a shard are ``runtime.concurrency``."""
_FINAL = (BudgetSpent, ConfigError, ConservationError, GateNotMet)
"""What another try of a task would only meet again."""
_opening = Lock()


def open_assembly(config: str, workspace: str, corpus: str) -> Assembly:
    """Build a run's parts once a thread; a worker gets text and paths, never rows or open files."""
    return _open_in_thread(config, workspace, corpus, str(flow_run.id), get_ident())


# A corpus's search index is an SQLite connection, which may not leave its thread, and the runner's threads are not the
# flow's.
@lru_cache(maxsize=THREADS + 1)
def _open_in_thread(config: str, workspace: str, corpus: str, run: str, thread: int) -> Assembly:
    space = Workspace(Path(workspace))
    assembly = Assembly(RunConfig.model_validate_json(config), space, Corpus.open(space.corpora / corpus))
    with _opening:
        assembly.roles = open_roles(config, workspace, run)
    return assembly


@lru_cache(maxsize=1)
def open_roles(config: str, workspace: str, run: str) -> Roles:
    """Return the models of one flow run: its threads share their connections and limits, the budget and the store."""
    return Roles(RunConfig.model_validate_json(config), Workspace(Path(workspace)))


def plan_run(config: str, workspace: str, corpus: str) -> dict[str, PlannedStage]:
    """Return the stages of a run by name."""
    return _plan_in_thread(config, workspace, corpus, str(flow_run.id), get_ident())


@lru_cache(maxsize=THREADS + 1)
def _plan_in_thread(config: str, workspace: str, corpus: str, run: str, thread: int) -> dict[str, PlannedStage]:
    return {plan.name: plan for plan in _open_in_thread(config, workspace, corpus, run, thread).plan_stages()}


def is_worth_another_try(_task: object, _run: object, state: Any) -> bool:  # noqa: ANN401 - Prefect's own state
    """Whether a task that failed may fare better when it is tried again."""
    return not isinstance(state.result(raise_on_failure=False), _FINAL)


@task(
    cache_policy=NO_CACHE,
    persist_result=False,
    retries=2,
    retry_delay_seconds=[1, 5],
    retry_condition_fn=is_worth_another_try,
    task_run_name="{stage}-{shard:05d}",
)
def run_shard(config: str, workspace: str, corpus: str, stage: str, shard: int) -> None:
    """Run one shard of a record stage."""
    plan = plan_run(config, workspace, corpus)[stage]
    run_planned_shards(plan, [shard], RunConfig.model_validate_json(config).runtime.concurrency)


@task(cache_policy=NO_CACHE, persist_result=False, retries=0, task_run_name="{stage}-whole")
def run_whole(config: str, workspace: str, corpus: str, stage: str) -> int:
    """Run a stage that sees its whole dataset; return its number of shards."""
    plan = plan_run(config, workspace, corpus)[stage]
    return run_planned_whole(plan, RunConfig.model_validate_json(config).runtime.shard_rows)
