"""Measures what one faulty address does to the others, and that a schedule of faults loses no row.

Three servers of 0.2 s (tests/mock_openai.py), 96 rows in flight. Rates are those of the two healthy servers once things
have settled, as a share of what the same two reach with no third.
"""

import asyncio
import json
import time
import urllib.request
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import replace
from itertools import count
from pathlib import Path

from pipelines.config.settings import ModelConfig
from pipelines.errors import RecordFailed
from pipelines.run.workspace import StageFolder
from pipelines.services.clients.chat import OpenAIChat
from pipelines.services.prompting import Prompt, RoleClient, make_schema
from pipelines.services.protocols import ChatRequest, Message, Sampling
from schemas.tasks import AnswerReply
from tests.benchmarks.measured import Measured
from tests.benchmarks.models import SHARD_ROWS, Answers, WantedInputs, write_wanted
from tests.mock_openai import Schedule, start_mock
from tests.record_shards import run_record_shards

LATENCY = 0.2
IN_FLIGHT = 96
SETTLE = 4.0
"""Seconds before it is measured: an address is found out by its first failures."""
WINDOW = 6.0
ROWS = 10_000
FAULTS = {
    "always 429": Schedule(shares={"429": 1.0}),
    "429 half of the time": Schedule(shares={"429": 0.5}),
    "hangs": Schedule(shares={"hang": 1.0}),
    "closes connections": Schedule(shares={"close": 1.0}),
    "always 500": Schedule(shares={"500": 1.0}),
    "500 half of the time": Schedule(shares={"500": 0.5}),
    "drips a byte at a time": Schedule(shares={"drip": 1.0}),
    "no JSON": Schedule(shares={"malformed": 1.0}),
}
MIXED = {"429": 0.05, "503": 0.04, "500": 0.06, "disconnect": 0.05, "malformed": 0.04, "schema": 0.03, "empty": 0.02,
         "drip": 0.005, "hang": 0.005}  # fmt: skip
"""30% of all requests."""


def make_chat(urls: Sequence[str], timeout: float) -> OpenAIChat:
    """Return a model behind several addresses."""
    settings = ModelConfig(name="mock", base_url=urls, revision="r1", timeout=timeout)
    return OpenAIChat(settings, pause=0.05)


def measure(scratch: Path) -> list[Measured]:
    """Measure the healthy beside each fault, then a whole stage under a mixture of all."""
    measured = []
    with ExitStack() as stack:
        healthy = [stack.enter_context(start_mock("--latency", str(LATENCY))) for _ in range(2)]
        for name, schedule in FAULTS.items():
            with start_mock("--latency", str(LATENCY), schedule=schedule) as faulty:
                measured.append(_compare(name, healthy, faulty))
        measured.append(_compare("is not there", healthy, "http://127.0.0.1:9/v1"))
    return [*measured, *_measure_mixture(scratch)]


def _compare(name: str, healthy: Sequence[str], faulty: str) -> Measured:
    """Measure both within seconds of each other, so that they meet the same machine."""
    alone = asyncio.run(_measure_rate(healthy, healthy))
    beside = asyncio.run(_measure_rate([*healthy, faulty], healthy))
    return Measured(f"two healthy addresses beside one: {name}", f"{beside / alone:.2f} of {alone:,.0f} rows/s", "0.9")


async def _measure_rate(urls: Sequence[str], healthy: Sequence[str]) -> float:
    """Return the replies a second of the healthy addresses while so many rows are kept in flight over all."""
    model, numbers = make_chat(urls, 20.0), count()

    async def work() -> None:
        while True:
            try:
                await model.chat(_make_request(next(numbers)))
            except RecordFailed:
                continue

    workers = [asyncio.create_task(work()) for _ in range(IN_FLIGHT)]
    await asyncio.sleep(SETTLE)
    started, before = time.monotonic(), await asyncio.to_thread(_count_right, healthy)
    await asyncio.sleep(WINDOW)
    rate = (await asyncio.to_thread(_count_right, healthy) - before) / (time.monotonic() - started)
    for worker in workers:
        worker.cancel()
    await asyncio.gather(*workers, return_exceptions=True)
    return rate


def _make_request(number: int) -> ChatRequest:
    messages = (Message("system", "Be brief."), Message("user", f"Who is number {number}?"))
    schema = make_schema(AnswerReply)
    return ChatRequest("answer", "answer/v1", messages, WantedInputs(text=""), Sampling(max_tokens=16), schema)


def _count_right(urls: Sequence[str]) -> int:
    return sum(_read_counts(url)["outcomes"].get("ok", 0) for url in urls)


def _read_counts(url: str) -> dict[str, dict[str, int]]:
    with urllib.request.urlopen(url.removesuffix("/v1") + "/counts", timeout=10) as reply:
        found: dict[str, dict[str, int]] = json.load(reply)
    return found


def _measure_mixture(scratch: Path) -> Iterator[Measured]:
    write_wanted(scratch / "wanted", ROWS)
    parts = [(n, StageFolder(scratch / "wanted").part(n)) for n in range(-(-ROWS // SHARD_ROWS))]
    folder = StageFolder(scratch / "answers")
    with ExitStack() as stack:
        schedules = [replace(Schedule(shares=MIXED, retry_after="0.1"), seed=seed) for seed in range(3)]
        urls = [stack.enter_context(start_mock("--latency", "0.01", schedule=schedule)) for schedule in schedules]
        model = make_chat(urls, 5.0)
        stage = Answers(RoleClient(model, Prompt("answer/v1", "0" * 64, ("text",), "Be brief.", "{{ text }}")))
        started = time.monotonic()
        run_record_shards(stage, folder, parts, IN_FLIGHT)
        spent = time.monotonic() - started
        outcomes = sum((Counter(_read_counts(url)["outcomes"]) for url in urls), Counter[str]())
    sidecars = [sidecar for shard, _ in parts if (sidecar := folder.read_sidecar(shard))]
    kept, failed = sum(s.kept for s in sidecars), sum(s.failed for s in sidecars)
    assert kept + failed == sum(s.rows_in for s in sidecars) == ROWS
    spoilt = 1 - outcomes["ok"] / outcomes.total()
    yield Measured(f"{ROWS:,} rows, {spoilt:.0%} of {outcomes.total():,} requests spoilt", f"{spent:.0f} s")
    yield Measured("of them kept, failed by name, lost", f"{kept:,}, {failed:,}, {ROWS - kept - failed}", "0 lost")
