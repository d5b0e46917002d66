"""The flow and the command line are one pipeline: the same bytes and the same endings, in the same words."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from pipelines.errors import ConfigError, SynthError
from pipelines.run.chains import ChainRunner
from pipelines.run.spans import WorkerSpec
from tests.chaos.driving import SMALL, call_here, check_one_line, copy_workspace, digest_outputs, run_small
from tests.mock_openai import Schedule, start_mock

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


def test_the_flow_writes_the_bytes_of_the_command_with_two_processes(tmp_path: Path, by_command: Path) -> None:
    from flows.synthesize import synthesize

    synthesize(workspace=str(tmp_path), settings=[*SETTINGS, "runtime.engine=processes", "runtime.workers=2"])
    assert digest_outputs(tmp_path) == digest_outputs(by_command)


class Idle:
    """An executor that is to have nothing to do."""

    @contextmanager
    def begin(self, _: WorkerSpec) -> Iterator[ChainRunner]:
        yield lambda *_: pytest.fail("a finished stage was run again")


def test_a_flow_over_a_finished_run_starts_no_task(by_command: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from flows import synthesize as module

    monkeypatch.setattr(module, "make_executor", lambda _: Idle())
    before = digest_outputs(by_command)
    assert len(module.synthesize(workspace=str(by_command), settings=SETTINGS)) == 3
    assert digest_outputs(by_command) == before


@pytest.fixture(scope="module")
def paths(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A workspace whose paths are walked."""
    workspace = tmp_path_factory.mktemp("paths") / "workspace"
    run_small(workspace, "--until", "paths", settings=SETTINGS)
    return workspace


def serve(url: str, *more: str) -> list[str]:
    """Return the settings of a writer that a server plays."""
    served = ("adapter=openai", "name=mock", "revision=r1", "settings={}", f"base_url={url}", *more)
    return [f"models.writer.{setting}" for setting in served]


ENDINGS: dict[str, tuple[int, dict[str, Any], str]] = {
    "unknown key": (2, {"settings": ["seeds.limt=3"]}, "did you mean"),
    "unknown recipe": (2, {"recipe": "nowhere"}, "nowhere"),
    "unknown stage": (2, {"until": "nowhere"}, "does not exist"),
    "unknown players": (2, {"models": "nobody"}, "the only choice is scripted"),
    "unknown role asked anew": (2, {"fresh_replies": ["nobody"]}, "no such role or tool"),
    "no file": (2, {"configs": ["nowhere.toml"]}, "nowhere.toml"),
    "no dump": (2, {"settings": ["corpus.dump=nowhere.xml"]}, "no such file"),
    "a judge that is the model it judges": (2, {"settings": ["models.judge.name=scripted-teacher"]}, "never the model"),
    "a stage without its input": (2, {"stages": ["rollouts"]}, "is not complete"),
    "a service away": (3, {"until": "questions", "settings": serve("http://127.0.0.1:9/v1")}, "127.0.0.1:9"),
    "no usable reply": (3, {"until": "questions", "settings": serve("{null}")}, "had no usable reply"),
    "all rows failed": (1, {"until": "questions", "settings": [*serve("{null}"), "health.share=1"]}, "rows failed"),
    "budget spent": (
        3,
        {"until": "questions", "settings": serve("{well}", "price_in=1e6", "price_out=1e6"), "budget": 0.5},
        "budget of this run is spent",
    ),
    "nothing released": (1, {"settings": ["questions.max_answer_tokens=0"]}, "nothing was released"),
}
"""How runs end, with their exit code, their parameters, and a part of what is said."""
OPTIONS = {"settings": "--set", "configs": "--config", "stages": "--stage", "fresh_replies": "--fresh-replies"}


@pytest.fixture(scope="module")
def servers() -> Iterator[dict[str, str]]:
    """A server of models that is well, and one that says nothing."""
    with start_mock() as well, start_mock(schedule=Schedule(shares={"null": 1.0})) as null:
        yield {"well": well, "null": null}


@pytest.mark.parametrize("ending", ENDINGS)
def test_the_flow_ends_as_the_command_does_and_in_its_words(
    ending: str, paths: Path, servers: dict[str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from flows.synthesize import synthesize

    code, given, said = ENDINGS[ending]
    own = [setting.format(**servers) if "{" in setting else setting for setting in given.get("settings", ())]
    parameters = {**given, "settings": [*SETTINGS, *own]}
    arguments = []
    for name, value in parameters.items():
        values = value if isinstance(value, list) else [value]
        arguments += [part for one in values for part in (OPTIONS.get(name, f"--{name}"), one)]
    workspace = copy_workspace(paths, tmp_path / "by-command")
    line = check_one_line(call_here(capsys, "run", "--workspace", workspace, *arguments), code)
    assert said in line
    state = synthesize(workspace=str(copy_workspace(paths, tmp_path / "by-flow")), **parameters, return_state=True)
    assert state.is_failed()
    error = state.data if isinstance(state.data, SynthError) else state.result(raise_on_failure=False)
    told = str(error).removeprefix("synth: ").replace("by-flow", "by-command")
    assert (error.exit_code, told) == (code, line.removeprefix("synth: "))


def test_a_wrong_setting_fails_the_flow_before_anything_is_written(tmp_path: Path) -> None:
    from flows.synthesize import synthesize

    with pytest.raises(ConfigError, match="did you mean"):
        synthesize(workspace=str(tmp_path / "work"), settings=["seeds.limt=3"])
    assert not (tmp_path / "work").exists()
