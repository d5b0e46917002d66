"""How much is tried of what could be tried without end: a part each time, all of it by ``make test-slow WHOLE=1``."""

import os
from collections.abc import Sequence
from itertools import product
from typing import TypeVar

T = TypeVar("T")
WHOLE = bool(os.environ.get("SYNTH_WHOLE"))


def draw_every(step: int, cases: Sequence[T]) -> list[T]:
    """Return the first of every ``step`` cases; all where the whole is wanted."""
    return list(cases if WHOLE else cases[::step])


def draw_pairs(names: Sequence[str], kinds: Sequence[str]) -> list[tuple[str, str]]:
    """Return each name with one of the kinds in turn; with every kind where the whole is wanted."""
    if WHOLE:
        return list(product(names, kinds))
    return [(name, kinds[number % len(kinds)]) for number, name in enumerate(names)]
