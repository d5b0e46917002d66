"""The planted defects, and single faults of a question, as small sets of minimal pairs."""

import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from itertools import islice
from random import Random

from pipelines.checks.descriptors import offer_facts
from pipelines.checks.examination import Claim
from pipelines.checks.proofs import find_problems
from pipelines.checks.verdicts import PASSED, CheckResult
from pipelines.graph.facts import read_attributes
from pipelines.graph.query import Indexes
from schemas.datasets import Grounding
from schemas.proofs import Constraint, Proof, Thresholds
from schemas.tasks import SUBJECT
from tests.mutants.corpora import SCENES, WORDS, Corpora, Judge, examine_pair, keep, limit
from tests.pipelines.checks.claims import prove
from tests.planted import corpus_plants
from tests.planted import corpus_plants as lone_plants
from tests.planted import corpus_plants as set_plants
from tests.planted import corpus_plants as truth_plants
from tests.planted.scenes import (
    UNVERIFIED,
    Case,
    Scene,
    Twins,
    add_sentence,
    change_at,
    list_changes,
    verify,
)
from tests.planted.text_plants import DEFECTS
from tests.planted.words import Pair

PLANTED = 40
"""Pairs of a defect that lies in a text alone: there are many ways to write a name, and each costs little."""


def list_text_sets() -> dict[str, Judge]:
    return {f"{defect.code} {defect.title}": partial(_plant_text, defect.plant) for defect in DEFECTS}


def _plant_text(plant: Callable) -> list[Pair]:
    rng = Random(5)
    return [plant(WORDS, rng) for _ in range(PLANTED)]


def list_scene_sets(corpora: Corpora) -> dict[str, Judge]:
    operators = {
        "D06 visible twin": corpus_plants.plant_twin,
        "D07 hidden twin": corpus_plants.plant_hidden_twin,
        "D07 hidden value": corpus_plants.plant_hidden_value,
        "D08 second value": corpus_plants.plant_second_value,
        "D09 stands alone": lone_plants.plant_lone_descriptor,
        "D10 shorter way": corpus_plants.plant_shortcut,
        "D11 picture decorates": corpus_plants.plant_idle_picture,
        "D14 gold of a question": truth_plants.plant_gold,
        "D15 volatile": truth_plants.plant_volatile,
        "D18 one search": truth_plants.plant_searchable,
    }
    judged = {"D19 repeats": set_plants.plant_repeat}
    own: dict[str, Callable[[Case], Twins | None]] = {
        "a descriptor left out": _lose_words,
        "a fact nobody counted": _tell_fact,
        "a question of its day": _date_question,
        "two faults at once": _plant_two,
        "an answer on the anchor's page": _tell_answer,
        "an answer that does not follow": _plant_answer,
        "a field of two values": _plant_value,
        "an uncontradicted answer": _relax_agreement,
    }
    return {
        **{name: keep(corpora, partial(_draw_twins, operator)) for name, operator in operators.items()},
        **{name: keep(corpora, lambda case, plant=plant: plant(case)) for name, plant in own.items()},
        **{name: _judge_each(corpora, operator) for name, operator in judged.items()},
        "D24 tampered proof": _tamper(corpora),
        "a constraint that is not said": _judge_unsaid(corpora),
        "a sentence cited otherwise": partial(_judge_cited, Indexes(corpora.toy)),
    }


def _draw_twins(operator: Callable, case: Case) -> Twins | None:
    return operator(case, WORDS, Random(f"mutants:{case.question.record_id}"))


def _judge_each(corpora: Corpora, operator: Callable) -> Judge:
    def judge() -> list[Pair]:
        drawn = (operator(corpora.cases[0], WORDS, Random(number)) for number in range(6))
        return [pair for pair in drawn if pair is not None]

    return judge


def _lose_words(case: Case) -> Twins | None:
    """A question without a piece of a descriptor that its proof has."""
    for descriptor in case.question.proof.descriptors:
        for piece in descriptor.split(SUBJECT):
            text = re.sub(re.escape(piece.strip()), "that", case.claim.text, flags=re.IGNORECASE)
            if piece.strip() and text != case.claim.text:
                return examine_pair(case, replace(case.claim, text=text), "descriptor-lost")
    return None


def _tell_fact(case: Case) -> Twins | None:
    """A question that tells a fact of its anchor that is no constraint of the proof."""
    for attribute in read_attributes(case.corpus, case.numbers[0]):
        text = f"{case.claim.text} ({attribute.fact.text})"
        return examine_pair(case, replace(case.claim, text=text), "fact-unproved")
    return None


def _date_question(case: Case) -> Twins:
    return examine_pair(case, replace(case.claim, text=f"As of today: {case.claim.text}"), "volatile")


def _plant_two(case: Case) -> Twins:
    """The second of two faults: what stops at the first one does not name it."""
    title = case.question.proof.nodes[0].title
    return examine_pair(case, replace(case.claim, text=f"As of today, of {title}: {case.claim.text}"), "volatile")


