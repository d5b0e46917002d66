"""Split the raw value of an infobox field into single values and read each of them.

Splitting works on the raw text alone and goes on until nothing splits further, so a piece read by itself gives what it
gave in its place. Separators: list templates, ``*`` lists, ``<br>``, and commas between links.
"""

import re
from dataclasses import dataclass

from pipelines.corpus.dates import parse_date
from pipelines.corpus.markup import blank_ignored, blank_spans, find_references, match_template
from pipelines.corpus.rendering import RenderedLink, render_value
from pipelines.corpus.templates import LIST_TEMPLATES, WRAPPERS

_LIST_MARKER = re.compile(
    r"\{\{\s*(?:end\s?)?(?:plain\s?list|flat\s?list|tree\s?list|hlist|nowrap begin|nowrap end|startplainlist)"
    r"\s*(?:/\s*end)?\s*(?:\|\s*(?:class|style|indent)\s*=[^{}|]*)?\}\}",
    re.IGNORECASE,
)
_HEAD = re.compile(r"\{\{\s*([^{}|<>\[\]]*?)\s*(?=\||\}\})")
_NAMED = re.compile(r"\s*[\w -]+\s*=")
_BREAK = re.compile(r"<br\s*/?\s*>|</?li\s*>", re.IGNORECASE)
_BULLET = re.compile(r"^[ \t]*[*]+[ \t]*", re.MULTILINE)
_BRACKET = re.compile(r"\[\[|\{\{|\]\]|\}\}|[()]|,")
_PURE_LINK = re.compile(r"'{0,5}\[\[[^\[\]{}|]+(?:\|[^\[\]{}]*)?\]\]'{0,5}(?:\s*\([^()]*\))?$")
_PLAIN_PLACE = re.compile(r"[^\W\d_a-z][\w.'’ -]*$")
_QUALIFIER = re.compile(r"\s*\([^()]*\)")
_MAX_PLAIN_WORDS = 4


@dataclass(frozen=True, slots=True)
class FieldValue:
    """One value of an infobox field."""

    text: str
    """Plain text; of a value that is one link its anchor text; empty when the value cannot be read for certain."""
    start: int
    """Span of this value in the text its field was read from."""
    end: int
    link: str | None
    """Raw target when the value is one link, apart from references, comments and qualifiers in parentheses."""
    link_start: int
    """Offset of that link's ``[[`` in the same text, or -1."""
    iso: str
    """``1931-04-05``, ``1931-04`` or ``1931`` when the value is a date of the common era, else empty."""


def parse_value(raw: str) -> tuple[FieldValue, ...]:
    """Read all values of a field; offsets are relative to ``raw``.

    Guarantee: for each value, ``parse_value(raw[value.start:value.end])`` is that value alone, at offset 0.
    """
    return tuple(_read_piece(raw, start, end) for start, end in split_value(raw))


def split_value(raw: str) -> list[tuple[int, int]]:
    """Return the spans of the single values of a field, without their list markers and outer blanks."""
    if not any(mark in raw for mark in "[{<*"):
        return _trim(raw, 0, len(raw))
    visible = _LIST_MARKER.sub(lambda match: " " * len(match.group()), _blank_notes(raw))
    spans: list[tuple[int, int]] = []
    pending = _trim(visible, 0, len(raw))
    while pending:
        start, end = pending.pop()
        pieces = [span for piece in _split_once(visible, start, end) for span in _trim(visible, *piece)]
        if pieces in ([(start, end)], []):
            spans += pieces
        else:
            pending += reversed(pieces)
    return spans


def _blank_notes(raw: str) -> str:
    text = blank_ignored(raw)
    return blank_spans(text, find_references(text)) if "<" in text else text


def _trim(text: str, start: int, end: int) -> list[tuple[int, int]]:
    body = text[start:end]
    start += len(body) - len(body.lstrip())
    stop = start + len(body.strip())
    return [(start, stop)] if start < stop else []


def _split_once(text: str, start: int, end: int) -> list[tuple[int, int]]:
    """Split a span at its outermost separators, of the first kind that it has; itself when it has none."""
    body = text[start:end]
    arguments = _find_list_arguments(body)
    if arguments is None:
        marks = _find_marks(body)
        arguments = _cut(body, marks) if marks else [(0, len(body))]
    return [(start + first, start + last) for first, last in arguments]


