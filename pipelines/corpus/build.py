"""Build a corpus from a dump and the files beside it: one folder, complete or absent.

Worker processes read byte ranges of the dump, each into a part (``scan``). Then titles become nodes (``numbering``),
and the parts become tables, graph, page store and search index, one part in memory at a time. An interrupted build
continues with the ranges that are missing. Aliases of an article come from its title, redirects, lead and the texts of
links to it.
"""

import os
import shutil
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from pipelines.corpus.articles import write_origins
from pipelines.corpus.boxes import needs_survey
from pipelines.corpus.data import read_names
from pipelines.corpus.dump import Site, list_parts, plan_ranges, read_site, strip_qualifier
from pipelines.corpus.images import write_images
from pipelines.corpus.kinds import choose_class_kind, find_domain
from pipelines.corpus.linkgraph import EdgeBlock, LinkGraph, build_graph
from pipelines.corpus.manifest import (
    ANCHOR_PAGES,
    BUILDER_VERSION,
    OPTIONS,
    SCHEMA_VERSION,
    CorpusManifest,
    CorpusManifestCounts,
    InputFile,
    SideFiles,
    clear_unfinished,
    digest_corpus,
    find_side_files,
    list_files,
    place_unfinished,
    read_snapshot,
    write_manifest,
)
from pipelines.corpus.numbering import CYCLE, DANGLING, DUPLICATE, NumberedPart, Numbering, number_pages, write_titles
from pipelines.corpus.passages import write_passages
from pipelines.corpus.properties import SideProperties, collect_side_properties, read_labels
from pipelines.corpus.scan import Part, RangeJob, scan_ranges, survey_ranges
from pipelines.corpus.statements import write_statements
from pipelines.corpus.tables import (
    ALIASES,
    BATCH_ROWS,
    FACTS,
    FAILED,
    PAGES,
    REDIRECTS,
    REJECTED,
    OffsetCounter,
    TableWriter,
    open_spill,
    scan_files,
    stream_tables,
)
from pipelines.corpus.texts import join_stores
from pipelines.errors import ConfigError, ConservationError
from pipelines.files import drafting_folder, make_temp_path, sync_files
from pipelines.ids import digest_file, digest_value
from pipelines.memory import count_segments
from schemas.corpus import CorpusImage

_SCANNED = (
    "page_id",
    "title",
    "revision",
    "timestamp",
    "bytes",
    "text_sha256",
    "infobox",
    "type",
    "lead_type",
    "domain",
)
_KNOWN = ("qid", "sitelinks", "statements", "identifiers", "classes")


def list_edges(numbering: Numbering) -> Iterator[EdgeBlock]:
    """Yield the links between articles, some millions at a time; links of refused pages are left out."""
    for numbered in numbering.parts:
        for links in numbered.part.read_links():
            targets = numbering.titles.find(links.target_hashes)
            sources = numbered.nodes[links.sources]
            kept = (sources >= 0) & (targets >= 0)
            yield sources[kept].astype(np.uint32), targets[kept].astype(np.uint32), links.positions[kept]


def write_pages(
    folder: Path, numbering: Numbering, side: SideProperties, graph: LinkGraph, labels: Mapping[str, str]
) -> None:
    """Write the table of articles; ``labels`` name the classes that have no English noun here."""
    with TableWriter(folder, "pages", PAGES, mapped=True) as writer:
        for numbered in numbering.parts:
            rows = numbered.part.read_columns("articles", [*_SCANNED, "is_list", "is_disambiguation", "image"])
            rows = rows.filter(pa.array(numbered.nodes >= 0))
            nodes = numbered.nodes[numbered.nodes >= 0]
            known = side.take(rows)
            has_free = pc.not_equal(known["image_free"], "")
            image = pc.if_else(has_free, known["image_free"], rows["image"])
            columns: dict[str, object] = {name: rows[name] for name in _SCANNED}
            columns |= {name: known[name] for name in _KNOWN}
            columns["type"], columns["domain"] = _fill_kinds(rows, known["classes"], labels)
            lists, disambiguations = (_has_class(known["classes"], name) for name in ("list", "disambiguation"))
            columns |= {
                "node": nodes.astype(np.uint32),
                "is_list": pc.or_(pc.or_(rows["is_list"], known["is_set_index"]), lists),
                "is_disambiguation": pc.or_(
                    pc.or_(rows["is_disambiguation"], known["is_disambiguation"]), disambiguations
                ),
                "in_degree": np.asarray(graph.in_degree[nodes]),
                "image": pc.if_else(pc.not_equal(image, ""), image, known["image"]),
                "image_free": has_free,
            }
            writer.write_table(pa.table({name: columns[name] for name in PAGES.names}))


