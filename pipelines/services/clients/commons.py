"""Wikimedia Commons or another MediaWiki: what it says of files, and the files themselves.

Requests keep to the service's rules. The API gets one at a time with a pause after each, at most 50 titles in one and
``maxlag``; pictures come over two connections; all carry a User-Agent with a contact and wait as long as they are asked
to. Thumbnails are fetched in the standard widths only. A thumbnail's address follows from the original's; an original
that is no wider is fetched as it is. Only addresses of the service are requested, and each reply and file is recorded.
The files that many records look up at once are joined into few requests to the API.
"""

import asyncio
import hashlib
import re
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from html.parser import HTMLParser
from typing import Any
from urllib.parse import unquote, urlencode, urlsplit

import orjson
from yarl import URL

from pipelines.errors import ConfigError, CorruptInput, RateLimited, RecordFailed, Unavailable
from pipelines.names import normalise_file
from pipelines.pictures import PictureSource, PictureStore, find_extension
from pipelines.services.clients.http import HttpClient, HttpReply, HttpRequest, NoReply, RateLimiter, TooLarge
from pipelines.services.clients.recorded import Recorded
from pipelines.services.clients.sparql import name_agent
from pipelines.services.image_metadata import (
    MOST_FILES,
    ImageFacts,
    ImageMetadata,
    RemoteFile,
)
from pipelines.services.metering import count_usage
from schemas.manifest import Usage

LOOPBACK = ("127.0.0.1", "localhost", "::1")
_UNWANTED = (b"user-agent", b"user agent", b"robot policy", b"banned")


def make_client(
    limiter: RateLimiter, seconds: float = 60.0, reply_bytes: int = 32 << 20, tries: int = 3, backoff: float = 5.0
) -> HttpClient:
    """Return a client with the limiter that all clients of a service share."""
    return HttpClient(tries=tries, timeout=seconds, reply_bytes=reply_bytes, backoff=backoff, shared=limiter)


@dataclass(frozen=True, slots=True)
class CommonsClient:
    """The base of the clients of Wikimedia Commons or another MediaWiki.

    Raises:
        ConfigError: if no contact is named, or the address of the API is not https (unless on this machine).
    """

    url: str
    """The address of the API, empty for none."""
    contact: str
    client: HttpClient = field(repr=False, compare=False)

    def __post_init__(self) -> None:
        if not self.contact:
            raise ConfigError("contact is empty; Commons wants one: --set contact=you@example.org")
        address = urlsplit(self.url)
        if self.url and address.scheme != "https" and address.hostname not in LOOPBACK:
            raise ConfigError(f"commons.api {self.url!r} is not an API address; expected https://.../api.php")

    @property
    def agent(self) -> str:
        """The User-Agent."""
        return name_agent(self.contact)


def drop_tracking(url: str) -> str:
    """Return an address without ``utm_`` parameters, if it has no others."""
    bare, _, query = url.partition("?")
    return bare if query and all(part.startswith("utm_") for part in query.split("&")) else url


def check_refusal(place: str, reply: HttpReply) -> None:
    """Raise for a reply that refuses the client, asks for fewer requests, or is the service's own failure.

    Raises:
        Unavailable: the service refuses the client.
        RateLimited: 429, or 503 with Retry-After.
        NoReply: any other 5xx.
    """
    status = reply.status
    if status == 403 or (status == 429 and any(word in reply.body.lower() for word in _UNWANTED)):
        raise Unavailable(
            f"{place} refuses this client (HTTP {status}): {reply.body[:200]!r}; see its policy before running again"
        )
    if status == 429 or (status == 503 and reply.wait):
        raise RateLimited(f"{place}: HTTP {status}", reply.wait)
    if status >= 500:
        raise NoReply(f"HTTP {status}")


