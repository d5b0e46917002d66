"""Ask MediaWiki's API (``prop=imageinfo``) about files that the dump of Wikimedia Commons says nothing of.

What the service asks of its clients is kept: one request at a time with a pause after each, up to 50 titles in one,
``maxlag``, a User-Agent with an address, and thumbnails in the standard widths alone.

What every request to Wikimedia's services keeps to: who asks, how often, and what a refusal means.

Find pictures on Wikimedia Commons by words: MediaWiki's ``generator=search`` among files, with ``imageinfo``.

Fetch pictures from Wikimedia Commons by what is known of them, at a standard width.

A thumbnail's address follows from the original's. What a smaller original would be enlarged for is fetched as it is.
One request is in flight at a time, with a pause after each, and no address outside the service is ever asked for.

Recording around a service that describes pictures: each file is asked about once.

Recording around a search for pictures and around fetching them: each is asked for once.
"""

import asyncio
import hashlib
import json
import re
import threading
import time
import unicodedata
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import asdict, dataclass, field
from typing import Any
from urllib.parse import unquote, urlsplit

import httpx
import orjson

from pipelines.errors import ConfigError, CorruptInput, RateLimited, RecordFailed, SynthError, Unavailable
from pipelines.ids import canonical_json, digest_value
from pipelines.pictures import PictureSource, PictureStore
from pipelines.pixels import MAX_BYTES, find_extension
from pipelines.services.clients.replies import ReplyStore, name_epoch
from pipelines.services.image_metadata import (
    MOST_FILES,
    FileFetch,
    FileSearch,
    ImageFacts,
    ImageMetadata,
    RemoteFile,
    normalise_file,
    read_wait,
    strip_html,
)
from pipelines.services.metering import count_usage
from schemas.manifest import Usage

LOOPBACK = ("127.0.0.1", "localhost", "::1")
_COMMONS_HTTP_ERROR_BYTES = 1 << 14
_UNWANTED = (b"user-agent", b"user agent", b"robot policy", b"banned")
_TURN_SECONDS = 0.01
_LONGEST_WAIT = 60.0


class Broken(Exception):
    """No whole reply; asking again may help."""


@dataclass(slots=True)
class Pace:
    """One request at a time, a pause after each; shared by event loops and threads."""

    lock: threading.Lock = field(default_factory=threading.Lock)
    next_at: float = 0.0
    """On the monotonic clock."""

    def hold(self, seconds: float) -> None:
        """Let nobody ask for so many seconds: the service said so, and it meant all who ask."""
        self.next_at = max(self.next_at, time.monotonic() + seconds)

    @asynccontextmanager
    async def take_turn(self, pause: float) -> AsyncIterator[None]:
        """Wait until nobody asks and the pause is over; the next one waits ``pause`` seconds from the block's end.

        Raises:
            RateLimited: the service wants to be left alone for more than a minute.
        """
        # A lock of asyncio belongs to one event loop, and each shard runs in a loop of its own.
        while not self.lock.acquire(blocking=False):
            await asyncio.sleep(_TURN_SECONDS)
        try:
            wait = self.next_at - time.monotonic()
            if wait > _LONGEST_WAIT:
                raise RateLimited(f"to be left alone for {wait:.0f} s more, as the service asked", wait)
            await asyncio.sleep(max(0.0, wait))
            try:
                yield
            finally:
                self.hold(pause)
        finally:
            self.lock.release()


def check_agent(agent: str) -> None:
    """Refuse a User-Agent that names nobody, or that is no header.

    Raises:
        ConfigError: if it has neither a mail address nor a page's, or is not printable ASCII.
    """
    if not ("@" in agent or "://" in agent) or not (agent.isascii() and agent.isprintable()):
        raise ConfigError(f"User-Agent {agent!r} names nobody; expected synth/... (mail or page's address)")


def drop_tracking(url: str) -> str:
    """Return an address without the parameters that only tell where it was read: ``utm_source`` and its like."""
    bare, _, query = url.partition("?")
    return bare if query and all(part.startswith("utm_") for part in query.split("&")) else url


