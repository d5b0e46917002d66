"""The stand-in of :mod:`tests.mock_openai` as a teacher of rollouts: some tool calls in the text protocol, an answer.

As a process::

    python -m tests.mock_teacher [--calls N] [--fastest SECONDS] [--slowest SECONDS]

It prints its address, counts requests and stops as the other one does, and knows no faults. What it says and how long
it takes to say it follow from the messages and the seed alone, so two runs that ask for the same get the same. Calls
come in this order, again and again: the picture is looked up, a page that was found is read, its words are searched
for, a page found by that is read, and a part of the picture is cut out.
"""

import argparse
import asyncio
import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from hashlib import sha256
from pathlib import Path
from random import Random

import orjson
from aiohttp import web

from tests.mock_openai import Mock, MockSettings, write_completion

ROOT = Path(__file__).parents[1]
URL = re.compile(r"^URL: (\S+)$", re.MULTILINE)
TITLE = re.compile(r"^(?:\[\d+\]|Title:) (.+)$", re.MULTILINE)


@dataclass(frozen=True)
class Manner:
    """How the teacher teaches: calls before its answer, and between which seconds a reply takes."""

    calls: int = 8
    fastest: float = 0.05
    slowest: float = 0.2


def read_text(message: dict) -> str:
    """Return a message's text, of a message with pictures, too."""
    content = message["content"]
    return content if isinstance(content, str) else next(part["text"] for part in content if part["type"] == "text")


def choose_call(turn: int, seen: str, rng: Random) -> dict:
    """Return the call of a turn after the last observation."""
    urls, titles = URL.findall(seen), TITLE.findall(seen)
    match turn % 5:
        case 0:
            return {"name": "image_search", "arguments": {"image": "img_1"}}
        case 1 | 3 if urls:
            return {"name": "visit", "arguments": {"url": rng.choice(urls), "goal": f"fact {rng.randrange(1000)}"}}
        case 4:
            left, top = rng.randrange(0, 300), rng.randrange(0, 300)
            return {"name": "crop", "arguments": {"image": "img_1", "box": [left, top, left + 500, top + 500]}}
    words = rng.sample(seen.split(), 3) if len(seen.split()) > 3 else ["bridge"]
    words = [re.sub(r"[^\w ]", "", word) for word in (*titles[:1], *words)]
    return {"name": "text_search", "arguments": {"query": f"turn {turn} {' '.join(words)}"[:300], "top_k": 5}}


def take_turn(body: dict, manner: Manner) -> tuple[str, float]:
    """Return what the teacher says to a request, and after how many seconds."""
    turn = sum(message["role"] == "assistant" for message in body["messages"])
    seen = read_text(body["messages"][-1])
    rng = Random(sha256(orjson.dumps([turn, seen, body.get("seed")])).hexdigest())
    pause = rng.uniform(manner.fastest, manner.slowest)
    first = re.sub(r"\W+", " ", seen[:60])
    thought = f"<think>\nThis is turn {turn}; what came back begins with: {first}.\n</think>\n"
    if turn >= manner.calls:
        return f"{thought}<answer>{1500 + rng.randrange(500)}</answer>", pause
    return f"{thought}<tool_call>\n{json.dumps(choose_call(turn, seen, rng))}\n</tool_call>", pause


class Teacher(Mock):
    """The server's state and its answers."""

    manner = Manner()

    async def _send(self, request: web.BaseRequest, raw: bytes, outcome: str) -> web.StreamResponse:
        said, pause = take_turn(orjson.loads(raw), self.manner)
        await asyncio.sleep(pause)
        return web.Response(body=write_completion(said), content_type="application/json")


async def serve(manner: Manner, host: str) -> None:
    """Serve until a signal asks to stop."""
    stop = asyncio.Event()
    for name in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(name, stop.set)
    teacher = Teacher(MockSettings())
    teacher.manner = manner
    server = web.Server(teacher.answer, handler_cancellation=True, access_log=None, keepalive_timeout=75.0)
    runner = web.ServerRunner(server, shutdown_timeout=0.1)
    await runner.setup()
    try:
        await web.TCPSite(runner, host, 0, backlog=1024).start()
        port = runner.addresses[0][1]
        sys.stdout.write(json.dumps({"url": f"http://{host}:{port}/v1", "port": port, "pid": os.getpid()}) + "\n")
        sys.stdout.flush()
        await stop.wait()
    finally:
        await runner.cleanup()


@contextmanager
def start_teacher(manner: Manner = Manner(), host: str = "127.0.0.1") -> Iterator[str]:
    """Run the process until the block ends and return its address."""
    options = [f"--{name}={value}" for name, value in asdict(manner).items()]
    command = [sys.executable, "-m", "tests.mock_teacher", *options, f"--host={host}"]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE) as process:
        try:
            assert process.stdout is not None
            yield json.loads(process.stdout.readline())["url"]
        finally:
            process.terminate()


def main() -> None:
    """Serve as the command line says."""
    parser = argparse.ArgumentParser(prog="python -m tests.mock_teacher")
    parser.add_argument("--calls", type=int, default=8)
    parser.add_argument("--fastest", type=float, default=0.05, help="seconds")
    parser.add_argument("--slowest", type=float, default=0.2, help="seconds")
    parser.add_argument("--host", default="127.0.0.1")
    given = vars(parser.parse_args())
    host = given.pop("host")
    asyncio.run(serve(Manner(**given), host))


if __name__ == "__main__":
    main()
