"""A sentence around a link as a clause with the linked name blanked: how a text hop is put into words and checked."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from pipelines.corpus.store import Corpus
from pipelines.corpus.wikitext import WikiLink, find_sentence, plain_text

BLANK = "____"
MASK = "[…]"
MIN_WORDS = 6
MAX_WORDS = 45
MAX_COMMAS = 5
MAX_SPAN = 2000
"""Longest sentence looked at, characters of wikitext: what is longer is a table."""
KEPT_PAGES = 2048
SPACE_BEFORE = re.compile(r"(?<=____) (?=[,.;:!?')])")
SPACES = re.compile(r"\s+")
DEBRIS = re.compile(r"[•|^=\[\]{}<>]| \* |\bEnlarge\b|\bImage:")
"""What is left of tables, lists and captions in text that was once wikitext."""


@dataclass(frozen=True, slots=True)
class Clause:
    """A blanked sentence and its span in the page's wikitext."""

    text: str
    start: int
    end: int


def make_clause(page: str, link: WikiLink, names: Sequence[str]) -> Clause | None:
    """Return the sentence around a link with the link blanked and other mentions of ``names`` masked.

    Args:
        page: the page's wikitext.
        link: the link that makes the hop.
        names: names no clause may show: those of every node of the path.

    Returns:
        None when the sentence is shorter than six words, longer than forty-five, a list, or what is left of a table.
    """
    plain = blank_sentence(page, link)
    if plain is None:
        return None
    text = mask_names(plain.text, names)
    return Clause(text, plain.start, plain.end) if MIN_WORDS <= len(text.split()) <= MAX_WORDS else None


def blank_sentence(page: str, link: WikiLink) -> Clause | None:
    """Return the sentence around a link with the link blanked and nothing masked yet; None when it is no sentence."""
    start, end = find_sentence(page, link.start)
    if not start <= link.start < link.end <= end or end - start > MAX_SPAN:
        return None
    text = plain_text(page[start : link.start] + f" {BLANK} " + page[link.end : end])
    text = SPACE_BEFORE.sub("", SPACES.sub(" ", text).strip())
    if DEBRIS.search(text) or text.count(",") > MAX_COMMAS or text.count(BLANK) != 1:
        return None
    return Clause(text, start, end)


@lru_cache(maxsize=KEPT_PAGES)
def list_sentences(corpus: Corpus, node: int) -> tuple[tuple[int, Clause], ...]:
    """Return every link of a page that makes an edge and stands in a sentence: the target, and the blanked sentence."""
    graph, text = corpus.graph, corpus.text(node)
    start, end = int(graph.offsets[node]), int(graph.offsets[node + 1])
    targets = dict(zip(graph.positions[start:end].tolist(), graph.targets[start:end].tolist(), strict=True))
    found = []
    for link in corpus.links(node):
        clause = blank_sentence(text, link) if link.start in targets else None
        if clause is not None:
            found.append((targets[link.start], clause))
    return tuple(found)


def find_clause(corpus: Corpus, node: int, clause: str, names: Sequence[str]) -> frozenset[int]:
    """Return the targets of a page's links whose blanked and masked sentence is this clause."""
    # Masking is the costly part, so only sentences that hold every unmasked piece of the clause are masked.
    pieces = clause.split(MASK)
    return frozenset(
        target
        for target, plain in list_sentences(corpus, node)
        if all(piece in plain.text for piece in pieces) and mask_names(plain.text, names) == clause
    )


def mask_names(text: str, names: Sequence[str]) -> str:
    """Replace whole-word mentions of names, longest first, upper or lower case; names of one letter stay."""
    wanted = sorted({name for name in names if len(name) > 1}, key=lambda name: (-len(name), name))
    if not wanted:
        return text
    return _compile_names(tuple(wanted)).sub(MASK, text)


@lru_cache(maxsize=256)
def _compile_names(names: tuple[str, ...]) -> re.Pattern[str]:
    return re.compile(r"(?<!\w)(?:" + "|".join(map(re.escape, names)) + r")(?!\w)", re.IGNORECASE)
