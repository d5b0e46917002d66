"""Difficulty by the solver's own choice of searches: rollouts in which it may search, and the label they give.

MMSearch-R1, section 3.1: of eight rollouts it counts what was searched in those that are right. The solver speaks the
protocol of the rollouts, within the rounds and searches that are configured.
"""

import asyncio
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar, Literal, get_args

from pipelines.agent.agreement import wilson_interval
from pipelines.agent.attempts import DIGITS, SOLVER, AlternativeCheck, Attempt, hold_against_corpus
from pipelines.agent.choosing import EaseRater
from pipelines.agent.judging import Jury, UnscoredWatch
from pipelines.agent.loop import Agent, run_rollout
from pipelines.config.settings import DifficultyConfig
from pipelines.graph.answers import compare_answers, is_no_answer
from pipelines.ids import digest_value
from schemas.base import Record, Rejection
from schemas.datasets import Cell, Difficulty, Enhancement, Grounding, RefusedQuestion, Rollout, SearchNeed
from schemas.manifest import ModelEntry
from schemas.reasons import DifficultyReason
from schemas.tasks import Condition, TeacherOracle

REASONS = frozenset(get_args(DifficultyReason))
Tried = tuple[SearchNeed, Attempt]
"""What an attempt searched, and how it ended."""


@dataclass(frozen=True)
class ChosenSearches:
    """The stage: grounded questions in, labelled questions out, or a rejection of what no attempt answers."""

    agent: Agent
    """The solver with its tools."""
    jury: Jury
    settings: DifficultyConfig
    at_once: bool = field(default=False, kw_only=True)
    """Whether all attempts are made, at once; else none after one that needed no search."""
    make_oracle: Callable[[Enhancement, int], TeacherOracle]
    """The truth about a question and an attempt, for a scripted solver."""
    watch: UnscoredWatch
    contest: AlternativeCheck | None = None
    """Checks repeated wrong answers; None skips the check."""
    rater: EaseRater | None = None
    """Rates how easily each picture is looked up; None where groundings did."""
    name: str = "difficulty"
    version: int = 3
    input: ClassVar[type[Record]] = Grounding
    output: ClassVar[type[Record]] = Difficulty

    def fingerprint(self) -> str:
        rated = self.rater.identity if self.rater else ""
        numbers = [self.settings.attempts, self.at_once, self.contest is not None, rated]
        return digest_value(["chosen", self.agent.identity, self.jury.identity, *numbers])

    def prompts(self) -> dict[str, str]:
        return {self.agent.prompt.label: self.agent.prompt.digest} | self.jury.prompts()

    def models(self) -> tuple[ModelEntry, ...]:
        model, sampling = self.agent.model, self.agent.sampling.describe()
        solver = ModelEntry(role=SOLVER, name=model.name, revision=model.identity, sampling=sampling)
        return (solver, *self.jury.models())

    async def __call__(self, record: Grounding) -> Sequence[Difficulty] | Rejection:
        tried = await self._try_all(Enhancement(**dict(record), cells=()))
        label = find_label(tried)
        if label == "never-solved" or label == "unscored":
            refused = Rejection(record_id=record.record_id, reason=label, detail=_count_up(tried))
            return self._show_attempts(tried, refused)
        # What is tried after the label is settled decides nothing.
        wrong = [each.given for _, each in tried[: _find_end(tried)] if each.verdict == "incorrect" and each.given]
        alternatives = hold_against_corpus(self.contest, record, wrong)
        if isinstance(alternatives, Rejection):
            return self._show_attempts(tried, alternatives)
        depiction = record.depiction
        if self.rater is not None and depiction is not None and record.picture is not None:
            ease, small = await self.rater.rate(record.picture, record.proof.nodes[0].title)
            depiction = depiction.model_copy(update={"ease": ease, "ease_at_training": small})
        return (
            Difficulty(
                **dict(record) | {"depiction": depiction},
                cells=self._sum_up(tried),
                search_need=label,
                standing="solved",
                alternatives=alternatives,
                tools=tuple(
                    search.identity.partition(":")[0]
                    for search in (self.agent.tools.text_search, self.agent.tools.image_search)
                ),
            ),
        )

    def _show_attempts(self, tried: Sequence[Tried], refused: Rejection) -> RefusedQuestion:
        solver = self.agent.model.name
        made = (each.record(CONDITIONS[need], solver, sample) for sample, (need, each) in enumerate(tried))
        return RefusedQuestion(**dict(refused), attempts=tuple(made))

    async def _try_all(self, question: Enhancement) -> list[Tried]:
        numbers = range(self.settings.attempts)
        if self.at_once:
            ended = await asyncio.gather(*(self._try(question, each) for each in numbers), return_exceptions=True)
            for outcome in ended:
                if isinstance(outcome, BaseException):
                    raise outcome
            tried = [outcome for outcome in ended if not isinstance(outcome, BaseException)]
        else:
            tried = []
            for number in numbers:
                tried.append(await self._try(question, number))
                if _is_free(tried[-1]):
                    break
        for _, attempt in tried:
            self.watch.add(attempt.verdict, attempt.problem)
        return tried

    async def _try(self, question: Enhancement, number: int) -> Tried:
        popularity = tuple(node.in_degree for node in question.proof.nodes)
        oracle = self.make_oracle(question, number).model_copy(update={"popularity": popularity})
        rollout = await run_rollout(self.agent, question, oracle)
        need, given = name_searches(rollout), rollout.answer
        if rollout.stop_reason == "failed":
            return need, Attempt("unscored", day=rollout.day, problem=rollout.failure)
        if not given or (is_no_answer(given) and compare_answers(given, question.answer) != "correct"):
            return need, Attempt("incorrect", day=rollout.day)
        trial = f"{question.record_id}:chosen:{SOLVER}:{number}"
        judgement = await self.jury.judge(question.text, given, question.answer, trial)
        return need, Attempt(judgement.verdict, given, rollout.day, judgement.detail)

    def _sum_up(self, tried: Sequence[Tried]) -> tuple[Cell, ...]:
        by_need: defaultdict[SearchNeed, list[Attempt]] = defaultdict(list)
        for need, attempt in tried:
            by_need[need].append(attempt)
        return tuple(self._make_cell(need, by_need[need]) for need in NEEDS if need in by_need)

    def _make_cell(self, need: SearchNeed, attempts: Sequence[Attempt]) -> Cell:
        correct = sum(each.verdict == "correct" for each in attempts)
        unscored = sum(each.verdict == "unscored" for each in attempts)
        low, high = wilson_interval(correct, len(attempts) - unscored)
        return Cell(
            condition=CONDITIONS[need],
            role=SOLVER,
            solver=self.agent.model.name,
            prompt=self.agent.prompt.label,
            day=max(each.day for each in attempts),
            planned=len(attempts),
            attempts=len(attempts),
            correct=correct,
            unscored=unscored,
            low=round(low, DIGITS),
            high=round(high, DIGITS),
        )


