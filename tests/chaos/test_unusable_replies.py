"""Models that answer with nothing usable: the stage stops unsealed; after the repair it is as if nothing had been."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.chaos.driving import call, check_one_line, copy_workspace, digest_files, list_trusted, make_run, run_small
from tests.mock_openai import Schedule, start_mock

TINY = ("corpus.generate.entities=300", "groundings.min_answers=2", "runtime.shard_rows=4", "seeds.limit=28", "seed=9",
        "difficulty.probe_attempts=0", "judging.max_unscored=1.0", "rollouts.dialect=native")  # fmt: skip
STAGES = {"writer": "questions", "rewriter": "rewrites", "solver": "difficulty", "teacher": "rollouts"}
"""The stage that asks each role."""


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A workspace whose stages before rollouts are done, with scripted players."""
    workspace = tmp_path_factory.mktemp("made") / "workspace"
    run_small(workspace, "--until", "enhancements", settings=TINY)
    return workspace


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    with start_mock() as url:
        yield url


def make_command(workspace: Path, role: str, url: str) -> list[str]:
    """Return the command of a run until the stage that asks the role, which is served at an address."""
    served = ("adapter=openai", "name=mock", "revision=r1", "settings={}", f"base_url={url}")
    settings = (*TINY, *(f"models.{role}.{setting}" for setting in served))
    return make_run(workspace, "--until", STAGES[role], settings=settings)


@pytest.fixture(scope="module")
def undisturbed(made: Path, server: str, tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, str]]:
    """The files of each role's stage where its model is well, by role."""
    found = {}
    for role, stage in STAGES.items():
        workspace = copy_workspace(made, tmp_path_factory.mktemp(role) / "workspace")
        outcome = call(make_command(workspace, role, server))
        assert outcome.code == 0, outcome.err
        found[role] = digest_files(workspace, f"stages/{stage}/{outcome.document['stages'][-1]['key']}/*.parquet")
    return found


@pytest.mark.parametrize(
    ("role", "fault"),
    [*((role, "null") for role in STAGES), ("solver", "cut"), ("rewriter", "schema"), ("teacher", "prose")],
)
def test_a_model_that_says_nothing_usable_ends_no_stage_and_its_replies_are_asked_again(
    role: str, fault: str, made: Path, server: str, undisturbed: dict[str, dict[str, str]], tmp_path: Path
) -> None:
    workspace = copy_workspace(made, tmp_path / "workspace")
    sealed = list_trusted(workspace)
    with start_mock(schedule=Schedule(shares={fault: 1.0})) as broken:
        line = check_one_line(call(make_command(workspace, role, broken)), 3)
    assert f"{STAGES[role]}: " in line
    assert "had no usable reply" in line
    assert list_trusted(workspace) == sealed

    mended = call(make_command(workspace, role, server))
    assert mended.code == 0, mended.err
    key = mended.document["stages"][-1]["key"]
    assert digest_files(workspace, f"stages/{STAGES[role]}/{key}/*.parquet") == undisturbed[role]
