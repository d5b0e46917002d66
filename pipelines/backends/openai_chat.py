"""Chat with any servers that speak OpenAI's ``/chat/completions`` (vLLM's among them).

Only the messages of a request are sent; its inputs stay here. What a reply says is not judged here: one that was cut
or refused is marked as such, and ``pipelines.prompting`` decides.
"""

import asyncio
import os
import random
import time
from dataclasses import dataclass, field, replace
from urllib.parse import urlsplit

import aiohttp
import orjson

from pipelines.backends.endpoint_pool import Bounds, EndpointPool, make_pool
from pipelines.backends.endpoints import Endpoint, Outcome, Ticket
from pipelines.backends.openai_body import PictureParts, ReadPicture, Replies, make_body
from pipelines.backends.openai_errors import NobodyThere, NoReply, Refusal, Silence, read_pause, redact
from pipelines.backends.openai_http import HttpReply, Sessions, make_session, post_bounded
from pipelines.backends.openai_replies import cut_at_stop, read_completion
from pipelines.backends.protocols import ChatReply, ChatRequest
from pipelines.errors import ConfigError, RateLimited, RecordFailed, SynthError

VERSION = 1
_LONGEST_PAUSE = 30.0


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
    """Stand in for a picture store where there is none.

    Raises:
        ConfigError: always.
    """
    raise ConfigError(f"picture {sha256}: this model was built without a picture store")


