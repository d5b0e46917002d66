"""What servers refuse, learned from their answers and kept, so that no key is refused twice.

A profile says what is known beforehand; the answers of a server with status 400 or 422 say the rest. A key is left out
or renamed only where the reply means the same without it; anything else stays an error in the vendor's words.
"""

import asyncio
import json
import re
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from weakref import WeakKeyDictionary

from pydantic import ValidationError

from pipelines.config.profiles import NO_RULES, KeyRules
from pipelines.config.settings import Section
from pipelines.errors import Damaged
from pipelines.files import write_text

SPARED = ("temperature", "top_p", "seed", "presence_penalty", "stop", "parallel_tool_calls", "prompt_cache_key")
"""Keys that may be left out: a reply without them is one of the same kind, and what follows a stop text is cut here.

Of two that may not come together the first is sent.
"""
OTHER_NAMES = {"max_tokens": "max_completion_tokens", "max_completion_tokens": "max_tokens"}
TRIAL_SECONDS = 5.0
"""Seconds that requests wait for the first one with a new key: a refusal comes at once, a reply may take minutes."""
_QUOTED = 200
_SEARCHED = 4000
_SKIPPED = ("input", "ctx", "url")
"""Parts of an error response that quote the request, or advertise."""
_BEFORE = re.compile(
    r"(?:(?:does|do) ?n[o']t support(?: the)?(?: parameters?)?\W{0,4}$)"
    r"|(?:unsupported|un(?:known|expected|recogni[sz]ed)|invalid|extra)(?: request)?"
    r" (?:parameter|argument|field|name|key|value|keyword argument|property|input)(?:s|\(s\))?(?: supplied| in object)?"
    r"\W{0,4}$"
)
"""Ends of what stands before the name of a key that is refused."""
_AFTER = re.compile(
    r"^\W{0,8}(?:msg\W{1,4})?(?:\w+ ){0,3}?(?:is |are |was |were )?(?:currently |no longer )?"
    r"(?:not (?:currently )?(?:supported|permitted|allowed|accepted|available|recogni[sz]ed)|unsupported|deprecated"
    r"|(?:does|do) ?n[o']t support|extra (?:inputs|fields) (?:are )?not permitted|cannot find field|unknown field"
    r"|extra_forbidden)"
)
"""Beginnings of what stands behind it."""
_TOGETHER = re.compile(r"\b(?:both|together|only one|at the same time|simultaneously|mutually exclusive)\b")
_CODES = re.compile(r"^(?:un(?:supported|known|recogni[sz]ed)_(?:parameter|value|argument)|extra_forbidden)$")


@dataclass(frozen=True, slots=True)
class Complaint:
    """A sentence of an error response, with the key and the code that the vendor gives beside it."""

    words: str
    param: str = ""
    code: str = ""


def read_refusal(text: str, keys: frozenset[str]) -> KeyRules:
    """Return which keys of a request an error response refuses; empty rules if it is about something else.

    Args:
        text: the response on one line, as OpenAI, Azure, Anthropic, Gemini, OpenRouter, DeepSeek and pydantic word it.
        keys: of the request that may be changed.
    """
    rename, drop, apart = dict[str, str](), dict[str, None](), dict[tuple[str, str], None]()
    candidates = [key for key in (*SPARED, *OTHER_NAMES) if key in keys]
    for complaint in _list_complaints(text):
        words = complaint.words.lower()
        named = [key for key in candidates if re.search(rf"\b{key}\b", words)]
        if len(named) == 2 and _TOGETHER.search(words):
            apart[named[0], named[1]] = None
            continue
        for key in candidates:
            if not (_is_refused(words, key) or (complaint.param == key and _CODES.search(complaint.code))):
                continue
            if key in OTHER_NAMES:
                rename[key] = OTHER_NAMES[key]
            else:
                drop[key] = None
    return KeyRules(rename=rename, drop=tuple(drop), apart=tuple(apart))


def _is_refused(words: str, key: str) -> bool:
    for match in re.finditer(rf"(?<![\w.]){key}\b", words):
        before, after = words[max(0, match.start() - 80) : match.start()], words[match.end() : match.end() + 80]
        if re.match(r"\W{0,3}(?: at '|\[|\.\w)", after):
            continue  # of a part of the request, such as a tool's schema
        if _BEFORE.search(before) or _AFTER.search(after):
            return True
    return False


def _list_complaints(text: str) -> Iterator[Complaint]:
    try:
        yield from _walk(json.loads(text))
    except (ValueError, RecursionError):
        yield Complaint(text[:_SEARCHED].replace("\\", ""))


def _walk(value: object) -> Iterator[Complaint]:
    if isinstance(value, list):
        for part in value:
            yield from _walk(part)
    elif isinstance(value, dict):
        if isinstance(value.get("loc"), list) and value["loc"]:
            yield Complaint(
                f"{value['loc'][-1]}: {value.get('msg', '')}", str(value["loc"][-1]), str(value.get("type"))
            )
            return
        for name, part in value.items():
            if name == "message" and isinstance(part, str):
                yield from _split(part, str(value.get("param") or ""), str(value.get("code") or ""))
            elif name not in _SKIPPED:
                yield from _walk(part)
    elif isinstance(value, str):
        # A gateway quotes the provider's own response.
        yield from _list_complaints(value) if value.lstrip().startswith(("{", "[")) else _split(value)


