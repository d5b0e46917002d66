"""Command and flow end alike: every ending has one exit code and one state."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from pipelines.run.workspace import Workspace
from tests.chaos.driving import ROOT, call_here, copy_workspace, list_settings, make_environment, read_ledger
from tests.chaos.test_full_disk import mount_small, needs_mount
from tests.mock_openai import Schedule, start_mock

pytestmark = [
    pytest.mark.slow,
    # Prefect and what it stands on; nothing of ours warns.
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]
TINY = ("corpus.generate.entities=250", "groundings.min_answers=2", "runtime.shard_rows=4", "seeds.limit=40", "seed=9")


@dataclass(frozen=True)
class Place:
    """What an ending is made with: the workspace, and models that answer well or with nothing."""

    workspace: Path
    well: str
    broken: str


Around = Callable[[Place], AbstractContextManager[object]]


@dataclass(frozen=True)
class Ending:
    """A run that ends in one way; ``{well}`` and ``{broken}`` in settings are addresses of models."""

    name: str
    code: int
    state: str
    settings: tuple[str, ...] = ()
    options: dict[str, Any] = field(default_factory=dict)
    around: Around = lambda place: nullcontext()
    """Holds while the run is made."""


def serve(role: str, url: str, *more: str) -> tuple[str, ...]:
    """Return settings of a role that a server plays."""
    parts = ("adapter=openai", "name=mock", "revision=r1", "settings={}", f"base_url={url}", *more)
    return tuple(f"models.{role}.{part}" for part in parts)


def damage_corpus(place: Place) -> AbstractContextManager[object]:
    """Cut the manifest of the corpus."""
    manifest = next(place.workspace.glob("corpus/*/manifest.json"))
    manifest.write_text(manifest.read_text()[:40])
    return nullcontext()


ENDINGS = [
    Ending("done", 0, "COMPLETED Completed", options={"until": "seeds"}),
    Ending("gate: nothing is released", 1, "FAILED GateNotMet", ("groundings.min_answers=99",)),
    Ending(
        "gate: all rows failed",
        1,
        "FAILED GateNotMet",
        (*serve("writer", "{broken}"), "health.share=1.0"),
        {"until": "questions"},
    ),
    Ending(
        "a judge is the model judged",
        2,
        "FAILED Misconfigured",
        (*serve("judge", "{well}"), *serve("solver", "{well}")),
    ),
    Ending("an unknown key", 2, "FAILED Misconfigured", ("seeds.limt=3",)),
    Ending("a value out of bounds", 2, "FAILED Misconfigured", ("seeds.limit=-3",)),
    Ending("an unknown stage", 2, "FAILED Misconfigured", options={"until": "sedes"}),
    Ending("an unknown recipe", 2, "FAILED Misconfigured", options={"recipe": "demmo"}),
    Ending("a stage without its input", 2, "FAILED Misconfigured", ("seed=10",), {"stage": "difficulty"}),
    Ending("a damaged corpus", 2, "FAILED Misconfigured", options={"until": "seeds"}, around=damage_corpus),
    Ending(
        "a dump that is not there",
        2,
        "FAILED Misconfigured",
        ("corpus.dump=/nowhere.xml",),
        {"recipe": "vsearcher", "models": "scripted"},
    ),
    Ending(
        "the budget is spent",
        3,
        "FAILED Unavailable",
        serve("writer", "{well}", "price_in=1000000", "price_out=1000000"),
        {"until": "questions", "budget": 1.0},
    ),
    Ending(
        "a service is away",
        3,
        "FAILED Unavailable",
        serve("writer", "http://127.0.0.1:9/v1", "tries=1"),
        {"until": "questions"},
    ),
    Ending("unusable replies", 3, "FAILED Unavailable", serve("writer", "{broken}"), {"until": "questions"}),
    Ending(
        "a busy workspace",
        3,
        "COMPLETED Skipped",
        options={"until": "seeds"},
        around=lambda place: Workspace(place.workspace).claim(),
    ),
]


@pytest.fixture(scope="module")
def harness(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """A Prefect server of our own, which reports to nobody and whose database is thrown away."""
    quiet = {
        "PREFECT_HOME": str(tmp_path_factory.mktemp("prefect")),
        "PREFECT_SERVER_ANALYTICS_ENABLED": "false",
        "DO_NOT_TRACK": "1",
        "PREFECT_LOGGING_LEVEL": "CRITICAL",
        "PREFECT_LOGGING_TO_API_ENABLED": "false",
    }
    with pytest.MonkeyPatch.context() as patch:
        for name, value in quiet.items():
            patch.setenv(name, value)
        from prefect.testing.utilities import prefect_test_harness

        with prefect_test_harness(server_startup_timeout=300):
            yield


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A workspace whose stages are done up to paths."""
    from pipelines.cli.main import main

    workspace = tmp_path_factory.mktemp("made") / "workspace"
    with pytest.raises(SystemExit) as ended:
        main(["run", "--workspace", str(workspace), *list_settings(TINY), "--until", "paths"])
    assert not ended.value.code
    return workspace


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, str]]:
    """The addresses of a model that answers well and of one that says nothing."""
    folder = tmp_path_factory.mktemp("models")
    with start_mock() as well, start_mock(schedule=Schedule(shares={"null": 1.0}), folder=folder) as broken:
        yield well, broken


