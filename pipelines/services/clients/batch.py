"""Chat by the Batch API of OpenAI-compatible servers: cheaper than live requests, answered within a day.

Requests are collected and sent as one file of lines (``custom_id``, ``method``, ``url``, ``body``; vLLM's batch runner
reads the same file). Each caller waits for the line of its own request, which bears the request's key.

``<folder>/<tag>.json`` notes a batch before it exists: its tag, its file and the keys of its requests. So after kill -9
the same requests find their batch, at the server by its tag if need be, and wait for it instead of paying again. A key
is in one note at most: when a batch has ended, its note is narrowed to the keys with a reply before any other request
is sent again, and it is removed once all its replies are recorded. A batch that no request waits for is left alone, and
its note stays.
"""

import asyncio
import random
import time
from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace
from functools import partial
from hashlib import sha256
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypeVar
from uuid import uuid4

import orjson
from pydantic import BaseModel, ConfigDict, ValidationError

from pipelines.config.profiles import find_profile
from pipelines.config.settings import ModelConfig
from pipelines.errors import ConfigError, CorruptInput, RateLimited, RecordFailed, SynthError, Unavailable
from pipelines.files import write_bytes, write_text
from pipelines.services.clients.chat import (
    LONGEST_PAUSE,
    LONGEST_WAIT,
    PATIENCE,
    TRIES,
    OpenAIChat,
    PictureParts,
    ReadPicture,
    cut_at_stop,
    explain_refusal,
    list_secret_headers,
    make_body,
    name_key,
    read_completion,
    read_headers,
    refuse_picture,
)
from pipelines.services.clients.http import HttpReply, NoReply, read_key, redact
from pipelines.services.clients.recorded import make_chat_key
from pipelines.services.clients.replies import name_epoch
from pipelines.services.protocols import ChatReply, ChatRequest
from pipelines.services.traffic import Waiting

if TYPE_CHECKING:
    from openai import OpenAI
    from openai.types import Batch, FileObject

T = TypeVar("T")

ENDPOINT: Literal["/v1/chat/completions"] = "/v1/chat/completions"
MOST_BYTES = 190_000_000
"""Bytes of a file at most; OpenAI takes 200 MB."""
TAG = "synth"
"""Key of a batch's metadata; the value is its tag."""
DAY = 86_400
BATCH_ROWS = 5000
"""Requests of a batch at most, so that one is not too large a loss and a budget is overshot by no more."""
FIRST_POLL = 1.0
"""Seconds before the first look at a batch; doubled for each further one."""
SETTLED = 10.0
"""Seconds after which a server lists a batch whose creation it was asked for."""
ENDED = ("completed", "failed", "expired", "cancelled")
_QUOTED = 600
_CROWDED = ("token_limit_exceeded", "rate_limit_exceeded")
"""Errors of a batch that the server refuses because it has enough to do; it may take it later."""


class BatchNote(BaseModel):
    """A batch on disk: ``<tag>.json``."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    tag: str
    backend: str
    """Identity of the model."""
    server: str
    written: int
    """Seconds since 1970."""
    digest: str
    """sha256 of the file of requests."""
    keys: tuple[str, ...]
    """Keys of its requests; after its end, only of those with a reply."""
    file_id: str = ""
    batch_id: str = ""


def write_line(key: str, body: bytes) -> bytes:
    """Return a request's line; ``body`` is JSON on one line."""
    return b'{"custom_id":"%b","method":"POST","url":"%b","body":%b}\n' % (key.encode(), ENDPOINT.encode(), body)


@dataclass(frozen=True, slots=True)
class Unanswered:
    """A line without a reply.

    Attributes:
        said: what happened, for messages.
        error: raised to the caller at once; None if the request may be sent again.
        blamed: whether this line failed in a batch that completed normally.
        counts: whether it counts as a try.
    """

    said: str
    error: SynthError | None = None
    blamed: bool = False
    counts: bool = True


Answer = ChatReply | Unanswered


class _ResultBody(BaseModel):
    status_code: int = 200
    body: Any = None


class _ResultError(BaseModel):
    code: str | None = None
    message: str | None = None


class _Result(BaseModel):
    """A line of an output or error file."""

    custom_id: str
    response: _ResultBody | None = None
    error: _ResultError | None = None


