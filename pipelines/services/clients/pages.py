"""Reading web pages by address: fetched here with every address checked, or by a reader service (Jina's protocol).

A host that is down, a refusal or an unreadable page is a result about that page. When many hosts in a row do not
reply, the network is down and the run stops.
"""

import asyncio
import codecs
import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from importlib.metadata import PackageNotFoundError, version
from itertools import dropwhile, islice
from typing import Any, Final, NoReturn

import orjson

from pipelines.errors import ConfigError, RateLimited, RecordFailed, Unavailable
from pipelines.services.addresses import PORTS, Address, Guard
from pipelines.services.clients.http import (
    Busy,
    HttpClient,
    HttpReply,
    HttpRequest,
    NoConnection,
    NoReply,
    NoSuchHost,
    Silence,
    TooLarge,
)
from pipelines.services.clients.sandbox import ParserPool
from pipelines.services.clients.search import Service, find_entry, read_text
from pipelines.services.protocols import PageNotFound, PageText

CHILDREN: Final = 2
"""Most processes that turn HTML into text."""
PAGE_SECONDS: Final = 45.0
PAGE_MEMORY: Final = 1 << 30
CHARACTERS: Final = 100_000
"""Most characters of a page's text; longer texts are cut at white space and end in an ellipsis."""
TITLE_CHARACTERS: Final = 1000
HTML: Final = frozenset(["text/html", "application/xhtml+xml"])
PLAIN: Final = frozenset(["text/plain", "text/markdown", "text/csv", "text/x-markdown", "application/json"])
ACCEPT: Final = "text/html,application/xhtml+xml,text/plain;q=0.9,text/markdown;q=0.9,application/json;q=0.5"
_WIDER = {"iso8859-1": "cp1252", "ascii": "cp1252", "gb2312": "gb18030", "gbk": "gb18030"}
"""Encodings that browsers replace (Encoding standard)."""
_UNUSED = ("utf-7", "utf-32", "punycode", "idna", "unicode-escape", "raw-unicode-escape")
"""Python's encodings of text that no page comes in."""
_MARKS = ((codecs.BOM_UTF8, "utf-8"), (codecs.BOM_UTF16_LE, "utf-16-le"), (codecs.BOM_UTF16_BE, "utf-16-be"))
_CHARSET = re.compile(r"charset\s*=\s*[\"']?\s*([a-z0-9_:.-]{1,40})", re.IGNORECASE)
_HEAD_BYTES = 1024
_MARKUP = re.compile(rb"\s*<(?:!doctype\s+html|html|head|body)\b", re.IGNORECASE)


def decode_page(body: bytes, headers: Mapping[str, str]) -> str:
    """Return a page's text by its byte order mark, its header, its own markup, or as UTF-8 or Windows-1252."""
    for mark, name in _MARKS:
        if body.startswith(mark):
            return body[len(mark) :].decode(name, "replace")
    named = find_encoding(headers.get("Content-Type", "")) or find_encoding(body[:_HEAD_BYTES].decode("latin-1"))
    if named:
        return body.decode(named, "replace")
    try:
        return body.decode("utf-8")
    except UnicodeDecodeError:
        return body.decode("cp1252", "replace")


def find_encoding(said: str) -> str:
    """Return the encoding named after ``charset=``, empty for none and for one that pages do not come in."""
    match = _CHARSET.search(said)
    try:
        name = codecs.lookup(match[1]).name if match else ""
        "".encode(name or "utf-8")
    except LookupError:
        return ""
    return "" if name.startswith(_UNUSED) else _WIDER.get(name, name)


def is_html(kind: str, body: bytes) -> bool:
    """Return whether a page is HTML: by its media type, or by its beginning if it has none."""
    return kind in HTML or (not kind and bool(_MARKUP.match(body[:_HEAD_BYTES])))


def cut_text(text: str, limit: int) -> str:
    """Return a text cut at white space to ``limit`` characters and an ellipsis."""
    if len(text) <= limit:
        return text
    cut = text[:limit].rsplit(maxsplit=1)[0] if len(text[:limit].split(maxsplit=1)) > 1 else text[:limit]
    return f"{cut} …"


def read_plain(text: str, limit: int = CHARACTERS) -> str:
    """Return plain text without control characters, cut by :func:`cut_text`."""
    shown = dropwhile(str.isspace, (char for char in text.rstrip() if char.isprintable() or char in "\n\t"))
    return cut_text("".join(islice(shown, limit + 1)), limit).rstrip()


def read_title(title: str) -> str:
    """Return a page's title on one line, cleaned and cut as its text is."""
    return read_plain(" ".join(title.split()), TITLE_CHARACTERS)


