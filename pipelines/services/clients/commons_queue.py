"""What many records ask Wikimedia Commons at once: joined into few requests about files, and counted where fetched.

The API is asked by one request at a time, so while one is under way the files of all other records gather for the next.
"""

import asyncio
import time
from collections.abc import Sequence
from dataclasses import dataclass, field

from pipelines.services.image_metadata import MOST_FILES, FileFetch, ImageFacts, ImageMetadata, RemoteFile

GATHER = 0.05
"""Seconds that the first file of a request waits for the files of other records."""


@dataclass(slots=True, eq=False)
class _Waiting:
    """The files of one event loop that are to be asked about, with the reply that is awaited for each."""

    files: dict[str, asyncio.Future[ImageFacts | None]] = field(default_factory=dict)
    full: asyncio.Event = field(default_factory=asyncio.Event)
    task: asyncio.Task[None] | None = None


@dataclass(frozen=True, slots=True)
class JoinedMetadata:
    """A service that knows pictures, asked of fifty files of any records in one request."""

    service: ImageMetadata
    _loops: dict[asyncio.AbstractEventLoop, _Waiting] = field(default_factory=dict, repr=False, compare=False)

    @property
    def identity(self) -> str:
        """The service's: how requests are cut decides no reply."""
        return self.service.identity

    async def describe_images(self, files: Sequence[str]) -> dict[str, ImageFacts | None]:
        """Return what the service knows of each file; an error of a request meets all that wait for it.

        Raises as :meth:`ImageMetadata.describe_images`.
        """
        if not files:
            return {}
        loop = asyncio.get_running_loop()
        waiting = self._loops.setdefault(loop, _Waiting())
        asked = {file: waiting.files.setdefault(file, loop.create_future()) for file in files}
        if len(waiting.files) >= MOST_FILES:
            waiting.full.set()
        if waiting.task is None:
            waiting.task = asyncio.create_task(self._ask_all(waiting))
        # A record that is interrupted leaves the replies to those that wait for the same files.
        replies = await asyncio.gather(*map(asyncio.shield, asked.values()))
        return dict(zip(asked, replies, strict=True))

    async def _ask_all(self, waiting: _Waiting) -> None:
        """Ask until no file waits; then nothing is kept of the event loop."""
        try:
            while waiting.files:
                await _gather(waiting)
                batch = {file: waiting.files.pop(file) for file in list(waiting.files)[:MOST_FILES]}
                asking = asyncio.create_task(self._ask(list(batch)))
                await asyncio.wait([asking])
                for place, reply in enumerate(batch.values()):
                    if (error := asking.exception()) is None:
                        reply.set_result(asking.result()[place])
                    else:
                        reply.set_exception(error)
                        # Marks it as seen: asyncio complains of errors of those that nobody waits for any more.
                        reply.exception()
        finally:
            self._loops.pop(asyncio.get_running_loop(), None)

    async def _ask(self, files: Sequence[str]) -> list[ImageFacts | None]:
        facts = await self.service.describe_images(files)
        return [facts[file] for file in files]


async def _gather(waiting: _Waiting) -> None:
    """Wait until a request is full, at most :data:`GATHER`."""
    waiting.full.clear()
    if len(waiting.files) < MOST_FILES:
        try:
            async with asyncio.timeout(GATHER):
                await waiting.full.wait()
        except TimeoutError:
            return


@dataclass(slots=True)
class CountedFetch:
    """A service that hands out pictures, with counts of what came and what waits."""

    service: FileFetch
    fetched: int = 0
    waiting: int = 0
    _started: float = 0.0

    @property
    def identity(self) -> str:
        """The service's."""
        return self.service.identity

    async def fetch_file(self, file: RemoteFile) -> bytes:
        """Return a picture, as :meth:`FileFetch.fetch_file` says."""
        self._started = self._started or time.monotonic()
        self.waiting += 1
        try:
            data = await self.service.fetch_file(file)
        finally:
            self.waiting -= 1
        self.fetched += 1
        return data

    def describe(self) -> str:
        """Return how far the fetching is: how many came, how many wait, and for how long; empty where none waits."""
        if not self.fetched or not self.waiting:
            return ""
        rate = self.fetched / max(time.monotonic() - self._started, 1e-9)
        return f"{self.fetched:,} pictures fetched, {self.waiting:,} wait for {self.waiting / rate:,.0f} s"