def _fill_kinds(rows: pa.Table, classes: pa.ChunkedArray, labels: Mapping[str, str]) -> tuple[list[str], list[str]]:
    # A class without an English noun has its label in the wiki's language: the writer of questions reads both.
    kinds, domains = rows["type"].to_pylist(), rows["domain"].to_pylist()
    boxed = pc.not_equal(rows["infobox"], "").to_pylist()
    for row, kind in enumerate(kinds):
        own = classes[row].as_py()
        named = choose_class_kind(kind, own, boxed[row])
        if named != kind:
            kinds[row], domains[row] = named, find_domain(named)
        elif not kind:
            kinds[row] = next((labels[qid] for qid in own if qid in labels), "")
    return kinds, domains


def _has_class(classes: pa.ChunkedArray, name: str) -> pa.Array:
    wanted = read_names("kinds", f"{name}_classes")
    return pa.array([not wanted.isdisjoint(own) for own in classes.to_pylist()], pa.bool_())


def write_facts(folder: Path, numbering: Numbering) -> tuple[int, int]:
    """Write the table of facts; values without readable text count in ``value_count`` but make no row."""
    offsets = OffsetCounter(numbering.article_count)
    linked = 0
    with TableWriter(folder, "facts", FACTS, mapped=True) as writer:
        for numbered in numbering.parts:
            for rows in numbered.part.read_batches("facts"):
                sources = numbered.nodes[rows["article"].to_numpy()]
                targets = numbering.titles.find(rows["target_hash"].to_numpy())
                rows = rows.append_column("node", pa.array(sources)).append_column("target", pa.array(targets))
                writer.write_table(rows.filter(pa.array(sources >= 0)))
                offsets.add(sources[sources >= 0])
                linked += int(np.count_nonzero(targets[sources >= 0] >= 0))
    offsets.write(folder, "facts")
    return writer.rows, linked


def write_redirects(folder: Path, numbering: Numbering) -> tuple[int, dict[str, int], int]:
    """Write the table of redirects, and those of the pages that are rejected or failed."""
    reasons: Counter[str] = Counter()
    with (
        TableWriter(folder, "redirects", REDIRECTS, mapped=True) as kept,
        TableWriter(folder, "rejected-00000", REJECTED) as rejected,
        TableWriter(folder, "failed-00000", FAILED) as failed,
    ):
        # First the rows of the parts, then those decided over all parts: the order does not depend on the cut.
        for numbered in numbering.parts:
            for rows in numbered.part.read_batches("rejected"):
                rejected.write_table(rows)
                reasons.update(rows["reason"].to_pylist())
            for rows in numbered.part.read_batches("failed"):
                failed.write_table(rows)
        for numbered in numbering.parts:
            failed.write_rows(_list_refused(numbered.part, "articles", numbered.refused_articles))
        for numbered in numbering.parts:
            rows = numbered.part.read_columns("redirects", ["title", "page_id", "revision"])
            rows = rows.append_column("node", pa.array(np.maximum(numbered.redirect_nodes, 0).astype(np.uint32)))
            kept.write_table(rows.filter(pa.array(numbered.redirect_nodes >= 0)))
            failed.write_rows(_list_refused(numbered.part, "redirects", numbered.refused_redirects))
            rejections = list(_reject_redirects(numbered))
            reasons.update(reason for _, reason, _ in rejections)
            rejected.write_rows(rejections)
    return kept.rows, dict(sorted(reasons.items())), failed.rows