def _split(words: str, param: str = "", code: str = "") -> Iterator[Complaint]:
    yield Complaint("", param, code)
    for line in words[:_SEARCHED].splitlines() or [""]:
        for sentence in re.split(r"(?<=received\.) (?=Unknown)|(?<=[.!]) (?=[A-Z])", line):
            yield Complaint(sentence)


class _Kept(Section):
    """What is kept of one model at one address."""

    rules: KeyRules = NO_RULES
    takes: tuple[str, ...] = ()
    """Keys that a request was answered with."""
    said: tuple[str, ...] = ()
    """The server's words."""


@dataclass(slots=True, eq=False)
class KnownServer:
    """What one model at one address refuses and takes.

    Attributes:
        name: address and model.
        rules: how keys change beyond the profile.
        takes: keys that a request was answered with; two that may not come together count as one more.
    """

    name: str
    path: Path | None = None
    rules: KeyRules = NO_RULES
    takes: frozenset[str] = frozenset()
    said: tuple[str, ...] = ()
    _trials: WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Event] = field(default_factory=WeakKeyDictionary)

    @asynccontextmanager
    async def trying(self, keys: frozenset[str]) -> AsyncIterator[None]:
        """Wait while another request is the first with a key that is new to the server; be the first if none is."""
        loop = asyncio.get_running_loop()
        while not _name_keys(keys) <= self.takes:
            ahead = self._trials.get(loop)
            if ahead is None:
                self._trials[loop] = own = asyncio.Event()
                try:
                    yield
                finally:
                    del self._trials[loop]
                    own.set()
                return
            try:
                async with asyncio.timeout(TRIAL_SECONDS):
                    await ahead.wait()
            except TimeoutError:
                break
        yield

    def accept(self, keys: frozenset[str]) -> None:
        """Note that a request with these keys was answered."""
        if not _name_keys(keys) <= self.takes:
            self.takes |= _name_keys(keys)
            self._keep()

    def learn(self, refusal: KeyRules, text: str) -> bool:
        """Note what the server refuses; return whether that is new."""
        rename = self.rules.rename | refusal.rename
        if any(rename.get(other) == key for key, other in rename.items()):
            return False  # it takes the key under neither name
        rules = KeyRules(
            rename=rename,
            drop=tuple(dict.fromkeys((*self.rules.drop, *refusal.drop))),
            apart=tuple(dict.fromkeys((*self.rules.apart, *refusal.apart))),
        )
        if rules == self.rules:
            return False
        self.rules, self.said = rules, (*self.said, text[:_QUOTED])
        self._keep()
        return True

    def describe(self) -> str:
        """Return what it refuses in words, empty for nothing."""
        parts = [f"{key} (sent as {other})" for key, other in self.rules.rename.items()]
        parts += [f"{key} (not sent)" for key in self.rules.drop]
        parts += [f"{second} together with {first} (not sent then)" for first, second in self.rules.apart]
        return ", ".join(parts)

    def _keep(self) -> None:
        if self.path is None:
            return
        kept = _Kept(rules=self.rules, takes=tuple(sorted(self.takes)), said=self.said)
        everything = read_vendors(self.path) | {self.name: kept}
        text = json.dumps({name: each.model_dump() for name, each in sorted(everything.items())}, indent=1)
        write_text(self.path, text)


def _name_keys(keys: frozenset[str]) -> frozenset[str]:
    """Return the keys, and a name for the two that some servers do not take together."""
    return keys | ({"temperature+top_p"} if {"temperature", "top_p"} <= keys else frozenset())


@dataclass(frozen=True, slots=True)
class Vendors:
    """The servers of a run; what they refuse is kept in a file, ``vendors.json`` of the workspace, None for nowhere."""

    path: Path | None = None
    _servers: dict[str, KnownServer] = field(default_factory=dict)

    def find(self, url: str, model: str) -> KnownServer:
        """Return what is known of a model at an address; all that ask for it share it.

        Raises:
            Damaged: if it has other bytes than were written.
        """
        name = f"{url.rstrip('/')} {model}"
        if name not in self._servers:
            kept = (read_vendors(self.path) if self.path else {}).get(name, _Kept())
            self._servers[name] = KnownServer(name, self.path, kept.rules, frozenset(kept.takes), kept.said)
        return self._servers[name]


def read_vendors(path: Path) -> dict[str, _Kept]:
    """Return what servers were found to refuse, by server.

    Raises:
        Damaged: if it has other bytes than were written.
    """
    try:
        tables: dict[str, Any] = json.loads(path.read_bytes())
        return {name: _Kept.model_validate(table, strict=False) for name, table in tables.items()}
    except FileNotFoundError:
        return {}
    except (ValueError, AttributeError, ValidationError) as error:
        remedy = "remove it and run again: what servers refuse is learned again"
        raise Damaged(path, "is damaged", remedy) from error
