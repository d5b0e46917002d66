"""Deployments at a Prefect server: pools, limits and schedules, made so that a second time changes nothing.

No deployment has a concurrency limit: a run that died would hold the place for ever, and none would start again. Two
runs of one workspace are kept apart by the workspace; the second one is skipped.

Code is found by its module's name, so a clone and an installed wheel are deployed alike. ``synth deploy`` starts this
module as a process, because ``pipelines`` does not know Prefect.
"""

import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from httpx import HTTPError
from prefect import Flow
from prefect.client.orchestration import SyncPrefectClient, get_client
from prefect.client.schemas.actions import DeploymentScheduleCreate, WorkPoolCreate
from prefect.client.schemas.objects import DeploymentSchedule
from prefect.client.schemas.responses import DeploymentResponse
from prefect.client.schemas.schedules import CronSchedule
from prefect.exceptions import ObjectNotFound, PrefectHTTPStatusError
from prefect.settings import PREFECT_API_URL
from prefect.utilities.callables import parameter_schema
from pydantic import ValidationError

from flows.nightly import nightly
from flows.synthesize import synthesize
from pipelines.cli.console import emit_json, guarded
from pipelines.errors import ConfigError, Unavailable

POOLS = {"cpu": None, "gpu": 1, "parents": None}
"""Work pools with how many runs each starts at a time, unless the operator sets another limit. A run that waits for
others is started from ``parents``: in their pool it would hold the place that they wait for."""
STRETCHES = (("cpu", "seeds"), ("gpu", "trajectories"), ("cpu", ""))
"""A run in parts: the pool of each and its last stage. One part alone asks models, so a budget is that of the run."""
SLUG = "nightly"
"""Of the one schedule that is ours; the operator may add others."""
_Schedule = DeploymentSchedule | DeploymentScheduleCreate
START = """no Prefect server answers at {address}; start one and say where it is:
  prefect server start
  export PREFECT_API_URL=http://127.0.0.1:4200/api"""


@dataclass(frozen=True, slots=True)
class Request:
    """What ``synth deploy`` was asked for."""

    parameters: dict[str, Any]
    """Of the flow ``synthesize``."""
    directory: str
    """Where workers run it: relative paths of the configuration start here."""
    cron: str
    timezone: str
    name: str = ""
    """Set before the names of the deployments, for a server that runs several workspaces; empty for none."""
    split: bool = False
    """Whether the scheduled run is a parent that starts each part in its own pool."""


@dataclass(frozen=True, slots=True)
class Deployment:
    """A deployment as it should be."""

    flow: Flow[..., Any]
    name: str
    pool: str
    description: str
    parameters: dict[str, Any]
    schedules: list[DeploymentScheduleCreate] = field(default_factory=list)

    @property
    def full_name(self) -> str:
        """How Prefect's commands call it."""
        return f"{self.flow.name}/{self.name}"


def plan_deployments(request: Request) -> list[Deployment]:
    """Return the deployments of a workspace: the whole run, and the run in parts where that is scheduled."""
    prefix = f"{request.name}-" if request.name else ""
    schedule = DeploymentScheduleCreate(
        schedule=CronSchedule(cron=request.cron, timezone=request.timezone), slug=SLUG, active=True
    )
    given, said = request.parameters, "The whole run, in one process."
    whole = Deployment(synthesize, f"{prefix}nightly", "cpu", said, given, [] if request.split else [schedule])
    if not request.split:
        return [whole]
    stretches = [
        Deployment(
            synthesize, f"{prefix}{last}", pool, f"What is missing up to the stage {last}.", {**given, "until": last}
        )
        for pool, last in STRETCHES
        if pool != "cpu"
    ]
    places = {each.pool: each.full_name for each in (whole, *stretches)}
    parts = [[places[pool], last] for pool, last in STRETCHES]
    said, parameters = "The whole run in parts, each in its pool.", {"workspace": given["workspace"], "parts": parts}
    return [whole, *stretches, Deployment(nightly, f"{prefix}nightly", "parents", said, parameters, [schedule])]


