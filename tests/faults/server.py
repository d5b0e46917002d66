"""An OpenAI-compatible server that fails in one way until it is told to be well; faults by name are ``FAULTS``.

``with open_server() as server`` serves from a process of its own: ``server.fail("hang")`` and ``server.mend()`` change
what the next requests get. While it is well it answers as :mod:`tests.mock_openai` does.
"""

import asyncio
import gzip
import json
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.request import Request, urlopen

import orjson
from aiohttp import web

from tests.mock_openai import HEAD, NO_CHOICE, TAIL, Mock, MockSettings, write_completion

ROOT = Path(__file__).parents[2]
STATUSES = (400, 401, 403, 404, 413, 422, 429, 500, 502, 503, 504)
ENDLESS = 64 * 1024 * 1024
"""Bytes of a reply without end; nobody may read them all."""


def _finish(reason: str) -> bytes:
    return TAIL.replace(b'"stop"', b'"' + reason.encode() + b'"')


def _change_message(body: bytes, **fields: object) -> bytes:
    """Return a completion with other fields in its message."""
    completion = orjson.loads(body)
    completion["choices"][0]["message"] |= fields
    completion["choices"][0]["finish_reason"] = "stop"
    return orjson.dumps(completion)


CALL = {"id": "call-1", "type": "function", "function": {"name": "launch", "arguments": "{}"}}
BODIES: dict[str, Callable[[bytes], bytes]] = {
    "html": lambda right: b"<html><body>It works!</body></html>",
    "no body": lambda right: b"",
    "malformed": lambda right: right[: len(right) // 2],
    "a list": lambda right: b"[]",
    "no choice": lambda right: NO_CHOICE,
    "no message": lambda right: orjson.dumps({**orjson.loads(right), "choices": [{"index": 0}]}),
    "error in 200": lambda right: b'{"error": {"message": "the engine is dead", "type": "server_error", "code": 500}}',
    "number": lambda right: HEAD + b"7" + TAIL,
    "null": lambda right: HEAD + b"null" + TAIL,
    "empty": lambda right: write_completion(""),
    "blank": lambda right: write_completion(" \n "),
    "reasoning only": lambda right: _change_message(HEAD + b"null" + TAIL, reasoning_content="Let me think about it."),
    "cut": lambda right: HEAD + b'"{\\"question\\": \\"What"' + _finish("length"),
    "filtered": lambda right: HEAD + b'""' + _finish("content_filter"),
    "refusal": lambda right: _change_message(HEAD + b"null" + TAIL, refusal="I can't help with that."),
    "prose": lambda right: write_completion("Well, let us see."),
    "other shape": lambda right: write_completion('{"zq": ["another shape"]}'),
    "one token": lambda right: write_completion("!" * 4000),
    "uninvited call": lambda right: _change_message(HEAD + b"null" + TAIL, tool_calls=[CALL]),
    "wrong bytes": lambda right: right.replace(b'"content":', b'"content":"\xff\xfe\x80', 1),
}
OTHER_MODEL = b'"model":"other-7b","system_fingerprint":"fp-1"'
MORE: dict[str, Callable[[bytes], bytes]] = {
    "12 MB": lambda right: write_completion("word " * 2_400_000),
    "other model": lambda right: right.replace(b'"model":"mock"', OTHER_MODEL, 1),
}
"""Bodies whose end the role decides, by its ``max_tokens``, or that end no run: for rows of their own."""
WIRE = ("redirect", "gzip", "short", "close", "hang", "drip", "endless")
FAULTS = (*(str(status) for status in STATUSES), *BODIES, *WIRE)


class FaultyServer(Mock):
    """A mock that answers every chat with the fault that is set; none is being well."""

    fault = ""

    async def answer(self, request: web.BaseRequest) -> web.StreamResponse:
        if request.path == "/fault":
            self.fault = (await request.read()).decode()
            return web.Response()
        return await super().answer(request)

    async def _send(self, request: web.BaseRequest, raw: bytes, outcome: str) -> web.StreamResponse:
        right = self._make_body(raw, "ok")
        if not self.fault:
            return web.Response(body=right, content_type="application/json")
        if self.fault.isdigit():
            error = {"message": "the mock says no", "type": "error", "param": None, "code": None}
            return web.json_response({"error": error}, status=int(self.fault), headers={"Retry-After": "1"})
        if make := {**BODIES, **MORE}.get(self.fault):
            return web.Response(body=make(right), content_type="application/json")
        return await getattr(self, f"_send_{self.fault}")(request, right)

    async def _send_redirect(self, request: web.BaseRequest, right: bytes) -> web.StreamResponse:
        return web.Response(status=302, headers={"Location": "/v1/elsewhere"})

    async def _send_gzip(self, request: web.BaseRequest, right: bytes) -> web.StreamResponse:
        body = gzip.compress(right)[:-12] + b"zqzqzqzqzqzq"
        return web.Response(body=body, headers={"Content-Encoding": "gzip", "Content-Type": "application/json"})

    async def _send_short(self, request: web.BaseRequest, right: bytes) -> web.StreamResponse:
        return await self._begin(request, len(right), right[: len(right) // 2])

    async def _send_close(self, request: web.BaseRequest, right: bytes) -> web.StreamResponse:
        if request.transport:
            request.transport.abort()
        return web.Response()

    async def _send_hang(self, request: web.BaseRequest, right: bytes) -> web.StreamResponse:
        await asyncio.sleep(3600)
        return web.Response()

    async def _send_drip(self, request: web.BaseRequest, right: bytes) -> web.StreamResponse:
        response = await self._begin(request, len(right), b"", close=False)
        for byte in right:
            await response.write(bytes([byte]))
            await asyncio.sleep(1)
        return response

    async def _send_endless(self, request: web.BaseRequest, right: bytes) -> web.StreamResponse:
        response = await self._begin(request, ENDLESS, right[:-1], close=False)
        for _ in range(ENDLESS // 65536):
            await response.write(b" " * 65536)
        return response

    async def _begin(
        self, request: web.BaseRequest, length: int, body: bytes, close: bool = True
    ) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": "application/json", "Content-Length": str(length)})
        await response.prepare(request)
        await response.write(body)
        if close and request.transport:
            request.transport.close()
        return response


@dataclass(frozen=True)
class Handle:
    """The server as a test has it."""

    url: str

    def fail(self, fault: str) -> None:
        """Have every chat fail in this way."""
        assert fault in (*FAULTS, *MORE), fault
        self._tell("/fault", fault)

    def mend(self) -> None:
        """Have every chat answered well, and forget what was counted."""
        self._tell("/fault", "")
        self._tell("/reset", "")

    def count(self) -> dict:
        """Return what was asked since it was mended."""
        with urlopen(self.url.removesuffix("/v1") + "/counts") as response:
            return json.load(response)

    def _tell(self, path: str, text: str) -> None:
        with urlopen(Request(self.url.removesuffix("/v1") + path, text.encode(), method="POST")):
            return


@contextmanager
def open_server() -> Iterator[Handle]:
    """Run the server as a process until the block ends."""
    command = [sys.executable, "-m", "tests.faults.server"]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            yield Handle(process.stdout.readline().strip())
        finally:
            process.terminate()


async def serve() -> None:
    """Serve until a signal asks to stop."""
    stop = asyncio.Event()
    for name in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(name, stop.set)
    faulty = FaultyServer(MockSettings())
    server = web.Server(faulty.answer, handler_cancellation=True, access_log=None)
    runner = web.ServerRunner(server, shutdown_timeout=0.1)
    await runner.setup()
    with socket.create_server(("127.0.0.1", 0), backlog=1024) as listening:
        await web.SockSite(runner, listening).start()
        sys.stdout.write(f"http://127.0.0.1:{listening.getsockname()[1]}/v1\n")
        sys.stdout.flush()
        await stop.wait()
        await runner.cleanup()


if __name__ == "__main__":
    asyncio.run(serve())
