"""Difficulty: attempts summed up per condition and solver, with intervals."""

from schemas.base import Nested
from schemas.groundings import Grounding
from schemas.tasks import Condition


class Cell(Nested):
    """``correct`` of ``attempts`` under one condition by one solver, with a 95% Wilson interval."""

    condition: Condition
    """``text``: question only. ``image``: with the picture. ``image-search``: and what one image search returns."""
    solver: str
    prompt: str
    attempts: int
    correct: int
    unscored: int
    low: float
    high: float


class Difficulty(Grounding):
    """A grounded question with its measured difficulty. ``record_id`` stays the question's id."""

    cells: tuple[Cell, ...]
