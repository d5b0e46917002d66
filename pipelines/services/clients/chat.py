"""Chat with servers that speak OpenAI's ``/chat/completions``, vLLM's among them.

Only the messages of a request are sent, never its typed inputs. Cut and refused replies are marked here and handled in
``pipelines.services.prompting``. In order: the request body, the completion, the pool of endpoints, the meaning of
error responses, the model.
"""

import asyncio
import base64
import hashlib
import json
import math
import random
import re
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any, ClassVar, Literal
from urllib.parse import urlsplit
from weakref import WeakKeyDictionary

import orjson
from pydantic import BaseModel, Field, ValidationError

from pipelines.config.profiles import KeyRules, find_profile, find_replies
from pipelines.config.settings import ModelConfig
from pipelines.errors import ConfigError, RateLimited, RecordFailed, SynthError, Unavailable
from pipelines.ids import digest_value
from pipelines.pictures import find_extension, shrink_picture
from pipelines.services.clients.http import (
    HttpReply,
    HttpRequest,
    HttpSession,
    NoConnection,
    NoReply,
    Silence,
    TooLarge,
    read_key,
    redact,
)
from pipelines.services.prompting import SAMPLED
from pipelines.services.protocols import ChatReply, ChatRequest, Ending, Message, Sampling, ToolCall
from pipelines.services.traffic import Waiting

KEPT_BYTES = 1 << 26
"""Bytes of encoded pictures kept in memory: attempts at one question show the same few."""

ReadPicture = Callable[[str], tuple[bytes, str]]
"""Returns the bytes and the media type of the picture of a sha256."""


@dataclass(frozen=True, slots=True)
class PictureParts:
    """LRU cache of at most ``most`` bytes of pictures encoded as parts of a message; ``read`` is called in a thread."""

    read: ReadPicture
    most: int = KEPT_BYTES
    most_shown: int = 0
    """Largest file that is sent; larger ones are scaled down. 0: any."""
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
        if (small := shrink_picture(data, 0, self.most_shown)) is not data:
            data, media_type = small, f"image/{'jpeg' if find_extension(small) == 'jpg' else 'png'}"
        shown = {"url": f"data:{media_type};base64,{base64.b64encode(data).decode()}"}
        return orjson.dumps({"type": "image_url", "image_url": shown})


async def make_body(settings: ModelConfig, request: ChatRequest, pictures: PictureParts) -> bytes:
    """Return the body of a request to a model: what is asked for, as its profile has it."""
    shown = {sha256: await pictures.get(sha256) for message in request.messages for sha256 in message.images}
    try:
        return _make_body(settings, request, shown)
    except orjson.JSONEncodeError:
        # Lone surrogates cannot be sent. Messages are cleaned only then, because unchanged strings keep their cached
        # UTF-8 from one turn of a conversation to the next.
        clean = tuple(_clean_message(message) for message in request.messages)
        return _make_body(settings, replace(request, messages=clean), shown)


def _make_body(settings: ModelConfig, request: ChatRequest, shown: Mapping[str, bytes]) -> bytes:
    profile = find_profile(settings)
    messages = [_render(message, shown) for message in request.messages]
    asked = {"model": settings.name, "messages": messages, **profile.defaults, **_list_asked(request)}
    if profile.prompt_cache:
        asked["prompt_cache_key"] = _name_prefix(request)
    if request.schema_json and find_replies(settings) == "schema":
        asked["response_format"] = orjson.Fragment(_make_format(request.task, request.schema_json))
    elif request.schema_json and find_replies(settings) == "json":
        asked["response_format"] = {"type": "json_object"}
    return orjson.dumps(profile.apply(asked) | list_own_keys(settings))


def _list_asked(request: ChatRequest) -> dict[str, Any]:
    """Return the parameters that a request asks for; what it does not use is left to the server."""
    asked: dict[str, Any] = request.sampling.list_asked()
    # Samples of one request are told apart by it, and it makes a drawn reply the same again; else it says nothing.
    if request.sample or request.sampling.temperature:
        asked["seed"] = request.sample
    if request.stop:
        asked["stop"] = list(request.stop)
    if request.tools:
        asked |= {"tools": orjson.Fragment(request.tools.encode()), "parallel_tool_calls": False}
    return asked


