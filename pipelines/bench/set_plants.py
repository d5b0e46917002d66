"""Defects of a question beside others, or beside what a solver knows: parametric questions, repeats, one template."""

import asyncio
from functools import lru_cache
from random import Random

from pipelines.bench.plants import Pair
from pipelines.bench.pools import Pool
from pipelines.bench.scenes import Case
from pipelines.bench.statements import draw_sentence
from pipelines.bench.vocabulary import Vocabulary
from pipelines.checks.verdicts import PASSED, CheckResult
from pipelines.stages.difficulty import MeasuredDifficulty
from pipelines.stages.releases import Releases
from schemas.base import Rejection
from schemas.enhancements import Enhancement
from schemas.groundings import Grounding

COLLAPSED = 0.3
"""Share of a dataset that one skeleton gets."""
LEAST_ROWS = 10


def plant_parametric(case: Case, words: Vocabulary, rng: Random) -> Pair | None:
    """D17: a question whose every fact is popular enough for the solver; the clean twin meets a less learned one.

    What the solver knows follows from the link graph alone: all nodes of the path at its popularity or above.
    """
    if case.question.picture is None:
        return None
    known = min(int(case.corpus.graph.in_degree[number]) for number in case.numbers)
    least = max(known - rng.randint(0, 2), 0)
    clean, bad = (_filter(case, popularity) for popularity in (known + rng.randint(1, 4), least))
    return Pair(f"all nodes have {known} links, the solver knows {least}", clean, bad, ("solved-without-tools",))


def _filter(case: Case, popularity: int) -> CheckResult:
    outcome = asyncio.run(_build_filter(case.pool, popularity)(case.question))
    if isinstance(outcome, Rejection):
        return CheckResult("FAIL", outcome.reason, outcome.detail or "")
    return PASSED


@lru_cache(maxsize=1024)
def _build_filter(pool: Pool, popularity: int) -> MeasuredDifficulty:
    """Return the stage with a solver that knows what is this popular, and neither guesses nor slips."""
    settings = f"fact_popularity={popularity}, sight_popularity={popularity}, guess_rate=0.0, slip_rate=0.0"
    assembly = pool.assemble("difficulty.attempts=1", f"models.solver.settings={{{settings}}}")
    stage = assembly.build_stage("difficulty")
    if not isinstance(stage, MeasuredDifficulty):
        raise AssertionError(f"the stage difficulty is a {type(stage).__name__}")
    return stage


def plant_repeat(case: Case, words: Vocabulary, rng: Random) -> Pair | None:
    """D19: a question twice in other words, or one wording for three in ten questions of a dataset."""
    rows = list(_list_distinct(case.pool))
    if len(rows) < LEAST_ROWS:
        return None
    chosen = rng.sample(rows, min(len(rows), 40))
    if rng.random() < 0.5:
        return _repeat(chosen, rng)
    count = max(2, round(COLLAPSED * len(chosen)))
    text = draw_sentence("collapsed", words, rng)
    same = [row.model_copy(update={"text": text}) for row in chosen[:count]]
    bad = [*same, *chosen[count:]]
    return Pair(f"{count} of {len(bad)}: {text}", _release(chosen), _release(bad), ("skeleton-over-used",))


def _repeat(rows: list[Grounding], rng: Random) -> Pair:
    """Return twins of which one has a question again: as it was, by another path, or to another answer.

    The first two ask the same of the same picture; the last one is told by its path alone.
    """
    row, shape = rng.choice(rows), rng.choice(("again", "again", "other path", "other answer"))
    update = {"record_id": f"{row.record_id}-again", "text": f"Say, {row.text[:1].lower()}{row.text[1:]}"}
    copy, code = row.model_copy(update=update), "duplicate-question"
    if shape == "other path":
        other = row.proof.hops[0].model_copy(update={"relation": "somewhere_else"})
        copy = copy.model_copy(update={"proof": row.proof.model_copy(update={"hops": (other, *row.proof.hops[1:])})})
    elif shape == "other answer":
        code, answer = "duplicate-path", row.answer.model_copy(update={"key": f"{row.answer.key} again"})
        copy = copy.model_copy(update={"answer": answer})
    return Pair(f"{shape}: {row.text[:80]}", _release(rows), _release([*rows, copy]), (code,))


def _release(rows: list[Grounding]) -> CheckResult:
    """FAIL with the reason of the first row that the releases stage refuses."""
    for outcome in Releases()([[_measure(row) for row in rows], []]):
        if isinstance(outcome, Rejection):
            return CheckResult("FAIL", outcome.reason, outcome.detail or "")
    return PASSED


@lru_cache(maxsize=16)
def _list_distinct(pool: Pool) -> tuple[Grounding, ...]:
    """Return the questions of a pool that go into one release together: of one pass, for each splits otherwise."""
    refused = {
        outcome.record_id
        for outcome in Releases()([[_measure(row) for row in pool.first], []])
        if isinstance(outcome, Rejection)
    }
    return tuple(row for row in pool.first if row.record_id not in refused)


def _measure(row: Grounding) -> Enhancement:
    return Enhancement(**dict(row), cells=())
