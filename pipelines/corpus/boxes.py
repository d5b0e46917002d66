"""Which templates of an edition are its infoboxes, and which mark its disambiguation pages.

English editions name both (``Infobox ...``), others do not: ``Divisione amministrativa``, ``Infoskreine ...``. There a
first pass over the dump counts how every template of a lead is used and reads the template pages. A template is an
infobox by its page (it calls Module:Infobox, shows a table of such a class, or wraps a template that does; its
TemplateData has a parameter for a file), else by its shape: it stands alone before the running text of many articles,
with many named values under the same names. Navboxes, notices and hatnotes have few names or say on their pages what
they are; references, succession boxes and portals stand elsewhere. A disambiguation template has the magic word
``__DISAMBIG__`` on its page, in any language, or is listed by ``MediaWiki:Disambiguationspage``.

The counts of a range add up, so that neither the order of articles nor how the dump is cut decides anything.
"""

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from functools import cache

from pipelines.corpus.data import read_data, read_names, split_names
from pipelines.corpus.dump import FailedPage, RawPage, Site
from pipelines.corpus.wikitext import blank_ignored, blank_spans, find_arguments, find_braces, find_references, is_block

TEMPLATE, MESSAGES = 10, 8
"""Namespaces."""
LEAD_CHARACTERS = 20_000
LEAST_USES = 3
"""Articles that must use a template before its shape says what it is."""
LEAST_OPENING = 0.6
"""Share of its uses that stand alone, before the running text."""
MOST_POSITIONAL = 0.3
"""Share of its uses with values that have no name: those of hatnotes, quotations and coordinates."""
COMMON = 0.2
"""Share of its uses in which a name stands that is one of the template's own."""
LEAST_COMMON = 4
"""Names of its own, the numbers at their ends left out."""
LEAST_OVERLAP = 0.5
"""Share of all names in its uses that are its own."""
LEAST_TOLD = 2.5
"""Mean number of values that say something: no file, size or position on the page."""
LEAST_PICTURED, LEAST_TOLD_PICTURED = 0.2, 1.5
"""Share of its uses with a file from which fewer values are enough, and how many."""
MOST_GALLERIES = 0.5
"""Share of its uses with two files under one name, the number at its end left out: those of galleries."""
MOST_NAMES, LONGEST_NAME = 200, 60
"""Named values of one use that are counted, and characters of their names: a dump is hostile."""

_HEADING = re.compile(r"^==", re.MULTILINE)
_NAME = re.compile(r"\{\{([^{}|<>\[\]#]{1,300}+)(?=\||\}\}|<!--)")
_NOT_RUNNING = re.compile(r"\[\[[^\[\]|]*:(?:[^\[\]]|\[\[[^\[\]]*\]\])*\]\]|<[^<>]*>|__\w+__|^[:*#].*$", re.MULTILINE)
_FILE = re.compile(r"[^\[\]|{}<>=\n]{1,240}\.(?:jpe?g|png|svg|gif|tiff?|webp)\b", re.IGNORECASE)
_LAYOUT = re.compile(r"(?:\d+\s*(?:px|em|%)|x?\d+x?\d*px|left|right|center|none|yes|no|true|false)", re.IGNORECASE)
_DIGITS = re.compile(r"[\W_]*\d+$")
_UNSHOWN = re.compile(r"<!--.*?(?:-->|$)|<noinclude\s*>.*?(?:</noinclude\s*>|$)", re.DOTALL | re.IGNORECASE)
_DATA_OPEN, _DATA_CLOSE = (re.compile(rf"<{slash}templatedata\s{{0,9}}>", re.IGNORECASE) for slash in ("", "/"))
_LINK = re.compile(r"\[\[\s*:?([^\[\]|#]+)")


