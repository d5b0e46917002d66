"""Ask MediaWiki's API (``prop=imageinfo``) about files that the dump of Wikimedia Commons says nothing of.

What the service asks of its clients is kept: one request at a time with a pause after each, up to 50 titles in one,
``maxlag``, a User-Agent with an address, and thumbnails in the standard widths alone.
"""

import asyncio
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

import httpx
import orjson

from pipelines.backends.commons_http import LOOPBACK, Broken, Pace, check_agent, check_refusal, drop_tracking
from pipelines.backends.image_metadata import MOST_FILES, ImageFacts, read_wait, strip_html
from pipelines.corpus.images import normalise_file
from pipelines.errors import ConfigError, RateLimited, Unavailable

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
        """Return what the service knows of each file; see :class:`pipelines.backends.image_metadata.ImageMetadata`."""
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
