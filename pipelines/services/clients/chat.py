"""Chat with servers that speak OpenAI's ``/chat/completions``, vLLM's among them.

Only the messages of a request are sent; its typed inputs are not. A cut or refused reply is marked here and handled in
``pipelines.services.prompting``.

Parts: the body of a request; reading a completion; the state of an address (load, limit, health); the pool in which
requests wait for a place at one of several addresses; the meaning of error responses; and the model.
"""

import asyncio
import base64
import json
import math
import os
import random
import re
import time
from collections import OrderedDict, deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from random import Random
from typing import Any, Literal
from urllib.parse import urlsplit

import orjson
from pydantic import BaseModel, Field, ValidationError

from pipelines.config.settings import ModelConfig
from pipelines.errors import ConfigError, RateLimited, RecordFailed, SynthError, Unavailable
from pipelines.services.clients.http import (
    HttpReply,
    HttpRequest,
    HttpSession,
    NoConnection,
    NoReply,
    Silence,
    redact,
)
from pipelines.services.protocols import ChatReply, ChatRequest, Ending, Message, ToolCall

Replies = Literal["schema", "json", "text"]
"""How a reply's format is forced: by JSON schema, as any JSON object, or not at all."""
KEPT_BYTES = 1 << 26
"""Bytes of encoded pictures kept in memory: attempts at one question show the same few."""

ReadPicture = Callable[[str], tuple[bytes, str]]
"""Returns the bytes and the media type of the picture of a sha256."""


@dataclass(frozen=True, slots=True)
class PictureParts:
    """Pictures as parts of a message, encoded once and cached; the least recently used are dropped.

    Attributes:
        read: where pictures come from; called in a thread.
        most: bytes kept.
    """

    read: ReadPicture
    most: int = KEPT_BYTES
    _kept: OrderedDict[str, bytes] = field(default_factory=OrderedDict)

    async def get(self, sha256: str) -> bytes:
        """Return the JSON of a part that shows the picture."""
        part = self._kept.get(sha256)
        if part is None:
            part = await asyncio.to_thread(self._encode, sha256)
        self._kept[sha256] = part
        self._kept.move_to_end(sha256)
        while sum(map(len, self._kept.values())) > self.most:
            self._kept.popitem(last=False)
        return part

    def _encode(self, sha256: str) -> bytes:
        data, media_type = self.read(sha256)
        address = f"data:{media_type};base64,{base64.b64encode(data).decode()}"
        return orjson.dumps({"type": "image_url", "image_url": {"url": address}})


async def make_body(name: str, request: ChatRequest, pictures: PictureParts, replies: Replies) -> bytes:
    """Return a request's body.

    Args:
        name: the model's name at the server.
        request: its inputs are not sent.
        pictures: encodes the pictures that messages show.
        replies: how the format of a reply with a schema is forced.
    """
    shown = {sha256: await pictures.get(sha256) for message in request.messages for sha256 in message.images}
    try:
        return orjson.dumps(_make_body(name, request, shown, replies))
    except orjson.JSONEncodeError:
        # Half of a surrogate pair is no text that could be sent. Looked for only here: texts that go out as they are
        # keep their UTF-8 from one turn of a conversation to the next.
        clean = tuple(_clean_message(message) for message in request.messages)
        return orjson.dumps(_make_body(name, replace(request, messages=clean), shown, replies))


def _make_body(name: str, request: ChatRequest, shown: Mapping[str, bytes], replies: Replies) -> dict[str, Any]:
    sampling = request.sampling
    body: dict[str, Any] = {
        "model": name,
        "messages": [_render(message, shown) for message in request.messages],
        "temperature": sampling.temperature,
        "top_p": sampling.top_p,
        "max_tokens": sampling.max_tokens,
        "seed": request.sample,
    }
    body |= _make_extras(request)
    if request.schema_json and replies == "schema":
        body["response_format"] = orjson.Fragment(_make_format(request.task, request.schema_json))
    elif request.schema_json and replies == "json":
        body["response_format"] = {"type": "json_object"}
    return body


def _make_extras(request: ChatRequest) -> dict[str, Any]:
    """Return parameters that few requests need; a server may not know them."""
    extras: dict[str, Any] = {}
    if request.sampling.presence_penalty:
        extras["presence_penalty"] = request.sampling.presence_penalty
    if request.stop:
        extras["stop"] = list(request.stop)
    if request.tools:
        extras |= {"tools": orjson.Fragment(request.tools.encode()), "parallel_tool_calls": False}
    return extras


