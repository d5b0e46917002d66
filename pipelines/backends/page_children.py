"""Child processes that turn HTML into text: a page that takes too long or too much costs that page alone."""

import asyncio
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Final

from pipelines.corpus.sandbox import ParserChild

FUNCTION: Final = "pipelines.backends.html_text.extract_text"
CHILDREN: Final = 2
"""At most, for each event loop."""

Child = ParserChild[tuple[str, str]]


@dataclass(frozen=True, slots=True)
class _Room:
    """The children of one loop, each used by one thread at a time."""

    threads: ThreadPoolExecutor
    idle: list[Child]
    life: AsyncIterator[None]


@dataclass(frozen=True, slots=True)
class PageChildren:
    """Children that are started when they are needed and stopped when the event loop ends.

    Attributes:
        function: top-level function from HTML to title and text, as ``package.module.function``.
        seconds: of CPU time that one page may take, and three times that by the clock.
        memory: bytes that a child may use beyond what it uses once started.
    """

    function: str = FUNCTION
    seconds: float = 15.0
    memory: int = 1 << 30
    by_loop: dict[asyncio.AbstractEventLoop, _Room] = field(default_factory=dict, repr=False, compare=False)

    async def convert(self, html: str) -> tuple[str, str]:
        """Return a page's title and text.

        Raises:
            RecordFailed: ``parse-timeout``, ``parse-memory`` or ``parse-crash``.
            ConfigError: if a child cannot be started.
        """
        loop = asyncio.get_running_loop()
        room = self.by_loop.get(loop) or await self._open_room(loop)
        return await loop.run_in_executor(room.threads, self._parse, room.idle, html)

    def _parse(self, idle: list[Child], html: str) -> tuple[str, str]:
        child = idle.pop() if idle else Child(self.function, self.seconds, self.memory, 3 * self.seconds).__enter__()
        try:
            return child.parse(html)
        finally:
            idle.append(child)

    async def _open_room(self, loop: asyncio.AbstractEventLoop) -> _Room:
        threads, idle = ThreadPoolExecutor(CHILDREN, "page-children"), list[Child]()
        life = self._live(loop, threads, idle)
        room = self.by_loop[loop] = _Room(threads, idle, life)
        # A loop closes the generators that were started in it, and that is how this one learns of its end.
        await anext(life)
        return room

    async def _live(
        self, loop: asyncio.AbstractEventLoop, threads: ThreadPoolExecutor, idle: list[Child]
    ) -> AsyncIterator[None]:
        try:
            yield
        finally:
            self.by_loop.pop(loop, None)
            # What is being read is read to its end first, in seconds: its thread would only start a new child.
            await asyncio.to_thread(threads.shutdown, wait=True, cancel_futures=True)
            for child in idle:
                child.__exit__(None, None, None)
