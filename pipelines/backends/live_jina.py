"""Reading pages by a service that speaks the protocol of Jina's reader: ``GET <base>/<address>``, JSON back.

The service fetches the page from where it is, which may be inside a network of ours. So the asked address and the one
where the page was found are checked here, as far as names can be looked up here.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import orjson

from pipelines.addresses import Address, Guard, read_address
from pipelines.backends.live_http import LiveManners, LiveReply, LiveRequest, TooLarge, open_client
from pipelines.backends.live_reader import MOST_SILENT, Silences
from pipelines.backends.live_service import Service, find_entry, read_text
from pipelines.backends.openai_errors import NoReply, Silence
from pipelines.backends.page_text import CHARACTERS, read_plain, read_title
from pipelines.backends.protocols import PageNotFound, PageText
from pipelines.errors import RecordFailed

VERSION: Final = 1
_ABOUT_THE_PAGE = frozenset([400, 404, 406, 410, 413, 415, 422, 451])
"""Statuses with which the reader says that it does not read this page."""
_TARGET_FAILED = re.compile(r"target url returned error (?P<status>[45][0-9]{2})", re.IGNORECASE)


class _PageFails(NoReply):
    """The service answers that it fails at this page."""


@dataclass(frozen=True, slots=True)
class JinaReader:
    """Reads pages by a reader service.

    Attributes:
        url: address to which that of a page is added.
        key_env: environment variable that holds the key; empty for none.
        manners: towards the service.
        guard: which addresses may be asked for; given by tests alone.
        service: as it is asked.
        silences: hosts of pages at which the service fell silent.
    """

    url: str
    key_env: str
    manners: LiveManners = field(default_factory=LiveManners)
    guard: Guard = field(default_factory=Guard, repr=False)
    service: Service = field(init=False, repr=False, compare=False)
    silences: Silences = field(init=False, default_factory=Silences, repr=False, compare=False)

    def __post_init__(self) -> None:
        client = open_client(self.manners)
        object.__setattr__(self, "service", Service("reader", self.url, self.key_env, client, "live.reader_url"))

    @property
    def identity(self) -> str:
        """Protocol, version, address and bounds."""
        return f"jina-reader@{VERSION}:{self.url}:{self.manners.reply_bytes}:{CHARACTERS}"

    async def read_page(self, url: str) -> PageText:
        """Return a page under the address at which it was found.

        Raises:
            ForbiddenAddress: if the address, or the one at which the page was found, is not public.
            PageNotFound: if the service says that it cannot read the page; the message says why.
            RateLimited, Unavailable, ConfigError: as :meth:`Service.ask`.
        """
        address = await self._check(url)
        try:
            reply = await self._ask(address)
        except RecordFailed as error:
            raise PageNotFound(f"{url}: {error}") from error
        found = await self._check(read_text(reply, "url") or address.url)
        failed = _TARGET_FAILED.search(read_text(reply, "warning"))
        if failed:
            raise PageNotFound(f"{url}: HTTP {failed['status']}")
        content = reply.get("content")
        text = read_plain(content) if isinstance(content, str) else ""
        if not text:
            raise PageNotFound(f"{url}: a page without text")
        return PageText(found.url, read_title(read_text(reply, "title")), text)

    async def _check(self, url: str) -> Address:
        address = read_address(url)
        try:
            await self.guard.resolve(address.host, address.port)
        except OSError:
            # Where no name can be looked up, none leads from here to anywhere; the service looks up its own.
            return address
        return address

    async def _ask(self, address: Address) -> Mapping[str, Any]:
        key = self.service.read_key()
        headers = {"Accept": "application/json", "X-Retain-Images": "none", "X-Timeout": str(self._choose_patience())}
        if key:
            headers["Authorization"] = f"Bearer {key}"
        request = LiveRequest(f"{self.url.rstrip('/')}/{address.url}", headers=headers)

        async def attempt() -> Mapping[str, Any]:
            reply = await self.service.client.send(request)
            self.silences.clear()
            return self._read(address, reply)

        try:
            return await self.service.client.try_often(self.url, attempt)
        except (_PageFails, TooLarge) as error:
            raise PageNotFound(f"{address.url}: {error}") from None
        except Silence as error:
            # A page can keep the service waiting for longer than we wait for the service.
            if self.silences.add(address.host) > MOST_SILENT:
                raise self.service.give_up(error) from None
            raise PageNotFound(f"{address.url}: {error}") from None
        except NoReply as error:
            raise self.service.give_up(error) from None

    def _choose_patience(self) -> int:
        """Return the seconds that the service may wait for a page: less than we wait for the service."""
        return max(1, int(self.manners.timeout / 2))

    def _read(self, address: Address, reply: LiveReply) -> Mapping[str, Any]:
        if reply.status == 200:
            read = self.service.read_json(reply)
            data = find_entry(read, "data")
            if not data:
                raise NoReply(f"a reply of another form: {sorted(read)[:8]}; expected data")
            return data
        if reply.status in _ABOUT_THE_PAGE and self._is_own_word(reply):
            raise PageNotFound(f"{address.url}: {self.service.quote(reply)[:200]}")
        if reply.status >= 500 and reply.status != 503 and self._is_own_word(reply):
            raise _PageFails(f"HTTP {reply.status}: {self.service.quote(reply)[:200]}")
        raise self.service.explain(reply)

    def _is_own_word(self, reply: LiveReply) -> bool:
        """Say whether the reader itself speaks, in JSON, and not a machine before it; money is no page's matter."""
        try:
            said = orjson.loads(reply.body)
        except orjson.JSONDecodeError:
            return False
        return isinstance(said, dict) and ("code" in said or "name" in said) and not self.service.is_out_of_money(reply)