def list_own_keys(settings: ModelConfig) -> dict[str, Any]:
    """Return the keys that the user words; they are sent as they are, or the request is refused with them."""
    return {key: value for key, value in settings.extra_body.items() if key not in SAMPLED}


def _name_prefix(request: ChatRequest) -> str:
    """Return a name of what a request begins with: the prompt, and of a conversation with tools its first question."""
    if not (request.tools or request.stop):
        return request.prompt
    question = "".join(message.text for message in request.messages[1:2])
    return f"{request.prompt}:{hashlib.sha256(question.encode('utf-8', 'replace')).hexdigest()[:8]}"


def _render(message: Message, shown: Mapping[str, bytes]) -> dict[str, Any]:
    if message.calls:
        calls = [
            {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}
            for call in message.calls
        ]
        return {"role": message.role, "content": message.text, "tool_calls": calls}
    if message.call_id:
        return {"role": message.role, "content": message.text, "tool_call_id": message.call_id}
    if not message.images:
        return {"role": message.role, "content": message.text}
    parts = [orjson.Fragment(shown[sha256]) for sha256 in message.images]
    return {"role": message.role, "content": [*parts, {"type": "text", "text": message.text}]}


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
    function: _Function = _Function()


class _Said(BaseModel):
    content: str | None = None
    refusal: str | None = None
    tool_calls: list[_Call] | None = None
    reasoning_content: Any = None
    """Name of the reasoning at DeepSeek, vLLM before 0.11 and SGLang."""
    reasoning: Any = None
    """Name of the reasoning at vLLM and OpenRouter; ignored unless it is text."""


class _Choice(BaseModel):
    message: _Said
    finish_reason: str | None = None


class _Usage(BaseModel):
    prompt_tokens: int = Field(0, ge=0)
    completion_tokens: int = Field(0, ge=0)


class _Completion(BaseModel):
    choices: list[_Choice]
    usage: _Usage | None = None
    model: object = None
    system_fingerprint: object = None

    @property
    def served(self) -> str:
        """The model that replied, with its fingerprint; of a hostile server's text no more than names are long."""
        return " ".join(filter(None, (_clean(part)[:_NAME] for part in (self.model, self.system_fingerprint))))


_NAME = 200
"""Longest name of a model that is kept."""


def _read_json(body: bytes) -> object:
    try:
        return orjson.loads(body)
    except orjson.JSONDecodeError:
        return json.loads(body)  # accepts lone surrogates, which some servers send


def read_completion(body: bytes, key: str | Sequence[str]) -> ChatReply:
    """Return a completion's first choice, an empty reply if it has none.

    Raises:
        NoReply: if the body is no completion; the message does not quote the keys.
    """
    try:
        completion = _Completion.model_validate(_read_json(body))
    except (ValueError, RecursionError) as error:
        kind = "no completion" if isinstance(error, ValidationError) else "no JSON"
        # Without the cause: it holds the body, and a body may hold the key.
        raise NoReply(f"{kind} but {redact(body, key)[:_GLIMPSE]!r}") from None
    usage = completion.usage or _Usage()
    if not completion.choices:
        return ChatReply("", usage.prompt_tokens, usage.completion_tokens, served=completion.served)
    choice = completion.choices[0]
    said = choice.message
    # An unknown finish reason does not show that the reply is complete.
    ended: Ending = "whole" if choice.finish_reason in _WHOLE else "cut"
    return ChatReply(
        _clean(said.content or said.refusal),
        usage.prompt_tokens,
        usage.completion_tokens,
        "refused" if said.refusal or choice.finish_reason == "content_filter" else ended,
        calls=tuple(_read_call(call) for call in said.tool_calls or ()),
        reasoning=_clean(said.reasoning_content or said.reasoning),
        served=completion.served,
    )


