"""How much of the bench is tried: all of it, or the part of `make bench SAMPLE=1`."""

import os
from collections.abc import Sequence
from typing import TypeVar

T = TypeVar("T")
SAMPLE = bool(os.environ.get("SYNTH_SAMPLE"))


def draw_every(step: int, cases: Sequence[T]) -> list[T]:
    """Return all cases; of a sample, one of every ``step``."""
    return list(cases[::step] if SAMPLE else cases)