@dataclass(frozen=True, slots=True)
class Boxes:
    """The templates of an edition that the scan has to know by name; empty for an edition with English names."""

    infoboxes: Mapping[str, str] = field(default_factory=dict)
    """Normalised name, redirects included, to the name of the template itself."""
    disambiguations: frozenset[str] = frozenset()
    """Normalised names, redirects included."""
    prefixes: frozenset[str] = frozenset()
    """Names of the namespace of templates, in lower case."""

    def find_infobox(self, visible: str) -> re.Match[str] | None:
        """Return the opening of the first template of a lead that is an infobox by name, group 1 its name."""
        if not self.infoboxes:
            return None
        openings = _NAME.finditer(visible, 0, _end_lead(visible))
        return next((match for match in openings if self.name(match[1]) in self.infoboxes), None)

    def name(self, raw: str) -> str:
        """Normalise the name of a template as it is called."""
        return name_template(raw, self.prefixes)

    def marks_disambiguation(self, text: str) -> bool:
        """Say whether an article's text holds a disambiguation template or the magic word itself."""
        if find_magic_word(text):
            return True
        if not self.disambiguations:
            return False
        return any(self.name(match[1]) in self.disambiguations for match in _NAME.finditer(blank_ignored(text)))


NO_BOXES = Boxes()


def needs_survey(site: Site) -> bool:
    """Say whether the names of an edition's infoboxes must be found out: in English they are known."""
    return site.language != "en"


def list_prefixes(site: Site) -> frozenset[str]:
    """Return the names of the namespace of templates, in lower case."""
    aliases = read_data("wikis")["namespace_aliases"].get(site.language, {})
    local = {name.lower() for name, number in aliases.items() if number == TEMPLATE}
    return frozenset({"template", *local, *(name.lower() for number, name in site.namespaces if number == TEMPLATE)})


def name_template(raw: str, prefixes: frozenset[str]) -> str:
    """Normalise a template's name: no namespace, single spaces, a capital first."""
    name = " ".join(raw.replace("_", " ").split()).removeprefix(":").strip()
    prefix, colon, rest = name.partition(":")
    name = rest.strip() if colon and prefix.strip().lower() in prefixes else name
    return name[:1].upper() + name[1:]


def find_magic_word(text: str) -> bool:
    """Say whether a text holds the magic word of disambiguation pages, of any edition.

    Source: Extension:Disambiguator, ``Disambiguator.i18n.magic.php``.
    """
    return "__" in text and _compile_magic_word().search(text) is not None


@cache
def _compile_magic_word() -> re.Pattern[str]:
    return re.compile("|".join(map(re.escape, split_names(read_data("wikis")["disambiguations"]))))


def _end_lead(text: str) -> int:
    heading = _HEADING.search(text, 0, LEAD_CHARACTERS)
    return heading.start() if heading else min(len(text), LEAD_CHARACTERS)


@dataclass(slots=True)
class Usage:
    """How the leads of articles use one template, added up."""

    articles: int = 0
    opening: int = 0
    """Of these, those where it stands alone on its lines, before the running text."""
    positional: int = 0
    """With a value that has no name."""
    pictured: int = 0
    """With a file as a value."""
    galleries: int = 0
    """With two files under names that differ in a number."""
    told: int = 0
    """Values that say something, in all."""
    keys: dict[str, int] = field(default_factory=dict)
    """Uses of each parameter, empty ones included, the number at its end left out."""

    def add(self, other: "Usage") -> None:
        """Add the uses of another name of the template, or of another range."""
        for name in ("articles", "opening", "positional", "pictured", "galleries", "told"):
            setattr(self, name, getattr(self, name) + getattr(other, name))
        for key, count in other.keys.items():
            self.keys[key] = self.keys.get(key, 0) + count

    def looks_like_infobox(self) -> bool:
        """Say whether the shape is an infobox's."""
        uses = self.articles
        own = [count for count in self.keys.values() if count >= COMMON * uses]
        pictured = self.pictured >= LEAST_PICTURED * uses
        return (
            uses >= LEAST_USES
            and self.opening >= LEAST_OPENING * uses
            and self.positional <= MOST_POSITIONAL * uses
            and self.galleries < MOST_GALLERIES * uses
            and len(own) >= LEAST_COMMON
            and sum(own) >= LEAST_OVERLAP * sum(self.keys.values())
            and self.told >= (LEAST_TOLD_PICTURED if pictured else LEAST_TOLD) * uses
        )