@dataclass(frozen=True, slots=True)
class OpenAIChat:
    """A model behind one or several OpenAI-compatible addresses.

    Attributes:
        name: the model's name at the servers; rows and manifests show it, too.
        urls: addresses that ``/chat/completions`` is appended to; several need a revision, for they must serve the
            very same model.
        api_key_env: name of the environment variable that holds the key, empty for a server that wants none. The key
            is read when a session is made and kept nowhere else.
        revision: what tells two models of one name apart.
        replies: how the shape of a reply is asked for.
        timeout: seconds for a whole reply.
        tries: how often a request is sent that gets no whole reply while others get theirs.
        patience: seconds that every address may be busy or away.
        concurrency: most requests in flight at one address.
        gpus: behind one address.
        read_picture: where pictures come from; called in a thread.
        pause: seconds before a request or an address that failed is tried again, at most, doubled each time.

    Raises:
        ConfigError: if an address is none, or the variable is not set or holds what can be no key.
    """

    name: str
    urls: tuple[str, ...]
    api_key_env: str = ""
    revision: str = ""
    replies: Replies = "schema"
    timeout: float = 120.0
    tries: int = 4
    patience: float = 300.0
    concurrency: int = 256
    gpus: float = 0.0
    read_picture: ReadPicture = field(default=refuse_picture, repr=False)
    pause: float = 1.0
    pool: EndpointPool = field(init=False, repr=False, compare=False)
    sessions: Sessions = field(init=False, repr=False, compare=False)
    _pictures: PictureParts = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        _check_addresses(self.name, self.urls, self.revision)
        self._read_key()
        bounds = Bounds(self.concurrency, self.patience, self.gpus, self.pause)
        object.__setattr__(self, "pool", make_pool(self.name, self.urls, bounds))
        object.__setattr__(self, "sessions", Sessions(self._make_session))
        object.__setattr__(self, "_pictures", PictureParts(self.read_picture))

    @property
    def identity(self) -> str:
        """Name and revision; without a revision the address takes its place.

        Whoever names a revision vouches for it wherever the model is served, so a server that moves to another host
        costs nothing again. Without one, only the address can tell two models of one name apart. A reply that was not
        forced into its schema is another reply.
        """
        forced = "" if self.replies == "schema" else f":{self.replies}"
        return f"openai@{VERSION}:{self.name}:{self.revision or self.urls[0]}{forced}"

    @property
    def reads_inputs(self) -> bool:
        """Never: the messages are all that is sent."""
        return False

    async def chat(self, request: ChatRequest) -> ChatReply:
        """Return the reply, whatever it says; one without text is empty.

        Raises:
            Unavailable: if every address was busy or away for longer than the patience, or nothing is left on the
                account.
            ConfigError: if a server knows no such model, key or parameter; no other record would fare better.
            RecordFailed: if it refuses this very prompt: too long, or not to its liking. Or if it gives no whole reply
                to this one again and again, and does to others.
        """
        body = await make_body(self.name, request, self._pictures, self.replies)
        trial = _Trial(body, self.pool.clock())
        while True:
            reply = await self._send(trial)
            if reply is not None:
                reply = cut_at_stop(reply, request.stop)
                return replace(reply, gpu_seconds=trial.gpu_seconds, retries=trial.sent - 1, seconds=trial.seconds)
            if trial.failed >= self.tries:
                await self._give_up(trial)
            await self._pause(trial)

    async def _pause(self, trial: _Trial) -> None:
        # The pauses spare an address that fails, so a first try elsewhere needs none.
        spared = trial.failed - (1 if len(self.urls) > 1 else 0)
        if spared > 0:
            await asyncio.sleep(random.uniform(0.0, min(_LONGEST_PAUSE, self.pause * 2.0 ** min(spared - 1, 32))))

    async def _give_up(self, trial: _Trial) -> None:
        """Fail the record if it alone gets no reply; otherwise its tries begin again.

        Raises:
            RecordFailed: if others got theirs.
            Unavailable: if nobody got one for long enough.
        """
        if self.pool.answered > trial.answered or await self._answers_at_all(trial.since):
            raise RecordFailed("no-reply", f"{trial.said}, {trial.failed} times; others got theirs")
        trial.failed = 0

    async def _answers_at_all(self, since: float) -> bool:
        """Ask for one token, because nobody else has asked since: is it the servers, or this one prompt?"""
        messages = [{"role": "user", "content": "Say yes."}]
        body = orjson.dumps({"model": self.name, "messages": messages, "max_tokens": 1, "temperature": 0.0})
        return await self._send(_Trial(body, since)) is not None

    async def _send(self, trial: _Trial) -> ChatReply | None:
        """Send a request once, to whichever address has room first; return None if it is to be sent again."""
        ticket = await self.pool.take(trial.since, trial.avoided)
        trial.sent += 1
        outcome = Outcome("unknown")
        try:
            since = time.monotonic()
            received = await self._post(ticket, trial.body)
            trial.seconds = time.monotonic() - since
            reply = self._read_reply(ticket, received)
            outcome = Outcome("answered")
            return reply
        except RecordFailed:
            outcome = Outcome("answered")
            raise
        except RateLimited as error:
            outcome = Outcome("busy", error.retry_after, str(error))
        except NoReply as error:
            trial.said = f"{self._place(ticket)}: {error}"
            outcome = self._note_failure(trial, error)
        finally:
            trial.gpu_seconds += self.pool.give_back(ticket, outcome)
        trial.avoided = ticket.endpoint
        return None

    def _note_failure(self, trial: _Trial, error: NoReply) -> Outcome:
        if isinstance(error, NobodyThere):
            return Outcome("gone", said=str(error))
        if not trial.failed:
            trial.answered = self.pool.answered
        trial.failed += 1
        return Outcome("silent" if isinstance(error, Silence) else "failed", said=str(error))

    def _place(self, ticket: Ticket) -> str:
        return f"{ticket.endpoint.url}, model {self.name}"

    @property
    def _hidden(self) -> str:
        return self._read_key() if self.api_key_env else ""

    def _read_key(self) -> str:
        if not self.api_key_env:
            return "none"
        key = os.environ.get(self.api_key_env, "")
        if not key:
            raise ConfigError(
                f"model {self.name}: environment variable {self.api_key_env} is not set; it holds the key"
            )
        if not key.isascii() or not key.isprintable() or " " in key:
            # A key that is no header's value would be quoted in the client's error.
            raise ConfigError(
                f"model {self.name}: environment variable {self.api_key_env} holds white space or no ASCII"
            )
        return key

    def _make_session(self) -> aiohttp.ClientSession:
        return make_session(self._read_key())

    async def _post(self, ticket: Ticket, body: bytes) -> HttpReply:
        try:
            async with asyncio.timeout(self.timeout):
                session = await self.sessions.open()
                return await post_bounded(session, f"{ticket.endpoint.url}/chat/completions", body)
        except TimeoutError as error:
            raise Silence(f"no whole reply in {self.timeout:g} s") from error
        except NoReply as error:
            # A server that speaks no HTTP is quoted in the error.
            raise type(error)(redact(str(error).encode(), self._hidden)) from None

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
        return Refusal(place, reply.status, read_pause(reply.headers), text, self.api_key_env, self.replies).explain()


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
