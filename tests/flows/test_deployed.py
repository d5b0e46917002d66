"""The page on schedules followed to the letter gives a scheduled run that completes, from a clone and from a wheel."""

import json
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from pipelines.run.workspace import Workspace
from tests.flows.deployed import PATIENCE, ROOT, Server, running, serving, wait_for

pytestmark = pytest.mark.prefect
SMALL = ["corpus.generate.entities=300", "groundings.min_answers=2", "seed=9"]
WORKER = [sys.executable, "-m", "prefect", "worker", "start", "--pool", "cpu"]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with serving(tmp_path_factory.mktemp("prefect")) as server:
        yield server


def read_commands(name: str) -> list[list[str]]:
    """Return the commands of a block of the documentation as lists of words."""
    pages = "".join(path.read_text("utf-8") for path in sorted((ROOT / "data_cards" / "docs").glob("*.md")))
    block = re.search(rf"<!-- commands: {name} -->\n```console\n(.*?)```", pages, re.S)
    assert block, f"no page has a block {name}"
    return [words for line in block[1].splitlines() if (words := shlex.split(line, comments=True))]


def fill_in(words: list[str]) -> list[str]:
    """Return a command of a page as this machine has it: its Python, and every minute in place of every night."""
    program = {"synth": "pipelines.cli.main", "prefect": "prefect"}[words[0]]
    every_minute = ["* * * * *" if word == "0 2 * * *" else word for word in words[1:]]
    return [sys.executable, "-m", program, *every_minute]


def run_command(command: list[str], folder: Path, env: dict[str, str]) -> str:
    done = subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True, check=False, timeout=PATIENCE)
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout


def list_ended(server: Server, deployment: str) -> list[dict]:
    """Return the runs that a schedule started and that were not skipped."""
    return [run for run in server.list_runs(deployment) if run["auto_scheduled"] and run["state_name"] == "Completed"]


def test_the_page_gives_a_scheduled_run_that_completes(server: Server, tmp_path: Path) -> None:
    start, _, deploy, work = read_commands("schedule")
    assert start[:3] == ["prefect", "server", "start"], start
    run_command(fill_in(deploy), tmp_path, server.env)
    before = server.describe()
    assert {pool["name"]: pool["concurrency_limit"] for pool in before[:3]} == {"cpu": None, "gpu": 1, "parents": None}
    again = run_command([*fill_in(deploy), "--json"], tmp_path, server.env)
    assert {*json.loads(again)["pools"].values(), *json.loads(again)["deployments"].values()} == {"unchanged"}
    assert server.describe() == before
    wait_for(lambda: [run for run in server.list_runs("synthesize/nightly") if run["auto_scheduled"]], "a schedule")
    with running(fill_in(work), tmp_path / "worker.log", tmp_path, server.env):
        done = wait_for(lambda: list_ended(server, "synthesize/nightly"), "a scheduled run that completes")
        # Until another night, or every minute would have a run.
        run_command(fill_in([word if word != "0 2 * * *" else "1 2 * * *" for word in deploy]), tmp_path, server.env)
    run = done[-1]["id"]
    assert server.read_state(run) == "COMPLETED Completed"
    artifacts = server.list_artifacts(run)
    assert {"funnel", "release-sft", "release-rl", "release-vqa"} == set(artifacts)
    funnel = {row["stage"]: row for row in json.loads(artifacts["funnel"])}
    assert len(funnel) == 12
    assert all(row["rows in"] == row["kept"] + row["rejected"] + row["failed"] for row in funnel.values())
    manifest = json.loads(next(tmp_path.glob("workspace/releases/sft/*/manifest.json")).read_text())
    assert all(entry["sha256"] in artifacts["release-sft"] for entry in manifest["files"])
    log = server.read_log(run)
    seeds = funnel["seeds"]
    assert seeds["kept"] > 0
    assert re.search(rf"^seeds .*{seeds['rows in']:,} in, {seeds['kept']:,} kept", log, re.M), log
    said = (tmp_path / "worker.log").read_text()
    assert "Traceback" not in said


