"""Models that answer with nothing usable: the stage stops unsealed; after the repair it is as if nothing had been."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.chaos.driving import (
    STAGES,
    TINY,
    begin_small,
    call,
    call_here,
    check_one_line,
    copy_workspace,
    digest_files,
    list_trusted,
    make_command,
    make_run,
    read_ledger,
    run_small,
)
from tests.mock_openai import Schedule, start_mock


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A workspace whose stages before rollouts are done, with scripted players."""
    workspace = begin_small(tmp_path_factory.getbasetemp(), tmp_path_factory.mktemp("made") / "workspace")
    run_small(workspace, "--until", "selections", settings=TINY)
    return workspace


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    with start_mock() as url:
        yield url


def list_arguments(workspace: Path, role: str, url: str) -> list[str]:
    """Return the arguments of a run until the stage that asks the role, which is served at an address."""
    served = ("adapter=openai", "name=mock", "revision=r1", f"base_url={url}")
    settings = (*TINY, *(f"models.{role}.{setting}" for setting in served))
    return make_run(workspace, "--until", STAGES[role], settings=settings)[len(make_command()) :]


@pytest.fixture(scope="module")
def undisturbed(made: Path, server: str, tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, str]]:
    """The files of each role's stage where its model is well, by role."""
    found = {}
    for role, stage in STAGES.items():
        workspace = copy_workspace(made, tmp_path_factory.mktemp(role) / "workspace")
        outcome = call(make_command(*list_arguments(workspace, role, server)))
        assert outcome.code == 0, outcome.err
        found[role] = digest_files(workspace, f"stages/{stage}/{outcome.document['stages'][-1]['key']}/*.parquet")
    return found


@pytest.mark.parametrize(
    ("role", "fault"),
    [*((role, "null") for role in STAGES), ("solver", "cut"), ("rewriter", "schema"), ("teacher", "prose")],
)
def test_a_model_that_says_nothing_usable_ends_no_stage_and_its_replies_are_asked_again(
    role: str,
    fault: str,
    made: Path,
    server: str,
    undisturbed: dict[str, dict[str, str]],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    workspace = copy_workspace(made, tmp_path / "workspace")
    sealed = list_trusted(workspace)
    with start_mock(schedule=Schedule(shares={fault: 1.0})) as broken:
        line = check_one_line(call_here(capsys, *list_arguments(workspace, role, broken)), 3)
    assert f"{STAGES[role]}: " in line
    assert "had no usable reply" in line
    assert list_trusted(workspace) == sealed

    mended = call_here(capsys, *list_arguments(workspace, role, server))
    assert mended.code == 0, mended.err
    key = mended.document["stages"][-1]["key"]
    assert digest_files(workspace, f"stages/{STAGES[role]}/{key}/*.parquet") == undisturbed[role]


def test_retry_asks_only_the_rows_that_ended_so_and_ends_with_the_bytes_of_an_undisturbed_run(
    made: Path,
    server: str,
    undisturbed: dict[str, dict[str, str]],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    workspace = copy_workspace(made, tmp_path / "workspace")
    with start_mock(schedule=Schedule(shares={"null": 0.1}, seed=3)) as faulty:
        first = call_here(capsys, *list_arguments(workspace, "solver", faulty))
    assert first.code == 0, first.err
    unscored = first.document["stages"][-1]["rejected"]["unscored"]
    asked = read_ledger(workspace).asks

    retried = call_here(capsys, *list_arguments(workspace, "solver", server), "--retry", "unscored")
    assert retried.code == 0, retried.err
    assert f"difficulty: {unscored} rows are asked anew" in retried.err
    key = retried.document["stages"][-1]["key"]
    assert digest_files(workspace, f"stages/difficulty/{key}/*.parquet") == undisturbed["solver"]
    ledger = read_ledger(workspace)
    again = {name for name, times in ledger.asks.items() if 0 < asked[name] < times}
    assert again
    assert {name.partition("-retried-")[0] for name in ledger.replies if "-retried-" in name} == again
    assert not list((workspace / "stages").rglob("retry-*.json"))

    assert call_here(capsys, *list_arguments(workspace, "solver", server)).code == 0
    assert read_ledger(workspace) == ledger


def test_retry_of_what_no_row_ended_with_changes_nothing(
    made: Path, server: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    workspace = copy_workspace(made, tmp_path / "workspace")
    sealed = list_trusted(workspace)
    arguments = list_arguments(workspace, "solver", server)
    assert "--retry bogus" in check_one_line(call_here(capsys, *arguments, "--retry", "bogus"), 2)
    assert "no row" in check_one_line(call_here(capsys, *arguments, "--retry", "shorter-path"), 2)
    assert list_trusted(workspace) == sealed
