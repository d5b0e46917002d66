"""Which templates of an edition are its infoboxes, and which mark its disambiguation pages.

English editions name both (``Infobox ...``), others do not: ``Divisione amministrativa``, ``Infoskreine ...``. There a
first pass over the dump reads the template pages. A template is an infobox by its page: it calls Module:Infobox, shows
a table of such a class, or wraps a template that does. A disambiguation template has the magic word ``__DISAMBIG__`` on
its page, in any language, or is listed by ``MediaWiki:Disambiguationspage``.
"""

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from functools import cache

from pipelines.corpus.data import read_data, read_names, split_names
from pipelines.corpus.dump import FailedPage, RawPage, Site
from pipelines.corpus.wikitext import blank_ignored

TEMPLATE, MESSAGES = 10, 8
"""Namespaces."""
LEAD_CHARACTERS = 20_000

_HEADING = re.compile(r"^==", re.MULTILINE)
_NAME = re.compile(r"\{\{([^{}|<>\[\]#]{1,300}+)(?=\||\}\}|<!--)")
_UNSHOWN = re.compile(r"<!--.*?(?:-->|$)|<noinclude\s*>.*?(?:</noinclude\s*>|$)", re.DOTALL | re.IGNORECASE)
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
class TemplatePage:
    """What the page of a template says of it."""

    shows: str = ""
    """``infobox``, ``other`` (a navbox, notice or hatnote), or empty when the page does not say."""
    wraps: str = ""
    """Normalised name of the template that its text begins with."""
    disambiguation: bool = False


@dataclass(slots=True)
class Survey:
    """What one range of a dump, or several, say of templates."""

    pages: dict[str, TemplatePage] = field(default_factory=dict)
    redirects: dict[str, str] = field(default_factory=dict)
    listed: list[str] = field(default_factory=list)
    """Normalised names of the templates on ``MediaWiki:Disambiguationspage``."""

    def add(self, other: "Survey") -> None:
        """Add what another range holds."""
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
        return cls(**body | {"pages": {name: TemplatePage(**page) for name, page in body["pages"].items()}})


def survey_pages(pages: Iterable[RawPage | FailedPage], site: Site) -> Survey:
    """Read the pages of templates, and the message that lists those of disambiguation pages."""
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
    return survey


def read_template_page(text: str, prefixes: frozenset[str]) -> TemplatePage:
    """Read the wikitext of a template's page."""
    shown = _UNSHOWN.sub("", text)
    found = [(match.start(), kind) for kind, mark in _list_marks().items() if (match := mark.search(shown))]
    first = _NAME.match(shown.replace("<includeonly>", "").lstrip())
    return TemplatePage(
        shows=min(found)[1] if found else "",
        wraps=name_template(first[1], prefixes) if first else "",
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


def choose_boxes(survey: Survey, site: Site) -> Boxes:
    """Decide over the templates of a whole dump which are infoboxes and which mark disambiguation pages."""
    home = {name: _follow(name, survey.redirects) for name in {*survey.redirects, *survey.pages}}
    marking = {_follow(name, survey.redirects) for name in survey.listed}
    marking |= {name for name in survey.pages if _wraps(name, survey, "disambiguation")}
    infoboxes = {name for name in survey.pages if name not in marking and _wraps(name, survey, "infobox")}
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


def _wraps(name: str, survey: Survey, kind: str) -> bool:
    for _ in range(_MOST_STEPS):
        page = survey.pages.get(_follow(name, survey.redirects))
        if page is None:
            return False
        if page.disambiguation if kind == "disambiguation" else page.shows:
            return kind in ("disambiguation", page.shows)
        name = page.wraps
    return False
