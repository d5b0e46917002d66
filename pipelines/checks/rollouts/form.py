"""Is a rollout written as its protocol wants it, and did its tools work (R1, R2)?"""

from collections.abc import Sequence

from pipelines.checks.rollouts.trails import Leg, Trail
from pipelines.checks.verdicts import PASSED, CheckResult
from schemas.rollouts import Step

BAD_CALLS = ("unknown-tool", "bad-arguments", "bad-turn")
"""Errors of steps that are malformed: calls that do not fit the tools' schemas (VSearcher's rule), and turns that are
none. The loop may go on after one, a student is not shown it."""
LIMITS = ("turn-limit", "context-limit", "time-limit", "failed")
"""Ways to end without a fault of the last turn."""


def check_turns(trail: Trail) -> CheckResult:
    """FAIL (``format``) when a reply is no turn of the dialect, or not the one that its step records.

    Every step but the answer must be a call of a known tool with fitting arguments that was answered. A turn that is
    none refuses the rollout even where the loop told the model so and went on: what would be left of it is a transcript
    in which an error is answered that nobody sees.
    """
    problem = _find_problem(trail)
    return CheckResult("FAIL", "format", problem) if problem else PASSED


def _find_problem(trail: Trail) -> str:
    stop = trail.rollout.stop_reason
    if not trail.legs:
        return "" if stop in LIMITS else "no step"
    for number, leg in enumerate(trail.legs):
        problem = leg.problem or _find_leg_problem(leg, answers=trail.answered and leg is trail.legs[-1])
        if problem:
            return f"step {number}: {problem}"
    if trail.answered and trail.legs[-1].answer != trail.rollout.answer:
        return f"the last reply answers {trail.legs[-1].answer!r}, the rollout {trail.rollout.answer!r}"
    return f"step {len(trail.legs) - 1}: stopped by format" if stop == "format" else ""


def _find_leg_problem(leg: Leg, *, answers: bool) -> str:
    step = leg.step
    if answers:
        return "the last step makes a call" if step.tool else ""
    if not step.tool or step.observation is None:
        return "a step before the answer must be a call with its observation"
    return f"{step.tool}: {step.observation.error}" if step.observation.error in BAD_CALLS else ""


def check_tool_errors(trail: Trail, fatal_errors: int = 3) -> CheckResult:
    """FAIL (``tool-errors``) when a rollout has a fatal step, or says otherwise of it than its steps do.

    Args:
        trail: the rollout.
        fatal_errors: consecutive errors that are fatal (OpenSearch-VL, K).
    """
    rollout = trail.rollout
    found = find_fatal(rollout.steps, fatal_errors)
    told = (rollout.fatal_begins, rollout.fatal_reached)
    if found is not None:
        return CheckResult("FAIL", "tool-errors", f"steps {found[0]} to {found[1]} are errors, one after the other")
    if told != (None, None):
        return CheckResult("FAIL", "tool-errors", f"a fatal step is recorded at {told}; the steps show none")
    if rollout.stop_reason == "tool-errors":
        return CheckResult("FAIL", "tool-errors", "stopped by tool errors; the steps show no fatal one")
    return PASSED


def find_fatal(steps: Sequence[Step], fatal_errors: int) -> tuple[int, int] | None:
    """Return the steps at which the first run of so many consecutive errors begins and reaches that number, or None."""
    run = 0
    for number, step in enumerate(steps):
        run = run + 1 if step.observation is not None and not step.observation.ok else 0
        if run == fatal_errors:
            return number - fatal_errors + 1, number
    return None


def list_loss(steps: Sequence[Step]) -> tuple[bool, ...]:
    """Return whether a student is trained on each step: on answers and on calls that went well."""
    return tuple(step.observation.ok if step.observation is not None else bool(step.thought) for step in steps)
