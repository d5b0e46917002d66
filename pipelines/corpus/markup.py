"""Find the spans of wikitext that are not running text: comments, tags that hide markup, references, templates, tables.

Every scan is linear in the text: what has no end is looked for once.
"""

import re
from collections.abc import Iterator

_IGNORED_TAGS = (
    "nowiki|pre|math|chem|ce|syntaxhighlight|source|gallery|timeline|score|hiero|graph|mapframe|templatedata"
)
_IGNORED_OPEN = re.compile(rf"<!--|<({_IGNORED_TAGS})(?=[\s>/])([^<>]*)>", re.IGNORECASE)
_CLOSE = {name: re.compile(rf"</{name}\s*>", re.IGNORECASE) for name in _IGNORED_TAGS.split("|")}
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
    while match := _IGNORED_OPEN.search(text, position):
        position = match.end()
        if match.group(1) is None:
            end = text.find("-->", position)
            position = len(text) if end < 0 else end + 3
            yield match.start(), position
            continue
        name = match.group(1).lower()
        if name in unclosed or match.group(2).endswith("/"):
            continue
        closing = _CLOSE[name].search(text, position)
        if closing is None:
            unclosed.add(name)
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
