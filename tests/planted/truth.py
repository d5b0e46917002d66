"""Whether the questions that the pipeline accepts are sound by the whole truth of their world.

The pipeline sees prose and infoboxes with fields missing; the truth files have every fact and every kind. None of the
pipeline's counting or reading is used here. Judged is the proof: the path is true, one entity fits each node, there is
one answer and it is the gold one with its unit, a descriptor alone fits as many entities as demanded, and other anchors
give as many answers as demanded. Not judged: the wording, the picture, shorter paths and searches, facts that change,
and hops of a sentence. Rejected rows are not judged.
"""

import json
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any, Literal

from pipelines.names import fold_name
from schemas.datasets import Grounding
from schemas.proofs import Answer, Constraint, Derivation, Hop, Proof
from tests.planted.scenes import Pool
from tests.planted.shares import make_share

SOUND = ""
TYPE = "type"
WIDER: Mapping[str, tuple[str, ...]] = {
    "artist": ("painter",),
    "military officer": ("general",),
    "book": ("novel",),
    "artifact": ("helmet",),
}
"""Nouns for subtypes that are neither a kind, a subtype, a noun nor the end of a noun in the truth files."""
SYMBOLS: Mapping[str, str] = {
    "minutes": "min", "minute": "min", "metres": "m", "metre": "m", "kilometres": "km", "kilometre": "km",
    "centimetres": "cm", "centimetre": "cm", "grams": "g", "kilograms": "kg", "tonnes": "t", "km²": "km2",
}  # fmt: skip
"""Other ways to write the units of a world."""
_NUMBER = re.compile(r"(-?\d[\d,]*(?:\.\d+)?)\s*(.*)")
_LENGTHS: dict[Derivation, int] = {"": 10, "month": 7, "year": 4}

Row = Mapping[str, Any]
Told = Literal["relation", "key"]
"""What makes two facts alike: what they are about, or also the field that shows it. The former knows of more rivals,
the latter of fewer entities that a descriptor or a picture might mean; either way is the stricter one."""


class Truth:
    """All facts of a world, by relation and by either end, and what each entity is."""

    def __init__(self, world: Path) -> None:
        """Read the truth files of a world's folder."""
        self._of: dict[tuple[str, Told, str], list[Row]] = defaultdict(list)
        self._to: dict[tuple[str, Told, str], list[Row]] = defaultdict(list)
        self._all: dict[str, list[Row]] = defaultdict(list)
        self._relation: dict[tuple[str, str], str] = {}
        self._kinds = {row["title"]: _list_kinds(row) for row in _read(world / "truth" / "entities.jsonl")}
        self._known = {kind for kinds in self._kinds.values() for kind in kinds}
        for fact in _read(world / "truth" / "facts.jsonl"):
            self._all[fact["key"]].append(fact)
            self._relation[fact["subject"], fact["key"]] = fact["relation"]
            for told in ("relation", "key"):
                self._of[fact["subject"], told, fact[told]].append(fact)
                if fact["object"] is not None:
                    self._to[fact["object"], told, fact[told]].append(fact)

    def find_relation(self, subject: str, key: str) -> str:
        """Return what a field of an entity's infobox is about, empty when nothing in the world."""
        return self._relation.get((subject, key), "")

    def list_entities(self, noun: str) -> list[str]:
        """Return the titles of all entities that a noun applies to."""
        return [title for title in self._kinds if self.is_kind(title, noun)]

    def is_kind(self, title: str, noun: str) -> bool:
        """Say whether a noun applies to an entity: its kind, its subtype, its noun, or the end of that.

        A noun that the world does not know may apply to anything, which can only make a question less unique.
        """
        return title in self._kinds and (noun in self._kinds[title] or noun not in self._known)

    def follow(self, titles: Iterable[str], hop: Hop, told: Told, name: str) -> set[str]:
        """Return the entities that a hop leads to."""
        if hop.backward:
            return {fact["subject"] for title in titles for fact in self._to.get((title, told, name), ())}
        facts = (fact for title in titles for fact in self._of.get((title, told, name), ()))
        return {fact["object"] for fact in facts if fact["object"] is not None}

    def list_led_to(self, hop: Hop) -> set[str]:
        """Return the entities that a hop's field leads to from anywhere."""
        end = "subject" if hop.backward else "object"
        return {fact[end] for fact in self._all.get(hop.relation, ()) if fact["object"] is not None}

    def fits(self, title: str, constraints: Iterable[Constraint], model: str) -> bool:
        """Say whether constraints on one entity, the model, are true of another one."""
        return all(
            self.is_kind(title, each.value)
            if each.relation == TYPE
            else any(_is_value(each.value, fact) for fact in self.read(title, self.find_relation(model, each.relation)))
            for each in constraints
        )

    def read(self, title: str, relation: str) -> list[Row]:
        """Return the values of a relation of an entity."""
        return self._of.get((title, "relation", relation), [])