@dataclass(slots=True)
class TemplatePage:
    """What the page of a template says of it."""

    shows: str = ""
    """``infobox``, ``other`` (a navbox, notice or hatnote), or empty when the page does not say."""
    wraps: str = ""
    """Normalised name of the template that its text begins with."""
    pictured: bool = False
    """Whether its TemplateData has a parameter for a file, and three others."""
    disambiguation: bool = False


@dataclass(slots=True)
class Survey:
    """The counts of one range of a dump, or of several."""

    usages: dict[str, Usage] = field(default_factory=dict)
    pages: dict[str, TemplatePage] = field(default_factory=dict)
    redirects: dict[str, str] = field(default_factory=dict)
    listed: list[str] = field(default_factory=list)
    """Normalised names of the templates on ``MediaWiki:Disambiguationspage``."""

    def add(self, other: "Survey") -> None:
        """Add what another range holds."""
        for name, usage in other.usages.items():
            self.usages.setdefault(name, Usage()).add(usage)
        self.pages |= other.pages
        self.redirects |= other.redirects
        self.listed += other.listed

    def dump(self) -> str:
        """Return it as JSON."""
        return json.dumps(asdict(self), ensure_ascii=False)

    @classmethod
    def load(cls, source: str) -> "Survey":
        """Read what :meth:`dump` returned."""
        body = json.loads(source)
        usages = {name: Usage(**use) for name, use in body.pop("usages").items()}
        pages = {name: TemplatePage(**page) for name, page in body.pop("pages").items()}
        return cls(usages, pages, **body)


def survey_pages(pages: Iterable[RawPage | FailedPage], site: Site) -> Survey:
    """Count the templates of the leads of articles, and read the pages of templates."""
    survey, prefixes = Survey(), list_prefixes(site)
    for page in pages:
        if isinstance(page, FailedPage):
            continue
        if page.namespace == TEMPLATE:
            name = name_template(page.title, prefixes)
            if page.redirect is not None:
                survey.redirects[name] = name_template(page.redirect, prefixes)
            else:
                survey.pages[name] = read_template_page(page.text, prefixes)
        elif page.namespace == MESSAGES and page.title.partition(":")[2].lower() == "disambiguationspage":
            survey.listed += [name_template(target, prefixes) for target in _LINK.findall(page.text)]
        elif page.namespace == 0 and page.redirect is None:
            for name, usage in list_usages(page.text, prefixes):
                survey.usages.setdefault(name, Usage()).add(usage)
    return survey


def list_usages(text: str, prefixes: frozenset[str]) -> Iterator[tuple[str, Usage]]:
    """Yield the outermost templates of an article's lead, each once, and how they are used."""
    if "{{" not in text:
        return
    lead = text[: _end_lead(text)]
    visible = blank_ignored(lead)
    visible = blank_spans(visible, find_references(visible)) if "<" in visible else visible
    seen, begun, position = set(), False, 0
    for start, end in find_braces(visible):
        begun = begun or any(map(str.isalpha, _NOT_RUNNING.sub("", visible[position:start])))
        position = end
        head = _NAME.match(visible, start)
        name = name_template(head[1], prefixes) if head else ""
        if not name or name in seen or ":" in name:
            continue
        seen.add(name)
        yield name, _measure(visible[start:end], not begun and is_block(visible, start, end))


def _measure(template: str, opening: bool) -> Usage:
    keys: dict[str, int] = {}
    files: Counter[str] = Counter()
    told, positional = 0, False
    for start, end in find_arguments(template)[:MOST_NAMES]:
        raw = template[start:end]
        key, named, value = raw.partition("=")
        key, value = " ".join(key.split())[:LONGEST_NAME], value.strip()
        if not named or "[" in key or "{" in key:
            positional = positional or bool(raw.strip())
            continue
        if key.isdigit():
            positional = positional or bool(value)
            continue
        base = _DIGITS.sub("", key)
        keys[base] = 1
        if _FILE.match(value.removeprefix("[[")):
            files[base] += 1
        elif value and not _LAYOUT.fullmatch(value):
            told += 1
    return Usage(1, opening, positional, bool(files), max(files.values(), default=0) > 1, told, keys)


