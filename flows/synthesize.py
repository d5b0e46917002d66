"""The whole pipeline as a flow: the functions and the bytes of ``synth run``, with a task for each shard."""

from contextlib import closing
from pathlib import Path

from prefect import flow, unmapped
from prefect.futures import wait
from prefect.task_runners import ThreadPoolTaskRunner

from flows.tasks import THREADS, open_assembly, plan_run, run_shard, run_whole
from pipelines.cli.commands import finish_run, list_asked_roles, load_config
from pipelines.run.corpora import ensure_corpus
from pipelines.run.progress import SilentReporter
from pipelines.run.runner import PlannedStage, count_shards, list_pending_shards, seal_planned, select_stages
from pipelines.run.stage import RecordStage
from pipelines.run.workspace import Workspace
from pipelines.services.clients.serving import owned_servers


# Prefect's own thread runner is narrower in its future than the flow's parameter allows for.
@flow(name="synthesize", log_prints=True, task_runner=ThreadPoolTaskRunner(max_workers=THREADS))  # type: ignore[arg-type]
def synthesize(
    workspace: str = "workspace", recipe: str = "demo", settings: list[str] | None = None, until: str = ""
) -> list[str]:
    """Run a recipe in a workspace and return the releases' folders; what is done is not done again."""
    config = load_config(recipe, None, settings or [], 0)
    space = Workspace(Path(workspace).resolve())
    with space.claim():
        corpus, _ = ensure_corpus(config.corpus, space, SilentReporter(), config.runtime.workers)
        text, root, name = config.model_dump_json(), str(space.root), corpus.folder.name
        assembly = open_assembly(text, root, name)
        with closing(assembly):
            planned = list(plan_run(text, root, name).values())
            chosen = select_stages(planned, until, [])
            with owned_servers(config.models, list_asked_roles(config, chosen), space.logs):
                for plan in chosen:
                    if plan.folder.read_manifest() is None:
                        shards = submit_stage(plan, text, root, name)
                        seal_planned(plan, shards, assembly.corpus_entry)
            return [str(release.path) for release in finish_run(assembly, planned, chosen)[0]]


def submit_stage(plan: PlannedStage, config: str, workspace: str, corpus: str) -> int:
    """Run what is missing of a stage as tasks and return its number of shards."""
    if not isinstance(plan.stage, RecordStage):
        return run_whole(config, workspace, corpus, plan.name)
    fixed = [unmapped(value) for value in (config, workspace, corpus, plan.name)]
    futures = run_shard.map(*fixed, list_pending_shards(plan))
    wait(futures)
    futures.result()
    return count_shards(plan)
