"""The one task: a shard of a stage. Manifests decide what is done, so Prefect caches nothing and stores no results."""

from functools import lru_cache
from pathlib import Path
from threading import get_ident

from prefect import task
from prefect.cache_policies import NO_CACHE

from pipelines.assembly import Assembly
from pipelines.config import RunConfig
from pipelines.corpus.store import Corpus
from pipelines.runs import PlannedStage, run_planned_shards, run_planned_whole
from pipelines.workspace import Workspace

THREADS = 2
"""Shards of one stage at a time in a process; requests in flight within a shard are ``runtime.concurrency``."""


def open_assembly(config: str, workspace: str, corpus: str) -> Assembly:
    """Build a run's parts once a thread; a worker gets text and paths, never rows or open files."""
    return _open_in_thread(config, workspace, corpus, get_ident())


# A corpus's search index is an SQLite connection, which may not leave its thread, and the runner's threads are not the
# flow's.
@lru_cache(maxsize=THREADS + 1)
def _open_in_thread(config: str, workspace: str, corpus: str, thread: int) -> Assembly:
    space = Workspace(Path(workspace))
    return Assembly(RunConfig.model_validate_json(config), space, Corpus.open(space.corpora / corpus))


def plan_run(config: str, workspace: str, corpus: str) -> dict[str, PlannedStage]:
    """Return the stages of a run by name."""
    return _plan_in_thread(config, workspace, corpus, get_ident())


@lru_cache(maxsize=THREADS + 1)
def _plan_in_thread(config: str, workspace: str, corpus: str, thread: int) -> dict[str, PlannedStage]:
    return {plan.name: plan for plan in _open_in_thread(config, workspace, corpus, thread).plan_stages()}


@task(
    cache_policy=NO_CACHE,
    persist_result=False,
    retries=2,
    retry_delay_seconds=[1, 5],
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