def check_refusal(place: str, status: int, headers: Mapping[str, str], body: bytes) -> None:
    """Raise for a reply that refuses us, asks to slow down, or is the service's own fault.

    Args:
        place: address asked, for messages.
        status: HTTP status.
        headers: of the reply, found in any case of letters.
        body: its beginning.

    Raises:
        Unavailable: we are refused.
        RateLimited: 429, or 503 with Retry-After.
        Broken: any other 5xx.
    """
    wait = read_wait(headers)
    if status == 403 or (status == 429 and any(word in body[:_COMMONS_HTTP_ERROR_BYTES].lower() for word in _UNWANTED)):
        raise Unavailable(f"{place} refuses us (HTTP {status}): {body[:200]!r}; see its policy before running again")
    if status == 429 or (status == 503 and wait):
        raise RateLimited(f"{place}: HTTP {status}", wait)
    if status >= 500:
        raise Broken(f"HTTP {status}")


VERSION = 2
THUMBNAIL_WIDTHS = (20, 40, 60, 120, 250, 330, 500, 960, 1280, 1920, 3840)
"""The widths that upload.wikimedia.org serves; any other is refused there."""
IMAGEINFO = {
    "action": "query",
    "format": "json",
    "formatversion": "2",
    "maxlag": "5",
    "prop": "imageinfo",
    "iiprop": "url|size|mime|sha1|extmetadata",
}
"""What is asked of each file, however the files are named."""
_MAX_REPLY = 32 << 20
_MAX_TITLE_BYTES = 240
_NO_TITLE = frozenset("#<>[]{}|\x7f")
_MAX_RENAMES = 5
_SLOW_DOWN = ("maxlag", "ratelimited")
_THEIR_FAULT = ("readonly", "internal_api_error")


@dataclass(frozen=True, slots=True)
class _Reply:
    status: int
    headers: httpx.Headers
    body: bytes


