"""Measures the model layer against a server of 50 ms: our whole stage beside bare aiohttp and two other systems.

Every client sends the same prompts, 256 in flight, to one server process (tests/mock_openai.py). Ours renders, asks,
validates, records and writes Parquet. The others need Pythons of their own, named by ``SYNTH_BENCH_CURATOR`` and
``SYNTH_BENCH_DISTILABEL`` (``pip install bespokelabs-curator``; ``pip install 'distilabel[openai]' requests``); rows of
those that are not named are left out.
"""

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import ClassVar

from pipelines.config.settings import ModelConfig
from pipelines.ids import digest_value
from pipelines.run.shards import ShardInput, ShardRows, write_shard
from pipelines.run.workspace import StageFolder
from pipelines.services.clients.chat import OpenAIChat
from pipelines.services.clients.recorded import RecordedChat
from pipelines.services.clients.replies import open_replies
from pipelines.services.metering import Price
from pipelines.services.prompting import Prompt, RoleClient, ask_model
from schemas.base import Nested, Record, Rejection
from schemas.manifest import ModelEntry
from schemas.tasks import AnswerReply
from tests.benchmarks.measured import Measured, read_peak
from tests.benchmarks.peers.prompts import SYSTEM, make_prompts
from tests.mock_openai import start_mock
from tests.record_shards import run_record_shards

ROWS = 20_000
PEER_ROWS = 4_000
"""Rows for the other systems, whose rate does not rise with more."""
IN_FLIGHT = 256
SHARD_ROWS = 256
LATENCY = 0.05
ROUNDS = 3
PEERS = Path(__file__).with_name("peers")
SIZES = (10_000, 50_000, 200_000)
"""Rows by which peak memory is held to be flat."""


class Wanted(Record):
    """A row that leads to one request."""

    text: str


class Answered(Record):
    """Its answer."""

    answer: str


class WantedInputs(Nested):
    """What the prompt is rendered from."""

    text: str


@dataclass(frozen=True)
class Answers:
    """Asks for every row: what any stage with a model does, and no more."""

    asking: RoleClient
    name: str = "questions"
    version: int = 1
    input: ClassVar[type[Record]] = Wanted
    output: ClassVar[type[Record]] = Answered

    def fingerprint(self) -> str:
        """Digest of what is asked."""
        return self.asking.identity

    def prompts(self) -> dict[str, str]:
        """The prompt."""
        return {self.asking.prompt.label: self.asking.prompt.digest}

    def models(self) -> tuple[ModelEntry, ...]:
        """The model."""
        return (self.asking.describe("writer"),)

    async def __call__(self, record: Wanted) -> Sequence[Answered] | Rejection:
        """Ask."""
        reply = await ask_model(self.asking, WantedInputs(text=record.text), AnswerReply)
        return (Answered(record_id=record.record_id, parent_id=record.parent_id, answer=reply.answer),)


@dataclass(frozen=True)
class Questions(Answers):
    """The rows themselves, as a stage before would have written them."""

    output: ClassVar[type[Record]] = Wanted


def write_wanted(folder: Path, rows: int) -> None:
    """Write the rows that lead to requests as parts of a stage."""
    upstream, prompts = StageFolder(folder), [user for _, user in make_prompts(rows)]
    source = Questions(make_asking("http://127.0.0.1:9/v1", None))
    for shard, start in enumerate(range(0, rows, SHARD_ROWS)):
        texts = prompts[start : start + SHARD_ROWS]
        kept = [Wanted(record_id=f"row-{start + n:07}", parent_id="", text=text) for n, text in enumerate(texts)]
        ids = tuple(row.record_id for row in kept)
        write_shard(source, upstream, shard, ShardInput(ids, ids), ShardRows(list(kept)))


def make_asking(address: str, replies: Path | None, system: str = SYSTEM) -> RoleClient:
    """Return the model as a run has it: pooled, and recorded where a folder is named."""
    model = OpenAIChat(ModelConfig(name="mock", base_url=address, concurrency=IN_FLIGHT))
    prompt = Prompt("answer/v1", digest_value(system), ("text",), system, "{{ text }}")
    return RoleClient(RecordedChat(model, open_replies(replies), Price()) if replies else model, prompt)


@dataclass(frozen=True, slots=True)
class Order:
    """What a process of its own is told to run."""

    address: str
    scratch: Path
    rows: int
    name: str
    reverse: bool
    system: str


