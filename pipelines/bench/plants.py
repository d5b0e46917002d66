"""Minimal pairs: a clean row and the same row with one planted defect, with the check that must tell them apart."""

from collections.abc import Callable
from dataclasses import dataclass
from random import Random

from pipelines.bench.vocabulary import Vocabulary
from pipelines.checks.verdicts import CheckResult


@dataclass(frozen=True, slots=True)
class Pair:
    """What the check said of both twins, and what was planted."""

    plant: str
    """The defective value, for a reader."""
    clean: CheckResult
    defective: CheckResult
    codes: tuple[str, ...]
    """Codes that count as having recognised the defect."""


@dataclass(frozen=True, slots=True)
class Defect:
    """One kind of defect with the demands on its check (research/quality.md 4.3)."""

    code: str
    title: str
    recall: float
    false_alarm: float
    plant: Callable[[Vocabulary, Random], Pair]
