"""What is deployed where, and what is scheduled."""

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
    from flows.deployments import ASKING, POOLS, STRETCHES

    entries = plan(split=True, name="wiki")
    parts = entries["nightly/wiki-nightly"].parameters["parts"]
    assert [(entries[deployment].pool, until) for deployment, until in parts] == list(STRETCHES)
    assert parts[-1][1] == ""
    assert {entry.pool for entry in entries.values()} == set(POOLS)
    assert {entry.parameters.get("until") for entry in entries.values() if entry.pool == "gpu"} == set(ASKING)


def test_two_workspaces_of_one_server_have_names_of_their_own():
    assert plan(name="wiki").keys().isdisjoint(plan(name="other"))
