"""The second half of a build: titles have become nodes, and parts become tables, one part in memory at a time."""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from pipelines.corpus.graphbuild import EdgeBlock
from pipelines.corpus.linkgraph import LinkGraph
from pipelines.corpus.numbering import DANGLING, Numbering
from pipelines.corpus.pagestore import StorePart
from pipelines.corpus.parts import Part
from pipelines.corpus.passages import write_passages
from pipelines.corpus.sideproperties import SideProperties
from pipelines.corpus.tables import FACTS, FAILED, PAGES, REDIRECTS, REJECTED, OffsetCounter, TableWriter

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
            names = ("qid", "sitelinks", "statements", "identifiers", "classes", "table_in_degree")
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