@dataclass(frozen=True, slots=True)
class Pace:
    """How batches are cut and waited for.

    Attributes:
        rows: requests of a batch at most.
        wait: seconds without a new request after which a batch that is not full is sent.
        poll: seconds between two looks at a batch, at most.
        patience: seconds that the server may give no reply before the run stops.
        tries: batches that bring no reply before this record fails.
    """

    rows: int = BATCH_ROWS
    wait: float = 5.0
    poll: float = 60.0
    patience: float = PATIENCE
    tries: int = TRIES


PACE = Pace()


@dataclass(slots=True)
class BatchServer:
    """The files and batches of a server, by the ``openai`` package. Its methods block: call them in a thread.

    They raise RateLimited and NoReply if another try may help, else ConfigError or Unavailable.
    """

    settings: ModelConfig
    pace: Pace = PACE
    _client: "OpenAI | None" = None
    _opening: Lock = field(default_factory=Lock, repr=False)

    @property
    def place(self) -> str:
        """Address and model, for messages."""
        return f"{self.settings.base_url[0]}, model {self.settings.name}"

    def upload(self, path: Path) -> str:
        """Send a file of requests and return its id."""
        with path.open("rb") as source:
            return _read_id(self._call(lambda client: client.files.create(file=(path.name, source), purpose="batch")))

    def create(self, note: BatchNote) -> str:
        """Create the batch of an uploaded file and return its id."""

        def create(client: "OpenAI") -> "Batch":
            return client.batches.create(
                input_file_id=note.file_id, endpoint=ENDPOINT, completion_window="24h", metadata={TAG: note.tag}
            )

        return _read_id(self._call(create))

    def find(self, note: BatchNote) -> str:
        """Return the id of the batch with a note's tag, or "" if the server has no such batch."""

        def look(client: "OpenAI") -> str:
            for batch in client.batches.list(limit=100):
                if (batch.created_at or 0) < note.written - DAY:
                    break
                if (batch.metadata or {}).get(TAG) == note.tag and batch.status != "failed":
                    return batch.id
            return ""

        return self._call(look)

    def find_or_create(self, note: BatchNote) -> str:
        """Return the id of a note's batch after a request to create it got no reply."""
        return self.find(note) or self.create(note)

    def retrieve(self, note: BatchNote) -> "Batch":
        """Return the batch as it is now."""
        batch = self._call(lambda client: client.batches.retrieve(note.batch_id))
        _read_id(batch)
        return batch

    def read_answers(self, batch: "Batch", keys: AbstractSet[str]) -> dict[str, Answer]:
        """Return the lines of an ended batch by key, without keys that have no line."""
        answers, secret = dict[str, Answer](), self._list_secrets()
        for file_id in filter(None, (batch.error_file_id, batch.output_file_id)):
            content = self._call(partial(_fetch, file_id))
            for key, answer in _read_lines(content, self.settings, secret):
                # A line with a reply has the last word.
                if key in keys and not isinstance(answers.get(key), ChatReply):
                    answers[key] = answer
        return answers

    def close(self) -> None:
        """Close the connections; a second call does nothing."""
        if self._client is not None:
            self._client.close()
            self._client = None

    def _read_key(self) -> str:
        return read_key(f"model {self.settings.name}", self.settings.api_key_env)

    def _list_secrets(self) -> tuple[str, ...]:
        more = read_headers(self.settings)
        return (self._read_key(), *(more[name] for name in list_secret_headers(self.settings)))

    def _open(self) -> "OpenAI":
        # Imported here: it takes a second.
        from openai import DefaultHttpxClient, OpenAI

        with self._opening:
            if self._client is None:
                # Its own tries would create a batch a second time.
                self._client = OpenAI(
                    base_url=self.settings.base_url[0],
                    api_key=self._read_key() or "none",
                    default_headers=name_key(self.settings, self._read_key()) | read_headers(self.settings),
                    timeout=self.settings.timeout,
                    max_retries=0,
                    http_client=DefaultHttpxClient(trust_env=False),
                )
            return self._client

    def _call(self, ask: "Callable[[OpenAI], T]") -> T:
        client = self._open()
        from openai import APIStatusError, OpenAIError

        try:
            return ask(client)
        except APIStatusError as error:
            raise self._explain(error.status_code, error.response.headers, error.response.content) from None
        except OpenAIError as error:
            raise NoReply(f"{type(error).__name__}: {redact(str(error).encode(), self._list_secrets())}") from None
        except (ValueError, RecursionError) as error:
            # The package lets out what reading JSON raises.
            raise NoReply(f"no JSON ({type(error).__name__})") from None

    def _explain(self, status: int, headers: Mapping[str, str], body: bytes) -> SynthError | NoReply:
        said = redact(body, self._list_secrets())
        if status in (404, 405):
            return ConfigError(
                f'{self.place}: HTTP {status} ({said[:_QUOTED]}); mode = "batch" needs a server with /files and '
                "/batches; a batch that it has forgotten is given up by removing its note from the workspace's batches/"
            )
        error = explain_refusal(self.settings, self.place, HttpReply(status, headers, body), said)
        # Here no single record is at fault.
        return ConfigError(f"{error.detail}") if isinstance(error, RecordFailed) else error