def _read_call(call: _Call) -> ToolCall:
    """Return a tool call as received; missing parts are empty, and the agent refuses them."""
    arguments = call.function.arguments
    text = json.dumps(arguments, ensure_ascii=False) if isinstance(arguments, dict) else arguments
    return ToolCall(_clean(call.id), _clean(call.function.name), _clean(text))


def _clean(text: object) -> str:
    """Return the text without lone surrogates; empty if it is no text."""
    return text.encode("utf-8", "replace").decode() if isinstance(text, str) else ""


_THOUGHT = re.compile(r"\A\s*<think>(?P<thought>.*?)</think>\s*", re.DOTALL)


def part_thought(reply: ChatReply) -> ChatReply:
    """Return a reply with the block of thought that it begins with apart from its text."""
    said = _THOUGHT.match(reply.text)
    if said is None:
        return reply
    thought = reply.reasoning or said["thought"].strip()
    return replace(reply, text=reply.text[said.end() :], reasoning=thought)


def cut_at_stop(reply: ChatReply, stop: Sequence[str]) -> ChatReply:
    """Return a reply up to its first stop text: some servers leave it in, others do not support ``stop``.

    A reply that was cut after a stop text is complete.
    """
    found = [place for text in stop if (place := reply.text.find(text)) >= 0]
    if not found:
        return reply
    ended: Ending = "whole" if reply.ended == "cut" else reply.ended
    return replace(reply, text=reply.text[: min(found)], ended=ended)


FIRST_LIMIT = 4
"""First concurrency limit of an endpoint that is one of several."""
DEAD_AFTER = 5
"""Failures in a row after which an endpoint is left alone; one refused connection is enough."""
LONGEST_WAIT = 600.0
"""Longest pause in seconds of an endpoint, whatever its Retry-After says."""
LONGEST_PAUSE = 30.0
"""Longest pause in seconds between two probes of an endpoint or two tries of a request."""
SPARED = 8
"""Requests in flight at the least loaded endpoint from which one request probes an endpoint that is down."""

OutcomeKind = Literal["answered", "busy", "failed", "silent", "gone", "unknown"]


@dataclass(frozen=True, slots=True)
class RequestOutcome:
    """How a request ended at an endpoint.

    ``answered``: a reply, or an error about this prompt. ``busy``: rate limited; ``wait`` is its Retry-After in
    seconds, 0 for none. ``failed``: no complete reply. ``silent``: timed out. ``gone``: no connection. ``unknown``:
    cancelled.
    """

    kind: OutcomeKind
    wait: float = 0.0
    said: str = ""


@dataclass(frozen=True, slots=True)
class Ticket:
    """A request's place at an endpoint since ``taken``; ``meter`` is the endpoint's GPU-seconds a request by then."""

    endpoint: "Endpoint"
    taken: float
    meter: float
    probe: bool


