"""A server of ``/v1/chat/completions`` on loopback that says what it is told to and misbehaves when told to."""

import json
import sys
import threading
import time
from collections.abc import Callable
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


@dataclass(frozen=True, slots=True)
class Fault:
    """What to send in place of a completion."""

    status: int = 200
    body: bytes = b"<html>busy</html>"
    headers: dict = field(default_factory=dict)
    cut: int = 0
    """Bytes promised and not sent."""
    hang_up: bool = False
    """Close the connection with no reply."""
    drip: float = 0.0
    """Seconds between bytes."""


def make_error(status: int, message: str = "no", code: str | None = None, **headers: str) -> Fault:
    """Return an error as OpenAI and vLLM word it."""
    body = {"error": {"message": message, "type": "invalid_request_error", "param": None, "code": code}}
    return Fault(status, json.dumps(body).encode(), {name.replace("_", "-"): value for name, value in headers.items()})


def make_completion(text: str | None, finish_reason: str | None = "stop", **message) -> dict:
    """Return a completion of one choice."""
    choice = {"index": 0, "message": {"role": "assistant", "content": text, **message}, "finish_reason": finish_reason}
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 1,
        "model": "tiny",
        "choices": [choice],
        "usage": {"prompt_tokens": 11, "completion_tokens": 7, "total_tokens": 18},
    }


Responder = Callable[[dict], str | dict | Fault]


@dataclass
class ChatServer:
    """What it says, and what it was asked."""

    respond: Responder = lambda body: "hello"
    """Makes the text, or the whole completion, or a fault from a request's body."""
    faults: list = field(default_factory=list)
    """Sent first, one a request."""
    url: str = ""
    requests: list = field(default_factory=list)
    """Bodies, each with its path, headers and client address."""
    busy: int = 0
    most_busy: int = 0
    lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def bodies(self) -> list:
        return [request["body"] for request in self.requests]


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        server = self.server.chat
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        headers = {name.lower(): value for name, value in self.headers.items()}
        asked = {"path": self.path, "headers": headers, "body": body, "client": self.client_address}
        with server.lock:
            server.busy += 1
            server.most_busy = max(server.most_busy, server.busy)
            server.requests.append(asked)
            fault = server.faults.pop(0) if server.faults else None
        try:
            said = fault or server.respond(body)
            self._send(said if isinstance(said, Fault) else self._wrap(said))
        except (BrokenPipeError, ConnectionResetError):
            self.close_connection = True
        finally:
            with server.lock:
                server.busy -= 1

    def _wrap(self, said):
        completion = make_completion(said) if isinstance(said, str) else said
        return Fault(body=json.dumps(completion).encode(), headers={"Content-Type": "application/json"})

    def _send(self, fault):
        self.close_connection = bool(fault.cut) or fault.hang_up
        if fault.hang_up:
            return
        self.send_response(fault.status)
        for name, value in fault.headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(fault.body) + fault.cut))
        self.end_headers()
        if fault.drip:
            for byte in fault.body:
                self.wfile.write(bytes([byte]))
                self.wfile.flush()
                time.sleep(fault.drip)
        else:
            self.wfile.write(fault.body)

    def log_message(self, *parts):
        """Say nothing."""


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 64

    def handle_error(self, request, client_address):
        """Say nothing of a client that hung up; it may."""
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)


@contextmanager
def run_chat(respond: Responder = lambda body: "hello", faults=(), port=0):
    """Run a server until the block ends."""
    chat = ChatServer(respond, list(faults))
    with _Server(("127.0.0.1", port), _Handler) as httpd:
        httpd.chat = chat
        chat.url = f"http://127.0.0.1:{httpd.server_port}/v1"
        thread = threading.Thread(target=httpd.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield chat
        finally:
            httpd.shutdown()
            thread.join()