def read_template_page(text: str, prefixes: frozenset[str]) -> TemplatePage:
    """Read the wikitext of a template's page."""
    shown = _UNSHOWN.sub("", text)
    found = [(match.start(), kind) for kind, mark in _list_marks().items() if (match := mark.search(shown))]
    first = _NAME.match(shown.replace("<includeonly>", "").lstrip())
    return TemplatePage(
        shows=min(found)[1] if found else "",
        wraps=name_template(first[1], prefixes) if first else "",
        pictured=_is_pictured(text),
        disambiguation=find_magic_word(shown),
    )


@cache
def _list_marks() -> dict[str, re.Pattern[str]]:
    marks = {}
    for kind in ("infobox", "other"):
        words = "|".join(sorted(map(re.escape, read_names("wikis", f"{kind}_classes"))))
        source = rf"#invoke:\s*(?:{words})|class\s*=\s*[\"']?[^\"'>\n|=]{{0,80}}?\b(?:{words})|\{{\{{\s*(?:{words})"
        marks[kind] = re.compile(source, re.IGNORECASE)
    return marks


def _is_pictured(text: str) -> bool:
    opening = _DATA_OPEN.search(text)
    closing = _DATA_CLOSE.search(text, opening.end()) if opening else None
    if opening is None or closing is None:
        return False
    try:
        parameters = json.loads(text[opening.end() : closing.start()])["params"]
        types = [parameter.get("type") for parameter in parameters.values()]
    except (ValueError, RecursionError, AttributeError, KeyError, TypeError):  # what people wrote, and no JSON
        return False
    return len(types) > LEAST_COMMON - 1 and "wiki-file-name" in types


def choose_boxes(survey: Survey, site: Site) -> Boxes:
    """Decide over the counts of a whole dump which templates are infoboxes and which mark disambiguation pages."""
    home = {name: _follow(name, survey.redirects) for name in {*survey.usages, *survey.redirects, *survey.pages}}
    usages: dict[str, Usage] = {}
    for name, usage in survey.usages.items():
        usages.setdefault(home[name], Usage()).add(usage)
    marking = {_follow(name, survey.redirects) for name in survey.listed}
    marking |= {name for name in survey.pages if _wraps(name, survey, "disambiguation")}
    infoboxes = {name for name, usage in usages.items() if name not in marking and _is_infobox(name, usage, survey)}
    return Boxes(
        infoboxes={name: target for name, target in sorted(home.items()) if target in infoboxes},
        disambiguations=frozenset(name for name, target in home.items() if target in marking) | marking,
        prefixes=list_prefixes(site),
    )


_MOST_STEPS = 5
"""Redirects, or templates that wrap templates, which are followed."""


def _follow(name: str, redirects: Mapping[str, str]) -> str:
    for _ in range(_MOST_STEPS):
        if name not in redirects:
            break
        name = redirects[name]
    return name


def _is_infobox(name: str, usage: Usage, survey: Survey) -> bool:
    if not usage.keys or usage.opening < LEAST_OPENING * usage.articles:
        return False
    if _wraps(name, survey, "infobox"):
        return True
    page = survey.pages.get(name, TemplatePage())
    if page.shows == "other" or _wraps(name, survey, "other"):
        return False
    return page.pictured or usage.looks_like_infobox()


def _wraps(name: str, survey: Survey, kind: str) -> bool:
    for _ in range(_MOST_STEPS):
        page = survey.pages.get(_follow(name, survey.redirects))
        if page is None:
            return False
        if page.disambiguation if kind == "disambiguation" else page.shows:
            return kind in ("disambiguation", page.shows)
        name = page.wraps
    return False
