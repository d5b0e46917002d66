"""The first pass over a dump: worker processes read byte ranges, and each range leaves a part for the later steps.

A part is a folder of small tables in the order of the dump; it is complete when its ``part.json`` exists, which is
written last. Complete parts are not read again. Titles are kept as 64-bit hashes, which are resolved once all ranges
are read. The search text of an article is its infobox as lines, then its text without markup.
"""

import hashlib
import json
import re
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import ExitStack
from dataclasses import asdict, dataclass, replace
from functools import partial
from itertools import groupby
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from pipelines.corpus.boxes import NO_BOXES, Boxes, Survey, choose_boxes, survey_pages
from pipelines.corpus.dump import (
    NO_ARTICLE,
    ByteRange,
    FailedPage,
    RawPage,
    Site,
    TitleRules,
    hash_article,
    hash_title,
    is_disambiguation_title,
    is_list_title,
    read_range,
)
from pipelines.corpus.infobox import Field, Infobox, has_infobox, read_infobox
from pipelines.corpus.kinds import (
    choose_kind,
    find_domain,
    is_known,
    name_category_kind,
    name_infobox_kind,
    name_lead_kind,
    name_title_kind,
)
from pipelines.corpus.linkgraph import ArrayFile
from pipelines.corpus.manifest import PARSE_MEGABYTES, PARSE_SECONDS
from pipelines.corpus.tables import FACTS, FAILED, PAGES, REDIRECTS, REJECTED, TableWriter, map_array
from pipelines.corpus.texts import PageStoreWriter, split_passages
from pipelines.corpus.wikitext import LinkBlock, LinkReader, blank_spans, find_braces, list_lead, plain_text
from pipelines.errors import RecordFailed, Unavailable
from pipelines.files import sync_files, write_text
from pipelines.pools import open_pool
from pipelines.services.clients.sandbox import ParserPool
from pipelines.stopping import holding_signals


def _take(table: pa.Schema, *names: str) -> list[pa.Field]:
    return [table.field(name) for name in names]


ARTICLE_PARTS = pa.schema(
    [
        ("ordinal", pa.int64()),
        *_take(PAGES, "page_id", "title"),
        ("title_hash", pa.uint64()),
        *_take(PAGES, "revision", "timestamp", "bytes", "text_sha256", "is_list", "is_disambiguation", "infobox"),
        *_take(PAGES, "type", "lead_type", "domain", "image"),
        ("bold", pa.list_(pa.string())),
    ]
)
REDIRECT_PARTS = pa.schema(
    [
        ("ordinal", pa.int64()),
        *_take(REDIRECTS, "page_id", "title"),
        ("title_hash", pa.uint64()),
        ("target", pa.string()),
        ("target_hash", pa.uint64()),
        *_take(REDIRECTS, "revision"),
    ]
)
FACT_PARTS = pa.schema(
    [
        ("article", pa.uint32()),
        *(field for field in FACTS if field.name not in ("node", "target")),
        ("target_hash", pa.uint64()),
    ]
)
ANCHOR_PARTS = pa.schema(
    [("target_hash", pa.uint64()), ("anchor", pa.string()), ("pages", pa.uint32()), ("in_infobox", pa.bool_())]
)
PASSAGE_PARTS = pa.schema([("article", pa.uint32()), ("text", pa.string())])

LINKS = {"sources": np.uint32, "target_hashes": np.uint64, "positions": np.uint32}
"""The arrays of a part's links, as in ``LinkBlock``, and their types."""
_DONE = "part.json"


@dataclass(frozen=True, slots=True)
class PartCounts:
    """Numbers of pages in a part."""

    rows_in: int
    articles: int
    redirects: int
    rejected: int
    failed: int
    newest: str
    """Latest revision timestamp."""


