"""The same configuration gives the same bytes: in another folder, with other concurrency, with other hash seeds."""

from pathlib import Path
from typing import Any

import pytest

from tests.chaos.driving import SMALL, digest_outputs, read_funnel, run_small, share_small_run

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def first(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Any]:
    return share_small_run(tmp_path_factory.getbasetemp())


@pytest.fixture(scope="module")
def second(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Any]:
    workspace = tmp_path_factory.mktemp("elsewhere") / "a longer name" / "with spaces"
    return workspace, run_small(workspace, "--limit", 60, settings=(*SMALL, "runtime.concurrency=1"))


def test_another_folder_and_other_concurrency_give_the_same_bytes(
    first: tuple[Path, Any], second: tuple[Path, Any]
) -> None:
    digests = digest_outputs(first[0])
    assert len(digests) > 100
    assert digest_outputs(second[0]) == digests


def test_another_folder_gives_the_same_funnel_and_versions(first: tuple[Path, Any], second: tuple[Path, Any]) -> None:
    assert read_funnel(second[1]) == read_funnel(first[1])
    versions = [
        [(r["dataset"], r["version"], r["rows"]) for r in document["releases"]] for _, document in (first, second)
    ]
    assert versions[0] == versions[1]


def test_every_stage_accounts_for_every_row(first: tuple[Path, Any]) -> None:
    for stage in first[1]["stages"]:
        ends = stage["kept"] + sum(stage["rejected"].values()) + stage["failed"]
        assert stage["rows_in"] == ends, stage["stage"]
        assert all(stage["rejected"].values())