def _read_id(found: "FileObject | Batch") -> str:
    """Return the id; the package does not validate replies.

    Raises:
        NoReply: if the reply has no id.
    """
    name = getattr(found, "id", None)
    if not isinstance(name, str) or not name:
        raise NoReply(f"no file or batch but {str(found)[:_QUOTED]!r}")
    return name


def _fetch(file_id: str, client: "OpenAI") -> bytes:
    return client.files.content(file_id).content


def _read_lines(content: bytes, settings: ModelConfig, secret: Sequence[str]) -> Iterator[tuple[str, Answer]]:
    """Yield the key and the answer of each line of a file; skip truncated and malformed lines."""
    for line in content.split(b"\n"):
        try:
            result = _Result.model_validate(orjson.loads(line)) if line.strip() else None
        except (orjson.JSONDecodeError, ValidationError):
            continue  # its request has no reply, and goes into the next batch
        if result is not None:
            yield result.custom_id, _read_result(result, settings, secret)


def _read_result(result: _Result, settings: ModelConfig, secret: Sequence[str]) -> Answer:
    response, error = result.response, result.error or _ResultError()
    if response is None:
        said = redact(f"{error.code}: {error.message}".encode(), secret)
        return Unanswered(said, blamed="expired" not in (error.code or ""))
    body = orjson.dumps(response.body)
    if response.status_code == 200:
        try:
            return read_completion(body, secret)
        except NoReply as problem:
            return Unanswered(str(problem), blamed=True)
    place = f"{settings.base_url[0]}, model {settings.name}, in a batch"
    refusal = explain_refusal(settings, place, HttpReply(response.status_code, {}, body), redact(body, secret))
    if isinstance(refusal, NoReply | RateLimited):
        return Unanswered(str(refusal), blamed=True)
    return Unanswered(str(refusal), refusal)


def read_batch_note(path: Path) -> BatchNote:
    """Read the note of a batch.

    Raises:
        CorruptInput: if it is damaged.
    """
    try:
        return BatchNote.model_validate_json(path.read_bytes())
    except ValidationError as error:
        raise CorruptInput(f"{path}: damaged; without it its requests are paid again: remove it") from error


@dataclass(slots=True)
class BatchNotes:
    """The notes of one model's batches in a folder that all models of a workspace share.

    Attributes:
        is_recorded: returns whether the reply of a key is recorded, so that its request is never sent again.
    """

    folder: Path
    backend: str
    server: str
    is_recorded: Callable[[str], bool]

    def read(self) -> list[BatchNote]:
        """Return the notes of batches whose replies are not all recorded, and remove the others.

        Raises:
            CorruptInput: if a note is damaged.
            ConfigError: if a batch was sent to another server than the model's.
        """
        notes = []
        for path in sorted(self.folder.glob("*.json")):
            try:
                note = read_batch_note(path)
            except FileNotFoundError:
                continue  # another process of the run has recorded its replies and removed it
            if note.backend != self.backend or self.tidy(note):
                continue
            if note.server != self.server:
                raise ConfigError(
                    f"{path}: a batch of {len(note.keys):,} requests is under way at {note.server}, but base_url is "
                    f"{self.server}; run with that address until it has ended, or remove the file to pay for them again"
                )
            notes.append(note)
        return notes

    def write(self, note: BatchNote) -> BatchNote:
        """Write a note, durably, and return it."""
        write_text(self.place(note), note.model_dump_json())
        return note

    def tidy(self, note: BatchNote) -> bool:
        """Remove a note if all its replies are recorded; return whether it was removed."""
        done = all(map(self.is_recorded, note.keys))
        if done:
            self.remove(note)
        return done

    def remove(self, note: BatchNote) -> None:
        """Remove a note."""
        self.place(note).unlink(missing_ok=True)

    def place(self, note: BatchNote) -> Path:
        """Return the path of a note; the file of requests lies beside it as ``.jsonl`` until it is uploaded."""
        return self.folder / f"{note.tag}.json"


