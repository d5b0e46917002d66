"""Find the spans of wikitext that are not running text: comments, tags that hide markup, references, templates, tables.

Every scan is linear in the text: what has no end is looked for once.
"""

import re
import sys
from collections.abc import Iterable, Iterator
from typing import AnyStr

_IGNORED_TAGS = (
    "nowiki|pre|math|chem|ce|syntaxhighlight|source|gallery|timeline|score|hiero|graph|mapframe|templatedata"
)
_IGNORED_OPEN = re.compile(rf"<(?:!--|(?i:({_IGNORED_TAGS}))(?=[\s>/])([^<>]*)>)", re.ASCII)
_CLOSE = {name: re.compile(rf"</(?i:{name})\s*>", re.ASCII) for name in _IGNORED_TAGS.split("|")}
# The same in XML as a dump holds it: "<" is "&lt;" and ">" is "&gt;".
_ESCAPED_OPEN = re.compile(rf"&lt;(?:!--|(?i:({_IGNORED_TAGS}))(?=[\s/]|&gt;)((?:[^&]++|&(?![lg]t;))*+)&gt;)".encode())
_ESCAPED_CLOSE = {name.encode(): re.compile(rf"&lt;/(?i:{name})\s*&gt;".encode()) for name in _IGNORED_TAGS.split("|")}
IGNORED_INITIALS = bytes(sorted({ord(letter) for name in _CLOSE for letter in name[0] + name[0].upper()} | {ord("!")}))
"""What may follow the ``<`` of a span that ``find_ignored`` yields."""
_REF = re.compile(r"<ref(?:\s[^<>]*)?/?>", re.IGNORECASE)
_REF_CLOSE = re.compile(r"</ref\s*>", re.IGNORECASE)
_BRACES = re.compile(r"\{\{|\}\}|^[ \t:*#]*\{\||^[ \t:*#]*\|\}(?!\})", re.MULTILINE)


def blank_ignored(text: str) -> str:
    """Replace what MediaWiki does not read as wikitext with as many spaces, so that offsets stay valid.

    That is comments, and ``nowiki``, ``pre``, ``math``, ``syntaxhighlight``, ``gallery``, ``timeline`` and their like.
    An unclosed comment runs to the end of the text; an unclosed tag is ordinary text, as in MediaWiki.
    """
    return blank_spans(text, find_ignored(text)) if "<" in text else text


def blank_spans(text: str, spans: Iterator[tuple[int, int]]) -> str:
    """Replace ordered, disjoint spans with as many spaces."""
    parts: list[str] = []
    position = 0
    for start, end in spans:
        parts.append(text[position:start])
        parts.append(" " * (end - start))
        position = end
    parts.append(text[position:])
    return "".join(parts)


def drop_spans(text: str, spans: Iterator[tuple[int, int]]) -> str:
    """Cut ordered, disjoint spans out of a text."""
    parts: list[str] = []
    position = 0
    for start, end in spans:
        parts.append(text[position:start])
        position = end
    parts.append(text[position:])
    return "".join(parts)


def find_ignored(text: str) -> Iterator[tuple[int, int]]:
    """Yield the spans that ``blank_ignored`` blanks, in order and without overlap."""
    position = 0
    unclosed: set[str] = set()
    for match in _IGNORED_OPEN.finditer(text):
        if match.start() < position:
            continue
        position = match.end()
        name = match[1]
        if name is None:
            end = text.find("-->", position)
            position = len(text) if end < 0 else end + 3
        else:
            closing = _find_close(_CLOSE[name.lower()], text, match, unclosed)
            if closing is None:
                continue
            position = closing.end()
        yield match.start(), position


def find_escaped_ignored(xml: bytes, opens: Iterable[int], end: int) -> Iterator[tuple[int, int]]:
    """Yield the spans of ``find_ignored`` in a page as a dump holds it, with ``<`` and ``>`` escaped.

    Args:
        xml: bytes that hold the page; what decodes otherwise than in ASCII is nowhere in a span's own markup.
        opens: offsets of the page's ``&lt;`` that ``IGNORED_INITIALS`` follow, ascending.
        end: offset after the page's text.
    """
    position = 0
    unclosed: set[bytes] = set()
    for start in opens:
        match = _ESCAPED_OPEN.match(xml, start, end) if start >= position else None
        if match is None:
            continue
        position = match.end()
        name = match[1]
        if name is None:
            close = xml.find(b"--&gt;", position, end)
            position = end if close < 0 else close + 6
        else:
            closing = _find_close(_ESCAPED_CLOSE[name.lower()], xml, match, unclosed, end)
            if closing is None:
                continue
            position = closing.end()
        yield start, position


def _find_close(
    pattern: re.Pattern[AnyStr], text: AnyStr, opening: re.Match[AnyStr], unclosed: set[AnyStr], end: int = sys.maxsize
) -> re.Match[AnyStr] | None:
    """Find what closes a tag, and remember in ``unclosed`` the names that nothing closes from here on."""
    name, attributes = opening[1].lower(), opening[2]
    if name in unclosed or attributes[-1:] in ("/", b"/"):
        return None
    closing = pattern.search(text, opening.end(), end)
    if closing is None:
        unclosed.add(name)
    return closing


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
    """Yield the outermost balanced ``{{...}}`` and ``{|...|}`` spans in order; what is not balanced is passed over."""
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


def match_template(text: str, start: int) -> int:
    """Return the offset after the ``}}`` that closes the template opened at ``start``, or -1 when nothing closes it."""
    depth = 0
    for match in re.compile(r"\{\{|\}\}").finditer(text, start):
        depth += 1 if match.group() == "{{" else -1
        if depth == 0:
            return match.end()
    return -1