@dataclass(frozen=True, slots=True)
class Part:
    """A complete part, opened for reading."""

    folder: Path
    counts: PartCounts

    def read_columns(self, table: str, columns: Sequence[str]) -> pa.Table:
        """Return columns of one of its tables."""
        return pq.read_table(self.folder / f"{table}.parquet", columns=list(columns))

    def read_batches(self, table: str) -> Iterator[pa.Table]:
        """Yield one of its tables in pieces."""
        with pq.ParquetFile(self.folder / f"{table}.parquet") as source:
            for batch in source.iter_batches():
                yield pa.Table.from_batches([batch])

    def read_links(self, most: int = 1 << 22) -> Iterator[LinkBlock]:
        """Yield its links in blocks of about ``most`` that end where an article's links end.

        Anchor texts are in the table ``anchors``.
        """
        sources, hashes, positions = (map_array(self.folder / f"{name}.npy") for name in LINKS)
        start = 0
        while start < len(sources):
            end = min(start + most, len(sources))
            end = int(np.searchsorted(sources, sources[end - 1], side="right"))
            yield LinkBlock(sources[start:end], hashes[start:end], positions[start:end], {})
            start = end


def open_part(folder: Path) -> Part | None:
    """Open a part, or return None when it is not complete."""
    done = folder / _DONE
    return Part(folder, PartCounts(**json.loads(done.read_text()))) if done.is_file() else None


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


def describe_article(page: RawPage, infobox: Infobox | None, boxes: Boxes | None = None) -> tuple[object, ...]:
    """Return an article's row of ``ARTICLE_PARTS`` after its ordinal."""
    source = page.text.encode("utf-8", "surrogatepass")
    infobox_kind = name_infobox_kind(infobox.template) if infobox else ""
    if boxes is None:
        lead_kind = name_lead_kind("\n".join(list_lead(page.text)), page.title)
        kind = choose_kind(infobox_kind, lead_kind, name_title_kind(page.title)) or name_category_kind(page.text)
        image = infobox.find_image(page.text) if infobox else ""
    else:
        lead_kind, kind = "", infobox_kind if is_known(infobox_kind) else ""
        image = infobox.find_image(page.text) or infobox.find_file(page.text) if infobox else ""
    is_disambiguation = is_disambiguation_title(page.title) or _DISAMBIGUATION.search(page.text) is not None
    return (
        page.page_id,
        page.title,
        hash_title(page.title),
        page.revision,
        page.timestamp,
        len(source),
        hashlib.sha256(source).hexdigest(),
        is_list_title(page.title),
        is_disambiguation or (boxes or NO_BOXES).marks_disambiguation(page.text),
        infobox.template if infobox else "",
        kind,
        lead_kind,
        find_domain(kind, lead_kind),
        image,
        find_bold_names(page.text),
    )


def find_bold_names(text: str) -> list[str]:
    """Return the names that the lead's first paragraph with bold text sets in bold, as plain text, at most six."""
    if "'''" not in text:
        return []
    heading = _HEADING.search(text, 0, _LEAD_CHARACTERS)
    lead = text[: heading.start() if heading else _LEAD_CHARACTERS]
    running = blank_spans(lead, find_braces(lead), "")
    for line in running.split("\n"):
        if "'''" in line and not line.startswith((":", "*", "[[File:", "[[Image:")):
            names = [" ".join(plain_text(match.group(1)).split()) for match in _BOLD.finditer(line)]
            return [name for name in names if 1 < len(name) <= _MAX_BOLD_CHARACTERS][:_MAX_BOLD]
    return []


_SKIPPED_KEYS = tuple("image caption alt coordinates map pushpin website signature logo footnotes".split())


def render_article(text: str, infobox: Infobox | None) -> str:
    """Return the plain text of an article after its infobox: a line ``Key: value; value.`` for each field in words."""
    lines = []
    for shown in infobox.fields if infobox else ():
        values = "; ".join(value for value, _ in groupby(value.text for value in shown.values) if value)
        if values and not shown.key.lower().startswith(_SKIPPED_KEYS):
            lines.append(f"{shown.key.replace('_', ' ').capitalize()}: {values}.")
    return "\n".join([*lines, plain_text(text)])


