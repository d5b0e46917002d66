"""Which articles show a field in their infobox: by the stem of its key, over a bounded sample of the corpus."""

import re
from array import array
from collections.abc import Iterable
from functools import lru_cache

from pipelines.corpus.store import Corpus
from pipelines.graph.relations import is_layout
from pipelines.ids import draw_unit

MAX_ARTICLES = 50_000
"""Articles read at most: every one of a smaller corpus, of a larger one those that a hash of the page's id draws."""
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_LETTERS = re.compile(r"[^\W\d_]+")


def split_key(key: str) -> tuple[str, ...]:
    """Return the lower-case words of an infobox key, its numbers left out: ``LargestCity2`` gives largest, city."""
    return tuple(word.lower() for word in _LETTERS.findall(_CAMEL.sub("_", key)))


def stem_key(key: str) -> str:
    """Return a key without its numbers and case, so that ``leader_name1`` and ``leader_name2`` are one relation."""
    return "_".join(split_key(key))


@lru_cache(maxsize=4)
def list_holders(corpus: Corpus) -> dict[str, "array[int]"]:
    """Return the nodes that show each relation, by the stem of its key, ascending; layout fields left out."""
    holders: dict[str, array[int]] = {}
    for node in sample_nodes(corpus, MAX_ARTICLES):
        stems = {stem_key(fact.key) for fact in corpus.facts(node) if not is_layout(fact.key)}
        for stem in stems:
            holders.setdefault(stem, array("L")).append(node)
    return holders


def sample_nodes(corpus: Corpus, count: int) -> list[int]:
    """Return at most about ``count`` nodes of a corpus, ascending: all, or those that a hash draws."""
    nodes = corpus.article_nodes()
    if len(nodes) <= count:
        return list(nodes)
    return [node for node in nodes if draw_unit("sample", node) < count / len(nodes)]


def draw_nodes(nodes: Iterable[int], count: int, *parts: object) -> list[int]:
    """Return ``count`` of some nodes, the same for the same nodes and parts, ascending."""
    drawn = sorted(nodes, key=lambda node: (draw_unit(*parts, node), node))[:count]
    return sorted(drawn)
