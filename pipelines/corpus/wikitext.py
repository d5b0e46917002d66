"""Wikitext as synth reads it: spans that are not running text, sentences, readable text, and links.

Templates are not expanded; what the usual ones show is known. Offsets are characters of the page's text as stored, so a
span found here can be cut out of the page again. Every scan takes time linear in the text.
"""

import html
import re
from array import array
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from string import ascii_lowercase

import numpy as np
from numpy.typing import NDArray

from pipelines.corpus.data import read_data
from pipelines.corpus.dump import NO_ARTICLE, TitleRules, hash_article
from pipelines.corpus.templates import show_template, shows_block

_IGNORED_TAGS = (
    "nowiki|pre|math|chem|ce|syntaxhighlight|source|gallery|timeline|score|hiero|graph|mapframe|templatedata"
)
_IGNORED_OPEN = re.compile(rf"<(?:!--|(?i:({_IGNORED_TAGS}))(?=[\s>/])([^<>]*)>)", re.ASCII)
_CLOSE = {name: re.compile(rf"</(?i:{name})\s*>", re.ASCII) for name in _IGNORED_TAGS.split("|")}
_REF = re.compile(r"<ref(?:\s[^<>]*)?/?>", re.IGNORECASE)
_REF_CLOSE = re.compile(r"</ref\s*>", re.IGNORECASE)
_DOUBLE_BRACES = re.compile(r"\{\{|\}\}")
_BRACES = re.compile(r"\{\{|\}\}|^[ \t:*#]*\{\||^[ \t:*#]*\|\}(?!\})", re.MULTILINE)


def blank_ignored(text: str) -> str:
    """Replace what MediaWiki does not read as wikitext with as many spaces, so that offsets stay valid.

    That is comments, and ``nowiki``, ``pre``, ``math``, ``syntaxhighlight``, ``gallery``, ``timeline`` and their like.
    An unclosed comment runs to the end of the text; an unclosed tag is ordinary text, as in MediaWiki.
    """
    return blank_spans(text, find_ignored(text)) if "<" in text else text


def blank_spans(text: str, spans: Iterable[tuple[int, int]], fill: str = " ") -> str:
    """Replace ordered, disjoint spans with as many spaces; an empty ``fill`` cuts them out."""
    parts: list[str] = []
    position = 0
    for start, end in spans:
        parts += text[position:start], fill * (end - start)
        position = end
    return "".join([*parts, text[position:]])


def find_ignored(text: str) -> Iterator[tuple[int, int]]:
    """Yield the spans that ``blank_ignored`` blanks, in order and without overlap."""
    position = 0
    unclosed: set[str] = set()
    for match in _IGNORED_OPEN.finditer(text):
        if match.start() < position:
            continue
        position = match.end()
        if match[1] is None:
            end = text.find("-->", position)
            position = len(text) if end < 0 else end + 3
        else:
            name = match[1].lower()
            if name in unclosed or match[2].endswith("/"):
                continue
            closing = _CLOSE[name].search(text, position)
            if closing is None:
                unclosed.add(name)  # no closing tag from here on: not searched again
                continue
            position = closing.end()
        yield match.start(), position


def find_references(text: str) -> Iterator[tuple[int, int]]:
    """Yield the spans of ``<ref .../>`` and ``<ref>...</ref>`` in order; a reference without end is ordinary text."""
    position = 0
    while match := _REF.search(text, position):
        position = match.end()
        if not match.group().endswith("/>"):
            closing = _REF_CLOSE.search(text, position)
            if closing is None:
                return
            position = closing.end()
        yield match.start(), position


