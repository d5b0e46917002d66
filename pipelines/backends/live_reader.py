"""Reading pages by address, fetched here with every address checked.

What one site does is an answer about that page: a host that is down, a refusal, or a page that cannot be read is no
failure of a service of ours. But when no host answers, one after the other, it is the network that is away: of one
alone nobody knows, for a name whose servers fail, or a host that this machine has no route to, looks just the same.
"""

import asyncio
import threading
from dataclasses import dataclass, field, replace
from importlib.metadata import PackageNotFoundError, version
from typing import Final, NoReturn

from pipelines.addresses import Address, Guard, read_address
from pipelines.backends.live_http import (
    Busy,
    LiveClient,
    LiveManners,
    LiveReply,
    LiveRequest,
    NoSuchHost,
    open_client,
)
from pipelines.backends.openai_errors import NobodyThere, NoReply, Silence
from pipelines.backends.page_children import PageChildren
from pipelines.backends.page_text import ACCEPT, CHARACTERS, PLAIN, decode_page, is_html, read_plain
from pipelines.backends.protocols import PageNotFound, PageText
from pipelines.errors import ConfigError, RateLimited, RecordFailed, Unavailable

VERSION: Final = 1
REDIRECTS: Final = 5
LONGEST_HOLD: Final = 300.0
"""Seconds that pages wait for a host that asks to be left alone. They would else not be there for good: what is read of
them is recorded. A host that asks for longer does not want us."""
MOST_SILENT: Final = 8
"""Hosts in a row that may give no reply; more are the network's failure."""


@dataclass(slots=True)
class Silences:
    """Hosts that gave no reply since one last did."""

    hosts: set[str] = field(default_factory=set)
    lock: threading.Lock = field(default_factory=threading.Lock, repr=False)

    def clear(self) -> None:
        """Note a reply."""
        with self.lock:
            self.hosts.clear()

    def add(self, host: str) -> int:
        """Note a host, and return how many there are."""
        with self.lock:
            self.hosts.add(host)
            return len(self.hosts)


@dataclass(frozen=True, slots=True)
class DirectReader:
    """Fetches pages itself.

    Attributes:
        contact: mail address or page in the User-Agent, empty for none.
        manners: towards each host.
        guard: who may be connected to; given by tests alone.
        children: turn HTML into text.
        client: sends requests.
        silences: hosts without a reply.

    Raises:
        ConfigError: if trafilatura is not installed.
    """

    contact: str = ""
    manners: LiveManners = field(default_factory=LiveManners)
    guard: Guard = field(default_factory=Guard, repr=False)
    children: PageChildren = field(default_factory=PageChildren, repr=False, compare=False)
    client: LiveClient = field(init=False, repr=False, compare=False)
    silences: Silences = field(init=False, default_factory=Silences, repr=False, compare=False)
    _converter: str = field(init=False, default="", repr=False, compare=False)

    def __post_init__(self) -> None:
        manners = replace(self.manners, longest=LONGEST_HOLD)
        object.__setattr__(self, "client", open_client(manners, self.guard))
        object.__setattr__(self, "_converter", name_converter())

    @property
    def identity(self) -> str:
        """Version, converter and bounds."""
        bounds = f"{self.manners.reply_bytes}:{CHARACTERS}:{REDIRECTS}"
        return f"direct-reader@{VERSION}:{self._converter}:{bounds}"

    async def read_page(self, url: str) -> PageText:
        """Return a page under the address at which it was found.

        Raises:
            ForbiddenAddress: if the address, or one that it redirects to, is not public.
            PageNotFound: if the page cannot be had, or is no text; the message says which.
            Unavailable: if this machine's network is away.
        """
        try:
            address, reply = await self._follow(read_address(url))
            title, text = await self._read(address, reply)
        except (RateLimited, RecordFailed) as error:
            raise PageNotFound(f"{url}: {error}") from error
        if not text:
            raise PageNotFound(f"{url}: a page without text")
        return PageText(address.url, title, text)

    async def _follow(self, address: Address) -> tuple[Address, LiveReply]:
        for _ in range(REDIRECTS + 1):
            reply = await self._fetch(address)
            if not reply.location:
                return address, reply
            address = read_address(reply.location, address.url)
        raise PageNotFound(f"{address.url}: more than {REDIRECTS} redirects")

    async def _fetch(self, address: Address) -> LiveReply:
        agent = f"synth ({self.contact})" if self.contact else "synth"
        request = LiveRequest(address.url, headers={"User-Agent": agent, "Accept": ACCEPT})

        async def attempt() -> LiveReply:
            reply = await self.client.send(request)
            self.silences.clear()
            if reply.is_busy:
                raise Busy(f"HTTP {reply.status}", reply.wait)
            if reply.status >= 500:
                raise _Failing(f"HTTP {reply.status}")
            return reply

        try:
            reply = await self.client.try_often(address.url, attempt)
        except NoReply as error:
            self._blame(address, error)
        if reply.status >= 400:
            raise PageNotFound(f"{address.url}: HTTP {reply.status}")
        return reply

    def _blame(self, address: Address, error: NoReply) -> NoReturn:
        """Say whose failure it is that no reply came."""
        is_silent = isinstance(error, (NobodyThere, Silence)) and not isinstance(error, NoSuchHost)
        silent = self.silences.add(address.host) if is_silent else 0
        if silent > MOST_SILENT:
            row = f"nor did {silent - 1} other hosts in a row"
            raise Unavailable(f"{address.url}: {error}; {row}; is there a network? Run again later") from None
        raise PageNotFound(f"{address.url}: {error}") from error

    async def _read(self, address: Address, reply: LiveReply) -> tuple[str, str]:
        if reply.status != 200:
            raise PageNotFound(f"{address.url}: HTTP {reply.status} in place of a page")
        if is_html(reply.kind, reply.body):
            return await self.children.convert(decode_page(reply.body, reply.headers))
        if reply.kind not in PLAIN:
            raise PageNotFound(f"{address.url}: {reply.kind or 'something of no type'}; only pages of text can be read")
        return "", await asyncio.to_thread(read_plain, decode_page(reply.body, reply.headers))


class _Failing(NoReply):
    """The host answers, and what it answers is that it failed."""


def name_converter(package: str = "trafilatura") -> str:
    """Return what turns HTML into text, with its version.

    Args:
        package: its name, as it is installed.

    Raises:
        ConfigError: if it is not installed.
    """
    try:
        return f"{package}-{version(package)}"
    except PackageNotFoundError as error:
        raise ConfigError(f"live.reader direct: {package} is not installed: pip install 'synth[live]'") from error