def _find_list_arguments(body: str) -> list[tuple[int, int]] | None:
    """Return the arguments of a list template that is the whole body; of a wrapper its content if that splits."""
    head = _HEAD.match(body)
    if head is None or match_template(body, 0) != len(body):
        return None
    name = head.group(1).lower().replace("_", " ")
    if name not in LIST_TEMPLATES and name not in WRAPPERS:
        return None
    arguments = []
    for first, last in find_arguments(body):
        named = _NAMED.match(body, first, last)
        if named is None:
            arguments.append((first, last))
        elif named.group().strip(" =\t\n").isdigit():
            arguments.append((named.end(), last))
    if name in WRAPPERS:
        inner = [piece for first, last in arguments[:1] for piece in _split_once(body, first, last)]
        return inner if len(inner) > 1 else None
    return arguments


def find_arguments(template: str) -> list[tuple[int, int]]:
    """Return the spans between the outermost pipes of a template's text, its name left out."""
    depth, cuts = 0, []
    for match in re.compile(r"\[\[|\{\{|\]\]|\}\}|\|").finditer(template):
        token = match.group()
        if token == "|":
            if depth == 1:
                cuts.append(match.start())
        else:
            depth += 1 if token in ("[[", "{{") else -1
    stops = [*cuts[1:], len(template) - len("}}")]
    return [(cut + 1, stop) for cut, stop in zip(cuts, stops, strict=True)] if cuts else []


def _find_marks(body: str) -> list[tuple[int, int]]:
    """Return the spans of the separators of a body: bullets, else line breaks, else commas between links."""
    outside = _find_outside(body)
    for pattern in (_BULLET, _BREAK):
        # A line that opens with a parenthesis qualifies the value above it: "[[A]]<br>(1861-65)" is one value.
        marks = [match.span() for match in pattern.finditer(body) if outside[match.start()]]
        marks = [(first, last) for first, last in marks if not first or body[last:].lstrip()[:1] != "("]
        if marks:
            return marks
    commas = [match.span() for match in re.finditer(",", body) if outside[match.start()] == 1]
    return commas if commas and _is_link_list(body, commas) else []


def _find_outside(body: str) -> bytearray:
    """Mark each character: 0 inside ``[[ ]]`` or ``{{ }}``, 1 outside, 2 outside but within parentheses."""
    outside = bytearray(len(body) + 1)
    depth = parentheses = position = 0
    for match in _BRACKET.finditer(body):
        fill = 0 if depth else 2 if parentheses else 1
        outside[position : match.start() + 1] = bytes([fill]) * (match.start() + 1 - position)
        position = match.start() + 1
        token = match.group()
        if token in ("[[", "{{"):
            depth += 1
        elif token in ("]]", "}}"):
            depth = max(0, depth - 1)
        elif not depth and token != ",":
            parentheses = max(0, parentheses + (1 if token == "(" else -1))
    fill = 0 if depth else 2 if parentheses else 1
    outside[position:] = bytes([fill]) * (len(outside) - position)
    return outside


def _is_link_list(body: str, commas: list[tuple[int, int]]) -> bool:
    """Say whether commas separate values: links, the first one at least, and short names written without a link."""
    pieces = [body[first:last].strip() for first, last in _cut(body, commas)]
    if not _PURE_LINK.match(pieces[0]):
        return False
    return all(
        _PURE_LINK.match(piece) or (_PLAIN_PLACE.match(piece) and len(piece.split()) <= _MAX_PLAIN_WORDS)
        for piece in pieces[1:]
    )


def _cut(body: str, marks: list[tuple[int, int]]) -> list[tuple[int, int]]:
    starts = [0, *(last for _, last in marks)]
    stops = [*(first for first, _ in marks), len(body)]
    return list(zip(starts, stops, strict=True))


def _read_piece(raw: str, start: int, end: int) -> FieldValue:
    piece = raw[start:end]
    rendered = render_value(piece)
    if rendered is None or not rendered.text:
        return FieldValue("", start, end, None, -1, "")
    link = _find_only_link(rendered.text, rendered.links)
    if link is None:
        # A bare number may be a year or a count of people: without a date template only its key can tell.
        plain = _unqualify(rendered.text)
        iso = rendered.iso or ("" if plain.isdigit() else parse_date(plain))
        return FieldValue(rendered.text, start, end, None, -1, iso)
    offset = _blank_notes(piece).find("[[" + link.target)
    return FieldValue(
        text=link.text,
        start=start,
        end=end,
        link=link.target.strip() if offset >= 0 else None,
        link_start=start + offset if offset >= 0 else -1,
        iso=rendered.iso,
    )


def _unqualify(text: str) -> str:
    return _QUALIFIER.sub("", text).strip()


def _find_only_link(text: str, links: tuple[RenderedLink, ...]) -> RenderedLink | None:
    for link in links:
        if link.text and link.text in (text, _unqualify(text)):
            rest = text.replace(link.text, "", 1)
            if not _unqualify(rest).strip(" ,;"):
                return link
    return None
