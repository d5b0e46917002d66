"""Read the infobox of a page: its fields, the values of each field, and the span of every value in the page's text.

A value is cut so that it can be checked later: ``parse_value(text[value.start:value.end])`` gives the same value again.
The verifier relies on that, so raw values are split until nothing splits further, and each piece is then parsed on its
own. Separators are list templates, ``*`` lists, ``<br>``, and commas between links. In a field that says where a thing
is, what follows a comma is what the place lies in, and no value.
"""

import re
from dataclasses import dataclass, replace
from itertools import pairwise

import mwparserfromhell
from mwparserfromhell.nodes import Template

from pipelines.corpus.boxes import NO_BOXES, Boxes
from pipelines.corpus.data import read_names
from pipelines.corpus.templates import RenderedLink, parse_date, render_value
from pipelines.corpus.wikitext import blank_ignored, blank_spans, find_arguments, find_references, match_template

_LIST_MARKER = re.compile(
    r"\{\{\s*(?:end\s?)?(?:plain\s?list|flat\s?list|tree\s?list|hlist|nowrap begin|nowrap end|startplainlist)"
    r"\s*(?:/\s*end)?\s*(?:\|\s*(?:class|style|indent)\s*=[^{}|]*)?\}\}",
    re.IGNORECASE,
)
_HEAD = re.compile(r"\{\{\s*([^{}|<>\[\]]*?)\s*(?=\||\}\})")
_NAMED = re.compile(r"\s*[\w -]+\s*=")
_BREAK = re.compile(r"<br\s*/?\s*>|</?li\s*>|\{\{\s*(?:break|br|\\)\s*\}\}| / ", re.IGNORECASE)
_BULLET = re.compile(r"^[ \t]*[*]+[ \t]*", re.MULTILINE)
_LINE_END = re.compile(r"\n")
_BRACKET = re.compile(r"\[\[|\{\{|\]\]|\}\}|[()]|,")
_PURE_LINK = re.compile(r"'{0,5}\[\[[^\[\]{}|]+(?:\|[^\[\]{}]*)?\]\]'{0,5}(?:\s*\([^()]*\))?$")
_PLAIN_PLACE = re.compile(r"[^\W\d_a-z][\w.'’ -]*$")
_PLAIN_WORDS = re.compile(r"[^\W\d_][\w.'’& -]*$")
_SMALL_LINE = re.compile(r"(?:\{\{\s*small(?:er)?\s*\|[^{}\[\]]*\}\}|<small>[^<>\[\]]*</small>)", re.IGNORECASE)
_TRAIL = re.compile(r"[^\W\d_A-Z]+")
_SERIAL = re.compile(r"-\d+|\s[A-Z]{1,4}-?\d+")
"""What follows the name of a make: "[[Saturn V]] SA-506", "[[Apollo CSM]]-107"."""
_NEARLY_LINK = re.compile(r"(?:[\w.-]+ ){0,2}'{0,5}\[\[[^\[\]{}]+\]\]'{0,5}[\w-]*(?: [\w.-]+){0,2}(?:\s*\([^()]*\))?$")
"""A link with a word or two before or behind it."""
_QUALIFIER = re.compile(r"\s*\([^()]*\)")
_MAX_PLAIN_WORDS = 5
_SLASHED = re.compile(r"[^\W\d_a-z][^\W\d_]{3,}(?:/[^\W\d_a-z][^\W\d_]{3,})+")
"""Words, each long enough to be no part of an abbreviation: Producer/Director."""
_LABELLED = re.compile(r"[^\W\d_a-z][^\W\d_]*: ")
"""A line below a value that names another field: "Rank: 66"."""
_YEAR = re.compile(r"\d{3,4}")
"""A line below a date that is another date without a template, and so no place."""


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
    if not any(mark in raw for mark in "[{<*/"):
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
    body = text[start:end]
    arguments = _find_list_arguments(body)
    if arguments is None:
        marks = _find_marks(body)
        arguments = _cut(body, marks) if marks else [(0, len(body))]
    return [(start + first, start + last) for first, last in arguments]


def _find_list_arguments(body: str) -> list[tuple[int, int]] | None:
    head = _HEAD.match(body)
    if head is None or match_template(body, 0) != len(body):
        return None
    name = head.group(1).lower().replace("_", " ")
    is_wrapper = name in read_names("templates", "wrappers")
    if not is_wrapper and name not in read_names("templates", "lists"):
        return None
    arguments = []
    for first, last in find_arguments(body):
        named = _NAMED.match(body, first, last)
        if named is None:
            arguments.append((first, last))
        elif named.group().strip(" =\t\n").isdigit():
            arguments.append((named.end(), last))
    if is_wrapper:
        inner = [piece for first, last in arguments[:1] for piece in _split_once(body, first, last)]
        return inner if len(inner) > 1 else None
    return arguments


