"""A strict stand-in for a server with OpenAI's Files and Batch APIs on loopback, written from their reference.

As a process: ``python -m tests.mock_batches [--seconds S] [--plan JSON]`` prints one JSON line with its ``url``, as
:mod:`tests.mock_openai` does, whose live endpoint it serves, too: a request has the same reply live and in a batch.

``POST /v1/files`` (multipart; ``purpose`` is ``batch``), ``GET /v1/files/{id}/content``, ``POST /v1/batches``,
``GET /v1/batches/{id}`` and ``GET /v1/batches`` (``limit`` of 1 to 100, ``after``, the newest first) check what they
are sent and answer 400 or 404 in OpenAI's words. A file's lines are checked when its batch is: it fails as a whole if
one is wrong. ``plan`` says what goes wrong, by the ordinal of the batch from 0, or of the request to create one::

    {"failed": 0.02, "seed": 1,            share of lines with status 500 in the error file, drawn for each try
     "bad": {"text": "content_filter"},    lines whose messages hold a text get status 400 with a code
     "expired": [1],                       the batch expires with half of its lines answered
     "cancelled": [1],                     the same, cancelled
     "crowded": [2],                       the batch fails with token_limit_exceeded
     "lost": [0],                          the batch is created, but its creator gets no reply
     "refused": {"0": 500},                no batch is created; the creator gets this status
     "before": 1.0, "after": 1.0,          seconds before a batch is created, and before its creator is told
     "reading": 1.0}                       seconds before the content of an output file is sent

``GET /counts`` tells ``files``, ``batches``, ``looks`` (at a batch), ``listings``, ``contents``, ``live`` and ``paid``
with ``paid_duplicates``: lines that were answered, by the digest of their bodies, whether or not anyone fetched them.
"""

import argparse
import asyncio
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from hashlib import sha256
from random import Random
from typing import Any

import orjson
from aiohttp import web

from tests.mock_openai import ROOT, Mock, MockSettings, write_completion, write_content

ENDPOINT = "/v1/chat/completions"
MOST_LINES = 50_000
MOST_BYTES = 200_000_000


@dataclass(frozen=True)
class Plan:
    """What goes wrong."""

    failed: float = 0.0
    seed: int = 0
    bad: dict[str, str] = field(default_factory=dict)
    expired: list[int] = field(default_factory=list)
    cancelled: list[int] = field(default_factory=list)
    crowded: list[int] = field(default_factory=list)
    lost: list[int] = field(default_factory=list)
    refused: dict[str, int] = field(default_factory=dict)
    before: float = 0.0
    after: float = 0.0
    reading: float = 0.0


class Refused(Exception):
    """A request that is not as it must be."""

    def __init__(self, message: str, status: int = 400) -> None:
        super().__init__(message)
        self.status = status


def demand(true: object, message: str) -> None:
    if not true:
        raise Refused(message)