def find_braces(text: str) -> Iterator[tuple[int, int]]:
    """Yield the outermost balanced ``{{...}}`` and ``{|...|}`` spans in order; unbalanced ones are skipped."""
    stack: list[tuple[str, int]] = []
    counts = {"{{": 0, "{|": 0}
    spans: list[tuple[int, int]] = []
    for match in _BRACES.finditer(text):
        token = match.group().lstrip(" \t:*#")
        if token in counts:
            stack.append((token, match.end() - 2))
            counts[token] += 1
            continue
        opener = "{{" if token == "}}" else "{|"
        if not counts[opener]:
            continue
        while True:
            kind, start = stack.pop()
            counts[kind] -= 1
            if kind == opener:
                break
        while spans and spans[-1][0] >= start:
            spans.pop()
        spans.append((start, match.end()))
    yield from spans


def match_template(text: str, start: int, end: int | None = None) -> int:
    """Return the offset after the ``}}`` that closes the template opened at ``start``, or -1 when nothing closes it."""
    depth = 0
    for match in _DOUBLE_BRACES.finditer(text, start, len(text) if end is None else end):
        depth += 1 if match.group() == "{{" else -1
        if depth == 0:
            return match.end()
    return -1


_ARGUMENT = re.compile(r"\[\[|\{\{|\]\]|\}\}|\|")


def find_arguments(template: str) -> list[tuple[int, int]]:
    """Return the spans between the outermost pipes of a template's text, its name left out."""
    depth, cuts = 0, []
    for match in _ARGUMENT.finditer(template):
        token = match.group()
        if token == "|":
            if depth == 1:
                cuts.append(match.start())
        else:
            depth += 1 if token in ("[[", "{{") else -1
    stops = [*cuts[1:], len(template) - len("}}")]
    return [(cut + 1, stop) for cut, stop in zip(cuts, stops, strict=True)] if cuts else []


_ABBREVIATION_LIST = """
adm al approx apr art assoc aug ave bishop bros c ca capt cf ch co col comdr corp cpl dec dept dr ed eds e.g est etc
feb fig fl fr ft gen gov hon i.e inc jan jr jul jun lat lt ltd maj mar messrs mr mrs ms msgr mt mts no nos nov oct op
p.m a.m ph.d pl pp prof pt pvt rep rev sen sept sgt sr st sta ste vol vols vs u.s u.k u.n d.c b.c a.d
"""
_ABBREVIATIONS = frozenset(_ABBREVIATION_LIST.split())
_MARK = re.compile(
    r"(?P<open>\[\[|\{\{|<ref(?:\s[^<>]*)?(?<!/)>)"
    r"|(?P<close>\]\]|\}\}|</ref\s*>)"
    r"|(?P<stop>[.!?]+)",
    re.IGNORECASE,
)
_AFTER_STOP = re.compile(
    r"[\"'”’»)\]]*"
    r"(?:<ref(?:\s[^<>]*)?/>|<ref(?:\s[^<>]*)?>[^\n]*?</ref\s*>|\{\{[^{}\n]*\}\})*"
    r"(?=(?P<gap>\s+)(?P<next>\S)|\s*$)"
)
_WORD_BEFORE = re.compile(r"[\w.]+$")
_CLOSERS = {"[[": "]]", "{{": "}}"}
_LONGEST_WORD = 24


def find_sentence(text: str, position: int) -> tuple[int, int]:
    """Return the span of the sentence that holds a character of raw wikitext.

    A sentence lies within one line. References and templates right after its full stop belong to it.
    """
    if not 0 <= position < len(text):
        raise ValueError(f"position {position} is outside a text of {len(text)} characters")
    line_start = text.rfind("\n", 0, position) + 1
    line_end = text.find("\n", position)
    line = blank_ignored(text[line_start : len(text) if line_end < 0 else line_end])
    start, end = 0, len(line)
    for stop in _find_ends(line):
        if stop > position - line_start:
            end = stop
            break
        start = stop
    start, end = _strip_span(line, start, end)
    return line_start + start, line_start + end