VERSION: Final = 1
REDIRECTS: Final = 5
LONGEST_HOLD: Final = 300.0
"""Seconds that pages wait at a host's wish. Failures are recorded, so giving up sooner would lose pages for good."""
MOST_SILENT: Final = 8
"""Hosts in a row without a reply before the network counts as down."""


def name_ports(guard: Guard) -> str:
    """Return the part of an identity that says which ports are open; empty for the usual ones."""
    return "" if guard.ports == frozenset(PORTS) else ":ports " + " ".join(map(str, sorted(guard.ports)))


@dataclass(frozen=True, slots=True)
class DirectReader:
    """Fetches pages itself.

    Attributes:
        contact: mail address or page in the User-Agent, empty for none.
        guard: which addresses may be connected to.
        parsers: processes that turn HTML into text.
        silent: hosts without a reply since the last reply.

    Raises:
        ConfigError: if trafilatura is not installed.
    """

    contact: str = ""
    client: HttpClient = field(default_factory=HttpClient, repr=False)
    guard: Guard = field(default_factory=Guard, repr=False)
    parsers: ParserPool[tuple[str, str]] = field(
        default_factory=lambda: ParserPool(extract_text, PAGE_SECONDS, PAGE_MEMORY, CHILDREN), repr=False, compare=False
    )
    silent: set[str] = field(init=False, default_factory=set, repr=False, compare=False)
    _converter: str = field(init=False, default="", repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "client", replace(self.client, longest=LONGEST_HOLD, guard=self.guard))
        object.__setattr__(self, "_converter", name_converter())

    @property
    def identity(self) -> str:
        """Version, converter and bounds; the ports where they are not the usual ones."""
        bounds = f"{self.client.reply_bytes}:{CHARACTERS}:{REDIRECTS}{name_ports(self.guard)}"
        return f"direct-reader@{VERSION}:{self._converter}:{bounds}"

    async def read_page(self, url: str) -> PageText:
        """Return a page under the address at which it was found.

        Raises:
            ForbiddenAddress: if the address, or one that it redirects to, is not public.
            PageNotFound: if the page cannot be read; the message says why.
            Unavailable: if this machine's network is down.
        """
        try:
            address, reply = await self._follow(self.guard.read(url))
            title, text = await self._read(address, reply)
        except (RateLimited, RecordFailed) as error:
            raise PageNotFound(f"{url}: {error}") from error
        if not text:
            raise PageNotFound(f"{url}: a page without text")
        return PageText(address.url, title, text)

    async def _follow(self, address: Address) -> tuple[Address, HttpReply]:
        for _ in range(REDIRECTS + 1):
            reply = await self._fetch(address)
            if not reply.location:
                return address, reply
            address = self.guard.read(reply.location, address.url)
        raise PageNotFound(f"{address.url}: more than {REDIRECTS} redirects")

    async def _fetch(self, address: Address) -> HttpReply:
        agent = f"synth ({self.contact})" if self.contact else "synth"
        request = HttpRequest(address.url, headers={"User-Agent": agent, "Accept": ACCEPT})

        async def attempt() -> HttpReply:
            reply = await self.client.send(request)
            self.silent.clear()
            if reply.is_busy:
                raise Busy(f"HTTP {reply.status}", reply.wait)
            if reply.status >= 500:
                raise ServerError(f"HTTP {reply.status}")
            return reply

        try:
            reply = await self.client.retry(address.url, attempt)
        except NoReply as error:
            self._blame(address, error)
        if reply.status >= 400:
            raise PageNotFound(f"{address.url}: HTTP {reply.status}")
        return reply

    def _blame(self, address: Address, error: NoReply) -> NoReturn:
        """Raise the error of a page without a reply: the page's, or after many silent hosts the network's."""
        if isinstance(error, (NoConnection, Silence)) and not isinstance(error, NoSuchHost):
            self.silent.add(address.host)
            if len(self.silent) > MOST_SILENT:
                row = f"{len(self.silent)} hosts in a row gave no reply"
                raise Unavailable(f"{address.url}: {error}; {row}; check the network and run again later") from None
        raise PageNotFound(f"{address.url}: {error}") from error

    async def _read(self, address: Address, reply: HttpReply) -> tuple[str, str]:
        if reply.status != 200:
            raise PageNotFound(f"{address.url}: HTTP {reply.status}")
        if is_html(reply.kind, reply.body):
            return await self.parsers.parse(decode_page(reply.body, reply.headers))
        if reply.kind not in PLAIN:
            raise PageNotFound(f"{address.url}: {reply.kind or 'no content type'}; only pages of text can be read")
        return "", await asyncio.to_thread(read_plain, decode_page(reply.body, reply.headers))


