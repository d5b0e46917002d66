"""Pictures that feeds and articles name by address: fetched once each, politely, from public hosts alone."""

import asyncio
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path

from pipelines.errors import RateLimited, Unavailable
from pipelines.files import write_bytes
from pipelines.ids import digest_value
from pipelines.services.addresses import Address, ForbiddenAddress, Guard
from pipelines.services.clients.http import HttpClient, HttpReply, HttpRequest, NoReply, TooLarge

REDIRECTS = 5
SERVER_ERROR = 500
NAMED = 3
"""Of addresses that did not reply, so many are named."""
REFUSED = ".none"
"""Ending of a note in place of a picture that a host does not give; it is not asked again."""


@dataclass(frozen=True, slots=True)
class NewsPictures:
    """Fetches pictures into a folder, under the digest of their addresses.

    Attributes:
        folder: of the pictures of all runs of a workspace.
        contact: mail address or page in the User-Agent.
        client: limits and tries.
        guard: which addresses may be connected to.
    """

    folder: Path
    contact: str
    client: HttpClient = field(default_factory=HttpClient, repr=False)
    guard: Guard = field(default_factory=Guard, repr=False)

    async def fetch_all(self, urls: Iterable[str]) -> dict[str, Path]:
        """Return the files of the pictures at some addresses; one that its host does not give is left out.

        Raises:
            Unavailable: naming addresses, if no host replied and no picture is at hand: the network is down.
        """
        wanted = sorted(set(urls))
        found = self.find_at_hand(wanted)
        new = [url for url in wanted if url not in found and not self._places(url)[1].exists()]
        fetcher = replace(self.client, guard=self.guard)
        unanswered = await asyncio.gather(*(self._fetch(fetcher, url) for url in new))
        silent = [url for url, is_silent in zip(new, unanswered, strict=True) if is_silent]
        found |= self.find_at_hand(new)
        if silent and silent == new and not found:
            raise Unavailable(
                f"pictures of the news: none of {len(silent):,} addresses replied; run again when they do: "
                + ", ".join(silent[:NAMED])
            )
        return found

    def find_at_hand(self, urls: Iterable[str]) -> dict[str, Path]:
        """Return the files of the pictures at some addresses that were fetched before."""
        return {url: place for url in sorted(set(urls)) if (place := self._places(url)[0]).is_file()}

    def _places(self, url: str) -> tuple[Path, Path]:
        name = digest_value(url)
        return self.folder / name, self.folder / f"{name}{REFUSED}"

    async def _fetch(self, fetcher: HttpClient, url: str) -> bool:
        """Fetch one picture; return whether no reply came, so that it may be asked for again."""
        picture, _ = self._places(url)
        try:
            reply = await self._follow(fetcher, self.guard.read(url))
        except (ForbiddenAddress, TooLarge) as error:
            self._refuse(url, str(error))
            return False
        except (NoReply, RateLimited):
            return True
        if reply.status == 200:
            write_bytes(picture, reply.body)
        elif reply.is_busy or reply.status >= SERVER_ERROR:
            return True
        else:
            self._refuse(url, f"HTTP {reply.status}")
        return False

    def _refuse(self, url: str, why: str) -> None:
        """Note that a picture is not to be had; what is left of one that came once goes."""
        picture, note = self._places(url)
        write_bytes(note, why.encode())
        picture.unlink(missing_ok=True)

    async def _follow(self, fetcher: HttpClient, address: Address) -> HttpReply:
        headers = {"Accept": "image/*", "User-Agent": f"synth ({self.contact})"}
        for _ in range(REDIRECTS + 1):
            reply = await fetcher.send(HttpRequest(address.url, headers=headers))
            if not reply.location:
                return reply
            address = self.guard.read(reply.location, address.url)
        raise ForbiddenAddress(f"more than {REDIRECTS} redirects")