def _plant_answer(case: Case) -> Twins | None:
    """A gold that the query does not have, whatever else is said against it."""
    twins = truth_plants.plant_gold(case, WORDS, Random(1))
    return None if twins is None else replace(twins, codes=("answer-changed",))


def _tell_answer(case: Case) -> Twins:
    """The answer on the very first page, where nobody has to follow a hop for it; and another word there."""
    anchor = case.numbers[0]
    text, told = case.corpus.text(anchor), case.question.answer.surface
    clean, bad = (
        Scene(case.claim, {anchor: add_sentence(text, f"It is often shown with {word}.")}) for word in ("lamps", told)
    )
    return Twins(told, clean, bad, ("answer-on-earlier-page",))


def _plant_value(case: Case) -> Twins | None:
    """A field with a second value, which is a finding of its own beside the entities that fit."""
    twins = corpus_plants.plant_second_value(case, WORDS, Random(case.question.record_id))
    return None if twins is None else replace(twins, codes=("multi-valued",))


def _relax_agreement(case: Case) -> Twins | None:
    """A gold that prose disputes, where cue words alone decide, and it may say nothing but not another thing."""
    twins = truth_plants.plant_gold(case, WORDS, Random(3))
    if twins is None:
        return None
    clean, bad = _relax(twins.clean), _relax(twins.defective)
    return replace(twins, clean=clean, defective=bad, codes=("answer-disputed",), read=False)


def _relax(scene: Scene) -> Scene:
    return replace(scene, claim=limit(scene.claim, agreement="uncontradicted", read_pages=False))


def _tamper(corpora: Corpora) -> Judge:
    """Every single change of a question of each recipe, and demands that no proof may make."""
    kept: list[tuple] = []

    def judge() -> list[Pair]:
        ground = corpora.pool.ground
        if not kept:
            for row in (corpora.pool.questions[0], corpora.pool.questions[-1]):
                kept.extend((row, place, changed) for place, changed in list_changes(row, Random(2)))
                kept.append((row, ("proof", "thresholds", "answer_share"), 1.5))
                kept.append((row, ("proof", "thresholds", "near_misses"), -1))
        clean = {row.record_id: _verify(ground, row) for row, _, _ in kept}
        return [
            Pair(str(place), clean[row.record_id], _verify(ground, change_at(row, place, changed)), (UNVERIFIED,))
            for row, place, changed in kept
        ]

    return judge


def _judge_cited(ground: Indexes) -> list[Pair]:
    """A quoted sentence whose evidence names another page, revision or text, where its span and clause are right."""
    said = "The money for it came from the banker [subject] of the old town."
    path = (("Kelm Bridge", "Hans Oder", "Lumby"), ("mentions", "birth_place"), "established_date", (said, ""))
    claim = prove(ground, *path, "In which year was it established", Thresholds(alone_first=1, alone=2, answers=0))
    first, *others = claim.proof.hops
    pairs = []
    for changed in ({"revision": 1}, {"title": "Lumby"}, {"text": "The money came from elsewhere."}):
        hop = first.model_copy(update={"evidence": first.evidence.model_copy(update=changed)})
        bad = replace(claim, proof=claim.proof.model_copy(update={"hops": (hop, *others)}))
        pairs.append(Pair(str(changed), _judge_claim(ground, claim), _judge_claim(ground, bad), (UNVERIFIED,)))
    return pairs


def _judge_claim(ground: Indexes, claim: Claim) -> CheckResult:
    problems = find_problems(ground, claim)
    return CheckResult("FAIL", UNVERIFIED, "; ".join(problems)) if problems else PASSED


def _judge_unsaid(corpora: Corpora) -> Judge:
    """A proof with a true fact that its descriptor does not say, where nothing else is wrong with it."""
    ground = corpora.pool.ground
    kept: list[tuple[Grounding, Grounding]] = []

    def judge() -> list[Pair]:
        if not kept:
            changed = (
                (row, change_at(row, ("proof",), proof))
                for row in corpora.pool.questions
                for proof in _add_unsaid(corpora, row)
            )
            alone = (pair for pair in changed if _verify(ground, pair[1]).detail.startswith("descriptor: "))
            kept.extend(islice(alone, SCENES))
        return [Pair(row.text, _verify(ground, row), _verify(ground, bad), (UNVERIFIED,)) for row, bad in kept]

    return judge


def _add_unsaid(corpora: Corpora, row: Grounding) -> Iterator[Proof]:
    """Yield the proof with one more fact of its first hidden node, a true one that the descriptor does not say."""
    corpus, proof = corpora.pool.corpus, row.proof
    for fact in offer_facts(corpus, corpus.find(proof.nodes[1].title), 6):
        more = Constraint(node=1, relation=fact.relation, value=fact.text)
        if more not in proof.constraints:
            fields = {"constraints": (*proof.constraints, more), "redundant": (*proof.redundant, more)}
            yield proof.model_copy(update=fields)


def _verify(ground: Indexes, row: Grounding) -> CheckResult:
    try:
        return verify(ground, row)
    except (LookupError, ValueError) as error:
        # A part that was to stop the search did not: what comes after it met what it cannot read.
        return CheckResult("FAIL", "raised", repr(error))
