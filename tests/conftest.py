"""One small world and one complete run over it, made once and shared by all workers; and no network."""

import fcntl
import gc
import json
import os
import signal
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow.parquet as pq
import pytest
from hypothesis import settings

from pipelines.cli.commands import run_recipe
from pipelines.config.loading import make_config, read_recipe
from pipelines.config.settings import RunConfig
from pipelines.corpus.store import Corpus
from pipelines.graph.facts import RelationIndex
from pipelines.graph.query import Indexes
from pipelines.run.shards import read_parts
from pipelines.run.workspace import StageFolder, Workspace
from pipelines.toy.publishing import write_world
from pipelines.toy.world import WorldConfig
from tests.sharing import find_shared

if TYPE_CHECKING:
    from tests.postgres import Postgres

# A shell ignores SIGINT for what it starts in the background; the programs that tests start want it as people have it.
signal.signal(signal.SIGINT, signal.default_int_handler)

LOOPBACK = ("127.0.0.1", "::1", "localhost")
SETTINGS = (
    "splits={sft=0.6, rl=0.2, eval=0.2}",
    "paths.text_hops=true",
    "paths.per_seed=2",
    'questions.agreement="uncontradicted"',
    "questions.volatile=true",
    "questions.max_answer_share=1.0",
    "rewrites.min_alone_first=2",
    "rewrites.min_alone=1",
    "groundings.min_answers=2",
    "releases.max_gold_share=1.0",
    "groundings.retrieval_rank=0",
    "difficulty.attempts=2",
    "rollouts.attempts=1",
    'rollouts.splits=["sft", "rl"]',
)

full = settings(derandomize=True, deadline=None, print_blob=True)
settings.register_profile("full", full)
settings.register_profile("fast", full, max_examples=30)
settings.load_profile("fast")


@dataclass(frozen=True)
class DemoRun:
    """A finished run: its world, its workspace and what it printed."""

    folder: Path

    @property
    def world(self) -> Path:
        return self.folder / "world"

    @property
    def root(self) -> Path:
        return self.folder / "workspace"

    @property
    def config(self) -> RunConfig:
        return make_demo_config(self.world)

    @property
    def document(self) -> dict:
        """The document of ``synth run --json``."""
        return json.loads((self.folder / "document.json").read_text())

    def stage(self, name: str) -> StageFolder:
        return Workspace(self.root).stage(name, Workspace(self.root).read_latest()[name])

    def rows(self, name: str, model: type) -> list:
        """The kept rows of a stage as records."""
        return list(read_parts(self.stage(name), model))

    def rejections(self, name: str) -> list[dict]:
        paths = sorted(self.stage(name).path.glob("rejected-*.parquet"))
        return [row for path in paths for row in pq.read_table(path).to_pylist()]

    def release(self, dataset: str) -> Path:
        return self.root / "releases" / dataset / Workspace(self.root).read_latest()[f"release:{dataset}"]

    def truth(self, name: str) -> list[dict]:
        """What is true in the world, from files that the pipeline never reads."""
        return [json.loads(line) for line in (self.world / "truth" / f"{name}.jsonl").read_text("utf-8").splitlines()]


def make_demo_config(world: Path) -> RunConfig:
    return make_config(read_recipe("demo"), [f"corpus.world={world}", *SETTINGS])


@contextmanager
def hold_lock(path: Path) -> Iterator[None]:
    with path.open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


@pytest.fixture(scope="session")
def demo(tmp_path_factory) -> DemoRun:
    """The demo over 250 entities, with gates wide enough for rows in every release."""
    folder = find_shared(tmp_path_factory.getbasetemp()) / "demo"
    folder.mkdir(exist_ok=True)
    run = DemoRun(folder)
    with hold_lock(folder / "lock"):
        if not (folder / "document.json").exists():
            write_world(run.world, WorldConfig(entities=250))
            document = run_recipe(run.config, run.root, "", ()).as_dict()
            (folder / "document.json").write_text(json.dumps(document))
    return run


@pytest.fixture(scope="session")
def demo_corpus(demo) -> Iterator[Corpus]:
    corpus = Corpus.open(demo.root / "corpus" / Workspace(demo.root).read_latest()["corpus"])
    yield corpus
    corpus.close()


@pytest.fixture(scope="session")
def demo_ground(demo_corpus) -> Indexes:
    return Indexes(demo_corpus)


@pytest.fixture(scope="session")
def demo_relations(demo_ground) -> RelationIndex:
    return demo_ground.relations


@pytest.fixture(scope="session", autouse=True)
def no_network() -> Iterator[None]:
    """Refuse to connect to anything but this machine."""
    connect = socket.socket.connect

    def connect_here(self, address):
        if isinstance(address, tuple) and address[0] not in LOOPBACK:
            raise PermissionError(f"a test wanted to connect to {address}")
        return connect(self, address)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(socket.socket, "connect", connect_here)
        yield


def pytest_addoption(parser):
    parser.addoption("--store-versions", action="store_true", help="write the golden digests of stages' rows anew")


def pytest_collection_modifyitems(items):
    for item in items:
        if item.nodeid.startswith("tests/chaos/"):
            item.add_marker("slow")
    # One worker makes the shared run at once, while the other is busy with tests that do without.
    items.sort(key=lambda item: "demo" not in item.fixturenames)


def pytest_collection():
    # Thousands of collected tests stay to the end: garbage is not looked for among them, neither now nor later.
    gc.disable()


def pytest_collection_finish():
    gc.enable()
    gc.freeze()


def pytest_unconfigure():
    gc.unfreeze()


@pytest.fixture(scope="session")
def postgres() -> Iterator["Postgres"]:
    """A PostgreSQL server of the tests' own; tests of it are marked ``postgres``."""
    from tests.postgres import start_postgres

    with start_postgres("fsync=off") as server:
        yield server


@pytest.fixture
def shared_data() -> Path:
    default = Path(__file__).parents[2] / "shared" / "data"
    path = Path(os.environ.get("SYNTH_SHARED_DATA", default))
    if not path.is_dir():
        pytest.skip("no shared data here")
    return path
