"""Read the infobox of a page: its fields, the values of each field, and the span of every value in the page's text.

A value is cut so that it can be checked later: ``parse_value(text[value.start:value.end])`` gives the same value again.
The verifier relies on that, so raw values are split until nothing splits further, and each piece is then parsed on its
own. Separators are list templates, ``*`` lists, ``<br>``, and commas between links.

A value is rendered as plain text only where all of its templates are known: English Wikipedia's templates for lists,
dates, ``{{convert}}`` and ``{{formatnum}}``. A value with any other template is given up, because a half-rendered value
would become a wrong answer. Dates become ISO 8601 strings of full or partial precision. Template names are in lower
case, with spaces.
"""

import html
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

import mwparserfromhell
from mwparserfromhell.nodes import Argument, Comment, ExternalLink, HTMLEntity, Node, Tag, Template, Text, Wikilink
from mwparserfromhell.wikicode import Wikicode

from pipelines.corpus.data import read_data, read_names
from pipelines.corpus.wikitext import blank_ignored, blank_spans, find_references, match_template

MONTHS = "January February March April May June July August September October November December".split()
_NUMBERS = {name.lower(): number for number, name in enumerate(MONTHS, start=1)}
_NUMBERS |= {name.lower()[:3]: number for number, name in enumerate(MONTHS, start=1)}
_MONTH = r"(?P<month>[A-Za-z]{3,9})\.?"
_FORMS = (
    re.compile(rf"(?P<day>\d{{1,2}})(?:st|nd|rd|th)? {_MONTH},? (?P<year>\d{{3,4}})"),
    re.compile(rf"{_MONTH} (?P<day>\d{{1,2}})(?:st|nd|rd|th)?,? (?P<year>\d{{3,4}})"),
    re.compile(rf"{_MONTH},? (?P<year>\d{{3,4}})(?P<day>)"),
    re.compile(r"(?P<year>\d{4})-(?P<month>\d{2})-(?P<day>\d{2})"),
    re.compile(r"(?P<year>\d{3,4})(?P<month>)(?P<day>)"),
)
_NUMBER = re.compile(r"[-−+]?\d[\d,]*(?:\.\d+)?")
_DAYS = (31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)


def parse_date(text: str) -> str:
    """Read a text that is a date and nothing else.

    Returns:
        ``YYYY-MM-DD``, ``YYYY-MM`` or ``YYYY``; empty for anything else, also ranges and years BC.
    """
    if not text[-4:].strip().isdigit() and "-" not in text:
        return ""
    for form in _FORMS:
        if match := form.fullmatch(text):
            month = match.group("month")
            number = int(month) if month.isdigit() else _NUMBERS.get(month.lower(), 0) if month else None
            day = int(match.group("day")) if match.group("day") else None
            if number == 0:
                return ""
            return format_iso(int(match.group("year")), number, day)
    return ""


def format_iso(year: int, month: int | None = None, day: int | None = None) -> str:
    """Join the known parts of a date; an impossible one gives an empty string."""
    if not 0 < year < 10_000 or (month is not None and not 1 <= month <= 12):
        return ""
    if month is None:
        return f"{year:04d}"
    if day is None:
        return f"{year:04d}-{month:02d}"
    return f"{year:04d}-{month:02d}-{day:02d}" if 1 <= day <= _DAYS[month - 1] else ""


def _read_date_parts(arguments: Sequence[str]) -> tuple[int, int | None, int | None] | None:
    """Read year, month and day from the positional arguments of a date template; None when the year is no number."""
    parts = []
    for argument in arguments[:3]:
        value = argument.strip()
        number = int(value) if value.isdecimal() else _NUMBERS.get(value.lower())
        if number is None:
            break
        parts.append(number)
    if not parts or (len(parts) > 1 and not 1 <= parts[1] <= 12):
        return None
    return parts[0], parts[1] if len(parts) > 1 else None, parts[2] if len(parts) > 2 else None


def _format_date(year: int, month: int | None, day: int | None, day_first: bool) -> str:
    """Write a date the way English Wikipedia shows it: ``April 5, 1931`` or ``5 April 1931``."""
    if month is None:
        return str(year)
    if day is None:
        return f"{MONTHS[month - 1]} {year}"
    return f"{day} {MONTHS[month - 1]} {year}" if day_first else f"{MONTHS[month - 1]} {day}, {year}"