def run_stage(order: Order) -> dict[str, float]:
    """Run the stage in this process; return its rows, requests, seconds and peak memory."""
    wanted = order.scratch / f"wanted-{order.rows}"
    if not wanted.is_dir():
        write_wanted(wanted, order.rows)
    parts = [(n, StageFolder(wanted).part(n)) for n in range(-(-order.rows // SHARD_ROWS))]
    stage = Answers(make_asking(order.address, order.scratch / "replies", order.system))
    parts = parts[::-1] if order.reverse else parts
    started = time.monotonic()
    used = run_record_shards(stage, StageFolder(order.scratch / order.name), parts, IN_FLIGHT)
    spent = time.monotonic() - started
    return {"rows": used.calls + used.cached_calls, "calls": used.calls, "seconds": spent, "peak": read_peak()}


def call_stage(address: str, scratch: Path, rows: int, name: str, *options: str) -> dict[str, float]:
    """Run the stage in a process of its own."""
    command = [sys.executable, "-m", "tests.benchmarks.models", address, str(scratch), str(rows), name, *options]
    return _read_line(subprocess.run(command, capture_output=True, text=True, check=True).stdout)


def measure(scratch: Path) -> list[Measured]:
    """Lay every client beside the others against one server."""
    with start_mock("--latency", str(LATENCY)) as address:
        clients = dict(_list_clients(address, scratch))
        rates = {name: [client(n) for n in range(ROUNDS)] for name, client in clients.items()}
        again = call_stage(address, scratch / "ours-0", ROWS, "again")
        memory = {rows: call_stage(address, scratch / f"memory-{rows}", rows, "answers")["peak"] for rows in SIZES}
    typical = {name: median(values) for name, values in rates.items()}
    ours, bare = typical["ours"], typical["bare aiohttp"]
    measured = [Measured(f"{name}, {IN_FLIGHT} in flight", f"{rate:,.0f} rows/s") for name, rate in typical.items()]
    measured.append(Measured("ours as a share of bare aiohttp", f"{ours / bare:.2f}", "0.6"))
    for name, wanted in (("Bespoke Curator", 3), ("distilabel", 8)):
        if name in typical:
            measured.append(Measured(f"ours over {name}", f"{ours / typical[name]:.1f}", f"{wanted}"))
    assert again["calls"] == 0
    measured.append(Measured("the same rows again, all recorded", f"{again['rows'] / again['seconds']:,.0f} rows/s"))
    for rows, peak in memory.items():
        measured.append(Measured(f"peak memory of the stage, {rows:,} rows", f"{peak:,.0f} MB"))
    growth = memory[SIZES[-1]] / memory[SIZES[0]]
    measured.append(Measured(f"peak memory, {SIZES[-1]:,} rows over {SIZES[0]:,}", f"{growth:.2f}", "1.2"))
    return measured


def _list_clients(address: str, scratch: Path) -> Iterator[tuple[str, Callable[[int], float]]]:
    def ours(turn: int) -> float:
        done = call_stage(address, scratch / f"ours-{turn}", ROWS, "answers")
        assert done["calls"] == ROWS
        return done["rows"] / done["seconds"]

    yield "bare aiohttp", lambda _: _call_peer(sys.executable, "bare.py", address, ROWS)
    yield "ours", ours
    named = {"Bespoke Curator": ("SYNTH_BENCH_CURATOR", "curator.py"),
             "distilabel": ("SYNTH_BENCH_DISTILABEL", "distilabel_rows.py")}  # fmt: skip
    for name, (variable, script) in named.items():
        if python := os.environ.get(variable):
            yield name, lambda _, python=python, script=script: _call_peer(python, script, address, PEER_ROWS)


def _call_peer(python: str, script: str, address: str, rows: int) -> float:
    command = [python, script, address, str(rows), str(IN_FLIGHT)]
    done = _read_line(subprocess.run(command, cwd=PEERS, capture_output=True, text=True, check=True).stdout)
    assert done["rows"] == rows, done
    return done["rows"] / done["seconds"]


def _read_line(text: str) -> dict[str, float]:
    found: dict[str, float] = json.loads(text.strip().splitlines()[-1])
    return found


def main() -> None:
    """Run what the command line says and print what came of it."""
    parser = argparse.ArgumentParser()
    parser.add_argument("address")
    parser.add_argument("scratch", type=Path)
    parser.add_argument("rows", type=int)
    parser.add_argument("name")
    parser.add_argument("--reverse", action="store_true")
    parser.add_argument("--system", default=SYSTEM)
    sys.stdout.write(json.dumps(run_stage(Order(**vars(parser.parse_args())))) + "\n")


if __name__ == "__main__":
    main()
