"""The first pass over a dump: a worker reads one byte range, and what later steps need of it is left as a part."""

import shutil
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from pipelines.corpus.articles import describe_article
from pipelines.corpus.dump import RawPage, Site, read_range
from pipelines.corpus.graphbuild import ArrayFile
from pipelines.corpus.infobox import Field, Infobox, has_infobox, read_infobox
from pipelines.corpus.links import LinkReader
from pipelines.corpus.manifest import CorpusOptions
from pipelines.corpus.pagestore import PageStoreWriter
from pipelines.corpus.parts import (
    ANCHOR_PARTS,
    ARTICLE_PARTS,
    FACT_PARTS,
    LINKS,
    PASSAGE_PARTS,
    REDIRECT_PARTS,
    PartCounts,
    finish_part,
)
from pipelines.corpus.passages import split_passages
from pipelines.corpus.readable import render_article
from pipelines.corpus.sandbox import ParserChild
from pipelines.corpus.streams import ByteRange
from pipelines.corpus.tables import FAILED, REJECTED, TableWriter
from pipelines.corpus.titles import NO_ARTICLE, TitleRules, hash_article, hash_title
from pipelines.errors import RecordFailed

_BLOCK = 256
_BLOCK_CHARACTERS = 8 << 20
_FLUSHED_BLOCKS = 16
"""Blocks whose links and anchor texts are held at once: a dump of one stream is one range, however large."""
_ROWS_A_CALL = 1 << 16
_TABLES = {
    "articles": ARTICLE_PARTS,
    "redirects": REDIRECT_PARTS,
    "facts": FACT_PARTS,
    "passages": PASSAGE_PARTS,
    "rejected": REJECTED,
    "failed": FAILED,
    "anchors": ANCHOR_PARTS,
}

Row = tuple[object, ...]
Anchor = tuple[int, str]
"""Hash of a title, and the text of a link to it."""


@dataclass(frozen=True, slots=True)
class RangeJob:
    """One byte range to read, and where its part goes."""

    dump: Path
    """The file of the dump that the range is a piece of."""
    byte_range: ByteRange
    site: Site
    folder: Path
    options: CorpusOptions


def scan_range(job: RangeJob) -> PartCounts:
    """Read one byte range of a dump and leave its part; what an interrupted try left is begun anew.

    Raises:
        CorruptInput: the range is damaged or cut short.
    """
    shutil.rmtree(job.folder, ignore_errors=True)
    job.folder.mkdir(parents=True)
    memory = job.options.parse_megabytes << 20
    with ExitStack() as stack:
        writers = {name: stack.enter_context(TableWriter(job.folder, name, schema)) for name, schema in _TABLES.items()}
        store = stack.enter_context(PageStoreWriter(job.folder))
        child = stack.enter_context(
            ParserChild[Infobox | None](read_infobox, timeout=job.options.parse_seconds, memory=memory)
        )
        links = {name: stack.enter_context(ArrayFile(job.folder / f"{name}.npy", kind)) for name, kind in LINKS.items()}
        scanner = _Scanner(TitleRules(job.site), store, child, job.options)
        for number, block in enumerate(_cut_blocks(read_range(job.dump, job.byte_range)), start=1):
            for name, rows in scanner.read_block(block).items():
                writers[name].write_rows(rows)
            if number % _FLUSHED_BLOCKS == 0:
                _flush_links(scanner, links, writers["anchors"])
        _flush_links(scanner, links, writers["anchors"])
        counts = PartCounts(
            rows_in=scanner.rows_in,
            articles=writers["articles"].rows,
            redirects=writers["redirects"].rows,
            rejected=writers["rejected"].rows,
            failed=writers["failed"].rows,
            newest=scanner.newest,
        )
    finish_part(job.folder, counts)
    return counts


def _cut_blocks(pages: Iterable[RawPage]) -> Iterator[list[RawPage]]:
    """Yield pages in blocks of so many, or of so much text."""
    block: list[RawPage] = []
    held = 0
    for page in pages:
        block.append(page)
        held += len(page.text)
        if len(block) == _BLOCK or held >= _BLOCK_CHARACTERS:
            yield block
            block, held = [], 0
    if block:
        yield block


