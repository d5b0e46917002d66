"""What an entity that was introduced is called later, so that the phrase can mean no other one of the question."""

import re
from collections.abc import Sequence

from pipelines.backends.phrases import pick
from pipelines.backends.phrases_nouns import AGENTS, classify_noun, find_head
from schemas.tasks import SUBJECT

_ORDINALS = ("", "first", "second", "third", "fourth")
_ROLES = {
    "married|was married to|married to|whom [subject] married": "spouse",
    "is listed as a child of|is the son or daughter of|was the son or daughter of|was a child of|born to": "child",
    "was a parent of|was the father or mother of|fathered|was the father of|gave birth to|was the mother of": "parent",
    "is a sibling of|was a sibling of|was the brother or sister of|brother or sister of": "sibling",
    "supervised the doctorate of|advised the doctoral work of": "doctoral advisor",
    "wrote a doctoral thesis under": "doctoral student",
    "taught|instructed": "teacher",
    "studied under|was a student of": "student",
    "designed|drew the plans for|drew up the design of": "designer",
    "founded|set up|started": "founder",
    "discovered|is credited with the discovery of": "discoverer",
    "leads|is listed as the leader of": "leader",
}
"""Ends of a phrase for a person, before its slot, and what they make of the person."""
_BACK = {words: role for many, role in _ROLES.items() for words in many.split("|")}
_END = re.compile(rf"\b({'|'.join(sorted(map(re.escape, _BACK), key=len, reverse=True))})(?: {re.escape(SUBJECT)})?$")
_COVERED = {
    "person": "person",
    "place": "settlement region",
    "settlement": "settlement",
    "building": "building",
    "structure": "building",
    "organisation": "organisation museum gallery library theatre hospital school",
    "institution": "organisation museum gallery library theatre hospital school",
    "work": "work",
}
"""Kinds and heads of what a general noun may also mean."""


def name_role(text: str) -> str:
    """Return what a descriptor makes of a person, such as ``spouse``, empty when that is not known."""
    found = _END.search(text)
    return _BACK[found[1]] if found else ""


def choose_nouns(nouns: Sequence[str], roles: Sequence[str]) -> list[str]:
    """Return the noun of each entity, or its role where the noun may mean another one that was introduced before.

    Args:
        nouns: of the anchor and each further entity, in the order in which they are introduced.
        roles: of the same, empty where there is none.
    """
    chosen: list[str] = []
    for noun, role in zip(nouns, roles, strict=True):
        clear = not role or not _find_rivals(noun, chosen) or bool(_find_rivals(role, chosen))
        chosen.append(noun if clear else role)
    return chosen


def list_references(nouns: Sequence[str], found: str, variety: str) -> list[str]:
    """Return what each entity is called later, empty where no short phrase is clear.

    ``that town`` is for the only town so far. Others are told apart by the order in which they were introduced, or by
    being the last: a reference is always to the entity that was introduced last.

    Args:
        nouns: of the anchor and each further entity, in the order in which they are introduced.
        found: what was done to the last entity, such as ``reached``.
        variety: decides between phrases that are equally clear.
    """
    references: list[str] = []
    for index, noun in enumerate(nouns):
        rivals = _find_rivals(noun, nouns[:index])
        options = [f"that {noun}"]
        if rivals:
            options = [f"the {noun} just {found}", f"the {noun} {found} last"]
            # Of what the picture shows, or what has another noun, no reader is sure whether it counts.
            if 0 not in rivals and all(find_head(nouns[rival]) == find_head(noun) for rival in rivals):
                options += [f"that {ordinal} {noun}" for ordinal in _ORDINALS[len(rivals) + 1 :][:1]]
                options += [f"the latter {noun}"] if len(rivals) == 1 else []
        # Two steps of one sentence may each refer to the step before.
        fresh = [option for option in options if option not in references[-1:]]
        references.append(pick(fresh, "refer", variety, index) if noun else "")
    return references


def _find_rivals(noun: str, before: Sequence[str]) -> list[int]:
    """Return which of the entities introduced before a noun may mean."""
    covered = set(_COVERED.get(find_head(noun), "").split())
    return [
        index
        for index, other in enumerate(before)
        if noun and other and (find_head(other) == find_head(noun) or covered & _list_kinds(other))
    ]


def _list_kinds(noun: str) -> set[str]:
    if noun in _BACK.values():
        return {"person"}
    head = find_head(noun)
    return {"person", "organisation"} if head in AGENTS else {classify_noun(noun), head}
