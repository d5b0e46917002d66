"""Shapes of the word tables.

In every table ``{s}`` is the slot for whatever refers to the subject. ``keys``, ``subjects`` and ``objects`` are words
separated by spaces; ``subjects`` and ``objects`` hold kinds (``building``) or head nouns (``bridge``), and a row
without them fits every noun. The first row that fits is used, so a general row comes after its exceptions.
"""

from dataclasses import dataclass
from typing import Literal

SLOT = "{s}"

Kind = Literal[
    "",
    "person",
    "settlement",
    "region",
    "nature",
    "building",
    "organisation",
    "work",
    "event",
    "species",
    "object",
    "concept",
]
Form = Literal["date", "number", "word"]


@dataclass(frozen=True, slots=True)
class RelationWording:
    """How one relation between entities is put into words.

    Attributes:
        keys: normalised infobox keys, as ``phrases.normalise_key`` makes them.
        noun: what to call the object when its type is unknown.
        plains: complete phrases for the object, such as ``the architect of {s}``.
        tails: what may follow ``the <noun> ``; ``{who}`` becomes ``who`` for a person and ``that`` otherwise. The first
            begins with a relative word, so that a qualifier can stand between the noun and it.
        subjects: kinds or head nouns the subject must have.
        objects: kinds or head nouns the object must have.
        inverses: the relation the other way round, ``{s}`` being the object: what may follow ``the <noun> `` of the
            subject, such as ``designed by {s}``. One of them at least is a relative clause that ends with its slot.
    """

    keys: str
    noun: str
    plains: tuple[str, ...]
    tails: tuple[str, ...]
    subjects: str = ""
    objects: str = ""
    inverses: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class AttributeWording:
    """How one literal attribute is asked for and used as a qualifier.

    Attributes:
        keys: normalised infobox keys.
        form: what its values are; an answer of another form is asked for by ``noun`` alone.
        noun: completes ``the <noun> of {s}``.
        asks: for a date, inverted clauses (``was {s} born``) that follow ``In what year``; otherwise whole questions
            without the question mark, where those with ``{unit}`` are for answers with a unit and the others for those
            without.
        qualifier: follows a noun, ``{v}`` being the value and ``{a}`` its article: ``printed as {a} {v}``. For a date
            only the participle: ``born``.
        subjects: kinds or head nouns the subject must have.
    """

    keys: str
    form: Form
    noun: str
    asks: tuple[str, ...]
    qualifier: str = ""
    subjects: str = ""