@dataclass(eq=False)
class BatchDesk:
    """The requests of one event loop: waiting callers, unsent requests and running batches.

    Attributes:
        say: receives messages about batches.
        answered: number of replies so far.
    """

    server: BatchServer
    notes: BatchNotes
    say: Callable[[str], None]
    answered: int = 0
    _error: BaseException | None = None
    """The error that ended the desk: all waiting callers got it, and later callers get it too."""
    _pending: dict[str, bytes] = field(default_factory=dict)
    """Lines that are not sent yet, by key."""
    _size: int = 0
    _timer: asyncio.TimerHandle | None = None
    _waiters: dict[str, "asyncio.Future[Answer]"] = field(default_factory=dict)
    _ready: dict[str, ChatReply] = field(default_factory=dict)
    """Replies that no caller of this process has requested yet."""
    _under_way: dict[str, BatchNote] = field(init=False)
    """By key."""
    _tasks: dict[str, "asyncio.Task[None]"] = field(default_factory=dict)
    """Tasks that follow the batches, by tag."""
    _ended: list[BatchNote] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._under_way = {key: note for note in self.notes.read() for key in note.keys}

    def has(self, key: str) -> bool:
        """Return whether this or an earlier process has sent a request."""
        return key in self._ready or key in self._under_way

    async def get(self, key: str, body: bytes) -> Answer:
        """Return the answer to a request; it goes into the next batch unless it was sent already."""
        if self._error is not None:
            raise self._error
        if key in self._ready:
            return self._ready.pop(key)
        waiter: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
        self._waiters[key] = waiter
        try:
            if (note := self._under_way.get(key)) is None:
                self._add(key, write_line(key, body))
            elif note.tag not in self._tasks:
                self._start(note, self._resume(note))
            return await waiter
        finally:
            del self._waiters[key]
            self._size -= len(self._pending.pop(key, b""))

    def fail(self, error: BaseException) -> None:
        """End with an error; batches under way stay noted."""
        if self._error is None:
            self._error = error
            for waiter in self._waiters.values():
                if not waiter.done():
                    waiter.set_exception(error)

    def tidy(self) -> None:
        """Remove the notes of ended batches whose replies are all recorded by now."""
        self._ended = [note for note in self._ended if not self.notes.tidy(note)]

    def _add(self, key: str, line: bytes) -> None:
        pace = self.server.pace
        if self._size + len(line) > MOST_BYTES:
            self._send()
        self._pending[key] = line
        self._size += len(line)
        if self._timer is not None:
            self._timer.cancel()
        if len(self._pending) >= pace.rows:
            self._send()
        else:
            self._timer = asyncio.get_running_loop().call_later(pace.wait, self._send)

    def _send(self) -> None:
        """Send all pending requests as a batch."""
        if not self._pending or self._error is not None:
            return
        lines, self._pending, self._size = self._pending, {}, 0
        data = b"".join(lines.values())
        note = BatchNote(
            tag=uuid4().hex,
            backend=self.notes.backend,
            server=self.notes.server,
            written=int(time.time()),
            digest=sha256(data).hexdigest(),
            keys=tuple(lines),
        )
        self._under_way |= dict.fromkeys(lines, note)
        self._start(note, self._begin(note, data))

    def _start(self, note: BatchNote, work: Coroutine[None, None, None]) -> None:
        task = self._tasks[note.tag] = asyncio.get_running_loop().create_task(work)

        def end(done: "asyncio.Task[None]") -> None:
            del self._tasks[note.tag]
            if not done.cancelled() and (error := done.exception()) is not None:
                self.fail(error)

        task.add_done_callback(end)

    async def _begin(self, note: BatchNote, data: bytes) -> None:
        """Send a new batch, each step noted before the next, and wait for its end."""
        server, path = self.server, self.notes.place(note).with_suffix(".jsonl")
        await asyncio.to_thread(self.notes.write, note)
        try:
            await asyncio.to_thread(write_bytes, path, data)
            del data
            file_id = await self._call(partial(server.upload, path))
        finally:
            path.unlink(missing_ok=True)
        note = await asyncio.to_thread(self.notes.write, note.model_copy(update={"file_id": file_id}))
        batch_id = await self._call(partial(server.create, note), partial(server.find_or_create, note))
        await self._follow(note.model_copy(update={"batch_id": batch_id}), resumed=False)

    async def _resume(self, note: BatchNote) -> None:
        """Wait for a batch of an earlier process, or release its requests if that process never created it."""
        batch_id = note.batch_id
        for again in (False, True) if note.file_id and not batch_id else ():
            # A request to create it may have been on its way when its sender was killed.
            await asyncio.sleep(min(SETTLED, self.server.pace.poll) if again else 0.0)
            batch_id = batch_id or await self._call(partial(self.server.find, note))
        if batch_id:
            await self._follow(note.model_copy(update={"batch_id": batch_id}), resumed=True)
        else:
            self.notes.place(note).with_suffix(".jsonl").unlink(missing_ok=True)
            self._release(note, dict.fromkeys(note.keys, Unanswered("its batch was never created", counts=False)))

    async def _follow(self, note: BatchNote, resumed: bool) -> None:
        """Wait for a batch to end and pass on its answers."""
        await asyncio.to_thread(self.notes.write, note)
        name = f"{self.server.settings.name}: batch {note.batch_id} of {len(note.keys):,} requests"
        self.say(f"{name} {'goes on' if resumed else 'is sent'}")
        batch = await self._wait(note, name)
        if batch.status == "failed" and resumed:
            # The cause may be fixed by now.
            self._release(note, dict.fromkeys(note.keys, Unanswered("its batch was refused", counts=False)))
            return
        if batch.status == "failed":
            errors = (batch.errors.data if batch.errors else None) or []
            said = "; ".join(f"{error.message} ({error.code}, line {error.line})" for error in errors[:3])[:_QUOTED]
            text = f"{self.server.place}: refuses {name}: {said or 'no reason'}"
            if not any(error.code in _CROWDED for error in errors):
                # Nothing was paid.
                self.notes.remove(note)
                raise ConfigError(text)
            await asyncio.sleep(self.server.pace.poll)
            self._release(note, dict.fromkeys(note.keys, Unanswered(text, counts=len(self._tasks) == 1)))
            return
        answers = await self._call(partial(self.server.read_answers, batch, frozenset(note.keys)))
        replies = sum(isinstance(answer, ChatReply) for answer in answers.values())
        self.say(f"{name} is {batch.status}: {replies:,} answered")
        missing = Unanswered(f"batch {batch.id} is {batch.status}, without it", blamed=batch.status == "completed")
        self._release(note, {key: answers.get(key, missing) for key in note.keys})
        if batch.status == "cancelled":
            raise Unavailable(f"{self.server.place}: batch {batch.id} was cancelled; run again to ask the rest anew")

    async def _wait(self, note: BatchNote, name: str) -> "Batch":
        pause = min(FIRST_POLL, self.server.pace.poll)
        with Waiting() as waiting:
            while (batch := await self._call(partial(self.server.retrieve, note))).status not in ENDED:
                done = batch.request_counts.completed if batch.request_counts else 0
                waiting.note(name, f"{batch.status}, {done:,} of {len(note.keys):,} answered")
                await asyncio.sleep(pause)
                pause = min(2 * pause, self.server.pace.poll)
        return batch

    def _release(self, note: BatchNote, answers: Mapping[str, Answer]) -> None:
        """Narrow a note to the keys with a reply, so that the others are free again; then pass on the answers."""
        replied = tuple(key for key, answer in answers.items() if isinstance(answer, ChatReply))
        self.tidy()
        if replied:
            self._ended.append(self.notes.write(note.model_copy(update={"keys": replied})))
        else:
            self.notes.remove(note)
        self.answered += len(replied)
        for key, answer in answers.items():
            self._under_way.pop(key, None)
            if (waiter := self._waiters.get(key)) is not None and not waiter.done():
                waiter.set_result(answer)
            elif isinstance(answer, ChatReply):
                self._ready[key] = answer

    async def _call(self, ask: Callable[[], T], again: Callable[[], T] | None = None) -> T:
        """Call the server in a thread until it replies; later tries call ``again`` if given.

        Raises:
            Unavailable: if it gave no reply for the model's patience.
        """
        since, tries = time.monotonic(), 0
        with Waiting() as waiting:
            while True:
                try:
                    return await asyncio.to_thread(ask)
                except (RateLimited, NoReply) as error:
                    patience, tries, ask = self.server.pace.patience, tries + 1, again or ask
                    if time.monotonic() - since >= patience:
                        raise Unavailable(f"{self.server.place}: no reply for {patience:g} s ({error})") from error
                    wait = error.retry_after if isinstance(error, RateLimited) else 0.0
                    waiting.note(self.server.place, error, since + patience - time.monotonic())
                pause = random.uniform(0.5, 1.0) * min(LONGEST_PAUSE, 2.0**tries)
                await asyncio.sleep(min(wait, LONGEST_WAIT) or pause)