def _render(message: Message, shown: Mapping[str, bytes]) -> dict[str, Any]:
    if message.calls:
        calls = [_render_call(call) for call in message.calls]
        return {"role": message.role, "content": message.text, "tool_calls": calls}
    if message.call_id:
        return {"role": message.role, "content": message.text, "tool_call_id": message.call_id}
    if not message.images:
        return {"role": message.role, "content": message.text}
    parts = [orjson.Fragment(shown[sha256]) for sha256 in message.images]
    return {"role": message.role, "content": [*parts, {"type": "text", "text": message.text}]}


def _render_call(call: ToolCall) -> dict[str, Any]:
    return {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}


def _clean_message(message: Message) -> Message:
    calls = tuple(ToolCall(call.id, _clean(call.name), _clean(call.arguments)) for call in message.calls)
    return replace(message, text=_clean(message.text), calls=calls)


@lru_cache(maxsize=128)
def _make_format(task: str, schema_json: str) -> bytes:
    schema = {"name": task, "schema": orjson.loads(schema_json), "strict": False}
    return orjson.dumps({"type": "json_schema", "json_schema": schema})


_GLIMPSE = 60
"""Characters quoted of a body that is no completion."""
_WHOLE = ("stop", "eos_token", "stop_sequence", "tool_calls")
"""Values of ``finish_reason`` of a complete reply."""


class _Function(BaseModel):
    name: str | None = None
    arguments: str | dict[str, Any] | None = None


class _Call(BaseModel):
    id: str | None = None
    function: _Function | None = None


class _Said(BaseModel):
    content: str | None = None
    refusal: str | None = None
    tool_calls: list[_Call] | None = None
    reasoning_content: Any = None
    """The reasoning, as DeepSeek, vLLM before 0.11 and SGLang call it."""
    reasoning: Any = None
    """The reasoning, as vLLM and OpenRouter call it; anything but text is ignored."""


class _Choice(BaseModel):
    message: _Said
    finish_reason: str | None = None


class _Usage(BaseModel):
    prompt_tokens: int = Field(0, ge=0)
    completion_tokens: int = Field(0, ge=0)


class _Completion(BaseModel):
    choices: list[_Choice]
    usage: _Usage | None = None


def _read_json(body: bytes) -> object:
    try:
        return orjson.loads(body)
    except orjson.JSONDecodeError:
        # Half of a surrogate pair can be written in JSON, and some servers do.
        return json.loads(body)


def read_completion(body: bytes, key: str) -> ChatReply:
    """Return a completion's first choice, empty where it has none.

    Args:
        body: what the server sent.
        key: the API key, never quoted; empty for none.

    Raises:
        NoReply: if the body is no completion.
    """
    try:
        completion = _Completion.model_validate(_read_json(body))
    except (ValueError, RecursionError) as error:
        kind = "no completion" if isinstance(error, ValidationError) else "no JSON"
        # The error holds the body, and a body may hold the key.
        raise NoReply(f"{kind} but {redact(body, key)[:_GLIMPSE]!r}") from None
    usage = completion.usage or _Usage()
    if not completion.choices:
        return ChatReply("", usage.prompt_tokens, usage.completion_tokens)
    choice = completion.choices[0]
    said = choice.message
    return ChatReply(
        _clean(said.content or said.refusal),
        usage.prompt_tokens,
        usage.completion_tokens,
        _read_ending(choice),
        calls=tuple(_read_call(call) for call in said.tool_calls or ()),
        reasoning=_clean(said.reasoning_content or said.reasoning),
    )


def _read_call(call: _Call) -> ToolCall:
    """Return a tool call as received; missing parts are empty and refused by the agent."""
    function = call.function or _Function()
    arguments = function.arguments
    text = json.dumps(arguments, ensure_ascii=False) if isinstance(arguments, dict) else arguments
    return ToolCall(_clean(call.id), _clean(function.name), _clean(text))


def _clean(text: object) -> str:
    """Return the text without halves of surrogate pairs, which JSON can hold; empty for what is no text."""
    return text.encode("utf-8", "replace").decode() if isinstance(text, str) else ""


def cut_at_stop(reply: ChatReply, stop: Sequence[str]) -> ChatReply:
    """Return a reply up to its first stop text: some servers leave it in, others do not support it.

    A reply that was cut after a stop text is complete.
    """
    found = [place for text in stop if (place := reply.text.find(text)) >= 0]
    if not found:
        return reply
    ended: Ending = "whole" if reply.ended == "cut" else reply.ended
    return replace(reply, text=reply.text[: min(found)], ended=ended)


