"""Wikitext as the rest of synth sees it: links, sentences, readable text, and what to leave out.

Nothing here expands templates. Offsets are characters of the page's text as stored, so a span found here can be cut out
of the page again by anyone.
"""

import re
from dataclasses import dataclass

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
    "split_sentences",
]

_LINK = re.compile(
    r"\[\[(?P<target>[^\[\]{}|<>\n]++)(?:\|(?P<anchor>(?:[^\[\]]++|\[(?!\[)[^\[\]]*+\](?!\]))*+))?\]\](?P<trail>[a-z]*+)"
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


def find_links(text: str) -> list[WikiLink]:
    """Find every link of a page in order, nested ones (in file captions, templates and references) included.

    File, category and interwiki links are found as well; ``TitleRules.resolve`` tells them apart.
    """
    links = []
    for match in _LINK.finditer(blank_ignored(text)):
        target, anchor, trail = match.group("target", "anchor", "trail")
        shown = clean_anchor(anchor) if anchor else ""
        links.append(WikiLink(target, (shown or target.strip().removeprefix(":")) + trail, match.start(), match.end()))
    return links