VERSION = 2
_IMAGEINFO = {
    "action": "query",
    "format": "json",
    "formatversion": "2",
    "maxlag": "5",
    "prop": "imageinfo",
    "iiprop": "url|size|mime|sha1|extmetadata",
}
_MAX_TITLE_BYTES = 240
_NO_TITLE = frozenset("#<>[]{}|\x7f")
_MAX_RENAMES = 5
_SLOW_DOWN = ("maxlag", "ratelimited")
_THEIR_FAULT = ("readonly", "internal_api_error")
_MALFORMED = (KeyError, TypeError, ValueError, AttributeError, IndexError)

Page = Mapping[str, Any]
"""A page in a reply of the API (``formatversion=2``)."""


class CommonsApi(CommonsClient):
    """The API of a MediaWiki."""

    __slots__ = ()

    @property
    def identity(self) -> str:
        """Address, and 0 for no thumbnails."""
        return f"commons-api@{VERSION}:{self.url}:0"

    async def describe_images(self, files: Sequence[str]) -> dict[str, ImageFacts | None]:
        """Return what the service knows of each file, as :class:`ImageMetadata` says."""
        titles = {file: make_title(file) for file in files}
        wanted = list(dict.fromkeys(title for title in titles.values() if title))
        facts: dict[str, ImageFacts | None] = {}
        for start in range(0, len(wanted), MOST_FILES):
            batch = wanted[start : start + MOST_FILES]
            pages = await self.list_pages({"redirects": "1", "titles": "|".join(batch)}, batch)
            facts |= {title: self.read(page) for title, page in pages.items()}
        return {file: facts[title] if title else None for file, title in titles.items()}

    async def list_pages(self, form: Mapping[str, str], titles: Sequence[str]) -> dict[str, Page]:
        """Return pages with what is known of their files, over continuations.

        Args:
            form: parameters that select the files.
            titles: that must be in the reply.

        Raises:
            Unavailable: if files are left out; others as :meth:`ask`.
        """
        known: dict[str, Page] = {}
        renamed: dict[str, str] = {}
        further: dict[str, str] = {}
        missing: list[str] = []
        while True:
            reply = await self.ask({**_IMAGEINFO, **form, **further})
            try:
                further = merge_reply(reply, known, renamed)
                found = {title: known.get(_follow(title, renamed)) for title in titles}
                is_last = not any(key.startswith("ii") for key in further)
                before, missing = missing, [title for title, page in found.items() if not _is_answered(page, is_last)]
            except _MALFORMED as error:
                raise self.refuse(error) from error
            # Each continuation brings at least one file.
            if is_last or not missing or missing == before:
                break
        if missing:
            raise Unavailable(f"{self.url} left {len(missing)} of {len(found)} files out, first {missing[0]!r}")
        return {title: page for title, page in found.items() if page is not None}

    def read(self, page: Page) -> ImageFacts | None:
        """Return a page's facts, None if it has no file."""
        try:
            # The first is the current version.
            images = page.get("imageinfo")
            return _read_facts(images[0]) if images else None
        except _MALFORMED as error:
            raise self.refuse(error) from error

    def refuse(self, error: Exception) -> Unavailable:
        """Return the error of a reply that cannot be read."""
        return Unavailable(f"{self.url}: unexpected reply ({error!r}); expected imageinfo")

    async def ask(self, form: Mapping[str, str]) -> Mapping[str, Any]:
        """Return a whole reply.

        Raises:
            Unavailable: if there was none after all tries, or the service refuses the client.
            RateLimited: if the service asks for fewer requests.
            ConfigError: if the address is no API, or the API rejects the request.
        """
        headers = {"User-Agent": self.agent, "Accept": "application/json"}
        headers |= {"Content-Type": "application/x-www-form-urlencoded"}
        request = HttpRequest(self.url, "POST", headers, body=urlencode(form).encode())

        async def attempt() -> Mapping[str, Any]:
            return _read_reply(self.url, await self.client.send(request))

        try:
            return await self.client.retry(self.url, attempt)
        except NoReply as error:
            raise Unavailable(f"{self.url}: {error}, {self.client.tries} times; run again later") from error