@dataclass
class BatchMock:
    """The server's state and its answers."""

    seconds: float = 0.2
    plan: Plan = Plan()
    model: str = "mock"
    url: str = ""
    files: dict[str, bytes] = field(default_factory=dict)
    batches: dict[str, dict] = field(default_factory=dict)
    creations: int = 0
    tries: Counter[str] = field(default_factory=Counter)
    counts: Counter[str] = field(default_factory=Counter)
    bought: set[bytes] = field(default_factory=set)
    live: Mock = field(default_factory=lambda: Mock(MockSettings()))

    async def answer(self, request: web.BaseRequest) -> web.StreamResponse:
        """Answer any request."""
        if request.path == "/counts":
            live = self.live.counts.describe()["paid"]
            paid = {"paid": self.counts["paid"], "paid_duplicates": self.counts["paid"] - len(self.bought)}
            names = ("files", "batches", "looks", "listings", "contents")
            return web.json_response({name: self.counts[name] for name in names} | paid | {"live": live})
        if request.path == "/plan":
            self.plan = Plan(**orjson.loads(await request.read()))
            return web.json_response({})
        try:
            demand(request.headers.get("Authorization", "").startswith("Bearer "), "You didn't provide an API key.")
            return await self._route(request)
        except Refused as error:
            said = {"message": str(error), "type": "invalid_request_error", "param": None, "code": None}
            return web.json_response({"error": said}, status=error.status)

    async def _route(self, request: web.BaseRequest) -> web.StreamResponse:
        match request.method, request.path.strip("/").split("/")[1:]:
            case "POST", ["files"]:
                return web.json_response(await self._take_file(request))
            case "GET", ["files", name, "content"]:
                return await self._send_content(name)
            case "POST", ["batches"]:
                return await self._create(request)
            case "GET", ["batches"]:
                return web.json_response(self._list(request))
            case "GET", ["batches", name]:
                self.counts["looks"] += 1
                return web.json_response(self._find(name))
        return await self.live.answer(request)

    async def _take_file(self, request: web.BaseRequest) -> dict:
        form = {part.name: (part.filename, bytes(await part.read())) async for part in await request.multipart()}
        demand(set(form) == {"purpose", "file"}, f"Unknown or missing parameters: {sorted(form)}")
        demand(form["purpose"][1] == b"batch", "Invalid 'purpose': expected 'batch'")
        filename, data = form["file"]
        demand(filename.endswith(".jsonl"), "Invalid file format for Batch API. Must be .jsonl")
        demand(len(data) <= MOST_BYTES, "File is larger than 200 MB")
        name = f"file-{len(self.files)}"
        self.files[name] = data
        self.counts["files"] += 1
        return {
            "id": name,
            "object": "file",
            "bytes": len(data),
            "created_at": int(time.time()),
            "filename": filename,
            "purpose": "batch",
            "status": "processed",
        }

    async def _send_content(self, name: str) -> web.Response:
        if name not in self.files:
            raise Refused(f"No such File object: {name}", 404)
        self.counts["contents"] += 1
        await asyncio.sleep(self.plan.reading)
        return web.Response(body=self.files[name], content_type="application/octet-stream")

    async def _create(self, request: web.BaseRequest) -> web.StreamResponse:
        asked = orjson.loads(await request.read())
        ordinal, self.creations = self.creations, self.creations + 1
        if status := self.plan.refused.get(str(ordinal)):
            return web.json_response({"error": {"message": "The server had an error"}}, status=status)
        names = {"input_file_id", "endpoint", "completion_window", "metadata"}
        demand(set(asked) == names, f"Unknown or missing parameters: {sorted(set(asked) ^ names)}")
        demand(asked["endpoint"] == ENDPOINT, f"Invalid value: '{asked['endpoint']}'")
        demand(asked["completion_window"] == "24h", "Supported values are: '24h'")
        demand(asked["input_file_id"] in self.files, f"No such File object: {asked['input_file_id']}")
        tags = asked["metadata"]
        short = all(isinstance(value, str) and len(key) <= 64 and len(value) <= 512 for key, value in tags.items())
        demand(len(tags) <= 16 and short, "Invalid 'metadata'")
        await asyncio.sleep(self.plan.before)
        batch = self._open(asked)
        await asyncio.sleep(self.plan.after)
        if ordinal in self.plan.lost and request.transport:
            request.transport.abort()
        return web.json_response(batch)

    def _open(self, asked: dict) -> dict:
        number, now = len(self.batches), int(time.time())
        batch = asked | {"id": f"batch_{number}", "object": "batch", "created_at": now, "status": "validating"}
        batch |= {"errors": None, "output_file_id": None, "error_file_id": None, "expires_at": now + 86_400}
        self.batches[batch["id"]] = batch
        self.counts["batches"] += 1
        errors = self._validate(self.files[asked["input_file_id"]])
        if number in self.plan.crowded:
            errors = [{"code": "token_limit_exceeded", "message": "Enqueued token limit reached.", "line": None}]
        if errors:
            batch |= {"status": "failed", "errors": {"object": "list", "data": errors}, "failed_at": now}
        else:
            batch["status"] = "in_progress"
            asyncio.get_running_loop().call_later(self.seconds, self._work, batch, number)
        return batch

    def _validate(self, data: bytes) -> list[dict]:
        errors, seen, models = [], set(), set()
        for number, line in enumerate(data.splitlines(), 1):
            try:
                found = orjson.loads(line)
                demand(set(found) == {"custom_id", "method", "url", "body"}, "Unknown or missing parameters")
                demand(0 < len(found["custom_id"]) <= 64, "The custom_id is too long")
                demand(found["custom_id"] not in seen, "The custom_id for this request is a duplicate")
                demand(found["method"] == "POST", "Only POST is supported")
                demand(found["url"] == ENDPOINT, "The provided URL does not match the batch endpoint")
                demand(found["body"]["messages"] and not found["body"].get("stream"), "Invalid body")
                seen.add(found["custom_id"])
                models.add(found["body"]["model"])
            except (Refused, KeyError, orjson.JSONDecodeError) as error:
                errors.append({"code": "invalid_json_line", "message": str(error), "line": number, "param": None})
        if not seen or len(seen) > MOST_LINES:
            errors.append({"code": "invalid_file", "message": f"{len(seen)} requests", "line": None})
        if len(models) > 1 or (models and self.model not in models):
            errors.append(
                {"code": "model_not_found", "message": f"The model {sorted(models)} does not exist", "line": 1}
            )
        return errors

    def _work(self, batch: dict, number: int) -> None:
        """Answer the lines, in an order of the server's own."""
        lines = [orjson.loads(line) for line in self.files[batch["input_file_id"]].splitlines()]
        Random(number).shuffle(lines)
        early = "expired" if number in self.plan.expired else "cancelled" if number in self.plan.cancelled else ""
        answered, spoilt = [], []
        for position, line in enumerate(lines):
            if early and position >= len(lines) // 2:
                late = {"code": f"batch_{early}", "message": "This request could not be executed in time."}
                spoilt.append({"custom_id": line["custom_id"], "response": None, "error": late})
                continue
            response = self._answer_line(line)
            (answered if response["status_code"] == 200 else spoilt).append(
                {"id": f"batch_req_{position}", "custom_id": line["custom_id"], "response": response, "error": None}
            )
        for kind, found in (("output_file_id", answered), ("error_file_id", spoilt)):
            if found:
                batch[kind] = f"file-{len(self.files)}"
                self.files[batch[kind]] = b"".join(orjson.dumps(line) + b"\n" for line in found)
        batch["request_counts"] = {"total": len(lines), "completed": len(answered), "failed": len(spoilt)}
        batch["status"] = early or "completed"

    def _answer_line(self, line: dict) -> dict:
        body, key = line["body"], line["custom_id"]
        said = orjson.dumps(body["messages"]).decode()
        for text, code in self.plan.bad.items():
            if text in said:
                error = {"message": f"refused: {code}", "type": "invalid_request_error", "code": code}
                return {"status_code": 400, "request_id": "r", "body": {"error": error}}
        self.tries[key] += 1
        if Random(f"{self.plan.seed}:{said}:{self.tries[key]}").random() < self.plan.failed:
            return {"status_code": 500, "request_id": "r", "body": {"error": {"message": "The server had an error"}}}
        self.counts["paid"] += 1
        self.bought.add(sha256(orjson.dumps(body)).digest())
        completion = orjson.loads(write_completion(write_content(body)))
        return {"status_code": 200, "request_id": "r", "body": completion}

    def _find(self, name: str) -> dict:
        if name not in self.batches:
            raise Refused(f"No batch found with id '{name}'.", 404)
        return self.batches[name]

    def _list(self, request: web.BaseRequest) -> dict:
        self.counts["listings"] += 1
        limit, after = int(request.query.get("limit", "20")), request.query.get("after")
        demand(1 <= limit <= 100 and set(request.query) <= {"limit", "after"}, "Invalid query")
        newest = list(reversed(self.batches.values()))
        start = newest.index(self._find(after)) + 1 if after else 0
        page = newest[start : start + limit]
        return {"object": "list", "data": page, "has_more": start + limit < len(newest)}