def _read_ending(choice: _Choice) -> Ending:
    if choice.message.refusal or choice.finish_reason == "content_filter":
        return "refused"
    # An unknown reason does not show that the reply is complete.
    return "whole" if choice.finish_reason in _WHOLE else "cut"


FIRST_LIMIT = 4
"""First limit of requests in flight at an address, if there are several addresses."""
DEAD_AFTER = 5
"""Failures in a row after which an address is down; a refused connection is enough by itself."""
LONGEST_WAIT = 600.0
"""Longest pause in seconds that an address gets, whatever its Retry-After says."""
LONGEST_PAUSE = 30.0
"""Seconds between two probes of an address, or two tries of a request, at most."""
SPARED = 8
"""Requests in flight at the least loaded address from which one request probes an address that is down."""

_MEMORY = 0.1
"""Weight of the newest outcome in an address's health."""

OutcomeKind = Literal["answered", "busy", "failed", "silent", "gone", "unknown"]


@dataclass(frozen=True, slots=True)
class RequestOutcome:
    """How a request ended at an address.

    ``answered``: with a reply, or an error that concerns this prompt. ``busy``: rate limited. ``failed``: no whole
    reply. ``silent``: a time-out. ``gone``: no connection. ``unknown``: cancelled.
    """

    kind: OutcomeKind
    wait: float = 0.0
    """Seconds of Retry-After, 0 for none."""
    said: str = ""


@dataclass(frozen=True, slots=True)
class Ticket:
    """A place at an address."""

    endpoint: "Endpoint"
    taken: float
    meter: float
    """The address's GPU-seconds a request when the place was taken."""
    probe: bool


@dataclass(slots=True, eq=False)
class Endpoint:
    """One address.

    The limit grows as TCP's window does: by one an answer until the address first rate-limits, then by one a full
    round, and only while it holds requests back; it is halved at most once a round trip.

    Attributes:
        url: the address.
        most: upper bound of the limit.
        limit: requests in flight that the address is given now; at least 1.
        gpus: behind the address, shared equally by its requests in flight.
        pause: seconds of the first probe or wait, doubled each time.
        random: draws the jitter.
    """

    url: str
    most: int
    limit: float
    gpus: float = 0.0
    pause: float = 0.5
    random: Random = field(default_factory=Random, repr=False)
    in_flight: int = 0
    sent: int = 0
    answered: int = 0
    dead: bool = False
    last_error: str = ""
    troubled_since: float = math.inf
    """Time of the first trouble since the last answer."""
    busy_until: float = -math.inf
    probe_at: float = -math.inf
    _well: float = 1.0
    """Share of its last requests that it answered."""
    _probing: bool = False
    _starting: bool = True
    _streak: int = 0
    _rounds: int = 0
    _cut_at: float = -math.inf
    _died_at: float = -math.inf
    _meter: float = 0.0
    _metered_at: float = 0.0

    def has_room(self, now: float) -> bool:
        """Return whether a request may be sent."""
        if now < self.busy_until:
            return False
        if self.dead:
            return not self._probing and now >= self.probe_at
        return self.in_flight < int(self.limit)

    def weigh(self) -> float:
        """Return the load: requests in flight plus one, weighted by the share of failures.

        The limit does not enter: if the load were a share of the limit, an address with a low limit would never be
        full, and its limit would stay low.
        """
        return (self.in_flight + 1) / self._well**3

    def find_next(self, now: float) -> float:
        """Return the next time at which a pause ends, infinity for none."""
        moment = max(self.busy_until, self.probe_at if self.dead and not self._probing else -math.inf)
        return moment if moment > now else math.inf

    def was_away(self, since: float, now: float, patience: float) -> bool:
        """Return whether the address was busy or down for ``patience`` seconds after ``since``."""
        idle = self.dead or (not self.in_flight and now < self.busy_until)
        return idle and now >= max(since, self.troubled_since) + patience

    def take(self, now: float) -> Ticket:
        """Count a request in."""
        self._advance(now)
        self.in_flight += 1
        self.sent += 1
        self._probing = self._probing or self.dead
        return Ticket(self, now, self._meter, self.dead)

    def end(self, ticket: Ticket, outcome: RequestOutcome, now: float) -> float:
        """Count a request out, update limit and health, and return its GPU-seconds."""
        self._advance(now)
        match outcome.kind:
            case "answered":
                self._note_answer()
            case "busy":
                self._note_busy(ticket, outcome, now)
            case "failed" | "silent" | "gone":
                self._note_failure(ticket, outcome, now)
        self.in_flight -= 1
        if ticket.probe:
            self._probing = False
        return self._meter - ticket.meter

    def _advance(self, now: float) -> None:
        if self.in_flight and self.gpus:
            self._meter += self.gpus * (now - self._metered_at) / self.in_flight
        self._metered_at = now

    def _note_answer(self) -> None:
        self.answered += 1
        self._well += _MEMORY * (1.0 - self._well)
        self._streak = self._rounds = 0
        self.troubled_since = math.inf
        if self.dead:
            self.dead = False
            self.limit = min(self.limit, FIRST_LIMIT)
            self._starting = True
            # What it did before it went away is no guide, and a low limit is caution enough.
            self._well = 1.0
        elif self.in_flight >= int(self.limit):
            self.limit = min(self.most, self.limit + (1.0 if self._starting else 1.0 / self.limit))

    def _note_busy(self, ticket: Ticket, outcome: RequestOutcome, now: float) -> None:
        # It speaks, so it lives.
        self.dead = False
        self._streak = 0
        self.last_error = outcome.said
        self.troubled_since = min(self.troubled_since, now)
        wait = outcome.wait
        if self._cut(ticket, now):
            self._rounds += 1
            wait = wait or self._draw_pause(self._rounds)
        self.busy_until = max(self.busy_until, now + min(wait, LONGEST_WAIT))

    def _note_failure(self, ticket: Ticket, outcome: RequestOutcome, now: float) -> None:
        self.last_error = outcome.said
        if ticket.taken < self._died_at:
            # Sent before it was given up: nothing new.
            return
        self._streak += 1
        self._well = max(_MEMORY, self._well * (1.0 - _MEMORY))
        if outcome.kind == "silent":
            self._cut(ticket, now)
        if ticket.probe or outcome.kind == "gone" or self._streak >= DEAD_AFTER:
            self.dead = True
            self._died_at = now
            self._rounds += 1
            self.troubled_since = min(self.troubled_since, now)
            self.probe_at = now + self._draw_pause(self._rounds)

    def _cut(self, ticket: Ticket, now: float) -> bool:
        """Halve the limit unless the request was sent before it was last halved; return whether it was."""
        if ticket.taken < self._cut_at:
            return False
        self._cut_at = now
        self._starting = False
        self.limit = max(1.0, self.limit / 2)
        return True

    def _draw_pause(self, rounds: int) -> float:
        longest = min(LONGEST_PAUSE, self.pause * 2.0 ** min(rounds - 1, 32))
        return longest * self.random.uniform(0.5, 1.0)


