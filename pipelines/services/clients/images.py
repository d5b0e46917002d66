"""Search by picture by services that speak the protocol of Google Vision or of SerpApi's Google Lens.

Small copies of the pictures that a live search found, fetched from wherever they are with every address checked.
"""

import asyncio
import base64
import html
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final
from urllib.parse import unquote, urlsplit

import orjson

from pipelines.errors import ConfigError, CorruptInput, RateLimited, RecordFailed
from pipelines.pictures import PictureSource, PictureStore
from pipelines.pixels import encode_picture, open_pixels
from pipelines.services.addresses import ForbiddenAddress, Guard, read_address
from pipelines.services.clients.http import LiveClient, LiveManners, LiveRequest, NoReply, open_client
from pipelines.services.clients.search import Service, check_serpapi, find_entry, list_entries, read_text
from pipelines.services.protocols import ImageHit, PictureFile
from schemas.datasets import Picture

SIDE: Final = 256
"""Longest side, in pixels."""
UNKNOWN: Final = "unknown"
"""Author and licence of a picture of which nothing is known but where it was found."""
_SECONDS = 20.0
_REDIRECTS = 3
_LONGEST_NAME = 120


@dataclass(frozen=True, slots=True)
class Found:
    """A picture that was found.

    Attributes:
        url: its own address.
        page: address of the page that shows it, or its own.
    """

    url: str
    page: str


@dataclass(frozen=True, slots=True)
class Thumbnails:
    """Fetches pictures and stores small copies.

    Attributes:
        pictures: where they are stored.
        manners: towards each host; each picture is asked for once.
        guard: who may be connected to; given by tests alone.
    """

    pictures: PictureStore
    manners: LiveManners
    guard: Guard = field(default_factory=Guard, repr=False)
    client: LiveClient = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        # By the request: pictures of many searches come from a few hosts, and in a queue there none is given up.
        manners = replace(self.manners, timeout=min(_SECONDS, self.manners.timeout))
        object.__setattr__(self, "client", open_client(manners, self.guard))

    async def fetch_all(self, found: Sequence[Found | None]) -> tuple[Picture | None, ...]:
        """Return a small copy of each, None of one that cannot be had: the page that shows it was found all the same.

        Raises:
            Unavailable, ConfigError: if the disk refuses a copy, or this machine opens no more connections.
        """
        return tuple(await asyncio.gather(*(self._fetch(one) for one in found)))

    async def _fetch(self, found: Found | None) -> Picture | None:
        if found is None:
            return None
        try:
            small = await asyncio.to_thread(_shrink, await self._follow(found.url))
        except (ForbiddenAddress, NoReply, RateLimited, RecordFailed):
            return None
        source = PictureSource(_name_file(found.url), UNKNOWN, UNKNOWN, "", found.page)
        return await asyncio.to_thread(self.pictures.add_bytes, small, source)

    async def _follow(self, url: str) -> bytes:
        address = read_address(url)
        for _ in range(_REDIRECTS + 1):
            reply = await self.client.send(LiveRequest(address.url, headers={"Accept": "image/*"}))
            if reply.location:
                address = read_address(reply.location, address.url)
            elif reply.status == 200:
                return reply.body
            else:
                raise NoReply(f"HTTP {reply.status}")
        raise NoReply(f"more than {_REDIRECTS} redirects")


def _shrink(data: bytes) -> bytes:
    return encode_picture(open_pixels(data, SIDE), "jpg")


def _name_file(url: str) -> str:
    """Return the last part of an address's path, or its host."""
    parts = urlsplit(url)
    name = unquote(parts.path.rpartition("/")[2], errors="replace")
    return "".join(char for char in name if char.isprintable())[:_LONGEST_NAME] or parts.netloc


VERSION: Final = 1
SAME, PART, LIKE = 0.0, 1.0, 2.0
"""Distances where a service tells none: of the same picture, of one that shares a part with it, of one like it."""
MOST_SENT: Final = 4 << 20
"""Bytes of a picture that is sent as it is; Google Vision takes requests of up to 10 MB, and base64 adds a third."""
_SENT_SIDE = 1600
"""Longest side in pixels of a larger one's copy."""
_MOST_RESULTS = 50
_INVALID = 3
"""Google's code of an invalid argument."""
_TAG = re.compile(r"<[^<>]{0,100}>")
_SETTING = "live.images_url"


