"""What every request to Wikimedia's services keeps to: who asks, how often, and what a refusal means."""

import asyncio
import threading
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from pipelines.backends.image_metadata import read_wait
from pipelines.errors import ConfigError, RateLimited, Unavailable

LOOPBACK = ("127.0.0.1", "localhost", "::1")
_ERROR_BYTES = 1 << 14
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
    if status == 403 or (status == 429 and any(word in body[:_ERROR_BYTES].lower() for word in _UNWANTED)):
        raise Unavailable(f"{place} refuses us (HTTP {status}): {body[:200]!r}; see its policy before running again")
    if status == 429 or (status == 503 and wait):
        raise RateLimited(f"{place}: HTTP {status}", wait)
    if status >= 500:
        raise Broken(f"HTTP {status}")
