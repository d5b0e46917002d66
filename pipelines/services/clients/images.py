"""Search by picture by services that speak the protocol of Google Vision or SerpApi's Google Lens, with thumbnails."""

import asyncio
import base64
import html
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, Literal
from urllib.parse import unquote, urlsplit

import orjson

from pipelines.errors import ConfigError, CorruptInput, RateLimited, RecordFailed
from pipelines.pictures import PictureSource, PictureStore, encode_picture, open_pixels
from pipelines.services.addresses import ForbiddenAddress, Guard, read_address
from pipelines.services.clients.http import HttpClient, HttpRequest, NoReply
from pipelines.services.clients.search import JSON_HEADERS, Service, check_serpapi, find_entry, list_entries, read_text
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
class ThumbnailFetcher:
    """Fetches the pictures that a search found and stores small copies.

    Attributes:
        pictures: the image store.
        client: sends the requests; its guard checks every address.
    """

    pictures: PictureStore
    client: HttpClient

    async def fetch_all(self, found: Sequence[tuple[str, str]]) -> tuple[Picture | None, ...]:
        """Return a small copy of each picture, None for one that cannot be fetched.

        Args:
            found: address of the picture, empty for none, and of the page that shows it.

        Raises:
            Unavailable, ConfigError: if the disk refuses a copy, or this machine opens no more connections.
        """
        return tuple(await asyncio.gather(*(self._fetch(url, page) for url, page in found)))

    async def _fetch(self, url: str, page: str) -> Picture | None:
        if not url:
            return None
        try:
            small = await asyncio.to_thread(_shrink, await self._follow(url))
        except (ForbiddenAddress, NoReply, RateLimited, RecordFailed):
            return None
        source = PictureSource(_name_file(url), UNKNOWN, UNKNOWN, "", page)
        return await asyncio.to_thread(self.pictures.add_bytes, small, source)

    async def _follow(self, url: str) -> bytes:
        address = read_address(url)
        for _ in range(_REDIRECTS + 1):
            reply = await self.client.send(HttpRequest(address.url, headers={"Accept": "image/*"}))
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


@dataclass(frozen=True, slots=True)
class _Sighting:
    """A hit, and the picture that was found."""

    hit: ImageHit
    picture: str


@dataclass(frozen=True, slots=True)
class LiveImageSearch:
    """A search by picture that speaks the protocol of Google Vision or of SerpApi's Google Lens.

    Vision takes pictures inline (``POST images:annotate``) and answers with ``webDetection``: pages with the same
    picture first, then similar pictures. Lens takes a picture's address (``GET ?engine=google_lens&url=``) and answers
    with ``visual_matches``; distances are their ranks.

    Attributes:
        protocol: of the two.
        url: address.
        key_env: environment variable with the key; empty for none.
        pictures: the image store, where thumbnails are stored.
        client: sends the requests.
        picture_base: serpapi: where the image store is published; a picture is at ``<base>/<ab>/<sha256>.<ext>``.
        guard: where thumbnails may be fetched; given by tests alone.

    Raises:
        ConfigError: if the protocol needs a base and none is given.
    """

    protocol: Literal["google-vision", "serpapi"]
    url: str
    key_env: str
    pictures: PictureStore = field(repr=False)
    client: HttpClient = field(default_factory=HttpClient, repr=False, compare=False)
    picture_base: str = ""
    guard: Guard = field(default_factory=Guard, repr=False)
    thumbnails: ThumbnailFetcher = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if self.protocol == "serpapi" and not self.picture_base:
            raise ConfigError(
                "live.picture_base is empty: serpapi takes addresses alone; say where the workspace's images/ folder "
                'is published, or images = "google-vision"'
            )
        # One try: pictures of many searches come from a few hosts, and in a queue each gets its turn.
        client = replace(self.client, timeout=min(_SECONDS, self.client.timeout), guard=self.guard)
        object.__setattr__(self, "thumbnails", ThumbnailFetcher(self.pictures, client))

    @property
    def identity(self) -> str:
        """Protocol, version, addresses and bounds."""
        if self.protocol == "serpapi":
            return f"serpapi-lens@{VERSION}:{self.url}:{self.picture_base}:{SIDE}"
        return f"google-vision@{VERSION}:{self.url}:{MOST_SENT}:{_SENT_SIDE}:{SIDE}"

    @property
    def service(self) -> Service:
        """The service, for requests and messages."""
        name = "SerpApi" if self.protocol == "serpapi" else "Google Vision"
        return Service(name, self.url, self.key_env, self.client, "live.images_url")

    async def search_image(self, picture: PictureFile, count: int) -> tuple[ImageHit, ...]:
        """Return at most ``count`` pages with their thumbnails, best first.

        Raises:
            RecordFailed: ``picture-refused`` if the service cannot use the picture; as
                :func:`pipelines.pictures.open_pixels` if a large one cannot be decoded.
            RateLimited, Unavailable, ConfigError: as :meth:`Service.ask`.
        """
        if count < 1:
            return ()
        key = self.service.read_key()
        if self.protocol == "serpapi":
            place = f"{self.picture_base.rstrip('/')}/{picture.sha256[:2]}/{picture.path.name}"
            parameters = {"engine": "google_lens", "output": "json", "url": place}
            query = parameters | ({"api_key": key} if key else {})
            request = HttpRequest(self.url, headers={"Accept": "application/json"}, query=query)
        else:
            body = await asyncio.to_thread(_make_body, picture, min(count, _MOST_RESULTS))
            headers = JSON_HEADERS | ({"X-Goog-Api-Key": key} if key else {})
            request = HttpRequest(self.url, "POST", headers, body=body)
        read = _read_lens if self.protocol == "serpapi" else _read_vision
        found = await self.service.ask(request, lambda reply: read(self.service, self.service.read_json(reply)))
        small = await self.thumbnails.fetch_all([(one.picture, one.hit.url) for one in found[:count]])
        return tuple(replace(one.hit, thumbnail=copy) for one, copy in zip(found, small, strict=False))


def _read_vision(service: Service, reply: Mapping[str, Any]) -> tuple[_Sighting, ...]:
    answers = list_entries(reply, "responses")
    if len(answers) != 1:
        raise NoReply(f"a reply of another form: {len(answers)} responses to one request")
    error = find_entry(answers[0], "error")
    if error:
        said = service.redact(read_text(error, "message").encode())[:200]
        if error.get("code") == _INVALID:
            raise RecordFailed("picture-refused", f"{service.place}: {said}")
        raise NoReply(f"error {error.get('code')}: {said}")
    return _read_web(find_entry(answers[0], "webDetection"))


def _read_lens(service: Service, reply: Mapping[str, Any]) -> tuple[_Sighting, ...]:
    check_serpapi(service, reply)
    return tuple(
        _Sighting(
            ImageHit(url, read_text(match, "title"), read_text(match, "snippet", "source"), float(rank)),
            read_text(match, "thumbnail", "image"),
        )
        for rank, match in enumerate(list_entries(reply, "visual_matches"), start=1)
        if (url := read_text(match, "link")).startswith(("https://", "http://"))
    )


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
