"""Which attempts decide about a question: the papers' filters as steps in order of cost, and when enough were made.

A step is a condition and a solver. A *bound* refuses a question that was met too often (OpenSearch-VL, section 3.2;
VSearcher, section 2.1; SenseNova-MARS, cold start); a *label* says which search was needed for the first success
(MMSearch-R1, search balancing); a *measurement* decides nothing. Here is arithmetic alone: who attempts, and how, is
the stage's.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from schemas.difficulty import SearchNeed
from schemas.reasons import DifficultyReason
from schemas.tasks import Condition
from schemas.trajectories import Verdict

Preset = Literal["opensearch-vl", "vsearcher", "mars", "fvqa", "grid"]
CONFIGURED = -1
"""Stands in a preset for the bound that the configuration names."""


@dataclass(frozen=True, slots=True)
class Filter:
    """Attempts under one condition by one solver, and what they decide."""

    condition: Condition
    role: str = ""
    """The solver, as the configuration names it."""
    max_correct: int | None = None
    """A question with more correct attempts is refused; None where nothing is."""
    reason: DifficultyReason | None = None
    """Of that refusal."""
    need: SearchNeed = ""
    """What a question needs whose first success this is; empty for a step that gives no label."""


@dataclass(frozen=True, slots=True)
class Tally:
    """Attempts made so far of one step."""

    done: int = 0
    correct: int = 0
    unscored: int = 0

    def add(self, verdict: Verdict) -> "Tally":
        """Return the tally with one more attempt."""
        return Tally(self.done + 1, self.correct + (verdict == "correct"), self.unscored + (verdict == "unscored"))


@dataclass(frozen=True, slots=True)
class Plan:
    """Everything held against a question, the cheapest first: what takes no attempts, then the filters."""

    filters: tuple[Filter, ...]
    seeks_answer: bool = False
    """Whether a question that holds its own answer is refused (VSearcher's fourth filter)."""
    judges_picture: bool = False
    """Whether a picture that is too simple refuses its question (VSearcher's third filter)."""
    refuses_unproved: bool = True
    """Whether a question is refused that nobody solved and nothing proves."""

    def list_roles(self) -> tuple[str, ...]:
        """Return who attempts, each once, in the order of the filters."""
        return tuple(dict.fromkeys(step.role for step in self.filters))


_FREE: DifficultyReason = "solved-without-tools"
_PRESETS: Mapping[Preset, Plan] = {
    "opensearch-vl": Plan((
        Filter("text", max_correct=CONFIGURED, reason=_FREE),
        Filter("image", max_correct=CONFIGURED, reason=_FREE),
        Filter("image+image-search", max_correct=CONFIGURED, reason="solved-by-one-image-search"),
    )),
    # Section 2.1 lists these as 2 and 1; text alone costs less.
    "vsearcher": Plan(
        (
            Filter("text", max_correct=CONFIGURED, reason=_FREE),
            Filter("image", max_correct=CONFIGURED, reason=_FREE),
        ),
        seeks_answer=True,
        judges_picture=True,
    ),
    # "marking a sample as hard if the model answers it correctly one time or fewer"
    "mars": Plan((Filter("image", max_correct=1, reason="not-rare"),)),
    "fvqa": Plan((
        Filter("image", need="search-free"),
        Filter("image+image-search", need="image"),
        Filter("image+text-search", need="text"),
        Filter("image+both", need="mixed"),
    )),
    "grid": Plan(
        (
            Filter("text"),
            Filter("image"),
            Filter("swapped"),
            Filter("text+text-search"),
            Filter("image+text-search"),
            Filter("image+image-search"),
            Filter("swapped+text-search"),
            Filter("swapped+image-search"),
            Filter("image+both"),
            Filter("swapped+both"),
        ),
        refuses_unproved=False,
    ),
}  # fmt: skip


def make_plan(preset: Preset, solvers: Sequence[str], text_solver: str = "", max_correct: int = 0) -> Plan:
    """Return a preset for its solvers: each filter by every solver in turn, before the next filter costs more.

    Args:
        preset: the published filter.
        solvers: roles of those who attempt, the cheapest first.
        text_solver: role of who attempts without a picture, where that is another model.
        max_correct: bound of the presets that leave it open.
    """
    plan = _PRESETS[preset]
    steps = []
    for step in plan.filters:
        bound = max_correct if step.max_correct == CONFIGURED else step.max_correct
        alone = (text_solver,) if text_solver and step.condition.startswith("text") else tuple(solvers)
        steps += [replace(step, role=role, max_correct=bound) for role in alone]
    return replace(plan, filters=tuple(steps))


def fit_filters(filters: Sequence[Filter], pictured: bool, swappable: bool) -> tuple[tuple[Filter, ...], list[str]]:
    """Return the steps that can be taken with a question, and the conditions that cannot be made for it.

    What is asked of a question without a picture is asked by its words: its text is all that there is to see.

    Args:
        filters: of the plan.
        pictured: whether the question has a picture.
        swappable: whether there is another one to be shown in its place.
    """
    fitted: dict[tuple[str, str], Filter] = {}
    left_out: list[str] = []
    for step in filters:
        condition = _fit_condition(step.condition, pictured, swappable)
        if condition != step.condition:
            left_out.append(step.condition)
        if condition is not None:
            fitted.setdefault((condition, step.role), replace(step, condition=condition))
    return tuple(fitted.values()), list(dict.fromkeys(left_out))


def _fit_condition(condition: Condition, pictured: bool, swappable: bool) -> Condition | None:
    if condition.startswith("swapped"):
        return condition if pictured and swappable else None
    if pictured or condition.startswith("text"):
        return condition
    return _BY_WORDS.get(condition)


_BY_WORDS: Mapping[Condition, Condition] = {"image": "text", "image+text-search": "text+text-search"}


def refuse_cell(step: Filter, tally: Tally) -> DifficultyReason | None:
    """Return why the attempts of a bound refuse the question; None when they do not, or the step is no bound.

    An attempt that nobody could score might have been right: where enough of them were to break the bound, nothing is
    known, and what is not known does not pass.
    """
    if step.max_correct is None:
        return None
    if tally.correct > step.max_correct:
        return step.reason
    return "unscored" if tally.correct + tally.unscored > step.max_correct else None


def find_need(
    steps: Sequence[Filter], tallies: Sequence[Tally]
) -> SearchNeed | Literal["unscored", "never-solved"] | None:
    """Return the search that a question needs: the cheapest that led to a success; None while that is open.

    Where an attempt without that search could not be scored it might have been right, and the label is not known
    (``unscored``).

    Args:
        steps: all labels of the plan, in order of cost.
        tallies: of the first of them, each complete.
    """
    doubtful: SearchNeed = ""
    for step, tally in zip(steps, tallies, strict=False):
        if doubtful not in ("", step.need):
            return "unscored"
        if tally.correct:
            return step.need
        if tally.unscored:
            doubtful = step.need
    left = steps[len(tallies) :]
    if doubtful and (not left or left[0].need != doubtful):
        return "unscored"
    return None if left else "never-solved"


def is_settled(tally: Tally, planned: int, max_correct: int) -> bool:
    """Say whether neither a bound's decision nor its reason can change, whatever the remaining attempts give."""
    left = planned - tally.done
    refused = tally.correct > max_correct
    never_refused = tally.correct + tally.unscored + left <= max_correct
    always_unscored = tally.correct + left <= max_correct < tally.correct + tally.unscored
    return left <= 0 or refused or never_refused or always_unscored


def is_enough(step: Filter, tally: Tally, planned: int, watched: bool) -> bool:
    """Say whether no further attempt of a step can change what becomes of its question.

    A label has what it wants with its first success, and a measurement only at its end. A bound that is kept to for
    certain goes on to a first success: whether there was any says why the question counts as one that can be solved.

    Args:
        step: whose attempts these are.
        tally: those made so far.
        planned: how many were to be made.
        watched: whether a wrong answer given again may refuse the question later; then a bound that is kept to for
            certain is no reason to stop.
    """
    if tally.done >= planned:
        return True
    if step.need:
        return tally.correct > 0
    if step.max_correct is None or not is_settled(tally, planned, step.max_correct):
        return False
    return refuse_cell(step, tally) is not None or (not watched and tally.correct > 0)