class Unreadable(ValueError):
    """A part of a value has no certain rendering, so the whole value is dropped."""


def _show_conversion(words: Sequence[str]) -> str:
    """Show the measure that ``{{convert}}`` starts from, such as ``320 m`` or ``6 ft 4 in``, without the rest."""
    ranges = read_data("infobox")["ranges"]
    text, position = "", 0
    while position + 1 < len(words) and _NUMBER.fullmatch(words[position]):
        number, unit = words[position], words[position + 1]
        position += 2
        if unit in ranges:
            text += _group_digits(number) + ranges[unit]
            continue
        text += _show_measure(number, unit)
        smaller = words[position : position + 2]
        if len(smaller) == 2 and _NUMBER.fullmatch(smaller[0]) and smaller[1] in ("in", "oz", "lb", "ft", "yd", "ch"):
            text += f" {_show_measure(*smaller)}"
        return text
    raise Unreadable("convert")


def _show_measure(number: str, unit: str) -> str:
    number = _group_digits(number)
    shown = read_data("infobox")["units"].get(unit, unit)
    return number + shown if shown.startswith(("/", "°")) else f"{number} {shown}"


def _group_digits(number: str) -> str:
    """Write an integer part of four digits or more with commas."""
    whole, point, fraction = number.partition(".")
    if not _NUMBER.fullmatch(number):
        raise Unreadable("number")
    digits = whole.lstrip("+-−")
    sign = whole[: len(whole) - len(digits)]
    return f"{sign}{int(digits):,}{point}{fraction}" if digits.isdecimal() and len(digits) > 3 else number


_FILE_LINK = re.compile(r"\s*(?:file|image|media|category)\s*:", re.IGNORECASE)
_BARE_LINK = re.compile(r"\[\[([^\[\]{}|<>&'\n]+)(?:\|([^\[\]{}|<>&'\n]+))?\]\]")
_DROPPED_TAGS = frozenset(["ref", "gallery", "references", "templatestyles", "section"])
_UNREADABLE_TAGS = frozenset(["math", "chem", "ce", "score", "timeline", "syntaxhighlight", "graph", "table"])
_BREAKS = frozenset(["br", "p", "li", "dt", "dd", "div", "hr"])
_HOLLOW = re.compile(r"\(\s*[;,]*\s*\)")
_DAY_FIRST = ("df", "dayfirst")
_QUOTES = re.compile(r"'{2,5}")


@dataclass(frozen=True, slots=True)
class RenderedLink:
    """A link that shows in a rendered value."""

    target: str
    """Raw, as written."""
    text: str
    """Its anchor, rendered."""


@dataclass(frozen=True, slots=True)
class Rendered:
    """A value as a reader sees it."""

    text: str
    links: tuple[RenderedLink, ...]
    iso: str
    """Date named by a date template, else empty."""


@dataclass(slots=True)
class _State:
    links: list[RenderedLink] = field(default_factory=list)
    isos: list[str] = field(default_factory=list)


def render_value(raw: str) -> Rendered | None:
    """Render a single value.

    Returns:
        None when a part of it (an unknown template, a formula) has no certain rendering.
    """
    if not any(mark in raw for mark in "[{<'&"):
        return Rendered(" ".join(raw.split()), (), "")
    if (match := _BARE_LINK.fullmatch(raw)) and not _FILE_LINK.match(match.group(1)):
        target, anchor = match.groups()
        text = _clean(anchor or target.strip().removeprefix(":")) or target.strip()
        return Rendered(text, (RenderedLink(target, text),), "")
    state = _State()
    try:
        text = _render(mwparserfromhell.parse(raw), state)
    except Unreadable:
        return None
    text = _clean(text)
    iso = state.isos[0] if len(state.isos) == 1 else ""
    return Rendered(text, tuple(state.links), iso)


def _clean(text: str) -> str:
    text = _QUOTES.sub("", html.unescape(text))
    return " ".join(_HOLLOW.sub("", text).split()).strip(" ,;")


def _render(code: Wikicode, state: _State) -> str:
    return "".join(_render_node(node, state) for node in code.nodes)