def split_sentences(text: str) -> list[tuple[int, int]]:
    """Return the spans of all sentences of a text, line by line; empty lines have none."""
    spans: list[tuple[int, int]] = []
    offset = 0
    for raw in text.split("\n"):
        line = blank_ignored(raw)
        start = 0
        for end in [*_find_ends(line), len(line)]:
            first, last = _strip_span(line, start, end)
            if first < last:
                spans.append((offset + first, offset + last))
            start = end
        offset += len(raw) + 1
    return spans


def _strip_span(line: str, start: int, end: int) -> tuple[int, int]:
    body = line[start:end]
    last = start + len(body.rstrip())
    return min(start + len(body) - len(body.lstrip()), last), last


def _find_ends(line: str) -> list[int]:
    ends: list[int] = []
    stack: list[str] = []
    resume = 0
    for mark in _MARK.finditer(line):
        if mark.start() < resume:
            continue
        if opener := mark.group("open"):
            stack.append(_CLOSERS.get(opener, "</ref>"))
        elif closer := mark.group("close"):
            expected = "</ref>" if closer.startswith("<") else closer
            if expected in stack[-4:]:
                while stack.pop() != expected:
                    pass
        elif not stack and (after := _AFTER_STOP.match(line, mark.end())) and _is_end(line, mark, after):
            resume = after.end()
            ends.append(resume + len(after.group("gap") or ""))
    return ends


def _is_end(line: str, mark: re.Match[str], after: re.Match[str]) -> bool:
    following = after.group("next")
    if following is None:
        return True
    if following.islower():
        return False
    if mark.group() != "." or after.end() > mark.end():
        return True
    before = _WORD_BEFORE.search(line[max(0, mark.start() - _LONGEST_WORD) : mark.start()])
    word = before.group() if before else ""
    is_initial = len(word) == 1 and word.isupper()
    is_acronym = re.fullmatch(r"(?:[A-Za-z]\.)+[A-Za-z]", word) is not None
    return not (is_initial or is_acronym or word.lower() in _ABBREVIATIONS)


_INNER_LINK = re.compile(r"\[\[([^\[\]]*+)\]\]")
_EXTERNAL = re.compile(r"\[(?:https?:)?//[^\s\[\]]++\s*([^\[\]]*+)\]")
_DROPPED_LINK = re.compile(
    r"\s*(?:file|image|media|category|datei|fichier|archivo|kategorie|catégorie)\s*:", re.IGNORECASE
)
_LANGUAGE_LINK = re.compile(r"(?:[a-z]{2,3}|simple|zh-[a-z-]+|be-[a-z-]+):[^|]+$")
_BREAK = re.compile(r"<br\s*/?>|</?(?:p|div|li|ul|ol|blockquote|center)(?:\s[^<>]*)?>", re.IGNORECASE)
_TAG = re.compile(r"</?[A-Za-z][^<>]*>")
_QUOTES = re.compile(r"'{2,5}")
_MAGIC_WORD = re.compile(r"__[A-Z]{3,}__")
_HOLLOW = re.compile(r"\(\s*+(?:[;,:/–-]\s*+)*+\)")
_HOLLOW_START = re.compile(r"\((?:\s*+[;,:])++\s*+")
_BEFORE_MARK = re.compile(r"(?<! ) ++([,;.:!?)])(?=\s|$)")
_HEADING = re.compile(r"^==.*==\s*$", re.MULTILINE)
_SAYS_WHAT = re.compile(r"\b(?:is|was|are|were)\s+(?:an?|the|one)\s")
_NOTICES = ("This is a featured article", "This article is about", "For other uses", "For the ")
_MAX_NESTING = 8
_LEAD_CHARACTERS = 20_000
_BARE_LEAD_CHARACTERS = 6_000
_LEAD_LINES = 12


