"""What the pipeline accepts, held against everything that is true in the world: how many questions are wrong after all.

The pipeline sees infoboxes with fields missing and prose; the truth files have every fact. A question counts as sound
when the whole truth leads to one entity at each node and to one answer, the gold one. None of the pipeline's counting
is used here.
"""

import json
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

from pipelines.bench.pools import Pool
from pipelines.corpus.store import Corpus
from pipelines.names import fold_name
from schemas.groundings import Grounding
from schemas.proofs import Answer, Constraint, Derivation, Hop

SOUND = ""
UNKNOWN_CODES = ("answer-unconfirmed", "near-miss", "too-many-near-misses")
"""Reasons that say that something could not be known; every other one says that it is known to be wrong."""
ALLOWED = ((0.0, 0.0), (0.1, 0.02), (0.3, 0.04))
"""Largest share of unsound questions by missing rate; between two rates it grows in proportion."""
TYPE = "type"
_NUMBER = re.compile(r"-?\d[\d,]*(?:\.\d+)?")
_LENGTHS: dict[Derivation, int] = {"": 10, "month": 7, "year": 4}

Row = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class AcceptedRow:
    """What one recipe made of one world."""

    missing: float
    method: str
    seeds: int
    accepted: int
    defects: int
    rate: float
    """Share of the accepted questions that are not sound; 0.0 of none."""
    kinds: dict[str, int]
    lost_to_unknown: int
    """Rows refused because something could not be known."""
    refused: int
    """Rows refused for any reason after the seeds."""
    examples: tuple[str, ...]


class Truth:
    """All facts of a world, by relation and by either end."""

    def __init__(self, world: Path, corpus: Corpus) -> None:
        self._corpus = corpus
        self._of: dict[tuple[str, str], list[Row]] = defaultdict(list)
        self._to: dict[tuple[str, str], list[Row]] = defaultdict(list)
        self._relation: dict[tuple[str, str], str] = {}
        with (world / "truth" / "facts.jsonl").open(encoding="utf-8") as lines:
            for line in lines:
                fact = json.loads(line)
                self._of[fact["subject"], fact["relation"]].append(fact)
                self._relation[fact["subject"], fact["key"]] = fact["relation"]
                if fact["object"] is not None:
                    self._to[fact["object"], fact["relation"]].append(fact)

    def find_relation(self, subject: str, key: str) -> str:
        """Return what a field of an entity's infobox is about, empty when nothing in the world."""
        return self._relation.get((subject, key), "")

    def follow(self, titles: Iterable[str], hop: Hop, relation: str) -> set[str]:
        """Return the entities that a hop leads to."""
        if hop.backward:
            return {fact["subject"] for title in titles for fact in self._to.get((title, relation), ())}
        facts = (fact for title in titles for fact in self._of.get((title, relation), ()))
        return {fact["object"] for fact in facts if fact["object"] is not None}

    def fits(self, title: str, constraint: Constraint, model: str) -> bool:
        """Say whether a constraint on one entity, the model, is true of another one."""
        if constraint.relation == TYPE:
            node = self._corpus.find(title)
            return node is not None and self._corpus.page(node).type == constraint.value
        relation = self.find_relation(model, constraint.relation)
        return any(_is_value(constraint.value, fact) for fact in self._of.get((title, relation), ()))

    def read(self, title: str, relation: str) -> list[Row]:
        """Return the values of a relation of an entity."""
        return self._of.get((title, relation), [])


def evaluate(pool: Pool) -> tuple[AcceptedRow, ...]:
    """Evaluate all questions of a pool, a row for each recipe."""
    truth = Truth(pool.world, pool.corpus)
    found: dict[str, list[tuple[str, Grounding]]] = {method: [] for method in pool.reports}
    for question in pool.questions:
        found[pool.find_method(question)].append((judge_question(truth, question), question))
    return tuple(_sum_up(pool, method, judged) for method, judged in found.items())


def judge_question(truth: Truth, question: Grounding) -> str:
    """Return what is wrong with an accepted question, empty when it is sound."""
    proof = question.proof
    titles = [node.title for node in proof.nodes]
    reached = {titles[0]}
    for hop in proof.hops:
        here, there = titles[hop.index - 1], titles[hop.index]
        relation = truth.find_relation(there if hop.backward else here, hop.relation)
        constraints = [each for each in proof.constraints if each.node == hop.index]
        ahead = truth.follow(reached, hop, relation)
        reached = {title for title in ahead if all(truth.fits(title, each, there) for each in constraints)}
        if there not in reached:
            return "path-untrue"
        if len(reached) > 1:
            return "not-unique"
    relation = truth.find_relation(titles[-1], proof.answer_relation)
    values = truth.read(titles[-1], relation)
    if len(values) != 1:
        return "answer-not-single"
    return SOUND if _is_gold(question.answer, values[0], proof.derivation) else "wrong-gold"


def find_allowed(missing: float) -> float:
    """Return the largest share of unsound questions that is allowed at a missing rate."""
    for (low, least), (high, most) in pairwise(ALLOWED):
        if missing <= high:
            return least + (most - least) * (missing - low) / (high - low)
    return ALLOWED[-1][1]


def _sum_up(pool: Pool, method: str, judged: Sequence[tuple[str, Grounding]]) -> AcceptedRow:
    kinds = Counter(kind for kind, _ in judged if kind)
    reports = pool.reports[method]
    refused: Counter[str] = Counter()
    for report in reports[1:]:
        refused.update(report.rejected)
    return AcceptedRow(
        missing=pool.missing,
        method=method,
        seeds=reports[0].rows_out,
        accepted=len(judged),
        defects=kinds.total(),
        rate=kinds.total() / len(judged) if judged else 0.0,
        kinds=dict(kinds),
        lost_to_unknown=sum(refused[code] for code in UNKNOWN_CODES),
        refused=refused.total(),
        examples=tuple(f"{kind}: {question.text}" for kind, question in judged if kind)[:5],
    )


def _is_value(shown: str, fact: Row) -> bool:
    """Say whether a value as a descriptor says it, perhaps as a decade or century, is a fact's."""
    if fact["value"] is None:
        return fact["object"] is not None and fold_name(shown) == fold_name(fact["object"].partition(" (")[0])
    if fact["value_kind"] == "date":
        return _is_date(shown, fact)
    if fact["value_kind"] == "text":
        return fold_name(shown) == fold_name(fact["value"])
    numbers = _NUMBER.findall(shown)
    return bool(numbers) and float(numbers[0].replace(",", "")) == fact["value_number"]


def _is_date(shown: str, fact: Row) -> bool:
    year = int(fact["value_iso"][:4])
    digits = re.findall(r"\d+", shown)
    if shown.endswith("century"):
        return (year - 1) // 100 + 1 == int(digits[0])
    if re.fullmatch(r"\d+0s", shown):
        return year // 10 == int(digits[0]) // 10
    said = sorted(re.findall(r"\w+", shown.casefold().replace(",", " ")))
    return said == sorted(re.findall(r"\w+", fact["value"].casefold())) or said == [str(year)]


def _is_gold(answer: Answer, fact: Row, derivation: Derivation) -> bool:
    if fact["value_kind"] == "date":
        length = min(_LENGTHS[derivation], 10 if len(fact["value"]) > 4 else 4)
        return bool(answer.value == fact["value_iso"][:length])
    if fact["value_kind"] in ("quantity", "count"):
        return bool(float(answer.value) == fact["value_number"])
    if fact["value"] is None:
        return fact["object"] is not None and fold_name(answer.surface) == fold_name(fact["object"])
    return fold_name(answer.surface) == fold_name(fact["value"])