def _find_marks(body: str) -> list[tuple[int, int]]:
    outside = _find_outside(body)
    bullets = [match.span() for match in _BULLET.finditer(body) if outside[match.start()]]
    if bullets:
        ends = [match.span() for match in _LINE_END.finditer(body, bullets[0][1]) if outside[match.start()]]
        starts = {first for first, _ in bullets}
        return sorted([*bullets, *((first, last) for first, last in ends if last not in starts)])
    # A line that opens with a parenthesis qualifies the value above it: "[[A]]<br>(1861-65)" is one value.
    breaks = [match.span() for match in _BREAK.finditer(body) if outside[match.start()] and _parts(match, outside)]
    breaks = [(first, last) for first, last in breaks if not first or body[last:].lstrip()[:1] != "("]
    if breaks:
        return breaks
    if _SLASHED.fullmatch(body):
        return [match.span() for match in re.finditer("/", body)]
    commas = [match.span() for match in re.finditer(",", body) if outside[match.start()] == 1]
    return commas if commas and _is_link_list(body, commas) else []


def _parts(mark: re.Match[str], outside: bytearray) -> bool:
    return mark.group() != " / " or outside[mark.start()] == 1


def _find_outside(body: str) -> bytearray:
    # 0 inside ``[[ ]]`` or ``{{ }}``, 1 outside, 2 outside but within parentheses.
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
    # "[[Ann Roe]], a painter" is one value.
    pieces = [body[first:last].strip() for first, last in _cut(body, commas)]
    linked = [bool(_PURE_LINK.match(piece)) for piece in pieces]
    if all(map(_NEARLY_LINK.match, pieces)):
        return True
    plain = _PLAIN_WORDS if len(pieces) > 2 else _PLAIN_PLACE
    if not any(linked) or (len(pieces) == 2 and not linked[0]):
        return False
    return all(
        link or (plain.match(piece) and len(piece.split()) <= _MAX_PLAIN_WORDS)
        for link, piece in zip(linked, pieces, strict=True)
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
    # "[[Election of 2015|5 March 2015]]" is a date: what it links to is what happened then.
    if link is None or len(parse_date(link.text)) > len("2015"):
        # A bare number may be a year or a count of people: without a date template only its key can tell.
        plain = _unqualify(rendered.text)
        iso = rendered.iso or ("" if plain.isdigit() else parse_date(plain))
        return FieldValue(rendered.text, start, end, None, -1, iso)
    offset = _blank_notes(piece).find("[[" + link.target)
    return FieldValue(
        text=_keep_trail(rendered.text, link.text),
        start=start,
        end=end,
        link=link.target.strip() if offset >= 0 else None,
        link_start=start + offset if offset >= 0 else -1,
        iso=rendered.iso,
    )


def _keep_trail(text: str, name: str) -> str:
    trail = _TRAIL.match(text.removeprefix(name)) if text.startswith(name) else None
    return name + trail.group() if trail else name


def _unqualify(text: str) -> str:
    return _QUALIFIER.sub("", text).strip()


def _find_only_link(text: str, links: tuple[RenderedLink, ...]) -> RenderedLink | None:
    for link in links:
        # "Tyler (TX) Chapel Hill" may be a link's own text, and "(PML-N)" the whole of a value.
        bare = text if text.startswith(link.text) else text.strip(' ()"“”')
        if not link.text or not bare.startswith(link.text):
            continue
        rest = _QUALIFIER.sub("", bare[len(link.text) :])
        if not rest.strip(" ,;") or _SERIAL.fullmatch(rest) or _TRAIL.fullmatch(rest):
            return link
    return None


_OPENING = re.compile(r"\{\{[\s_]*+(?=infobox|taxobox|speciesbox|automatic[ _]taxobox)", re.IGNORECASE)
_IMAGE_KEY = re.compile(r"(?:image|photo|picture|logo|cover|img)[ _]?(?:name|file|skyline)?1?", re.IGNORECASE)
_FILE = re.compile(
    r"(?:(?:file|image)\s*:\s*)?([^\[\]|{}<>=:\n]{1,240}\.(?:jpe?g|png|svg|gif|tiff?|webp))", re.IGNORECASE
)
_FILE_VALUE = re.compile(r"(?:\[\[)?(?:[^\[\]|{}<>=:\n]{1,40}:)?\s*" + _FILE.pattern, re.IGNORECASE)
_COMMENT = re.compile(r"<!--.*?(?:-->|$)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Field:
    """One named parameter of an infobox that has a value."""

    key: str
    start: int
    """Span of the raw value, stripped, in the page's text."""
    end: int
    values: tuple[FieldValue, ...]


@dataclass(frozen=True, slots=True)
class Infobox:
    """The first infobox of a page."""

    template: str
    """Normalised name such as ``Infobox bridge``."""
    start: int
    end: int
    fields: tuple[Field, ...]
    """In the order of the page; of a repeated key the last, which is the one MediaWiki shows."""

    def find_image(self, text: str) -> str:
        """Return the file that the infobox of this text shows first, with spaces, or an empty string."""
        for shown in self.fields:
            if _IMAGE_KEY.fullmatch(shown.key) and (match := _FILE.search(text, shown.start, shown.end)):
                return _name_file(match)
        return ""

    def find_file(self, text: str) -> str:
        """Return the first file that is a value, under whatever key, photographs before drawings; or an empty string.

        For editions whose keys are not English; drawings are flags, arms and maps.
        """
        found = (_FILE_VALUE.match(text, shown.start, shown.end) for shown in self.fields)
        names = [_name_file(match) for match in found if match]
        return next((name for name in names if not name.lower().endswith((".svg", ".gif"))), names[0] if names else "")


def _name_file(match: re.Match[str]) -> str:
    name = " ".join(match.group(1).replace("_", " ").split())
    return name[:1].upper() + name[1:]


def has_infobox(text: str, boxes: Boxes = NO_BOXES) -> bool:
    """Return quickly whether a page may have an infobox; False is certain, True is not."""
    return _OPENING.search(text) is not None or "{{<!--" in text or boxes.find_infobox(text) is not None


def read_infobox(text: str, boxes: Boxes = NO_BOXES) -> Infobox | None:
    """Read the first infobox, known by its name; None without one, or when its braces are not balanced."""
    visible = blank_ignored(text)
    openings = [match for match in (_OPENING.search(visible), boxes.find_infobox(visible)) if match]
    opening = min(openings, key=lambda match: match.start(), default=None)
    start = opening.start() if opening else -1
    end = match_template(visible, start) if opening else -1
    if end < 0:
        return None
    templates = mwparserfromhell.parse(text[start:end], skip_style_tags=True).filter_templates(recursive=False)
    if not templates or str(templates[0]) != text[start:end]:
        return None
    name = " ".join(_COMMENT.sub("", str(templates[0].name)).replace("_", " ").split())
    name = boxes.name(name)
    return Infobox(boxes.infoboxes.get(name, name), start, end, _read_fields(templates[0], start))


def _read_fields(template: Template, offset: int) -> tuple[Field, ...]:
    fields: dict[str, Field] = {}
    position = offset + len("{{") + len(str(template.name))
    for parameter in template.params:
        raw = str(parameter.value)
        value_start = position + len("|") + (len(str(parameter.name)) + len("=") if parameter.showkey else 0)
        position = value_start + len(raw)
        stripped = raw.strip()
        key = _COMMENT.sub("", str(parameter.name)).strip()
        if not (parameter.showkey and key and stripped):
            continue
        start = value_start + raw.index(stripped)
        values = _leave_out_remarks(stripped, parse_value(stripped))
        if _ends_with(key, "place_words"):
            values = _leave_out_containers(stripped, values, linked=True)
        elif _ends_with(key, "institution_words"):
            values = _leave_out_containers(stripped, values, linked=False)
        if key.lower() in read_names("templates", "unlinked_words"):
            values = tuple(replace(value, link=None, link_start=-1) for value in values)
        values = tuple(_shift_value(value, start) for value in values)
        fields.pop(key, None)
        if values:
            fields[key] = Field(key, start, start + len(stripped), values)
    return tuple(fields.values())


def _leave_out_remarks(raw: str, values: tuple[FieldValue, ...]) -> tuple[FieldValue, ...]:
    if len(values) < 2:
        return values
    pieces = [(value, raw[value.start : value.end]) for value in values]
    kept = [
        value
        for place, (value, piece) in enumerate(pieces)
        if value.text or (rendered := render_value(piece)) is None or rendered.text
        if not (place and (_SMALL_LINE.fullmatch(piece) or _LABELLED.match(piece)))
    ]
    if kept and kept[0].iso and not any(value.iso or _YEAR.fullmatch(value.text) for value in kept[1:]):
        return (kept[0],)
    return tuple(kept) or values[:1]


def _ends_with(key: str, table: str) -> bool:
    words = re.findall(r"[^\W\d_]+", key.lower())
    return bool(words) and not read_names("templates", table).isdisjoint((words[-1], "_".join(words)))


def _leave_out_containers(raw: str, values: tuple[FieldValue, ...], linked: bool) -> tuple[FieldValue, ...]:
    # "[[Vienna]], [[Austria]]" is Vienna. Without ``linked`` only a name without a link contains another place:
    # "[[Yale]], [[Oxford]]" are two values, "[[Yale]], Connecticut" is one.
    visible = _blank_notes(raw)
    kept = list(values[:1])
    for before, value in pairwise(values):
        between = _BREAK.sub("", visible[before.start : value.start]).rstrip()
        if not between.endswith(",") or (value.link is not None and not linked):
            kept.append(value)
    return tuple(kept)


def _shift_value(value: FieldValue, offset: int) -> FieldValue:
    link_start = value.link_start + offset if value.link_start >= 0 else -1
    return replace(value, start=value.start + offset, end=value.end + offset, link_start=link_start)
