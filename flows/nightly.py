"""A run in parts: each part is a run of ``synthesize`` in the pool that has what it needs."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any
from uuid import UUID

from prefect import flow
from prefect.client.schemas.objects import FlowRun, State
from prefect.deployments import run_deployment
from prefect.runtime import flow_run
from prefect.states import Completed, Failed

from flows.synthesize import SKIPPED
from flows.zombies import close_left_run, hold_parent
from pipelines.run.workspace import Workspace


@flow(name="nightly")
def nightly(workspace: str, parts: list[tuple[str, str]]) -> State[Any] | None:
    """Run the parts one after the other; those after one that fails or is skipped are not run.

    Args:
        workspace: of the parts.
        parts: the deployment of each and the last stage that it makes; an empty one for all.

    Returns:
        The state of the part that failed or was skipped, as this run's own.
    """
    here, parent = Workspace(Path(workspace)), UUID(str(flow_run.id))
    with hold_parent(here, parent) as is_alone:
        if not is_alone:
            return Completed(name=SKIPPED, message=f"another run in parts of workspace {workspace} is under way")
        # A run that died in the pool of a later part would hold its place.
        close_left_run(here)
        return run_parts(parts, start_part)


def start_part(deployment: str, until: str) -> FlowRun:
    """Run a deployment up to a stage and return its run when it is over."""
    run = run_deployment(deployment, parameters={"until": until}, timeout=None)
    assert isinstance(run, FlowRun)
    return run


def run_parts(parts: Sequence[tuple[str, str]], start: Callable[[str, str], FlowRun]) -> State[Any] | None:
    """Run the parts up to the first that does not make what it is to make, and return the state that says so."""
    for deployment, until in parts:
        run = start(deployment, until)
        assert run.state is not None
        said = f"{run.name} of {deployment} up to {until or 'the end'}: {run.state.message}"
        if not run.state.is_completed():
            return Failed(name=run.state.name, message=said)
        if run.state.name == SKIPPED:
            # Another run makes all of it; the next part would be skipped, or run beside what it needs.
            return Completed(name=SKIPPED, message=said)
    return None
