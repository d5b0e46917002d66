"""Real servers of real (if tiny) models, started as a run starts them, once for all tests here.

The venv is made by ``make test-vllm``; where there is none, these tests are skipped.
"""

import os
import re
import subprocess
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from pipelines.config.loading import make_config, read_recipe
from pipelines.config.settings import RunConfig
from pipelines.pictures import PictureStore
from pipelines.services.clients.serving import ModelServer, owned_servers
from pipelines.toy.publishing import write_world
from pipelines.toy.world import WorldConfig
from tests.ports import find_port

ROOT = Path(__file__).parents[2]
PYTHON = Path(os.environ.get("SYNTH_VLLM_PYTHON", ROOT / ".venv-vllm" / "bin" / "python"))
CONTEXT = 8192
"""Tokens; a token is a byte, and a prompt with search results has some thousand."""
ENGINE = (
    *("--enforce-eager", "--max-num-seqs", "32"),
    # On a CPU, vLLM 0.32 ends at a seeded request whose prompt it reads in pieces.
    *("--no-enable-chunked-prefill", "--max-num-batched-tokens", str(CONTEXT)),
    # Random weights would spend a reply on white space, which JSON allows between its parts.
    *("--structured-outputs-config", '{"backend": "xgrammar", "disable_any_whitespace": true}'),
)
PICTURES = ("--limit-mm-per-prompt", '{"image": 2, "video": 0}')
ENVIRONMENT = {"HF_HUB_OFFLINE": "1", "VLLM_CPU_KVCACHE_SPACE": "1"}
"""Nothing is fetched, and a GiB is enough for what was read."""


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "vllm: needs a Python with vLLM, see make test-vllm")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    here = [test for test in items if test.nodeid.startswith("tests/vllm/")]
    for test in here:
        test.add_marker(pytest.mark.vllm)
        if not PYTHON.exists():
            test.add_marker(pytest.mark.skip(reason=f"no vLLM at {PYTHON}; see make test-vllm"))


@pytest.fixture(scope="session", autouse=True)
def environment() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        for name, value in ENVIRONMENT.items():
            patch.setenv(name, value)
        yield


@pytest.fixture(scope="session")
def models(tmp_path_factory) -> Path:
    """The folder of the two models."""
    folder = tmp_path_factory.mktemp("models")
    subprocess.run([PYTHON, Path(__file__).with_name("models.py"), folder], check=True, capture_output=True)
    return folder


def write_tables(models: Path, role: str, name: str, more: tuple[str, ...] = ()) -> list[str]:
    """Return the settings of a role that a server plays."""
    port = find_port()
    arguments = ", ".join(f"'{argument}'" for argument in (*ENGINE, *more))
    served = f"model='{models / name}', python='{PYTHON}', arguments=['--max-model-len', '{CONTEXT}', {arguments}]"
    return [
        f"models.{role}={{adapter='openai', name='{name}', base_url='http://127.0.0.1:{port}/v1', revision='random', "
        f"temperature=0.7, max_tokens=160, concurrency=32, serve={{own=true, {served}}}}}"
    ]


@pytest.fixture(scope="session")
def settings(models, tmp_path_factory) -> list[str]:
    """The settings of a run over a small world: a tiny solver that sees, a tiny judge that reads."""
    world = tmp_path_factory.mktemp("world") / "world"
    write_world(world, WorldConfig(entities=250))
    return [
        f"corpus.world={world}",
        "seeds.limit=40",
        "paths.text_hops=true",
        "questions.agreement='uncontradicted'",
        "questions.volatile=true",
        "questions.max_answer_share=1.0",
        "rewrites.min_alone_first=2",
        "rewrites.min_alone=1",
        "groundings.min_answers=2",
        "groundings.retrieval_rank=0",
        # Random weights reason about nothing, answer no ending, and give one answer to everything: what these settings
        # allow would refuse every row.
        "difficulty.probe_attempts=0",
        "difficulty.attempts=2",
        "runtime.unscored=1.0",
        "runtime.concurrency=16",
        "runtime.shard_rows=4",
        *write_tables(models, "solver", "tiny-vision", PICTURES),
        *write_tables(models, "judge", "tiny-text"),
    ]


@pytest.fixture(scope="session")
def config(settings) -> RunConfig:
    return make_config(read_recipe("demo"), settings)


@pytest.fixture(scope="session")
def servers(config, tmp_path_factory) -> Iterator[dict[str, ModelServer]]:
    """Both servers, ready."""
    with owned_servers(config.models, config.roles, tmp_path_factory.mktemp("logs")) as started:
        yield started


@pytest.fixture(scope="session")
def attached(config, servers) -> list[str]:
    """The settings by which a run attaches to the servers that run already."""
    return [f"models.{role}.serve.own=false" for role in servers]


@dataclass(frozen=True, slots=True)
class Metrics:
    """What a server counts."""

    server: ModelServer

    def read(self, name: str) -> float:
        """Return a counter's sum over its labels."""
        with urllib.request.urlopen(self.server.address.removesuffix("/v1") + "/metrics") as reply:
            text = reply.read().decode()
        found = re.findall(rf"^vllm:{name}(?:\{{[^}}]*\}})? (\S+)$", text, re.MULTILINE)
        return sum(map(float, found))

    @property
    def answered(self) -> int:
        return int(self.read("request_success_total"))


@pytest.fixture
def metrics(servers) -> dict[str, Metrics]:
    return {role: Metrics(server) for role, server in servers.items()}


@pytest.fixture(scope="session")
def pictures(tmp_path_factory) -> PictureStore:
    return PictureStore(tmp_path_factory.mktemp("pictures"))
