"""What templates show: values of infoboxes, for certain or not at all, and the templates of running prose.

A value is rendered only where all of its templates are known, because a half-rendered value would become a wrong
answer. In running prose a template that is not known leaves its readable arguments, because a sentence with a hole
reads as another sentence. Dates become ISO 8601 strings of full or partial precision. Template names are in lower
case, with spaces.
"""

import html
import itertools
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, lru_cache

import mwparserfromhell
from mwparserfromhell.nodes import Argument, Comment, ExternalLink, HTMLEntity, Node, Tag, Template, Text, Wikilink
from mwparserfromhell.wikicode import Wikicode

from pipelines.corpus.data import read_data, read_names

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
    """Return a text that is a date and nothing else in ISO 8601; empty for anything else, ranges and years BC too."""
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
    parts = []
    for argument in arguments[:3]:
        value = argument.strip()
        number = int(value) if value.isdecimal() and len(value) <= _MOST_DIGITS else _NUMBERS.get(value.lower())
        if number is None:
            break
        parts.append(number)
    if not parts or (len(parts) > 1 and not 1 <= parts[1] <= 12):
        return None
    return parts[0], parts[1] if len(parts) > 1 else None, parts[2] if len(parts) > 2 else None


def _format_date(year: int, month: int | None, day: int | None, day_first: bool) -> str:
    if month is None:
        return str(year)
    if day is None:
        return f"{MONTHS[month - 1]} {year}"
    return f"{day} {MONTHS[month - 1]} {year}" if day_first else f"{MONTHS[month - 1]} {day}, {year}"


class Unreadable(ValueError):
    """A part of a value has no certain rendering, so the whole value is dropped."""


def _show_conversion(words: Sequence[str]) -> str:
    ranges = read_data("templates")["ranges"]
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
    shown = read_data("templates")["units"].get(unit, unit)
    return number + shown if shown.startswith(("/", "°")) else f"{number} {shown}"


_MOST_DIGITS = 100


def _group_digits(number: str) -> str:
    whole, point, fraction = number.partition(".")
    if not _NUMBER.fullmatch(number) or len(number) > _MOST_DIGITS:
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
    in_prose: bool = False
    """Whether templates that are not known show their arguments; else they make the value unreadable."""
    links: list[RenderedLink] = field(default_factory=list)
    isos: list[str] = field(default_factory=list)


def render_value(raw: str) -> Rendered | None:
    """Render a single value; None when a part of it (an unknown template, a formula) has no certain rendering."""
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
        if not state.in_prose:
            raise Unreadable(str(node))
        return _render(node.default, state) if node.default is not None else ""
    return str(node)


def _render_link(node: Wikilink, state: _State) -> str:
    target = str(node.title)
    if _FILE_LINK.match(target):
        return ""
    shown = _render(node.text, _State(state.in_prose)) if node.text is not None else target.strip().removeprefix(":")
    text = _clean(shown) or target.strip()
    state.links.append(RenderedLink(target, text))
    return text


def _render_tag(node: Tag, state: _State) -> str:
    name = str(node.tag).strip().lower()
    if name in _DROPPED_TAGS or (state.in_prose and name in _UNREADABLE_TAGS):
        return ""
    if name in _UNREADABLE_TAGS:
        raise Unreadable(name)
    content = _render(node.contents, state) if node.contents is not None else ""
    if name == "sup" and not any(char.isdigit() for char in content):
        return ""  # a footnote's letter; glued to its word it would make another word of it
    return f" {content} " if name in _BREAKS else content


def _normalise_name(name: str) -> str:
    return " ".join(name.replace("_", " ").split()).lower()


def _render_template(node: Template, state: _State) -> str:
    name = _normalise_name(str(node.name))
    arguments = [parameter.value for parameter in node.params if not parameter.showkey]
    named = {str(p.name).strip().lower(): p.value for p in node.params if p.showkey}
    if not arguments and "1" in named:
        arguments = [named[key] for key in ("1", "2", "3") if key in named]
    if state.in_prose:
        return _show_in_prose(name, arguments, named)
    return _render_known(name, arguments, named, state)


def _render_known(name: str, arguments: Sequence[Wikicode], named: dict[str, Wikicode], state: _State) -> str:
    if name.startswith("formatnum:"):
        return _group_digits(name.removeprefix("formatnum:").strip())
    if _compile_names("nothing").fullmatch(name):
        return ""
    if name in (characters := read_data("templates")["characters"]):
        return str(characters[name])
    for index, key in enumerate(("first_argument", "second_argument")):
        if name in read_names("templates", key):
            return _render_argument(arguments, index, state)
    if name in read_names("templates", "dates"):
        return _render_date(arguments, named, state)
    return _render_other(name, arguments, named, state)


def _render_other(name: str, arguments: Sequence[Wikicode], named: dict[str, Wikicode], state: _State) -> str:
    if name in (currencies := read_data("templates")["currencies"]):
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


