"""Room for decoding: how many pixels all threads of a process may have in the making at once."""

from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from threading import Condition

from pipelines.picturefiles.limits import MAX_PIXELS


@dataclass(slots=True)
class DecodingRoom:
    """Lets decoders in as long as there is room, whoever came first before all others: a large one is not starved.

    Nobody may enter while inside.
    """

    pixels: int
    _used: int = 0
    _waiting: deque[object] = field(default_factory=deque)
    _changed: Condition = field(default_factory=Condition)

    @contextmanager
    def enter(self, pixels: int) -> Iterator[None]:
        """Wait until a picture of so many pixels has room, and hold it until the block ends; all of it for a larger."""
        wanted = min(pixels, self.pixels)
        with self._changed:
            self._queue(wanted)
            self._used += wanted
        try:
            yield
        finally:
            with self._changed:
                self._used -= wanted
                self._changed.notify_all()

    def _queue(self, wanted: int) -> None:
        place = object()
        self._waiting.append(place)
        try:
            self._changed.wait_for(lambda: self._waiting[0] is place and self._used + wanted <= self.pixels)
        finally:
            # Also where the wait was interrupted: nobody may stand behind one that is gone.
            self._waiting.remove(place)
            self._changed.notify_all()


ROOM = DecodingRoom(MAX_PIXELS)
"""Of this process: one of the largest pictures at once, or eight of a telephone's twelve megapixels."""
