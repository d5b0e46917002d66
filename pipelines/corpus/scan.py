"""The first pass over a dump: each page is read once, and what later steps need of it is kept."""

import hashlib
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from itertools import islice

from pipelines.corpus.dump import RawPage
from pipelines.corpus.infobox import Infobox, has_infobox
from pipelines.corpus.kinds import choose_kind, find_domain, name_infobox_kind, name_lead_kind
from pipelines.corpus.markup import drop_spans, find_braces
from pipelines.corpus.pagestore import PageStoreWriter
from pipelines.corpus.plaintext import lead_paragraph, plain_text
from pipelines.corpus.titles import TitleRules, is_disambiguation_title
from pipelines.corpus.wikitext import find_links
from pipelines.errors import RecordFailed

_BLOCK = 256
_BOLD = re.compile(r"'''(?!')([^'\n][^\n]*?)'''")
_HEADING = re.compile(r"^==", re.MULTILINE)
_LEAD_CHARACTERS = 20_000
_MAX_BOLD = 6
_MAX_BOLD_CHARACTERS = 80
_DISAMBIGUATION = re.compile(
    r"\{\{\s*(?:disambig(?:uation)?(?: page| cleanup)?|dab|hndis|geodis|human name disambiguation|school disambiguation"
    r"|place name disambiguation|numberdis|roadis|letter-number combination disambiguation)\s*(?:\||\}\})",
    re.IGNORECASE,
)

ParseInfoboxes = Callable[[Iterable[str]], Iterator[Infobox | RecordFailed | None]]


@dataclass(frozen=True, slots=True)
class Article:
    """What is kept of an article beside its text and links."""

    page_id: int
    title: str
    revision: int
    timestamp: str
    size: int
    """Bytes of the text in UTF-8."""
    sha256: str
    slot: int
    """Where its text is in the page store."""
    is_disambiguation: bool
    infobox: Infobox | None
    image: str
    """File named by the infobox, spaces for underscores, or empty."""
    kind: str
    lead_kind: str
    domain: str
    bold: tuple[str, ...]
    """Names set in bold in the lead."""


@dataclass(slots=True)
class Scan:
    """Everything the first pass found; links name their source by its place in ``articles``."""

    articles: list[Article] = field(default_factory=list)
    redirects: dict[str, tuple[str, RawPage]] = field(default_factory=dict)
    """Target title (empty outside the article namespace) and the page without its text, by title."""
    target_numbers: dict[str, int] = field(default_factory=dict)
    """Titles that links name, numbered in order of appearance."""
    link_sources: list[int] = field(default_factory=list)
    link_targets: list[int] = field(default_factory=list)
    link_positions: list[int] = field(default_factory=list)
    anchors: dict[tuple[int, str], int] = field(default_factory=dict)
    """Number of articles that use an anchor text for a target, by (target number, anchor text)."""
    infobox_anchors: set[tuple[int, str]] = field(default_factory=set)
    """Those of the anchors that are a value of an infobox."""
    rejected: list[tuple[str, str, str]] = field(default_factory=list)
    failed: list[tuple[str, str, str]] = field(default_factory=list)
    rows_in: int = 0
    newest: str = ""
    """Latest revision timestamp."""


