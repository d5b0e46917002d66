"""Small copies of the pictures that a live search found, fetched from wherever they are with every address checked."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Final
from urllib.parse import unquote, urlsplit

from pipelines.addresses import ForbiddenAddress, Guard, read_address
from pipelines.backends.live_http import LiveClient, LiveManners, LiveRequest, open_client
from pipelines.backends.openai_errors import NoReply
from pipelines.errors import RateLimited, RecordFailed
from pipelines.pictures import PictureSource, PictureStore
from pipelines.pixels import encode_picture, open_pixels
from schemas.groundings import Picture

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