def make_title(file: str) -> str | None:
    """Return a file's title, None for a name that no file can have."""
    name = normalise_file(unicodedata.normalize("NFC", file))
    if not name or len(name.encode("utf-8", "replace")) > _MAX_TITLE_BYTES:
        return None
    return None if any(char in _NO_TITLE or not char.isprintable() for char in name) else f"File:{name}"


def _read_reply(url: str, reply: HttpReply) -> Mapping[str, Any]:
    check_refusal(url, reply)
    if 300 <= reply.status < 400:
        raise ConfigError(f"{url} has moved to {reply.headers.get('location', '?')[:200]!r}; set that address")
    if reply.status != 200:
        raise ConfigError(f"{url}: HTTP {reply.status}; expected the API of a MediaWiki, as https://.../w/api.php")
    try:
        read = orjson.loads(reply.body)
    except orjson.JSONDecodeError as error:
        raise NoReply(f"expected JSON, got {reply.body[:60]!r}") from error
    if not isinstance(read, dict) or not isinstance(read.get("error", read.get("query")), dict):
        raise NoReply(f"expected a result, got {reply.body[:60]!r}")
    if "error" not in read:
        return read
    code = str(read["error"].get("code"))
    if code in _SLOW_DOWN:
        raise RateLimited(f"{url}: {code}", reply.wait)
    if code.startswith(_THEIR_FAULT):
        raise NoReply(f"error {code}")
    raise ConfigError(f"{url} rejects the request: {str(read['error'])[:200]}; expected the API of a MediaWiki")


def merge_reply(reply: Mapping[str, Any], pages: dict[str, Page], renamed: dict[str, str]) -> dict[str, str]:
    """Add a reply's pages and renamings to the earlier ones and return the parameters of its continuation."""
    query = reply.get("query", {})
    for change in (*query.get("normalized", ()), *query.get("redirects", ())):
        renamed[change["from"]] = change["to"]
    for page in query.get("pages", ()):
        # A continuation repeats every page, most without their images.
        if not pages.get(page["title"], {}).get("imageinfo"):
            pages[page["title"]] = page
    return {str(key): str(value) for key, value in reply.get("continue", {}).items()}


def _follow(title: str, renamed: Mapping[str, str]) -> str:
    for _ in range(_MAX_RENAMES):
        if title not in renamed:
            return title
        title = renamed[title]
    return title


def _is_answered(page: Page | None, is_last: bool) -> bool:
    """Return whether it is known what a page shows; before the last reply, images may still come."""
    if page is None:
        return False
    if page.get("imageinfo") or page.get("invalid") or (page.get("missing") and not page.get("known")):
        return True
    return is_last and not page.get("imagerepository")


def _read_facts(image: Mapping[str, Any]) -> ImageFacts | None:
    if image.get("filehidden") or image.get("filemissing"):
        return None
    said = image.get("extmetadata") or {}
    licence = _read_field(said, "LicenseShortName") or _read_field(said, "License")
    if _read_field(said, "NonFree").lower() in ("true", "1", "yes"):
        licence = f"Non-free: {licence}"
    if _read_field(said, "DeletionReason"):
        licence = f"Up for deletion: {licence}"  # on no list of licences, so it counts as unknown
    licence_url = _read_field(said, "LicenseUrl")
    return ImageFacts(
        url=drop_tracking(str(image["url"])),
        width=_read_count(image["width"]),
        height=_read_count(image["height"]),
        mime=str(image["mime"]),
        bytes=_read_count(image["size"]),
        sha1=str(image.get("sha1", "")),
        licence=licence,
        licence_url=licence_url if licence_url.startswith(("https://", "http://")) else "",
        author=_read_field(said, "Artist") or _read_field(said, "Attribution"),
        source_url=str(image.get("descriptionurl", "")),
    )


def _read_count(value: object) -> int:
    if not isinstance(value, int) or not 0 <= value < 1 << 50:
        raise ValueError(f"size {value!r}")
    return value