@dataclass(slots=True, eq=False)
class Endpoint:
    """One endpoint and what is known of it.

    Its limit grows by one an answer while it holds requests back, and is halved at most once a round trip where it is
    busy or silent. After a pause one request at a time probes it, and an answer brings it back.

    Attributes:
        most: upper bound of ``limit``, the requests that may be in flight now (at least 1).
        gpus: behind the endpoint, shared equally by its requests in flight.
        pause: seconds of the first pause, doubled each time.
        rounds: pauses since the last answer.
        streak: failures in a row.
        troubled_since: time of the first pause since the last answer.
    """

    url: str
    most: int
    limit: float
    gpus: float = 0.0
    pause: float = 0.5
    in_flight: int = 0
    sent: int = 0
    answered: int = 0
    last_error: str = ""
    troubled_since: float = math.inf
    away_until: float = -math.inf
    rounds: int = 0
    streak: int = 0
    _probing: bool = False
    _cut_at: float = -math.inf
    _paused_at: float = -math.inf
    _meter: float = 0.0
    _metered_at: float = 0.0

    def has_room(self, now: float) -> bool:
        """Return whether a request may be sent."""
        room = not self._probing if self.rounds else self.in_flight < int(self.limit)
        return room and now >= self.away_until

    def find_next(self, now: float) -> float:
        """Return when the endpoint's pause ends, infinity if there is none."""
        return self.away_until if self.away_until > now else math.inf

    def was_away(self, since: float, now: float, patience: float) -> bool:
        """Return whether the endpoint was busy or down for ``patience`` seconds after ``since``."""
        return self.rounds > 0 and now >= max(since, self.troubled_since) + patience

    def take(self, now: float) -> Ticket:
        """Count a request in."""
        self._advance(now)
        self.in_flight += 1
        self.sent += 1
        self._probing = self._probing or self.rounds > 0
        return Ticket(self, now, self._meter, self.rounds > 0)

    def end(self, ticket: Ticket, outcome: RequestOutcome, now: float) -> float:
        """Count a request out, update the endpoint's state and return the request's GPU-seconds."""
        self._advance(now)
        if outcome.kind == "answered":
            self.answered += 1
            if self.in_flight >= int(self.limit):
                self.limit = min(self.most, self.limit + 1.0)
            self.streak, self.rounds, self.troubled_since = 0, 0, math.inf
        elif outcome.kind != "unknown":
            self._note_trouble(ticket, outcome, now)
        self.in_flight -= 1
        if ticket.probe:
            self._probing = False
        return self._meter - ticket.meter

    def _advance(self, now: float) -> None:
        if self.in_flight and self.gpus:
            self._meter += self.gpus * (now - self._metered_at) / self.in_flight
        self._metered_at = now

    def _note_trouble(self, ticket: Ticket, outcome: RequestOutcome, now: float) -> None:
        self.last_error, is_busy = outcome.said, outcome.kind == "busy"
        self.streak += not is_busy
        if outcome.kind in ("busy", "silent") and ticket.taken >= self._cut_at:
            self._cut_at, self.limit = now, max(1.0, self.limit / 2)
        if is_busy and outcome.wait:
            self.away_until = max(self.away_until, now + min(outcome.wait, LONGEST_WAIT))
        # What was sent before the last pause says nothing new.
        if ticket.taken >= self._paused_at and (
            is_busy or outcome.kind == "gone" or ticket.probe or self.streak >= DEAD_AFTER
        ):
            self.rounds += 1
            self._paused_at, self.troubled_since = now, min(self.troubled_since, now)
            longest = min(LONGEST_PAUSE, self.pause * 2.0 ** min(self.rounds - 1, 32))
            self.away_until = max(self.away_until, now + longest * random.uniform(0.5, 1.0))


def choose_endpoint(endpoints: Sequence[Endpoint], avoided: Endpoint | None, now: float) -> Endpoint | None:
    """Return the endpoint with room and the fewest requests in flight, None if all are full.

    An endpoint that fails at once always has few in flight, so failures in a row count like requests.

    Args:
        endpoints: all of them.
        avoided: endpoint of the request's last failure, taken only if no other has room; None for a first try.
        now: seconds.
    """
    free = [endpoint for endpoint in endpoints if endpoint.has_room(now)]
    best = min(
        (each for each in free if not each.rounds),
        key=lambda each: (each is avoided, (each.in_flight + 1) * (1 + each.streak), each.sent),
        default=None,
    )
    probe = min((each for each in free if each.rounds), key=lambda each: each.sent, default=None)
    # A request that has failed once is not risked on a probe.
    if probe is not None and (best is None or (avoided is None and best.in_flight >= SPARED)):
        return probe
    return best


