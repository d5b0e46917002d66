"""Threads that make batches: pictures are decoded by some while one more has the model encode what is ready.

Whoever asks meanwhile shares the batches, turn by turn. No more is decoded than two batches hold, so that memory does
not grow with what is asked for. What a model computes is not known here.
"""

import atexit
import os
import threading
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from pipelines.backends.protocols import PictureFile
from pipelines.errors import RecordFailed, SynthError, Unavailable

Asked = PictureFile | str
"""A picture, or a text."""
Prepared = NDArray[Any]
"""What a model takes of one: pixels or words as numbers, of one shape for all pictures and one for all texts."""
Rows = NDArray[np.float32]
"""Embeddings of shape (n, d)."""
Undone = RecordFailed | Unavailable
"""Why one picture was not encoded: it cannot be decoded, or its file is gone."""
ROOM = 2
"""Batches that are decoded ahead."""


class EncodingModel(Protocol):
    """A loaded model; it is prepared for by several threads and run by one."""

    def prepare(self, asked: Asked) -> Prepared:
        """Return what the model takes.

        Raises:
            RecordFailed: if a picture cannot be decoded.
            Unavailable: if its file is gone.
        """

    def encode_pictures(self, prepared: Sequence[Prepared]) -> Rows:
        """Return the embeddings of some pictures."""

    def encode_texts(self, prepared: Sequence[Prepared]) -> Rows:
        """Return the embeddings of some texts."""


@dataclass(slots=True, eq=False)
class Request:
    """What one caller asked for, and how much of it there is."""

    asked: Sequence[Asked]
    future: "Future[Rows]" = field(default_factory=Future)
    taken: int = 0
    """How many were begun, in order."""
    left: int = 0
    rows: Rows | None = None
    failed: tuple[int, Undone] | None = None
    """The first that cannot be encoded, with the reason."""

    def __post_init__(self) -> None:
        self.left = len(self.asked)

    def needs(self, place: int) -> bool:
        """Whether it matters still what is at a place: nothing does after one that failed, or once nobody waits."""
        return not self.future.done() and (self.failed is None or place < self.failed[0])

    def fail(self, place: int, error: Undone) -> None:
        """Note that one cannot be encoded; the first in order is what the caller is told."""
        if self.failed is None or place < self.failed[0]:
            self.failed = (place, error)

    def put(self, place: int, row: Rows) -> None:
        """Note an embedding."""
        if self.rows is None:
            self.rows = np.empty((len(self.asked), len(row)), dtype=np.float32)
        self.rows[place] = row

    def count_done(self) -> None:
        """Count one that nothing more will happen to, and tell the caller after the last."""
        self.left -= 1
        if self.left or not self._may_tell():
            return
        if self.failed is not None:
            self.future.set_exception(self.failed[1])
        elif self.rows is not None:
            self.future.set_result(self.rows)

    def refuse(self, error: Exception) -> None:
        """Tell the caller that there will be nothing."""
        if self._may_tell():
            self.future.set_exception(error)

    def _may_tell(self) -> bool:
        return not self.future.done() and self.future.set_running_or_notify_cancel()


Ready = tuple[Request, int, Prepared]
"""A caller's request, a place in it, and what the model takes of what is there."""


