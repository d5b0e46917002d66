"""A sentence around a link as a clause with the linked name blanked: how a text hop is put into words and checked."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from pipelines.corpus.wikitext import WikiLink, find_sentence, plain_text

BLANK = "____"
MASK = "[…]"
MIN_WORDS = 6
MAX_WORDS = 45
MAX_COMMAS = 5
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
    start, end = find_sentence(page, link.start)
    if not start <= link.start < link.end <= end:
        return None
    text = plain_text(page[start : link.start] + f" {BLANK} " + page[link.end : end])
    text = SPACES.sub(" ", text).strip()
    if DEBRIS.search(text) or text.count(",") > MAX_COMMAS or text.count(BLANK) != 1:
        return None
    text = mask_names(SPACE_BEFORE.sub("", text), names)
    if not MIN_WORDS <= len(text.split()) <= MAX_WORDS:
        return None
    return Clause(text, start, end)


def mask_names(text: str, names: Sequence[str]) -> str:
    """Replace whole-word mentions of names, longest first, upper or lower case; names of one letter stay."""
    wanted = sorted({name for name in names if len(name) > 1}, key=lambda name: (-len(name), name))
    if not wanted:
        return text
    pattern = "|".join(re.escape(name) for name in wanted)
    return re.sub(rf"(?<!\w)(?:{pattern})(?!\w)", MASK, text, flags=re.IGNORECASE)