@dataclass(frozen=True, slots=True)
class _Sighting:
    """A hit, and the picture that was found."""

    hit: ImageHit
    picture: str


@dataclass(frozen=True, slots=True)
class GoogleVision:
    """A service that takes pictures inline (``images:annotate``) and answers with ``webDetection``.

    Attributes:
        url: address.
        key_env: environment variable that holds the key; empty for none.
        pictures: where thumbnails are stored.
        manners: towards the service, and towards each host of a thumbnail.
        guard: where thumbnails may be fetched; given by tests alone.
    """

    url: str
    key_env: str
    pictures: PictureStore = field(repr=False)
    manners: LiveManners = field(default_factory=LiveManners)
    guard: Guard = field(default_factory=Guard, repr=False)
    service: Service = field(init=False, repr=False, compare=False)
    thumbnails: Thumbnails = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        service = Service("Google Vision", self.url, self.key_env, open_client(self.manners), _SETTING)
        object.__setattr__(self, "service", service)
        object.__setattr__(self, "thumbnails", Thumbnails(self.pictures, self.manners, self.guard))

    @property
    def identity(self) -> str:
        """Protocol, version, address and bounds."""
        return f"google-vision@{VERSION}:{self.url}:{MOST_SENT}:{_SENT_SIDE}:{SIDE}"

    async def search_image(self, picture: PictureFile, count: int) -> tuple[ImageHit, ...]:
        """Return at most ``count`` pages: those with the same picture first, then pictures that are like it.

        Raises:
            RecordFailed: ``picture-refused`` if the service cannot use the picture; as
                :func:`pipelines.pixels.open_pixels` if a large one cannot be decoded.
            RateLimited, Unavailable, ConfigError: as :meth:`Service.ask`.
        """
        if count < 1:
            return ()
        key = self.service.read_key()
        body = await asyncio.to_thread(_make_body, picture, min(max(count, 1), _MOST_RESULTS))
        headers = {"Content-Type": "application/json", "Accept": "application/json"}
        request = LiveRequest(self.url, "POST", headers | ({"X-Goog-Api-Key": key} if key else {}), body=body)
        sightings = await self.service.ask(request, lambda reply: self._read(self.service.read_json(reply)))
        return await _add_thumbnails(self.thumbnails, sightings[:count])

    def _read(self, reply: Mapping[str, Any]) -> tuple[_Sighting, ...]:
        answers = list_entries(reply, "responses")
        if len(answers) != 1:
            raise NoReply(f"a reply of another form: {len(answers)} responses to one request")
        error = find_entry(answers[0], "error")
        if error:
            said = self.service.redact(read_text(error, "message").encode())[:200]
            if error.get("code") == _INVALID:
                raise RecordFailed("picture-refused", f"{self.service.place}: {said}")
            raise NoReply(f"error {error.get('code')}: {said}")
        return _read_web(find_entry(answers[0], "webDetection"))


