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
from uuid import UUID

import pytest

from pipelines.run.workspace import Workspace
from tests.chaos.driving import (
    ROOT,
    call,
    call_here,
    check_one_line,
    copy_workspace,
    list_settings,
    make_command,
    make_environment,
    read_ledger,
)
from tests.chaos.test_full_disk import mount_small, needs_mount
from tests.mock_openai import Schedule, start_mock
from tests.toy import HEADER

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


OPTIONS = {"configs": "--config", "stages": "--stage", "fresh_replies": "--fresh-replies"}
"""How the command calls what the flow calls otherwise."""
Around = Callable[[Place], AbstractContextManager[object]]


@dataclass(frozen=True)
class Ending:
    """A run that ends in one way.

    In settings ``{well}`` and ``{broken}`` are addresses of models, ``{folder}`` is the workspace.
    """

    name: str
    code: int
    state: str
    settings: tuple[str, ...] = ()
    options: dict[str, Any] = field(default_factory=dict)
    around: Around = lambda place: nullcontext()
    """Holds while the run is made."""


def serve(role: str, url: str, *more: str) -> tuple[str, ...]:
    """Return settings of a role that a server plays."""
    parts = ("adapter=openai", "name=mock", "revision=r1", f"base_url={url}", *more)
    return tuple(f"models.{role}.{part}" for part in parts)


def cut_dump(place: Place) -> AbstractContextManager[object]:
    """Write a dump that ends amid a page."""
    (place.workspace / "cut-20260101-pages-articles.xml").write_text(f"{HEADER}<page><title>Kelm")
    return nullcontext()


