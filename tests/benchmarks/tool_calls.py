"""Measures `synth serve-tools`: calls a second by tool, of many clients at once, against 200 that are asked for.

``python -m tests.benchmarks.tool_calls WORKSPACE [CLIENTS] [SECONDS]`` on the workspace of a demo. The server is a
process of its own, as the clients are; calls that were recorded are answered from the recording, so every query and box
is new. The last row is a trainer's mix. What the server's CPU takes for a call does not depend on who else is busy.
"""

import asyncio
import itertools
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import aiohttp

from tests.benchmarks.measured import Measured

ROOT = Path(__file__).parents[2]
CLIENTS, SECONDS, WANTED = 32, 8.0, 200
CALLS_OF_AN_ATTEMPT = 12
Make = Callable[[int], tuple[str, dict[str, object]]]
WORDS = ("tower", "museum", "bridge", "river", "film", "opera", "architect", "birthplace", "twin town", "elevation")


def _search(number: int) -> tuple[str, dict[str, object]]:
    return "text_search", {"query": f"{WORDS[number % 10]} {WORDS[number // 10 % 10]} {number}"}


def _crop(number: int) -> tuple[str, dict[str, object]]:
    return "crop", {"box": [number % 300, number // 300 % 300, 500 + number % 400, 700]}


def _look(_: int) -> tuple[str, dict[str, object]]:
    return "image_search", {"image": "img_1"}


TOOLS: dict[str, Make] = {
    "text_search": _search,
    "image_search, the question's picture": _look,
    "crop": _crop,
    "half searches, a quarter crops, a quarter pictures": lambda n: (_search, _crop, _search, _look)[n % 4](n),
}


@contextmanager
def start_server(workspace: Path) -> Iterator[tuple[str, int]]:
    """Start the command and yield its address and process id."""
    command = [sys.executable, "-m", "pipelines.cli.main", "serve-tools", "--workspace", str(workspace), "--port", "0"]
    more = ["--set", "rollouts.max_calls=1000000"]
    own = {**os.environ, "PYTHONPATH": str(ROOT)}
    with subprocess.Popen([*command, *more], cwd=ROOT, env=own, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        line = server.stdout.readline()
        try:
            yield line.split(": ", 1)[0], server.pid
        finally:
            server.terminate()
            server.wait(60)


def read_cpu(pid: int) -> float:
    """Return the CPU seconds that a process has taken."""
    told = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(told[11]) + int(told[12])) / os.sysconf("SC_CLK_TCK")


async def press(address: str, make: Make, clients: int, seconds: float, first: int) -> tuple[int, list[float]]:
    """Return how many calls were answered within some seconds, and how long each took."""
    numbers, took = itertools.count(first), list[float]()
    until = time.perf_counter() + seconds

    async def attempt(http: aiohttp.ClientSession, question: str) -> None:
        async with http.post(f"{address}/sessions", json={"question_id": question}) as reply:
            session = (await reply.json())["session"]
        for _ in range(CALLS_OF_AN_ATTEMPT):
            name, arguments = make(next(numbers))
            begun = time.perf_counter()
            place = f"{address}/sessions/{session}/calls"
            async with http.post(place, json={"name": name, "arguments": arguments}) as reply:
                told = json.loads(await reply.read())
            assert told["ok"], told["text"]
            if time.perf_counter() > until:
                break
            took.append(time.perf_counter() - begun)
        async with http.delete(f"{address}/sessions/{session}"):
            pass

    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=clients)) as http:
        async with http.get(f"{address}/questions") as reply:
            questions = itertools.cycle((await reply.json())["questions"])

        async def live() -> None:
            while time.perf_counter() < until:
                await attempt(http, next(questions))

        await asyncio.gather(*(live() for _ in range(clients)))
    return len(took), took


def measure(workspace: Path, clients: int = CLIENTS, seconds: float = SECONDS) -> list[Measured]:
    """Return calls a second by tool, with the median and the 99th percentile of a call's time."""
    rows = []
    with start_server(workspace) as (address, pid):
        for place, (name, make) in enumerate(TOOLS.items()):
            first = int(time.time()) % 1000 * 100_000 + place * 10_000_000
            before = read_cpu(pid)
            count, took = asyncio.run(press(address, make, clients, seconds, first))
            took.sort()
            middle, late = took[len(took) // 2] * 1000, took[int(len(took) * 0.99)] * 1000
            cpu = (read_cpu(pid) - before) / count
            value = f"{count / seconds:.0f} calls/s, median {middle:.0f} ms, 99th {late:.0f} ms"
            value += f"; {cpu * 1000:.1f} ms of CPU a call, {1 / cpu:.0f} a core and second"
            rows.append(Measured(f"{name}, {clients} clients", value, f"{WANTED} calls/s"))
    return rows


if __name__ == "__main__":
    given = sys.argv[1:]
    for row in measure(Path(given[0]), *map(int, given[1:2]), *map(float, given[2:3])):
        sys.stdout.write(f"| {row.what} | {row.value} | {row.budget} |\n")
