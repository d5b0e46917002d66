"""The running text of an article by sentences with their spans, and clauses with the linked name blanked.

A clause that a writer sees is generalised: other names, dates and numbers of its sentence would tell which page it is
from, so that a question could be answered from its last words alone. The proof keeps the whole clause.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from pipelines.corpus.store import Corpus
from pipelines.corpus.wikitext import (
    WikiLink,
    blank_ignored,
    blank_spans,
    find_braces,
    find_sentence,
    is_block,
    plain_text,
    split_sentences,
)
from pipelines.graph.values import find_dates
from schemas.proofs import Hop

KEPT_PAGES = 2048
MAX_SPAN = 2000
"""Longest sentence in characters of wikitext; longer ones are tables."""
_NO_PROSE = re.compile(r"[*#:;=|!{}]|\[\[\s*(?:file|image|category|datei|fichier|archivo)\s*:", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Sentence:
    """A sentence of an article's prose."""

    text: str
    """Plain text, as :func:`pipelines.corpus.wikitext.plain_text` shows it."""
    start: int
    """Span in the page's wikitext."""
    end: int
    lead: bool
    """Whether it is the first sentence of the article."""


@lru_cache(maxsize=KEPT_PAGES)
def list_prose(corpus: Corpus, node: int) -> tuple[Sentence, ...]:
    """Return the sentences of an article in order, without infobox, tables, lists, headings and captions."""
    return read_prose(corpus.text(node))


def read_prose(page: str) -> tuple[Sentence, ...]:
    """Return the sentences of a page's wikitext."""
    visible = blank_ignored(page)
    visible = blank_spans(visible, (span for span in find_braces(visible) if is_block(visible, *span)))
    found: list[Sentence] = []
    for start, end in split_sentences(visible):
        if end - start > MAX_SPAN or _NO_PROSE.match(visible, start):
            continue
        text = show_sentence(visible[start:end])
        if any(char.isalpha() for char in text):
            found.append(Sentence(text, start, end, _is_lead(found)))
    return tuple(found)


def _is_lead(before: list[Sentence]) -> bool:
    # "Harry Oder Jr. (1929-2012) was a banker." is split after "Jr.".
    return not before or (len(before) == 1 and before[0].text.endswith(("Jr.", "Sr.")))


def show_sentence(wikitext: str) -> str:
    """Return a sentence as plain text on one line."""
    return " ".join(plain_text(wikitext).split())


BLANK = "____"
MASK = "[…]"
MIN_WORDS = 6
MAX_WORDS = 45
MAX_COMMAS = 5
SPACE_BEFORE = re.compile(r"(?<=____) (?=[,.;:!?')])")
DEBRIS = re.compile(r"[•|^=\[\]{}<>]| \* |\bEnlarge\b|\bImage:")
"""Remains of tables, lists and captions in plain text."""


@dataclass(frozen=True, slots=True)
class Clause:
    """A blanked sentence and its span in the page's wikitext."""

    text: str
    start: int
    end: int


def make_clause(page: str, link: WikiLink, names: Sequence[str]) -> Clause | None:
    """Return the sentence around a link with the link blanked and other mentions of ``names`` masked."""
    plain = blank_sentence(page, link)
    if plain is None:
        return None
    text = mask_names(plain.text, names)
    return Clause(text, plain.start, plain.end) if MIN_WORDS <= len(text.split()) <= MAX_WORDS else None


def blank_sentence(page: str, link: WikiLink) -> Clause | None:
    """Return the sentence around a link with the link blanked; None for a list or the remains of a table."""
    start, end = find_sentence(page, link.start)
    if not start <= link.start < link.end <= end or end - start > MAX_SPAN:
        return None
    text = plain_text(page[start : link.start] + f" {BLANK} " + page[link.end : end])
    text = SPACE_BEFORE.sub("", " ".join(text.split()))
    if DEBRIS.search(text) or text.count(",") > MAX_COMMAS or text.count(BLANK) != 1:
        return None
    return Clause(text, start, end)


