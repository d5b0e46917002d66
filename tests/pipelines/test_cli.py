"""The command line as DESIGN section 7 promises it."""

import json
import re
import shutil
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path
from typing import Any

import click
import pyarrow.parquet as pq
import pytest
from typer.main import get_command

from pipelines.cli.main import app
from tests.chaos.driving import (
    ROOT,
    SMALL,
    call_here,
    copy_workspace,
    list_settings,
    make_environment,
    make_run,
    read_ledger,
    share_small_run,
)

COMMANDS = ("run", "init", "status", "doctor", "plan", "sql", "explain", "verify", "view", "push", "export", "deploy",
            "world", "prune", "config", "review export", "review import")  # fmt: skip
STAGE_KEYS = {"stage", "key", "rows_in", "kept", "rejected", "failed", "rows_out", "seconds", "calls", "cached_calls",
              "retries", "tokens", "gpu_seconds", "cost", "cost_per_kept"}  # fmt: skip
HEAVY = ("prefect", "torch", "pyarrow", "duckdb", "pydantic", "numpy", "PIL", "rich.console")
Capture = pytest.CaptureFixture[str]


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return share_small_run(tmp_path_factory.getbasetemp())[0]


@pytest.fixture
def own(small: Path, tmp_path: Path) -> Path:
    """A copy of the finished workspace: another worker's test may be running in the shared one."""
    return copy_workspace(small, tmp_path / "workspace")


@pytest.fixture(scope="module")
def document(tmp_path_factory: pytest.TempPathFactory) -> Any:
    return share_small_run(tmp_path_factory.getbasetemp())[1]


def find_command(name: str) -> click.Command:
    """Return a command of the application by its words."""
    found: Any = get_command(app)
    for word in name.split():
        found = found.commands[word]
    return found