ENDINGS = [
    Ending("done", 0, "COMPLETED Completed", options={"until": "seeds"}),
    Ending("gate: nothing is released", 1, "FAILED GateNotMet", ("groundings.min_answers=99",)),
    Ending(
        "gate: all rows failed",
        1,
        "FAILED GateNotMet",
        (*serve("writer", "{broken}"), "runtime.unusable=1.0"),
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
    Ending("an unknown role asked anew", 2, "FAILED Misconfigured", options={"fresh_replies": ["nobody"]}),
    Ending("no such file", 2, "FAILED Misconfigured", options={"configs": ["nowhere.toml"]}),
    Ending("a stage without its input", 2, "FAILED Misconfigured", ("seed=10",), {"stages": ["difficulty"]}),
    Ending(
        "a dump that is not there",
        2,
        "FAILED Misconfigured",
        ("models=scripted", "corpus.dump=/nowhere.xml"),
        {"recipe": "vsearcher"},
    ),
    Ending(
        "a dump that ends too early",
        2,
        "FAILED Misconfigured",
        ("models=scripted", "corpus.dump={folder}/cut-20260101-pages-articles.xml"),
        {"recipe": "vsearcher"},
        cut_dump,
    ),
    Ending(
        "the budget is spent",
        3,
        "FAILED Unavailable",
        (*serve("writer", "{well}", "prices={ input = 1000000, output = 1000000 }"), "budget.money=1.0"),
        {"until": "questions"},
    ),
    Ending(
        "a service is away",
        3,
        "FAILED Unavailable",
        (*serve("writer", "http://127.0.0.1:9/v1"), "runtime.patience=1"),
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
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A workspace whose stages are done up to paths."""
    from pipelines.cli.main import main

    workspace = tmp_path_factory.mktemp("made") / "workspace"
    with pytest.raises(SystemExit) as ended:
        main(["run", "--workspace", str(workspace), *list_settings(TINY), "--until", "paths"])
    assert not ended.value.code
    return workspace


@pytest.fixture(scope="module")
def models() -> Iterator[tuple[str, str]]:
    """The addresses of a model that answers well and of one that says nothing."""
    with start_mock() as well, start_mock(schedule=Schedule(shares={"null": 1.0})) as broken:
        yield well, broken


def run_by_command(ending: Ending, place: Place, capsys: pytest.CaptureFixture[str]) -> tuple[int, str]:
    """Return the exit code of `synth run`, and the line that says why."""
    words: list[object] = []
    for name, value in ending.options.items():
        for each in value if isinstance(value, list) else [value]:
            words += [OPTIONS.get(name, f"--{name}"), each]
    outcome = call_here(capsys, "run", "--workspace", place.workspace, *words, *list_settings(fill_in(ending, place)))
    said = [line for line in outcome.err.splitlines() if line.startswith("synth: ")]
    return outcome.code, said[-1].removeprefix("synth: ") if said else ""


def run_by_flow(ending: Ending, place: Place) -> tuple[str, str]:
    """Return type and name of the flow's state, and its words."""
    from flows.synthesize import synthesize

    settings = fill_in(ending, place)
    state = synthesize(workspace=str(place.workspace), settings=settings, return_state=True, **ending.options)
    return f"{state.type.value} {state.name}", (state.message or "").removeprefix("synth: ")


def fill_in(ending: Ending, place: Place) -> list[str]:
    """Return the settings of an ending, with what is known of the place."""
    known = {"{well}": place.well, "{broken}": place.broken, "{folder}": str(place.workspace)}
    filled = []
    for setting in (*(() if "recipe" in ending.options else TINY), *ending.settings):
        for name, value in known.items():
            setting = setting.replace(name, value)
        filled.append(setting)
    return filled


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
def test_a_full_disk_ends_both_alike(made: Path, harness: None, tmp_path: Path) -> None:
    used = sum(path.stat().st_size for path in made.rglob("*") if path.is_file())
    with mount_small(tmp_path / "disk", 2 * used + (4 << 20)) as disk:
        workspace = copy_workspace(made, disk / "workspace")
        with (disk / "ballast").open("wb") as ballast:
            ballast.write(b"x" * (measure_room(disk) - 64 * 1024))
        line = check_one_line(call(make_command("run", "--workspace", workspace, *list_settings(TINY))), 3)
        ended = start_flow(workspace, *TINY).communicate(timeout=300)[0].splitlines()[-1]
    # Which write finds no room first is chance: the store's or the workspace's own.
    for told in (line, ended.removeprefix("FAILED Unavailable ")):
        assert "full; free space" in told
    assert ended.startswith("FAILED Unavailable ")


def measure_room(folder: Path) -> int:
    """Return the bytes that still fit on a disk."""
    room = os.statvfs(folder)
    return room.f_bavail * room.f_frsize


FLOW = """
import sys
from flows.synthesize import synthesize
state = synthesize(workspace=sys.argv[1], settings=sys.argv[2:], return_state=True)
print(state.type.value, state.name, (state.message or "").removeprefix("synth: "))
"""


def start_flow(workspace: Path, *settings: str) -> "subprocess.Popen[str]":
    """Start the flow in a process of its own, at the server of this one."""
    from prefect.settings import get_current_settings

    server = get_current_settings().to_environment_variables(exclude_unset=True)
    return start([sys.executable, "-c", FLOW, str(workspace), *settings], server)


def start(command: list[str], more: dict[str, str]) -> "subprocess.Popen[str]":
    env = make_environment() | more | {"PYTHONPATH": str(ROOT)}
    heed = lambda: signal.signal(signal.SIGINT, signal.default_int_handler)  # noqa: E731
    return subprocess.Popen(
        command, cwd=ROOT, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, preexec_fn=heed
    )


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=lambda number: number.name)
def test_a_signal_ends_both_with_what_was_in_flight_recorded(
    number: signal.Signals, made: Path, harness: None, tmp_path: Path
) -> None:
    from prefect.client.orchestration import get_client

    with start_mock("--latency", "2") as slow:
        settings = [*TINY, *serve("writer", slow)]
        by_command = copy_workspace(made, tmp_path / "by-command")
        command = make_command("run", "--workspace", by_command, *list_settings(settings))
        assert interrupt(start(command, {}), by_command, number) == 3
        by_flow = copy_workspace(made, tmp_path / "by-flow")
        assert interrupt(start_flow(by_flow, *settings), by_flow, number) != 0
    with get_client(sync_client=True) as client:
        state = client.read_flow_run(UUID((by_flow / "flow-run.txt").read_text().strip())).state
    assert state is not None
    assert f"{state.type.value} {state.name}" == "CRASHED Crashed"
    assert count_asked(by_command) == count_asked(by_flow) == 0


def interrupt(process: "subprocess.Popen[str]", workspace: Path, number: int) -> int:
    """Send a process a signal once it has asked a model, and return its exit code."""
    with process:
        until = time.monotonic() + 300
        while count_asked(workspace) == 0:
            assert process.poll() is None
            assert time.monotonic() < until
            time.sleep(0.1)
        process.send_signal(number)
        _, said = process.communicate(timeout=300)
        # DuckDB says so of what lives on at the end of a process.
        assert "nanobind" not in said
        return process.returncode


def count_asked(workspace: Path) -> int:
    """Return how many requests were sent that have no recorded reply."""
    return len(read_ledger(workspace).in_flight)


def test_the_next_run_in_parts_closes_the_one_whose_process_died(
    harness: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from prefect.client.orchestration import get_client
    from prefect.states import Running

    from flows import zombies
    from flows.nightly import nightly

    monkeypatch.setattr(zombies, "SETTLING", 0.0)
    with get_client(sync_client=True) as client:
        left = client.create_flow_run(nightly, parameters={"workspace": "", "parts": []}, state=Running())
        (tmp_path / zombies.PARENT).write_text(f"{left.id}\n")
        state = nightly(str(tmp_path), [], return_state=True)
        assert state.is_completed()
        closed = client.read_flow_run(left.id).state
    assert closed is not None
    assert closed.type.value == "CRASHED"
    assert (tmp_path / zombies.PARENT).read_text().strip() == str(state.state_details.flow_run_id)
