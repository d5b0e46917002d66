"""Enhancements: on a share of the questions the picture is degraded, and a tool is known that repairs it."""

from typing import Literal

from schemas.base import Nested
from schemas.difficulty import Difficulty
from schemas.groundings import Picture
from schemas.searches import SearchResult

Degradation = Literal["blur", "downsample", "perspective"]
"""Controlled degradations of OpenSearch-VL, section 3.2."""
Repair = Literal["sharpen", "super_resolution", "perspective_correct"]
"""The tool that each is paired with, in the same order."""
RepairTest = Literal["text", "image-search"]
"""What shows whether a picture is of use: its words can be read, or a search by picture finds the anchor."""


class Parameter(Nested):
    """One number that decided a degradation, in pixels unless its name says otherwise."""

    name: str
    value: float


class Trial(Nested):
    """One degradation of one picture, and what a test said before, after, and after the repair."""

    degradation: Degradation
    repair: Repair
    strength: float
    """0..1, as configured; ``parameters`` say what it came to in pixels."""
    parameters: tuple[Parameter, ...]
    test: RepairTest
    before: bool
    degraded: bool
    repaired: bool


class Enhancement(Difficulty):
    """A question on its way to the teacher: as it was, or with a degraded picture.

    A question with a degraded picture is another question: ``record_id`` is new, ``parent_id`` is that of the question
    with the original picture.
    """

    original: Picture | None = None
    """The picture before, where it was degraded."""
    trial: Trial | None = None
    """How it was degraded, where it was."""
    found: tuple[SearchResult, ...] = ()
    """What a search by the picture finds, for trainers that replay it (SenseNova-MARS, MMSearch-R1)."""