MAX_TEMPLATE = 10_000
"""Longest template of prose in characters; longer ones are tables."""
LEFT_OUT = "…"
"""Stands for what a template computes, such as an age or a price of today."""
_HEAD = re.compile(r"\{\{\s*([^{}|<>\[\]]*?)\s*(?=\||\}\}|<!--)")
_MEASURED = re.compile(r"[-−+]?\d|[a-zA-Z/]+\d?$|[-–x×]$")
_NOT_READ = re.compile(r"^\s*(?:https?:|//|#)|\.(?:jpe?g|png|svg|gif|ogg|wav|mp3)\s*$", re.IGNORECASE)
_CODE = re.compile(r"(?:lang|ipa|script)[-/](?P<code>[\w-]+)$|(?P<plain>ipa|ipalink|ipaslink|ipablink|langx)$")
_FLAGS = frozenset("lang pron local uk us ipa icon alt also".split())


@cache
def _compile_names(key: str) -> re.Pattern[str]:
    patterns = []
    for name in sorted(read_names("templates", key)):
        bare = re.escape(name.removesuffix("...").removeprefix("..."))
        patterns.append(f"{bare}.*" if name.endswith("...") else f".*{bare}" if name.startswith("...") else bare)
    return re.compile("|".join(patterns))


def shows_nothing(raw: str) -> bool:
    """Say whether a template of running prose is a note, a citation, a box or layout."""
    head = _HEAD.match(raw)
    name = _normalise_name(head.group(1)) if head else "{"
    return name[:1] == "{" or (name not in _PROSE and _compile_names("nothing").fullmatch(name) is not None)


def shows_block(raw: str) -> bool:
    """Say whether a template that stands alone shows running text: a quotation."""
    head = _HEAD.match(raw)
    return head is not None and _normalise_name(head.group(1)) in read_names("templates", "quotations")


@lru_cache(maxsize=1 << 12)
def show_template(raw: str) -> str:
    """Return what a template of running prose shows as plain text; empty for notes, citations, boxes and layout.

    A template that is not known leaves its readable arguments, and what a template computes an ellipsis.
    """
    if len(raw) > MAX_TEMPLATE or shows_nothing(raw):
        return ""
    text = _render(mwparserfromhell.parse(raw, skip_style_tags=True), _State(in_prose=True))
    return " ".join(_HOLLOW.sub("", _QUOTES.sub("", html.unescape(text))).split(" "))


def _show_in_prose(name: str, arguments: Sequence[Wikicode], named: dict[str, Wikicode]) -> str:
    if name not in _PROSE and _compile_names("nothing").fullmatch(name):
        return ""
    if _compile_names("computed").fullmatch(name):
        return LEFT_OUT
    if not any(char.isalnum() for char in name):
        return name if name in ("'", "' \"", "\" '") else read_data("templates")["characters"].get(name, "")
    state = _State(in_prose=True)
    words = [_render(each, state).strip() for each in arguments]
    more = {key: _render(value, state).strip() for key, value in named.items()}
    if (shown := _show_words(name, words, more)) is not None:
        return shown
    try:
        return _render_known(name, arguments, named, state)
    except Unreadable:
        return _show_rest(name, words)


def _show_rest(name: str, words: Sequence[str]) -> str:
    if name in ("convert", "cvt", "conv"):
        return " ".join(itertools.takewhile(_MEASURED.match, words))
    if name.startswith("formatnum:"):
        return name.removeprefix("formatnum:").strip()
    kept = (word for word in words if any(map(str.isalnum, word)) and not _NOT_READ.search(word))
    return " ".join(kept)


def _show_words(name: str, words: Sequence[str], named: Mapping[str, str]) -> str | None:
    first = words[0] if words else ""
    if name in read_names("templates", "quotations"):
        return named.get("text") or named.get("quote") or first
    if match := _CODE.match(name):
        return _show_language(name, match["code"] or "", words, named)
    if name in read_names("templates", "ships"):
        return f"{name.upper()} {first}"
    shown = _PROSE.get(name)
    return None if shown is None else shown(words, named)


def _show_language(name: str, code: str, words: Sequence[str], named: Mapping[str, str]) -> str:
    first = words[0] if words else ""
    if name.startswith("ipa"):
        enclosed = name == "ipa" or first[:1] in "[/⟨"
        return first if enclosed else f"/{first}/" if name == "ipaslink" else f"[{first}]"
    if name.startswith("script/"):
        return first
    if name == "langx":
        code, first = first, words[1] if len(words) > 1 else ""
    language = read_data("templates")["languages"].get(code.partition("-")[0], "")
    return f"{language}: {first}" if language and named.get("label") != "none" else first


def _show_date_of(words: Sequence[str], named: Mapping[str, str]) -> str:
    parts = _read_date_parts(words)
    date = _format_date(*parts, "df" in named) if parts else " ".join(words)
    start = "since" if "since" in named else "as of"
    return f"{start if named.get('lc') else start.capitalize()} {date}"