@dataclass(frozen=True, slots=True)
class CommonsApi:
    """The API of Wikimedia Commons or another MediaWiki.

    Attributes:
        url: address of ``api.php``, https unless on this machine; it stands in identities and messages, so no secrets.
        agent: User-Agent, with a mail address or page where the operators can reach whoever runs this.
        width: width in pixels of the thumbnails whose address is asked for, 0 for none.
        seconds: the longest one request may take, however slowly the reply drips.
        pause: least seconds from a reply to the next request.
        tries: how often a request is sent that got no whole reply.
        patience: seconds before it is sent again, doubled each time.
        pace: shared by whoever asks this service.

    Raises:
        ConfigError: a thumbnail width that is not served, an address that is not https or has more than a path, or an
            agent that names nobody.
    """

    url: str
    agent: str
    width: int = 0
    seconds: float = 60.0
    pause: float = 0.5
    tries: int = 3
    patience: float = 5.0
    pace: Pace = field(default_factory=Pace, repr=False, compare=False)

    def __post_init__(self) -> None:
        if self.width and self.width not in THUMBNAIL_WIDTHS:
            widths = ", ".join(map(str, THUMBNAIL_WIDTHS))
            raise ConfigError(f"thumbnail width {self.width} is not served; allowed are {widths}")
        address = urlsplit(self.url)
        if "@" in address.netloc or address.query or address.fragment:
            place = f"{address.scheme}://{address.hostname}{address.path}"
            raise ConfigError(f"{place}: an address with user, password or parameters; expected {place} alone")
        if address.scheme != "https" and not (address.scheme == "http" and address.hostname in LOOPBACK):
            raise ConfigError(f"{self.url!r} is no address of an API; expected https://.../api.php")
        check_agent(self.agent)

    @property
    def identity(self) -> str:
        """Address and thumbnail width."""
        return f"commons-api@{VERSION}:{self.url}:{self.width}"

    async def describe_images(self, files: Sequence[str]) -> dict[str, ImageFacts | None]:
        """Return what the service knows of each file; see :class:`pipelines.services.image_metadata.ImageMetadata`."""
        titles = {file: make_title(file) for file in files}
        wanted = list(dict.fromkeys(title for title in titles.values() if title))
        facts: dict[str, ImageFacts | None] = {}
        async with self.open_client() as client:
            for start in range(0, len(wanted), MOST_FILES):
                facts |= await self._describe_batch(client, wanted[start : start + MOST_FILES])
        return {file: facts[title] if title else None for file, title in titles.items()}

    def open_client(self) -> httpx.AsyncClient:
        """Return a client that says who asks and follows no redirect: another host never gets the request."""
        headers = {"User-Agent": self.agent, "Accept": "application/json"}
        return httpx.AsyncClient(headers=headers, timeout=self.seconds, follow_redirects=False)

    async def _describe_batch(self, client: httpx.AsyncClient, titles: list[str]) -> dict[str, ImageFacts | None]:
        form = IMAGEINFO | {"redirects": "1", "titles": "|".join(titles)}
        if self.width:
            form["iiurlwidth"] = str(self.width)
        pages: dict[str, Mapping[str, Any]] = {}
        renamed: dict[str, str] = {}
        further: dict[str, str] = {}
        # Each continuation brings at least one file, so there are never more of them than files.
        for _ in range(len(titles) + 1):
            reply = await self.ask(client, form | further)
            try:
                further = merge_reply(reply, pages, renamed)
                found = {title: pages.get(_follow(title, renamed)) for title in titles}
                left_out = [title for title, page in found.items() if not is_answered(page, not further)]
                if not left_out:
                    return {title: read_page(page) for title, page in found.items()}
            except (KeyError, TypeError, ValueError, AttributeError, IndexError) as error:
                raise Unavailable(f"{self.url}: a reply of another form ({error!r}); expected imageinfo") from error
            if not further:
                break
        raise Unavailable(f"{self.url} left {len(left_out)} of {len(titles)} files out, first {left_out[0]!r}")

    async def ask(self, client: httpx.AsyncClient, form: Mapping[str, str]) -> Mapping[str, Any]:
        """Return a whole reply; of a search that finds nothing, without a ``query``.

        Raises:
            Unavailable: there was none after all tries, or we are refused.
            RateLimited: the service asks to slow down.
            ConfigError: the address is no API, or the API does not take the request.
        """
        said = ""
        for attempt in range(self.tries):
            if attempt:
                await asyncio.sleep(self.patience * 2 ** (attempt - 1))
            try:
                return _read_reply(self.url, await self._post(client, form), "generator" in form)
            except RateLimited as error:
                self.pace.hold(error.retry_after)
                raise
            except Broken as error:
                said = str(error)
        raise Unavailable(f"{self.url}: {said}, {self.tries} times; run again later")

    async def _post(self, client: httpx.AsyncClient, form: Mapping[str, str]) -> _Reply:
        async with self.pace.take_turn(self.pause):
            try:
                async with asyncio.timeout(self.seconds), client.stream("POST", self.url, data=form) as response:
                    body = bytearray()
                    async for chunk in response.aiter_bytes():
                        body += chunk
                        if len(body) > _MAX_REPLY:
                            raise Broken(f"a reply of over {_MAX_REPLY} bytes")
                    return _Reply(response.status_code, response.headers, bytes(body))
            except TimeoutError as error:
                raise Broken(f"no whole reply in {self.seconds} s") from error
            except httpx.HTTPError as error:
                raise Broken(f"no whole reply ({type(error).__name__}: {error})") from error


def make_title(file: str) -> str | None:
    """Return ``File:`` and the name as titles have it, or None for a name that no file can have."""
    name = normalise_file(unicodedata.normalize("NFC", file))
    if not name or len(name.encode("utf-8", "replace")) > _MAX_TITLE_BYTES:
        return None
    return None if any(char in _NO_TITLE or not char.isprintable() for char in name) else f"File:{name}"


def _read_reply(url: str, reply: _Reply, may_be_empty: bool) -> Mapping[str, Any]:
    _check_status(url, reply)
    try:
        read = orjson.loads(reply.body)
    except orjson.JSONDecodeError as error:
        raise Broken(f"no JSON but {reply.body[:60]!r}") from error
    nothing: object = {} if may_be_empty and isinstance(read, dict) and read.get("batchcomplete") is True else None
    if not isinstance(read, dict) or not isinstance(read.get("error", read.get("query", nothing)), dict):
        raise Broken(f"no result but {reply.body[:60]!r}")
    if "error" not in read:
        return read
    code = str(read["error"].get("code"))
    if code in _SLOW_DOWN:
        raise RateLimited(f"{url}: {code}", read_wait(reply.headers))
    if code.startswith(_THEIR_FAULT):
        raise Broken(f"error {code}")
    raise ConfigError(f"{url} does not take the request: {str(read['error'])[:200]}; expected the API of a MediaWiki")


