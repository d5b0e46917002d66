"""Tools that `synth serve-tools` serves, for trainers, in one file that needs nothing but Python: shipped with RL data.

Put its folder on PYTHONPATH, of every worker. The server's address is ``SYNTH_TOOLS`` in the environment, else
``config.server`` where a trainer has a configuration, else http://127.0.0.1:8765. No proxy is asked.

- veRL: ``tools.yaml`` names :class:`VerlTool` for every tool. All calls of an attempt are made in one session.
- rLLM: :class:`RllmEnvironment` is an environment (``from_dict``, ``reset``, ``step``, ``close``) whose acts are tool
  calls or the final text.
- anything else, such as ART: :class:`ToolSession` is one attempt.

An attempt whose ``held_out`` is true was shown a fact of a question for evaluation: do not train on it.
"""

import asyncio
import base64
import http.client
import importlib
import io
import json
import os
import threading
import time
import urllib.error
import urllib.request
import weakref
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

ADDRESS = "http://127.0.0.1:8765"
TRIES = 5
"""Requests that are sent while the server is away or full; it waits 1, 2, 4 ... seconds between them."""
PATIENCE = 120.0
"""Seconds that a request may take."""
BUSY = 503
OPENER = urllib.request.build_opener(urllib.request.ProxyHandler({}))


class ToolServerError(RuntimeError):
    """The server refused a request, or is away; ``status`` is that of HTTP, 0 for no reply."""

    def __init__(self, status: int, text: str) -> None:
        super().__init__(text)
        self.status = status


@dataclass(frozen=True)
class ShownPicture:
    """A picture of an attempt."""

    id: str
    """Name by which calls name it, such as ``img_2``."""
    media_type: str
    content: bytes


@dataclass(frozen=True)
class ToolReply:
    """What a call or a turn led to; see `synth serve-tools`."""

    text: str
    """For a tool's message: no tags around it, which chat templates add."""
    message: str
    """As the dialect shows it, with its tags."""
    images: tuple[ShownPicture, ...]
    ok: bool
    calls_left: int
    ended: str
    """Why the attempt is over; empty while it goes on."""
    answer: str
    held_out: bool


class ToolSession:
    """One attempt at one question. It is opened by the first request, and safe from any thread."""

    def __init__(self, question_id: str, server: str = "") -> None:
        self.question_id = question_id
        self.server = (os.environ.get("SYNTH_TOOLS") or server or ADDRESS).rstrip("/")
        self.messages: list[dict[str, str]] = []
        """System message and question, as the dialect has them."""
        self.images: tuple[ShownPicture, ...] = ()
        """The question's picture, then those that tools have shown."""
        self.held_out = False
        self._id = ""
        self._lock = threading.Lock()

    def open(self) -> "ToolSession":
        """Open it, if it is not."""
        with self._lock:
            if not self._id:
                opened = send(f"{self.server}/sessions", {"question_id": self.question_id})
                self.messages, self.images = opened["messages"], read_pictures(opened["images"])
                self._id = opened["session"]
        return self

    def list_tools(self) -> list[dict[str, Any]]:
        """Return the tools as OpenAI's API takes them."""
        tools: list[dict[str, Any]] = send(f"{self.server}/tools")
        return tools

    def call(self, name: str, arguments: Mapping[str, Any] | str) -> ToolReply:
        """Make one call."""
        return self._ask("calls", {"name": name, "arguments": arguments})

    def take_turn(self, text: str) -> ToolReply:
        """Give a model's whole turn in the words of the dialect: its call is made, or its answer ends the attempt."""
        return self._ask("turns", {"text": text})

    def _ask(self, what: str, body: Mapping[str, Any]) -> ToolReply:
        self.open()
        told = send(f"{self.server}/sessions/{self._id}/{what}", body)
        images = read_pictures(told["images"])
        self.images += images
        self.held_out = self.held_out or told["held_out"]
        names = ("text", "message", "ok", "calls_left", "ended", "answer", "held_out")
        return ToolReply(images=images, **{name: told[name] for name in names})

    def close(self) -> None:
        """Close it; a server that is away, or refuses, forgets it by itself."""
        with self._lock:
            session, self._id = self._id, ""
        if session:
            # An attempt's own error, which this may follow, must not be hidden.
            with suppress(ToolServerError):
                send(f"{self.server}/sessions/{session}", method="DELETE", tries=1)


