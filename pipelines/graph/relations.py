"""Relations in plain words: the key of :mod:`pipelines.corpus.relations` that a phrase such as "was designed by" means.

A phrase is read from its subject's side. Direction is kept: "designed by" is a designer, while "designed" and "designer
of" lead the other way and mean nothing here.
"""

from collections.abc import Iterator, Mapping
from functools import cache, lru_cache

from pipelines.corpus.relations import read_relations_table
from pipelines.graph.cues import stem_word
from pipelines.names import fold_name

_SILENT = frozenset("a an the its his her their has have had been being also originally officially".split())
_AUXILIARIES = frozenset("is was are were be".split())
_MARKS = {"+er": ("er", "or", "ers", "ors"), "+ed": ("ed",), "+ion": ("ion", "ions", "ment", "ments")}
KEPT_PHRASES = 1 << 14


@lru_cache(maxsize=KEPT_PHRASES)
def find_relation(words: str) -> str:
    """Return the key of the relation that some words state, or "" for none: ``birth_place`` for "was born in".

    Case, articles, auxiliaries and endings are folded, but neither prepositions nor voice.
    """
    return _index_phrases().get(_fold_phrase(words), "")


def _fold_phrase(words: str) -> tuple[str, ...]:
    tokens = [token for token in fold_name(words).split() if token not in _SILENT]
    told = [token for token in tokens if token not in _AUXILIARIES]
    passive = len(told) == 1 and tokens[0] in _AUXILIARIES
    return (*(["be"] if passive else []), *map(_stem, told))


def _stem(word: str) -> str:
    return stem_word(word) + next((mark for mark, endings in _MARKS.items() if word.endswith(endings)), "")


@cache
def _index_phrases() -> Mapping[tuple[str, ...], str]:
    return {_fold_phrase(phrase): key for phrase, key in list_phrases()}


def list_phrases() -> Iterator[tuple[str, str]]:
    """Yield every phrase of the table with its key; a field of two words is a phrase unless it stands for several."""
    table = read_relations_table().values()
    keys_of: dict[str, set[str]] = {}
    for relation in table:
        for field in relation.fields:
            keys_of.setdefault(field, set()).add(relation.key)
    said = {_fold_phrase(phrase) for relation in table for phrase in (relation.key, *relation.phrases)}
    for relation in table:
        yield from ((phrase, relation.key) for phrase in (relation.key, *relation.phrases))
        for field in relation.fields:
            if "_" in field and len(keys_of[field]) == 1 and _fold_phrase(field) not in said:
                yield field, relation.key