@dataclass(slots=True, eq=False)
class EndpointPool:
    """The endpoints of one model; requests wait for a place first come, first served.

    Attributes:
        name: the model's, for messages.
        endpoints: at least one.
        patience: seconds that all endpoints may be busy or down before waiting requests fail.
        clock: monotonic seconds.
        waiting: requests that wait for a place.
    """

    name: str
    endpoints: tuple[Endpoint, ...]
    patience: float
    clock: Callable[[], float] = time.monotonic
    waiting: int = 0
    _queues: WeakKeyDictionary[asyncio.AbstractEventLoop, tuple[asyncio.Lock, asyncio.Event]] = field(
        default_factory=WeakKeyDictionary
    )
    """By event loop: the lock that the first in the queue holds, and the event that wakes it."""

    @property
    def answered(self) -> int:
        """Requests answered so far, by any endpoint."""
        return sum(endpoint.answered for endpoint in self.endpoints)

    async def take(self, since: float, avoided: Endpoint | None = None) -> Ticket:
        """Return a place at an endpoint as soon as there is one. The caller must give it back.

        Args:
            since: time of the request's first try, from which patience counts.
            avoided: endpoint of its last failure.

        Raises:
            Unavailable: if every endpoint was busy or down for too long.
        """
        first, changed = self._find_queue()
        self.waiting += 1
        try:
            async with first:
                while (chosen := choose_endpoint(self.endpoints, avoided, now := self.clock())) is None:
                    await self._wait(changed, since, now)
                return chosen.take(now)
        finally:
            self.waiting -= 1

    def give_back(self, ticket: Ticket, outcome: RequestOutcome) -> float:
        """End a request, wake the next one in the queue and return the request's GPU-seconds."""
        spent = ticket.endpoint.end(ticket, outcome, self.clock())
        self._find_queue()[1].set()
        return spent

    def _find_queue(self) -> tuple[asyncio.Lock, asyncio.Event]:
        return self._queues.setdefault(asyncio.get_running_loop(), (asyncio.Lock(), asyncio.Event()))

    def find_limit(self, since: float) -> float:
        """Return when a request whose first try was at ``since`` is given up; infinity while an endpoint replies."""
        return max(since, *(endpoint.troubled_since for endpoint in self.endpoints)) + self.patience

    async def _wait(self, changed: asyncio.Event, since: float, now: float) -> None:
        """Wait until a request ends, a pause ends, or patience does."""
        if all(endpoint.was_away(since, now, self.patience) for endpoint in self.endpoints):
            said = "; ".join(f"{endpoint.url}: {endpoint.last_error}" for endpoint in self.endpoints)
            raise Unavailable(
                f"model {self.name}: no address answered for {self.patience:g} s ({said}); run again later"
            )
        limit = self.find_limit(since)
        ends = [endpoint.find_next(now) for endpoint in self.endpoints]
        when = min(*ends, limit if limit > now else math.inf)
        changed.clear()
        try:
            async with asyncio.timeout(None if when == math.inf else when - now):
                await changed.wait()
        except TimeoutError:
            return


TRIES = 4
"""Requests that get no complete reply before a record fails, or the server is asked whether it answers at all."""
PATIENCE = 300.0
"""Seconds that every address may be away, where a run says no other."""


def make_pool(settings: ModelConfig, pause: float = 1.0, patience: float = PATIENCE) -> EndpointPool:
    """Return a pool of a model's endpoints; ``pause`` is the seconds of their first probe or wait."""
    urls, most = settings.base_url, settings.concurrency
    # A single endpoint starts with its full limit, since there is no other that its hanging would slow down.
    first = most if len(urls) == 1 else min(most, FIRST_LIMIT)
    endpoints = (Endpoint(url, most, float(first), settings.serve.gpus, pause) for url in urls)
    return EndpointPool(settings.name, tuple(endpoints), patience)


