"""The flow and the command line are one pipeline: the same bytes, and a task that dies is tried again."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from pipelines.errors import BudgetSpent, ConfigError
from tests.chaos.driving import SMALL, digest_outputs, run_small

pytestmark = [
    pytest.mark.slow,
    # Prefect and what it stands on; nothing of ours warns.
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]
SETTINGS = [*SMALL, "seeds.limit=24"]


@pytest.fixture(scope="module", autouse=True)
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """A Prefect server of our own, which reports to nobody and whose database is thrown away."""
    quiet = {
        "PREFECT_HOME": str(tmp_path_factory.mktemp("prefect")),
        "PREFECT_SERVER_ANALYTICS_ENABLED": "false",
        "DO_NOT_TRACK": "1",
        "PREFECT_LOGGING_LEVEL": "ERROR",
        "PREFECT_LOGGING_TO_API_ENABLED": "false",
    }
    with pytest.MonkeyPatch.context() as patch:
        for name, value in quiet.items():
            patch.setenv(name, value)
        from prefect.testing.utilities import prefect_test_harness

        with prefect_test_harness(server_startup_timeout=120):
            yield


@pytest.fixture(scope="module")
def by_command(tmp_path_factory: pytest.TempPathFactory) -> Path:
    workspace = tmp_path_factory.mktemp("by-command")
    run_small(workspace, settings=SETTINGS)
    return workspace


def test_the_flow_writes_the_bytes_of_the_command(tmp_path: Path, by_command: Path) -> None:
    from flows.synthesize import synthesize

    releases = synthesize(workspace=str(tmp_path), settings=SETTINGS)
    assert {Path(release).parent.name for release in releases} == {"sft", "rl", "bridgevqa"}
    assert digest_outputs(tmp_path) == digest_outputs(by_command)


def test_a_flow_over_a_finished_run_starts_no_task(by_command: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from flows import synthesize as module

    monkeypatch.setattr(module, "submit_stage", lambda *_: pytest.fail("a finished stage was run again"))
    before = digest_outputs(by_command)
    assert len(module.synthesize(workspace=str(by_command), settings=SETTINGS)) == 3
    assert digest_outputs(by_command) == before


def test_a_shard_task_that_dies_is_tried_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from flows import synthesize as module

    list_sources, deaths = module.list_sources, []

    def die_once(plan, shards):
        if plan.name == "paths" and shards == [1] and not deaths:
            deaths.append(os.getpid())
            raise ConnectionResetError("the worker went away")
        return list_sources(plan, shards)

    monkeypatch.setattr(module, "list_sources", die_once)
    module.synthesize(workspace=str(tmp_path), settings=SETTINGS, until="questions")
    assert len(deaths) == 1
    assert len(list(tmp_path.glob("stages/paths/*/manifest.json"))) == 1


@pytest.mark.parametrize(
    ("error", "tries"), [(BudgetSpent("5 of 5 in money"), 1), (ConfigError("no such model"), 1), (OSError("away"), 3)]
)
def test_what_another_try_would_only_meet_again_is_not_tried_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: Exception, tries: int
) -> None:
    from flows import synthesize as module

    calls = []

    def fail(plan, shards):
        calls.append(shards)
        raise error

    monkeypatch.setattr(module, "list_sources", fail)
    monkeypatch.setattr(module.run_shard, "retry_delay_seconds", [0, 0])
    with pytest.raises(type(error)):
        module.synthesize(workspace=str(tmp_path), settings=[*SMALL, "seeds.limit=4"], until="paths")
    assert calls == [[0]] * tries


def test_a_wrong_setting_fails_the_flow_before_anything_is_written(tmp_path: Path) -> None:
    from flows.synthesize import synthesize

    with pytest.raises(ConfigError, match="did you mean"):
        synthesize(workspace=str(tmp_path / "work"), settings=["seeds.limt=3"])
    assert not (tmp_path / "work").exists()
