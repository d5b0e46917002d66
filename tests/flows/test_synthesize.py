"""The flow and the command line are one pipeline: the same bytes; ``test_endings`` has how they end."""

from contextlib import AbstractContextManager, nullcontext
from pathlib import Path

import pytest

from pipelines.errors import ConfigError
from pipelines.run.chains import ChainRunner
from pipelines.run.workers import WorkerSpec
from tests.chaos.driving import SMALL, begin_small, digest_outputs, run_small

pytestmark = [
    pytest.mark.slow,
    pytest.mark.usefixtures("harness"),
    # Prefect and what it stands on; nothing of ours warns.
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]
SETTINGS = [*SMALL, "seeds.limit=24"]


@pytest.fixture(scope="module")
def by_command(tmp_path_factory: pytest.TempPathFactory) -> Path:
    workspace = begin_small(tmp_path_factory.getbasetemp(), tmp_path_factory.mktemp("by-command"))
    run_small(workspace, settings=SETTINGS)
    return workspace


def test_the_flow_writes_the_bytes_of_the_command(tmp_path: Path, by_command: Path) -> None:
    from flows.synthesize import synthesize

    releases = synthesize(workspace=str(tmp_path), settings=SETTINGS)
    assert {Path(release).parent.name for release in releases} == {"sft", "rl", "vqa"}
    assert digest_outputs(tmp_path) == digest_outputs(by_command)


def test_the_flow_writes_the_bytes_of_the_command_with_two_processes(tmp_path: Path, by_command: Path) -> None:
    from flows.synthesize import synthesize

    synthesize(workspace=str(tmp_path), settings=[*SETTINGS, "runtime.engine=processes", "runtime.workers=2"])
    assert digest_outputs(tmp_path) == digest_outputs(by_command)


def be_idle(_: WorkerSpec) -> AbstractContextManager[ChainRunner]:
    """Be an executor that is to have nothing to do."""
    return nullcontext(lambda *_: pytest.fail("a finished stage was run again"))


def test_a_flow_over_a_finished_run_starts_no_task(by_command: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from flows import synthesize as module

    monkeypatch.setattr(module, "choose_executor", lambda _: be_idle)
    before = digest_outputs(by_command)
    assert len(module.synthesize(workspace=str(by_command), settings=SETTINGS)) == 3
    assert digest_outputs(by_command) == before


def test_the_flow_goes_on_with_a_run_of_the_command_by_its_name(
    by_command: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from flows import synthesize as module

    monkeypatch.setattr(module, "choose_executor", lambda _: be_idle)
    assert len(module.synthesize(workspace=str(by_command), name="demo")) == 3


def test_a_wrong_setting_fails_the_flow_before_anything_is_written(tmp_path: Path) -> None:
    from flows.synthesize import synthesize

    with pytest.raises(ConfigError, match="did you mean"):
        synthesize(workspace=str(tmp_path / "work"), settings=["seeds.limt=3"])
    assert not (tmp_path / "work").exists()