def _read_field(said: Mapping[str, Any], name: str) -> str:
    """Return a field's HTML as plain text."""
    value = said.get(name, {}).get("value", "")
    return strip_html(value) if isinstance(value, str) else str(value)


_MAX_HTML = 8_192
_MAX_TAGS = 500
_MAX_TEXT = 1_000
_SILENT_TAGS = frozenset(["style", "script", "template", "head", "title"])
_VOID_TAGS = frozenset(["area", "br", "col", "hr", "img", "input", "link", "meta", "source", "track", "wbr"])
_BREAKING_TAGS = frozenset(["br", "p", "div", "li", "tr", "td", "th", "dd", "dt", "table", "ul", "ol"])


class _TextReader(HTMLParser):
    """Collects the text that a browser would show; inside a hidden element only the depth is counted."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.parts: list[str] = []
        self._hidden = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Enter an element."""
        self.parts.append(" " if tag in _BREAKING_TAGS else "")
        style = "".join((dict(attrs).get("style") or "").lower().split())
        if tag not in _VOID_TAGS and (self._hidden or tag in _SILENT_TAGS or "display:none" in style):
            self._hidden += 1

    def handle_endtag(self, tag: str) -> None:
        """Leave an element."""
        self.parts.append(" " if tag in _BREAKING_TAGS else "")
        if self._hidden and tag not in _VOID_TAGS:
            self._hidden -= 1

    def handle_data(self, data: str) -> None:
        """Keep text that is shown."""
        self.parts.append("" if self._hidden else data)


def strip_html(source: str) -> str:
    """Return the text that HTML shows, on one line: no tags, styles, hidden elements or control characters.

    At most 8,192 characters and 500 tags are read and 1,000 characters returned: an author's line, not a page.
    """
    reader = _TextReader()
    try:
        # The parser takes quadratic time for tags that are never closed.
        reader.feed("<".join(source[:_MAX_HTML].split("<")[:_MAX_TAGS]))
        reader.close()
    except AssertionError:  # a marked section of no known kind: what came before it stands
        reader.parts.append(" ")
    text = "".join(char if char.isprintable() or char.isspace() else "" for char in "".join(reader.parts))
    return " ".join(text.split())[:_MAX_TEXT].rstrip()


