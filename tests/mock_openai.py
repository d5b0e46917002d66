"""A fast stand-in for an OpenAI-compatible server on loopback, with latency and faults by schedule.

As a process (several endpoints: start several)::

    python -m tests.mock_openai --port 0 --latency 0.05 --schedule FILE|none [--capacity N] [--model NAME]

prints one JSON line, ``{"url": "http://127.0.0.1:PORT/v1", "port": PORT, "pid": PID}``, and stops by SIGTERM or SIGINT.
From a test: ``async with open_mock(MockSettings(...)) as mock`` serves on the running loop, ``with start_mock(...) as
url`` runs the process.

``POST /v1/chat/completions`` answers after ``latency`` seconds. With a ``json_schema`` asked for, the reply is JSON
that fits it: every required string holds a text that comes from the digest of the messages and the seed, so that two
requests have one answer only if they are the same; other types get their least value. With ``json_object`` it is
``{"answer": text}``, else the text alone. With ``tools`` on offer it is a native call of one of them, drawn by the same
digest, with that text for its strings, and a train of thought in ``reasoning_content``; where the messages hold
``CALLS`` calls already, it is ``<answer>text</answer>`` instead. ``GET /v1/models`` and ``/health`` say that it is
well.

Faults, by name: ``429`` and ``503`` (with Retry-After), ``500``, ``drip`` (a byte of a right reply each ``drip_pause``
seconds), ``disconnect`` (in the middle of the body), ``close`` (before any byte), ``malformed`` (no JSON), ``schema``
(JSON of another shape), ``empty`` (no choice), ``null`` (no content), ``cut`` (half a reply), ``prose`` (words in no
form), ``hang`` (no byte, ever), and ``ok``. A schedule says which request gets which one, as JSON: ``{"at": {"0":
"429", "7": "hang"}, "first": ["500", "ok"], "shares": {"500": 0.1, "hang": 0.02}, "seed": 1, "retry_after": "1",
"drip_pause": 0.05}``; all keys are optional. ``at`` goes by the ordinal of the request, from 0, and wins; ``first`` is
for the first requests, in order; ``shares`` draws for the others, the same for the same seed and ordinal. ``capacity``
above 0 answers 429 to what is more in flight.

``GET /counts`` returns ``requests``, ``outcomes`` {name: n}, ``in_flight``, ``most_in_flight``, ``distinct`` and
``duplicates`` of bodies by sha256, and ``paid`` with ``paid_duplicates``: the same of the requests that were given a
right reply when they arrived, whether or not the client waited for it. ``POST /reset`` forgets the counts and starts
the ordinals again. ``POST /schedule`` takes another schedule. ``POST /hold`` with a number has requests from that
ordinal on wait for their replies until the next such call.
"""

import argparse
import asyncio
import json
import os
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack, asynccontextmanager, contextmanager
from dataclasses import asdict, dataclass, field
from functools import lru_cache
from hashlib import sha256
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

import orjson
from aiohttp import web

ROOT = Path(__file__).parents[1]
FAULTS = (
    "429",
    "503",
    "500",
    "drip",
    "disconnect",
    "close",
    "malformed",
    "schema",
    "empty",
    "null",
    "cut",
    "prose",
    "hang",
)
RIGHT = ("ok", "schema", "empty", "null", "cut", "prose", "drip")
"""Outcomes that a real server would have been paid for: the model has answered."""
MARK = "zqtextzq"
CALLS = 3
HEAD = (
    b'{"id":"chatcmpl-1","object":"chat.completion","created":1,"model":"mock",'
    b'"choices":[{"index":0,"message":{"role":"assistant","content":'
)
TAIL = b'},"finish_reason":"stop"}],"usage":{"prompt_tokens":11,"completion_tokens":7,"total_tokens":18}}'
NO_CHOICE = HEAD.split(b"[", 1)[0] + b'[],"usage":{"prompt_tokens":11,"completion_tokens":0,"total_tokens":11}}'
UNUSABLE = {
    "null": HEAD + b"null" + TAIL,
    "cut": HEAD + b'"{\\"question\\": \\"What"' + TAIL.replace(b'"stop"', b'"length"'),
    "prose": HEAD + b'"Well, let us see."' + TAIL,
}


