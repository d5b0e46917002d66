"""Shape of the world's ontology: subtypes, relations between entities, literal attributes.

The tables themselves are in ``subtypes``, ``relations`` and ``attributes``.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

Kind = Literal["person", "place", "building", "species", "work", "organisation", "event", "object", "concept"]
Cardinality = Literal["1:1", "n:1", "1:n"]
ValueKind = Literal["date", "quantity", "count", "text"]


@dataclass(frozen=True, slots=True)
class Subtype:
    """A kind of thing with a noun, an infobox and a share of the world.

    Attributes:
        name: the noun a question uses, such as ``bridge``.
        template: infobox template as enwiki names it.
        class_id: the real Wikidata class (for people the occupation; their P31 is Q5).
        weight: relative share of the entities.
        nouns: noun phrases for the lead sentence.
        years: range of the principal year (birth, opening, publication) where nothing else decides it.
        lead: relation that ends the lead sentence, with ``joint`` before the linked object.
        name_key: infobox parameter of the name.
    """

    name: str
    kind: Kind
    template: str
    class_id: str
    weight: float
    nouns: tuple[str, ...]
    years: tuple[int, int]
    plural: str
    lead: str = ""
    joint: str = ""
    name_key: str = "name"


@dataclass(frozen=True, slots=True)
class Relation:
    """A relation from an entity to an entity.

    Attributes:
        cardinality: subject to object. ``1:1`` and ``1:n`` use an object once, ``n:1`` as often as it likes.
        keys: infobox parameter by subject subtype, where it is not the relation's name.
        wordings: sentences with ``{s}`` and ``{o}``.
        chance: probability that a subject has it at all.
        gap: allowed range of subject's year minus object's year, ends included.
        dates: the object decides the subject's year (a building opens in its architect's lifetime).
        since: least year of an object, for offices held today.
        most: largest number of objects of a ``1:n`` relation.
        inverse_of: this relation is read off another one, turned round.
    """

    name: str
    subjects: tuple[str, ...]
    objects: tuple[str, ...]
    cardinality: Cardinality
    prop: str
    wordings: tuple[str, ...]
    keys: Mapping[str, str] = field(default_factory=dict)
    chance: float = 0.92
    gap: tuple[int, int] | None = None
    dates: bool = False
    since: int | None = None
    symmetric: bool = False
    most: int = 1
    inverse_of: str = ""

    def key_for(self, subtype: str) -> str:
        """Infobox parameter of this relation on a subject of ``subtype``."""
        return self.keys.get(subtype, self.name)


@dataclass(frozen=True, slots=True)
class Attribute:
    """A literal attribute of an entity; always single-valued.

    Attributes:
        low: least value (a number), or least distance in years from the entity's year (a date).
        high: greatest value or distance.
        unit: unit symbol of a quantity; ``other`` is the unit that ``{{convert}}`` turns it into.
        words: the values a text attribute may take.
        day_share: how often a date has day precision; otherwise it is a bare year.
        stamp: date template used in infoboxes, such as ``birth date``.
    """

    name: str
    subjects: tuple[str, ...]
    kind: ValueKind
    prop: str
    wordings: tuple[str, ...]
    keys: Mapping[str, str] = field(default_factory=dict)
    chance: float = 0.92
    low: float = 0.0
    high: float = 0.0
    unit: str = ""
    other: str = ""
    words: tuple[str, ...] = ()
    day_share: float = 0.5
    stamp: str = "start date"

    def key_for(self, subtype: str) -> str:
        """Infobox parameter of this attribute on a subject of ``subtype``."""
        return self.keys.get(subtype, self.name)
