"""A live service with a key: how it is asked, what its refusals mean, and its JSON, read with care."""

import html
import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

import orjson

from pipelines.backends.live_http import Busy, LiveClient, LiveReply, LiveRequest, NoSuchHost, TooLarge
from pipelines.backends.openai_errors import NoReply
from pipelines.errors import ConfigError, RecordFailed, Unavailable

T = TypeVar("T")

_QUOTED = 300
_LOOKED = 4000
"""Characters of a reply that are looked at for what it says."""
_JSON = ("application/json", "text/json")
_THEIR_FAULT = (408, 409, 425)
_REFUSED = (400, 413, 414, 422)
_NO_MONEY = (
    "not enough credit",
    "run out of searches",
    "insufficient balance",
    "insufficientbalance",
    "insufficient_quota",
    "exceeded your current quota",
)
_NO_KEY = ("api key not valid", "api_key_invalid", "invalid api key", "missing api key", "api key expired")


@dataclass(frozen=True, slots=True)
class Service:
    """One service.

    Attributes:
        name: for messages.
        url: address, without parameters; it stands in messages and identities, so no secrets.
        key_env: environment variable that holds the key; empty for none.
        client: asks it.
        setting: what of the configuration names the address, for messages.
    """

    name: str
    url: str
    key_env: str
    client: LiveClient = field(repr=False)
    setting: str

    @property
    def place(self) -> str:
        """How messages name it."""
        return f"{self.name} at {self.url}"

    def read_key(self) -> str:
        """Return the key, empty where no variable is named. It is read when it is needed and kept nowhere.

        Raises:
            ConfigError: if the variable is not set, or what it holds cannot be sent.
        """
        if not self.key_env:
            return ""
        key = os.environ.get(self.key_env, "").strip()
        if not key:
            raise ConfigError(f"{self.place}: environment variable {self.key_env} is not set; it holds the key")
        if not (key.isascii() and key.isprintable()):
            raise ConfigError(f"{self.place}: {self.key_env} holds no key: characters other than printable ASCII")
        return key

    async def ask(self, request: LiveRequest, read: Callable[[LiveReply], T] | None = None) -> T:
        """Send a request until there is a reply that can be read.

        Args:
            request: to be sent.
            read: makes the result of a reply of any status; it raises :class:`NoReply` for what may go better the next
                time. Where left out, :meth:`read_json`.

        Raises:
            RateLimited: if the service asks to slow down, again and again or for long.
            Unavailable: if there is no reply after all tries, or nothing left on the account.
            ConfigError: if the service does not take the key, or is no such service.
            RecordFailed: ``search-refused`` if it does not take this one request.
        """
        reader: Callable[[LiveReply], Any] = read or self.read_json

        async def attempt() -> T:
            result: T = reader(await self.client.send(request))
            return result

        try:
            return await self.client.try_often(self.url, attempt)
        except NoReply as error:
            raise self.give_up(error) from None

    def give_up(self, error: NoReply) -> Unavailable:
        """Return what is told of a service that gave no reply after all tries."""
        times = "" if isinstance(error, (NoSuchHost, TooLarge)) else f", {self.client.manners.tries} times"
        return Unavailable(f"{self.place}: {error}{times}; see {self.setting}, or run again later")

    def read_json(self, reply: LiveReply) -> Mapping[str, Any]:
        """Return the JSON object that a reply is.

        Raises:
            NoReply: if it is another thing, such as a page that says that something went wrong.
            SynthError: as :meth:`explain`, for a status other than 200.
        """
        if reply.status != 200:
            raise self.explain(reply)
        if reply.kind not in _JSON and not reply.kind.endswith("+json"):
            raise NoReply(f"no JSON but {reply.kind or 'something of no type'}: {self.quote(reply)[:80]!r}")
        try:
            read = orjson.loads(reply.body)
        except orjson.JSONDecodeError:
            raise NoReply(f"broken JSON: {self.quote(reply)[:80]!r}") from None
        if not isinstance(read, dict):
            raise NoReply(f"JSON of another form: {self.quote(reply)[:80]!r}")
        return read

    def explain(self, reply: LiveReply) -> Exception:
        """Return what a status other than 200 means."""
        status, said = reply.status, self.quote(reply)
        folded, told = said.lower(), f"HTTP {reply.status}: {said[:_QUOTED]}"
        if self.is_out_of_money(reply):
            return Unavailable(f"{self.place}: nothing left on the account ({told})")
        if reply.is_busy:
            return Busy(f"{self.place}: HTTP {status}", reply.wait)
        if status >= 500 or status in _THEIR_FAULT:
            return NoReply(told)
        if status in (401, 403) or (status == 400 and any(words in folded for words in _NO_KEY)):
            variable = self.key_env or f"no variable; name one as {self.setting.replace('_url', '_key_env')}"
            return ConfigError(f"{self.place}: does not take the key of {variable} ({told})")
        if 300 <= status < 400:
            to = self.redact(reply.headers.get("Location", "?").encode("utf-8", "replace"))[:200]
            return ConfigError(f"{self.place} has moved to {to!r}; set that address as {self.setting}")
        if status in _REFUSED:
            return RecordFailed("search-refused", f"{self.place}: {told}")
        return ConfigError(f"{self.place}: is no such service ({told}); see {self.setting}")

    def is_out_of_money(self, reply: LiveReply) -> bool:
        """Say whether a refusal means that nothing is left on the account."""
        folded = self.quote(reply).lower()
        return reply.status == 402 or (400 <= reply.status < 500 and any(words in folded for words in _NO_MONEY))

    def quote(self, reply: LiveReply) -> str:
        """Return the beginning of a reply's body on one line, without the key."""
        return self.redact(reply.body)

    def redact(self, said: bytes) -> str:
        """Return what was said on one line, without the key in any form in which it may have been sent."""
        key = os.environ.get(self.key_env, "").strip() if self.key_env else ""
        text = said.decode("utf-8", "replace")
        if key:
            text = _compile_forms(key).sub("...", text)
        # Cut last, so that no part of a key is left at the end.
        return " ".join("".join(char if char.isprintable() else " " for char in text[:_LOOKED]).split())


