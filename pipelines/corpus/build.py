"""Build a corpus from a dump and what lies beside it: one folder, complete or absent.

Byte ranges of the dump are read by worker processes, each into a part (``scan``). Then titles become nodes
(``numbering``), and the parts become tables, graph, page store and search index, one part in memory at a time
(``content``, ``aliases``). A build that was killed goes on with the ranges that are not read yet.
"""

import os
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from pipelines.corpus import content
from pipelines.corpus.aliases import write_aliases
from pipelines.corpus.content import NumberedParts
from pipelines.corpus.dump import Site, list_parts, read_site
from pipelines.corpus.imagetable import write_images
from pipelines.corpus.linkgraph import build_graph
from pipelines.corpus.manifest import (
    BUILDER_VERSION,
    DEFAULT_OPTIONS,
    SCHEMA_VERSION,
    CorpusManifest,
    CorpusManifestCounts,
    CorpusOptions,
    InputFile,
    digest_corpus,
    write_manifest,
)
from pipelines.corpus.numbering import number_pages, write_titles
from pipelines.corpus.pagestore import join_stores
from pipelines.corpus.parts import Part
from pipelines.corpus.scan import RangeJob
from pipelines.corpus.sidefiles import SideFiles, find_side_files, read_snapshot
from pipelines.corpus.sideproperties import check_side_files, collect_side_properties
from pipelines.corpus.streams import plan_ranges
from pipelines.corpus.workers import scan_ranges
from pipelines.errors import ConfigError, ConservationError
from pipelines.files import TEMP_PREFIX, make_temp_path, sync_files, sync_folder
from pipelines.ids import digest_file, digest_value

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
        Unavailable: a worker was killed; run again to go on.
    """
    if out.exists():
        raise ConfigError(f"{out} exists; a corpus is never changed: choose another name or remove it")
    dumps = list_parts(dump)
    sources = _Sources(dumps, out, read_site(dumps[0]), find_side_files(dump), options)
    check_side_files(sources.side)
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
        join_stores(folder / "store", content.list_stores(numbered))
    with clock.phase("links"):
        count = numbered.numbering.article_count
        graph = build_graph(folder / "graph", count, content.list_edges(numbered), room.scratch)
    with clock.phase("tables"):
        content.write_pages(folder, numbered, side, graph)
        facts, linked = content.write_facts(folder, numbered)
        redirects, rejected, failed = content.write_redirects(folder, numbered)
        aliases = write_aliases(folder, room.scratch, numbered, sources.options.anchor_pages)
    with clock.phase("images"):
        images = write_images(folder, sources.side, room.kept)
    with clock.phase("search") as report:
        passages = content.write_search(folder / "search.db", numbered, lambda done: report(done, count))
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