def choose_endpoint(endpoints: tuple[Endpoint, ...], avoided: Endpoint | None, now: float) -> Endpoint | None:
    """Return the address with the least load among those with room, None if all are full.

    Args:
        endpoints: all of them.
        avoided: address of the request's last failure: taken only if no other has room. None for a first try.
        now: seconds.
    """
    best, least, probe = None, (True, math.inf, 0), None
    for endpoint in endpoints:
        if not endpoint.has_room(now):
            continue
        if endpoint.dead:
            probe = endpoint if probe is None or endpoint.sent < probe.sent else probe
            continue
        rank = (endpoint is avoided, endpoint.weigh(), endpoint.sent)
        if best is None or rank < least:
            best, least = endpoint, rank
    # A request that has failed once is no good probe.
    spared = best is None or (avoided is None and best.in_flight >= SPARED)
    return probe if probe is not None and spared else best


@dataclass(slots=True, eq=False)
class _QueuedRequest:
    """A request that waits; ``woken`` resolves to its place, or to None when every address was away for too long."""

    woken: "asyncio.Future[Ticket | None]"
    since: float
    avoided: Endpoint | None


@dataclass(slots=True, eq=False)
class EndpointPool:
    """The addresses of one model and the requests that wait for them, first come, first served.

    Attributes:
        name: the model's, for messages.
        endpoints: at least one.
        patience: seconds that all addresses may be busy or away before waiting requests fail.
        clock: seconds, never going back.
    """

    name: str
    endpoints: tuple[Endpoint, ...]
    patience: float
    clock: Callable[[], float] = time.monotonic
    _waiters: deque[_QueuedRequest] = field(default_factory=deque)
    _alarm: asyncio.TimerHandle | None = None
    _alarm_at: float = math.inf

    @property
    def answered(self) -> int:
        """Requests answered so far, by any address."""
        return sum(endpoint.answered for endpoint in self.endpoints)

    @property
    def waiting(self) -> int:
        """Requests that wait for a place."""
        return len(self._waiters)

    async def take(self, since: float, avoided: Endpoint | None = None) -> Ticket:
        """Return a place at an address as soon as there is one. The caller must give it back.

        Args:
            since: time of the request's first try, from which patience counts.
            avoided: address of its last failure.

        Raises:
            Unavailable: if every address was busy or down for too long.
        """
        now = self.clock()
        chosen = None if self._waiters else choose_endpoint(self.endpoints, avoided, now)
        if chosen is not None:
            return chosen.take(now)
        waiter = _QueuedRequest(asyncio.get_running_loop().create_future(), since, avoided)
        self._waiters.append(waiter)
        self._serve(now)
        try:
            ticket = await waiter.woken
        except asyncio.CancelledError:
            self._leave(waiter)
            raise
        if ticket is None:
            said = "; ".join(f"{endpoint.url}: {endpoint.last_error}" for endpoint in self.endpoints)
            raise Unavailable(
                f"model {self.name}: no address answered for {self.patience:g} s ({said}); run again later"
            )
        return ticket

    def give_back(self, ticket: Ticket, outcome: RequestOutcome) -> float:
        """End a request, give its place to the next one, and return its GPU-seconds."""
        now = self.clock()
        spent = ticket.endpoint.end(ticket, outcome, now)
        self._serve(now)
        return spent

    def _leave(self, waiter: _QueuedRequest) -> None:
        """Take out a cancelled waiter, and its place, too, if it had just got one."""
        if waiter in self._waiters:
            self._waiters.remove(waiter)
        elif not waiter.woken.cancelled() and (ticket := waiter.woken.result()) is not None:
            ticket.endpoint.end(ticket, RequestOutcome("unknown"), self.clock())
        self._serve(self.clock())

    def _serve(self, now: float) -> None:
        """Give places to the first in the queue, and set the alarm when the next one must wait."""
        while self._waiters:
            first = self._waiters[0]
            if first.woken.done():
                self._waiters.popleft()
                continue
            chosen = choose_endpoint(self.endpoints, first.avoided, now)
            away = all(endpoint.was_away(first.since, now, self.patience) for endpoint in self.endpoints)
            if chosen is None and not away:
                self._set_alarm(first, now)
                return
            self._waiters.popleft()
            first.woken.set_result(None if chosen is None else chosen.take(now))
        if self._alarm is not None:
            # The next waiter may come in another loop.
            self._alarm.cancel()
            self._alarm = None

    def _set_alarm(self, first: _QueuedRequest, now: float) -> None:
        """Serve the queue again when the next pause ends."""
        moments = [endpoint.find_next(now) for endpoint in self.endpoints]
        limit = max(first.since, *(endpoint.troubled_since for endpoint in self.endpoints)) + self.patience
        when = min(*moments, limit if limit > now else math.inf)
        if when == math.inf or (self._alarm is not None and now < self._alarm_at <= when):
            return
        if self._alarm is not None:
            self._alarm.cancel()
        self._alarm, self._alarm_at = first.woken.get_loop().call_later(when - now, self._look_again), when

    def _look_again(self) -> None:
        self._alarm = None
        self._serve(self.clock())