@dataclass(frozen=True, slots=True)
class SerpApiLens:
    """A service that takes a picture's address (``GET ?engine=google_lens&url=``) and answers with ``visual_matches``.

    Attributes:
        url: address.
        key_env: environment variable that holds the key; empty for none.
        picture_base: where the image store is published: a picture is at ``<base>/<ab>/<sha256>.<ext>``.
        pictures: the image store, where thumbnails are stored, too.
        manners: towards the service, and towards each host of a thumbnail.
        guard: where thumbnails may be fetched; given by tests alone.

    Raises:
        ConfigError: if no base is given.
    """

    url: str
    key_env: str
    picture_base: str
    pictures: PictureStore = field(repr=False)
    manners: LiveManners = field(default_factory=LiveManners)
    guard: Guard = field(default_factory=Guard, repr=False)
    service: Service = field(init=False, repr=False, compare=False)
    thumbnails: Thumbnails = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if not self.picture_base:
            raise ConfigError(
                "live.picture_base is empty: serpapi takes addresses alone; say where the workspace's images/ folder "
                'is published, or images = "google-vision"'
            )
        service = Service("SerpApi", self.url, self.key_env, open_client(self.manners), _SETTING)
        object.__setattr__(self, "service", service)
        object.__setattr__(self, "thumbnails", Thumbnails(self.pictures, self.manners, self.guard))

    @property
    def identity(self) -> str:
        """Protocol, version, addresses and bounds."""
        return f"serpapi-lens@{VERSION}:{self.url}:{self.picture_base}:{SIDE}"

    async def search_image(self, picture: PictureFile, count: int) -> tuple[ImageHit, ...]:
        """Return at most ``count`` pages in the service's order; distances are their ranks.

        Raises:
            RateLimited, Unavailable, ConfigError, RecordFailed: as :meth:`Service.ask`.
        """
        if count < 1:
            return ()
        key = self.service.read_key()
        place = f"{self.picture_base.rstrip('/')}/{picture.sha256[:2]}/{picture.path.name}"
        parameters = {"engine": "google_lens", "output": "json", "url": place}
        headers = {"Accept": "application/json"}
        request = LiveRequest(self.url, headers=headers, query=parameters | ({"api_key": key} if key else {}))
        sightings = await self.service.ask(request, lambda reply: self._read(self.service.read_json(reply)))
        return await _add_thumbnails(self.thumbnails, sightings[:count])

    def _read(self, reply: Mapping[str, Any]) -> tuple[_Sighting, ...]:
        check_serpapi(self.service, reply)
        matches = list_entries(reply, "visual_matches")
        return tuple(
            _Sighting(
                ImageHit(url, read_text(match, "title"), read_text(match, "snippet", "source"), float(rank)),
                read_text(match, "thumbnail", "image"),
            )
            for rank, match in enumerate(matches, start=1)
            if (url := read_text(match, "link")).startswith(("https://", "http://"))
        )


async def _add_thumbnails(thumbnails: Thumbnails, sightings: Sequence[_Sighting]) -> tuple[ImageHit, ...]:
    wanted = [Found(one.picture, one.hit.url) if one.picture else None for one in sightings]
    made = await thumbnails.fetch_all(wanted)
    return tuple(replace(one.hit, thumbnail=small) for one, small in zip(sightings, made, strict=True))


def _make_body(picture: PictureFile, count: int) -> bytes:
    try:
        data = picture.path.read_bytes()
    except OSError as error:
        raise CorruptInput(f"{picture.path}: {error.strerror}; the picture to search by") from error
    if len(data) > MOST_SENT:
        data = encode_picture(open_pixels(data, _SENT_SIDE), "jpg")
    request = {
        "image": {"content": base64.b64encode(data).decode("ascii")},
        "features": [{"type": "WEB_DETECTION", "maxResults": count}],
    }
    return orjson.dumps({"requests": [request]})


def _read_web(web: Mapping[str, Any]) -> tuple[_Sighting, ...]:
    """Return pages with the picture, then pictures like it; what it is taken for stands with the first."""
    guess = "; ".join(_list_guesses(web))
    pages = [_read_page(page) for page in list_entries(web, "pagesWithMatchingImages")]
    pages.sort(key=lambda sighting: sighting.hit.distance)
    title = next((read_text(label, "label") for label in list_entries(web, "bestGuessLabels")), "")
    alike = [read_text(image, "url") for image in list_entries(web, "visuallySimilarImages")]
    found = [*pages, *(_Sighting(ImageHit(url, title, "", LIKE), url) for url in alike)]
    led = [one for one in found if one.hit.url.startswith(("https://", "http://"))]
    if led and guess:
        first = led[0]
        led[0] = _Sighting(replace(first.hit, snippet=f"The picture may show: {guess}"), first.picture)
    return tuple(led)


def _list_guesses(web: Mapping[str, Any]) -> list[str]:
    labels = [read_text(label, "label") for label in list_entries(web, "bestGuessLabels")]
    entities = [read_text(entity, "description") for entity in list_entries(web, "webEntities")]
    return list(dict.fromkeys(guess for guess in (*labels, *entities) if guess))


def _read_page(page: Mapping[str, Any]) -> _Sighting:
    """Return a page that shows the picture or a part of it; its title comes as HTML."""
    whole = [read_text(image, "url") for image in list_entries(page, "fullMatchingImages")]
    part = [read_text(image, "url") for image in list_entries(page, "partialMatchingImages")]
    title = " ".join(html.unescape(_TAG.sub("", read_text(page, "pageTitle"))).split())
    picture = next((url for url in (*whole, *part) if url), "")
    return _Sighting(ImageHit(read_text(page, "url"), title, "", SAME if whole else PART), picture)
