"""How well a step says where it leads, and how likely a person asks for a fact.

A link to a country, or the four hundredth link of a long article, tells one thing from another as little as a hop that
a thousand entities share. The ratings need no model. Word lists stand in ``data/salience.toml``.
"""

import re
import tomllib
from functools import cache, lru_cache
from importlib import resources
from typing import Any

import numpy as np
import numpy.typing as npt

from pipelines.corpus.data import split_names
from pipelines.corpus.store import Corpus
from pipelines.graph.facts import split_key
from pipelines.graph.query import Indexes

Rates = npt.NDArray[np.float32]

GENERIC_RATE = 0.2
"""Factor of the rating of a hop onto a generic thing."""
FAMILIAR = 4
"""In-degree, or number of entities that share a hop, at which its rating falls to one half."""
EARLY = 4000
"""Characters of wikitext into an article at which the rating of a link is one half: about infobox and lead."""
PARTLY = 0.8
"""Factor of a key of which only a word is known."""
MEASURE = 0.7
"""Rating of measures in the table; those of generic things (the area of Asia) are asked for less."""
UNKNOWN = 0.5
"""Rating of a key without a known word that many pages have."""
SEEN = 20
"""Pages with a key that is not known from which it counts in full."""
KEPT = 1 << 16


def is_generic(corpus: Corpus, node: int) -> bool:
    """Say whether an article is about a thing that everything is linked with: a country, a year, a language, a creed.

    By its class in Wikidata, its title, and its noun or that of its lead; never by its in-degree.
    """
    page = corpus.page(node)
    return (
        page.title in _list_generic("titles")
        or page.type in _list_generic("nouns")
        or (not page.type and page.lead_type in _list_generic("nouns"))
        or not _list_generic("classes").isdisjoint(page.classes)
        or _compile_titles().fullmatch(page.title) is not None
    )


def rate_hop(ground: Indexes, source: int, relation: str, object: int) -> float:
    """Return how well a hop tells its object from others, in (0, 1].

    Of a relation, by the number of entities that share it and its object; of a sentence (``mentions``), by the place of
    the link in the article. Of both, by the in-degree of the object, and lower for a generic one.
    """
    graph, told = ground.corpus.graph, relation == "mentions"
    others = 0 if told else max(len(ground.facts.subjects_of(relation, object)) - 1, 0)
    position = max(graph.find_link(source, object), 0) if told else 0
    degree = int(graph.in_degree[object])
    rates = (rate_counts(np.asarray([degree, others])), rate_places(np.asarray([position])))
    rate = float(np.concatenate(rates).prod())
    return rate * GENERIC_RATE if is_generic(ground.corpus, object) else rate


def rate_counts(counts: npt.NDArray[np.integer]) -> Rates:
    """Return a rating in (0, 1] that falls with the logarithm of a count; 1 for 0."""
    rates: Rates = 1 / (1 + np.log2(1 + counts.astype(np.float32) / np.float32(FAMILIAR)))
    return rates


def rate_places(positions: npt.NDArray[np.integer]) -> Rates:
    """Return a rating in (0, 1] that falls with the character offset of a link in its article."""
    rates: Rates = 1 / (1 + positions.astype(np.float32) / np.float32(EARLY))
    return rates


def rate_attribute(ground: Indexes, type: str, key: str) -> float:
    """Return how likely a person asks for a field of a thing, in [0, 1].

    What the table knows counts in full however rare it is; other keys count by the number of pages of the corpus that
    have them.

    Args:
        ground: whose corpus is counted.
        type: noun of the page.
        key: infobox key.
    """
    rate = rate_key(type, key)
    if rate is not None:
        return rate
    return UNKNOWN * min(len(ground.facts.having(key)) / SEEN, 1.0)


@lru_cache(maxsize=KEPT)
def rate_key(type: str, key: str) -> float | None:
    """Return how likely a person asks for a key by the table alone, None if it knows none of the key's words."""
    words = split_key(key)
    asked, technical = _read_asked(), _read_unasked()
    exact = asked.get(" ".join(words))
    if exact is not None:
        return exact * GENERIC_RATE if exact == MEASURE and type in _list_generic("nouns") else exact
    if not technical.isdisjoint(words):
        return min(asked.values())
    known = [asked[word] for word in words if word in asked]
    return PARTLY * max(known) if known else None


def name_lists() -> str:
    """Return the text of the word lists: part of the key of what is computed from them."""
    return resources.files("pipelines.graph").joinpath("data/salience.toml").read_text("utf-8")


@cache
def _read_lists() -> dict[str, Any]:
    return tomllib.loads(name_lists())


@cache
def _list_generic(kind: str) -> frozenset[str]:
    return frozenset(split_names(_read_lists()["generic"][kind])) - {""}


@cache
def _compile_titles() -> re.Pattern[str]:
    return re.compile("|".join(f"(?:{pattern})" for pattern in _read_lists()["generic"]["patterns"]))


@cache
def _read_asked() -> dict[str, float]:
    """Return the rating of each known key, its words with single spaces between them."""
    rated = ((float(rate), names) for rate, names in _read_lists()["asked"].items())
    return {name: rate for rate, names in rated for name in split_names(names)}


@cache
def _read_unasked() -> frozenset[str]:
    return frozenset(split_names(_read_lists()["technical"]["words"]))
