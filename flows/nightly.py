"""A run in parts: each part is a run of ``synthesize`` in the pool that has what it needs."""

from pathlib import Path
from typing import Any

from prefect import flow
from prefect.client.schemas.objects import FlowRun, State
from prefect.deployments import run_deployment
from prefect.states import Failed

from flows.zombies import close_left_run
from pipelines.run.workspace import Workspace


@flow(name="nightly")
def nightly(workspace: str, parts: list[tuple[str, str]]) -> State[Any] | None:
    """Run the parts one after the other; those after one that fails are not run.

    Args:
        workspace: of the parts.
        parts: the deployment of each and the last stage that it makes; an empty one for all.

    Returns:
        The state of the part that failed, as this run's own.
    """
    # A run that died in the pool of a later part would hold its place.
    close_left_run(Workspace(Path(workspace)))
    for deployment, until in parts:
        run = run_deployment(deployment, parameters={"until": until}, timeout=None)
        assert isinstance(run, FlowRun)
        assert run.state is not None
        if not run.state.is_completed():
            said = f"{run.name} of {deployment} up to {until or 'the end'}: {run.state.message}"
            return Failed(name=run.state.name, message=said)
    return None