def _list_refused(part: Part, table: str, rows: list[int]) -> list[tuple[str, str, str]]:
    pages = part.read_columns(table, ["page_id", "title"]).take(pa.array(rows, pa.int64())).to_pylist()
    cause = "an earlier page of the dump has its title, its id or its title's hash"
    return [(f"page:{page['page_id']}", DUPLICATE, f"{page['title']}: {cause}") for page in pages]


def _reject_redirects(numbered: NumberedPart) -> Iterator[tuple[str, str, str]]:
    cycles, refused = set(numbered.cycles), set(numbered.refused_redirects)
    lost = [row for row in np.flatnonzero(numbered.redirect_nodes < 0).tolist() if row not in refused]
    pages = numbered.part.read_columns("redirects", ["page_id", "title", "target"]).take(pa.array(lost, pa.int64()))
    for row, page in zip(lost, pages.to_pylist(), strict=True):
        reason, what = (
            (CYCLE, "leads round in a circle") if row in cycles else (DANGLING, "is no article and leads to none")
        )
        yield f"page:{page['page_id']}", reason, f"{page['title']}: {page['target']!r} {what}"


def list_passages(numbering: Numbering, report: Callable[[int], None]) -> Iterator[tuple[int, str, str]]:
    """Yield (node, title, text) of every passage; ``report`` is called with the number of articles done."""
    done = 0
    for numbered in numbering.parts:
        titles = numbered.part.read_columns("articles", ["title"])["title"].to_pylist()
        for rows in numbered.part.read_batches("passages"):
            for article, text in zip(rows["article"].to_pylist(), rows["text"].to_pylist(), strict=True):
                if numbered.nodes[article] >= 0:
                    yield int(numbered.nodes[article]), titles[article], text
        done += len(numbered.nodes)
        report(done)


SOURCES = ("title", "title-base", "redirect", "bold", "anchor")
"""Where an alias may come from; one found twice keeps the earlier source."""

_NAMES = pa.schema([("node", pa.uint32()), ("alias", pa.string()), ("source", pa.uint8())])
_ANCHORS = pa.schema(
    [("node", pa.uint32()), ("alias", pa.string()), ("pages", pa.uint32()), ("in_infobox", pa.bool_())]
)
_SINGLE_LETTERS = "(0, 2)"
"""Places in ``SOURCES`` whose names may be a single character: a title is a name whatever its length."""


def write_aliases(folder: Path, scratch: Path, numbering: Numbering) -> int:
    """Write the table of aliases, sorted by node and alias, each alias of a node once; return their number.

    An anchor text is an alias when ``ANCHOR_PAGES`` articles, or one infobox, use it for the article.
    """
    _write_names(scratch, numbering)
    names, anchors = (scan_files(scratch / f"{name}.parquet") for name in ("names", "anchors"))
    query = f"""
        SELECT node, alias, min(source) AS rank FROM (
            SELECT node, alias, source FROM {names}
            UNION ALL
            SELECT node, alias, {SOURCES.index("anchor")} AS source FROM {anchors}
            GROUP BY node, alias
            HAVING sum(pages) >= 1 AND (sum(pages) >= {ANCHOR_PAGES} OR bool_or(in_infobox))
        )
        WHERE length(alias) > 1 OR source IN {_SINGLE_LETTERS}
        GROUP BY node, alias ORDER BY node, alias
    """
    offsets = OffsetCounter(numbering.article_count)
    with open_spill(scratch) as connection, TableWriter(folder, "aliases", ALIASES, mapped=True) as writer:
        for rows in stream_tables(connection, query, BATCH_ROWS):
            writer.write_table(rows.append_column("source", pa.array(SOURCES).take(rows["rank"].combine_chunks())))
            offsets.add(rows["node"].to_numpy())
    offsets.write(folder, "aliases")
    return writer.rows


