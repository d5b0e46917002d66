"""Checks of questions by plugins: asked after our own, of the same text, answer and proof."""

from dataclasses import dataclass, replace
from functools import partial
from typing import Protocol

from pipelines.checks.examination import Claim
from pipelines.checks.verdicts import Check, CheckResult
from pipelines.errors import ConfigError, SynthError
from pipelines.graph.query import Indexes
from pipelines.plugins import Plugin


class QuestionCheck(Protocol):
    """What a plugin of the group ``synth.checks`` makes.

    It is called with the corpus and what a question claims, and decides by these alone: ``synth verify`` asks it again.
    It does no input or output, and the same claim has the same result each time.
    """

    @property
    def reasons(self) -> dict[str, str]:
        """What it refuses questions for, with what each means; a refused row has it as ``plugin:reason``."""

    def __call__(self, ground: Indexes, claim: Claim) -> CheckResult:
        """Return PASS, or FAIL or UNKNOWN with one of its reasons as the code."""


@dataclass(frozen=True)
class PluggedCheck:
    """A plugin's check of questions."""

    plugin: Plugin

    def make_check(self, ground: Indexes, claim: Claim) -> Check:
        """Return the check of one question."""
        return partial(self._ask, ground, claim)

    def _ask(self, ground: Indexes, claim: Claim) -> CheckResult:
        entry = self.plugin.entry
        where = f"plugin {entry.describe()}"
        try:
            result = self.plugin.made(ground, claim)
        except SynthError:
            raise
        except Exception as error:
            raise ConfigError(f"{where} failed at {claim.text!r}: {type(error).__name__}: {error}") from error
        if not isinstance(result, CheckResult) or not (result.passed or result.code in entry.reasons):
            raise ConfigError(f"{where} returned {result!r}; its reasons are {', '.join(entry.reasons) or 'none'}")
        return result if result.passed else replace(result, code=f"{entry.name}:{result.code}")