def make_pool(settings: ModelConfig, pause: float = 1.0) -> EndpointPool:
    """Return a pool of a model's addresses; nothing is known of them yet.

    Args:
        settings: name, addresses and limits.
        pause: seconds of an address's first probe, or of its first wait where it names none; doubled each time.
    """
    urls, most = (settings.base_url, *settings.more_urls), settings.concurrency
    # An address that is alone starts with its limit: no other would be kept from working when it hangs.
    first = most if len(urls) == 1 else min(most, FIRST_LIMIT)
    endpoints = (Endpoint(url, most, float(first), settings.gpus, pause) for url in urls)
    return EndpointPool(settings.name, tuple(endpoints), settings.patience)


# What a refusal means: wait, retry, stop the run, or fail one record.

MAX_REPLY = 16 << 20
_QUOTED = 300
_THEIR_FAULT = (408, 409, 425)
_NO_MONEY = ("insufficient_quota", "exceeded your current quota")
_RECORDS_FAULT = {
    "context length": "prompt-too-long",
    "context_length": "prompt-too-long",
    "maximum model length": "prompt-too-long",
    "max model length": "prompt-too-long",
    "max_tokens must be at least 1": "prompt-too-long",
    "string_above_max_length": "prompt-too-long",
    "content_filter": "prompt-refused",
    "content_policy": "prompt-refused",
    "content management policy": "prompt-refused",
    "invalid_image": "picture-refused",
    "image_parse_error": "picture-refused",
    "cannot identify image": "picture-refused",
    "aspect ratio": "picture-refused",
    "must be larger than factor": "picture-refused",
}
"""By text of an error response that concerns one record alone, the failed row's error."""
_TOO_MANY_TOKENS = re.compile(r"max_(?:completion_)?tokens\b[^{}]{0,200}?\btoo large\b")
"""A shorter prompt does not help, although the message goes on to name the context length."""
_OTHER_NAME = "max_completion_tokens"


