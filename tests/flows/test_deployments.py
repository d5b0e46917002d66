"""What is deployed where, and what is scheduled."""

from types import SimpleNamespace
from typing import Any
from uuid import uuid4

import pytest

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")


def plan(**more: object):
    from flows.deployments import Request, plan_deployments

    given = {"parameters": {"workspace": "/srv/wiki"}, "directory": "/srv", "cron": "0 2 * * *", "timezone": "UTC"}
    return {entry.full_name: entry for entry in plan_deployments(Request(**given, **more))}


@pytest.mark.parametrize(("split", "scheduled"), [(False, "synthesize/nightly"), (True, "nightly/nightly")])
def test_one_deployment_is_scheduled(split, scheduled):
    assert [name for name, entry in plan(split=split).items() if entry.schedules] == [scheduled]


def test_parts_lie_in_the_pools_of_their_stages_and_the_last_one_makes_everything():
    from flows.deployments import POOLS, STRETCHES

    entries = plan(split=True, name="wiki")
    parts = entries["nightly/wiki-nightly"].parameters["parts"]
    assert [(entries[deployment].pool, until) for deployment, until in parts] == list(STRETCHES)
    assert parts[-1][1] == ""
    assert {entry.pool for entry in entries.values()} == set(POOLS)


def test_two_workspaces_of_one_server_have_names_of_their_own():
    assert plan(name="wiki").keys().isdisjoint(plan(name="other"))


class Client:
    """A server that holds deployments and pools, as far as deploying asks it."""

    def __init__(self) -> None:
        self.deployments: dict[str, Any] = {}
        self.pools: dict[str, Any] = {}

    def read_work_pool(self, name: str) -> Any:
        if name not in self.pools:
            raise not_found()
        return self.pools[name]

    def create_work_pool(self, pool: Any) -> None:
        self.pools[pool.name] = pool

    def create_flow_from_name(self, name: str) -> str:
        return name

    def read_deployment_by_name(self, name: str) -> Any:
        if name not in self.deployments:
            raise not_found()
        return self.deployments[name]

    def create_deployment(self, flow: str, name: str, schedules: Any, paused: bool | None, **values: Any) -> None:
        from prefect.client.schemas.objects import DeploymentSchedule
        from prefect.client.schemas.responses import DeploymentResponse

        made = [DeploymentSchedule(**entry.model_dump(exclude={"replaces"})) for entry in schedules]
        self.deployments[f"{flow}/{name}"] = DeploymentResponse(
            flow_id=uuid4(), name=name, schedules=made, paused=bool(paused), **values
        )


def not_found() -> Exception:
    from prefect.exceptions import ObjectNotFound

    return ObjectNotFound(SimpleNamespace())  # type: ignore[arg-type]


def deploy_whole(client: Client, **parameters: object) -> tuple[str, Any]:
    """Deploy the whole run and return what was done, and the deployment."""
    from flows.deployments import _ensure_deployment

    entry = plan()["synthesize/nightly"]
    entry.parameters.update(parameters)
    return _ensure_deployment(client, entry, "/srv"), client.deployments["synthesize/nightly"]  # type: ignore[arg-type]


def test_deploying_again_leaves_what_the_operator_has_set():
    from datetime import timedelta

    from prefect.client.schemas.objects import DeploymentSchedule
    from prefect.client.schemas.schedules import IntervalSchedule

    client = Client()
    done, there = deploy_whole(client)
    assert (done, [(entry.slug, entry.active) for entry in there.schedules]) == ("made", [("nightly", True)])
    hourly = DeploymentSchedule(schedule=IntervalSchedule(interval=timedelta(hours=1)))
    there.schedules = [there.schedules[0].model_copy(update={"active": False}), hourly]
    there.paused = True
    assert deploy_whole(client)[0] == "unchanged"
    done, there = deploy_whole(client, limit=5)
    assert (done, there.paused, there.parameters["limit"]) == ("changed", True, 5)
    assert [(entry.slug, entry.active) for entry in there.schedules] == [("nightly", False), (None, True)]
    assert there.schedules[1].schedule == hourly.schedule


def test_deploying_again_leaves_the_limit_of_a_pool():
    from flows.deployments import _ensure_pool

    client = Client()
    assert _ensure_pool(client, "gpu", 1) == "made"  # type: ignore[arg-type]
    client.pools["gpu"].concurrency_limit = 4
    assert _ensure_pool(client, "gpu", 1) == "unchanged"  # type: ignore[arg-type]
    assert client.pools["gpu"].concurrency_limit == 4
