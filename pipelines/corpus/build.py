"""Build a corpus from a dump and what lies beside it: one folder, complete or absent."""

import os
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from pipelines.corpus import content
from pipelines.corpus.dump import Site, read_pages, read_site
from pipelines.corpus.images import read_images
from pipelines.corpus.infobox import Infobox, read_infobox
from pipelines.corpus.linkgraph import write_graph
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
from pipelines.corpus.pagestore import PageStore, PageStoreWriter
from pipelines.corpus.passages import write_passages
from pipelines.corpus.sandbox import ParserChild
from pipelines.corpus.scan import Scan, Scanner
from pipelines.corpus.sidefiles import PageProps, SideFiles, find_side_files, read_props, read_snapshot
from pipelines.corpus.tables import FAILED, IMAGES, REJECTED, write_rows
from pipelines.corpus.titles import TitleRules
from pipelines.errors import ConfigError, ConservationError
from pipelines.files import TEMP_PREFIX, make_temp_path, sync_files, sync_folder
from pipelines.ids import digest_file, digest_value

__all__ = ["CorpusManifestCounts", "CorpusOptions", "build_corpus"]

Progress = Callable[[str, int, int], None]
"""Called with the phase, how much of it is done, and how much there is (0 when unknown)."""


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


def build_corpus(
    dump: Path, out: Path, options: CorpusOptions = DEFAULT_OPTIONS, progress: Progress | None = None
) -> CorpusManifestCounts:
    """Build a corpus; it appears under ``out`` only when it is complete.

    Args:
        dump: ``*-pages-articles*.xml.bz2`` or ``.xml``; side files are looked for beside it.
        out: folder of the corpus; its parent is made, and it must not exist itself.
        options: what decides the corpus beside the input.
        progress: told about phases and pages.

    Raises:
        ConfigError: ``out`` exists, or an input is missing or corrupt (``CorruptInput``).
    """
    if out.exists():
        raise ConfigError(f"{out} exists; a corpus is never changed: choose another name or remove it")
    site = read_site(dump)
    side = find_side_files(dump)
    clock = _Clock(progress)
    with _building(out) as folder:
        with clock.phase("properties"):
            props = read_props(side)
        with clock.phase("pages") as report:
            scan = _scan_pages(dump, site, folder, options, report)
        return _finish(folder, _Sources(dump, out, site, side, props), scan, options, clock)


@dataclass(frozen=True, slots=True)
class _Sources:
    dump: Path
    out: Path
    site: Site
    side: SideFiles
    props: PageProps


def _scan_pages(
    dump: Path, site: Site, folder: Path, options: CorpusOptions, report: Callable[[int, int], None]
) -> Scan:
    memory = options.parse_megabytes << 20
    with (
        PageStoreWriter(folder / "store") as store,
        ParserChild[Infobox | None](read_infobox, timeout=options.parse_seconds, memory=memory) as child,
    ):
        scan = Scanner(TitleRules(site), store, child.parse_all).read(read_pages(dump), lambda done: report(done, 0))
        scan.articles.sort(key=lambda article: article.page_id)
        store.close([article.slot for article in scan.articles])
    return scan


def _finish(folder: Path, sources: _Sources, scan: Scan, options: CorpusOptions, clock: _Clock) -> CorpusManifestCounts:
    with clock.phase("links"):
        resolved = content.resolve_titles(scan)
        graph = write_graph(folder / "graph", len(scan.articles), *content.resolve_links(scan, resolved))
    with clock.phase("tables"):
        rules = TitleRules(sources.site)
        pages = content.write_pages(folder, scan, sources.props, graph)
        facts = content.write_facts(folder, scan, resolved, rules)
        aliases = content.write_names(folder, scan, resolved, options.anchor_pages)
    with clock.phase("images"):
        pictures = _write_images(folder, sources.side, pages)
    with clock.phase("search") as report:
        store = PageStore.open(folder / "store")
        passages = content.list_passages(store, scan, lambda done: report(done, len(scan.articles)))
        passage_count = write_passages(folder / "search.db", passages, options.passage_words)
    with clock.phase("manifest"):
        write_rows(folder / "rejected-00000.parquet", REJECTED, sorted([*scan.rejected, *resolved.rejected]))
        write_rows(folder / "failed-00000.parquet", FAILED, sorted(scan.failed))
        counts = CorpusManifestCounts(
            rows_in=scan.rows_in,
            kept=len(scan.articles) + len(resolved.redirects),
            rejected=content.count_reasons([*scan.rejected, *resolved.rejected]),
            failed=len(scan.failed),
            articles=len(scan.articles),
            redirects=len(resolved.redirects),
            links=graph.link_count,
            facts=facts[0],
            facts_with_target=facts[1],
            aliases=aliases,
            images=len(pictures),
            passages=passage_count,
            seconds=clock.seconds,
        )
        _check_conservation(counts)
        sync_files(folder)
        write_manifest(folder / "manifest.json", _make_manifest(sources, scan, pictures, options, counts))
    return counts


def _write_images(folder: Path, side: SideFiles, pages: dict[str, list[str]]) -> list[tuple[str, str]]:
    """Write ``images.parquet`` and return (file, sha256) of every picture."""
    images = read_images(side.images, pages) if side.images is not None else []
    rows = [tuple(getattr(image, name) for name in IMAGES.names) for image in images]
    write_rows(folder / "images.parquet", IMAGES, rows)
    return [(image.file, image.sha256) for image in images]


def _check_conservation(counts: CorpusManifestCounts) -> None:
    ends = counts.kept + sum(counts.rejected.values()) + counts.failed
    if counts.rows_in != ends:
        raise ConservationError(f"{counts.rows_in} pages in, {ends} kept, rejected or failed")


def _make_manifest(
    sources: _Sources,
    scan: Scan,
    pictures: list[tuple[str, str]],
    options: CorpusOptions,
    counts: CorpusManifestCounts,
) -> CorpusManifest:
    side = sources.side
    inputs = [
        InputFile(role, path.name, digest_file(path), path.stat().st_size)
        for role, path in (
            ("dump", sources.dump),
            ("page_props", side.page_props),
            ("wikidata_page", side.wikidata_pages),
            ("wikidata_page_props", side.wikidata_props),
            ("images", side.images),
        )
        if path is not None
    ]
    if side.images is not None:
        inputs.append(InputFile("pictures", side.images.parent.name, digest_value(pictures), len(pictures)))
    return CorpusManifest(
        schema_version=SCHEMA_VERSION,
        builder_version=BUILDER_VERSION,
        name=options.name or sources.out.name,
        snapshot=read_snapshot(sources.dump) or scan.newest[:10],
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