def _show_japanese(words: Sequence[str], named: Mapping[str, str]) -> str:
    inner = ", ".join(word for word in words[1:4] if word)
    return f"{words[0] if words else ''} ({inner})" if inner else "".join(words[:1])


def _show_chinese(words: Sequence[str], named: Mapping[str, str]) -> str:
    labels = {"c": "Chinese", "s": "simplified Chinese", "t": "traditional Chinese", "p": "pinyin", "w": "Wade–Giles",
              "j": "Jyutping", "l": "lit."}  # fmt: skip
    plain = named.get("labels") == "no"
    return "; ".join(f"{'' if plain else label + ': '}{named[key]}" for key, label in labels.items() if named.get(key))


def _show_fraction(words: Sequence[str], named: Mapping[str, str]) -> str:
    match words:
        case [low]:
            return f"1⁄{low}"
        case [high, low]:
            return f"{high}⁄{low}"
        case [whole, high, low, *_]:
            return f"{whole} {high}⁄{low}"
    return ""


def _show_value(words: Sequence[str], named: Mapping[str, str]) -> str:
    number = " ± ".join(words[:2])
    power = f"×10^{named['e']}" if named.get("e") else ""
    return f"{number}{power} {named.get('u') or named.get('ul') or ''}".strip()


def _show_coordinates(words: Sequence[str], named: Mapping[str, str]) -> str:
    if "inline" not in named.get("display", "inline"):
        return ""
    place = [word for word in words if ":" not in word]
    if place and re.search("[NSEW]", "".join(place)):
        signs, shown = iter("°′″"), ""
        for word in place:
            shown += f"{word} " if word in "NSEW" else word + next(signs, "")
            signs = iter("°′″") if word in "NSEW" else signs
        return shown.strip()
    return ", ".join(f"{word}°" for word in place[:2])


def _enclose(before: str, after: str = "", joint: str = "") -> "_Show":
    return lambda words, named: f"{before}{joint.join(word for word in words if word not in _FLAGS)}{after}"


def _take(place: int, before: str = "", after: str = "") -> "_Show":
    return lambda words, named: f"{before}{words[place]}{after}" if len(words) > place else ""


_ACCIDENTALS = {"flat": "♭", "sharp": "♯", "natural": "♮"}
_Show = Callable[[Sequence[str], Mapping[str, str]], str]
_PROSE: dict[str, _Show] = {
    **dict.fromkeys(("as of", "asof"), _show_date_of),
    **dict.fromkeys(("nihongo", "nihongo4", "nihongo core", "nihongo krt"), _show_japanese),
    **dict.fromkeys(("zh", "zh-full", "lang-zh"), _show_chinese),
    **dict.fromkeys(("frac", "sfrac", "fraction"), _show_fraction),
    **dict.fromkeys(("coord", "coords"), _show_coordinates),
    **dict.fromkeys(("chem", "chem2", "linktext"), _enclose("")),
    **dict.fromkeys(("ipac-en", "ipac"), _enclose("/", "/")),
    **dict.fromkeys(("respell", "respelling", "usid respell"), _enclose("", "", "-")),
    **dict.fromkeys(("angbr", "angle bracket", "angbr ipa", "vr", "gph", "grapheme"), _take(0, "⟨", "⟩")),
    **dict.fromkeys(("e", "esp", "10^"), _take(0, "×10^")),
    **dict.fromkeys(("sub", "su"), _take(0)),
    **dict.fromkeys(("reign", "r."), lambda words, named: f"r. {'–'.join(words)}"),
    **dict.fromkeys(("floruit", "fl."), lambda words, named: f"fl. {'–'.join(words)}"),
    **dict.fromkeys(("isbn",), _enclose("ISBN ", "", ", ")),
    **dict.fromkeys(("sclass", "sclass-", "sclass2", "sclass2-"),
                    lambda words, named: f"{words[0]}-class {words[1]}" if len(words) > 1 else "".join(words)),
    **dict.fromkeys(("dash year", "–year"), lambda words, named: f"–{words[-1]}" if words else ""),
    "oldstyledate": lambda words, named: f"{words[0]}, {words[1]}" if len(words) > 1 else "".join(words),
    "born": _take(0, "b. "),
    "died": _take(0, "d. "),
    "sic": lambda words, named: f"{words[0]} [sic]" if words else "[sic]",
    "'s": lambda words, named: "'s",
    "val": _show_value,
    "unichar": _take(0, "U+"),
    **dict.fromkeys(("railgauge", "track gauge", "rail gauge"),
                    lambda words, named: re.sub(r"(?<=\d)(?=[a-z])", " ", words[0]) if words else ""),
    "music": lambda words, named: _ACCIDENTALS.get(words[0], words[0]) if words else "",
    "blanktag": _take(0),
}  # fmt: skip