_BLOCK = 256
_BLOCK_CHARACTERS = 8 << 20
_FLUSHED_BLOCKS = 16
"""Blocks whose links and anchor texts are held at once: a dump of one stream is one range, however large."""
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


@dataclass(frozen=True, slots=True)
class RangeJob:
    """One byte range to read, and where its part goes."""

    dump: Path
    """The file of the dump that the range is a piece of."""
    byte_range: ByteRange
    site: Site
    folder: Path
    boxes: Boxes | None = None
    """Of an edition in another language than English, once its templates were surveyed."""


def scan_range(job: RangeJob) -> RangeJob:
    """Read one byte range of a dump and write its part; an incomplete part is replaced."""
    shutil.rmtree(job.folder, ignore_errors=True)
    job.folder.mkdir(parents=True)
    with ExitStack() as stack:
        writers = {name: stack.enter_context(TableWriter(job.folder, name, schema)) for name, schema in _TABLES.items()}
        store = stack.enter_context(PageStoreWriter(job.folder))
        child = stack.enter_context(
            ParserPool[Infobox | None](
                partial(read_infobox, boxes=job.boxes or NO_BOXES), seconds=PARSE_SECONDS, memory=PARSE_MEGABYTES << 20
            )
        )
        links = {name: stack.enter_context(ArrayFile(job.folder / f"{name}.npy", kind)) for name, kind in LINKS.items()}
        scanner = _Scanner(TitleRules(job.site), store, child, job.boxes)
        for number, block in enumerate(_cut_blocks(read_range(job.dump, job.byte_range)), start=1):
            for name, rows in scanner.read_block(block).items():
                writers[name].write_rows(rows)
            if number % _FLUSHED_BLOCKS == 0:
                scanner.flush_links(links, writers["anchors"])
        scanner.flush_links(links, writers["anchors"])
        counts = PartCounts(
            rows_in=scanner.rows_in,
            articles=writers["articles"].rows,
            redirects=writers["redirects"].rows,
            rejected=writers["rejected"].rows,
            failed=writers["failed"].rows,
            newest=scanner.newest,
        )
    sync_files(job.folder)
    write_text(job.folder / _DONE, json.dumps(asdict(counts)))
    return job


def _cut_blocks(pages: Iterable[RawPage | FailedPage]) -> Iterator[list[RawPage | FailedPage]]:
    block: list[RawPage | FailedPage] = []
    held = 0
    for page in pages:
        block.append(page)
        held += len(page.text) if isinstance(page, RawPage) else 0
        if len(block) == _BLOCK or held >= _BLOCK_CHARACTERS:
            yield block
            block, held = [], 0
    if block:
        yield block