def blank_link(page: str, sentence: Sentence, link: WikiLink) -> str:
    """Return a sentence of a page's prose as plain text with one link blanked."""
    before, shown = show_sentence(page[sentence.start : link.start]), show_sentence(page[link.start : link.end])
    place = sentence.text.find(shown, max(len(before) - 2, 0))
    if 0 <= place <= len(before) + 2:  # "<nowiki>" shifts what is read alone
        return f"{sentence.text[:place]}{BLANK}{sentence.text[place + len(shown) :]}"
    text = plain_text(page[sentence.start : link.start] + f" {BLANK} " + page[link.end : sentence.end])
    return SPACE_BEFORE.sub("", " ".join(text.split()))


def list_edge_links(corpus: Corpus, node: int) -> list[tuple[int, WikiLink]]:
    """Return the links of a page that are edges of the graph, each with its target, in the page's order."""
    graph = corpus.graph
    targets = dict(zip(graph.positions_of(node).tolist(), graph.targets_of(node).tolist(), strict=True))
    return [(targets[link.start], link) for link in corpus.links(node) if link.start in targets]


@lru_cache(maxsize=KEPT_PAGES)
def list_blanked(corpus: Corpus, node: int) -> tuple[tuple[int, WikiLink, Clause], ...]:
    """Return target, link and blanked sentence of every link in a page's prose that is an edge of the graph.

    Unlike :func:`list_sentences`, sentences of any length and with any number of commas: a quotation is a part of one.
    """
    text, links = corpus.text(node), list_edge_links(corpus, node)
    return tuple(
        (target, link, Clause(blank_link(text, sentence, link), sentence.start, sentence.end))
        for sentence in list_prose(corpus, node)
        for target, link in links
        if sentence.start <= link.start and link.end <= sentence.end
    )


def quotes(clause: str, blanked: str, names: Sequence[str]) -> bool:
    """Say whether a clause is a part of a blanked sentence in which some names are masked."""
    # Masking is costly, so only sentences with every unmasked piece of the clause are masked.
    return all(piece in blanked for piece in clause.split(MASK)) and clause in mask_names(blanked, names)


def find_quoted(corpus: Corpus, node: int, clause: str, names: Sequence[str]) -> frozenset[int]:
    """Return the targets of a page's links at which this quotation has its blank."""
    return frozenset(target for target, _, blanked in list_blanked(corpus, node) if quotes(clause, blanked.text, names))


@lru_cache(maxsize=KEPT_PAGES)
def list_sentences(corpus: Corpus, node: int) -> tuple[tuple[int, Clause], ...]:
    """Return target and blanked sentence of every link of a page that is an edge of the graph."""
    text = corpus.text(node)
    blanked = ((target, blank_sentence(text, link)) for target, link in list_edge_links(corpus, node))
    return tuple((target, clause) for target, clause in blanked if clause is not None)


def find_clause(corpus: Corpus, node: int, clause: str, names: Sequence[str]) -> frozenset[int]:
    """Return the targets of a page's links whose blanked and masked sentence is this clause."""
    # Masking is costly, so only sentences with every unmasked piece of the clause are masked.
    pieces = clause.split(MASK)
    return frozenset(
        target
        for target, plain in list_sentences(corpus, node)
        if all(piece in plain.text for piece in pieces) and mask_names(plain.text, names) == clause
    )


def mask_names(text: str, names: Sequence[str]) -> str:
    """Replace whole-word mentions of names in any case, longest first; names of one letter stay."""
    wanted = sorted({name for name in names if len(name) > 1}, key=lambda name: (-len(name), name))
    if not wanted:
        return text
    return _compile_names(tuple(wanted)).sub(MASK, text)


@lru_cache(maxsize=256)
def _compile_names(names: tuple[str, ...]) -> re.Pattern[str]:
    return re.compile(r"(?<!\w)(?:" + "|".join(map(re.escape, names)) + r")(?!\w)", re.IGNORECASE)