LEAST_REPLY_BYTES = 1 << 20
"""Bytes of a completion that are always read, however few tokens were asked for."""
MOST_TOKENS = 1 << 17
"""Longest reply in tokens where none is asked for."""
SECRET = "env:"
"""Begins a header's value that is the name of an environment variable."""
TOKEN_BYTES = 256
"""Bytes of a completion for each token asked for: the longest tokens have 128 letters, and JSON may escape them."""
_QUOTED = 300
_NO_REPLY, _TOO_LARGE = "no-reply", "reply-too-large"
_THEIR_FAULT = (408, 409, 425)
"""Statuses below 500 after which a retry may help."""
_NO_MONEY = ("insufficient_quota", "exceeded your current quota")
_RECORDS_FAULT = {
    "prompt-too-long": re.compile(
        r"context[ _]length|max(?:imum)? model length|max_tokens must be at least 1|string_above_max_length"
    ),
    "prompt-refused": re.compile(r"content_filter|content_policy|content management policy"),
    "picture-refused": re.compile(
        r"invalid_image|image_parse_error|cannot identify image|aspect ratio|must be larger than factor"
    ),
}
"""By failed row's error, the words of an error response that concerns one record alone."""
_TOO_MANY_TOKENS = re.compile(r"max_(?:completion_)?tokens\b[^{}]{0,200}?\btoo large\b")
"""A shorter prompt does not help, although the message goes on to name the context length."""


def explain_refusal(settings: ModelConfig, place: str, reply: HttpReply, text: str) -> SynthError | NoReply:
    """Return the error that an error response stands for: wait, retry, stop the run, or fail one record.

    Args:
        settings: the model's.
        place: endpoint and model, for messages.
        reply: of any status but 200.
        text: its body on one line, without the key.
    """
    status, folded, said = reply.status, text.lower(), f"HTTP {reply.status}: {text[:_QUOTED]}"
    if status == 402 or (status == 429 and any(words in folded for words in _NO_MONEY)):
        return Unavailable(f"{place}: nothing left on the account ({said})")
    if status == 429 or (status == 503 and reply.wait):
        return RateLimited(f"{place}: HTTP {status}", reply.wait)
    if status >= 500 or status in _THEIR_FAULT:
        return NoReply(said)
    if status in (401, 403):
        variable = settings.api_key_env or "no variable; name one as api_key_env"
        return ConfigError(f"{place}: rejects the key of {variable} ({said})")
    if status == 413:
        return RecordFailed("prompt-too-long", f"{place}: {said}")
    if status in (400, 422) and not _TOO_MANY_TOKENS.search(folded):
        for fault, words in _RECORDS_FAULT.items():
            if words.search(folded):
                return RecordFailed(fault, f"{place}: {said}")
    return ConfigError(
        f"{place}: rejects the request ({said}); see name, base_url, profile, replies, max_tokens and sampling of the "
        "model, and the dialect of rollouts"
    )


VERSION = 1
_PROBE = Message("user", "Say yes.")


@dataclass(slots=True)
class _Trial:
    """One request on its way to a reply."""

    body: bytes
    since: float
    reply_bytes: int = LEAST_REPLY_BYTES
    """Largest reply that is read."""
    sent: int = 0
    failed: int = 0
    answered: int = 0
    """Requests that the pool had answered when this one first failed."""
    gpu_seconds: float = 0.0
    seconds: float = 0.0
    """From the last sending to the reply."""
    avoided: Endpoint | None = None
    error: str = _NO_REPLY
    """Of the failed row, if this request alone fails."""
    said: str = ""


def _limit_reply(request: ChatRequest) -> int:
    """Return the most bytes of a reply."""
    return max(LEAST_REPLY_BYTES, TOKEN_BYTES * (request.sampling.max_tokens or MOST_TOKENS))


def refuse_picture(sha256: str) -> tuple[bytes, str]:
    """Stand in for the picture store of a model that has none.

    Raises:
        ConfigError: always.
    """
    raise ConfigError(f"picture {sha256}: this model was built without a picture store")


