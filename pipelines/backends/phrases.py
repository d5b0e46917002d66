"""Finding the words for an infobox key: relations between entities, and literal attributes.

The tables cover the keys of the toy world and the common keys of enwiki's infoboxes; any other key is put into words
by its own words, which is clumsy but true.
"""

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import TypeVar

from pipelines.backends.phrases_dates import DATES
from pipelines.backends.phrases_nouns import fits_noun
from pipelines.backends.phrases_numbers import NUMBERS
from pipelines.backends.phrases_people import LEADERS, MAKERS, RELATIVES
from pipelines.backends.phrases_places import LANDS, LIVES, SITES, WATERS
from pipelines.backends.phrases_shapes import SLOT, AttributeWording, RelationWording
from pipelines.backends.phrases_things import EVENTS, LANGUAGES, ORGANISATIONS, WORKS
from pipelines.backends.phrases_words import WORDS
from pipelines.ids import draw_unit

OptionT = TypeVar("OptionT")
RowT = TypeVar("RowT", RelationWording, AttributeWording)

RELATIONS: tuple[RelationWording, ...] = (
    *MAKERS,
    *LEADERS,
    *RELATIVES,
    *LIVES,
    *SITES,
    *LANDS,
    *WATERS,
    *ORGANISATIONS,
    *WORKS,
    *EVENTS,
    *LANGUAGES,
)
ATTRIBUTES: tuple[AttributeWording, ...] = (*DATES, *NUMBERS, *WORDS)

_INITIALS = {word: word.upper() for word in ("gdp", "hdi", "id", "iso", "iucn", "ppp", "tv", "uk", "us", "utc")}
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_GAP = re.compile(r"[^0-9a-z]+")
_DIGITS = re.compile(r"\d+(?=_|$)")
_UNIT_ENDING = re.compile(r"_(?:m|km|cm|mm|ft|mi|sq_mi|sqmi|km2|m2|ha|acre|acres|kg|lb|metric|imperial)$")


def normalise_key(key: str) -> str:
    """Return an infobox key in the tables' spelling: ``LargestCity`` and ``Largest city`` become ``largest_city``."""
    return _GAP.sub("_", _CAMEL.sub("_", key).lower()).strip("_")


def strip_digits(key: str) -> str:
    """Drop the numbers of a normalised key: ``leader_name1`` becomes ``leader_name``."""
    return _GAP.sub("_", _DIGITS.sub("", key)).strip("_")


def strip_unit(key: str) -> str:
    """Drop the unit that ends a normalised key: ``area_km2`` becomes ``area``. The answer carries its own."""
    return _UNIT_ENDING.sub("", key)


def split_key(key: str) -> str:
    """Return the words of a key without its numbers and unit, ``entry`` when nothing is left.

    Only letters and single spaces come out, whatever a page used as a parameter name; well-known initials are capitals.
    """
    words = strip_digits(strip_unit(normalise_key(key))).replace("_", " ")
    return " ".join(_INITIALS.get(word, word) for word in re.sub(r"[^a-z]+", " ", words).split()) or "entry"


@lru_cache(maxsize=1)
def _index_relations() -> dict[str, tuple[RelationWording, ...]]:
    return _index_rows(RELATIONS)


@lru_cache(maxsize=1)
def _index_attributes() -> dict[str, tuple[AttributeWording, ...]]:
    return _index_rows(ATTRIBUTES)


def _index_rows(rows: Sequence[RowT]) -> dict[str, tuple[RowT, ...]]:
    index: dict[str, list[RowT]] = {}
    for row in rows:
        for key in dict.fromkeys(row.keys.split()):
            index.setdefault(key, []).append(row)
    return {key: tuple(found) for key, found in index.items()}


def _find_rows(index: dict[str, tuple[RowT, ...]], key: str) -> tuple[RowT, ...]:
    normal = normalise_key(key)
    plain = strip_unit(normal)
    return index.get(normal) or index.get(plain) or index.get(strip_digits(plain), ())


def find_attribute(key: str, subject_type: str) -> AttributeWording | None:
    """Return the first row for a literal attribute that fits the subject, None when no row does."""
    rows = _find_rows(_index_attributes(), key)
    return next((row for row in rows if fits_noun(row.subjects, subject_type)), None)


def find_relation(key: str, subject_type: str, object_type: str) -> RelationWording | None:
    """Return the first row for a relation that fits subject and object, None when no row does."""
    rows = _find_rows(_index_relations(), key)
    fitting = (r for r in rows if fits_noun(r.subjects, subject_type) and fits_noun(r.objects, object_type))
    return next(fitting, None)


def word_relation(key: str, subject_type: str, object_type: str) -> RelationWording:
    """Return the wording of a relation, made from the key's own words when no table has it."""
    found = find_relation(key, subject_type, object_type)
    if found is not None:
        return found
    attribute = find_attribute(key, subject_type)
    noun = attribute.noun if attribute is not None and attribute.form == "word" else split_key(key)
    plains = (f"the {noun} given for {SLOT}", f"the {noun} listed for {SLOT}", f"the {noun} on record for {SLOT}")
    tails = (
        f"{{who}} is given as the {noun} of {SLOT}",
        f"{{who}} is listed as the {noun} of {SLOT}",
        f"{{who}} appears as the {noun} of {SLOT}",
    )
    inverses = (f"whose {noun} is {SLOT}", f"whose {noun} is given as {SLOT}", f"with {SLOT} given as the {noun}")
    return RelationWording(key, noun, plains, tails, inverses=inverses)


def pick(options: Sequence[OptionT], *parts: object) -> OptionT:
    """Return one of the options, decided by the parts alone."""
    return options[int(draw_unit(*parts) * len(options))]
