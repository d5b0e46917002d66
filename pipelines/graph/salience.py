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
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from pipelines.corpus.data import split_names
from pipelines.corpus.store import Corpus
from pipelines.corpus.wikitext import WikiLink
from pipelines.graph.facts import Attribute, split_key
from pipelines.graph.prose import BLANK
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
LEAST_ASKED = 0.1
"""Attributes that rate lower are not asked for."""
SHARPNESS = 3
"""Power of a rating by which attributes are drawn."""
OPENING = 8
"""Words of a sentence in which its subject is looked for."""
LEAST_WORD = 4
"""Letters of a word of a title that may stand for it."""
PRONOUNS = frozenset("he she it they".split())
POSSESSIVES = frozenset("his her its their".split())
ADVERBIALS = frozenset(
    """
    after although as at before between by during following for from in like on since through under unlike until when
    while with
    """.split()
)
AFTERWORDS = frozenset(
    split_names(
        """
        see also, external links, references, notes, footnotes, further reading, bibliography, sources, citations,
        works cited, gallery, notes and references
        """
    )
)
"""Headings of sections that say nothing about the subject."""
_NO_PROSE = re.compile(r"\s*(?:[*#:;|!{]|\[\[\s*(?:file|image)\s*:)", re.IGNORECASE)
_ENDS = re.compile(r"[.!?][\"'”’)\]]*$")
_EXPLETIVE = re.compile(r"It (?:is|was|has been|had been) \w+ that\b")
_WORD = re.compile(r"[^\W\d_]+")
KEPT = 1 << 16


def is_generic(corpus: Corpus, node: int) -> bool:
    """Say whether an article is about a thing that everything is linked with: a country, a year, a language, a creed.

    By its class in Wikidata, its title, and its noun or, without one, that of its lead; never by its in-degree.
    """
    page = corpus.page(node)
    return (
        page.title in _list_generic("titles")
        or (page.type or page.lead_type) in _list_generic("nouns")
        or not _list_generic("classes").isdisjoint(page.classes)
        or re.fullmatch(_join_patterns(), page.title) is not None
    )


def find_generic(corpus: Corpus) -> npt.NDArray[np.bool_]:
    """Return for each article whether :func:`is_generic` says so, some seconds for millions of them."""
    pages = pq.read_table(corpus.table("pages"), columns=["title", "type", "lead_type", "classes"])
    title, type, lead, classes = (pages[name] for name in pages.column_names)
    noun = pc.if_else(pc.equal(type, ""), lead, type)
    named = (pc.is_in(title, _make_set("titles")), pc.is_in(noun, _make_set("nouns")))
    found = pc.or_(pc.or_(*named), pc.match_substring_regex(title, f"^(?:{_join_patterns()})$")).to_numpy().copy()
    classified = pc.is_in(pc.list_flatten(classes), _make_set("classes")).to_numpy()
    found[pc.list_parent_indices(classes).to_numpy()[classified]] = True
    generic: npt.NDArray[np.bool_] = found
    return generic


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
    rates: Rates = np.reciprocal(1 + np.log2(1 + counts.astype(np.float32) / FAMILIAR), dtype=np.float32)
    return rates


def rate_places(positions: npt.NDArray[np.integer]) -> Rates:
    """Return a rating in (0, 1] that falls with the character offset of a link in its article."""
    rates: Rates = np.reciprocal(1 + positions.astype(np.float32) / EARLY, dtype=np.float32)
    return rates


def rate_attribute(ground: Indexes, type: str, key: str) -> float:
    """Return how likely a person asks for a field of a thing, in [0, 1].

    What the table knows counts in full however rare it is; other keys count by the number of pages of the corpus that
    have them.
    """
    rate = rate_key(type, key)
    if rate is not None:
        return rate
    return UNKNOWN * min(len(ground.facts.having(key)) / SEEN, 1.0)


def weigh_attribute(ground: Indexes, attribute: Attribute) -> float:
    """Return the weight of an attribute in the draw of what is asked for; 0 if it is never asked for."""
    fact = attribute.fact
    rate = rate_attribute(ground, ground.corpus.page(fact.node).type, fact.key)
    return rate**SHARPNESS if rate >= LEAST_ASKED else 0.0


def is_telling(corpus: Corpus, node: int, link: WikiLink, sentence: str) -> bool:
    """Say whether a sentence of running text tells its article's subject something about the entity that it links.

    Lists, captions, tables and the sections after an article do not. A sentence must open with a word of the article's
    title or noun or a pronoun, or have one before the link: else it most likely has another subject.
    """
    text = corpus.text(node)
    line = text.rfind("\n", 0, link.start) + 1
    if _NO_PROSE.match(text, line) or not _ENDS.search(sentence) or _EXPLETIVE.match(sentence):
        return False
    heading = text.rfind("\n==", 0, link.start)
    if heading >= 0 and text[heading : text.find("\n", heading + 1)].strip("\n =").casefold() in AFTERWORDS:
        return False
    opening = {word.casefold() for word in _WORD.findall(_open(sentence))}
    before = {word.casefold() for word in _WORD.findall(sentence.partition(BLANK)[0])}
    page = corpus.page(node)
    named = {word.casefold() for word in _WORD.findall(f"{page.title} {page.type} {page.lead_type}")}
    # "Lemons are grown" tells of the lemon.
    named |= {f"{word}s" for word in named}
    named = {word for word in named if len(word) >= LEAST_WORD}
    return not (opening.isdisjoint(named | PRONOUNS | POSSESSIVES) and before.isdisjoint(named | PRONOUNS))


def _open(sentence: str) -> str:
    before, comma, after = sentence.partition(", ")
    words = before.split()
    if comma and words and words[0].casefold() in ADVERBIALS and len(words) <= OPENING:
        words = after.split()
    return " ".join(words[:OPENING])


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


def is_asked(key: str) -> bool:
    """Say whether the table lets a key be asked for at all."""
    rate = rate_key("", key)
    return rate is None or rate >= LEAST_ASKED


def read_lists() -> str:
    """Return the text of the word lists: part of the key of what is computed from them."""
    return resources.files("pipelines.graph").joinpath("data/salience.toml").read_text("utf-8")


@cache
def _read_lists() -> dict[str, Any]:
    return tomllib.loads(read_lists())


@cache
def _list_generic(kind: str) -> frozenset[str]:
    return frozenset(split_names(_read_lists()["generic"][kind])) - {""}


def _make_set(kind: str) -> pa.Array:
    return pa.array(sorted(_list_generic(kind)))


@cache
def _join_patterns() -> str:
    return "|".join(_read_lists()["generic"]["patterns"])


@cache
def _read_asked() -> dict[str, float]:
    rated = ((float(rate), names) for rate, names in _read_lists()["asked"].items())
    return {name: rate for rate, names in rated for name in split_names(names)}


@cache
def _read_unasked() -> frozenset[str]:
    return frozenset(split_names(_read_lists()["technical"]["words"]))
