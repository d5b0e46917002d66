"""Asking anew: inside a block, replies that were recorded before a moment are set aside and their requests sent again.

``synth run --retry`` opens it around the records that it names; requests of other records are replayed as ever.
"""

from contextlib import AbstractContextManager
from contextvars import ContextVar

from pipelines.services.traffic import holding

_BEFORE: ContextVar[int | None] = ContextVar("renewed_before", default=None)


def renewing(before: int | None) -> AbstractContextManager[int | None]:
    """Renew what this task and those it starts ask of models, if it was recorded until ``before``, seconds of Unix."""
    return holding(_BEFORE, before)


def find_renewal() -> int | None:
    """Return until when replies are too old here; None where all are replayed."""
    return _BEFORE.get()