def _compile_forms(key: str) -> re.Pattern[str]:
    """Return what finds a key, each letter plain or escaped as addresses, JSON and HTML do."""
    return re.compile("".join(map(_write_forms, key)), re.IGNORECASE)


def _write_forms(char: str) -> str:
    code = ord(char)
    forms = [char, f"%{code:02x}", f"\\{char}", f"\\u{code:04x}", html.escape(char), f"&#{code};", f"&#x{code:x};"]
    if char == " ":
        forms.append("+")
    return f"(?:{'|'.join(map(re.escape, dict.fromkeys(forms)))})"


def list_entries(reply: Mapping[str, Any], name: str) -> list[Mapping[str, Any]]:
    """Return a list of objects in a reply, empty where there is none.

    Raises:
        NoReply: if it is something else.
    """
    found = reply.get(name)
    if found is None:
        return []
    if not isinstance(found, list) or not all(isinstance(entry, dict) for entry in found):
        raise NoReply(f"a reply of another form: {name} is no list of objects")
    return found


def find_entry(reply: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    """Return an object in a reply, an empty one where there is none.

    Raises:
        NoReply: if it is something else.
    """
    found = reply.get(name)
    if found is None:
        return {}
    if not isinstance(found, dict):
        raise NoReply(f"a reply of another form: {name} is no object")
    return found


def read_text(entry: Mapping[str, Any], *names: str) -> str:
    """Return the first of several values that is a text with something in it, on one line; empty if none is."""
    for name in names:
        value = entry.get(name)
        if isinstance(value, str) and value.strip():
            return " ".join(value.split())
    return ""