def _check_status(url: str, reply: _Reply) -> None:
    status = reply.status
    check_refusal(url, status, reply.headers, reply.body)
    if 300 <= status < 400:
        raise ConfigError(f"{url} has moved to {reply.headers.get('location', '?')[:200]!r}; set that address")
    if status != 200:
        raise ConfigError(f"{url}: HTTP {status}; expected the API of a MediaWiki, such as https://.../w/api.php")


def merge_reply(
    reply: Mapping[str, Any], pages: dict[str, Mapping[str, Any]], renamed: dict[str, str]
) -> dict[str, str]:
    """Add a reply's pages and renamings to what came before and return what to continue with, if anything."""
    query = reply["query"]
    for change in (*query.get("normalized", ()), *query.get("redirects", ())):
        renamed[change["from"]] = change["to"]
    for page in query.get("pages", ()):
        known = pages.get(page["title"])
        # A continuation repeats every page; those whose turn is not come without their images.
        if known is None or not known.get("imageinfo"):
            pages[page["title"]] = page
    return {str(key): str(value) for key, value in reply.get("continue", {}).items()}


def _follow(title: str, renamed: Mapping[str, str]) -> str:
    for _ in range(_MAX_RENAMES):
        if title not in renamed:
            return title
        title = renamed[title]
    return title


def is_answered(page: Mapping[str, Any] | None, is_last: bool) -> bool:
    """Say whether it is known what a page shows; until the last reply, images may still come."""
    if page is None:
        return False
    if page.get("imageinfo") or page.get("invalid") or (page.get("missing") and not page.get("known")):
        return True
    return is_last and not page.get("imagerepository")


def read_page(page: Mapping[str, Any] | None) -> ImageFacts | None:
    """Return a page's facts, None when it has no file."""
    images = page.get("imageinfo") if page else None
    # The first is the current version: with a single title, a continuation would go on to older ones.
    return _read_facts(images[0]) if images else None