def judge_question(truth: Truth, question: Grounding) -> str:
    """Return what is wrong with an accepted question, empty when it is sound."""
    proof = question.proof
    return (
        _judge_path(truth, proof)
        or _judge_gold(truth, question.answer, proof)
        or _judge_alone(truth, proof)
        or _judge_need(truth, proof)
    )


def _judge_path(truth: Truth, proof: Proof) -> str:
    titles = [node.title for node in proof.nodes]
    reached = {titles[0]}
    for hop in proof.hops:
        here, there = titles[hop.index - 1], titles[hop.index]
        relation = truth.find_relation(there if hop.backward else here, hop.relation)
        ahead = truth.follow(reached, hop, "relation", relation)
        reached = {title for title in ahead if _fits(truth, proof, hop.index, title)}
        if there not in reached:
            return "path-untrue"
        if len(reached) > 1:
            return "not-unique"
    return SOUND


def _fits(truth: Truth, proof: Proof, number: int, title: str) -> bool:
    """Say whether all that a question says of one of its entities beside the chain is true of another one."""
    model = proof.entities[number].title
    return truth.fits(title, _list_constraints(proof, number), model) and all(
        any(
            fact["object"] == branch.node.title
            if branch.named
            else fact["object"] is not None and _fits(truth, proof, place, fact["object"])
            for fact in truth.read(title, truth.find_relation(model, branch.relation))
        )
        for place, branch in enumerate(proof.branches, len(proof.nodes))
        if branch.host == number
    )


def _judge_gold(truth: Truth, answer: Answer, proof: Proof) -> str:
    title = proof.nodes[-1].title
    values = truth.read(title, truth.find_relation(title, proof.answer_relation))
    if len(values) != 1:
        return "answer-not-single"
    if not _is_gold(answer, values[0], proof.derivation):
        return "wrong-gold"
    unit = values[0]["value_unit"] or ""
    return SOUND if answer.unit == SYMBOLS.get(unit, unit) else "wrong-unit"


def _judge_alone(truth: Truth, proof: Proof) -> str:
    """Look for a descriptor that fits fewer entities without the chain (R_alone) than was demanded."""
    limits = proof.thresholds
    for hop in proof.hops:
        constraints, model = _list_constraints(proof, hop.index), proof.nodes[hop.index].title
        fitting = sum(truth.fits(title, constraints, model) for title in truth.list_led_to(hop))
        if fitting < (limits.alone_first if hop.index == 1 else limits.alone):
            return "stands-alone"
    return SOUND


def _judge_need(truth: Truth, proof: Proof) -> str:
    """Count the answers over all anchors of the type (N_img)."""
    answers: set[tuple[object, ...]] = set()
    for anchor in truth.list_entities(proof.nodes[0].type) if proof.thresholds.answers else ():
        reached = {anchor}
        for hop in proof.hops:
            ahead = truth.follow(reached, hop, "key", hop.relation)
            reached = {title for title in ahead if _fits(truth, proof, hop.index, title)}
        relation = truth.find_relation(proof.nodes[-1].title, proof.answer_relation)
        answers |= {_key(fact, proof.derivation) for title in reached for fact in truth.read(title, relation)}
        if len(answers) >= proof.thresholds.answers:
            return SOUND
    return "picture-not-needed" if proof.thresholds.answers else SOUND


def _read(path: Path) -> list[Row]:
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


def _list_kinds(entity: Row) -> frozenset[str]:
    """Return the nouns that apply to an entity."""
    noun, subtype = entity["noun"], entity["subtype"]
    wider = [word for word, subtypes in WIDER.items() if subtype in subtypes]
    # A species of finch is a species; a market town is a town.
    return frozenset((entity["kind"], subtype, noun, noun.split(" of ")[0].split()[-1], *wider))


def _list_constraints(proof: Proof, node: int) -> list[Constraint]:
    return [each for each in proof.constraints if each.node == node]


