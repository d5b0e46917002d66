"""Question frames: how the attribute of the last entity is asked for."""

from collections.abc import Sequence

from pipelines.backends.phrases import find_attribute, find_relation, split_key
from pipelines.backends.phrases_nouns import is_known_unit, name_kind, name_unit
from pipelines.backends.phrases_shapes import SLOT, AttributeWording, RelationWording
from schemas.proofs import Answer

_WHEN: dict[str, tuple[str, ...]] = {
    "day": ("On what date", "On which date", "On what day, month and year"),
    "month": ("In what month and year", "In which month of which year"),
    "year": ("In what year", "In which year"),
}
_EVENT: dict[str, tuple[str, ...]] = {
    "day": ("What is the exact date of {e}", "What is the full date of {e}", "Which date saw {e}"),
    "month": ("What were the month and year of {e}", "Which month of which year saw {e}"),
    "year": ("Which year saw {e}", "What was the year of {e}", "What year is given for {e}"),
}
_FRAMES = 4
_LISTED: dict[str, str] = {"day": "exact date", "month": "month and year", "year": "year"}


def list_frames(key: str, answer: Answer, subject_type: str) -> tuple[str, ...]:
    """Return the questions that ask for an attribute at the answer's precision and in its unit.

    Args:
        key: infobox key of the attribute.
        answer: typed answer; only its type, precision and unit are used.
        subject_type: noun of the entity that has the attribute.

    Returns:
        At least four questions ending with ``?``, each with one ``{s}``.
    """
    row = find_attribute(key, subject_type)
    noun = split_key(key) if row is None else row.noun
    if answer.type == "date":
        frames = _ask_date(row, noun, answer.precision or "year")
    elif answer.type == "number":
        frames = _ask_number(row, noun, answer.unit)
    elif row is not None:
        frames = _ask_word(row)
    else:
        relation = find_relation(key, subject_type, "")
        frames = _ask_listed(noun) if relation is None else _ask_relation(relation)
    return tuple(f"{frame}?" for frame in frames)


def _ask_date(row: AttributeWording | None, noun: str, precision: str) -> list[str]:
    if row is None or row.form != "date":
        listed = _LISTED[precision]
        return [
            f"What {listed} is given as the {noun} of {SLOT}",
            f"What {listed} is listed as the {noun} of {SLOT}",
            f"What {listed} does the article give as the {noun} of {SLOT}",
            f"Under the heading “{noun}”, what {listed} is given for {SLOT}",
        ]
    event = f"the {noun} of {SLOT}" if noun else SLOT
    inverted = [f"{when} {ask}" for when in _WHEN[precision] for ask in row.asks]
    return [*inverted, *(frame.replace("{e}", event) for frame in _EVENT[precision])]


def _ask_number(row: AttributeWording | None, noun: str, unit: str) -> list[str]:
    asks = row.asks if row is not None and row.form == "number" else ()
    noun = noun or "number"
    plain = [ask for ask in asks if "{unit}" not in ask]
    if not is_known_unit(unit):
        # "4,210 inhabitants" counts things; asking for the population "in inhabitants" would be odd.
        counted = [f"How many {unit} are given as the {noun} of {SLOT}"] if unit and not plain else []
        spare = (f"What figure is given as the {noun} of {SLOT}", f"What is recorded as the {noun} of {SLOT}")
        return _fill([*plain, *counted, f"What is the {noun} of {SLOT}"], (*spare, f"Which {noun} is given for {SLOT}"))
    name = name_unit(unit)
    natural = [
        *(ask.replace("{unit}", name) for ask in asks if "{unit}" in ask),
        f"In {name}, what is the {noun} of {SLOT}",
        f"What is the {noun} of {SLOT}, in {name}",
    ]
    return _fill(natural, (f"What is the {noun}, in {name}, of {SLOT}", f"What {noun}, in {name}, is given for {SLOT}"))


def _ask_word(row: AttributeWording) -> list[str]:
    asks = list(row.asks) if row.form == "word" else []
    noun = row.noun or "date"
    spare = (f"What is given as the {noun} of {SLOT}", f"What {noun} is given for {SLOT}")
    return _fill([*asks, f"What is the {noun} of {SLOT}"], (*spare, f"What is listed as the {noun} of {SLOT}"))


def _fill(frames: Sequence[str], spare: Sequence[str]) -> list[str]:
    """Return the frames, with as many clumsier ones as make four of them."""
    distinct = list(dict.fromkeys(frames))
    return [*distinct, *(frame for frame in spare if frame not in distinct)][: max(len(distinct), _FRAMES)]


def _ask_listed(noun: str) -> list[str]:
    return [
        f"What is given as the {noun} of {SLOT}",
        f"What is listed as the {noun} of {SLOT}",
        f"What does the article give as the {noun} of {SLOT}",
        f"Under the heading “{noun}”, what is given for {SLOT}",
    ]


def _ask_relation(relation: RelationWording) -> list[str]:
    person = name_kind("", relation.noun) == "person"
    frames = [f"What is the name of {plain}" for plain in relation.plains]
    frames += [f"{'Who' if person else 'What'} is given as {plain}" for plain in relation.plains]
    for tail in relation.tails:
        _, _, rest = tail.partition(" ")
        # "that {s} belongs to" has no question form without moving its verb.
        if tail.startswith(("{who} ", "that ")) and not rest.startswith(SLOT):
            frames.append(f"{'Who' if person else f'Which {relation.noun}'} {rest}")
    return frames
