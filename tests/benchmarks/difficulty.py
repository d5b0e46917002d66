"""Measures the difficulty stage against what arithmetic says and what an early stop saves.

Solvers are scripted and right with a known probability in each attempt, whatever they are shown, so that the number of
questions that a filter leaves is binomial. Attempts are counted where they are made.
"""

import asyncio
import math
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path

from pipelines.agent.attempts import Preset, Searches, make_plan
from pipelines.agent.judging import Jury, UnscoredWatch
from pipelines.checks.verdicts import PASSED
from pipelines.config.settings import DifficultyConfig
from pipelines.pictures import PictureStore
from pipelines.services.prompting import RoleClient, load_prompt
from pipelines.services.protocols import ChatReply, ChatRequest, ImageHit, PictureFile, TextHit
from pipelines.stages.difficulty import MeasuredDifficulty
from pipelines.toy.players import ScriptedSolver
from schemas.base import Rejection
from schemas.datasets import Grounding, Picture
from tests.benchmarks.measured import Measured
from tests.pipelines.release.builders import make_picture, make_question

ABILITIES = tuple(percent / 100 for percent in range(5, 100, 10))
QUESTIONS = 1_000
"""Of each ability."""
FEW = 100
"""The same where every attempt that was planned is made, too."""
HARD = 3
"""Of the abilities, the lowest: what an early stop saves of a pool that solvers rarely meet is told apart."""
ATTEMPTS = 8
OUTSIDE = 0.001
"""How often a binomial count may lie outside of its interval."""
SAVED = 0.4
PRESETS: tuple[Preset, ...] = ("opensearch-vl", "vsearcher", "mars")


@dataclass
class Attempts:
    """A scripted solver whose attempts are counted."""

    model: ScriptedSolver
    count: int = 0
    name: str = "knower"
    identity: str = "knower"
    reads_inputs: bool = True

    async def chat(self, request: ChatRequest) -> ChatReply:
        """Attempt."""
        self.count += 1
        return await self.model.chat(request)


@dataclass(frozen=True)
class NothingFound:
    """Both searches, of an empty corpus."""

    identity: str = "nothing"

    async def search_image(self, picture: PictureFile, count: int) -> tuple[ImageHit, ...]:
        """Find nothing."""
        return ()

    async def search_text(self, query: str, count: int) -> tuple[TextHit, ...]:
        """Find nothing."""
        return ()


@dataclass(frozen=True)
class Played:
    """What became of some questions, by id, and the attempts that it took."""

    fates: dict[str, tuple[str, ...]]
    attempts: int

    @property
    def kept(self) -> int:
        """How many passed."""
        return sum(fate[0] == "kept" for fate in self.fates.values())


def measure(scratch: Path) -> list[Measured]:
    """Filter by solvers of every ability, with and without early stops."""
    picture = make_picture(scratch, 1)
    measured = []
    for ability in ABILITIES:
        measured += [
            _measure_survivors(scratch, None, ability, "asked by its words"),
            _measure_survivors(scratch, picture, ability, "no tool, then one image search"),
        ]
    measured += [_measure_saved(scratch, picture, preset, ABILITIES) for preset in PRESETS]
    measured += [_measure_saved(scratch, picture, "opensearch-vl", (ability,)) for ability in ABILITIES[:HARD]]
    return measured


def _measure_survivors(scratch: Path, picture: Picture | None, ability: float, how: str) -> Measured:
    played = _play(scratch, "opensearch-vl", _make_questions(QUESTIONS, picture), ability)
    steps = 3 if picture else 1
    share = (1 - ability) ** (ATTEMPTS * steps)
    low, high = find_binomial_interval(QUESTIONS, share)
    assert low <= played.kept <= high, f"{played.kept} of {QUESTIONS} survived p = {ability}, not {low} to {high}"
    what = f"right {ability:.0%} of the time, {how}: kept of {QUESTIONS:,} by 0 of {ATTEMPTS}"
    return Measured(what + (f" in each of {steps}" if steps > 1 else ""), f"{played.kept:,}",
                    f"{QUESTIONS * share:,.1f}; {low:,} to {high:,}")  # fmt: skip


def _measure_saved(scratch: Path, picture: Picture, preset: Preset, abilities: Sequence[float]) -> Measured:
    """Compare early stops with every attempt made; whatever a row says but its counts is a decision."""
    attempts, changed, total = [0, 0], 0, 0
    for number, ability in enumerate(abilities):
        questions = _make_questions(FEW, picture, first=number * FEW)
        stopped, whole = (_play(scratch, preset, questions, ability, at_once) for at_once in (False, True))
        changed += sum(stopped.fates[name] != whole.fates[name] for name in whole.fates)
        attempts = [attempts[0] + stopped.attempts, attempts[1] + whole.attempts]
        total += len(questions)
    assert not changed, f"{preset}: an early stop changed {changed} of {total} decisions"
    of = f"right {abilities[0]:.0%} to {abilities[-1]:.0%}" if len(abilities) > 1 else f"right {abilities[0]:.0%}"
    what = f"attempts saved by early stops, {preset}, {of} of the time ({total:,} questions, 0 decisions changed)"
    return Measured(what, f"{1 - attempts[0] / attempts[1]:.0%}", f"{SAVED:.0%}" if len(abilities) > 1 else "")


def _play(
    scratch: Path, preset: Preset, questions: Sequence[Grounding], ability: float, at_once: bool = False
) -> Played:
    knower = ScriptedSolver(right_without_tools=ability, right_with_search=ability, name=f"right {ability}")
    counted, nothing = Attempts(knower), NothingFound()
    stage = MeasuredDifficulty(
        solver=RoleClient(counted, load_prompt("answer_question", 4)),
        jury=Jury(),
        searches=Searches(nothing, nothing, PictureStore(scratch / "images")),
        plan=make_plan(preset),
        settings=DifficultyConfig(attempts=ATTEMPTS),
        at_once=at_once,
        watch=UnscoredWatch(0.0, 1),
        contest=lambda proof, answer, given: PASSED,
    )

    async def run() -> dict[str, tuple[str, ...]]:
        fates = {}
        for question in questions:
            made = await stage(question)
            fates[question.record_id] = (
                (made.reason,)
                if isinstance(made, Rejection)
                else ("kept", made[0].search_need, made[0].standing, repr(made[0].alternatives))
            )
        return fates

    return Played(asyncio.run(run()), counted.count)


def _make_questions(count: int, picture: Picture | None, first: int = 0) -> list[Grounding]:
    fields = Grounding.model_fields
    rows = (make_question(number, picture) for number in range(first, first + count))
    return [Grounding(**{name: value for name, value in dict(row).items() if name in fields}) for row in rows]


def find_binomial_interval(trials: int, share: float, outside: float = OUTSIDE) -> tuple[int, int]:
    """Return the central counts of successes, beyond which a binomial draw lies no more often than ``outside``."""
    chances = [math.comb(trials, n) * share**n * (1 - share) ** (trials - n) for n in range(trials + 1)]
    below = list(accumulate(chances))
    return bisect_left(below, outside / 2), min(bisect_left(below, 1 - outside / 2), trials)
