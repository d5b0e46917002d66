"""Paths for the question tests: a one-line notation and random paths over the toy world's ontology."""

import random
from collections.abc import Sequence

from pipelines.toy.ontology import ATTRIBUTES, RELATIONS, SUBTYPES
from schemas.proofs import Answer
from schemas.tasks import FactView, HopView, WriteQuestionInputs

ANCHOR = "Anchor Quill"
BRIDGES = (
    "Vostra Pelm",
    "Hurdan Wick",
    "Zelka Morn",
    "Tobin Ashgrove",
    "Quenby Rusk",
    "Orla Vint",
    "Dastan Crool",
    "Yevna Plitz",
    "Gorm Haxby",
    "Ulric Zant",
)
"""Names with no word in common with any wording."""

_FORMS = {"date": "date", "quantity": "number", "count": "number", "text": "string"}


def make_answer(form: str, precision: str = "", unit: str = "") -> Answer:
    return Answer(type=form, value="1", precision=precision, unit=unit, surface="1", aliases=(), key="1")


def read_path(line: str, variety: str) -> WriteQuestionInputs:
    """Read ``bridge Kelm Bridge > architect = architect Ana Kovač > birth_date ? date day``.

    Each hop is ``relation = type name``; types of two words are joined by an underscore, and a ``~`` before the
    relation makes the hop a backward one.
    """
    first, *hops, asked = (part.strip() for part in line.split(" > "))
    anchor_type, _, anchor_name = first.partition(" ")
    views = []
    for hop in hops:
        relation, _, target = hop.partition(" = ")
        noun, _, name = target.partition(" ")
        relation, _, clause = relation.partition(" : ")
        view = HopView(
            relation=relation.removeprefix("~"),
            clause=clause,
            object_name=name,
            object_type=noun.replace("_", " "),
            backward=relation.startswith("~"),
        )
        views.append(view)
    key, _, form = asked.partition(" ? ")
    kind, precision, unit = (*form.split(" "), "", "")[:3]
    return WriteQuestionInputs(
        anchor_name=anchor_name,
        anchor_type=anchor_type.replace("_", " "),
        hops=tuple(views),
        answer_relation=key,
        answer=make_answer(kind, precision.strip("-"), unit.replace("_", " ")),
        variety=variety,
    )


def draw_path(rng: random.Random, lengths: Sequence[int] = (1, 2, 3, 4), backward: bool = False) -> WriteQuestionInputs:
    """Return a random path over the toy world's relations, ending in one of its attributes."""
    while True:
        length = rng.choice(lengths)
        start = kind = rng.choice([subtype.name for subtype in SUBTYPES if subtype.weight > 0])
        hops: list[HopView] = []
        for name in BRIDGES[:length]:
            relations = [r for r in RELATIONS if kind in (r.objects if backward else r.subjects)]
            if not relations:
                break
            relation = rng.choice(relations)
            before, kind = kind, rng.choice(relation.subjects if backward else relation.objects)
            key = relation.key_for(kind if backward else before)
            hops.append(HopView(relation=key, clause="", object_name=name, object_type=kind, backward=backward))
        attributes = [attribute for attribute in ATTRIBUTES if kind in attribute.subjects]
        if len(hops) < length or not attributes:
            continue
        attribute = rng.choice(attributes)
        precision = rng.choice(["day", "month", "year"]) if attribute.kind == "date" else ""
        return WriteQuestionInputs(
            anchor_name=ANCHOR,
            anchor_type=start,
            hops=tuple(hops),
            answer_relation=attribute.key_for(kind),
            answer=make_answer(_FORMS[attribute.kind], precision, attribute.unit),
            variety=str(rng.random()),
        )


def draw_facts(rng: random.Random, kind: str) -> tuple[FactView, ...]:
    """Return literal facts of an entity of a type of the toy world; dates also as decade and century."""
    facts: list[FactView] = []
    for attribute in ATTRIBUTES:
        if kind not in attribute.subjects:
            continue
        year = rng.randint(1780, 1980)
        texts = {
            "date": (f"{rng.randint(1, 28)} May {year}", f"{year // 10 * 10}s", f"{year // 100 + 1}th century"),
            "quantity": (f"{rng.randint(10, 900)} {attribute.unit}",),
            "count": (f"{rng.randint(1000, 90000):,}",),
            "text": (rng.choice(attribute.words or ("plain",)),),
        }[attribute.kind]
        facts += [FactView(relation=attribute.key_for(kind), text=text) for text in texts]
    return tuple(facts)