class EncodingEngine:
    """The threads, started by the first request; they serve any number of event loops.

    Args:
        name: the model's name, for messages.
        load: loads the model; called once, in the thread that runs it.
        batch: pictures, or texts, encoded together at most.
        threads: threads that decode; 0 is one for each core.
    """

    def __init__(self, name: str, load: Callable[[], EncodingModel], batch: int, threads: int) -> None:
        self._name = name
        self._load = load
        self._batch = batch
        self._count = threads or len(os.sched_getaffinity(0))
        self._lock = threading.Lock()
        self._room = threading.Condition(self._lock)
        """Told when there is something to decode, and room for it."""
        self._full = threading.Condition(self._lock)
        """Told when there is something to encode."""
        self._requests: deque[Request] = deque()
        """Those of which something has not been begun, whose turn it is first."""
        self._ready: deque[Ready] = deque()
        self._busy = 0
        """Threads that decode something now."""
        self._open: set[Request] = set()
        """Those whose callers wait."""
        self._threads: list[threading.Thread] = []
        self._end: Exception | None = None
        """Why it encodes no more; None while it does."""

    def ask(self, asked: Sequence[Asked]) -> "Future[Rows]":
        """Have pictures or texts encoded.

        Args:
            asked: one at least.

        Returns:
            What will hold one row each, in order, or why the first that was not encoded could not be.
        """
        request = Request(asked)
        with self._lock:
            if self._end is not None:
                request.refuse(self._end)
                return request.future
            if not self._threads:
                self._start(self._encode_all)
                atexit.register(self.close)
            self._open.add(request)
            self._requests.append(request)
            self._room.notify_all()
        return request.future

    def close(self) -> None:
        """End the threads; whoever still waits is refused, and so is whoever comes later."""
        self._break(Unavailable(f"encoder {self._name}: it was closed"))
        atexit.unregister(self.close)
        for thread in self._threads:
            thread.join()

    def _start(self, work: Callable[..., None], *arguments: object) -> None:
        thread = threading.Thread(target=work, args=arguments, name=f"encoder {self._name}", daemon=True)
        self._threads.append(thread)
        thread.start()

    def _break(self, why: Exception) -> None:
        """Refuse all that waits and all that comes; only the first reason counts."""
        with self._lock:
            self._end = self._end or why
            for request in self._open:
                request.refuse(self._end)
            self._open.clear()
            self._requests.clear()
            self._ready.clear()
            self._room.notify_all()
            self._full.notify_all()

    def _prepare_all(self, model: EncodingModel) -> None:
        """Decode what is asked for until the end."""
        why: Exception = Unavailable(f"encoder {self._name}: a thread that decodes ended early; run again")
        try:
            while taken := self._take():
                self._put(*taken, _prepare(model, *taken))
            why = Unavailable(f"encoder {self._name}: it was closed")
        finally:
            # Only a defect comes here before the end; nobody may wait for a thread that is gone.
            self._break(why)

    def _take(self) -> tuple[Request, int] | None:
        """Wait for something to decode and for room; None when it is time to end."""
        with self._lock:
            while self._end is None:
                if self._requests and len(self._ready) + self._busy < ROOM * self._batch:
                    request = self._requests.popleft()
                    place, request.taken = request.taken, request.taken + 1
                    if request.taken < len(request.asked) and not request.future.done():
                        self._requests.append(request)
                    self._busy += 1
                    return request, place
                self._room.wait()
        return None

    def _put(self, request: Request, place: int, prepared: Prepared | Undone | None) -> None:
        """Hand on what was decoded; what need not, or cannot, be encoded is done."""
        with self._lock:
            self._busy -= 1
            if isinstance(prepared, np.ndarray) and request.needs(place):
                self._ready.append((request, place, prepared))
            else:
                if isinstance(prepared, Undone):
                    request.fail(place, prepared)
                self._count_done(request)
            if self._is_due():
                self._full.notify()

    def _count_done(self, request: Request) -> None:
        request.count_done()
        if request.future.done():
            self._open.discard(request)

    def _is_due(self) -> bool:
        """Whether a batch should be encoded: it is full, or nothing more is on its way."""
        coming = bool(self._requests) or self._busy > 0
        return len(self._ready) >= self._batch or (bool(self._ready) and not coming)

    def _encode_all(self) -> None:
        """Load the model and encode batch after batch until the end."""
        why: Exception = Unavailable(f"encoder {self._name}: its thread ended early; run again")
        try:
            model = self._load()
            with self._lock:
                for _ in range(self._count):
                    self._start(self._prepare_all, model)
            while batch := self._gather():
                self._encode(model, batch)
            why = Unavailable(f"encoder {self._name}: it was closed")
        except SynthError as error:
            # It cannot be loaded, or cannot encode: the next request would fare no better.
            why = error
        finally:
            self._break(why)

    def _gather(self) -> list[Ready]:
        """Wait for a batch; empty when it is time to end."""
        with self._lock:
            while self._end is None and not self._is_due():
                self._full.wait()
            batch = [self._ready.popleft() for _ in range(min(self._batch, len(self._ready)))]
            self._room.notify_all()
        return batch

    def _encode(self, model: EncodingModel, batch: Sequence[Ready]) -> None:
        texts = [ready for ready in batch if isinstance(ready[0].asked[ready[1]], str)]
        pictures = [ready for ready in batch if not isinstance(ready[0].asked[ready[1]], str)]
        for part, encode in ((pictures, model.encode_pictures), (texts, model.encode_texts)):
            if not part:
                continue
            rows = encode([prepared for _, _, prepared in part])
            with self._lock:
                for (request, place, _), row in zip(part, rows, strict=True):
                    request.put(place, row)
                    self._count_done(request)


def _prepare(model: EncodingModel, request: Request, place: int) -> Prepared | Undone | None:
    """Return what the model takes, or why there is nothing; None where nobody needs it any more."""
    if not request.needs(place):
        return None
    try:
        return model.prepare(request.asked[place])
    except (RecordFailed, Unavailable) as error:
        return error
