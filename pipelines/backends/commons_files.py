"""Fetch pictures from Wikimedia Commons by what is known of them, at a standard width.

A thumbnail's address follows from the original's. What a smaller original would be enlarged for is fetched as it is.
One request is in flight at a time, with a pause after each, and no address outside the service is ever asked for.
"""

import asyncio
import hashlib
import re
from dataclasses import dataclass, field
from urllib.parse import unquote, urlsplit

import httpx

from pipelines.backends.commons_api import THUMBNAIL_WIDTHS
from pipelines.backends.commons_http import LOOPBACK, Broken, Pace, check_agent, check_refusal, drop_tracking
from pipelines.backends.image_metadata import RemoteFile
from pipelines.errors import ConfigError, RateLimited, RecordFailed, SynthError, Unavailable
from pipelines.picturefiles.limits import MAX_BYTES
from pipelines.picturefiles.stripping import find_extension

VERSION = 1
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
        return f"commons-files@{VERSION}:{','.join(self.hosts)}:{self.width}"

    async def fetch_file(self, file: RemoteFile) -> bytes:
        """Return a picture's bytes; see :class:`pipelines.backends.image_metadata.FileFetch`."""
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