_FORMAT = re.compile(r"response_format|guided|json_schema|json schema|json_object|structured.?output|grammar")
"""Words of an error response to a forced reply format that the server does not support."""
_TOOLS = re.compile(
    r"parallel_tool_calls|tool[ _-]?(?:choice|use)\b|function.call"
    r"|\btools?\b[^{}]{0,80}\b(?:support|param)|support\w* tools?\b"
)
_STOP = re.compile(
    r"\b(?:not|un)[ -]?(?:support|permit|allow|known|recogni)[^{}]{0,80}\bstop\b"
    r"|\bstop\b[^{}]{0,80}\b(?:not|un)[ -]?(?:support|permit|allow|known|recogni)"
)
_EXTRAS = (
    (
        _TOOLS,
        "the server takes no native tool calls: give rollouts another dialect than native, or start vLLM with "
        "--enable-auto-tool-choice and --tool-call-parser",
    ),
    (
        _STOP,
        'the server takes no stop, which rollouts send in every dialect but native: set dialect = "native" for them',
    ),
)
"""Words of an error response to parameters that only rollouts send, and what to do."""
_ADVICE = {
    "schema": 'the server takes no JSON schema: set replies = "json" or "text" for this model',
    "json": 'the server forces no JSON: set replies = "text" for this model',
}


@dataclass(frozen=True, slots=True)
class ChatRefusal:
    """A reply that is no success.

    Attributes:
        place: address and model, as messages name them.
        status: of the reply.
        wait: seconds that the server asks for, 0 if it names none.
        text: its body on one line, without the key.
        variable: name of the environment variable that holds the key, empty for none.
        forced: how the reply's shape was asked for, ``schema`` or ``json``; empty for not at all.
    """

    place: str
    status: int
    wait: float
    text: str
    variable: str
    forced: str = ""

    @property
    def said(self) -> str:
        """The status and the beginning of the body, to be quoted."""
        return f"HTTP {self.status}: {self.text[:_QUOTED]}"

    def explain(self) -> SynthError | NoReply:
        """Return what it means."""
        folded = self.text.lower()
        if self.status == 402 or (self.status == 429 and any(words in folded for words in _NO_MONEY)):
            return Unavailable(f"{self.place}: nothing left on the account ({self.said})")
        if self.status == 429 or (self.status == 503 and self.wait):
            return RateLimited(f"{self.place}: HTTP {self.status}", self.wait)
        if self.status >= 500 or self.status in _THEIR_FAULT:
            return NoReply(self.said)
        if self.status in (401, 403):
            variable = self.variable or "no variable; name one as api_key_env"
            return ConfigError(f"{self.place}: does not take the key of {variable} ({self.said})")
        return self._blame(folded)

    def _blame(self, folded: str) -> SynthError:
        """Return the error of a refused request: of this record alone, or of the configuration."""
        advice = "see name, base_url and sampling"
        if self.status == 413:
            return RecordFailed("prompt-too-long", f"{self.place}: {self.said}")
        if self.status in (400, 422):
            blamed = [fault for words, fault in _RECORDS_FAULT.items() if words in folded]
            if _TOO_MANY_TOKENS.search(folded):
                advice = "lower max_tokens in sampling"
            elif blamed:
                return RecordFailed(blamed[0], f"{self.place}: {self.said}")
            elif self.forced in _ADVICE and _FORMAT.search(folded):
                advice = _ADVICE[self.forced]
            elif _OTHER_NAME in folded and "max_tokens" in folded:
                advice = f"the model wants {_OTHER_NAME}, which is never sent: name one, or a gateway, for max_tokens"
        advice = next((told for words, told in _EXTRAS if words.search(folded)), advice)
        return ConfigError(f"{self.place}: does not take the request ({self.said}); {advice}")


VERSION = 1


