"""Questions in steps: one entity a clause, each named by what the clause before called it.

``Find the architect of the bridge in the image, then the town where that architect was born. How long is the river that
flows through that town?``
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from pipelines.backends.phrases import pick
from pipelines.backends.phrases_nouns import AGENTS, classify_noun, clean_noun, find_head, name_kind
from pipelines.backends.phrases_references import choose_nouns, list_references, name_role
from pipelines.ids import draw_unit
from schemas.tasks import SUBJECT

SOFT = "\ue000"
"""A comma that disappears before other punctuation; no page text can hold it."""

ENDS = (".", "?", "!")
_STEPPED = 0.35
"""Share of questions in which the last entity is a step of its own: ``How long is that river?``"""
_LONG_NOUN = 3
_THAT_SLOT = f" that {SUBJECT}"
_NOUN = re.compile(
    r"the (?P<noun>[\w'’ -]+?)(?=,| (?:who|whom|that|whose|where|which|of|at|in|on|to|for|from|by|with|behind|near"
    r"|around|after|under|over|beneath|across|about|within|between|given|listed|born|built|made|held|kept|known|set|led|run"
    r"|cut|shot|found|written|taught|fought|broadcast|\w+ed|\w+ing|\w+ (?:which|whom)|first|native|nearest|won)\b)",
    re.IGNORECASE,
)
_CALLED = {
    **dict.fromkeys(("birthplace", "home", "scene", "site", "seat", "setting", "location", "finding place"), "place"),
    **dict.fromkeys(("one", "star", "chief influence", "key figure", "relative"), "person"),
    "husband or wife": "spouse",
    "son or daughter": "child",
    "brother or sister": "sibling",
    "alma mater": "institution",
    **dict.fromkeys(("native land", "launch site"), "place"),
    "body": "body of water",
    "twin town": "town",
    "home country": "country",
    "home port": "port",
    "home ground": "ground",
    "chief inflow": "water",
    "main stream": "river",
    "first belligerent": "belligerent",
    "second belligerent": "belligerent",
    "national anthem": "anthem",
    "political party": "party",
    "capital city": "city",
    "notable work": "work",
    "principal settlement": "settlement",
    "parent organisation": "organisation",
    **dict.fromkeys(("source", "chief claim", "larger whole", "mouth"), ""),
}
"""What to call an entity later where the noun of its phrase is odd without the rest; nothing if no noun will do."""


@dataclass(frozen=True, slots=True)
class Piece:
    """One entity in words: its descriptor with the slot, what it is called later, and its name while it has one."""

    text: str
    noun: str
    name: str


@dataclass(frozen=True, slots=True)
class Style:
    """How steps become sentences.

    Attributes:
        openings: start of each sentence with its first step ``{a}``; the last but one and the last take turns.
        links: how the second step ``{b}`` joins the first, in turns.
        found: what was done to an entity once it has been introduced.
        size: steps a sentence, 1 or 2.
    """

    openings: tuple[str, ...]
    links: tuple[str, ...]
    found: str
    size: int = 2


# fmt: off
STYLES: tuple[Style, ...] = (
    Style(("Find {a}", "Next, find {a}", "From there, find {a}"), (", then {b}", ", and then {b}"), "found"),
    Style(("Start from {a}", "Continue to {a}", "Move on to {a}"),
          (" and go on to {b}", ", and from there to {b}"), "reached"),
    Style(("Consider {a}", "Next, consider {a}", "Then consider {a}"),
          (", and then {b}", ", and after that {b}"), "considered"),
    Style(("Take {a}", "After that, take {a}", "Next, take {a}"),
          ("; from there, turn to {b}", ", and turn to {b}"), "reached"),
    Style(("Identify {a}", "Then identify {a}", "After that, identify {a}", "Next, identify {a}"),
          (), "identified", 1),
    Style(("Begin with {a}", "Carry on with {a}", "Go on with {a}"),
          (" and proceed to {b}", ", and then with {b}"), "reached"),
    Style(("Look up {a}", "Then look up {a}", "Next, look up {a}"),
          (", and after that {b}", "; then look up {b}"), "found"),
    Style(("Think of {a}", "Then think of {a}", "Next, think of {a}"),
          (", and next of {b}", ", and then of {b}"), "considered"),
)
# fmt: on


def find_noun(text: str, object_type: str) -> str:
    """Return what a descriptor calls its entity: a noun that stands in it, empty when none can be told."""
    whole = clean_noun(object_type)
    folded = text.casefold()
    if whole and re.match(rf"the {re.escape(whole.casefold())}(?!\w)", folded):
        return whole if " of " not in whole and len(whole.split()) <= _LONG_NOUN else find_head(whole)
    found = _NOUN.match(text)
    noun = found["noun"].strip().casefold() if found else ""
    if noun in AGENTS:
        # Nobody edits or founds an owner.
        return name_kind(whole, noun)
    return _CALLED.get(noun, noun if len(noun.split()) <= _LONG_NOUN else "")


def name_anchor(anchor_type: str) -> str:
    """Return the noun by which a question may call the anchor."""
    noun = clean_noun(anchor_type)
    return name_kind(noun, noun) if classify_noun(noun) == "person" else find_head(noun)


def write_chain(pieces: Sequence[Piece], anchor: str, nouns: Sequence[str], variety: str) -> tuple[str, str]:
    """Return the sentences that lead to the last entity, and the phrase for it.

    Args:
        pieces: the entities after the anchor; at least two.
        anchor: the anchor's name or reference.
        nouns: of the anchor and of every piece.
        variety: decides the style.
    """
    style = pick(STYLES, "style", variety)
    roles = ["", *(name_role(piece.text) for piece in pieces)]
    called = choose_nouns(nouns, roles)
    references = list_references(called, style.found, variety)
    steps: list[str] = []
    for index, piece in enumerate(pieces):
        subject = references[index] if index else anchor
        if subject.startswith("that ") and _THAT_SLOT in piece.text:
            # Not "the opera that that composer wrote".
            subject = f"the {called[index]} just {style.found}"
        phrase = piece.text.replace(SUBJECT, subject or steps.pop())
        steps.append(f"{piece.name}, {phrase}{SOFT}" if piece.name else phrase)
    last = references[-1] if draw_unit("stepped", variety) < _STEPPED else ""
    last = last or steps.pop()
    return _write_steps(steps, style), last


def _write_steps(steps: Sequence[str], style: Style) -> str:
    sentences = []
    for number, start in enumerate(range(0, len(steps), style.size)):
        opening = style.openings[number if number < len(style.openings) else -1 - number % 2]
        sentence = opening.replace("{a}", steps[start])
        for step in steps[start + 1 : start + style.size]:
            sentence += style.links[number % len(style.links)].replace("{b}", step)
        sentence = sentence.rstrip(SOFT)
        sentences.append(sentence if sentence.endswith(ENDS) else f"{sentence}.")
    return " ".join(sentences)