def _write_names(scratch: Path, numbering: Numbering) -> None:
    with TableWriter(scratch, "names", _NAMES) as names, TableWriter(scratch, "anchors", _ANCHORS) as anchors:
        for numbered in numbering.parts:
            rows = numbered.part.read_columns("articles", ["title", "bold"])
            bases = pa.array([strip_qualifier(title) for title in rows["title"].to_pylist()], pa.string())
            bold = rows["bold"].combine_chunks()
            bold_nodes = numbered.nodes[pc.list_parent_indices(bold).to_numpy()]
            redirects = numbered.part.read_columns("redirects", ["title"])["title"]
            for table in (
                _make_names(numbered.nodes, rows["title"], "title"),
                _make_names(numbered.nodes, bases, "title-base"),
                _make_names(bold_nodes, pc.list_flatten(bold), "bold"),
                _make_names(numbered.redirect_nodes, redirects, "redirect"),
            ):
                names.write_table(table)
            for rows in numbered.part.read_batches("anchors"):
                found = numbering.titles.find(rows["target_hash"].to_numpy())
                columns = [pa.array(np.maximum(found, 0)), rows["anchor"], rows["pages"], rows["in_infobox"]]
                anchors.write_table(pa.table(columns, names=_ANCHORS.names).filter(pa.array(found >= 0)))


def _make_names(nodes: NDArray[np.int64], names: pa.Array | pa.ChunkedArray, source: str) -> pa.Table:
    kept = pa.array(nodes >= 0)
    sources = np.full(len(nodes), SOURCES.index(source), dtype=np.uint8)
    return pa.table([pa.array(np.maximum(nodes, 0)), names, pa.array(sources)], names=_NAMES.names).filter(kept)


Progress = Callable[[str, int, int], None]
"""Called with the phase, how much of it is done, and how much there is (0 when unknown)."""
RANGE_BYTES = 16 << 20
"""Bytes of a dump that a worker reads at a time, and that a killed build reads again at most for each worker."""


def build_corpus(
    dump: Path, out: Path, progress: Progress | None = None, workers: int = 1, range_bytes: int = RANGE_BYTES
) -> CorpusManifestCounts:
    """Build a corpus; it appears under ``out`` only when it is complete.

    Ranges that an earlier, killed build of the same dump has read are not read again. Only one build at a time may run
    beside ``out``.
    """
    if out.exists():
        raise ConfigError(f"{out} exists; a corpus is never changed: choose another name or remove it")
    dumps = list_parts(dump)
    build = _Build(dumps, out, read_site(dumps[0]), find_side_files(dump), progress, workers)
    unfinished, jobs = build.plan_jobs(range_bytes)
    try:
        if needs_survey(build.site):
            with build.phase("templates") as report:
                jobs = survey_ranges(jobs, workers, report)
        with build.phase("pages") as report:
            parts = scan_ranges(jobs, workers, report)
    except ConfigError:  # the dump is damaged: what was read of it is of no use
        clear_unfinished(out.parent)
        raise
    scratch = make_temp_path(out)
    try:
        with drafting_folder(out) as folder:
            scratch.mkdir()
            counts = build.write(folder, parts, scratch, unfinished / "side")
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    clear_unfinished(out.parent)
    return counts


