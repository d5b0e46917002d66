"""The running text of an article, sentence by sentence, each with its span in the wikitext: what no infobox wrote."""

import re
from dataclasses import dataclass
from functools import lru_cache

from pipelines.corpus.markup import blank_ignored, blank_spans, drop_spans, find_braces, find_references
from pipelines.corpus.rendering import render_value
from pipelines.corpus.store import Corpus
from pipelines.corpus.wikitext import plain_text, split_sentences

KEPT_PAGES = 1024
MAX_SPAN = 2000
"""Longest sentence looked at, characters of wikitext: what is longer is a table."""
MAX_TEMPLATES = 12
"""Inline templates rendered in one sentence; a sentence with more is a table in disguise."""
_NO_PROSE = re.compile(r"[*#:;=|!{}]|\[\[\s*(?:file|image|category|datei|fichier|archivo)\s*:", re.IGNORECASE)
_SPACES = re.compile(r"\s+")


@dataclass(frozen=True, slots=True)
class Sentence:
    """A sentence of an article's prose."""

    text: str
    """As a reader sees it; dates, measures and their like rendered from their templates, other templates left out."""
    start: int
    """Span in the page's wikitext."""
    end: int
    lead: bool
    """Whether it is the first of the article."""


@lru_cache(maxsize=KEPT_PAGES)
def list_prose(corpus: Corpus, node: int) -> tuple[Sentence, ...]:
    """Return the sentences of an article outside infobox, tables, lists, headings and captions, in order."""
    return read_prose(corpus.text(node))


def read_prose(page: str) -> tuple[Sentence, ...]:
    """Return the sentences of a page's wikitext."""
    visible = blank_ignored(page)
    visible = blank_spans(
        visible, ((start, end) for start, end in find_braces(visible) if _is_block(visible, start, end))
    )
    found: list[Sentence] = []
    for start, end in split_sentences(visible):
        if end - start > MAX_SPAN or _NO_PROSE.match(visible, start):
            continue
        text = show_sentence(visible[start:end])
        if any(char.isalpha() for char in text):
            found.append(Sentence(text, start, end, _is_lead(found)))
    return tuple(found)


def _is_lead(before: list[Sentence]) -> bool:
    # "Harry Oder Jr. (1929-2012) was a banker." is cut in two.
    return not before or (len(before) == 1 and before[0].text.endswith(("Jr.", "Sr.")))


def show_sentence(wikitext: str) -> str:
    """Return a sentence as a reader sees it, on one line; a template of unknown output is left out."""
    if "<" in wikitext:
        wikitext = drop_spans(wikitext, find_references(wikitext))
    if "{{" in wikitext:
        wikitext = _render_templates(wikitext)
    return _SPACES.sub(" ", plain_text(wikitext)).strip()


def _is_block(text: str, start: int, end: int) -> bool:
    """Say whether a template or table is none of a sentence: it begins a line and ends one, or spans several."""
    before = text.rfind("\n", max(0, start - MAX_SPAN), start) + 1
    after = text.find("\n", end, end + MAX_SPAN)
    if (not before and start > MAX_SPAN) or (after < 0 and end + MAX_SPAN < len(text)):
        return "\n" in text[start:end]
    alone = not text[before:start].strip(" :*#") and not text[end : len(text) if after < 0 else after].strip()
    return alone or "\n" in text[start:end]


def _render_templates(wikitext: str) -> str:
    spans = list(find_braces(wikitext))
    if len(spans) > MAX_TEMPLATES:
        return wikitext
    parts, position = [], 0
    for start, end in spans:
        rendered = render_value(wikitext[start:end])
        parts += [wikitext[position:start], rendered.text if rendered else ""]
        position = end
    return "".join([*parts, wikitext[position:]])