def _render_node(node: Node, state: _State) -> str:
    if isinstance(node, Text):
        return str(node.value).replace("[[", "").replace("]]", "")
    if isinstance(node, Comment):
        return ""
    if isinstance(node, HTMLEntity):
        return html.unescape(str(node))
    if isinstance(node, Wikilink):
        return _render_link(node, state)
    if isinstance(node, Template):
        return _render_template(node, state)
    if isinstance(node, Tag):
        return _render_tag(node, state)
    if isinstance(node, ExternalLink):
        return _render(node.title, state) if node.title is not None else ("" if node.brackets else str(node.url))
    if isinstance(node, Argument):
        raise Unreadable(str(node))
    return str(node)


def _render_link(node: Wikilink, state: _State) -> str:
    target = str(node.title)
    if _FILE_LINK.match(target):
        return ""
    shown = _render(node.text, _State()) if node.text is not None else target.strip().removeprefix(":")
    text = _clean(shown) or target.strip()
    state.links.append(RenderedLink(target, text))
    return text


def _render_tag(node: Tag, state: _State) -> str:
    name = str(node.tag).strip().lower()
    if name in _DROPPED_TAGS:
        return ""
    if name in _UNREADABLE_TAGS:
        raise Unreadable(name)
    content = _render(node.contents, state) if node.contents is not None else ""
    if name == "sup" and not any(char.isdigit() for char in content):
        return ""  # a footnote's letter; glued to its word it would make another word of it
    return f" {content} " if name in _BREAKS else content


def _render_template(node: Template, state: _State) -> str:
    name = " ".join(str(node.name).replace("_", " ").split()).lower()
    arguments = [parameter.value for parameter in node.params if not parameter.showkey]
    named = {str(p.name).strip().lower(): p.value for p in node.params if p.showkey}
    if not arguments and "1" in named:
        arguments = [named[key] for key in ("1", "2", "3") if key in named]
    if name.startswith("formatnum:"):
        return _group_digits(name.removeprefix("formatnum:").strip())
    if name in read_names("infobox", "nothing"):
        return ""
    if name in (characters := read_data("infobox")["characters"]):
        return str(characters[name])
    for index, key in enumerate(("first_argument", "second_argument")):
        if name in read_names("infobox", key):
            return _render_argument(arguments, index, state)
    if name in read_names("infobox", "dates"):
        return _render_date(arguments, named, state)
    return _render_other(name, arguments, named, state)


def _render_other(name: str, arguments: Sequence[Wikicode], named: dict[str, Wikicode], state: _State) -> str:
    if name in (currencies := read_data("infobox")["currencies"]):
        return str(currencies[name]) + (_render_argument(arguments, 0, _State()) if arguments else "")
    if name == "sortname":
        return _render_sort_name(arguments, named, state)
    if name == "height":
        return _render_height(named)
    if name not in _MEASURES:
        raise Unreadable(name)
    return _MEASURES[name](arguments)


def _render_argument(arguments: Sequence[Wikicode], index: int, state: _State) -> str:
    if len(arguments) <= index:
        raise Unreadable("argument missing")
    return _render(arguments[index], state).strip()


def _render_date(arguments: Sequence[Wikicode], named: dict[str, Wikicode], state: _State) -> str:
    written = _render_words(arguments)
    # A year-and-age template takes years only; what follows the year there is another year.
    parts = _read_date_parts(written)
    if parts is None or (len(written) == 1 and not written[0].isdecimal()):
        text = written[0] if written else ""
        iso = parse_date(text)
    else:
        day_first = any(str(named.get(key, "")).strip().lower() in ("y", "yes", "1", "true") for key in _DAY_FIRST)
        text, iso = _format_date(*parts, day_first), format_iso(*parts)
    if not iso:
        raise Unreadable("date")
    state.isos.append(iso)
    return text


def _render_sort_name(arguments: Sequence[Wikicode], named: dict[str, Wikicode], state: _State) -> str:
    text = f"{_render_argument(arguments, 0, state)} {_render_argument(arguments, 1, state)}"
    if "nolink" not in named and len(arguments) < 3:
        state.links.append(RenderedLink(text, text))
    return text


