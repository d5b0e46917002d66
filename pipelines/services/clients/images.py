"""Search by picture with the protocol of Google Vision or SerpApi's Google Lens, with thumbnails."""

import asyncio
import base64
import html
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final
from urllib.parse import unquote, urlsplit

import orjson

from pipelines.errors import ConfigError, CorruptInput, RateLimited, RecordFailed
from pipelines.pictures import PictureSource, PictureStore, encode_picture, open_pixels
from pipelines.services.addresses import Address, ForbiddenAddress, Guard
from pipelines.services.clients.http import HttpClient, HttpRequest, NoReply
from pipelines.services.clients.search import (
    Service,
    check_serpapi,
    find_entry,
    list_entries,
    make_post,
    make_serpapi,
    read_text,
)
from pipelines.services.protocols import ImageHit, PictureFile
from schemas.datasets import Picture

SIDE: Final = 256
"""Longest side of a thumbnail in pixels."""
UNKNOWN: Final = "unknown"
"""Author and licence of a thumbnail."""
_SECONDS = 20.0
_REDIRECTS = 3
_LONGEST_NAME = 120


VERSION: Final = 1
SAME, PART, LIKE = 0.0, 1.0, 2.0
"""Distances if a service gives none: the same picture, one that shares a part with it, one like it."""
MOST_SENT: Final = 4 << 20
"""Bytes up to which a picture is sent as it is; Google Vision takes 10 MB, and base64 adds a third."""
_SENT_SIDE = 1600
"""Longest side in pixels of the copy that is sent of a larger one."""
_MOST_RESULTS = 50
_INVALID = 3
"""Google's code of an invalid argument."""
_TAG = re.compile(r"<[^<>]{0,100}>")


@dataclass(frozen=True, slots=True)
class Sighting:
    """A search result, and the address of its picture, empty for none."""

    hit: ImageHit
    picture: str


@dataclass(frozen=True, slots=True, kw_only=True)
class LiveImageSearch(Service):
    """A search by picture with the protocol ``google-vision`` or ``serpapi`` (Google Lens).

    Vision takes pictures inline (``POST images:annotate``) and returns ``webDetection``: pages with the same picture,
    then similar pictures. Lens takes a picture's address (``GET ?engine=google_lens&url=``) and returns
    ``visual_matches``, whose ranks are the distances.

    Attributes:
        pictures: the image store, where thumbnails are stored.
        picture_base: serpapi: address of the published image store; a picture is at ``<base>/<ab>/<sha256>.<ext>``.
        guard: which addresses of thumbnails may be fetched.
    """

    setting: str = "live.urls.images"
    pictures: PictureStore = field(repr=False)
    picture_base: str = ""
    guard: Guard = field(default_factory=Guard, repr=False)
    fetcher: HttpClient = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if self.protocol == "serpapi" and not self.picture_base:
            raise ConfigError(
                "live.urls.pictures is empty: serpapi takes addresses alone; say where the workspace's images/ folder "
                'is published, or images = "google-vision"'
            )
        client = replace(self.client, timeout=min(_SECONDS, self.client.timeout), guard=self.guard)
        object.__setattr__(self, "fetcher", client)

    @property
    def identity(self) -> str:
        """Protocol, version, addresses and bounds."""
        if self.protocol == "serpapi":
            return f"serpapi-lens@{VERSION}:{self.url}:{self.picture_base}:{SIDE}"
        return f"google-vision@{VERSION}:{self.url}:{MOST_SENT}:{_SENT_SIDE}:{SIDE}"

    async def search_image(self, picture: PictureFile, count: int) -> tuple[ImageHit, ...]:
        """Return at most ``count`` pages with their thumbnails, best first.

        Raises:
            RecordFailed: if the service cannot use the picture (``picture-refused``) or it cannot be decoded.
            RateLimited, Unavailable, ConfigError: as :meth:`Service.ask`.
        """
        if count < 1:
            return ()
        make, read = _PROTOCOLS[self.protocol]
        request = await asyncio.to_thread(make, self, picture, min(count, _MOST_RESULTS))
        found = (await self.ask(request, lambda reply: read(self, reply)))[:count]
        small = await asyncio.gather(*map(self.fetch_thumbnail, found))
        return tuple(replace(one.hit, thumbnail=copy) for one, copy in zip(found, small, strict=True))

    async def fetch_thumbnail(self, found: Sighting) -> Picture | None:
        """Fetch a result's picture in one try and store a small copy; None if it cannot be fetched.

        Raises:
            Unavailable, ConfigError: if the disk refuses a copy, or this machine opens no more connections.
        """
        if not found.picture:
            return None
        try:
            data = await self._follow(self.guard.read(found.picture))
            small = await asyncio.to_thread(lambda: encode_picture(open_pixels(data, SIDE), "jpg"))
        except (ForbiddenAddress, NoReply, RateLimited, RecordFailed):
            return None
        source = PictureSource(_name_file(found.picture), UNKNOWN, UNKNOWN, "", found.hit.url)
        return await asyncio.to_thread(self.pictures.add_bytes, small, source)

    async def _follow(self, address: Address) -> bytes:
        for _ in range(_REDIRECTS + 1):
            reply = await self.fetcher.send(HttpRequest(address.url, headers={"Accept": "image/*"}))
            if reply.status == 200:
                return reply.body
            if not reply.location:
                raise NoReply(f"HTTP {reply.status}")
            address = self.guard.read(reply.location, address.url)
        raise NoReply(f"more than {_REDIRECTS} redirects")


