"""Paths for the question tests: a one-line notation, and random paths over the toy world's ontology."""

import random

from pipelines.world.attributes import ATTRIBUTES
from pipelines.world.relations import RELATIONS
from pipelines.world.subtypes import SUBTYPES
from schemas.proofs import Answer
from schemas.tasks import HopView, WriteQuestionInputs

ANCHOR = "Anchor Quill"
BRIDGES = ("Vostra Pelm", "Hurdan Wick", "Zelka Morn", "Tobin Ashgrove")
"""Names with no word in common with any wording."""

_FORMS = {"date": "date", "quantity": "number", "count": "number", "text": "string"}


def make_answer(form: str, precision: str = "", unit: str = "") -> Answer:
    return Answer(type=form, value="1", precision=precision, unit=unit, surface="1", aliases=(), key="1")


def read_path(line: str, variety: str) -> WriteQuestionInputs:
    """Read ``bridge Kelm Bridge > architect = architect Ana Kovač > birth_date ? date day``.

    Each hop is ``relation = type name``; types of two words are joined by an underscore.
    """
    first, *hops, asked = (part.strip() for part in line.split(" > "))
    anchor_type, _, anchor_name = first.partition(" ")
    views = []
    for hop in hops:
        relation, _, target = hop.partition(" = ")
        noun, _, name = target.partition(" ")
        relation, _, clause = relation.partition(" : ")
        views.append(HopView(relation=relation, clause=clause, object_name=name, object_type=noun.replace("_", " ")))
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


def draw_path(rng: random.Random) -> WriteQuestionInputs:
    """Return a random path of 1 to 4 hops over the toy world's relations, ending in one of its attributes."""
    while True:
        length = rng.randint(1, 4)
        start = kind = rng.choice([subtype.name for subtype in SUBTYPES if subtype.weight > 0])
        hops: list[HopView] = []
        for name in BRIDGES[:length]:
            leaving = [relation for relation in RELATIONS if kind in relation.subjects]
            if not leaving:
                break
            relation = rng.choice(leaving)
            key, kind = relation.key_for(kind), rng.choice(relation.objects)
            hops.append(HopView(relation=key, clause="", object_name=name, object_type=kind))
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
