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
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from pipelines.corpus.commons import write_images
from pipelines.corpus.dump import Site, list_parts, plan_ranges, read_site, strip_qualifier
from pipelines.corpus.linkgraph import EdgeBlock, LinkGraph, build_graph
from pipelines.corpus.manifest import (
    BUILDER_VERSION,
    DEFAULT_OPTIONS,
    SCHEMA_VERSION,
    CorpusManifest,
    CorpusManifestCounts,
    CorpusOptions,
    InputFile,
    SideFiles,
    digest_corpus,
    find_side_files,
    read_snapshot,
    write_manifest,
)
from pipelines.corpus.numbering import DANGLING, Numbering, number_pages, write_titles
from pipelines.corpus.properties import SideProperties, collect_side_properties
from pipelines.corpus.scan import Part, RangeJob, scan_ranges
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
    quote_path,
    stream_tables,
)
from pipelines.corpus.texts import StorePart, join_stores, write_passages
from pipelines.errors import ConfigError, ConservationError
from pipelines.files import TEMP_PREFIX, make_temp_path, sync_files, sync_folder
from pipelines.ids import digest_file, digest_value

_COPIED = (
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


@dataclass(frozen=True, slots=True)
class NumberedParts:
    """The parts of a dump with the nodes of their pages."""

    parts: Sequence[Part]
    numbering: Numbering

    def iterate(self) -> Iterator[tuple[int, Part, NDArray[np.int64]]]:
        """Yield (number, part, node of each of its articles) in the order of the dump."""
        for number, part in enumerate(self.parts):
            yield number, part, self.numbering.article_nodes[number]


def list_edges(numbered: NumberedParts) -> Iterator[EdgeBlock]:
    """Yield the links between articles, some millions at a time; links of pages that are no article are left out."""
    for _, part, nodes in numbered.iterate():
        for links in part.read_links():
            targets = numbered.numbering.titles.find(links.target_hashes)
            sources = nodes[links.sources]
            kept = (sources >= 0) & (targets >= 0)
            ends = (values[kept].astype(np.uint32) for values in (sources, targets, links.positions))
            yield EdgeBlock(*ends)


def list_stores(numbered: NumberedParts) -> Iterator[StorePart]:
    """Yield the texts of each part and which of them are nodes."""
    for _, part, nodes in numbered.iterate():
        yield StorePart(part.folder, nodes >= 0)


def write_pages(folder: Path, numbered: NumberedParts, side: SideProperties, graph: LinkGraph) -> None:
    """Write the table of articles."""
    with TableWriter(folder, "pages", PAGES, mapped=True) as writer:
        for _, part, nodes in numbered.iterate():
            rows = part.read_columns("articles", [*_COPIED, "is_list", "is_disambiguation", "image"])
            rows = rows.filter(pa.array(nodes >= 0))
            kept = nodes[nodes >= 0]
            known = side.take(rows)
            columns: dict[str, object] = {name: rows[name] for name in _COPIED}
            columns |= {
                "node": kept.astype(np.uint32),
                "is_list": pc.or_(rows["is_list"], known["is_set_index"]),
                "is_disambiguation": pc.or_(rows["is_disambiguation"], known["is_disambiguation"]),
                "in_degree": np.asarray(graph.in_degree[kept[0] : kept[-1] + 1] if len(kept) else []),
                "image": _choose_images(known, rows["image"]),
                "image_free": pc.not_equal(known["image_free"], ""),
            }
            names = ("qid", "sitelinks", "statements", "identifiers", "classes")
            columns |= {name: known[name] for name in names}
            writer.write_table(pa.table({name: columns[name] for name in PAGES.names}))


def _choose_images(known: pa.Table, written: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return each article's picture: the free one of the tables, else the infobox's, else any of the tables."""
    first = pc.if_else(pc.not_equal(known["image_free"], ""), known["image_free"], written)
    return pc.if_else(pc.not_equal(first, ""), first, known["image"])


def write_facts(folder: Path, numbered: NumberedParts) -> tuple[int, int]:
    """Write the table of facts; values without readable text count in ``value_count`` but make no row.

    Returns:
        The number of facts, and of those whose value links to an article.
    """
    offsets = OffsetCounter(numbered.numbering.article_count)
    linked = 0
    with TableWriter(folder, "facts", FACTS, mapped=True) as writer:
        for _, part, nodes in numbered.iterate():
            for rows in part.read_batches("facts"):
                sources = nodes[rows["article"].to_numpy()]
                targets = numbered.numbering.titles.find(rows["target_hash"].to_numpy())
                rows = rows.append_column("node", pa.array(sources)).append_column("target", pa.array(targets))
                writer.write_table(rows.filter(pa.array(sources >= 0)))
                offsets.add(sources[sources >= 0])
                linked += int(np.count_nonzero(targets[sources >= 0] >= 0))
    offsets.write(folder, "facts")
    return writer.rows, linked


def write_redirects(folder: Path, numbered: NumberedParts) -> tuple[int, dict[str, int], int]:
    """Write the table of redirects, and those of the pages that are rejected or failed.

    Returns:
        The number of redirects kept, the rejected pages by reason, and the number of failed ones.
    """
    reasons: Counter[str] = Counter()
    with (
        TableWriter(folder, "redirects", REDIRECTS, mapped=True) as kept,
        TableWriter(folder, "rejected-00000", REJECTED) as rejected,
        TableWriter(folder, "failed-00000", FAILED) as failed,
    ):
        # First what the parts have, then what was decided over all of them: no order tells how the dump was cut.
        for _, part, _ in numbered.iterate():
            for name, writer in (("rejected", rejected), ("failed", failed)):
                for rows in part.read_batches(name):
                    writer.write_table(rows)
                    if name == "rejected":
                        reasons.update(rows["reason"].to_pylist())
        for number, part, _ in numbered.iterate():
            _fail_articles(part, numbered.numbering.refused[number][0], failed)
        for number, part, _ in numbered.iterate():
            _sort_redirects(part, number, numbered.numbering, kept, (rejected, reasons, failed))
    return kept.rows, dict(sorted(reasons.items())), failed.rows


def _sort_redirects(
    part: Part,
    number: int,
    numbering: Numbering,
    kept: TableWriter,
    others: tuple[TableWriter, Counter[str], TableWriter],
) -> None:
    rejected, reasons, failed = others
    rows = part.read_columns("redirects", ["title", "page_id", "revision", "target"])
    nodes = numbering.redirect_nodes[number]
    rows = rows.append_column("node", pa.array(np.maximum(nodes, 0).astype(np.uint32)))
    kept.write_table(rows.select(REDIRECTS.names).filter(pa.array(nodes >= 0)))
    refused, circles = numbering.refused[number][1], numbering.redirect_reasons[number]
    lost = np.flatnonzero(nodes < 0)
    failures, rejections = [], []
    for row, page in zip(lost.tolist(), rows.take(lost).to_pylist(), strict=True):
        if row in refused:
            failures.append(_fail_page(page["page_id"], page["title"], refused[row]))
            continue
        reason, detail = circles.get(row, (DANGLING, f"{page['target']!r} is no article and leads to none"))
        reasons[reason] += 1
        rejections.append((f"page:{page['page_id']}", reason, f"{page['title']}: {detail}"))
    failed.write_rows(failures)
    rejected.write_rows(rejections)


def _fail_articles(part: Part, refused: dict[int, str], failed: TableWriter) -> None:
    if refused:
        rows = part.read_columns("articles", ["title", "page_id"])
        failed.write_rows(
            [_fail_page(rows["page_id"][row].as_py(), rows["title"][row].as_py(), refused[row]) for row in refused]
        )


def _fail_page(page_id: int, title: str, error: str) -> tuple[str, str, str]:
    return f"page:{page_id}", error, f"{title}: an earlier page of the dump has its title, its id or its title's hash"


def write_search(path: Path, numbered: NumberedParts, report: Callable[[int], None]) -> int:
    """Write the full-text index and return the number of passages."""
    return write_passages(path, _list_passages(numbered, report))


def _list_passages(numbered: NumberedParts, report: Callable[[int], None]) -> Iterator[tuple[int, str, str]]:
    done = 0
    for _, part, nodes in numbered.iterate():
        titles = part.read_columns("articles", ["title"])["title"].to_pylist()
        for rows in part.read_batches("passages"):
            for article, text in zip(rows["article"].to_pylist(), rows["text"].to_pylist(), strict=True):
                if nodes[article] >= 0:
                    yield int(nodes[article]), titles[article], text
        done += len(nodes)
        report(done)


SOURCES = ("title", "title-base", "redirect", "bold", "anchor")
"""Where an alias may come from; one found twice keeps the earlier source."""

_NAMES = pa.schema([("node", pa.uint32()), ("alias", pa.string()), ("source", pa.uint8())])
_ANCHORS = pa.schema(
    [("node", pa.uint32()), ("alias", pa.string()), ("pages", pa.uint32()), ("in_infobox", pa.bool_())]
)
_SINGLE_LETTERS = "(0, 2)"
"""Places in ``SOURCES`` whose names may be a single character: a title is a name whatever its length."""


def write_aliases(folder: Path, scratch: Path, numbered: NumberedParts, anchor_pages: int) -> int:
    """Write the table of aliases, sorted by node and alias, each alias of a node once; returns their number.

    Args:
        folder: of the corpus.
        scratch: for what does not fit memory.
        numbered: the parts of the dump.
        anchor_pages: an anchor text counts when this many articles, or one infobox, use it for the article.
    """
    _write_names(scratch, numbered)
    offsets = OffsetCounter(numbered.numbering.article_count)
    with open_spill(scratch) as connection, TableWriter(folder, "aliases", ALIASES, mapped=True) as writer:
        for rows in stream_tables(connection, _make_query(scratch, anchor_pages), BATCH_ROWS):
            names = pa.array(SOURCES).take(rows["rank"].combine_chunks())
            writer.write_table(rows.append_column("source", names))
            offsets.add(rows["node"].to_numpy())
    offsets.write(folder, "aliases")
    return writer.rows


def _make_query(scratch: Path, anchor_pages: int) -> str:
    names, anchors = (quote_path(scratch / f"{name}.parquet") for name in ("names", "anchors"))
    return f"""
        SELECT node, alias, min(source) AS rank FROM (
            SELECT node, alias, source FROM read_parquet({names})
            UNION ALL
            SELECT node, alias, {SOURCES.index("anchor")} AS source FROM read_parquet({anchors})
            GROUP BY node, alias
            HAVING sum(pages) >= 1 AND (sum(pages) >= {int(anchor_pages)} OR bool_or(in_infobox))
        )
        WHERE length(alias) > 1 OR source IN {_SINGLE_LETTERS}
        GROUP BY node, alias ORDER BY node, alias
    """


def _write_names(scratch: Path, numbered: NumberedParts) -> None:
    """Write what may be a name of which article, unsorted."""
    numbering = numbered.numbering
    with TableWriter(scratch, "names", _NAMES) as names, TableWriter(scratch, "anchors", _ANCHORS) as anchors:
        for number, part, nodes in numbered.iterate():
            for table in _list_own_names(part, nodes):
                names.write_table(table)
            titles = part.read_columns("redirects", ["title"])["title"]
            names.write_table(_make_names(numbering.redirect_nodes[number], titles, "redirect"))
            for rows in part.read_batches("anchors"):
                found = numbering.titles.find(rows["target_hash"].to_numpy())
                columns = [pa.array(np.maximum(found, 0)), rows["anchor"], rows["pages"], rows["in_infobox"]]
                anchors.write_table(pa.table(columns, names=_ANCHORS.names).filter(pa.array(found >= 0)))


def _list_own_names(part: Part, nodes: NDArray[np.int64]) -> Iterator[pa.Table]:
    rows = part.read_columns("articles", ["title", "bold"])
    titles = rows["title"].combine_chunks()
    yield _make_names(nodes, titles, "title")
    yield _make_names(
        nodes, pa.array([strip_qualifier(title) for title in titles.to_pylist()], pa.string()), "title-base"
    )
    bold = rows["bold"].combine_chunks()
    yield _make_names(nodes[pc.list_parent_indices(bold).to_numpy()], pc.list_flatten(bold), "bold")


def _make_names(nodes: NDArray[np.int64], names: pa.Array | pa.ChunkedArray, source: str) -> pa.Table:
    kept = pa.array(nodes >= 0)
    sources = np.full(len(nodes), SOURCES.index(source), dtype=np.uint8)
    return pa.table([pa.array(np.maximum(nodes, 0)), names, pa.array(sources)], names=_NAMES.names).filter(kept)


__all__ = ["CorpusManifestCounts", "CorpusOptions", "build_corpus", "clear_unfinished", "place_unfinished"]

Progress = Callable[[str, int, int], None]
"""Called with the phase, how much of it is done, and how much there is (0 when unknown)."""
RANGE_BYTES = 16 << 20
"""Bytes of a dump that a worker reads at a time, and that a killed build reads again at most for each worker."""


@dataclass(slots=True)
class _Clock:
    """Times the phases of a build and reports them."""

    progress: Progress | None
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


@dataclass(frozen=True, slots=True)
class _Sources:
    """What a corpus is built from, and where it goes."""

    dumps: tuple[Path, ...]
    out: Path
    site: Site
    side: SideFiles
    options: CorpusOptions


@dataclass(frozen=True, slots=True)
class _Room:
    """Where a build may write beside the corpus."""

    scratch: Path
    """Thrown away when the build ends, however it ends."""
    kept: Path
    """Stays until a build succeeds."""


def build_corpus(
    dump: Path,
    out: Path,
    options: CorpusOptions = DEFAULT_OPTIONS,
    progress: Progress | None = None,
    workers: int = 1,
    range_bytes: int = RANGE_BYTES,
) -> CorpusManifestCounts:
    """Build a corpus; it appears under ``out`` only when it is complete.

    Ranges that an earlier, killed build of the same dump has read are not read again; one build at a time may be at
    work beside ``out``.

    Args:
        dump: ``*-pages-articles*.xml.bz2`` or ``.xml``, or one file of a dump in several; side files are looked for
            beside it.
        out: folder of the corpus; its parent is made, and it must not exist itself.
        options: what decides the corpus beside the input.
        progress: told about phases and how far they are.
        workers: processes that read the dump.
        range_bytes: bytes of the dump read at a time; neither this nor ``workers`` changes what is built.

    Raises:
        ConfigError: ``out`` exists, or an input is missing or corrupt (``CorruptInput``).
        Unavailable: a worker was killed; run again to continue.
    """
    if out.exists():
        raise ConfigError(f"{out} exists; a corpus is never changed: choose another name or remove it")
    dumps = list_parts(dump)
    sources = _Sources(dumps, out, read_site(dumps[0]), find_side_files(dump), options)
    clock = _Clock(progress)
    attempt = _begin_attempt(sources, range_bytes)
    try:
        with clock.phase("pages") as report:
            parts = scan_ranges(attempt.jobs, workers, report)
    except ConfigError:  # the dump is to blame: what was read of it is of no use
        shutil.rmtree(attempt.folder, ignore_errors=True)
        clear_unfinished(out.parent)
        raise
    with _building(out) as folder:
        counts = _finish(folder, sources, parts, attempt.folder / "side", clock)
    clear_unfinished(out.parent)
    return counts


def place_unfinished(corpora: Path) -> Path:
    """Return the folder, beside corpora, that holds what was read so far of a dump whose corpus is not complete."""
    return corpora / ".building"


def clear_unfinished(corpora: Path) -> None:
    """Remove what builds that are over have left."""
    shutil.rmtree(place_unfinished(corpora), ignore_errors=True)


@dataclass(frozen=True, slots=True)
class _Attempt:
    """A build of one dump, cut in one way, by one version of the builder; what it has done is found by the next try."""

    folder: Path
    jobs: list[RangeJob]


def _begin_attempt(sources: _Sources, range_bytes: int) -> _Attempt:
    """Cut the dump, and remove what attempts at anything else have left: their parts are no use to this one.

    The files beside the dump have no say in it: one that is added or mended does not make the dump be read again.
    """
    pieces = [(dump, piece) for dump in sources.dumps for piece in plan_ranges(dump, range_bytes)]
    seen = [(dump.name, dump.stat().st_size, dump.stat().st_mtime_ns) for dump in sources.dumps]
    cuts = [(dump.name, piece.start, piece.end) for dump, piece in pieces]
    name = digest_value([BUILDER_VERSION, cuts, seen, repr(sources.site), repr(sources.options)])[:16]
    unfinished = place_unfinished(sources.out.parent)
    for other in unfinished.glob("*"):
        if other.name != name:
            shutil.rmtree(other)
    folder = unfinished / name
    jobs = [
        RangeJob(dump, piece, sources.site, folder / f"{number:05}", sources.options)
        for number, (dump, piece) in enumerate(pieces)
    ]
    return _Attempt(folder, jobs)


def _finish(folder: Path, sources: _Sources, parts: list[Part], kept: Path, clock: _Clock) -> CorpusManifestCounts:
    scratch = make_temp_path(sources.out)
    scratch.mkdir()
    try:
        return _write_corpus(folder, _Room(scratch, kept), sources, parts, clock)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def _write_corpus(
    folder: Path, room: _Room, sources: _Sources, parts: list[Part], clock: _Clock
) -> CorpusManifestCounts:
    with clock.phase("properties"):
        side, known = collect_side_properties(sources.side, sources.site.dbname, parts, room.scratch, room.kept)
    with clock.phase("titles"):
        numbered = NumberedParts(parts, number_pages(parts))
        write_titles(folder, numbered.numbering.titles)
        join_stores(folder / "store", list_stores(numbered))
    with clock.phase("links"):
        count = numbered.numbering.article_count
        graph = build_graph(folder / "graph", count, list_edges(numbered), room.scratch)
    with clock.phase("tables"):
        write_pages(folder, numbered, side, graph)
        facts, linked = write_facts(folder, numbered)
        redirects, rejected, failed = write_redirects(folder, numbered)
        aliases = write_aliases(folder, room.scratch, numbered, sources.options.anchor_pages)
    with clock.phase("images"):
        images = write_images(folder, sources.side, room.kept)
    with clock.phase("search") as report:
        passages = write_search(folder / "search.db", numbered, lambda done: report(done, count))
    with clock.phase("manifest"):
        counts = CorpusManifestCounts(
            rows_in=sum(part.counts.rows_in for part in parts),
            kept=count + redirects,
            rejected=rejected,
            failed=failed,
            articles=count,
            redirects=redirects,
            links=graph.link_count,
            facts=facts,
            facts_with_target=linked,
            aliases=aliases,
            images=images.rows,
            passages=passages,
            side=known | ({"media": images.media} if images.media else {}),
            seconds=clock.seconds,
        )
        _check_conservation(counts)
        sync_files(folder)
        newest = max((part.counts.newest for part in parts), default="")
        write_manifest(folder / "manifest.json", _make_manifest(sources, newest, images.at_hand, counts))
    return counts


def _check_conservation(counts: CorpusManifestCounts) -> None:
    ends = counts.kept + sum(counts.rejected.values()) + counts.failed
    if counts.rows_in != ends:
        raise ConservationError(f"{counts.rows_in} pages in, {ends} kept, rejected or failed")


def _make_manifest(
    sources: _Sources, newest: str, pictures: list[tuple[str, str]], counts: CorpusManifestCounts
) -> CorpusManifest:
    side, options = sources.side, sources.options
    files = [*(("dump", dump) for dump in sources.dumps), *side.list_files()]
    inputs = [InputFile(role, path.name, digest_file(path), path.stat().st_size) for role, path in files]
    if side.images is not None:
        inputs.append(InputFile("pictures", side.images.parent.name, digest_value(pictures), len(pictures)))
    return CorpusManifest(
        schema_version=SCHEMA_VERSION,
        builder_version=BUILDER_VERSION,
        name=options.name or sources.out.name,
        snapshot=read_snapshot(sources.dumps[0]) or newest[:10],
        dbname=sources.site.dbname,
        base_url=sources.site.base_url,
        language=sources.site.language,
        images_dir=_place_images(side.images.parent, sources.out) if side.images is not None else "",
        inputs=tuple(inputs),
        options=options,
        counts=counts,
        digest=digest_corpus(tuple(inputs), options),
    )


def _place_images(images: Path, out: Path) -> str:
    """Return where the pictures lie: from the corpus folder when both are in one workspace, so that it may be moved."""
    workspace = out.resolve().parent.parent
    if images.resolve().is_relative_to(workspace):
        return os.path.relpath(images.resolve(), out.resolve())
    return str(images.resolve())


@contextmanager
def _building(out: Path) -> Iterator[Path]:
    """Give a sibling folder to build in; on a clean exit it becomes ``out``, else it is removed."""
    out.parent.mkdir(parents=True, exist_ok=True)
    for left in out.parent.glob(f"{TEMP_PREFIX}{out.name}-*"):
        shutil.rmtree(left)
    folder = make_temp_path(out)
    folder.mkdir()
    try:
        yield folder
        sync_files(folder)
        folder.rename(out)
        sync_folder(out.parent)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
