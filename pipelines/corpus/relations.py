"""The relations worth asking about: properties of Wikidata, as infobox keys and in words (``data/relations.toml``)."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache

from pipelines.corpus.data import read_data, split_names

_PROPERTY = re.compile(r"P[1-9]\d*")
_NO_LETTER = re.compile(r"[\W\d_]+")


@dataclass(frozen=True, slots=True)
class Relation:
    """A property of Wikidata as a relation of the corpus."""

    property: str
    """Such as ``P84``."""
    key: str
    """The infobox key that means the same: ``architect``. Properties with one key are one relation."""
    phrases: tuple[str, ...]
    """Label and aliases, from the subject's side: ``designed by``."""
    fields: tuple[str, ...]
    """Other infobox keys for it."""
    volatile: bool
    """Whether the value changes with time, so that a statement of it is no lasting fact."""


@cache
def read_relations_table() -> Mapping[str, Relation]:
    """Return the relations by property."""
    found = {}
    for property, row in read_data("relations").items():
        if _PROPERTY.fullmatch(property):
            fields = split_names(row["fields"]) if "fields" in row else ()
            phrases = (row["label"], *split_names(row["aliases"]))
            found[property] = Relation(property, row["key"], phrases, tuple(fields), row.get("volatile", False))
    return found


def fold_field(key: str) -> str:
    """Return the letters of an infobox key in lower case: ``LargestCity2`` and ``largest_city`` are one field."""
    return _NO_LETTER.sub("", key).lower()