@dataclass(frozen=True, slots=True)
class BatchChat:
    """A model behind the Batch API; it shares recorded replies with :class:`OpenAIChat`, which asks the model live.

    Attributes:
        settings: name, address, key and limits.
        folder: folder of notes, shared by all models of a workspace.
        is_recorded: returns whether the reply of a key is recorded.
        epoch: cache epoch, part of the identity; batches of older epochs are ignored.
        read_picture: reads the picture store, called in a thread.
        say: receives messages about batches.
        pace: how batches are cut and waited for.

    Raises:
        ConfigError: if the address is invalid, or the key's variable is not set or holds an invalid key.
    """

    settings: ModelConfig
    folder: Path
    is_recorded: Callable[[str], bool]
    epoch: int = 0
    read_picture: ReadPicture = field(default=refuse_picture, repr=False)
    say: Callable[[str], None] = field(default=lambda text: None, repr=False)
    pace: Pace = PACE
    _live: OpenAIChat = field(init=False, repr=False, compare=False)
    _server: BatchServer = field(init=False, repr=False, compare=False)
    _pictures: PictureParts = field(init=False, repr=False, compare=False)
    _desks: dict[asyncio.AbstractEventLoop, BatchDesk] = field(
        init=False, default_factory=dict, repr=False, compare=False
    )
    reads_inputs: ClassVar[bool] = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "_live", OpenAIChat(self.settings))
        object.__setattr__(self, "_server", BatchServer(self.settings, self.pace))
        pictures = PictureParts(self.read_picture, most_shown=find_profile(self.settings).picture_bytes)
        object.__setattr__(self, "_pictures", pictures)

    @property
    def name(self) -> str:
        """The model's name at the server, in rows and in manifests."""
        return self.settings.name

    @property
    def identity(self) -> str:
        """The live model's identity in the cache epoch."""
        return name_epoch(self._live.identity, self.epoch)

    async def chat(self, request: ChatRequest) -> ChatReply:
        """Return the reply once a batch brings it.

        Raises:
            Unavailable: if the server gives no reply for longer than the patience, or ends the request's batches before
                it is answered, in all tries.
            ConfigError: if the server does not take the batch, or knows no such model, key or parameter.
            RecordFailed: if the server refuses this prompt, or fails at it in all tries while others get their replies.
        """
        key, desk, tries = make_chat_key(self, request), self._find_desk(), 0
        before = desk.answered
        while True:
            body = b"" if desk.has(key) else await make_body(self.settings, request, self._pictures)
            answer = await desk.get(key, body)
            if isinstance(answer, ChatReply):
                return replace(cut_at_stop(answer, request.stop), retries=tries)
            if answer.error is not None:
                if not isinstance(answer.error, RecordFailed):
                    desk.fail(answer.error)
                raise answer.error
            tries += answer.counts
            if tries >= self.pace.tries:
                said = f"{self.settings.base_url[0]}, model {self.name}, in batches: {answer.said}, {tries} times"
                if answer.blamed and desk.answered > before:
                    raise RecordFailed("no-reply", f"{said}; other requests succeeded")
                error = Unavailable(f"{said}; run again later")
                desk.fail(error)
                raise error

    def close(self) -> None:
        """Remove the notes that are not needed any more and close the connections; a second call does nothing."""
        for desk in self._desks.values():
            desk.tidy()
        self._desks.clear()
        self._server.close()

    def _find_desk(self) -> BatchDesk:
        """Return the desk of the running event loop."""
        loop = asyncio.get_running_loop()
        if loop not in self._desks:
            for other in [other for other in self._desks if other.is_closed()]:
                self._desks.pop(other).tidy()
            notes = BatchNotes(self.folder, self.identity, self.settings.base_url[0], self.is_recorded)
            self._desks[loop] = BatchDesk(self._server, notes, self.say)
        return self._desks[loop]