def _is_free(tried: Tried) -> bool:
    return tried[0] == "search-free" and tried[1].verdict == "correct"


def _find_end(tried: Sequence[Tried]) -> int:
    return next((place for place, each in enumerate(tried, 1) if _is_free(each)), len(tried))


def _count_up(tried: Sequence[Tried]) -> str:
    made = {need: [each for own, each in tried if own == need] for need in NEEDS}
    return "; ".join(
        f"{sum(each.verdict == 'correct' for each in found)} of {len(found)} correct"
        f", {sum(each.verdict == 'unscored' for each in found)} unscored ({need})"
        for need, found in made.items()
        if found
    )


NEEDS: tuple[SearchNeed, ...] = ("search-free", "image", "text", "mixed")
"""By cost."""
CONDITIONS: Mapping[SearchNeed, Condition] = {
    "search-free": "image",
    "image": "image+image-search",
    "text": "image+text-search",
    "mixed": "image+both",
}
"""The condition under which an attempt with the same searches would be given their results."""
_SEARCHES: Mapping[frozenset[str], SearchNeed] = {
    frozenset(): "search-free",
    frozenset({"image_search"}): "image",
    frozenset({"text_search"}): "text",
    frozenset({"image_search", "text_search"}): "mixed",
}
Label = SearchNeed | Literal["unscored", "never-solved"]


def name_searches(rollout: Rollout) -> SearchNeed:
    """Return which searches a rollout made; a call that failed brought nothing and does not count."""
    answered = (step for step in rollout.steps if step.observation is not None and step.observation.ok)
    return _SEARCHES[frozenset(step.tool for step in answered) & {"image_search", "text_search"}]


def find_label(attempts: Iterable[tuple[SearchNeed, Attempt]]) -> Label:
    """Return what a question needs, by all its attempts: in any order they give one label.

    A question is search-free if any rollout without a search is right; it takes the search of those that are right if
    all of them searched; and is dropped if none is right. The paper leaves open what a question takes whose right
    rollouts searched in different ways: here it is the cheapest, since the others show no need. An attempt that nobody
    could score might have been right: where it searched less than the label says, the label is unknown.
    """
    right: set[SearchNeed] = set()
    doubtful: set[SearchNeed] = set()
    for need, attempt in attempts:
        if attempt.verdict == "correct":
            right.add(need)
        elif attempt.verdict == "unscored":
            doubtful.add(need)
    label = next((need for need in NEEDS if need in right), None)
    before = NEEDS if label is None else NEEDS[: NEEDS.index(label)]
    if doubtful.intersection(before):
        return "unscored"
    return label or "never-solved"
