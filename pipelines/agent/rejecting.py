"""The rejection cascade of one rollout: every reason against it, in the order in which they decide.

Format and the answer always decide. The mechanical checks (research/quality.md 1H, R1-R10) are those that the rules
name. A check that cannot tell refuses as one that fails does.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import get_args

from pipelines.agent.judging import Judgement
from pipelines.agent.lengths import measure_rollout
from pipelines.agent.spans import ANSWER, list_forms
from pipelines.agent.trails import read_trail
from pipelines.checks.rollouts.claims import check_claims
from pipelines.checks.rollouts.contamination import check_contamination
from pipelines.checks.rollouts.coverage import check_path
from pipelines.checks.rollouts.form import check_tool_errors, check_turns
from pipelines.checks.rollouts.length import check_length
from pipelines.checks.rollouts.locating import locate_form
from pipelines.checks.rollouts.pictures import check_images
from pipelines.checks.rollouts.repeats import check_repetition
from pipelines.checks.rollouts.support import check_jumps, check_sought, check_support, find_support
from pipelines.checks.rollouts.trails import Trail
from pipelines.checks.verdicts import CheckResult
from pipelines.scoring.compare import compare_answers, is_no_answer
from pipelines.scoring.lengths import EstimatedTokens, TokenCounter
from pipelines.settings import ALL_CHECKS
from schemas.reasons import TrajectoryReason
from schemas.rollouts import Rollout
from schemas.trajectories import Support

_ORDER: tuple[TrajectoryReason, ...] = get_args(TrajectoryReason)
_ASKED_OF_ANSWERS = ("from-memory", "unsupported", "path-not-covered", "unseen-claim")
"""Checks of how an answer was come by; a rollout that gives none is not held to them."""


@dataclass(frozen=True, slots=True)
class TrajectoryRules:
    """What a rollout is held to.

    Attributes:
        max_accepted: trajectories kept of a question; 2 in VSearcher and in OpenSearch-VL.
        checks: mechanical checks that refuse.
        max_tokens: length a student is trained at, pictures included; 0 is no limit.
        image_pixels: of a picture as a student sees it.
        overlap: share of words that two queries have in common to be a repetition.
        max_repeats: repetitions that a rollout may have.
        min_process: lowest mean mark of a process judge.
        fatal_errors: consecutive tool errors that are fatal, as the rollouts were made with.
    """

    max_accepted: int = 2
    checks: tuple[str, ...] = ALL_CHECKS
    max_tokens: int = 32_000
    image_pixels: int = 262_144
    overlap: float = 0.8
    max_repeats: int = 0
    min_process: float = 3.0
    fatal_errors: int = 3


DEFAULT_RULES = TrajectoryRules()
ESTIMATED = EstimatedTokens()


@dataclass(frozen=True, slots=True)
class Finding:
    """One reason against a rollout."""

    reason: TrajectoryReason
    detail: str


@dataclass(frozen=True, slots=True)
class Examination:
    """What is found of one rollout."""

    faults: tuple[Finding, ...]
    """In the order of the cascade; empty if there is nothing against it."""
    tokens: int
    """Its length when trained on."""
    supports: tuple[Support, ...]
    """Where the bridges and the answer were seen; empty for one with faults."""


@dataclass(frozen=True, slots=True)
class _Case:
    """A rollout with everything that its checks look at."""

    trail: Trail
    judgement: Judgement | None
    """None where there is no answer to judge."""
    tokens: int
    rules: TrajectoryRules


_CHECKS: Mapping[str, Callable[[_Case], CheckResult]] = MappingProxyType(
    {
        "tool-errors": lambda case: check_tool_errors(case.trail, case.rules.fatal_errors),
        "from-memory": lambda case: check_sought(case.trail),
        "unsupported": lambda case: check_support(case.trail),
        "memory-jump": lambda case: check_jumps(case.trail),
        "path-not-covered": lambda case: check_path(case.trail),
        "repetition": lambda case: check_repetition(case.trail, case.rules.overlap, case.rules.max_repeats),
        "contaminated": lambda case: check_contamination(case.trail),
        "unknown-image": lambda case: check_images(case.trail),
        "unseen-claim": lambda case: check_claims(case.trail, _is_right(case.judgement)),
        "too-long": lambda case: check_length(case.tokens, case.rules.max_tokens),
    }
)


def find_faults(
    rollout: Rollout,
    judgement: Judgement | None = None,
    rules: TrajectoryRules = DEFAULT_RULES,
    counter: TokenCounter = ESTIMATED,
) -> tuple[Finding, ...]:
    """Return every reason against a rollout but those of the process judge and the cap, in the order of the cascade.

    Args:
        rollout: with its reference.
        judgement: of its answer; without one the comparer alone decides.
        rules: what it is held to.
        counter: of its length.
    """
    return examine_rollout(rollout, judgement, rules, counter).faults


def examine_rollout(
    rollout: Rollout, judgement: Judgement | None, rules: TrajectoryRules, counter: TokenCounter
) -> Examination:
    """Return what is found of a rollout, as :func:`find_faults`, with its length and its supports.

    A missing answer is not compared, so it is never wrong as well; of a wrong one it is not asked whether a tool showed
    it.
    """
    trail, tokens = read_trail(rollout), measure_rollout(rollout, counter, rules.image_pixels)
    held = None if is_unanswered(rollout) else judgement or _compare(rollout)
    case = _Case(trail, held, tokens, rules)
    found = [*_check_turns(trail), *_find_answer_faults(rollout, held)]
    found += [Finding(name, result.detail) for name, result in _run(case) if not result.passed]
    faults = tuple(sorted(found, key=lambda fault: _ORDER.index(fault.reason)))
    return Examination(faults, tokens, () if faults else list_supports(trail))


def is_unanswered(rollout: Rollout) -> bool:
    """Say whether a rollout gives no answer. "None" is none, unless that is what is asked for."""
    return is_no_answer(rollout.answer) and compare_answers(rollout.answer, rollout.reference) != "correct"


def _compare(rollout: Rollout) -> Judgement:
    return Judgement(compare_answers(rollout.answer, rollout.reference), "comparer")


def _is_right(judgement: Judgement | None) -> bool:
    return judgement is not None and judgement.verdict == "correct"


def _check_turns(trail: Trail) -> list[Finding]:
    result = check_turns(trail)
    return [] if result.passed else [Finding("format", result.detail)]


def _find_answer_faults(rollout: Rollout, judgement: Judgement | None) -> list[Finding]:
    if judgement is None:
        failure = f" ({rollout.failure})" if rollout.failure else ""
        return [Finding("no-answer", f"stopped by {rollout.stop_reason}{failure}, answer {rollout.answer!r}")]
    if judgement.verdict == "incorrect":
        return [Finding("wrong-answer", f"{rollout.answer!r} instead of {rollout.reference.surface!r}")]
    if judgement.verdict == "unscored":
        against = f"{rollout.answer!r} against {rollout.reference.surface!r}"
        return [Finding("unscored", f"{against} ({judgement.detail})" if judgement.detail else against)]
    return []


def _run(case: _Case) -> list[tuple[TrajectoryReason, CheckResult]]:
    """Return the results of the checks that the rules name and that apply."""
    left_out = set(_ASKED_OF_ANSWERS) if case.judgement is None else set()
    if case.judgement is not None and case.judgement.verdict == "incorrect":
        left_out.add("unsupported")
    asked = [name for name in _ORDER if name in case.rules.checks and name not in left_out]
    return [(name, _CHECKS[name](case)) for name in asked]


def list_supports(trail: Trail) -> tuple[Support, ...]:
    """Return where each bridge's name and the answer were first seen; what was never seen has no support.

    ``step`` counts from 0 in ``rollout.steps``; the span is in that step's observation text. Bridges come in path
    order, the answer last, under the name ``answer``.
    """
    supports = [_find_name(trail, title) for title in dict.fromkeys(trail.rollout.bridges)]
    found = find_support(trail)
    if found is not None:
        step, (start, end) = found
        supports.append(Support(what=ANSWER, step=step, start=start, end=end))
    return tuple(support for support in supports if support is not None)


def _find_name(trail: Trail, title: str) -> Support | None:
    for number, leg in enumerate(trail.legs):
        span = locate_form(leg.shown, leg.seen, list_forms(title)) if leg.shown else None
        if span is not None:
            return Support(what=title, step=number, start=span[0], end=span[1])
    return None
