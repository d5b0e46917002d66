"""Wikitext as the rest of synth sees it: links, sentences, readable text, and what to leave out.

Nothing here expands templates. Offsets are characters of the page's text as stored, so a span found here can be cut out
of the page again by anyone.
"""

import re
from dataclasses import dataclass
from functools import cache
from string import ascii_lowercase

from pipelines.corpus.languages import LINK_TRAILS
from pipelines.corpus.markup import blank_ignored
from pipelines.corpus.plaintext import clean_anchor, lead_paragraph, plain_text
from pipelines.corpus.sentences import find_sentence, split_sentences

__all__ = [
    "WikiLink",
    "blank_ignored",
    "clean_anchor",
    "find_links",
    "find_sentence",
    "lead_paragraph",
    "plain_text",
    "show_anchor",
    "split_sentences",
    "trail_letters",
]

# A link ends at the first "]]", but takes a third bracket that closes one opened in its text.
_LINK = (
    r"\[\[(?P<target>[^\[\]{}|<>\n]++)"
    r"(?:\|(?P<anchor>[^\[\]]*+(?:(?:\[(?!\[)[^\[\]]*+\](?=[^\]]|\]\])|\[(?!\[)|\](?!\]))[^\[\]]*+)*+))?\]\]"
    r"(?P<trail>[letters]*+)"
)


@dataclass(frozen=True, slots=True)
class WikiLink:
    """A ``[[...]]`` of a page."""

    target: str
    """Raw target with any fragment, as written."""
    anchor_text: str
    """What a reader sees, link trail included, markup removed."""
    start: int
    """Offset of the ``[[``."""
    end: int
    """Offset after the ``]]`` and its trail."""


def find_links(text: str, language: str = "en") -> list[WikiLink]:
    """Find every link of a page in order, nested ones (in file captions, templates and references) included.

    File, category and interwiki links are found as well; ``TitleRules.resolve`` tells them apart.

    Args:
        text: wikitext of a page.
        language: code of the wiki's language, which says what letters after a link belong to its anchor text.
    """
    links = []
    for match in _compile_link(language).finditer(blank_ignored(text)):
        target, anchor, trail = match.group("target", "anchor", "trail")
        links.append(WikiLink(target, show_anchor(target, anchor or "", trail), match.start(), match.end()))
    return links


def show_anchor(target: str, anchor: str, trail: str) -> str:
    """Return what a reader sees of a link: its text, or its target where it has none, and its trail."""
    shown = clean_anchor(anchor) if anchor else ""
    return (shown or target.strip().removeprefix(":")) + trail


def trail_letters(language: str) -> str:
    """Return the letters that belong to a link's anchor text when they follow it at once."""
    return ascii_lowercase + LINK_TRAILS.get(language, "")


@cache
def _compile_link(language: str) -> re.Pattern[str]:
    return re.compile(_LINK.replace("letters", re.escape(trail_letters(language))))
