"""Difficulty: attempts summed up per condition and solver, with intervals."""

from typing import Literal

from schemas.base import Nested
from schemas.groundings import Grounding
from schemas.tasks import Condition

SearchNeed = Literal["", "search-free", "image", "text", "mixed"]
"""What has to be searched (MMSearch-R1, section 3.1, search balancing); empty where it was not measured."""
Standing = Literal["solved", "proved", "unproved"]
"""Why a question counts as one that can be solved. ``solved``: some attempt was right. ``proved``: none was, and the
proof stands. ``unproved``: none was and there is no proof, so that it may be a defect as well as hard."""


class Cell(Nested):
    """``correct`` of ``attempts`` under one condition by one solver, with a 95% Wilson interval."""

    condition: Condition
    role: str = "solver"
    """Who attempted, as the configuration names it."""
    solver: str
    """The model's name."""
    prompt: str
    day: str = ""
    """Latest day of its replies, ``2026-11-22``; empty for scripted players, who answer alike on every day."""
    planned: int = 0
    """Attempts that were to be made; fewer were made where no further one could change the decision."""
    attempts: int
    correct: int
    unscored: int
    low: float
    """Of correct among the scored. After an early stop the interval is that of the attempts made, and leans towards
    what stopped them."""
    high: float


class Alternative(Nested):
    """A wrong answer that different attempts gave and the corpus refutes; any other refuses the question."""

    text: str
    times: int


class Difficulty(Grounding):
    """A grounded question with its measured difficulty. ``record_id`` stays the question's id."""

    cells: tuple[Cell, ...]
    search_need: SearchNeed = ""
    standing: Standing = "proved"
    alternatives: tuple[Alternative, ...] = ()
    swapped_with: str = ""
    """Title of the entity whose picture was shown in place of the true one; empty where none was."""
    left_out: tuple[str, ...] = ()
    """What the preset wants and could not be done: conditions without a picture to show, ``picture-too-simple`` without
    a judge."""
