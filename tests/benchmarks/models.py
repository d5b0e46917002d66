"""Measures the model layer against a server of 50 ms: our whole stage beside bare aiohttp and two other systems.

Every client sends the same prompts, 256 in flight, to one server process (tests/mock_openai.py). Ours renders, asks,
validates, records and writes Parquet. The others need Pythons of their own, named by ``SYNTH_BENCH_CURATOR`` and
``SYNTH_BENCH_DISTILABEL`` (``pip install bespokelabs-curator``; ``pip install 'distilabel[openai]' requests``); rows of
those that are not named are left out.
"""

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import ClassVar

from pipelines.backends.metering import Price
from pipelines.backends.openai_chat import OpenAIChat
from pipelines.backends.recorded import RecordedChat
from pipelines.backends.replies import open_replies
from pipelines.prompting import Asking, Prompt, ask_model
from pipelines.record_running import run_record_shards
from pipelines.shards import ShardInput, ShardRows, write_shard
from pipelines.workspace import StageFolder
from schemas.base import Nested, Record, Rejection
from schemas.manifest import ModelEntry
from schemas.tasks import AnswerReply
from tests.benchmarks.measured import Measured, read_peak
from tests.benchmarks.peers.prompts import SYSTEM, make_prompts
from tests.mock_openai import start_mock

ROWS = 20_000
PEER_ROWS = 4_000
"""Rows for the other systems, whose rate does not rise with more."""
IN_FLIGHT = 256
SHARD_ROWS = 64
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

    asking: Asking
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


def write_wanted(folder: Path, rows: int) -> list[tuple[int, Path]]:
    """Write the rows that lead to requests as parts of a stage."""
    upstream, prompts = StageFolder(folder), [user for _, user in make_prompts(rows)]
    source = Answers(make_asking("http://127.0.0.1:9/v1", None))
    object.__setattr__(source, "output", Wanted)
    parts = []
    for shard, start in enumerate(range(0, rows, SHARD_ROWS)):
        texts = prompts[start : start + SHARD_ROWS]
        kept = [Wanted(record_id=f"row-{start + n:07}", parent_id="", text=text) for n, text in enumerate(texts)]
        ids = tuple(row.record_id for row in kept)
        write_shard(source, upstream, shard, ShardInput(ids, ids), ShardRows(list(kept)))


def make_asking(address: str, replies: Path | None) -> Asking:
    """Return the model as a run has it: pooled, and recorded where a folder is named."""
    model = OpenAIChat(name="mock", urls=(address,), concurrency=IN_FLIGHT)
    prompt = Prompt("answer/v1", "0" * 64, ("text",), SYSTEM, "{{ text }}")
    return Asking(RecordedChat(model, open_replies(replies), Price()) if replies else model, prompt)


def run_stage(address: str, scratch: Path, rows: int, again: bool) -> dict[str, float]:
    """Run the stage in this process; return its rows, seconds and peak memory."""
    parts = [(n, StageFolder(scratch / "wanted").part(n)) for n in range(-(-rows // SHARD_ROWS))]
    folder = StageFolder(scratch / ("again" if again else "answers"))
    stage = Answers(make_asking(address, scratch / "replies"))
    started = time.monotonic()
    used = run_record_shards(stage, folder, parts, IN_FLIGHT)
    spent = time.monotonic() - started
    return {"rows": used.calls + used.cached_calls, "calls": used.calls, "seconds": spent, "peak": read_peak()}


def measure(scratch: Path) -> list[Measured]:
    """Lay every client beside the others against one server."""
    with start_mock("--latency", str(LATENCY)) as address:
        clients = dict(_list_clients(address, scratch))
        rates = {name: [client(n) for n in range(ROUNDS)] for name, client in clients.items()}
        again = _call_stage(address, scratch / "ours-0", ROWS, again=True)
        memory = {rows: _measure_memory(address, scratch / f"memory-{rows}", rows) for rows in SIZES}
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


def _list_clients(address: str, scratch: Path) -> Iterator[tuple[str, "object"]]:
    def ours(turn: int) -> float:
        folder = scratch / f"ours-{turn}"
        write_wanted(folder / "wanted", ROWS)
        done = _call_stage(address, folder, ROWS, again=False)
        assert done["calls"] == ROWS
        return done["rows"] / done["seconds"]

    yield "bare aiohttp", lambda _: _call_peer(sys.executable, "bare.py", address, ROWS)
    yield "ours", ours
    named = {"Bespoke Curator": ("SYNTH_BENCH_CURATOR", "curator.py"),
             "distilabel": ("SYNTH_BENCH_DISTILABEL", "distilabel_rows.py")}  # fmt: skip
    for name, (variable, script) in named.items():
        if python := os.environ.get(variable):
            yield name, lambda _, python=python, script=script: _call_peer(python, script, address, PEER_ROWS)


def _measure_memory(address: str, scratch: Path, rows: int) -> float:
    write_wanted(scratch / "wanted", rows)
    return _call_stage(address, scratch, rows, again=False)["peak"]


def _call_stage(address: str, scratch: Path, rows: int, again: bool) -> dict[str, float]:
    command = [sys.executable, "-m", "tests.benchmarks.models", address, str(scratch), str(rows), str(int(again))]
    return dict(_read_line(subprocess.run(command, capture_output=True, text=True, check=True).stdout))


def _call_peer(python: str, script: str, address: str, rows: int) -> float:
    command = [python, script, address, str(rows), str(IN_FLIGHT)]
    done = _read_line(subprocess.run(command, cwd=PEERS, capture_output=True, text=True, check=True).stdout)
    assert done["rows"] == rows, done
    return done["rows"] / done["seconds"]


def _read_line(text: str) -> dict[str, float]:
    found: dict[str, float] = json.loads(text.strip().splitlines()[-1])
    return found


if __name__ == "__main__":
    sys.stdout.write(
        json.dumps(run_stage(sys.argv[1], Path(sys.argv[2]), int(sys.argv[3]), sys.argv[4] == "1")) + "\n"
    )
