"""Alternatives planted beside the answers of clean questions, each in a world of its own."""

from dataclasses import dataclass
from random import Random

from pipelines.checks.agreement import check_alternative, find_corroboration
from pipelines.graph.answers import compare_answers, derive_answer
from pipelines.graph.facts import read_attributes
from pipelines.graph.query import locate_nodes
from tests.planted.scenes import (
    Case,
    Scene,
    add_sentence,
    find_facts,
    lay,
    relocate,
    set_field,
)
from tests.planted.words import load_half

WORDS = load_half("open")


@dataclass(frozen=True)
class Alternative:
    """Another answer, and a world in which it is right."""

    kind: str
    given: str
    scene: Scene


def make_case(pool, question):
    return Case(pool, question, tuple(locate_nodes(pool.corpus, question.proof.nodes)))


def list_siblings(case):
    """Return answers of other entities to the same question, none of which may be the reference."""
    proof, answer = case.question.proof, case.question.answer
    found = {}
    for node in case.corpus.article_nodes():
        for attribute in read_attributes(case.corpus, node):
            if attribute.fact.key == proof.answer_relation and node not in case.numbers:
                other = derive_answer(attribute.answer, proof.derivation)
                if other is not None and other.type == answer.type and not alike(other, answer):
                    found[other.key] = (other, attribute)
    return [found[key] for key in sorted(found)]


def alike(other, answer):
    words = set(other.surface.casefold().split()) & set(answer.surface.casefold().split())
    return compare_answers(other.surface, answer) == "correct" or (answer.type in ("name", "string") and bool(words))


def ask(case, scene, given):
    """Return what the check says of an alternative in a scene."""
    with lay(case.pool, scene) as ground:
        return check_alternative(ground, relocate(case.claim.proof, ground.corpus), case.question.answer, given)


def plant(case, kind, rng):
    """Return an alternative of a kind, or None when the question admits none."""
    siblings = list_siblings(case)
    return PLANTS[kind](case, *rng.choice(siblings), rng) if siblings else None


def plant_list(case, other, attribute, rng):
    """The field holds a list of two."""
    (fact,) = find_facts(case.corpus, case.numbers[-1], case.question.proof.answer_relation)
    text = case.corpus.text(case.numbers[-1])
    raw, more = text[fact.field_start : fact.field_end].strip(), raw_value(case, attribute)
    page = set_field(text, fact, f"{{{{ubl|{raw}|{more}}}}}")
    return Alternative("list", other.surface, Scene(case.claim, {case.numbers[-1]: page}))


def plant_twin_key(case, other, attribute, rng):
    """A numbered twin of the field holds another value."""
    (fact,) = find_facts(case.corpus, case.numbers[-1], case.question.proof.answer_relation)
    text, key = case.corpus.text(case.numbers[-1]), case.question.proof.answer_relation
    raw = text[fact.field_start : fact.field_end].rstrip("\n")
    page = set_field(text, fact, f"{raw}\n| {key}2 = {raw_value(case, attribute)}\n")
    return Alternative("twin key", other.surface, Scene(case.claim, {case.numbers[-1]: page}))


def plant_prose(case, other, attribute, rng):
    """A sentence like the one that states the answer states another value."""
    proof, answer = case.question.proof, case.question.answer
    said = find_corroboration(case.pool.ground, case.numbers[-1], proof.answer_relation, answer)
    if said.outcome != "agrees" or answer.surface not in said.evidence.text or said.evidence.start < 300:
        return None
    sentence = said.evidence.text.replace(answer.surface, other.surface)
    page = add_sentence(case.corpus.text(case.numbers[-1]), sentence)
    return Alternative("prose", other.surface, Scene(case.claim, {case.numbers[-1]: page}))


def raw_value(case, attribute):
    return case.corpus.text(attribute.fact.node)[attribute.fact.field_start : attribute.fact.field_end].strip()


PLANTS = {"list": plant_list, "twin key": plant_twin_key, "prose": plant_prose}


def draw(pool, kind, seed=0):
    """Yield the alternatives of a kind over all questions of a pool, with their cases."""
    for number, question in enumerate(pool.questions):
        case = make_case(pool, question)
        found = plant(case, kind, Random(f"{seed}:{kind}:{number}"))
        if found is not None:
            yield case, found
