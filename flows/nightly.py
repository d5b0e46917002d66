"""A run in parts: each part is a run of ``synthesize`` in the pool that has what it needs."""

from pathlib import Path

from prefect import flow
from prefect.client.schemas.objects import FlowRun
from prefect.deployments import run_deployment

from flows.zombies import close_left_runs
from pipelines.errors import GateNotMet
from pipelines.run.workspace import Workspace


@flow(name="nightly")
def nightly(workspace: str, parts: list[tuple[str, str]]) -> None:
    """Run the parts one after the other.

    Args:
        workspace: of the parts.
        parts: the deployment of each and the last stage that it makes; an empty one for all.

    Raises:
        GateNotMet: if a part does not complete; those after it are not run.
    """
    # A run that died in the pool of a later part would hold its place.
    close_left_runs(Workspace(Path(workspace)))
    for deployment, until in parts:
        run = run_deployment(deployment, parameters={"until": until}, timeout=None)
        assert isinstance(run, FlowRun)
        if run.state is None or not run.state.is_completed():
            raise GateNotMet(f"{deployment} up to {until or 'the end'}: {run.state}")
