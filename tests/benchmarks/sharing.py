"""Measures what processes of one run share, through SQLite and through PostgreSQL: replies, budget and rate.

Each process opens the store as a worker does and asks the mock server, or a fake Commons, through the clients of a run.
What was paid and fetched is counted by the servers.
"""

import argparse
import asyncio
import json
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any
from urllib.request import urlopen

from pipelines.config.loading import make_config, read_recipe
from pipelines.config.settings import ModelConfig
from pipelines.errors import BudgetSpent
from pipelines.run import models
from pipelines.run.models import make_file_fetch
from pipelines.services.clients.chat import OpenAIChat
from pipelines.services.clients.recorded import RecordedChat
from pipelines.services.clients.replies import ReplyStore, open_replies
from pipelines.services.image_metadata import RemoteFile
from pipelines.services.metering import Budget
from pipelines.services.protocols import ChatRequest, Message
from schemas.base import Nested
from tests.benchmarks.measured import Measured
from tests.mock_openai import start_mock
from tests.pipelines.services.clients.commons_server import run_commons
from tests.postgres import start_postgres

ROOT = Path(__file__).parents[2]
ASKERS, KEYS = 3, 300
SPENDERS, IN_FLIGHT = 4, 8
LIMIT = 4_000
"""Tokens that the spenders may take together; each asks for far more."""
FETCHERS, PICTURES, RATE = 4, 60, 10.0
PNG = b"\x89PNG\r\n\x1a\n"


class Asked(Nested):
    """What a prompt is rendered from."""

    number: int


@dataclass(frozen=True, slots=True)
class Order:
    """What a process is told."""

    what: str
    """``chat`` or ``fetch``."""
    folder: str
    store: str
    server: str
    first: int
    last: int
    in_flight: int = 256
    tokens: int = 0

    def start(self) -> subprocess.Popen[bytes]:
        """Start the process."""
        return subprocess.Popen([sys.executable, "-m", "tests.benchmarks.sharing", json.dumps(asdict(self))], cwd=ROOT)


async def ask_all(order: Order, store: ReplyStore, budget: Budget) -> None:
    """Ask for a reply to each number, as many at a time as the order says, until the budget is spent."""
    settings = ModelConfig(name="mock", base_url=order.server, concurrency=order.in_flight)
    model = RecordedChat(OpenAIChat(settings), store, budget=budget)
    places = asyncio.Semaphore(order.in_flight)

    async def ask(number: int) -> None:
        async with places:
            messages = (Message("user", f"number {number}"),)
            await model.chat(ChatRequest("sharing", "sharing/v1", messages, Asked(number=number)))

    outcomes = await asyncio.gather(*map(ask, range(order.first, order.last)), return_exceptions=True)
    for outcome in outcomes:
        if outcome is not None and not isinstance(outcome, BudgetSpent):
            raise outcome


async def fetch_all(order: Order, store: ReplyStore) -> None:
    """Fetch the picture of each number."""
    settings = [
        f"commons.api={order.server}",
        "contact=bench@example.org",
        "commons.fetch=true",
    ]
    config = make_config(read_recipe("demo"), settings)
    models.is_own, models.COMMONS_RATE = lambda address: False, RATE
    fetching, base = make_file_fetch(config, store.turns), order.server.rpartition("/w/")[0]
    files = [RemoteFile(f"F{n}.png", f"{base}/{n}.png", 10) for n in range(order.first, order.last)]
    await asyncio.gather(*map(fetching.fetch_file, files))


def obey(order: Order) -> None:
    """Do what an order says, as a worker of a run."""
    budget = Budget({"tokens": order.tokens})
    with closing(open_replies(Path(order.folder), order.store, "bench/run", budget)) as store:
        asyncio.run(ask_all(order, store, budget) if order.what == "chat" else fetch_all(order, store))


def run_all(orders: list[Order]) -> float:
    """Run processes at once; return the seconds until the last has ended."""
    started = time.monotonic()
    ended = [process.wait() for process in [order.start() for order in orders]]
    if any(ended):
        raise RuntimeError(f"processes ended with {ended}")
    return time.monotonic() - started


def count_paid(server: str) -> Mapping[str, Any]:
    """Return what the mock server counted."""
    with urlopen(f"{server.rpartition('/v1')[0]}/counts") as reply:
        return json.loads(reply.read())


def measure_askers(folder: Path, store: str) -> str:
    """Have processes ask for the same replies; return what was paid, and how often twice."""
    with start_mock("--latency", "0.2") as server:
        run_all([Order("chat", str(folder), store, server, 0, KEYS) for _ in range(ASKERS)])
        counts = count_paid(server)
    assert counts["paid"] >= KEYS
    return f"{counts['paid_duplicates']} of {counts['paid']}"


def measure_spenders(folder: Path, store: str) -> str:
    """Have processes spend one budget; return what was spent beyond it, in requests."""
    with start_mock("--latency", "0.1") as server:
        orders = [
            Order("chat", str(folder), store, server, 10_000 * (n + 1), 10_000 * (n + 1) + 2_000, IN_FLIGHT, LIMIT)
            for n in range(SPENDERS)
        ]
        run_all(orders)
        paid = count_paid(server)["paid"]
    with closing(open_replies(folder, store)) as opened:
        ((tokens, processes),) = opened.ledger.reader.exec_driver_sql("SELECT sum(tokens), count(*) FROM spent")
    assert processes == SPENDERS
    over = (tokens - LIMIT) / (tokens / paid)
    return f"{over:.1f} of {paid} requests"


def measure_fetchers(folder: Path, store: str, processes: int) -> str:
    """Have processes fetch pictures; return how many came a second, and how many at once at most."""
    times: list[float] = []

    def answer(asked: Any) -> Any:
        times.append(time.monotonic())
        return server.serve_late(asked)

    with run_commons(files={f"/{n}.png": PNG for n in range(PICTURES)}, delay=0.1) as server:
        server.respond, share = answer, PICTURES // processes
        run_all([Order("fetch", str(folder), store, server.url, n * share, (n + 1) * share) for n in range(processes)])
        most = server.most_in_flight
    assert len(times) == PICTURES
    return f"{(PICTURES - 1) / (max(times) - min(times)):.2f} a second, {most} at once"


@contextmanager
def _open_stores(scratch: Path) -> Iterator[dict[str, str]]:
    with start_postgres() as postgres:
        yield {"SQLite": "", "PostgreSQL": postgres.make_address()}


def measure(scratch: Path) -> list[Measured]:
    """Measure all three for both stores."""
    measured = []
    with _open_stores(scratch) as stores:
        for name, store in stores.items():
            folder = scratch / name
            measured += [
                Measured(f"{name}: paid twice, {ASKERS} processes, the same {KEYS} requests",
                         measure_askers(folder, store), "0"),
                Measured(f"{name}: beyond the budget, {SPENDERS} processes, {IN_FLIGHT} in flight each",
                         measure_spenders(folder, store), f"{SPENDERS * IN_FLIGHT} requests"),
            ]  # fmt: skip
            for processes in (1, FETCHERS):
                what = f"{name}: pictures from Commons, rate {RATE:g}, 2 at once, {processes} processes"
                rate = measure_fetchers(scratch / f"{name}-{processes}", store, processes)
                measured.append(Measured(what, rate, f"{RATE:g} a second"))
    return measured


def main() -> None:
    """Obey the order of the command line."""
    parser = argparse.ArgumentParser()
    parser.add_argument("order", type=json.loads)
    obey(Order(**parser.parse_args().order))


if __name__ == "__main__":
    main()