def plain_text(wikitext: str) -> str:
    """Turn wikitext into text for reading and searching.

    Tables, references, files, categories, tags and templates that stand alone go; templates in running text leave what
    they show, links their anchors; entities are decoded. Lines stay lines and paragraphs stay apart by one empty line.
    Unbalanced brackets stay as literal text.
    """
    text = blank_spans(wikitext, find_ignored(wikitext), "") if "<" in wikitext else wikitext
    if "<" in text:
        text = blank_spans(text, find_references(text), "")
    if "{" in text:
        text = _show_templates(text)
    was_cut = len(text) != len(wikitext)
    text = _flatten_links(text)
    if "<" in text:
        text = _TAG.sub("", _BREAK.sub("\n", text))
    if "''" in text or "__" in text:
        text = _MAGIC_WORD.sub("", _QUOTES.sub("", text))
    if "&" in text:
        text = html.unescape(text)
    if was_cut:
        text = _BEFORE_MARK.sub(r"\1", _HOLLOW_START.sub("(", _HOLLOW.sub("", text)))
    return _tidy_lines(text)


def _show_templates(text: str) -> str:
    parts, position = [], 0
    for start, end in find_braces(text):
        raw = text[start:end]
        is_shown = raw[1] == "{" and (shows_block(raw) or not is_block(text, start, end))
        parts += [text[position:start], show_template(raw) if is_shown else ""]
        position = end
    return "".join([*parts, text[position:]]) if parts else text


_MAX_LINE = 2000
"""Characters before and after a template in which the ends of its line are looked for."""


def is_block(text: str, start: int, end: int) -> bool:
    """Say whether a template or table is a block: alone on its line, or over several lines."""
    before = text.rfind("\n", max(0, start - _MAX_LINE), start) + 1
    after = text.find("\n", end, end + _MAX_LINE)
    if (not before and start > _MAX_LINE) or (after < 0 and end + _MAX_LINE < len(text)):
        return "\n" in text[start:end]
    alone = not text[before:start].strip(" :*#") and not text[end : len(text) if after < 0 else after].strip()
    return alone or "\n" in text[start:end]


def clean_anchor(anchor: str) -> str:
    """Remove markup from a link's text; text without any is returned as it is, stripped."""
    if any(mark in anchor for mark in "'<{&[\n"):
        return " ".join(plain_text(anchor).split())
    return anchor.strip()


def list_lead(text: str) -> list[str]:
    """Return the first plain lines above the first heading."""
    is_bare = "{{" not in text[:_BARE_LEAD_CHARACTERS]
    lead = text[: _BARE_LEAD_CHARACTERS if is_bare else _LEAD_CHARACTERS]
    heading = _HEADING.search(lead)
    lead = lead[: heading.start()] if heading else lead
    running = "\n".join(line for line in lead.split("\n") if not line.startswith((":", "*", "#")))
    return [line for line in plain_text(running).split("\n") if line][:_LEAD_LINES]


def lead_paragraph(text: str) -> str:
    """Return the plain first paragraph that defines the subject, or an empty string.

    Preferred is a paragraph above the first heading that says what something is or was; hatnotes and the captions that
    some sources run together are passed over.
    """
    lines = list_lead(text)
    sentences = [line for line in lines if line.count(" ") >= 5 and not line.startswith(_NOTICES)]
    for line in sentences:
        if _SAYS_WHAT.search(line[:400]):
            return line
    for line in sentences:
        if line[-1] in ".!?":
            return line
    return lines[0] if lines else ""


def _flatten_links(text: str) -> str:
    if "[" not in text:
        return text
    text = _EXTERNAL.sub(r"\1", text)
    for _ in range(_MAX_NESTING):
        text, count = _INNER_LINK.subn(_show_link, text)
        if not count:
            break
    return text.replace("[[", "").replace("]]", "")


def _show_link(match: re.Match[str]) -> str:
    content = match.group(1)
    if ":" in content and (_DROPPED_LINK.match(content) or _LANGUAGE_LINK.match(content)):
        return ""
    target, pipe, anchor = content.partition("|")
    return anchor if pipe and anchor else target.removeprefix(":")


