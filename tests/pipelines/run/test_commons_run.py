"""Runs whose pictures are all fetched from a fake Commons: none lies beside the dump."""

import asyncio
import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest

from pipelines.config.loading import make_config, read_recipe
from pipelines.errors import ConfigError, RateLimited
from pipelines.run.models import make_file_fetch
from pipelines.run.runner import select_stages
from pipelines.run.shards import read_parts
from pipelines.run.workspace import StageFolder
from pipelines.services.image_metadata import RemoteFile
from schemas.datasets import Difficulty, Grounding, Rollout
from tests.chaos.driving import SMALL, digest_files, run_small, share_small_run
from tests.pipelines.services.clients.commons_server import run_commons, run_commons_of
from tests.pipelines.services.clients.live_servers import Answer


def fetch_many(server, count: int) -> int:
    """Fetch pictures at once; return how many came."""
    settings = [f"commons.api={server.url}", "contact=a@b.example", "commons.fetch=true", "commons.rate=1000"]
    fetching = make_file_fetch(make_config(read_recipe("demo"), settings))
    files = [RemoteFile(f"F{n}.png", f"http://127.0.0.1:{server.port}/{n}.png", 10) for n in range(count)]

    async def fetch() -> int:
        return len(await asyncio.gather(*map(fetching.fetch_file, files)))

    return asyncio.run(fetch())


PNG = b"\x89PNG\r\n\x1a\n"


def test_no_more_pictures_are_fetched_at_once_than_the_rules_allow():
    with run_commons(files={f"/{n}.png": PNG for n in range(8)}, delay=0.05) as server:
        assert fetch_many(server, 8) == 8
        assert server.most_in_flight == 2


def test_a_service_that_asks_for_a_pause_is_sent_nothing_in_the_meantime():
    busy = Answer(429, headers={"Retry-After": "600"})
    with run_commons(files={f"/{n}.png": PNG for n in range(8)}, delay=0.05) as server:
        server.faults = [busy, busy]
        with pytest.raises(RateLimited):
            fetch_many(server, 8)
        assert len(server.asked) <= 2


def test_a_stage_that_reads_a_whole_dataset_does_not_start_before_it_is_there(tmp_path):
    def plan(name, folder, *gathers):
        return SimpleNamespace(name=name, place=name, folder=StageFolder(folder), sources=(), gathers=gathers)

    whole = plan("groundings", tmp_path / "groundings")
    searching = plan("difficulty", tmp_path / "difficulty", whole)
    with pytest.raises(ConfigError, match="groundings is not complete"):
        select_stages([whole, searching], "", ["difficulty"])
    assert select_stages([whole, searching], "", []) == [whole, searching]


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Return a finished run of the small world with its pictures at hand, and the same world without them."""
    shared, _ = share_small_run(tmp_path_factory.getbasetemp())
    (folder,) = (shared / "worlds").iterdir()
    bare = tmp_path_factory.mktemp("commons") / "bare"
    shutil.copytree(folder, bare, ignore=shutil.ignore_patterns("images"))
    return shared, bare


def run_fetching(workspace: Path, bare: Path, url: str, *settings: str):
    own = [setting for setting in SMALL if not setting.startswith("corpus.generate")]
    reached = (f"corpus.world={bare}", f"commons.api={url}", "contact=a@b.example", "commons.fetch=true")
    quick = ("commons.pause=0", "commons.rate=1000")
    return run_small(workspace, "--limit", 60, settings=(*own, *reached, *quick, *settings))


def read_stage(workspace: Path, name: str, model) -> list:
    (folder,) = (workspace / "stages" / name).iterdir()
    return list(read_parts(StageFolder(folder), model))


def list_own_searches(rollouts: list[Rollout]) -> Iterator[tuple[str, list[str]]]:
    """Yield the anchor and the pages that were found, for each search by the question's own picture."""
    for rollout in rollouts:
        for step in rollout.steps:
            if step.tool == "image_search" and step.observation and "img_1" in json.loads(step.arguments).values():
                yield rollout.path[0], [result.title for result in step.observation.results]


@pytest.mark.slow
def test_a_run_that_fetches_its_pictures_searches_them_as_if_they_were_at_hand(world, tmp_path):
    """And one that asks fewer at a time, with Commons away by then, sees the same index and makes the same rows."""
    shared, bare = world
    (images,) = (shared / "worlds").glob("*/images")
    with run_commons_of(images) as server:
        document = run_fetching(tmp_path / "first", bare, server.url)
        url, fetched = server.url, len(server.fetches)
    rows = read_stage(tmp_path / "first", "difficulty", Difficulty)
    assert rows
    assert {row.depiction.ease for row in rows} == {"easy"}
    grounded = read_stage(tmp_path / "first", "groundings", Grounding)
    files = {each.picture.file for row in grounded for each in row.fetched}
    assert len(grounded) < len(files) <= fetched
    searches = list(list_own_searches(read_stage(tmp_path / "first", "rollouts", Rollout)))
    assert searches
    assert all(anchor in found for anchor, found in searches)
    refused = {stage["stage"]: stage["rejected"] for stage in document["stages"]}["difficulty"]
    kept = {row.text for row in read_stage(shared, "groundings", Grounding)} & {row.text for row in grounded}
    assert len(kept) > len(grounded) / 2
    for part in ("replies", "images"):
        shutil.copytree(tmp_path / "first" / part, tmp_path / "second" / part)
    again = run_fetching(tmp_path / "second", bare, url, "runtime.concurrency=2")
    assert {stage["stage"]: stage["rejected"] for stage in again["stages"]}["difficulty"] == refused
    assert read_stage(tmp_path / "second", "difficulty", Difficulty) == rows
    first, second = (digest_files(tmp_path / name, "releases/**/*.parquet") for name in ("first", "second"))
    assert list(first.values()) == list(second.values())