@dataclass(frozen=True)
class Schedule:
    """Which request gets which fault."""

    at: dict[str, str] = field(default_factory=dict)
    first: list[str] = field(default_factory=list)
    shares: dict[str, float] = field(default_factory=dict)
    seed: int = 0
    retry_after: str = "1"
    drip_pause: float = 0.05

    def __post_init__(self) -> None:
        unknown = {*self.at.values(), *self.first, *self.shares} - {*FAULTS, "ok"}
        if unknown or sum(self.shares.values()) > 1.0 + 1e-9:
            raise ValueError(
                f"faults {sorted(unknown)}, shares {self.shares}; known are {FAULTS}, shares up to 1 in all"
            )

    def draw(self, ordinal: int) -> str:
        """Return the fault of a request, ``ok`` for none."""
        if fault := self.at.get(str(ordinal)):
            return fault
        if ordinal < len(self.first):
            return self.first[ordinal]
        if not self.shares:
            return "ok"
        drawn = Random(f"{self.seed}:{ordinal}").random()
        for fault, share in self.shares.items():
            drawn -= share
            if drawn < 0:
                return fault
        return "ok"


@dataclass(frozen=True)
class MockSettings:
    """How a mock behaves; ``latency`` in seconds, ``capacity`` 0 for any number in flight."""

    latency: float = 0.0
    schedule: Schedule = Schedule()
    capacity: int = 0
    model: str = "mock"
    port: int = 0


@dataclass
class Counts:
    """What was asked and how it was answered."""

    requests: int = 0
    outcomes: Counter[str] = field(default_factory=Counter)
    in_flight: int = 0
    most_in_flight: int = 0
    seen: set[bytes] = field(default_factory=set)
    duplicates: int = 0
    bought: set[bytes] = field(default_factory=set)
    paid: int = 0

    def note(self, digest: bytes, outcome: str) -> None:
        self.requests += 1
        self.outcomes[outcome] += 1
        self.duplicates += digest in self.seen
        self.seen.add(digest)
        if outcome in RIGHT:
            self.paid += 1
            self.bought.add(digest)

    def describe(self) -> dict:
        return {
            "requests": self.requests,
            "outcomes": dict(self.outcomes),
            "in_flight": self.in_flight,
            "most_in_flight": self.most_in_flight,
            "distinct": len(self.seen),
            "duplicates": self.duplicates,
            "paid": self.paid,
            "paid_duplicates": self.paid - len(self.bought),
        }


def fill_schema(schema: dict, text: str, root: dict | None = None) -> object:
    """Return the least value that fits a JSON schema as pydantic writes them, with the text for its strings."""
    root = root or schema
    if "$ref" in schema:
        return fill_schema(root["$defs"][schema["$ref"].rsplit("/", 1)[1]], text, root)
    if "const" in schema or "enum" in schema:
        return schema["const"] if "const" in schema else schema["enum"][0]
    for union in ("anyOf", "oneOf", "allOf"):
        if union in schema:
            return fill_schema(schema[union][0], text, root)
    match schema.get("type", "object"):
        case "string":
            return text
        case "integer" | "number":
            return schema.get("minimum", schema.get("exclusiveMinimum", -1) + 1)
        case "boolean":
            return True
        case "null":
            return None
        case "array":
            return [fill_schema(schema["items"], text, root) for _ in range(schema.get("minItems", 0))]
    parts = schema.get("properties", {})
    return {name: fill_schema(parts[name], text, root) for name in schema.get("required", parts)}


@lru_cache(maxsize=256)
def make_pattern(schema: bytes) -> str:
    """Return the reply to a schema, with a mark in the place of the text."""
    return json.dumps(fill_schema(orjson.loads(schema), MARK))