def _name_file(url: str) -> str:
    """Return the last part of an address's path, or its host."""
    parts = urlsplit(url)
    name = unquote(parts.path.rpartition("/")[2], errors="replace")
    return "".join(char for char in name if char.isprintable())[:_LONGEST_NAME] or parts.netloc


def _ask_vision(search: LiveImageSearch, picture: PictureFile, count: int) -> HttpRequest:
    try:
        data = picture.path.read_bytes()
    except OSError as error:
        raise CorruptInput(f"{picture.path}: {error.strerror}; the picture to search by") from error
    if len(data) > MOST_SENT:
        data = encode_picture(open_pixels(data, _SENT_SIDE), "jpg")
    wanted = [{"type": "WEB_DETECTION", "maxResults": count}]
    request = {"image": {"content": base64.b64encode(data).decode("ascii")}, "features": wanted}
    return make_post(search, "X-Goog-Api-Key", orjson.dumps({"requests": [request]}))


def _read_vision(service: Service, reply: Mapping[str, Any]) -> tuple[Sighting, ...]:
    answers = list_entries(reply, "responses")
    if len(answers) != 1:
        raise NoReply(f"unexpected reply: {len(answers)} responses to one request")
    error = find_entry(answers[0], "error")
    if error:
        said = service.redact(read_text(error, "message").encode())[:200]
        if error.get("code") == _INVALID:
            raise RecordFailed("picture-refused", f"{service.place}: {said}")
        raise NoReply(f"error {error.get('code')}: {said}")
    return _read_web(find_entry(answers[0], "webDetection"))


def _ask_lens(search: LiveImageSearch, picture: PictureFile, _count: int) -> HttpRequest:
    place = f"{search.picture_base.rstrip('/')}/{picture.sha256[:2]}/{picture.path.name}"
    return make_serpapi(search, {"engine": "google_lens", "url": place})


def _read_lens(service: Service, reply: Mapping[str, Any]) -> tuple[Sighting, ...]:
    check_serpapi(service, reply)
    return tuple(
        Sighting(
            ImageHit(url, read_text(match, "title"), read_text(match, "snippet", "source"), float(rank)),
            read_text(match, "thumbnail", "image"),
        )
        for rank, match in enumerate(list_entries(reply, "visual_matches"), start=1)
        if (url := read_text(match, "link")).startswith(("https://", "http://"))
    )


def _read_web(web: Mapping[str, Any]) -> tuple[Sighting, ...]:
    """Return pages with the picture, then pictures like it; the first snippet holds the service's guess."""
    labels = [read_text(label, "label") for label in list_entries(web, "bestGuessLabels")]
    entities = [read_text(entity, "description") for entity in list_entries(web, "webEntities")]
    guess = "; ".join(dict.fromkeys(guess for guess in (*labels, *entities) if guess))
    pages = [_read_page(page) for page in list_entries(web, "pagesWithMatchingImages")]
    pages.sort(key=lambda sighting: sighting.hit.distance)
    alike = [read_text(image, "url") for image in list_entries(web, "visuallySimilarImages")]
    found = [*pages, *(Sighting(ImageHit(url, labels[0] if labels else "", "", LIKE), url) for url in alike)]
    led = [one for one in found if one.hit.url.startswith(("https://", "http://"))]
    if led and guess:
        led[0] = replace(led[0], hit=replace(led[0].hit, snippet=f"The picture may show: {guess}"))
    return tuple(led)


def _read_page(page: Mapping[str, Any]) -> Sighting:
    """Return a page that shows the picture or a part of it; its title is HTML."""
    whole = [read_text(image, "url") for image in list_entries(page, "fullMatchingImages")]
    part = [read_text(image, "url") for image in list_entries(page, "partialMatchingImages")]
    title = " ".join(html.unescape(_TAG.sub("", read_text(page, "pageTitle"))).split())
    picture = next((url for url in (*whole, *part) if url), "")
    return Sighting(ImageHit(read_text(page, "url"), title, "", SAME if whole else PART), picture)


_PROTOCOLS: Final = {"google-vision": (_ask_vision, _read_vision), "serpapi": (_ask_lens, _read_lens)}