@dataclass(slots=True)
class _Build:
    dumps: tuple[Path, ...]
    out: Path
    site: Site
    side: SideFiles
    progress: Progress | None
    threads: int
    seconds: dict[str, float] = field(default_factory=dict)

    @contextmanager
    def phase(self, name: str) -> Iterator[Callable[[int, int], None]]:
        start = time.monotonic()

        def report(done: int, total: int = 0) -> None:
            if self.progress is not None:
                self.progress(name, done, total)

        report(0)
        yield report
        self.seconds[name] = round(time.monotonic() - start, 3)

    def plan_jobs(self, range_bytes: int) -> tuple[Path, list[RangeJob]]:
        # Files beside the dump do not matter here: one that is added does not make the dump be read again.
        pieces = [(dump, piece) for dump in self.dumps for piece in plan_ranges(dump, range_bytes)]
        seen = [(dump.name, dump.stat().st_size, dump.stat().st_mtime_ns) for dump in self.dumps]
        cuts = [(dump.name, piece.start, piece.end) for dump, piece in pieces]
        name = digest_value([BUILDER_VERSION, cuts, seen, repr(self.site), OPTIONS])[:16]
        unfinished = place_unfinished(self.out.parent)
        for other in unfinished.glob("*"):
            if other.name != name:
                shutil.rmtree(other)
        folder = unfinished / name
        jobs = [
            RangeJob(dump, piece, self.site, folder / f"{number:05}") for number, (dump, piece) in enumerate(pieces)
        ]
        return folder, jobs

    def write(self, folder: Path, parts: list[Part], scratch: Path, kept: Path) -> CorpusManifestCounts:
        with self.phase("properties"):
            side, known = collect_side_properties(self.side, self.site.dbname, parts, scratch, kept)
        with self.phase("titles"):
            numbering = number_pages(parts)
            write_titles(folder, numbering.titles)
            join_stores(folder / "store", [(numbered.part.folder, numbered.nodes >= 0) for numbered in numbering.parts])
        with self.phase("links"):
            graph = build_graph(folder / "graph", numbering.article_count, list_edges(numbering), scratch)
        with self.phase("tables"):
            labels = read_labels(side, scratch) if needs_survey(self.site) else {}
            write_pages(folder, numbering, side, graph, labels)
            facts, linked = write_facts(folder, numbering)
            stated = write_statements(folder, scratch, side.stated, numbering.article_count)
            redirects, rejected, failed = write_redirects(folder, numbering)
            aliases = write_aliases(folder, scratch, numbering)
            if self.side.articles is not None:
                write_origins(folder, self.side.articles)
        with self.phase("images"):
            images = write_images(folder, self.side.images, self.site.language)
        with self.phase("search") as report:
            passages = list_passages(numbering, lambda done: report(done, numbering.article_count))
            passage_count = write_passages(folder / "search", passages, count_segments(self.threads))
        with self.phase("manifest"):
            counts = CorpusManifestCounts(
                rows_in=sum(part.counts.rows_in for part in parts),
                kept=numbering.article_count + redirects,
                rejected=rejected,
                failed=failed,
                articles=numbering.article_count,
                redirects=redirects,
                links=graph.link_count,
                facts=facts,
                facts_with_target=linked,
                aliases=aliases,
                images=len(images),
                passages=passage_count,
                side=known | ({"statements": stated} if stated else {}),
                seconds=self.seconds,
            )
            ends = counts.kept + sum(counts.rejected.values()) + counts.failed
            if counts.rows_in != ends:
                raise ConservationError(f"{counts.rows_in} pages in, {ends} kept, rejected or failed")
            sync_files(folder)
            newest = max((part.counts.newest for part in parts), default="")
            write_manifest(folder / "manifest.json", self._make_manifest(folder, newest, images, counts))
        return counts

    def _make_manifest(
        self, folder: Path, newest: str, pictures: list[CorpusImage], counts: CorpusManifestCounts
    ) -> CorpusManifest:
        files = [*(("dump", dump) for dump in self.dumps), *self.side.list_files()]
        inputs = [InputFile(role, path.name, digest_file(path), path.stat().st_size) for role, path in files]
        images_dir = ""
        if self.side.images is not None:
            images = self.side.images.parent
            named = [(image.file, image.sha256) for image in pictures]
            inputs.append(InputFile("pictures", images.name, digest_value(named), len(named)))
            # Relative when both are in one workspace, so that the workspace may be moved.
            home = self.out.resolve()
            is_near = images.resolve().is_relative_to(home.parent.parent)
            images_dir = os.path.relpath(images.resolve(), home) if is_near else str(images.resolve())
        return CorpusManifest(
            schema_version=SCHEMA_VERSION,
            builder_version=BUILDER_VERSION,
            name=self.out.name,
            snapshot=read_snapshot(self.dumps[0]) or newest[:10],
            dbname=self.site.dbname,
            base_url=self.site.base_url,
            language=self.site.language,
            images_dir=images_dir,
            inputs=tuple(inputs),
            options=OPTIONS,
            counts=counts,
            digest=digest_corpus(tuple(inputs)),
            files=list_files(folder),
        )