def call_python(code: str, *arguments: str) -> str:
    """Run code in an interpreter of its own and return what it printed."""
    command = [sys.executable, "-c", code, *arguments]
    done = subprocess.run(command, cwd=ROOT, env=make_environment(), capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_help_and_takes_workspace_and_json(name: str, capsys: Capture) -> None:
    options = {option for parameter in find_command(name).params for option in parameter.opts}
    assert {"--workspace", "--json"} <= options
    shown = call_here(capsys, *name.split(), "--help")
    assert shown.code == 0
    assert len(shown.out.splitlines()) > 5


def test_there_are_no_commands_beside_those_of_the_design() -> None:
    names = {name for name, command in get_command(app).commands.items() if name != "review"}  # type: ignore[attr-defined]
    assert names == {*(name for name in COMMANDS if " " not in name), "serve-model", "serve-tools"}


def test_the_version_is_that_of_the_package(capsys: Capture) -> None:
    assert call_here(capsys, "--version").out == f"synth {version('synth')}\n"


def test_help_needs_no_heavy_module() -> None:
    code = "import sys, pipelines.cli; print([name for name in sys.argv[1:] if name in sys.modules])"
    assert call_python(code, *HEAVY).strip() == "[]"


IMPORT_ALL = """
import importlib, pkgutil, sys
from pathlib import Path
root, seen = Path(sys.argv[1]), []
FORBIDDEN = ("socket.connect", "subprocess.Popen", "os.mkdir", "os.remove", "os.rename", "os.system", "sqlite3.connect")

def watch(event, arguments):
    if event in FORBIDDEN:
        seen.append(f"{event} {arguments[:1]}")
    if event == "open" and isinstance(arguments[0], str):
        path, writes = Path(arguments[0]), arguments[2] & 3
        ours = path.is_relative_to(root) and ".venv" not in path.parts
        if (writes and path.suffix != ".pyc" and "__pycache__" not in path.parts and str(path) != "/dev/null") or (
            ours and path.suffix not in (".py", ".pyc") and not path.is_dir()
        ):
            seen.append(f"open {path}")

sys.dont_write_bytecode = True
import duckdb, numpy, PIL.Image, pyarrow.parquet, pydantic
sys.addaudithook(watch)
names = []
for top in ("schemas", "prompts", "pipelines"):
    package = importlib.import_module(top)
    names += [found.name for found in pkgutil.walk_packages(package.__path__, f"{top}.")]
for name in names:
    importlib.import_module(name)
print(len(names), sorted(set(seen)), [name for name in ("prefect", "torch") if name in sys.modules])
"""


def test_importing_any_module_touches_nothing_and_never_prefect() -> None:
    count, _, rest = call_python(IMPORT_ALL, str(ROOT)).strip().partition(" ")
    assert int(count) > 50
    assert rest == "[] []"


def test_run_json_has_the_keys_of_the_design(document: Any) -> None:
    assert set(document) == {"run", "stages", "releases", "warnings"}
    assert document["warnings"] == []
    assert all(set(stage) >= STAGE_KEYS for stage in document["stages"])
    assert {release["dataset"] for release in document["releases"]} == {"sft", "rl", "vqa"}
    assert all(set(release) == {"dataset", "version", "path", "rows", "root"} for release in document["releases"])


def test_a_run_says_why_rows_were_refused(own: Path, capsys: Capture) -> None:
    arguments = ("run", "--workspace", own, *list_settings(SMALL), "--limit", 60)
    told = call_here(capsys, *arguments).out
    stages = [s for s in call_here(capsys, *arguments, "--json").document["stages"] if s["rejected"]]
    assert stages
    for stage in stages:
        reasons = ", ".join(f"{reason} {count:,}" for reason, count in stage["rejected"].items())
        assert f"{stage['stage']} rejected: {reasons}" in told


def test_a_second_run_calls_nobody_and_changes_no_file_but_its_logs_and_when_it_ran(own: Path, capsys: Capture) -> None:
    before = {
        path: path.stat().st_mtime_ns
        for path in own.glob("[!.]*/**/*")
        if path.is_file() and not {"replies", "logs", "runs"} & set(path.parts)
    }
    again = call_here(capsys, "run", "--workspace", own, *list_settings(SMALL), "--limit", 60, "--json")
    assert [stage["calls"] for stage in again.document["stages"]] == [0] * 12
    assert not any(stage["ran"] for stage in again.document["stages"])
    assert {path: path.stat().st_mtime_ns for path in before} == before


def test_a_run_that_releases_nothing_ends_with_1_and_says_which_stage_took_what(own: Path, capsys: Capture) -> None:
    strict = ("--set", "groundings.min_answers=1000000")
    nothing = call_here(capsys, "run", "--workspace", own, *list_settings(SMALL), "--limit", 60, *strict, "--json")
    assert (nothing.code, nothing.document["releases"]) == (1, [])
    assert nothing.document["stages"][-1]["stage"] == "selections"
    assert "nothing was released: no question is left, so the teacher is not asked" in nothing.err
    assert re.search(r"(paths|groundings) kept 0 of \d+ \([a-z-]+ \d+", nothing.err)


def test_verify_reads_a_sample_anew_with_a_role_of_the_users(own: Path, capsys: Capture) -> None:
    given = call_here(capsys, "verify", "--workspace", own, "--read", "evaluator", "--sample", 3)
    assert given.code == 0, given.err
    read = re.findall(r"(\d+) of (\d+) questions read anew by grammar as proved", given.out)
    assert len(read) == 3, given.out
    assert all(1 <= int(same) == int(asked) <= 3 for same, asked in read)
    assert ("3", "3") in read
    refused = call_here(capsys, "verify", "--workspace", own, "--read", "judge")
    assert refused.code == 2
    assert "models.judge" in refused.err


def test_verify_ends_with_all_of_all(small: Path, document: Any, capsys: Capture) -> None:
    verified = call_here(capsys, "verify", "--workspace", small)
    rows = sum(release["rows"] for release in document["releases"])
    assert verified.code == 0
    assert verified.out.splitlines()[-1] == f"{rows}/{rows}"
    for release in document["releases"]:
        assert f"{release['dataset']} root: {release['root']}" in verified.out
    assert "not derived: words of the thoughts of" in verified.out


def test_verify_of_a_release_with_a_changed_answer_is_no_success(small: Path, tmp_path: Path, capsys: Capture) -> None:
    release = next((small / "releases" / "rl").iterdir())
    shutil.copytree(release, tmp_path / "rl" / release.name)
    proofs = next((tmp_path / "rl" / release.name).glob("proofs/*.parquet"))
    proofs.chmod(0o644)
    proofs.write_bytes(proofs.read_bytes()[:-1] + b"?")
    broken = call_here(capsys, "verify", proofs.parents[1], "--workspace", small)
    assert broken.code in (1, 2)
    assert "Traceback" not in broken.err


def test_a_root_that_is_another_ones_is_no_success(small: Path, document: Any, capsys: Capture) -> None:
    release = next(release for release in document["releases"] if release["dataset"] == "rl")
    held = call_here(capsys, "verify", release["path"], "--workspace", small, "--root", release["root"])
    assert held.code == 0, held.out
    refused = call_here(capsys, "verify", release["path"], "--workspace", small, "--root", "0" * 64)
    assert refused.code == 1
    assert f"manifest.json: root: its sha256 is {release['root']}, wanted is {'0' * 64}" in refused.out
    assert call_here(capsys, "verify", "--workspace", small, "--root", release["root"]).code == 2


def test_sql_answers_over_rejections(small: Path, document: Any, capsys: Capture) -> None:
    statement = "select stage, reason, count(*) as n from rejections group by all"
    found = call_here(capsys, "sql", statement, "--workspace", small, "--json")
    counts = {(row["stage"], row["reason"]): row["n"] for row in found.document}
    for stage in document["stages"][1:]:
        for reason, count in stage["rejected"].items():
            assert counts[stage["stage"], reason] == count
    shown = call_here(capsys, "sql", statement, "--workspace", small)
    assert re.search(r"stands-alone\W+\d+", shown.out)


def list_readers(small: Path, document: Any, scratch: Path) -> list[tuple[object, ...]]:
    """Return one call of every command that needs no service."""
    part = next(small.glob("stages/questions/*/part-00000.parquet"))
    record_id = pq.read_table(part).column("record_id")[0].as_py()
    return [
        ("init", scratch / "new"),
        ("config", "seeds"),
        ("status",),
        ("doctor",),
        ("plan", *list_settings([*SMALL, "seeds.limit=60"])),
        ("prune",),
        ("sql", "select 1 as one"),
        ("explain", record_id),
        ("verify",),
        ("view", "--html", scratch / "page.html"),
        ("world", scratch / "world", "--entities", 60),
    ]


def test_every_command_answers_in_json(small: Path, document: Any, tmp_path: Path, capsys: Capture) -> None:
    for command in list_readers(small, document, tmp_path):
        outcome = call_here(capsys, *command, "--workspace", small, "--json")
        assert outcome.code in (0, 1), (command, outcome)
        assert isinstance(json.loads(outcome.out), dict | list), command


def count_calls(document: Any) -> dict[str, int]:
    """Return how many requests each stage sent."""
    return {stage["stage"]: stage["calls"] for stage in document["stages"]}


def begin_work(small: Path, workspace: Path) -> Path:
    """Make a workspace that has its world and corpus and nothing else."""
    for name in ("worlds", "corpus"):
        copy_workspace(small / name, workspace / name)
    return workspace


@pytest.mark.slow
def test_more_seeds_ask_for_those_seeds_alone(small: Path, tmp_path: Path, capsys: Capture) -> None:
    def run(workspace: Path, limit: int) -> Any:
        arguments = ("run", "--workspace", workspace, *list_settings(SMALL), "--until", "rollouts", "--json")
        return call_here(capsys, *arguments, "--limit", limit).document

    begun = begin_work(small, tmp_path / "begun")
    first, second = count_calls(run(begun, 12)), count_calls(run(begun, 18))
    whole = count_calls(run(begin_work(small, tmp_path / "again"), 18))
    assert {stage: first[stage] + second[stage] for stage in whole} == whole
    assert second["questions"] <= 6 * (1 + 1 + 1 + 4), (
        "the writer, and the evaluator: the text and a page a hop and for the answer"
    )
    assert 0 < sum(second.values()) < sum(whole.values())
    ledger = read_ledger(begun)
    assert set(ledger.asks.values()) == {1}
    assert not ledger.in_flight


@pytest.mark.slow
def test_another_word_in_one_prompt_asks_again_only_there(small: Path, tmp_path: Path) -> None:
    work = copy_workspace(small, tmp_path / "work")
    shutil.copytree(ROOT / "prompts", tmp_path / "code" / "prompts")
    prompt = tmp_path / "code" / "prompts" / "answer_question" / "v4.md"
    prompt.write_text(prompt.read_text().rstrip("\n") + "\nAnswer now.\n")
    command = make_run(work, "--limit", 60)
    environment = make_environment() | {"PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, cwd=tmp_path / "code", env=environment, capture_output=True, text=True, check=False)
    stages = {stage["stage"]: stage for stage in json.loads(done.stdout)["stages"]}
    ran = [name for name, stage in stages.items() if stage["ran"]]
    assert ran == ["difficulty", "enhancements", "selections", "rollouts", "trajectories", "releases"]
    assert [name for name in ran if stages[name]["calls"]] == ["difficulty"]
    assert stages["difficulty"]["rows_in"] == stages["groundings"]["rows_out"]