class Scanner:
    """Sorts the pages of a dump into articles, redirects, rejected and failed ones."""

    def __init__(self, rules: TitleRules, store: PageStoreWriter, parse_infoboxes: ParseInfoboxes) -> None:
        self._rules = rules
        self._store = store
        self._parse_infoboxes = parse_infoboxes
        self._titles: set[str] = set()
        self._page_ids: set[int] = set()
        self.scan = Scan()

    def read(self, pages: Iterable[RawPage], progress: Callable[[int], None]) -> Scan:
        """Read all pages, in blocks so that the parser process is fed in batches."""
        source = iter(pages)
        while block := list(islice(source, _BLOCK)):
            articles = [page for page in block if self._admit(page)]
            candidates = [page for page in articles if has_infobox(page.text)]
            outcomes = zip(candidates, self._parse_infoboxes(page.text for page in candidates), strict=True)
            infoboxes = {page.page_id: outcome for page, outcome in outcomes}
            for page in articles:
                self._add_article(page, infoboxes.get(page.page_id))
            progress(self.scan.rows_in)
        return self.scan

    def _admit(self, page: RawPage) -> bool:
        """Count a page and say whether it is an article; other pages are put where they belong."""
        scan = self.scan
        scan.rows_in += 1
        record_id = f"page:{page.page_id}"
        if page.namespace != 0:
            scan.rejected.append((record_id, "namespace", f"{page.title}: namespace {page.namespace}"))
            return False
        if page.title in self._titles or page.page_id in self._page_ids:
            scan.failed.append((record_id, "duplicate-page", f"{page.title}: title or page id seen before"))
            return False
        self._titles.add(page.title)
        self._page_ids.add(page.page_id)
        scan.newest = max(scan.newest, page.timestamp)
        if page.redirect is None:
            return True
        target = self._rules.resolve(page.redirect)
        is_article = target is not None and target.namespace == 0
        bare = RawPage(page.page_id, 0, page.title, page.redirect, page.revision, page.timestamp, "")
        scan.redirects[page.title] = (target.title if target and is_article else "", bare)
        return False

    def _add_article(self, page: RawPage, infobox: Infobox | RecordFailed | None) -> None:
        if isinstance(infobox, RecordFailed):
            self.scan.failed.append((f"page:{page.page_id}", infobox.error, f"{page.title}: {infobox.detail}"))
            return
        self._add_links(page.text)
        if infobox is not None:
            self._add_values(infobox)
        self.scan.articles.append(_describe(page, infobox, self._store.append(page.text)))

    def _add_links(self, text: str) -> None:
        scan = self.scan
        source = len(scan.articles)
        anchors: dict[tuple[int, str], None] = {}
        for link in find_links(text):
            target = self._rules.resolve(link.target)
            if target is None or target.namespace != 0:
                continue
            number = scan.target_numbers.setdefault(target.title, len(scan.target_numbers))
            scan.link_sources.append(source)
            scan.link_targets.append(number)
            scan.link_positions.append(link.start)
            anchors[number, link.anchor_text] = None
        for anchor in anchors:
            scan.anchors[anchor] = scan.anchors.get(anchor, 0) + 1

    def _add_values(self, infobox: Infobox) -> None:
        for value in (value for parameter in infobox.fields for value in parameter.values):
            target = self._rules.resolve(value.link) if value.link is not None else None
            if target is not None and target.title in self.scan.target_numbers:
                self.scan.infobox_anchors.add((self.scan.target_numbers[target.title], value.text))


def _describe(page: RawPage, infobox: Infobox | None, slot: int) -> Article:
    source = page.text.encode("utf-8", "surrogatepass")
    lead_kind = name_lead_kind(lead_paragraph(page.text))
    kind = choose_kind(name_infobox_kind(infobox.template) if infobox else "", lead_kind)
    return Article(
        page_id=page.page_id,
        title=page.title,
        revision=page.revision,
        timestamp=page.timestamp,
        size=len(source),
        sha256=hashlib.sha256(source).hexdigest(),
        slot=slot,
        is_disambiguation=is_disambiguation_title(page.title) or _DISAMBIGUATION.search(page.text) is not None,
        infobox=infobox,
        image=infobox.find_image(page.text) if infobox else "",
        kind=kind,
        lead_kind=lead_kind,
        domain=find_domain(kind, lead_kind),
        bold=tuple(find_bold_names(page.text)),
    )


def find_bold_names(text: str) -> list[str]:
    """Return the names that the lead's first paragraph with bold text sets in bold, as plain text, at most six."""
    if "'''" not in text:
        return []
    heading = _HEADING.search(text, 0, _LEAD_CHARACTERS)
    lead = text[: heading.start() if heading else _LEAD_CHARACTERS]
    running = drop_spans(lead, find_braces(lead))
    for line in running.split("\n"):
        if "'''" in line and not line.startswith((":", "*", "[[File:", "[[Image:")):
            names = [" ".join(plain_text(match.group(1)).split()) for match in _BOLD.finditer(line)]
            return [name for name in names if 1 < len(name) <= _MAX_BOLD_CHARACTERS][:_MAX_BOLD]
    return []