def run_by_command(ending: Ending, place: Place, capsys: pytest.CaptureFixture[str]) -> tuple[int, str]:
    """Return the exit code of `synth run`, and the line that says why."""
    options = [word for name, value in ending.options.items() for word in (f"--{name.replace('_', '-')}", value)]
    outcome = call_here(capsys, "run", "--workspace", place.workspace, *options, *list_settings(list_of(ending, place)))
    said = [line for line in outcome.err.splitlines() if line.startswith("synth: ")]
    return outcome.code, said[-1].removeprefix("synth: ") if said else ""


def run_by_flow(ending: Ending, place: Place) -> tuple[str, str]:
    """Return type and name of the flow's state, and its words."""
    from flows.synthesize import synthesize

    options = {
        ("stages" if name == "stage" else name): [value] if name == "stage" else value
        for name, value in ending.options.items()
    }
    state = synthesize(workspace=str(place.workspace), settings=list_of(ending, place), return_state=True, **options)
    return f"{state.type.value} {state.name}", state.message or ""


def list_of(ending: Ending, place: Place) -> list[str]:
    """Return the settings of an ending, with the addresses of the models."""
    known = () if "recipe" in ending.options else TINY
    return [
        setting.replace("{well}", place.well).replace("{broken}", place.broken)
        for setting in (*known, *ending.settings)
    ]


@pytest.mark.parametrize("ending", ENDINGS, ids=lambda ending: ending.name)
def test_command_and_flow_end_alike(
    ending: Ending,
    made: Path,
    models: tuple[str, str],
    harness: None,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    place = Place(copy_workspace(made, tmp_path / "workspace"), *models)
    with ending.around(place):
        code, line = run_by_command(ending, place, capsys)
        state, words = run_by_flow(ending, place)
    assert (code, state) == (ending.code, ending.state), (line, words)
    if code:
        assert line == words


@needs_mount
def test_a_full_disk_ends_both_alike(
    made: Path, models: tuple[str, str], harness: None, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    used = sum(path.stat().st_size for path in made.rglob("*") if path.is_file())
    with mount_small(tmp_path / "disk", used + (3 << 20)) as disk:
        place = Place(copy_workspace(made, disk / "workspace"), *models)
        with (disk / "ballast").open("wb") as ballast:
            fill = disk_room(disk) - 64 * 1024
            ballast.write(b"x" * fill)
        full = Ending("a full disk", 3, "FAILED Unavailable")
        code, line = run_by_command(full, place, capsys)
        state, words = run_by_flow(full, place)
    assert (code, state) == (full.code, full.state), (line, words)
    assert "full" in line
    assert "full" in words


def disk_room(folder: Path) -> int:
    room = os.statvfs(folder)
    return room.f_bavail * room.f_frsize


FLOW = "import sys; from flows.synthesize import synthesize; synthesize(workspace=sys.argv[1], settings=sys.argv[2:])"


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=lambda number: number.name)
def test_a_signal_ends_both_with_what_was_in_flight_recorded(
    number: signal.Signals, made: Path, harness: None, tmp_path: Path
) -> None:
    from prefect.client.orchestration import get_client
    from prefect.settings import get_current_settings

    with start_mock("--latency", "2") as slow:
        settings = [*TINY, *serve("writer", slow)]
        by_command = copy_workspace(made, tmp_path / "by-command")
        command = ["-m", "pipelines.cli.main", "run", "--workspace", by_command, *list_settings(settings)]
        assert interrupt(command, by_command, number, {}) == 3
        by_flow = copy_workspace(made, tmp_path / "by-flow")
        server = get_current_settings().to_environment_variables(exclude_unset=True)
        assert interrupt(["-c", FLOW, by_flow, *settings], by_flow, number, server) != 0
    with get_client(sync_client=True) as client:
        state = client.read_flow_run((by_flow / "flow-run.txt").read_text().strip()).state
    assert state is not None
    assert f"{state.type.value} {state.name}" == "CRASHED Crashed"
    assert count_asked(by_command) == count_asked(by_flow) == 0


def interrupt(arguments: list[object], workspace: Path, number: int, more: dict[str, str]) -> int:
    """Run Python, send it a signal once it has asked a model, and return its exit code."""
    env = make_environment() | more | {"PYTHONPATH": str(ROOT)}
    reset = lambda: signal.signal(signal.SIGINT, signal.default_int_handler)  # noqa: E731
    with subprocess.Popen([sys.executable, *map(str, arguments)], cwd=ROOT, env=env, preexec_fn=reset) as process:
        until = time.monotonic() + 300
        while count_asked(workspace) == 0:
            assert process.poll() is None
            assert time.monotonic() < until
            time.sleep(0.1)
        process.send_signal(number)
        return process.wait(120)


def count_asked(workspace: Path) -> int:
    """Return how many requests were sent that have no recorded reply."""
    return len(read_ledger(workspace).in_flight)