def write_text(body: dict) -> str:
    """Return the text that stands for a request."""
    return "mock " + sha256(orjson.dumps([body.get("messages"), body.get("seed")])).hexdigest()[:16]


def write_call(body: dict) -> bytes:
    """Return a completion that calls one of the tools on offer, or answers after some calls."""
    text, made = write_text(body), sum(bool(message.get("tool_calls")) for message in body["messages"])
    message: dict = {"role": "assistant", "content": None, "reasoning_content": f"Thinking of {text}."}
    if made >= CALLS:
        message["content"] = f"<answer>{text}</answer>"
    else:
        function = body["tools"][int(text[5:], 16) % len(body["tools"])]["function"]
        arguments = json.dumps(fill_schema(function["parameters"], text))
        called = {"name": function["name"], "arguments": arguments}
        message["tool_calls"] = [{"id": f"chatcmpl-tool-{made}", "type": "function", "function": called}]
    completion = orjson.loads(write_completion(""))
    completion["choices"] = [
        {"index": 0, "message": message, "finish_reason": "stop" if made >= CALLS else "tool_calls"}
    ]
    return orjson.dumps(completion)


def write_content(body: dict) -> str:
    """Return what the assistant says to a request."""
    text = write_text(body)
    asked = body.get("response_format") or {}
    if asked.get("type") == "json_schema":
        return make_pattern(orjson.dumps(asked["json_schema"]["schema"])).replace(MARK, text)
    if asked.get("type") == "json_object":
        return json.dumps({"answer": text})
    # Who is asked to reason first ends with a line of this form.
    return f"{text}\nAnswer: {text}" if "Answer:" in orjson.dumps(body.get("messages")).decode() else text


def write_completion(content: str) -> bytes:
    return HEAD + orjson.dumps(content) + TAIL


