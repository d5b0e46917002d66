"""How much is tried of what could be tried without end: another part each day, or all by ``make test-slow WHOLE=1``.

``SYNTH_DAY`` is the day whose part is tried; the header of a test run tells it.
"""

import os
from collections.abc import Sequence
from datetime import UTC, datetime
from itertools import product
from typing import TypeVar

T = TypeVar("T")
WHOLE = bool(os.environ.get("SYNTH_WHOLE"))
# Set once by the first process, so that workers that start beside midnight try the same.
DAY = int(os.environ.setdefault("SYNTH_DAY", str(datetime.now(UTC).toordinal())))


def draw_every(step: int, cases: Sequence[T]) -> list[T]:
    """Return one of every ``step`` cases; all where the whole is wanted."""
    return list(cases if WHOLE else cases[DAY % step :: step])


def draw_pairs(names: Sequence[str], kinds: Sequence[str]) -> list[tuple[str, str]]:
    """Return each name with one of the kinds in turn; with every kind where the whole is wanted."""
    if WHOLE:
        return list(product(names, kinds))
    return [(name, kinds[(number + DAY) % len(kinds)]) for number, name in enumerate(names)]