def name_converter(package: str = "trafilatura") -> str:
    """Return the name and version of the package that turns HTML into text.

    Raises:
        ConfigError: if it is not installed.
    """
    try:
        return f"{package}-{version(package)}"
    except PackageNotFoundError as error:
        raise ConfigError(f"live.reader direct: {package} is not installed: pip install 'synth[live]'") from error


_ABOUT_THE_PAGE = frozenset([400, 404, 406, 410, 413, 415, 422, 451])
"""Statuses of the reader service that concern this page alone."""
_TARGET_FAILED = re.compile(r"target url returned error (?P<status>[45][0-9]{2})", re.IGNORECASE)


class ServerError(NoReply):
    """A reply with a status of 500 or more."""


@dataclass(frozen=True, slots=True)
class JinaReader(Service):
    """Reads pages by a reader service: ``GET <url>/<address of the page>`` returns JSON; only tests set the guard."""

    setting: str = "live.urls.reader"
    guard: Guard = field(default_factory=Guard, repr=False)

    @property
    def identity(self) -> str:
        """Protocol, version, address and bounds."""
        return f"jina-reader@{VERSION}:{self.url}:{self.client.reply_bytes}:{CHARACTERS}"

    async def read_page(self, url: str) -> PageText:
        """Return a page under the address at which it was found.

        Raises:
            ForbiddenAddress: if the address, or the one at which the page was found, is not public.
            PageNotFound: if the service cannot read the page; the message says why.
            RateLimited, Unavailable, ConfigError: as :meth:`Service.ask`.
        """
        address = await self._check(url)
        try:
            reply = await self._request(address)
        except RecordFailed as error:
            raise PageNotFound(f"{url}: {error}") from error
        found = await self._check(read_text(reply, "url") or address.url)
        if failed := _TARGET_FAILED.search(read_text(reply, "warning")):
            raise PageNotFound(f"{url}: HTTP {failed['status']}")
        content = reply.get("content")
        text = read_plain(content) if isinstance(content, str) else ""
        if not text:
            raise PageNotFound(f"{url}: a page without text")
        return PageText(found.url, read_title(read_text(reply, "title")), text)

    async def _check(self, url: str) -> Address:
        """Return a public address; a name that cannot be resolved here leads nowhere from here, so it passes."""
        address = self.guard.read(url)
        with suppress(OSError):
            await self.guard.resolve(address.host, address.port)
        return address

    async def _request(self, address: Address) -> Mapping[str, Any]:
        key = self.read_key()
        # The service must wait less for a page than this client waits for the service.
        patience = str(max(1, int(self.client.timeout / 2)))
        headers = {"Accept": "application/json", "X-Retain-Images": "none", "X-Timeout": patience}
        if key:
            headers["Authorization"] = f"Bearer {key}"
        request = HttpRequest(f"{self.url.rstrip('/')}/{address.url}", headers=headers)

        async def attempt() -> Mapping[str, Any]:
            return self._read(address, await self.client.send(request))

        try:
            return await self.client.retry(self.url, attempt)
        except (ServerError, TooLarge) as error:
            raise PageNotFound(f"{address.url}: {error}") from None
        except NoReply as error:
            raise self.give_up(error) from None

    def _read(self, address: Address, reply: HttpReply) -> Mapping[str, Any]:
        if reply.status == 200:
            read = self.read_json(reply)
            if data := find_entry(read, "data"):
                return data
            raise NoReply(f"unexpected reply: {sorted(read)[:8]}; expected data")
        if self._speaks(reply):
            said = self.quote(reply)[:200]
            if reply.status in _ABOUT_THE_PAGE:
                raise PageNotFound(f"{address.url}: {said}")
            if reply.status >= 500 and reply.status != 503:
                raise ServerError(f"HTTP {reply.status}: {said}")
        raise self.explain(reply)

    def _speaks(self, reply: HttpReply) -> bool:
        """Return whether a refusal is the reader's own (JSON about the page) and not a proxy's."""
        try:
            said = orjson.loads(reply.body)
        except orjson.JSONDecodeError:
            return False
        return isinstance(said, dict) and ("code" in said or "name" in said) and not self.is_out_of_money(reply)


def extract_text(html: str) -> tuple[str, str]:
    """Return a document's title and text, cleaned and cut to length.

    The text is prose and tables without menus and comments, or all text if there is no prose.
    """
    # Imported in the child alone.
    from trafilatura import bare_extraction, html2txt

    found = bare_extraction(html, with_metadata=True, include_comments=False, include_tables=True, favor_recall=True)
    title = getattr(found, "title", None) or ""
    text = getattr(found, "text", None) or html2txt(html) or ""
    return read_title(str(title)), read_plain(str(text))