def _render_height(named: dict[str, Wikicode]) -> str:
    sizes = {unit: str(named[unit]).strip() for unit in ("m", "cm", "ft", "in") if unit in named}
    parts = [f"{size} {unit}" for unit, size in sizes.items() if _NUMBER.fullmatch(size)]
    if not parts:
        raise Unreadable("height")
    return " ".join(parts)


def _render_words(arguments: Sequence[Wikicode]) -> list[str]:
    return [_render(argument, _State()).strip() for argument in arguments]


def _render_convert(arguments: Sequence[Wikicode]) -> str:
    return _show_conversion(_render_words(arguments))


def _render_circa(arguments: Sequence[Wikicode]) -> str:
    return "–".join(f"c. {year}" for year in _render_words(arguments)) or "c. "


def _render_number(arguments: Sequence[Wikicode]) -> str:
    number = _render_argument(arguments, 0, _State())
    if len(arguments) > 1 or not _NUMBER.fullmatch(number):
        raise Unreadable("val")
    return number


_MEASURES: dict[str, Callable[[Sequence[Wikicode]], str]] = {
    "convert": _render_convert,
    "cvt": _render_convert,
    "conv": _render_convert,
    "circa": _render_circa,
    "c.": _render_circa,
    "val": _render_number,
}


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
    is_wrapper = name in read_names("infobox", "wrappers")
    if not is_wrapper and name not in read_names("infobox", "lists"):
        return None
    arguments = []
    for first, last in _find_arguments(body):
        named = _NAMED.match(body, first, last)
        if named is None:
            arguments.append((first, last))
        elif named.group().strip(" =\t\n").isdigit():
            arguments.append((named.end(), last))
    if is_wrapper:
        inner = [piece for first, last in arguments[:1] for piece in _split_once(body, first, last)]
        return inner if len(inner) > 1 else None
    return arguments


def _find_arguments(template: str) -> list[tuple[int, int]]:
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
    """Return whether commas separate values: links, the first one at least, and short names written without a link."""
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


_OPENING = re.compile(r"\{\{[\s_]*+(?=infobox|taxobox|speciesbox|automatic[ _]taxobox)", re.IGNORECASE)
_IMAGE_KEY = re.compile(r"(?:image|photo|picture|logo|cover|img)[ _]?(?:name|file|skyline)?1?", re.IGNORECASE)
_FILE = re.compile(
    r"(?:(?:file|image)\s*:\s*)?([^\[\]|{}<>=:\n]{1,240}\.(?:jpe?g|png|svg|gif|tiff?|webp))", re.IGNORECASE
)
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
                name = " ".join(match.group(1).replace("_", " ").split())
                return name[:1].upper() + name[1:]
        return ""


def has_infobox(text: str) -> bool:
    """Return quickly whether a page may have an infobox; False is certain, True is not."""
    return _OPENING.search(text) is not None or "{{<!--" in text


def read_infobox(text: str) -> Infobox | None:
    """Read the first template whose name starts with Infobox, Taxobox, Speciesbox or Automatic taxobox.

    Returns:
        None when there is no such template or its braces are not balanced (MediaWiki shows no template then).
    """
    visible = blank_ignored(text)
    opening = _OPENING.search(visible)
    start = opening.start() if opening else -1
    end = match_template(visible, start) if opening else -1
    if end < 0:
        return None
    templates = mwparserfromhell.parse(text[start:end], skip_style_tags=True).filter_templates(recursive=False)
    if not templates or str(templates[0]) != text[start:end]:
        return None
    name = " ".join(_COMMENT.sub("", str(templates[0].name)).replace("_", " ").split())
    return Infobox(name[:1].upper() + name[1:], start, end, _read_fields(templates[0], start))


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
        values = tuple(_shift_value(value, start) for value in parse_value(stripped))
        fields.pop(key, None)
        if values:
            fields[key] = Field(key, start, start + len(stripped), values)
    return tuple(fields.values())


def _shift_value(value: FieldValue, offset: int) -> FieldValue:
    """Move the offsets of a value, as when its field's text becomes part of a page."""
    link_start = value.link_start + offset if value.link_start >= 0 else -1
    return replace(value, start=value.start + offset, end=value.end + offset, link_start=link_start)