def _tidy_lines(text: str) -> str:
    lines: list[str] = []
    for line in text.split("\n"):
        kept = " ".join(line.split())
        if kept and kept[0] in "*#:;=-":
            kept = _strip_line_markup(kept)
        if kept or (lines and lines[-1]):
            lines.append(kept)
    return "\n".join(lines).strip("\n")


def _strip_line_markup(line: str) -> str:
    if line[0] == "=":
        return line.strip("=").strip()
    if line[0] == "-":
        return line.lstrip("-").strip() if line.startswith("----") else line
    return line.lstrip("*#:; ")


# A link ends at the first "]]", but takes a third bracket that closes one opened in its text.
_LINK = (
    r"\[\[(?P<target>[^\[\]{}|<>\n]++)"
    r"(?:\|(?P<anchor>[^\[\]]*+(?:(?:\[(?!\[)[^\[\]]*+\](?=[^\]]|\]\])|\[(?!\[)|\](?!\]))[^\[\]]*+)*+))?\]\]"
    r"(?P<trail>[letters]*+)"
)


_MAX_KEPT_LINKS = 1 << 19  # about 150 MB
_MAX_KEPT_CHARACTERS = 1 << 10


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


@cache
def _compile_link(language: str) -> re.Pattern[str]:
    return re.compile(
        _LINK.replace("letters", re.escape(ascii_lowercase + read_data("wikis")["link_trails"].get(language, "")))
    )


@dataclass(frozen=True, slots=True)
class LinkBlock:
    """The links between articles of some pages, in order of reading."""

    sources: NDArray[np.uint32]
    """As given to ``add_page``."""
    target_hashes: NDArray[np.uint64]
    """``hash_title`` of the normalised title in the article namespace."""
    positions: NDArray[np.uint32]
    """Character offset of the ``[[`` in the page's text."""
    anchors: dict[tuple[int, str], int]
    """Number of pages that use an anchor text for a target, by (target hash, anchor text)."""


class LinkReader:
    """Collects the links between articles of many pages.

    What a link names and shows is cached by its wikitext; the cache is cleared when it is full.
    """

    def __init__(self, rules: TitleRules) -> None:
        self._rules = rules
        self._find = _compile_link(rules.language).finditer
        self._known: dict[tuple[str | None, ...], tuple[int, str]] = {}
        self._sources, self._hashes, self._positions = array("I"), array("Q"), array("I")
        self._anchors: Counter[tuple[int, str]] = Counter()

    def add_page(self, source: int, text: str) -> None:
        """Read one page; ``source`` identifies it in the block."""
        seen = set()
        for match in self._find(blank_ignored(text)):
            link = match.groups()
            named = self._known.get(link) or self._resolve(link)
            if named[0] != NO_ARTICLE:
                self._sources.append(source)
                self._hashes.append(named[0])
                self._positions.append(match.start())
                seen.add(named)
        self._anchors.update(seen)

    def take(self) -> LinkBlock:
        """Return the links of all pages since the last call, and forget them."""
        block = LinkBlock(
            np.array(self._sources, np.uint32),
            np.array(self._hashes, np.uint64),
            np.array(self._positions, np.uint32),
            dict(self._anchors),
        )
        self._sources, self._hashes, self._positions = array("I"), array("Q"), array("I")
        self._anchors = Counter()
        return block

    def _resolve(self, link: tuple[str | None, ...]) -> tuple[int, str]:
        target, anchor, trail = (part or "" for part in link)
        number = hash_article(self._rules.resolve(target))
        named = (number, show_anchor(target, anchor, trail) if number != NO_ARTICLE else "")
        if len(target) + len(anchor) + len(trail) <= _MAX_KEPT_CHARACTERS:
            if len(self._known) >= _MAX_KEPT_LINKS:
                self._known.clear()
            self._known[link] = named
        return named