def read_pictures(told: list[dict[str, str]]) -> tuple[ShownPicture, ...]:
    """Return pictures as the server gives them."""
    return tuple(ShownPicture(each["id"], each["media_type"], base64.b64decode(each["data"])) for each in told)


def send(url: str, body: Mapping[str, Any] | None = None, method: str = "", tries: int = TRIES) -> Any:  # noqa: ANN401 - JSON
    """Send a request and return its JSON value; a call that may have been made is not repeated."""
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(url, data, {"Content-Type": "application/json"}, method=method or None)
    for attempt in range(1, tries + 1):
        try:
            with OPENER.open(request, timeout=PATIENCE) as reply:
                content = reply.read()
            return json.loads(content) if content else None
        except urllib.error.HTTPError as error:
            told = error.read().decode("utf-8", "replace")
            if error.code != BUSY or attempt == tries:
                raise ToolServerError(error.code, f"{url}: {error.code} {told}") from error
        except (OSError, http.client.HTTPException, ValueError) as error:
            reason = getattr(error, "reason", error)
            if not isinstance(reason, ConnectionRefusedError) or attempt == tries:
                raise ToolServerError(0, f"{url}: {reason}; does `synth serve-tools` run there?") from error
        time.sleep(2.0 ** (attempt - 1))
    raise ToolServerError(0, f"{url}: nothing was sent")


def find_class(module: str, name: str) -> type[Any]:
    """Return a class of a trainer, or ``object`` where the trainer is not installed."""
    try:
        found: type[Any] = getattr(importlib.import_module(module), name)
    except ImportError:
        return object
    return found


_ATTEMPTS: "weakref.WeakKeyDictionary[Any, ToolSession]" = weakref.WeakKeyDictionary()
"""veRL makes and releases a tool for each call; its ``AgentData`` lives as long as the attempt."""
_ATTEMPTS_LOCK = threading.Lock()


def find_attempt(owner: Any, question_id: str, server: str) -> ToolSession:  # noqa: ANN401 - veRL's AgentData
    """Return the session of an attempt; it is closed when its owner is gone."""
    with _ATTEMPTS_LOCK:
        session = _ATTEMPTS.get(owner)
        if session is None:
            session = _ATTEMPTS[owner] = ToolSession(question_id, server)
            # The owner may go while an event loop runs, which must not wait.
            closing = threading.Thread(target=session.close, daemon=True)
            weakref.finalize(owner, closing.start).atexit = False
        return session


class VerlTool(find_class("verl.tools.base_tool", "BaseTool")):  # type: ignore[misc]
    """A tool of veRL 0.9, one for each entry of ``tools.yaml``; its name and schema are those of the entry."""

    def __init__(self, config: dict[str, Any], tool_schema: Any) -> None:  # noqa: ANN401 - veRL's schema
        super().__init__(config, tool_schema)
        self._calls: dict[str, Mapping[str, Any]] = {}

    async def create(self, instance_id: str | None = None, **kwargs: Any) -> tuple[str, Any]:  # noqa: ANN401 - veRL's
        """Keep what the row says of this tool: which question it is."""
        made, response = await super().create(instance_id)
        self._calls[made] = kwargs.get("create_kwargs") or kwargs
        return made, response

    async def execute(
        self,
        instance_id: str,
        parameters: dict[str, Any],
        **kwargs: Any,  # noqa: ANN401 - veRL's
    ) -> tuple[Any, float, dict[str, Any]]:
        """Make the call; of one attempt all calls see the same pictures."""
        owner, question = kwargs.get("agent_data"), self._calls[instance_id].get("task_id")
        if owner is None or not question:
            raise ToolServerError(0, f"{self.name}: veRL gave no agent_data, or the row no tools_kwargs with a task_id")
        session = find_attempt(owner, question, self.config.get("server", ""))
        reply = await asyncio.to_thread(session.call, self.name, parameters)
        content: dict[str, Any] = {"text": reply.text}
        if reply.images:
            picture = importlib.import_module("PIL.Image")
            content["image"] = [picture.open(io.BytesIO(each.content)).convert("RGB") for each in reply.images]
        owner.extra_fields["held_out"] = session.held_out
        response = importlib.import_module("verl.tools.schemas").ToolResponse(**content)
        return response, 0.0, {"failed": not reply.ok, "held_out": reply.held_out}

    async def release(self, instance_id: str, **kwargs: Any) -> None:  # noqa: ANN401 - veRL's
        """Forget the call."""
        self._calls.pop(instance_id, None)


