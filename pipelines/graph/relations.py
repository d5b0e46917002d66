"""Infobox facts as relations and attributes: the typed edges of the graph and the literals at its nodes.

A relation is an infobox field that holds exactly one value, a link: a field with several values is no edge, because the
hop would have several answers. An attribute is a field with exactly one literal value of a known type.
"""

import re
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import pyarrow.parquet as pq

from pipelines.corpus.store import Corpus, Fact
from pipelines.scoring.answers import count_tokens, type_answer
from schemas.proofs import Answer

Nodes = npt.NDArray[np.int64]

# Words that mark a field as layout, not as a fact about the subject.
LAYOUT_WORDS = frozenset(
    "image images img photo caption alt logo flag seal shield coat map pushpin mapframe coordinates coord coor latd latm"
    " lats latns longd longm longs longew imagewidth imagesize upright website url homepage signature footnotes footnote"
    " note notes ref refs reference module embed pronunciation ipa wikidata isbn issn oclc postal zip code timezone utc dst"
    " type title label labels cover screenshot video audio bgcolour bgcolor fetchwikidata onlysourced parameters symbol".split()
)
LAYOUT_KEYS = frozenset(
    "name names native_name full_name fullname birth_name birthname official_name other_name other_names nickname"
    " nicknames aka conventional_long_name common_name settlement_type binomial trinomial genus species taxon"
    " status status_system".split()
)
WORDS = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")


def is_layout(key: str) -> bool:
    """Return whether an infobox key is about layout or names, not a fact that a question may ask for."""
    return key.casefold() in LAYOUT_KEYS or any(word.casefold() in LAYOUT_WORDS for word in WORDS.findall(key))


@dataclass(frozen=True, slots=True)
class Attribute:
    """A literal fact with its typed value."""

    fact: Fact
    answer: Answer


def read_relations(corpus: Corpus, node: int) -> tuple[Fact, ...]:
    """Return a page's relations: fields with exactly one value, a link to another article; page order."""
    return tuple(
        fact
        for fact in corpus.facts(node)
        if fact.value_count == 1 and fact.target >= 0 and fact.target != node and not is_layout(fact.key)
    )


def read_attributes(corpus: Corpus, node: int, max_tokens: int = 0) -> tuple[Attribute, ...]:
    """Return a page's typed literals in page order; ``max_tokens`` bounds their length in words, 0 is no bound."""
    attributes = []
    for fact in corpus.facts(node):
        if fact.value_count != 1 or fact.target >= 0 or not fact.text or is_layout(fact.key):
            continue
        answer = type_answer(fact.text, fact.iso, fact.key)
        if answer is not None and not 0 < max_tokens < count_tokens(answer.surface):
            attributes.append(Attribute(fact, answer))
    return tuple(attributes)


@dataclass(slots=True)
class RelationIndex:
    """All relations of a corpus as parallel arrays, and what is counted over them."""

    subjects: Nodes
    objects: Nodes
    keys: npt.NDArray[np.str_]
    _objects_of: dict[str, frozenset[int]] = field(default_factory=dict)

    def objects_of(self, key: str) -> frozenset[int]:
        """Return every entity that is the object of a relation: what its bare phrase could mean (R_alone)."""
        if key not in self._objects_of:
            self._objects_of[key] = frozenset(self.objects[self.keys == key].tolist())
        return self._objects_of[key]


def index_relations(corpus: Corpus) -> RelationIndex:
    """Read all single-valued link fields; memory is about 40 bytes a relation plus its key."""
    columns = ["node", "key", "value_count", "target"]
    table = pq.read_table(corpus.folder / "facts.parquet", columns=columns, filters=[("value_count", "==", 1)])
    subjects = table["node"].to_numpy().astype(np.int64)
    objects = table["target"].to_numpy().astype(np.int64)
    keys = np.asarray(table["key"].to_pylist(), dtype=np.str_)
    layout = {key: is_layout(key) for key in np.unique(keys).tolist()}
    keep = (objects >= 0) & (objects != subjects) & np.asarray([not layout[key] for key in keys.tolist()], dtype=bool)
    return RelationIndex(subjects[keep], objects[keep], keys[keep])