def deploy(request: Request) -> dict[str, Any]:
    """Make what is missing or otherwise at the server, and say of each pool and deployment what was done.

    Raises:
        ConfigError: if the server refuses a value, such as a cron expression.
        Unavailable: if there is no server, or it fails.
    """
    address = PREFECT_API_URL.value()
    if not address:
        raise Unavailable(f"deploy: {START.format(address='PREFECT_API_URL, which is not set')}")
    try:
        deployments = plan_deployments(request)
        with get_client(sync_client=True) as client:
            pools = {name: _ensure_pool(client, name, limit) for name, limit in POOLS.items()}
            made = {entry.full_name: _ensure_deployment(client, entry, request.directory) for entry in deployments}
    except PrefectHTTPStatusError as error:
        raise Unavailable(f"deploy: {address} refused: {error}") from error
    except (HTTPError, RuntimeError) as error:
        raise Unavailable(f"deploy: {START.format(address=address)}") from error
    except ValidationError as error:
        said = "; ".join(each["msg"] for each in error.errors())
        raise ConfigError(f"deploy: --cron {request.cron!r} --timezone {request.timezone}: {said}") from error
    return {"server": address, "pools": pools, "deployments": made, "directory": request.directory}


def _ensure_pool(client: SyncPrefectClient, name: str, limit: int | None) -> str:
    try:
        pool = client.read_work_pool(name)
    except ObjectNotFound:
        client.create_work_pool(WorkPoolCreate(name=name, type="process", concurrency_limit=limit))
        return "made"
    if pool.type != "process":
        raise ConfigError(f"deploy: the work pool {name} is of the type {pool.type}, not process")
    # Its limit is the operator's from now on.
    return "unchanged"


def _find_deployment(client: SyncPrefectClient, name: str) -> DeploymentResponse | None:
    try:
        return client.read_deployment_by_name(name)
    except ObjectNotFound:
        return None


def _ensure_deployment(client: SyncPrefectClient, entry: Deployment, directory: str) -> str:
    wanted: dict[str, Any] = {
        "entrypoint": f"{entry.flow.fn.__module__}.{entry.flow.fn.__name__}",
        "work_pool_name": entry.pool,
        "description": entry.description,
        "parameters": entry.parameters,
        "tags": ["synth"],
        "pull_steps": [{"prefect.deployments.steps.set_working_directory": {"directory": directory}}],
        "parameter_openapi_schema": parameter_schema(entry.flow).model_dump(mode="json", exclude_unset=True),
        "enforce_parameter_schema": True,
    }
    done, schedules, paused = "made", entry.schedules, None
    if (found := _find_deployment(client, entry.full_name)) is not None:
        there = found.model_dump(mode="json", include=set(wanted))
        if there == wanted and _list_crons(found.schedules) == _list_crons(entry.schedules):
            return "unchanged"
        done, schedules, paused = "changed", _join_schedules(entry.schedules, found.schedules), found.paused
    # What was there is replaced, with its schedules.
    client.create_deployment(
        client.create_flow_from_name(entry.flow.name), entry.name, schedules=schedules, paused=paused, **wanted
    )
    return done


def _list_crons(schedules: Sequence[_Schedule]) -> list[tuple[Any, Any]]:
    """Return time and time zone of the schedule that is ours; whether it is active is the operator's."""
    times = [entry.schedule for entry in schedules if entry.slug == SLUG]
    return [(getattr(time, "cron", None), getattr(time, "timezone", None)) for time in times]


def _join_schedules(
    own: Sequence[DeploymentScheduleCreate], there: Sequence[DeploymentSchedule]
) -> list[DeploymentScheduleCreate]:
    """Return our schedules, inactive where the operator made them so, and those that he added."""
    is_active = all(entry.active for entry in there if entry.slug == SLUG)
    kept = {"schedule", "active", "max_scheduled_runs", "parameters", "slug"}
    return [entry.model_copy(update={"active": is_active}) for entry in own] + [
        DeploymentScheduleCreate(**entry.model_dump(include=kept)) for entry in there if entry.slug != SLUG
    ]


def main() -> None:
    """Deploy what the one argument asks for, in JSON, and print what was done, in JSON."""
    guarded(lambda: emit_json(deploy(Request(**json.loads(sys.argv[1])))), ["deploy"])


if __name__ == "__main__":
    main()
