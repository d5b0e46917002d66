"""What a picture of an entity is compared with: its name and what its article says it is, in one short line.

A text encoder of the CLIP family reads 77 tokens, two of them its own marks, and drops what comes after; so the name
comes first, and the line ends before the encoder would end it.
"""

import re
from functools import lru_cache

from pipelines.corpus.plaintext import lead_paragraph
from pipelines.corpus.sentences import split_sentences
from pipelines.corpus.store import Corpus
from pipelines.corpus.titles import strip_qualifier

VERSION = 1
"""Of the wording: another one, and every embedding of a description is another."""
MAX_PIECES = 75
KEPT_DESCRIPTIONS = 1 << 14
_LEAD_CHARACTERS = 2_000
_SAYS_WHAT = re.compile(r"\b(?:is|was|are|were)\s+(?=(?:an?|the|one)\s)")
_PARENTHESIS = re.compile(r"\s*\([^()]*\)")
_NESTING = 3
_RUN = re.compile(r"[a-z]+|[^\sa-z]", re.IGNORECASE)
_LETTERS_PER_PIECE = 3


@lru_cache(maxsize=KEPT_DESCRIPTIONS)
def describe_entity(corpus: Corpus, node: int) -> str:
    """Return an entity's name, its type unless the rest says it, and what the first sentence of its article says it is.

    "Kelm Bridge, a suspension bridge over the Orsa"; of an article that does not say what its subject is the first
    sentence is taken whole. The same article gives the same line.

    Args:
        corpus: the open corpus.
        node: of the entity.

    Returns:
        One line of at most ``MAX_PIECES`` pieces by :func:`count_pieces`; never empty, as a title never is.
    """
    page = corpus.page(node)
    name = strip_qualifier(page.title)
    says = _read_first_sentence(corpus.text(node))
    match = _SAYS_WHAT.search(says)
    what = says[match.end() :] if match else says
    what = what.rstrip(" .")
    told = f"{name} {what}".casefold()
    parts = [name, page.type if page.type.casefold() not in told else "", what if what != name else ""]
    return cut_pieces(", ".join(part for part in parts if part), MAX_PIECES)


def count_pieces(text: str) -> int:
    """Return about how many tokens an encoder of the CLIP family makes of a text, names being rarer than words.

    Three letters are held to be one, each digit and mark is one, and a letter beyond ASCII as many as its bytes in
    UTF-8. Most texts have fewer.
    """
    return sum(_count_run(match.group()) for match in _RUN.finditer(text))


def cut_pieces(text: str, limit: int) -> str:
    """Return the first words of a text, as many as have ``limit`` pieces together; the first word always."""
    kept: list[str] = []
    pieces = 0
    for word in text.split():
        pieces += count_pieces(word)
        if kept and pieces > limit:
            break
        kept.append(word)
    return " ".join(kept).rstrip(",;:")


def _count_run(run: str) -> int:
    return -(-len(run) // _LETTERS_PER_PIECE) if run.isascii() else len(run.encode())


def _read_first_sentence(wikitext: str) -> str:
    """Return the first sentence of the lead without what stands in parentheses: pronunciations, dates, other names."""
    lead = lead_paragraph(wikitext)[:_LEAD_CHARACTERS]
    for _ in range(_NESTING):
        lead, count = _PARENTHESIS.subn("", lead)
        if not count:
            break
    spans = split_sentences(lead)
    return " ".join(lead[slice(*spans[0])].split()) if spans else ""