COMMONS_FILES_VERSION = 1
WIDTH = 1280
"""Width of what is fetched, pixels, one of Commons' sizes; a smaller original is fetched as it is."""
WIKIMEDIA = "wikimedia.org"
_REDIRECTS = 3
_HASHED = re.compile(r"(?P<root>.*)/(?P<place>[0-9a-f]/[0-9a-f]{2})/(?P<name>[^/]+)")
_LONGEST_NAME = 160
"""Bytes; the thumbnail of a file with a longer name is called ``thumbnail`` (Wikimedia's ``abbrvThreshold``)."""
_PAGE = re.compile(rb"\s*<(?:!doctype\s+html|html)", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class CommonsFiles(CommonsClient):
    """The pictures of a MediaWiki; the client's ``reply_bytes`` bounds a file."""

    @property
    def identity(self) -> str:
        """Hosts and width."""
        return f"commons-files@{COMMONS_FILES_VERSION}:{','.join(self.hosts)}:{WIDTH}"

    @property
    def hosts(self) -> tuple[str, ...]:
        """The hosts of the pictures, each with those under it: all of Wikimedia's, or the API's own."""
        host = urlsplit(self.url).hostname or WIKIMEDIA
        return (WIKIMEDIA,) if host.endswith(f".{WIKIMEDIA}") else (host,)

    async def fetch_file(self, file: RemoteFile) -> bytes:
        """Return a picture's bytes, as :class:`FileFetch` says; the original if its thumbnail never comes."""
        original, error = drop_tracking(file.url), NoReply("no reply")
        for address in dict.fromkeys((choose_address(file, WIDTH), original)):
            try:
                return await self._fetch(address, file.sha1 if address == original else "")
            except TooLarge as large:
                raise RecordFailed("picture-too-large", f"{address}: {large}") from large
            except NoReply as none:
                error = none
        raise Unavailable(f"{original}: {error}, {self.client.tries} times; run again later")

    async def _fetch(self, address: str, sha1: str) -> bytes:
        """Return the picture at an address, which has a sha1 unless that is empty."""

        async def attempt() -> bytes:
            data = await self._follow(address)
            _check_content(address, data, sha1)
            return data

        return await self.client.retry(address, attempt)

    async def _follow(self, address: str) -> bytes:
        """Return the file at an address after redirects inside the service."""
        url = _read_address(address)
        for _ in range(_REDIRECTS + 1):
            self._check_address(url)
            headers = {"User-Agent": self.agent, "Accept": "image/*", "Accept-Encoding": "identity"}
            reply = await self.client.send(HttpRequest(str(url), headers=headers))
            if reply.location:
                url = _read_address(reply.location, url)
            elif reply.status == 200:
                return reply.body
            else:
                check_refusal(str(url), reply)
                if reply.status in (400, 404, 410):
                    raise RecordFailed("picture-missing", f"{url}: HTTP {reply.status}")
                raise NoReply(f"HTTP {reply.status}")
        raise RecordFailed("picture-address", f"{address}: more than {_REDIRECTS} redirects")

    def _check_address(self, url: URL) -> None:
        """Refuse what is not https at a host of the service."""
        host = url.host or ""
        is_ours = any(host == own or (host.endswith(f".{own}") and own not in LOOPBACK) for own in self.hosts)
        is_safe = url.scheme == "https" and url.explicit_port is None
        has_user = url.user is not None or url.password is not None
        if not is_ours or has_user or not (is_safe or (url.scheme == "http" and host in LOOPBACK)):
            allowed = ", ".join(self.hosts)
            raise RecordFailed("picture-address", f"{str(url)[:200]!r}; allowed are https addresses under {allowed}")


def choose_address(file: RemoteFile, width: int) -> str:
    """Return the address of a thumbnail, or of the original if that is no wider or its address has another form."""
    original = drop_tracking(file.url)
    match = _HASHED.fullmatch(original)
    if file.width <= width or match is None:
        return original
    name = match["name"]
    shown = name
    if len(unquote(name).encode("utf-8", "replace")) > _LONGEST_NAME:
        shown = f"thumbnail.{name.rpartition('.')[2]}"
    ending = ".png" if name.lower().endswith(".webp") else ""
    return f"{match['root']}/thumb/{match['place']}/{name}/{width}px-{shown}{ending}"


def _read_address(address: str, base: URL | None = None) -> URL:
    """Return an address as it will be requested, so that the checked and the requested address are the same."""
    try:
        if not address.isprintable() or "\\" in address:
            raise ValueError("a control character or a backslash")
        return URL(address) if base is None else base.join(URL(address))
    except ValueError as error:
        raise RecordFailed("picture-address", f"{address[:200]!r}: {error}") from error


def _check_content(address: str, data: bytes, sha1: str) -> None:
    if not find_extension(data):
        if _PAGE.match(data[:200]):
            raise NoReply("a page in place of a picture")
        detail = f"{address}: starts with {data[:8]!r}; allowed are JPEG, PNG, GIF and WebP"
        raise RecordFailed("picture-format", detail)
    found = hashlib.sha1(data, usedforsecurity=False).hexdigest() if sha1 else ""
    if found != sha1:
        raise RecordFailed("picture-changed", f"{address}: sha1 is {found}, it was described with {sha1}")


class RecordedCommons(Recorded):
    """A service that knows pictures, whose reply about each file is recorded, also an empty one."""

    __slots__ = ()

    async def describe_images(self, files: Sequence[str]) -> dict[str, ImageFacts | None]:
        """Return recorded facts, and request those of files that have none; a file is a call."""

        async def describe(file: str) -> ImageFacts | None:
            async def ask() -> object:
                facts = (await self.service.describe_images([file]))[file]
                return None if facts is None else asdict(facts)

            found = await self.recall(["describe_image", file], ask)
            return None if found is None else ImageFacts(**found)

        wanted = list(dict.fromkeys(files))
        return dict(zip(wanted, await asyncio.gather(*map(describe, wanted)), strict=True))


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedFileFetch(Recorded):
    """Pictures that are fetched once; the recording keeps the sha256 or the error, the image store the bytes."""

    pictures: PictureStore

    async def fetch_file(self, file: RemoteFile) -> bytes:
        """Return the picture's bytes from the image store, or fetch them.

        Raises:
            RecordFailed: as the wrapped service, now or when it was recorded, and ``picture-changed`` if the picture
                is gone from the image store and the service has another one by now.
        """

        async def ask() -> object:
            try:
                return {"sha256": await self._keep(file, await self.service.fetch_file(file))}
            except RecordFailed as error:
                return {"error": error.error, "detail": error.detail}

        said = await self.recall(["fetch_file", file.file, file.url], ask)
        if "error" in said:
            raise RecordFailed(said["error"], said["detail"])
        try:
            return (await asyncio.to_thread(self.pictures.load, said["sha256"]))[0]
        except CorruptInput:
            return await self._fetch_again(file, said["sha256"])

    async def _fetch_again(self, file: RemoteFile, sha256: str) -> bytes:
        """Fetch a recorded picture that is missing from the image store; it must be the same."""
        data: bytes = await self.service.fetch_file(file)
        count_usage(Usage(calls=1))
        found = hashlib.sha256(data).hexdigest()
        if found != sha256:
            detail = f"{file.file}: sha256 was {sha256}, is {found} by now; take it with --fresh-replies commons"
            raise RecordFailed("picture-changed", detail)
        await self._keep(file, data)
        return data

    async def _keep(self, file: RemoteFile, data: bytes) -> str:
        credit = PictureSource(file.file, "", "", "", file.url)
        return (await asyncio.to_thread(self.pictures.add_bytes, data, credit)).sha256


GATHER = 0.05
"""Seconds that the first file of a request waits for the files of other records."""


@dataclass(frozen=True, slots=True)
class JoinedMetadata:
    """A service that knows pictures, asked of fifty files of any records in one request."""

    service: ImageMetadata
    _waiting: dict[asyncio.AbstractEventLoop, dict[str, asyncio.Future[ImageFacts | None]]] = field(
        default_factory=dict, repr=False, compare=False
    )
    """By event loop: the files that are to be asked about next, with the reply that is awaited for each."""
    _tasks: set[asyncio.Task[None]] = field(default_factory=set, repr=False, compare=False)

    @property
    def identity(self) -> str:
        """The service's: how requests are cut decides no reply."""
        return self.service.identity

    async def describe_images(self, files: Sequence[str]) -> dict[str, ImageFacts | None]:
        """Return what the service knows of each file; an error of a request meets all that wait for it.

        Raises as :meth:`ImageMetadata.describe_images`.
        """
        loop = asyncio.get_running_loop()
        if files and loop not in self._waiting:
            task = loop.create_task(self._ask(loop))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
        waiting = self._waiting.setdefault(loop, {}) if files else {}
        replies = [waiting.setdefault(file, loop.create_future()) for file in files]
        return dict(zip(files, await asyncio.gather(*map(asyncio.shield, replies)), strict=True))

    async def _ask(self, loop: asyncio.AbstractEventLoop) -> None:
        """Ask about the files that wait after a moment."""
        await asyncio.sleep(GATHER)
        waiting = self._waiting.pop(loop)
        for start in range(0, len(waiting), MOST_FILES):
            batch = list(waiting)[start : start + MOST_FILES]
            (outcome,) = await asyncio.gather(self.service.describe_images(batch), return_exceptions=True)
            for file in batch:
                if isinstance(outcome, BaseException):
                    waiting[file].set_exception(outcome)
                    # Marks it as seen: asyncio complains of errors of those that nobody waits for any more.
                    waiting[file].exception()
                else:
                    waiting[file].set_result(outcome[file])
