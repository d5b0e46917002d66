"""A server of ``/v1/chat/completions`` on loopback that says what it is told to and misbehaves when told to."""

from collections.abc import Callable
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial

from tests.pipelines.services.clients.live_servers import Answer, LiveServer, run_handler, say

Fault = partial(Answer, body=b"<html>busy</html>")
"""Makes what is sent in place of a completion."""
Responder = Callable[[dict], str | dict | Answer]


def make_error(status: int, message: str = "no", code: str | None = None, **headers: str) -> Answer:
    """Return an error as OpenAI and vLLM word it."""
    error = {"message": message, "type": "invalid_request_error", "param": None, "code": code}
    return say({"error": error}, status, **headers)


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


@dataclass
class ChatServer(LiveServer):
    """What it says, and what it was asked."""

    say: Responder = lambda body: "hello"
    """Makes the text, the whole completion or a fault from a request's body."""

    def __post_init__(self):
        self.respond = self.complete

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/v1"

    @property
    def requests(self) -> list[dict]:
        return [{"path": asked.path, "headers": asked.headers, "body": asked.json()} for asked in self.asked]

    @property
    def bodies(self) -> list[dict]:
        return [asked.json() for asked in self.asked]

    def complete(self, asked):
        said = self.say(asked.json())
        return said if isinstance(said, Answer) else say(make_completion(said) if isinstance(said, str) else said)


@contextmanager
def run_chat(respond: Responder = lambda body: "hello", faults=(), port=0):
    """Run a server until the block ends."""
    with run_handler(ChatServer(say=respond, faults=list(faults), port=port)) as server:
        yield server
