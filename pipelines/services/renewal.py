"""Asking anew: inside a block, replies that were recorded before a moment are set aside and their requests sent again.

``synth run --retry`` opens it around the records that it names; requests of other records are replayed as ever.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_BEFORE: ContextVar[int | None] = ContextVar("renewed_before", default=None)


@contextmanager
def renewing(before: int | None) -> Iterator[None]:
    """Renew what this task and those it starts ask of models, if it was recorded until ``before``, seconds of Unix."""
    token = _BEFORE.set(before)
    try:
        yield
    finally:
        _BEFORE.reset(token)


def find_renewal() -> int | None:
    """Return until when replies are too old here; None where all are replayed."""
    return _BEFORE.get()