@dataclass(frozen=True, slots=True)
class OpenAIChat:
    """A model behind one or several OpenAI-compatible endpoints.

    Attributes:
        settings: name, addresses, key and limits. Several addresses need a revision, because they must serve the very
            same model. The key is read from its variable at each request.
        read_picture: picture store, called in a thread.
        pause: first upper bound in seconds of the pause after a failure, doubled each time.
        patience: seconds that every address may be away or busy before the run stops.
        tries: requests that get no complete reply before this record fails.

    Raises:
        ConfigError: if an address is invalid, or the key's variable is not set or holds an invalid key.
    """

    settings: ModelConfig
    read_picture: ReadPicture = field(default=refuse_picture, repr=False)
    pause: float = 1.0
    patience: float = PATIENCE
    tries: int = TRIES
    pool: EndpointPool = field(init=False, repr=False, compare=False)
    session: HttpSession = field(init=False, default_factory=HttpSession, repr=False, compare=False)
    _pictures: PictureParts = field(init=False, repr=False, compare=False)
    _identity: str = field(init=False, repr=False, compare=False)
    reads_inputs: ClassVar[bool] = False

    def __post_init__(self) -> None:
        _check_addresses(self.settings)
        read_key(f"model {self.name}", self.settings.api_key_env)
        object.__setattr__(self, "pool", make_pool(self.settings, self.pause, self.patience))
        pictures = PictureParts(self.read_picture, most_shown=find_profile(self.settings).picture_bytes)
        object.__setattr__(self, "_pictures", pictures)
        object.__setattr__(self, "_identity", _identify(self.settings))
        read_headers(self.settings)

    @property
    def name(self) -> str:
        """The model's name at the servers, in rows and in manifests."""
        return self.settings.name

    @property
    def identity(self) -> str:
        """Name, revision (or the address if there is none), how a reply's format is forced, and what else is sent.

        With a revision, recorded replies stay valid when the server moves to another host.
        """
        return self._identity

    async def chat(self, request: ChatRequest) -> ChatReply:
        """Return the reply, whatever it says; one without text is empty.

        Raises:
            Unavailable: if every endpoint was busy or down for longer than the patience, or the account is empty.
            ConfigError: if a server knows no such model, key or parameter.
            RecordFailed: if the server refuses this prompt (too long, content filter), or gives no complete reply to it
                in all tries, or one too large for the tokens asked for in one try, while others get theirs.
        """
        since = self.pool.clock()
        body = await make_body(self.settings, request, self._pictures)
        with Waiting() as waiting:
            reply = await self._ask(_Trial(body, since, _limit_reply(request)), request, waiting)
        return reply if request.stop else part_thought(reply)

    async def _ask(self, trial: _Trial, request: ChatRequest, waiting: Waiting) -> ChatReply:
        """Send a body until there is a reply."""
        while True:
            reply = await self._send(trial)
            if reply is not None:
                reply = cut_at_stop(reply, request.stop)
                return replace(reply, gpu_seconds=trial.gpu_seconds, retries=trial.sent - 1, seconds=trial.seconds)
            if trial.avoided is not None:
                left = self.pool.find_limit(trial.since) - self.pool.clock()
                waiting.note(trial.avoided.url, trial.avoided.last_error, 0.0 if math.isinf(left) else left)
            if trial.failed >= self.tries or trial.error == _TOO_LARGE:
                if self.pool.answered > trial.answered or await self._answers_at_all(trial.since, request):
                    raise RecordFailed(trial.error, f"{trial.said}, {trial.failed} times; other requests succeeded")
                trial.failed = 0
            # A pause spares a failing endpoint, so a first retry at another one needs none.
            spared = trial.failed - (len(self.settings.base_url) > 1)
            if spared > 0:
                longest = min(LONGEST_PAUSE, self.pause * 2.0 ** min(spared - 1, 32))
                await asyncio.sleep(random.uniform(0.0, longest))

    async def _answers_at_all(self, since: float, request: ChatRequest) -> bool:
        """Request one token to tell a failing server from a failing prompt, when no other request was sent since."""
        one = Sampling(max_tokens=1)
        probe = replace(request, messages=(_PROBE,), sampling=one, schema_json="", sample=0, tools="", stop=())
        body = await make_body(self.settings, probe, self._pictures)
        return await self._send(_Trial(body, since)) is not None

    async def _send(self, trial: _Trial) -> ChatReply | None:
        """Send a request once, to the endpoint that has room first; return None if it must be sent again."""
        ticket = await self.pool.take(trial.since, trial.avoided)
        trial.sent += 1
        outcome = RequestOutcome("unknown")
        place = f"{ticket.endpoint.url}, model {self.name}"
        try:
            key = read_key(f"model {self.name}", self.settings.api_key_env)
            more = read_headers(self.settings)
            secrets = (key, *(more[name] for name in list_secret_headers(self.settings)))
            since = time.monotonic()
            received = await self._post(ticket.endpoint.url, trial, name_key(self.settings, key) | more)
            trial.seconds = time.monotonic() - since
            if received.status != 200:
                text = redact(received.body, secrets)
                raise explain_refusal(self.settings, place, received, text)
            reply = read_completion(received.body, secrets)
            outcome = RequestOutcome("answered")
            return reply
        except RecordFailed:
            outcome = RequestOutcome("answered")
            raise
        except RateLimited as error:
            outcome = RequestOutcome("busy", error.retry_after, str(error))
        except NoConnection as error:
            trial.said, outcome = f"{place}: {error}", RequestOutcome("gone", said=str(error))
        except NoReply as error:
            trial.said, trial.error = f"{place}: {error}", _TOO_LARGE if isinstance(error, TooLarge) else _NO_REPLY
            outcome = RequestOutcome("silent" if isinstance(error, Silence) else "failed", said=str(error))
            if not trial.failed:
                trial.answered = self.pool.answered
            trial.failed += 1
        finally:
            trial.gpu_seconds += self.pool.give_back(ticket, outcome)
        trial.avoided = ticket.endpoint
        return None

    async def _post(self, url: str, trial: _Trial, more: Mapping[str, str]) -> HttpReply:
        headers = {
            "Content-Type": "application/json",
            "Accept": "application/json",
            "Accept-Encoding": "identity",
            **more,
        }
        request = HttpRequest(f"{url}/chat/completions", "POST", headers, body=trial.body)
        return await self.session.fetch(request, self.settings.timeout, trial.reply_bytes)