def test_a_run_that_meets_a_busy_workspace_is_skipped(server: Server, tmp_path: Path) -> None:
    deploy_here(server, tmp_path, "busy")
    with running(WORKER, tmp_path / "worker.log", tmp_path, server.env), Workspace(tmp_path / "workspace").claim():
        run = server.start("synthesize/busy-nightly")
        assert server.wait_until_over(run) == "COMPLETED Skipped"


def deploy_here(server: Server, folder: Path, name: str, *more: str) -> None:
    settings = [word for setting in SMALL for word in ("--set", setting)]
    command = [sys.executable, "-m", "pipelines.cli.main", "deploy", "--name", name, *settings, *more]
    run_command(command, folder, server.env)


def test_the_next_run_closes_the_one_whose_worker_was_ended(server: Server, tmp_path: Path) -> None:
    deploy_here(server, tmp_path, "left")
    workspace = tmp_path / "workspace"
    with running(WORKER, tmp_path / "worker.log", tmp_path, server.env) as worker:
        left = server.start("synthesize/left-nightly")
        wait_for((workspace / "flow-run.txt").is_file, "the run")
        worker.terminate()
        worker.wait(PATIENCE)
    assert server.read_state(left) == "RUNNING Running"
    with running(WORKER, tmp_path / "worker.log", tmp_path, server.env):
        assert server.wait_until_over(server.start("synthesize/left-nightly", until="seeds")) == "COMPLETED Completed"
    assert server.read_state(left) == "CRASHED Crashed"


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A Python that has synth from a wheel, and its dependencies from this one."""
    folder = tmp_path_factory.mktemp("wheel")
    python = folder / "venv" / "bin" / "python"
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--quiet"]
    env = {"PATH": "/usr/bin:/bin"}
    run_command([*pip, "wheel", "--no-deps", "-w", str(folder), str(ROOT)], folder, env)
    run_command([sys.executable, "-m", "venv", "--without-pip", str(folder / "venv")], folder, env)
    own = next((folder / "venv" / "lib").glob("python3*/site-packages"))
    dependencies = [path for path in sys.path if path.endswith("site-packages")]
    (own / "dependencies.pth").write_text("\n".join(dependencies))
    run_command(
        [*pip, "--python", str(python), "install", "--no-deps", "--no-index", str(next(folder.glob("*.whl")))],
        folder,
        env,
    )
    return python


def test_a_wheel_in_an_empty_folder_runs_as_deployed(server: Server, wheel: Path, tmp_path: Path) -> None:
    env = {name: value for name, value in server.env.items() if name != "PYTHONPATH"}
    where = run_command([str(wheel), "-c", "import flows.synthesize as it; print(it.__file__)"], tmp_path, env)
    assert Path(where.strip()).is_relative_to(wheel.parents[1])
    synth = str(wheel.parent / "synth")
    settings = [word for setting in SMALL for word in ("--set", setting)]
    run_command([synth, "deploy", "--name", "wheel", *settings, "--cron", "* * * * *"], tmp_path, env)
    with running([str(wheel), *WORKER[1:]], tmp_path / "worker.log", tmp_path, env):
        done = wait_for(lambda: list_ended(server, "synthesize/wheel-nightly"), "a scheduled run that completes")
    assert {"funnel", "release-sft"} <= set(server.list_artifacts(done[-1]["id"]))
    verified = run_command([synth, "verify"], tmp_path, env).split()[-1]
    assert re.fullmatch(r"([1-9]\d*)/\1", verified)


@pytest.mark.parametrize(
    ("option", "value"), [("--cron", "* x * * *"), ("--timezone", "Mars"), ("--set", "seeds.limt=3")]
)
def test_what_cannot_be_scheduled_is_refused_before_anything_is_made(
    option: str, value: str, server: Server, tmp_path: Path
) -> None:
    before = server.describe()
    command = [sys.executable, "-m", "pipelines.cli.main", "deploy", "--name", "refused", option, value]
    done = subprocess.run(
        command, cwd=tmp_path, env=server.env, capture_output=True, text=True, check=False, timeout=PATIENCE
    )
    assert done.returncode == 2, done.stderr
    assert value.partition("=")[0] in done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert server.describe() == before
