"""A whole question from the phrases of its entities: nested into one sentence, or told in steps."""

import re
from collections.abc import Sequence

from pipelines.backends.phrases import pick
from pipelines.backends.phrases_chains import SOFT, STYLES, Piece, find_noun, name_anchor, write_chain
from pipelines.backends.phrases_clauses import elide_names
from pipelines.backends.phrases_descriptors import Link, describe_hop
from pipelines.backends.phrases_frames import list_frames
from pipelines.backends.phrases_shapes import SLOT
from pipelines.ids import draw_unit
from schemas.tasks import SUBJECT, WriteQuestionInputs

_SOFT_BEFORE_MARK = re.compile(f"{SOFT}+(?=[,.;:?!)”])")
_SOFT_RUN = re.compile(f"{SOFT}+")
_SHORT_PATH = 2
_LONGEST_NESTED = 4
_NESTED = {0: 1.0, 1: 1.0, 2: 1 / 3}
"""Share of paths by length that are told in one sentence; of longer ones as many as take any one style of steps."""
_SHORT_PHRASE = 9
_LONG_PHRASE = 12
"""Words of a subject after which several words, or one, may still follow."""
_LONGEST_PHRASE = 28
"""Words of a subject that holds others."""


def compose_question(path: WriteQuestionInputs, hidden: Sequence[str], anchor: str) -> str:
    """Return the question.

    Args:
        path: with names, relations and the attribute asked for.
        hidden: descriptor of each node after the anchor, empty while it is named; shorter means none for the rest.
        anchor: the anchor's name or what stands for it.
    """
    hidden = pad_descriptors(hidden, len(path.hops))
    pieces = [_make_piece(path, index, given) for index, given in enumerate(hidden)]
    types = [path.anchor_type, *(hop.object_type for hop in path.hops)]
    if _is_nested(path.variety, pieces):
        intro, phrase = "", _nest(pieces, anchor)
        flat = len(pieces) <= _SHORT_PATH and all(piece.text.endswith(SUBJECT) for piece in pieces)
        flat = flat and len(phrase.split()) <= _LONG_PHRASE
    else:
        nouns = [name_anchor(path.anchor_type), *(find_noun(p.text, t) for p, t in zip(pieces, types[1:], strict=True))]
        intro, phrase = write_chain(pieces, anchor, nouns, path.variety)
        flat = (
            len(phrase.split()) <= _SHORT_PHRASE and not phrase.endswith(anchor) and pieces[-1].text.endswith(SUBJECT)
        )
    frame = _choose_frame(path, types[-1], 1 if flat else 0)
    if intro and len(phrase.split()) <= _LONGEST_NESTED:
        frame = _choose_frame(path, types[-1], _SHORT_PHRASE)
    return _punctuate(f"{intro} {frame.replace(SLOT, phrase)}".lstrip())


def pad_descriptors(descriptors: Sequence[str], length: int) -> tuple[str, ...]:
    """Return exactly so many descriptors, empty ones for those that are not given."""
    return (*descriptors, *([""] * length))[:length]


def _make_piece(path: WriteQuestionInputs, index: int, given: str) -> Piece:
    hop = path.hops[index]
    before = path.hops[index - 1].object_type if index else path.anchor_type
    names = [path.anchor_name, *(hop.object_name for hop in path.hops)]
    safe = hop.model_copy(update={"clause": elide_names(hop.clause, names)})
    text = given or describe_hop(Link(safe, before, before != path.anchor_type, path.variety))
    named = not given and index + 1 < len(path.hops)
    return Piece(text, find_noun(text, hop.object_type), hop.object_name if named else "")


def _is_nested(variety: str, pieces: Sequence[Piece]) -> bool:
    share = _NESTED.get(len(pieces), 1 / (len(STYLES) + 1) if len(pieces) <= _LONGEST_NESTED else 0.0)
    if draw_unit("nested", variety) >= share:
        return False
    phrase = ""
    for index, piece in enumerate(pieces):
        # "the town where the architect who designed the bridge was born" is as far as verbs may pile up.
        if index and not piece.text.endswith(SUBJECT) and len(phrase.split()) > _SHORT_PHRASE:
            return False
        phrase = piece.text.replace(SUBJECT, phrase)
    return len(pieces) == 1 or len(phrase.split()) <= _LONGEST_PHRASE


def _nest(pieces: Sequence[Piece], anchor: str) -> str:
    phrase = anchor
    for piece in pieces:
        phrase = piece.text.replace(SUBJECT, phrase)
        if piece.name:
            phrase = f"{piece.name}, {phrase}{SOFT}"
    return phrase


def _choose_frame(path: WriteQuestionInputs, subject_type: str, words_after: int) -> str:
    frames = list_frames(path.answer_relation, path.answer, subject_type)
    # A long phrase reads better at the end: "was the town where the architect was born founded" piles up verbs.
    short = [frame for frame in frames if len(frame.partition(SLOT)[2].strip("?").split()) <= words_after]
    return pick(short or frames, "frame", path.variety, path.answer_relation)


def _punctuate(text: str) -> str:
    text = _SOFT_RUN.sub(",", _SOFT_BEFORE_MARK.sub("", text))
    return text.replace("??", "?").replace("!?", "?") if text.endswith(("??", "!?")) else text