class _Scanner:
    """Sorts the pages of a range into articles, redirects, rejected and failed ones, block by block."""

    def __init__(
        self, rules: TitleRules, store: PageStoreWriter, child: ParserChild[Infobox | None], options: CorpusOptions
    ) -> None:
        self.rows_in = 0
        self.newest = ""
        self.links = LinkReader(rules, keep_anchors=True)
        self.infobox_anchors: set[Anchor] = set()
        self._rules = rules
        self._store = store
        self._child = child
        self._passage_words = options.passage_words
        self._articles = 0
        self._rows: dict[str, list[Row]] = {}

    def read_block(self, block: list[RawPage]) -> dict[str, list[Row]]:
        """Return the rows that a block of pages makes, by table; the parser process is fed in batches."""
        self._rows = {name: [] for name in _TABLES}
        first = self.rows_in
        articles = [(first + index, page) for index, page in enumerate(block) if self._admit(first + index, page)]
        self.rows_in += len(block)
        candidates = [page for _, page in articles if has_infobox(page.text)]
        parsed = self._child.parse_all(page.text for page in candidates)
        outcomes = {id(page): outcome for page, outcome in zip(candidates, parsed, strict=True)}
        for ordinal, page in articles:
            self._add_article(ordinal, page, outcomes.get(id(page)))
        return self._rows

    def _admit(self, ordinal: int, page: RawPage) -> bool:
        """Say whether a page is an article; other pages are put where they belong."""
        if page.namespace != 0:
            detail = f"{page.title}: namespace {page.namespace}"
            self._rows["rejected"].append((f"page:{page.page_id}", "namespace", detail))
            return False
        self.newest = max(self.newest, page.timestamp)
        if page.redirect is None:
            return True
        target = self._rules.resolve(page.redirect)
        number = hash_article(target)
        title = target.title if target is not None and number != NO_ARTICLE else page.redirect
        row = (ordinal, page.page_id, page.title, hash_title(page.title), title, number, page.revision)
        self._rows["redirects"].append(row)
        return False

    def _add_article(self, ordinal: int, page: RawPage, infobox: Infobox | RecordFailed | None) -> None:
        if isinstance(infobox, RecordFailed):
            self._rows["failed"].append((f"page:{page.page_id}", infobox.error, f"{page.title}: {infobox.detail}"))
            return
        article = self._articles
        self._articles += 1
        self._store.append(page.text)
        self.links.add_page(article, page.text)
        self._rows["articles"].append((ordinal, *describe_article(page, infobox)))
        if infobox is not None:
            for parameter in sorted(infobox.fields, key=lambda parameter: parameter.start):
                self._add_values(article, parameter)
        passages = split_passages(render_article(page.text, infobox), self._passage_words)
        self._rows["passages"].extend((article, passage) for passage in passages)

    def _add_values(self, article: int, parameter: Field) -> None:
        """Add a row for each readable value; the others count in ``value_count`` only."""
        for index, value in enumerate(parameter.values):
            number = hash_article(self._rules.resolve(value.link)) if value.link is not None else NO_ARTICLE
            if number != NO_ARTICLE:
                self.infobox_anchors.add((number, value.text))
            if not value.text:
                continue
            row = (
                article,
                parameter.key,
                parameter.start,
                parameter.end,
                index,
                len(parameter.values),
                value.text,
                value.iso,
                value.start,
                value.end,
                value.link_start,
                number,
            )
            self._rows["facts"].append(row)


def _flush_links(scanner: _Scanner, links: Mapping[str, ArrayFile], anchors: TableWriter) -> None:
    """Write the links and anchor texts read since the last time.

    Of an anchor text it is written how many pages use it for a target and whether an infobox does; what is written of
    one pair in several rows is added up later.
    """
    block = scanner.links.take()
    for name, file in links.items():
        file.append(getattr(block, name))
    in_infoboxes, scanner.infobox_anchors = scanner.infobox_anchors, set()
    rows = [
        (number, text, block.anchors.get((number, text), 0), (number, text) in in_infoboxes)
        for number, text in block.anchors.keys() | in_infoboxes
        if any(character.isalpha() for character in text)
    ]
    for start in range(0, len(rows), _ROWS_A_CALL):
        anchors.write_rows(rows[start : start + _ROWS_A_CALL])