def _is_value(shown: str, fact: Row) -> bool:
    """Say whether a value as a descriptor says it, perhaps as a decade or century, is a fact's."""
    if fact["value"] is None:
        return fact["object"] is not None and fold_name(shown) == fold_name(fact["object"].partition(" (")[0])
    if fact["value_kind"] == "date":
        return _is_date(shown, fact)
    if fact["value_kind"] == "text":
        return fold_name(shown) == fold_name(fact["value"])
    number = _NUMBER.match(shown)
    if number is None or float(number[1].replace(",", "")) != fact["value_number"]:
        return False
    unit = fact["value_unit"] or ""
    # A field may be named after its unit, and show none.
    return not number[2] or SYMBOLS.get(number[2], number[2]) == SYMBOLS.get(unit, unit)


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
        return answer.value == _key(fact, derivation)[0]
    if fact["value_kind"] in ("quantity", "count"):
        return bool(float(answer.value) == fact["value_number"])
    if fact["value"] is None:
        return fact["object"] is not None and fold_name(answer.surface) == fold_name(fact["object"])
    return fold_name(answer.surface) == fold_name(fact["value"])


def _key(fact: Row, derivation: Derivation) -> tuple[object, ...]:
    """Return what tells one answer from another."""
    if fact["value_kind"] == "date":
        return (fact["value_iso"][: min(_LENGTHS[derivation], 10 if len(fact["value"]) > 4 else 4)],)
    return fact["value"], fact["object"]


ALLOWED = ((0.0, 0.0), (0.1, 0.02), (0.3, 0.04))
"""Share of unsound questions by missing rate that must not be reached; between two rates it grows in proportion."""
SHOWN = 5


@dataclass(frozen=True, slots=True)
class AcceptedRow:
    """What one recipe made of one world."""

    missing: float
    method: str
    seeds: int
    """Seeds, counted once for each pass."""
    refused: int
    """Rows rejected after the seeds, for any reason."""
    accepted: int
    defects: int
    rate: float
    """Share that is not sound; 0.0 without questions."""
    interval: tuple[float, float]
    """95% Wilson interval of the share; questions of one world share entities, so it is rather too narrow."""
    kinds: dict[str, int]
    examples: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class AcceptedRate:
    """All recipes of one missing rate against the allowed share."""

    missing: float
    accepted: int
    defects: int
    rate: float
    interval: tuple[float, float]
    allowed: float
    met: bool
    """Whether each recipe accepted something and the share of defects is below the limit; a limit of 0 allows none."""
    shown: bool
    """Whether even the upper end of the interval is below the limit."""


def evaluate(pool: Pool) -> tuple[AcceptedRow, ...]:
    """Evaluate all questions of a pool, one row per recipe."""
    truth = Truth(pool.world)
    judged = [(pool.find_method(question), judge_question(truth, question), question) for question in pool.questions]
    return tuple(_sum_up(pool, method, [row[1:] for row in judged if row[0] == method]) for method in pool.reports)


def measure_rate(missing: float, rows: Sequence[AcceptedRow]) -> AcceptedRate:
    """Compare what all recipes accepted at a missing rate with the allowed share."""
    here = [row for row in rows if row.missing == missing]
    share = make_share(sum(row.defects for row in here), sum(row.accepted for row in here))
    allowed = find_allowed(missing)
    below = share.share < allowed if allowed else share.count == 0
    return AcceptedRate(
        missing=missing,
        accepted=share.trials,
        defects=share.count,
        rate=share.share,
        interval=(share.low, share.high),
        allowed=allowed,
        met=below and bool(here) and all(row.accepted for row in here),
        shown=share.high < allowed,
    )


def find_allowed(missing: float) -> float:
    """Return the share of unsound questions that must not be reached at a missing rate; 0.0 allows none."""
    for (low, least), (high, most) in pairwise(ALLOWED):
        if missing <= high:
            return least + (most - least) * (missing - low) / (high - low)
    return ALLOWED[-1][1]


def _sum_up(pool: Pool, method: str, judged: Sequence[tuple[str, Grounding]]) -> AcceptedRow:
    kinds = Counter(kind for kind, _ in judged if kind)
    share, reports = make_share(kinds.total(), len(judged)), pool.reports[method]
    return AcceptedRow(
        missing=pool.missing,
        method=method,
        seeds=sum(funnel[0].rows_out for funnel in reports),
        refused=sum(sum(report.rejected.values()) for funnel in reports for report in funnel[1:]),
        accepted=share.trials,
        defects=share.count,
        rate=share.share,
        interval=(share.low, share.high),
        kinds=dict(kinds),
        examples=tuple(f"{kind}: {question.text}" for kind, question in judged if kind)[:SHOWN],
    )