_SHOWN_BRACKET = r"\[[^\[\]]*\]|_{4}"
_JOINING = r"(?:of|the|de|la|le|du|des|von|van|der|den|di|da|del|el|al|bin|ibn|y)"
CAPITAL = r"(?:(?:[^\W\d_a-z]\.){2,}|[^\W\d_a-z]\.(?= )|[^\W\d_a-z](?:[\w&]|\.(?=\w))*(?:[-’'](?![Ss]\b)\w+)*)"
DEMONYM = r"[^\W\d_a-z][^\W\d_]+(?:an|ese|ish|ch)"
_LIMITED = rf"\b(?:first|last|only) {DEMONYM}(?!\w)"
NAME = re.compile(rf"{_SHOWN_BRACKET}|{_LIMITED}|(?<!\w)(?P<name>{CAPITAL}(?:(?: {_JOINING})* {CAPITAL})*)(?!\w)")
_NUMBER = re.compile(rf"{_SHOWN_BRACKET}|(?<![\w.,])(?P<number>\d(?:[\d.,]*\d)?)(?!(?:s|st|nd|rd|th)\b)(?![\d])")
_ARTICLE = re.compile(r"\b[Tt]he (?=\[an? )")
_JOINED = re.compile(rf"(?:{_JOINING} )*")
_OPENING = re.compile(r"(?:^|[.!?:][\"'”’)]* )[\"'“‘(]*$")
_NO_NAMES = frozenset("I AD BC BCE CE".split())
_NAMED_AFTER = re.compile(r"(?:,|['’]s\b)")


def generalise_clause(corpus: Corpus, hop: Hop) -> str:
    """Return the clause of a hop with a bracket for each other name, date and number: ``[a town]``, a kind and no more.

    Names are links with a capital in anchor or title, and runs of capitalised words; the word that begins a sentence is
    one only by :func:`_is_named`. Decades and ordinals stay, and so does "European" after first, last or only.
    """
    node = corpus.find(hop.evidence.title)
    if not hop.clause or node is None:
        return hop.clause
    linked = _list_linked(corpus, node, hop)
    ordered = sorted(linked, key=lambda name: (-len(name), name))
    text = re.sub(
        rf"(?<!\w)(?:{'|'.join(map(re.escape, ordered)) or '(?!)'})(?!\w)", lambda m: linked[m[0]], hop.clause
    )
    for spot in reversed(find_dates(text)):
        kind = "year" if spot.value.precision == "year" else "date"
        text = f"{text[: spot.start]}{_bracket(kind)}{text[spot.end :]}"
    text = _blank_names(corpus, text, corpus.text(node))
    text = _NUMBER.sub(lambda match: _bracket("number") if match["number"] else match[0], text)
    return _ARTICLE.sub("", text)


def _bracket(kind: str) -> str:
    return f"[{'an' if kind[0].lower() in 'aeiou' else 'a'} {kind}]"


def _list_linked(corpus: Corpus, node: int, hop: Hop) -> dict[str, str]:
    graph, evidence, found = corpus.graph, hop.evidence, dict[str, str]()
    targets = dict(zip(graph.positions_of(node).tolist(), graph.targets_of(node).tolist(), strict=True))
    for link in corpus.links(node):
        if not evidence.start <= link.start < evidence.end or link.start == evidence.link_start:
            continue
        page = corpus.page(targets[link.start]) if link.start in targets else None
        anchor = " ".join(link.anchor_text.split())
        # "cotton famine" leads to "Lancashire Cotton Famine"; a link to "Cotton" is a word of the sentence.
        if anchor and any(map(str.isupper, anchor + (page.title if page else link.target)[1:])):
            found[anchor] = _bracket((page and page.type) or "name")
    return found


def _blank_names(corpus: Corpus, text: str, page: str) -> str:
    def blank(match: re.Match[str]) -> str:
        name = match["name"]
        if name is None or name in _NO_NAMES:
            return match[0]
        first, _, rest = name.partition(" ")
        after = match.string[match.start() + len(first) :]
        if not _OPENING.search(match.string[: match.start()]) or _is_named(corpus, first, after, page):
            return _bracket(_find_kind(corpus, name))
        joined = "".join(_JOINED.findall(rest)[:1])
        return " ".join(
            filter(None, (first, joined.strip(), rest and _bracket(_find_kind(corpus, rest[len(joined) :]))))
        )

    return NAME.sub(blank, text)


def _find_kind(corpus: Corpus, name: str) -> str:
    node = corpus.find(name)
    return (corpus.page(node).type if node is not None else "") or "name"


def _is_named(corpus: Corpus, word: str, after: str, page: str) -> bool:
    if re.search(rf"(?<!\w){re.escape(word.lower())}(?!\w)", page):
        return False
    return corpus.find(word) is not None or bool(_NAMED_AFTER.match(after)) or after[1:2].isupper()