def _identify(settings: ModelConfig) -> str:
    forced, profile = find_replies(settings), find_profile(settings)
    deciding = {
        "body": list_own_keys(settings),
        "headers": settings.headers,
        "profile": profile.model_dump(include={*KeyRules.model_fields, "defaults"}, exclude_defaults=True),
    }
    more = f":{digest_value(deciding)[:16]}" if any(deciding.values()) else ""
    shape = "" if forced == "schema" else f":{forced}"
    return f"openai@{VERSION}:{settings.name}:{settings.revision or settings.base_url[0]}{shape}{more}"


def name_key(settings: ModelConfig, key: str) -> dict[str, str]:
    """Return the header of the API key, as the vendor calls it."""
    name = find_profile(settings).key_header
    return {name: f"Bearer {key or 'none'}" if name == "Authorization" else key or "none"}


def read_headers(settings: ModelConfig) -> dict[str, str]:
    """Return the further headers of a model's requests, secrets read from their variables.

    Raises:
        ConfigError: if a variable is not set or holds no header.
    """
    place = f"model {settings.name}: headers"
    secret = list_secret_headers(settings)
    return {
        name: read_key(place, value.removeprefix(SECRET)) if name in secret else value
        for name, value in settings.headers.items()
    }


def list_secret_headers(settings: ModelConfig) -> list[str]:
    """Return the names of the further headers whose values are secrets."""
    return [name for name, value in settings.headers.items() if value.startswith(SECRET)]


def _check_addresses(settings: ModelConfig) -> None:
    urls = settings.base_url
    for url in urls:
        try:
            address = urlsplit(url)
            served = address.scheme in ("http", "https") and address.hostname and address.port != 0
        except ValueError:
            served = None
        if not served or set(url) & set("@?#"):
            raise ConfigError(
                f"model {settings.name}: base_url is not an address such as http://127.0.0.1:8000/v1, without user, "
                "password and parameters"
            )
    if len(urls) > 1 and not settings.revision:
        raise ConfigError(f"model {settings.name}: several addresses need a revision that all of them serve")
