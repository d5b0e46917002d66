"""Render one infobox value as plain text, or say that it cannot be done for certain.

Templates are rendered only where their output is known; a value with any other template is given up whole, because a
half-rendered value would become a wrong answer.
"""

import html
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import mwparserfromhell
from mwparserfromhell.nodes import (
    Argument,
    Comment,
    ExternalLink,
    HTMLEntity,
    Node,
    Tag,
    Template,
    Text,
    Wikilink,
)
from mwparserfromhell.wikicode import Wikicode

from pipelines.corpus.dates import format_date, format_iso, parse_date, read_date_parts
from pipelines.corpus.measures import NUMBER, Unreadable, group_digits, show_conversion
from pipelines.corpus.templates import CHARACTERS, DATES, FIRST_ARGUMENT, NOTHING, SECOND_ARGUMENT

_FILE_LINK = re.compile(r"\s*(?:file|image|media|category)\s*:", re.IGNORECASE)
_BARE_LINK = re.compile(r"\[\[([^\[\]{}|<>&'\n]+)(?:\|([^\[\]{}|<>&'\n]+))?\]\]")
_DROPPED_TAGS = frozenset(["ref", "gallery", "references", "templatestyles", "section"])
_UNREADABLE_TAGS = frozenset(["math", "chem", "ce", "score", "timeline", "syntaxhighlight", "graph", "table"])
_BREAKS = frozenset(["br", "p", "li", "dt", "dd", "div", "hr"])
_HOLLOW = re.compile(r"\(\s*[;,]*\s*\)")
_QUOTES = re.compile(r"'{2,5}")
_INTEGER = re.compile(r"\d+")


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
        return group_digits(name.removeprefix("formatnum:").strip())
    if name in NOTHING:
        return ""
    if name in CHARACTERS:
        return CHARACTERS[name]
    if name in FIRST_ARGUMENT:
        return _render_argument(arguments, 0, state)
    if name in SECOND_ARGUMENT:
        return _render_argument(arguments, 1, state)
    if name in DATES:
        return _render_date(arguments, named, state)
    renderer = _RENDERERS.get(name)
    if renderer is None:
        raise Unreadable(name)
    return renderer(arguments, named, state)


def _render_argument(arguments: Sequence[Wikicode], index: int, state: _State) -> str:
    if len(arguments) <= index:
        raise Unreadable("argument missing")
    return _render(arguments[index], state).strip()


def _render_date(arguments: Sequence[Wikicode], named: dict[str, Wikicode], state: _State) -> str:
    written = [_render(argument, _State()).strip() for argument in arguments]
    parts = read_date_parts(written)
    if parts is None or (len(written) == 1 and not _INTEGER.fullmatch(written[0])):
        text = written[0] if written else ""
        iso = parse_date(text)
        if not iso:
            raise Unreadable("date")
        state.isos.append(iso)
        return text
    # A year-and-age template takes years only; what follows the year there is another year.
    year, month, day = parts
    iso = format_iso(year, month, day)
    if not iso:
        raise Unreadable("date")
    state.isos.append(iso)
    day_first = any(str(named.get(key, "")).strip().lower() in ("y", "yes", "1", "true") for key in ("df", "dayfirst"))
    return format_date(year, month, day, day_first)


def _render_years(arguments: Sequence[Wikicode], _named: dict[str, Wikicode], state: _State) -> str:
    year = _render_argument(arguments, 0, _State())
    if not _INTEGER.fullmatch(year):
        raise Unreadable("year")
    state.isos.append(format_iso(int(year)))
    return year


def _render_convert(arguments: Sequence[Wikicode], _named: dict[str, Wikicode], _state: _State) -> str:
    return show_conversion([_render(argument, _State()).strip() for argument in arguments])


def _render_marriage(arguments: Sequence[Wikicode], _named: dict[str, Wikicode], state: _State) -> str:
    return _render_argument(arguments, 0, state)


def _render_circa(arguments: Sequence[Wikicode], _named: dict[str, Wikicode], _state: _State) -> str:
    years = [_render(argument, _State()).strip() for argument in arguments]
    return "–".join(f"c. {year}" for year in years) if years else "c. "


def _render_number(arguments: Sequence[Wikicode], _named: dict[str, Wikicode], _state: _State) -> str:
    number = _render_argument(arguments, 0, _State())
    if len(arguments) > 1 or not NUMBER.fullmatch(number):
        raise Unreadable("val")
    return number


def _render_sort_name(arguments: Sequence[Wikicode], named: dict[str, Wikicode], state: _State) -> str:
    text = f"{_render_argument(arguments, 0, state)} {_render_argument(arguments, 1, state)}"
    if "nolink" not in named and len(arguments) < 3:
        state.links.append(RenderedLink(text, text))
    return text


def _render_height(_arguments: Sequence[Wikicode], named: dict[str, Wikicode], _state: _State) -> str:
    parts = [
        f"{str(named[unit]).strip()} {unit}"
        for unit in ("m", "cm", "ft", "in")
        if unit in named and NUMBER.fullmatch(str(named[unit]).strip())
    ]
    if not parts:
        raise Unreadable("height")
    return " ".join(parts)


def _render_currency(sign: str) -> "_Renderer":
    def render(arguments: Sequence[Wikicode], _named: dict[str, Wikicode], _state: _State) -> str:
        return sign + _render_argument(arguments, 0, _State()) if arguments else sign

    return render


_Renderer = Callable[[Sequence[Wikicode], dict[str, Wikicode], _State], str]
_RENDERERS: dict[str, _Renderer] = {
    "convert": _render_convert,
    "cvt": _render_convert,
    "conv": _render_convert,
    "marriage": _render_marriage,
    "married": _render_marriage,
    "circa": _render_circa,
    "c.": _render_circa,
    "val": _render_number,
    "sortname": _render_sort_name,
    "height": _render_height,
    "us$": _render_currency("US$"),
    "usd": _render_currency("US$"),
    "£": _render_currency("£"),
    "gbp": _render_currency("£"),
    "€": _render_currency("€"),
    "euro": _render_currency("€"),
    "birth year and age": _render_years,
    "death year and age": _render_years,
    "birth year": _render_years,
}