@asynccontextmanager
async def open_batches(mock: BatchMock) -> AsyncIterator[BatchMock]:
    """Serve on the running loop until the block ends."""
    loop = asyncio.get_running_loop()

    def make_request(*parts: Any) -> web.BaseRequest:
        return web.BaseRequest(*parts, loop, client_max_size=MOST_BYTES)

    server = web.Server(mock.answer, request_factory=make_request, handler_cancellation=True, access_log=None)
    runner = web.ServerRunner(server, shutdown_timeout=0.1)
    await runner.setup()
    try:
        site = web.TCPSite(runner, "127.0.0.1", 0, backlog=1024)
        await site.start()
        mock.url = f"http://127.0.0.1:{runner.addresses[0][1]}/v1"
        yield mock
    finally:
        await runner.cleanup()


@contextmanager
def serve_batches(mock: BatchMock) -> Iterator[BatchMock]:
    """Serve on a loop in a thread of its own until the block ends."""
    loop, ready = asyncio.new_event_loop(), threading.Event()
    stop = asyncio.Event()

    async def work() -> None:
        async with open_batches(mock):
            ready.set()
            await stop.wait()

    def run() -> None:
        with asyncio.Runner(loop_factory=lambda: loop) as runner:
            runner.run(work())

    thread = threading.Thread(target=run)
    thread.start()
    ready.wait()
    try:
        yield mock
    finally:
        loop.call_soon_threadsafe(stop.set)
        thread.join()


@contextmanager
def start_batches(seconds: float = 0.2, **plan: object) -> Iterator[str]:
    """Run the process until the block ends and return its address."""
    command = [sys.executable, "-m", "tests.mock_batches", "--seconds", str(seconds), "--plan", json.dumps(plan)]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE) as process:
        try:
            assert process.stdout is not None
            yield json.loads(process.stdout.readline())["url"]
        finally:
            process.terminate()


async def serve(mock: BatchMock) -> None:
    """Serve until a signal asks to stop."""
    stop = asyncio.Event()
    for name in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(name, stop.set)
    async with open_batches(mock):
        sys.stdout.write(json.dumps({"url": mock.url, "pid": os.getpid()}) + "\n")
        sys.stdout.flush()
        await stop.wait()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m tests.mock_batches")
    parser.add_argument("--seconds", type=float, default=0.2, help="that a batch takes")
    parser.add_argument("--plan", default="{}", help="JSON")
    given = parser.parse_args()
    asyncio.run(serve(BatchMock(given.seconds, Plan(**json.loads(given.plan)))))