@dataclass(slots=True)
class _Trial:
    """One request on its way to a reply."""

    body: bytes
    since: float
    sent: int = 0
    failed: int = 0
    answered: int = 0
    """What the pool had answered when this one first failed."""
    gpu_seconds: float = 0.0
    seconds: float = 0.0
    """From the last time that it was sent to what came back."""
    avoided: Endpoint | None = None
    said: str = ""


def refuse_picture(sha256: str) -> tuple[bytes, str]:
    """Replace the picture store of a model without one.

    Raises:
        ConfigError: always.
    """
    raise ConfigError(f"picture {sha256}: this model was built without a picture store")


@dataclass(frozen=True, slots=True)
class OpenAIChat:
    """A model behind one or several OpenAI-compatible addresses.

    Attributes:
        settings: name, addresses, key and limits; several addresses need a revision, for they must serve the very
            same model. The key is read at each request and kept nowhere.
        read_picture: where pictures come from; called in a thread.
        pause: seconds before a request or an address that failed is tried again, at most, doubled each time.

    Raises:
        ConfigError: if an address is invalid, or the variable of the key is not set or holds an invalid key.
    """

    settings: ModelConfig
    read_picture: ReadPicture = field(default=refuse_picture, repr=False)
    pause: float = 1.0
    pool: EndpointPool = field(init=False, repr=False, compare=False)
    session: HttpSession = field(init=False, default_factory=HttpSession, repr=False, compare=False)
    _pictures: PictureParts = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        _check_addresses(self.name, self.urls, self.settings.revision)
        self._read_key()
        object.__setattr__(self, "pool", make_pool(self.settings, self.pause))
        object.__setattr__(self, "_pictures", PictureParts(self.read_picture))

    @property
    def name(self) -> str:
        """The model's name at the servers, in rows and in manifests."""
        return self.settings.name

    @property
    def urls(self) -> tuple[str, ...]:
        """The addresses that ``/chat/completions`` is appended to."""
        return (self.settings.base_url, *self.settings.more_urls) if self.settings.base_url else ()

    @property
    def identity(self) -> str:
        """Name and revision; without a revision the address takes its place.

        With a revision, recorded replies stay valid when the server moves to another host. Without one, only the
        address tells two models of one name apart. The way a reply's format is forced is part of the identity.
        """
        forced = "" if self.settings.replies == "schema" else f":{self.settings.replies}"
        return f"openai@{VERSION}:{self.name}:{self.settings.revision or self.urls[0]}{forced}"

    @property
    def reads_inputs(self) -> bool:
        """False: only messages are sent."""
        return False

    async def chat(self, request: ChatRequest) -> ChatReply:
        """Return the reply, whatever it says; one without text is empty.

        Raises:
            Unavailable: if every address was busy or down for longer than the patience, or the account is empty.
            ConfigError: if a server knows no such model, key or parameter.
            RecordFailed: if the server refuses this prompt (too long, content filter), or gives no complete reply to it
                in all tries while others get theirs.
        """
        body = await make_body(self.name, request, self._pictures, self.settings.replies)
        trial = _Trial(body, self.pool.clock())
        while True:
            reply = await self._send(trial)
            if reply is not None:
                reply = cut_at_stop(reply, request.stop)
                return replace(reply, gpu_seconds=trial.gpu_seconds, retries=trial.sent - 1, seconds=trial.seconds)
            if trial.failed >= self.settings.tries:
                await self._give_up(trial)
            await self._pause(trial)

    async def _pause(self, trial: _Trial) -> None:
        # The pauses spare an address that fails, so a first try elsewhere needs none.
        spared = trial.failed - (1 if len(self.urls) > 1 else 0)
        if spared > 0:
            await asyncio.sleep(random.uniform(0.0, min(LONGEST_PAUSE, self.pause * 2.0 ** min(spared - 1, 32))))

    async def _give_up(self, trial: _Trial) -> None:
        """Fail the record if it alone gets no reply; otherwise reset its tries.

        Raises:
            RecordFailed: if other requests succeeded.
            Unavailable: if no request got a reply for longer than the patience.
        """
        if self.pool.answered > trial.answered or await self._answers_at_all(trial.since):
            raise RecordFailed("no-reply", f"{trial.said}, {trial.failed} times; other requests succeeded")
        trial.failed = 0

    async def _answers_at_all(self, since: float) -> bool:
        """Request one token to tell a failing server from a failing prompt, when no other request was sent since."""
        messages = [{"role": "user", "content": "Say yes."}]
        body = orjson.dumps({"model": self.name, "messages": messages, "max_tokens": 1, "temperature": 0.0})
        return await self._send(_Trial(body, since)) is not None

    async def _send(self, trial: _Trial) -> ChatReply | None:
        """Send a request once, to whichever address has room first; return None if it is to be sent again."""
        ticket = await self.pool.take(trial.since, trial.avoided)
        trial.sent += 1
        outcome = RequestOutcome("unknown")
        try:
            since = time.monotonic()
            received = await self._post(ticket, trial.body)
            trial.seconds = time.monotonic() - since
            reply = self._read_reply(ticket, received)
            outcome = RequestOutcome("answered")
            return reply
        except RecordFailed:
            outcome = RequestOutcome("answered")
            raise
        except RateLimited as error:
            outcome = RequestOutcome("busy", error.retry_after, str(error))
        except NoReply as error:
            trial.said = f"{self._place(ticket)}: {error}"
            outcome = self._note_failure(trial, error)
        finally:
            trial.gpu_seconds += self.pool.give_back(ticket, outcome)
        trial.avoided = ticket.endpoint
        return None

    def _note_failure(self, trial: _Trial, error: NoReply) -> RequestOutcome:
        if isinstance(error, NoConnection):
            return RequestOutcome("gone", said=str(error))
        if not trial.failed:
            trial.answered = self.pool.answered
        trial.failed += 1
        return RequestOutcome("silent" if isinstance(error, Silence) else "failed", said=str(error))

    def _place(self, ticket: Ticket) -> str:
        """Return address and model, as messages name them."""
        return f"{ticket.endpoint.url}, model {self.name}"

    @property
    def _hidden(self) -> str:
        return self._read_key() if self.settings.api_key_env else ""

    def _read_key(self) -> str:
        if not self.settings.api_key_env:
            return "none"
        key = os.environ.get(self.settings.api_key_env, "")
        if not key:
            raise ConfigError(
                f"model {self.name}: environment variable {self.settings.api_key_env} is not set; it holds the key"
            )
        if not key.isascii() or not key.isprintable() or " " in key:
            # A key that is no header's value would be quoted in the client's error.
            raise ConfigError(
                f"model {self.name}: environment variable {self.settings.api_key_env} holds white space or characters "
                "other than ASCII"
            )
        return key

    async def _post(self, ticket: Ticket, body: bytes) -> HttpReply:
        headers = {
            "Authorization": f"Bearer {self._read_key()}",
            "Content-Type": "application/json",
            "Accept": "application/json",
            "Accept-Encoding": "identity",
        }
        request = HttpRequest(f"{ticket.endpoint.url}/chat/completions", "POST", headers, body=body)
        return await self.session.fetch(request, self.settings.timeout, MAX_REPLY)

    def _read_reply(self, ticket: Ticket, reply: HttpReply) -> ChatReply:
        """Return a completion's first choice.

        Raises:
            NoReply: if the body is no completion.
            SynthError: if the reply is no success.
        """
        if reply.status != 200:
            raise self._explain(ticket, reply)
        return read_completion(reply.body, self._hidden)

    def _explain(self, ticket: Ticket, reply: HttpReply) -> SynthError | NoReply:
        """Return what a reply that is no success means."""
        text = redact(reply.body, self._hidden)
        place = self._place(ticket)
        return ChatRefusal(
            place, reply.status, reply.wait, text, self.settings.api_key_env, self.settings.replies
        ).explain()


def _check_addresses(name: str, urls: tuple[str, ...], revision: str) -> None:
    if not urls:
        raise ConfigError(f"model {name}: no address; expected such as http://127.0.0.1:8000/v1")
    for url in urls:
        _check_address(name, url)
    if len({url.rstrip("/") for url in urls}) < len(urls):
        raise ConfigError(f"model {name}: an address is given twice: {', '.join(urls)}")
    if len(urls) > 1 and not revision:
        raise ConfigError(f"model {name}: several addresses and no revision; name one that all of them serve")


def _check_address(name: str, url: str) -> None:
    try:
        address = urlsplit(url)
        served = address.scheme in ("http", "https") and bool(address.hostname) and address.port != 0
    except ValueError:
        # Half an IPv6 address, or a port that is none.
        served = False
    if "@" in url or "?" in url or "#" in url:
        raise ConfigError(f"model {name}: base_url has a user, password or parameters; give the address alone")
    if not served:
        raise ConfigError(f"model {name}: base_url {url!r}; expected such as http://127.0.0.1:8000/v1")