class _Scanner:
    def __init__(
        self,
        rules: TitleRules,
        store: PageStoreWriter,
        child: ParserPool[Infobox | None],
        boxes: Boxes | None = None,
    ) -> None:
        self.rows_in = 0
        self.newest = ""
        self._links = LinkReader(rules)
        self._infobox_anchors: set[tuple[int, str]] = set()
        self._rules = rules
        self._store = store
        self._child = child
        self._boxes = boxes
        self._articles = 0
        self._rows: dict[str, list[Row]] = {}

    def read_block(self, block: list[RawPage | FailedPage]) -> dict[str, list[Row]]:
        self._rows = {name: [] for name in _TABLES}
        first = self.rows_in
        left = [(first + index, page) for index, page in enumerate(block) if self._admit(first + index, page)]
        self.rows_in += len(block)
        boxes = self._boxes or NO_BOXES
        candidates = [page for _, page in left if isinstance(page, RawPage) and has_infobox(page.text, boxes)]
        parsed = self._child.parse_all(page.text for page in candidates)
        outcomes = {id(page): outcome for page, outcome in zip(candidates, parsed, strict=True)}
        for ordinal, page in left:
            if isinstance(page, FailedPage):  # here, so that failed rows stand in the order of the dump
                self._rows["failed"].append((page.record_id, page.error, page.detail))
            else:
                self._add_article(ordinal, page, outcomes.get(id(page)))
        return self._rows

    def _admit(self, ordinal: int, page: RawPage | FailedPage) -> bool:
        if isinstance(page, FailedPage):
            return True
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
        self._links.add_page(article, page.text)
        self._rows["articles"].append((ordinal, *describe_article(page, infobox, self._boxes)))
        if infobox is not None:
            for parameter in sorted(infobox.fields, key=lambda parameter: parameter.start):
                self._add_values(article, parameter)
        passages = split_passages(render_article(page.text, infobox))
        self._rows["passages"].extend((article, passage) for passage in passages)

    def _add_values(self, article: int, parameter: Field) -> None:
        for index, value in enumerate(parameter.values):
            number = hash_article(self._rules.resolve(value.link)) if value.link is not None else NO_ARTICLE
            if number != NO_ARTICLE:
                self._infobox_anchors.add((number, value.text))
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

    def flush_links(self, files: Mapping[str, ArrayFile], anchors: TableWriter) -> None:
        block = self._links.take()
        for name, file in files.items():
            file.append(getattr(block, name))
        boxed, self._infobox_anchors = self._infobox_anchors, set()
        anchors.write_rows(
            [
                (number, text, block.anchors.get((number, text), 0), (number, text) in boxed)
                for number, text in block.anchors.keys() | boxed
                if any(character.isalpha() for character in text)
            ]
        )


def survey_range(job: RangeJob) -> RangeJob:
    """Count the templates of one byte range and write the counts beside its part."""
    survey = survey_pages(read_range(job.dump, job.byte_range), job.site)
    job.folder.parent.mkdir(parents=True, exist_ok=True)
    write_text(_place_survey(job), survey.dump())
    return job


def _place_survey(job: RangeJob) -> Path:
    return job.folder.with_suffix(".survey.json")


def survey_ranges(jobs: Sequence[RangeJob], workers: int, report: Callable[[int, int], None]) -> list[RangeJob]:
    """Return the jobs with what their edition calls its infoboxes, which all of the dump must be read for."""
    _work_off(jobs, workers, report, survey_range, lambda job: _place_survey(job).is_file())
    whole = Survey()
    for job in jobs:
        whole.add(Survey.load(_place_survey(job).read_text()))
    boxes = choose_boxes(whole, jobs[0].site)
    return [replace(job, boxes=boxes) for job in jobs]


def scan_ranges(jobs: Sequence[RangeJob], workers: int, report: Callable[[int, int], None]) -> list[Part]:
    """Read every range whose part is missing, and return all parts in order."""
    _work_off(jobs, workers, report, scan_range, lambda job: open_part(job.folder) is not None)
    parts = []
    for job in jobs:
        part = open_part(job.folder)
        if part is None:
            raise Unavailable(f"{job.folder} was removed during the build; run again, one build at a time")
        parts.append(part)
    return parts


def _work_off(
    jobs: Sequence[RangeJob],
    workers: int,
    report: Callable[[int, int], None],
    work: Callable[[RangeJob], RangeJob],
    is_done: Callable[[RangeJob], bool],
) -> None:
    total = sum(job.byte_range.size for job in jobs)
    pending = [job for job in jobs if not is_done(job)]
    done = total - sum(job.byte_range.size for job in pending)
    report(done, total)
    workers = min(workers, len(pending))
    for job in map(work, pending) if workers <= 1 else _work_in_pool(work, pending, workers):
        done += job.byte_range.size
        report(done, total)


def _work_in_pool(
    work: Callable[[RangeJob], RangeJob], pending: Sequence[RangeJob], workers: int
) -> Iterator[RangeJob]:
    try:
        with open_pool(workers) as pool:
            with holding_signals():
                futures = [pool.submit(work, job) for job in pending]
            for future in as_completed(futures):
                yield future.result()
    except BrokenProcessPool as error:
        raise Unavailable(
            "a process that reads the dump was killed, possibly for lack of memory; run the same command again: "
            "complete ranges are not read again"
        ) from error