def _read_facts(image: Mapping[str, Any]) -> ImageFacts | None:
    if image.get("filehidden") or image.get("filemissing"):
        return None
    said = image.get("extmetadata") or {}
    licence = _read_field(said, "LicenseShortName") or _read_field(said, "License")
    if _read_field(said, "NonFree").lower() in ("true", "1", "yes"):
        licence = f"Non-free: {licence}"
    if _read_field(said, "DeletionReason"):
        licence = f"Up for deletion: {licence}"  # whatever it says is doubted, and the name is on no list
    licence_url = _read_field(said, "LicenseUrl")
    return ImageFacts(
        url=drop_tracking(str(image["url"])),
        thumbnail_url=str(image.get("thumburl", "")),
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
    """Return a field's value as plain text; its values are HTML."""
    value = said.get(name, {}).get("value", "")
    return strip_html(value) if isinstance(value, str) else str(value)


COMMONS_SEARCH_VERSION = 1
_KIND = "filetype:bitmap"
_MAX_QUERY = 250
"""Characters; the service refuses queries of more than 300."""
_WORD = re.compile(r"\w+(?:['’.-]\w+)*")


@dataclass(frozen=True, slots=True)
class CommonsSearch:
    """The search of a MediaWiki with CirrusSearch, asked as politely as its API."""

    api: CommonsApi

    @property
    def identity(self) -> str:
        """Address."""
        return f"commons-search@{COMMONS_SEARCH_VERSION}:{self.api.url}"

    async def search_files(self, query: str, count: int) -> tuple[tuple[str, ImageFacts], ...]:
        """Return pictures for some words; see :class:`pipelines.services.image_metadata.FileSearch`."""
        words = plain_query(query)
        if not words or count < 1:
            return ()
        form = IMAGEINFO | {
            "generator": "search",
            "gsrsearch": f"{words} {_KIND}",
            "gsrnamespace": "6",
            "gsrlimit": str(min(count, MOST_FILES)),
        }
        pages: dict[str, Mapping[str, Any]] = {}
        further: dict[str, str] = {}
        async with self.api.open_client() as client:
            # Each continuation brings at least one picture.
            for _ in range(min(count, MOST_FILES) + 1):
                reply = await self.api.ask(client, form | further)
                further = self._merge(reply, pages)
                if not further:
                    break
        try:
            return self._read(pages)[:count]
        except (KeyError, TypeError, ValueError, AttributeError, IndexError) as error:
            raise Unavailable(f"{self.api.url}: a reply of another form ({error!r}); expected imageinfo") from error

    def _merge(self, reply: Mapping[str, Any], pages: dict[str, Mapping[str, Any]]) -> dict[str, str]:
        """Take a reply's pages and return how the pictures of the same pages go on, not the search itself."""
        try:
            further = merge_reply(reply, pages, {}) if "query" in reply else {}
        except (KeyError, TypeError, AttributeError) as error:
            raise Unavailable(f"{self.api.url}: a reply of another form ({error!r}); expected imageinfo") from error
        return further if "iistart" in further else {}

    def _read(self, pages: Mapping[str, Mapping[str, Any]]) -> tuple[tuple[str, ImageFacts], ...]:
        ranked = sorted(pages.values(), key=lambda page: int(page["index"]))
        left_out = [page["title"] for page in ranked if not is_answered(page, is_last=True)]
        if left_out:
            raise Unavailable(f"{self.api.url} left {len(left_out)} of {len(ranked)} files out, first {left_out[0]!r}")
        found = ((normalise_file(page["title"].partition(":")[2]), read_page(page)) for page in ranked)
        return tuple((file, facts) for file, facts in found if facts is not None)


def plain_query(query: str) -> str:
    """Return the words of a query without anything that the search takes for an operator, at most 250 characters."""
    words = ""
    for match in _WORD.finditer(query[: 4 * _MAX_QUERY]):
        if len(words) + len(match.group()) >= _MAX_QUERY:
            break
        words += f" {match.group()}" if words else match.group()
    return words


COMMONS_FILES_VERSION = 1
WIKIMEDIA = "wikimedia.org"
_MOST_UNSCALED = 2
"""Thumbnails in a row that may fail while their originals are there; more are the service's failure."""
_REDIRECTS = 3
_REDIRECTING = (301, 302, 303, 307, 308)
_ERROR_BYTES = 1 << 14
_HASHED = re.compile(r"(?P<root>.*)/(?P<place>[0-9a-f]/[0-9a-f]{2})/(?P<name>[^/]+)")
_LONGEST_NAME = 160
"""Bytes; the thumbnail of a file with a longer name is called ``thumbnail`` (Wikimedia's ``abbrvThreshold``)."""
_FAILED_THUMBNAIL = (b"generating thumbnail", b"render this thumbnail")
_PAGE = re.compile(rb"\s*<(?:!doctype\s+html|html)", re.IGNORECASE)


class _Doubtful(Broken):
    """A whole reply that is not what was asked for: asked for again, and believed when it comes each time."""

    def __init__(self, failure: SynthError) -> None:
        super().__init__(str(failure))
        self.failure = failure


@dataclass(frozen=True, slots=True)
class CommonsFiles:
    """The pictures of Wikimedia Commons or another MediaWiki.

    Attributes:
        agent: User-Agent, with a mail address or page where the operators can reach whoever runs this.
        width: width in pixels that is fetched, one of ``THUMBNAIL_WIDTHS``.
        hosts: hosts that are asked, each with those under it; one on this machine is asked without TLS.
        seconds: the longest one request may take, however slowly the picture drips.
        pause: least seconds from a reply to the next request.
        tries: how often a request is sent that got no whole reply.
        patience: seconds before it is sent again, doubled each time.
        most_bytes: the largest file that is read.
        pace: shared by whoever asks this service.
        unscaled: files whose thumbnails never came, since the last that did.

    Raises:
        ConfigError: a width that is not served, no host, or an agent that names nobody.
    """

    agent: str
    width: int
    hosts: tuple[str, ...] = (WIKIMEDIA,)
    seconds: float = 120.0
    pause: float = 0.5
    tries: int = 3
    patience: float = 5.0
    most_bytes: int = MAX_BYTES
    pace: Pace = field(default_factory=Pace, repr=False, compare=False)
    unscaled: list[str] = field(default_factory=list, repr=False, compare=False)

    def __post_init__(self) -> None:
        if self.width not in THUMBNAIL_WIDTHS:
            widths = ", ".join(map(str, THUMBNAIL_WIDTHS))
            raise ConfigError(f"width {self.width} is not served; allowed are {widths}")
        if not all(self.hosts) or not self.hosts:
            raise ConfigError(f"hosts {self.hosts!r} of pictures; expected names such as {WIKIMEDIA}")
        check_agent(self.agent)

    @property
    def identity(self) -> str:
        """Hosts and width."""
        return f"commons-files@{COMMONS_FILES_VERSION}:{','.join(self.hosts)}:{self.width}"

    async def fetch_file(self, file: RemoteFile) -> bytes:
        """Return a picture's bytes; see :class:`pipelines.services.image_metadata.FileFetch`."""
        address = choose_address(file, self.width)
        sha1 = file.sha1 if address == drop_tracking(file.url) else ""
        last = Broken()
        for attempt in range(self.tries):
            if attempt:
                await asyncio.sleep(self.patience * 2 ** (attempt - 1))
            try:
                data = await self._follow(address)
                _check_content(address, data, sha1)
            except RateLimited as error:
                self.pace.hold(error.retry_after)
                raise
            except Broken as error:
                last = error
            else:
                self.unscaled.clear()
                return data
        if isinstance(last, _Doubtful):
            raise last.failure
        raise await self._blame(file, address, last)

    async def _blame(self, file: RemoteFile, address: str, last: Broken) -> SynthError:
        """Return whose failure it is that nothing came: a thumbnail's alone where its original is there.

        One file that the service cannot scale would stop every run again.
        """
        away = Unavailable(f"{address}: {last}, {self.tries} times; run again later")
        if address == drop_tracking(file.url) or not await self._has_original(file):
            return away
        self.unscaled.append(file.file)
        if len(self.unscaled) > _MOST_UNSCALED:
            return away
        return RecordFailed("picture-undecodable", f"{address}: {last}, {self.tries} times, and its original is there")

    async def _has_original(self, file: RemoteFile) -> bool:
        url = _read_address(drop_tracking(file.url))
        self._check_address(url)
        async with self._open_client() as client, self.pace.take_turn(self.pause):
            try:
                response = await client.head(url)
                check_refusal(str(url), response.status_code, response.headers, b"")
            except (httpx.HTTPError, Broken):
                return False
        return response.status_code == 200 and response.headers.get("content-type", "").startswith("image/")

    async def _follow(self, address: str) -> bytes:
        """Return what an address leads to, asking only hosts of the service."""
        url = _read_address(address)
        async with self._open_client() as client:
            for _ in range(_REDIRECTS + 1):
                self._check_address(url)
                found = await self._get(client, url)
                if isinstance(found, bytes):
                    return found
                url = _read_address(found, url)
        raise RecordFailed("picture-address", f"{address}: more than {_REDIRECTS} redirects")

    def _open_client(self) -> httpx.AsyncClient:
        headers = {"User-Agent": self.agent, "Accept": "image/*", "Accept-Encoding": "identity"}
        return httpx.AsyncClient(headers=headers, timeout=self.seconds, follow_redirects=False)

    def _check_address(self, url: httpx.URL) -> None:
        """Refuse what is not https at a host of the service; no address of a private network has such a name."""
        is_ours = any(url.host == own or (url.host.endswith(f".{own}") and own not in LOOPBACK) for own in self.hosts)
        is_safe = url.scheme == "https" and url.port is None
        if not is_ours or url.userinfo or not (is_safe or (url.scheme == "http" and url.host in LOOPBACK)):
            allowed = ", ".join(self.hosts)
            raise RecordFailed("picture-address", f"{str(url)[:200]!r}; allowed are https addresses under {allowed}")

    async def _get(self, client: httpx.AsyncClient, url: httpx.URL) -> bytes | str:
        """Return a body, or the address that a redirect leads to."""
        address = str(url)
        async with self.pace.take_turn(self.pause):
            try:
                async with asyncio.timeout(self.seconds), client.stream("GET", url) as response:
                    if response.status_code == 200:
                        return await self._read(response, address)
                    if response.status_code in _REDIRECTING and "location" in response.headers:
                        return str(response.headers["location"])
                    raise _explain_status(address, response, await _read_start(response))
            except TimeoutError as error:
                raise Broken(f"no whole picture in {self.seconds} s") from error
            except httpx.HTTPError as error:
                raise Broken(f"no whole picture ({type(error).__name__}: {error})") from error

    async def _read(self, response: httpx.Response, address: str) -> bytes:
        if response.headers.get("content-encoding", "identity") != "identity":
            raise Broken(f"a picture packed as {response.headers['content-encoding'][:40]!r}")
        length = response.headers.get("content-length", "")
        told = int(length) if length.isascii() and length.isdecimal() and len(length) < 19 else 0
        body = bytearray()
        if told <= self.most_bytes:
            async for chunk in response.aiter_raw():
                body += chunk
                if len(body) > self.most_bytes:
                    break
        if max(told, len(body)) > self.most_bytes:
            size = f"{max(told, len(body))} bytes or more, allowed are {self.most_bytes}"
            raise RecordFailed("picture-too-large", f"{address}: {size}")
        return bytes(body)


def list_hosts(api: str) -> tuple[str, ...]:
    """Return the hosts that hold the pictures of a MediaWiki: all of Wikimedia's, or the API's own."""
    host = urlsplit(api).hostname or ""
    return (WIKIMEDIA,) if host == WIKIMEDIA or host.endswith(f".{WIKIMEDIA}") else (host,)


def choose_address(file: RemoteFile, width: int) -> str:
    """Return the address of a file's thumbnail, or of the original where that is no wider.

    The original is also chosen where its address is not of MediaWiki's form, from which the thumbnail's follows.
    """
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


def _read_address(address: str, base: httpx.URL | None = None) -> httpx.URL:
    """Return an address as the client will understand it, so that what is checked is what is asked."""
    try:
        return httpx.URL(address) if base is None else base.join(address)
    except (httpx.InvalidURL, ValueError) as error:
        raise RecordFailed("picture-address", f"{address[:200]!r}: {error}") from error


def _check_content(address: str, data: bytes, sha1: str) -> None:
    if not find_extension(data):
        if _PAGE.match(data[:200]):
            raise Broken("a page in place of a picture")
        detail = f"{address}: starts with {data[:8]!r}; allowed are JPEG, PNG, GIF and WebP"
        raise _Doubtful(RecordFailed("picture-format", detail))
    found = hashlib.sha1(data, usedforsecurity=False).hexdigest() if sha1 else ""
    if found != sha1:
        raise _Doubtful(RecordFailed("picture-changed", f"{address}: sha1 is {found}, it was described with {sha1}"))


async def _read_start(response: httpx.Response) -> bytes:
    body = b""
    async for chunk in response.aiter_raw():
        body += chunk
        if len(body) >= _ERROR_BYTES:
            break
    return body[:_ERROR_BYTES]


def _explain_status(address: str, response: httpx.Response, body: bytes) -> Exception:
    """Return the error that a status other than 200 stands for, or raise it."""
    status = response.status_code
    if status >= 429 and any(words in body.lower() for words in _FAILED_THUMBNAIL):
        return RecordFailed("picture-undecodable", f"{address}: HTTP {status}, the service cannot scale it")
    check_refusal(address, status, response.headers, body)
    if status in (400, 404, 410):
        return RecordFailed("picture-missing", f"{address}: HTTP {status}")
    return Broken(f"HTTP {status}")


@dataclass(frozen=True, slots=True)
class RecordedImageMetadata:
    """A service whose answer about a file is kept, whatever other files were asked for with it.

    That the service has no such file is kept, too. A request is recorded before the next is sent; in the counts, a file
    is a call.
    """

    metadata: ImageMetadata
    store: ReplyStore
    epoch: int = 0

    @property
    def identity(self) -> str:
        """The wrapped service's identity."""
        return name_epoch(self.metadata.identity, self.epoch)

    async def describe_images(self, files: Sequence[str]) -> dict[str, ImageFacts | None]:
        """Return recorded answers, and ask for those files that have none."""
        keys = {file: digest_value([self.identity, "describe_image", file]) for file in files}
        replies = {file: self.store.read(key) for file, key in keys.items()}
        missing = [file for file, reply in replies.items() if reply is None]
        for start in range(0, len(missing), MOST_FILES):
            batch = missing[start : start + MOST_FILES]
            answered = await self._ask(batch, [keys[file] for file in batch])
            await self.store.record({keys[file]: reply for file, reply in answered.items()}, self.identity)
            replies |= answered
            count_usage(Usage(calls=len(batch)))
        count_usage(Usage(cached_calls=len(replies) - len(missing)))
        return {file: _read_reply_recorded_commons(reply) for file, reply in replies.items()}

    async def _ask(self, batch: Sequence[str], keys: Sequence[str]) -> dict[str, str]:
        await self.store.note_asks(keys, self.identity)
        try:
            found = await self.metadata.describe_images(batch)
        except Exception as error:
            self.store.note_failure(keys, self.identity, type(error).__name__)
            raise
        return {file: canonical_json(None if facts is None else asdict(facts)) for file, facts in found.items()}


def _read_reply_recorded_commons(reply: str | None) -> ImageFacts | None:
    facts = json.loads(reply or "null")
    return None if facts is None else ImageFacts(**facts)


@dataclass(frozen=True, slots=True)
class RecordedFileSearch:
    """A search for pictures whose answers are kept, empty ones too."""

    search: FileSearch
    store: ReplyStore
    epoch: int = 0

    @property
    def identity(self) -> str:
        """The wrapped search's identity."""
        return name_epoch(self.search.identity, self.epoch)

    async def search_files(self, query: str, count: int) -> tuple[tuple[str, ImageFacts], ...]:
        """Return the recorded pictures or search."""

        async def ask() -> str:
            found = await self.search.search_files(query, count)
            return canonical_json([[file, asdict(facts)] for file, facts in found])

        key = digest_value([self.identity, "search_files", query, count])
        reply, cached = await self.store.recall(key, self.identity, ask)
        count_usage(Usage(cached_calls=1) if cached else Usage(calls=1))
        return tuple((file, ImageFacts(**facts)) for file, facts in json.loads(reply))


@dataclass(frozen=True, slots=True)
class RecordedFileFetch:
    """Pictures that are fetched once: the recording keeps the sha256, the image store the bytes.

    That a file is missing or of no use is recorded, too. A recorded picture that is gone from the image store is
    fetched again, and must be the same.
    """

    fetch: FileFetch
    store: ReplyStore
    pictures: PictureStore
    epoch: int = 0

    @property
    def identity(self) -> str:
        """The wrapped service's identity."""
        return name_epoch(self.fetch.identity, self.epoch)

    async def fetch_file(self, file: RemoteFile) -> bytes:
        """Return the picture's bytes from the image store, or fetch them.

        Raises:
            RecordFailed: as the wrapped service, now or when it was recorded, and ``picture-changed`` if the picture
                is gone from the image store and the service has another one by now.
        """

        async def ask() -> str:
            try:
                return canonical_json({"sha256": await self._keep(file, await self.fetch.fetch_file(file))})
            except RecordFailed as error:
                return canonical_json({"error": error.error, "detail": error.detail})

        key = digest_value([self.identity, "fetch_file", file.file, file.url])
        reply, cached = await self.store.recall(key, self.identity, ask)
        said = json.loads(reply)
        if "error" in said:
            count_usage(Usage(cached_calls=1) if cached else Usage(calls=1))
            raise RecordFailed(said["error"], said["detail"])
        try:
            data, _ = await asyncio.to_thread(self.pictures.load, said["sha256"])
        except CorruptInput:
            data = await self._fetch_again(file, key, said["sha256"])
            cached = False
        count_usage(Usage(cached_calls=1) if cached else Usage(calls=1))
        return data

    async def _fetch_again(self, file: RemoteFile, key: str, sha256: str) -> bytes:
        await self.store.note_asks([key], self.identity)
        try:
            data = await self.fetch.fetch_file(file)
        except Exception as error:
            self.store.note_failure([key], self.identity, type(error).__name__)
            raise
        # The first reply stays, so this one is counted as none.
        self.store.note_failure([key], self.identity, "fetched-again")
        found = hashlib.sha256(data).hexdigest()
        if found != sha256:
            detail = f"{file.file}: sha256 was {sha256}, is {found} by now; take it with --fresh-replies commons"
            raise RecordFailed("picture-changed", detail)
        await self._keep(file, data)
        return data

    async def _keep(self, file: RemoteFile, data: bytes) -> str:
        credit = PictureSource(file.file, "", "", "", file.url)
        return (await asyncio.to_thread(self.pictures.add_bytes, data, credit)).sha256