class RllmEnvironment(find_class("rllm.environments.base.base_env", "BaseEnv")):  # type: ignore[misc]
    """An environment of rLLM: one attempt at the question of a row of the exported data.

    Attributes:
        task: the row; ``id`` is the question's.
        reward_fn: as rLLM's: takes ``task_info`` and ``action``, gives something with ``reward`` and ``metadata``;
            without one :func:`rewards.compute_score` beside this file says whether the answer is right.
        max_steps: after which it ends.
    """

    def __init__(
        self,
        task: dict[str, Any],
        reward_fn: Callable[..., Any] | None = None,
        max_steps: int = 30,
        server: str = "",
    ) -> None:
        super().__init__()
        self.task, self.reward_fn, self.max_steps, self.server = task, reward_fn, max_steps, server
        self.steps = 0
        self.session = ToolSession(task["id"], server)

    @staticmethod
    def from_dict(env_args: dict[str, Any]) -> "RllmEnvironment":
        """Return the environment of a row merged with ``env_args`` of the trainer."""
        row = dict(env_args)
        own = {name: row.pop(name) for name in ("reward_fn", "max_steps", "server") if name in row}
        return RllmEnvironment(row, **own)

    def reset(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """Begin anew; the observation is the question with its picture."""
        self.close()
        self.steps, self.session = 0, ToolSession(self.task["id"], self.server).open()
        images = [each.content for each in self.session.images]
        return {"question": self.task["question"], "images": images}, {"tools": self.session.list_tools()}

    def step(self, action: Any) -> tuple[dict[str, Any], float, bool, dict[str, Any]]:  # noqa: ANN401 - rLLM's
        """Make calls (OpenAI's form, one or a list), or end with the final text."""
        self.steps += 1
        calls = [action] if isinstance(action, dict) else action
        if isinstance(calls, str) or not calls:
            return self._end(calls if isinstance(calls, str) else "")
        outputs, images, over = {}, list[bytes](), self.steps >= self.max_steps
        for place, call in enumerate(calls):
            reply = self.session.call(call["function"]["name"], call["function"]["arguments"])
            outputs[call.get("id", str(place))] = reply.text
            images += [each.content for each in reply.images]
            over = over or bool(reply.ended)
        told = {"response": action, "metadata": {"held_out": self.session.held_out}}
        return {"tool_outputs": outputs, "images": images}, 0.0, over, told

    def _end(self, text: str) -> tuple[dict[str, Any], float, bool, dict[str, Any]]:
        metadata: dict[str, Any] = {"held_out": self.session.held_out}
        if self.reward_fn is not None:
            scored = self.reward_fn(task_info=self.task, action=text)
            reward, metadata = float(scored.reward), metadata | dict(scored.metadata or {})
        else:
            # A text without tags is all answer.
            said = text if "<answer>" in text else f"<think>-</think><answer>{text}</answer>"
            truth = {"candidate_answers": self.task.get("candidate_answers"), "dialect": "synth"}
            score = importlib.import_module("rewards").compute_score("synth", said, self.task["answer"], truth)
            reward, metadata = float(score["acc"]), metadata | score
        return {}, reward, True, {"response": text, "metadata": metadata}

    def close(self) -> None:
        """Close the session."""
        self.session.close()
