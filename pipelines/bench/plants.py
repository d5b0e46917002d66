"""Minimal pairs: a clean row and the same row with one planted defect, with the check that must tell them apart."""

from collections.abc import Callable
from dataclasses import dataclass
from random import Random

from pipelines.bench.vocabulary import Vocabulary
from pipelines.checks.verdicts import CheckResult
from pipelines.scoring.answers import type_answer
from schemas.proofs import Answer


@dataclass(frozen=True, slots=True)
class Pair:
    """What the check said of both twins, and what was planted."""

    plant: str
    """The defective value, for a reader."""
    clean: CheckResult
    defective: CheckResult
    codes: tuple[str, ...]
    """Codes that count as having recognised the defect."""
    returned: tuple[str, ...] = ()
    """All codes of the defective twin, where several checks looked at it."""
    question: str = ""
    """Record id of the accepted question it was planted in; empty for a text alone."""
    missing: float | None = None
    """Missing rate of the question's world."""

    @property
    def undecided(self) -> bool:
        """Whether the defective twin was refused as UNKNOWN by a code that does not name the defect."""
        return self.defective.outcome == "UNKNOWN" and self.defective.code not in self.codes

    @property
    def caught(self) -> bool:
        """Whether the defective twin was refused with a right code."""
        return not self.defective.passed and self.defective.code in self.codes

    @property
    def flips(self) -> bool:
        """Whether the check told the twins apart."""
        return self.caught and self.clean.passed

    def list_returned(self) -> tuple[str, ...]:
        """Return every code that the defective twin drew, once; ``PASS`` when there is none."""
        return tuple(dict.fromkeys(self.returned)) or (self.defective.code or "PASS",)


@dataclass(frozen=True, slots=True)
class Defect:
    """One kind of defect of a text alone; what its check must reach stands in ``catalogue.DEMANDS``."""

    code: str
    title: str
    plant: Callable[[Vocabulary, Random], Pair]


def type_text(text: str) -> Answer:
    """Return the answer that a word or name of a vocabulary makes.

    Raises:
        AssertionError: if it makes none: a clean twin must have one.
    """
    answer = type_answer(text, "", "label")
    if answer is None:
        raise AssertionError(f"bench vocabulary: {text!r} has no type; a clean twin must have one")
    return answer