class Mock:
    """The server's state and its answers."""

    def __init__(self, settings: MockSettings) -> None:
        self.settings = settings
        self.schedule = settings.schedule
        self.counts = Counts()
        self.url = ""
        self._held = sys.maxsize
        self._moved = asyncio.Event()

    async def answer(self, request: web.BaseRequest) -> web.StreamResponse:
        """Answer any request."""
        if request.path.endswith("/chat/completions") and request.method == "POST":
            return await self._chat(request)
        if request.path == "/counts":
            return web.json_response(self.counts.describe())
        if request.path == "/reset":
            # Those in flight end under the new counts.
            self.counts = Counts(in_flight=self.counts.in_flight)
            return web.json_response({})
        if request.path == "/schedule":
            self.schedule = Schedule(**orjson.loads(await request.read()))
            return web.json_response(asdict(self.schedule))
        if request.path == "/hold":
            self._held = int(await request.read())
            self._moved.set()
            self._moved = asyncio.Event()
            return web.json_response({})
        if request.path.endswith("/models"):
            model = {"id": self.settings.model, "object": "model", "created": 1, "owned_by": "mock"}
            return web.json_response({"object": "list", "data": [model | {"max_model_len": 32768}]})
        return web.json_response({}, status=200 if request.path == "/health" else 404)

    async def _chat(self, request: web.BaseRequest) -> web.StreamResponse:
        raw = await request.read()
        over = self.settings.capacity and self.counts.in_flight >= self.settings.capacity
        ordinal = self.counts.requests
        outcome = "429" if over else self.schedule.draw(ordinal)
        self.counts.note(sha256(raw).digest(), outcome)
        self.counts.in_flight += 1
        self.counts.most_in_flight = max(self.counts.most_in_flight, self.counts.in_flight)
        try:
            while ordinal >= self._held:
                await self._moved.wait()
            return await self._send(request, raw, outcome)
        finally:
            self.counts.in_flight -= 1

    async def _send(self, request: web.BaseRequest, raw: bytes, outcome: str) -> web.StreamResponse:
        if outcome in ("429", "503", "500"):
            headers = {} if outcome == "500" else {"Retry-After": self.schedule.retry_after}
            error = {"message": "mock says no", "type": "server_error", "param": None, "code": None}
            return web.json_response({"error": error}, status=int(outcome), headers=headers)
        if self.settings.latency:
            await asyncio.sleep(self.settings.latency)
        if outcome == "hang":
            await asyncio.sleep(3600)
        body = self._make_body(raw, outcome)
        if outcome == "close" and request.transport:
            request.transport.abort()
        if outcome in ("drip", "disconnect"):
            return await self._trickle(request, body, outcome)
        return web.Response(body=body, content_type="application/json")

    def _make_body(self, raw: bytes, outcome: str) -> bytes:
        if outcome == "malformed":
            return b'{"choices": [{"message": {"content": "half'
        if outcome == "empty":
            return NO_CHOICE
        if outcome == "schema":
            return write_completion('{"zq": ["another shape"]}')
        if outcome in UNUSABLE:
            return UNUSABLE[outcome]
        body = orjson.loads(raw)
        return write_call(body) if body.get("tools") else write_completion(write_content(body))

    async def _trickle(self, request: web.BaseRequest, body: bytes, outcome: str) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": "application/json", "Content-Length": str(len(body))})
        await response.prepare(request)
        if outcome == "disconnect":
            await response.write(body[: len(body) // 2])
            if request.transport:
                request.transport.close()
            return response
        for byte in body:
            await response.write(bytes([byte]))
            await asyncio.sleep(self.schedule.drip_pause)
        return response


@asynccontextmanager
async def open_mock(settings: MockSettings | None = None) -> AsyncIterator[Mock]:
    """Serve on the running loop until the block ends."""
    mock = Mock(settings or MockSettings())
    server = web.Server(mock.answer, handler_cancellation=True, access_log=None, keepalive_timeout=75.0)
    runner = web.ServerRunner(server, shutdown_timeout=0.1)
    await runner.setup()
    try:
        site = web.TCPSite(runner, "127.0.0.1", mock.settings.port, backlog=1024)
        await site.start()
        mock.url = f"http://127.0.0.1:{runner.addresses[0][1]}/v1"
        yield mock
    finally:
        await runner.cleanup()


@contextmanager
def start_mock(*arguments: str, schedule: Schedule | None = None) -> Iterator[str]:
    """Run the process until the block ends and return its address."""
    with ExitStack() as kept:
        if schedule is not None:
            folder = Path(kept.enter_context(TemporaryDirectory()))
            (folder / "schedule.json").write_text(json.dumps(asdict(schedule)))
            arguments = (*arguments, "--schedule", str(folder / "schedule.json"))
        command = [sys.executable, "-m", "tests.mock_openai", *arguments]
        process = kept.enter_context(subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE))
        try:
            assert process.stdout is not None
            yield json.loads(process.stdout.readline())["url"]
        finally:
            process.terminate()


def read_settings(arguments: list[str] | None = None) -> MockSettings:
    parser = argparse.ArgumentParser(prog="python -m tests.mock_openai")
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--latency", type=float, default=0.0, help="seconds")
    parser.add_argument("--schedule", default="none", help="a JSON file, or none")
    parser.add_argument("--capacity", type=int, default=0, help="requests in flight, 429 beyond; 0: any number")
    parser.add_argument("--model", default="mock")
    given = parser.parse_args(arguments)
    schedule = Schedule() if given.schedule == "none" else Schedule(**orjson.loads(Path(given.schedule).read_bytes()))
    return MockSettings(given.latency, schedule, given.capacity, given.model, given.port)


async def serve(settings: MockSettings) -> None:
    """Serve until a signal asks to stop."""
    stop = asyncio.Event()
    for name in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(name, stop.set)
    async with open_mock(settings) as mock:
        port = int(mock.url.rsplit(":", 1)[1].split("/")[0])
        sys.stdout.write(json.dumps({"url": mock.url, "port": port, "pid": os.getpid()}) + "\n")
        sys.stdout.flush()
        await stop.wait()


if __name__ == "__main__":
    asyncio.run(serve(read_settings()))
