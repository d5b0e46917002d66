"""The second half of a build: titles become nodes, and what the scan kept becomes tables."""

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from pipelines.corpus.aliases import list_aliases
from pipelines.corpus.infobox import Field, Infobox
from pipelines.corpus.linkgraph import LinkGraph
from pipelines.corpus.pagestore import PageStore
from pipelines.corpus.plaintext import plain_text
from pipelines.corpus.redirects import follow_redirects
from pipelines.corpus.scan import Article, Scan
from pipelines.corpus.sidefiles import PageProps
from pipelines.corpus.tables import ALIASES, FACTS, PAGES, REDIRECTS, write_columns, write_rows
from pipelines.corpus.titles import TitleRules, is_list_title

_SKIPPED_KEYS = (
    "image",
    "caption",
    "alt",
    "coordinates",
    "map",
    "pushpin",
    "website",
    "signature",
    "logo",
    "footnotes",
)


@dataclass(frozen=True, slots=True)
class ResolvedTitles:
    """Which titles lead to which node; a node is an article's place by page id."""

    articles: dict[str, int]
    redirects: dict[str, int]
    rejected: list[tuple[str, str, str]]
    """(record id, reason, detail) of the redirects that lead nowhere."""
    targets: list[int]
    """Node of each target number of the scan, -1 when there is no such article."""

    def find(self, title: str) -> int:
        """Return the node of a title, redirects followed, or -1."""
        node = self.articles.get(title)
        return self.redirects.get(title, -1) if node is None else node


def resolve_titles(scan: Scan) -> ResolvedTitles:
    """Number the articles, which are in node order already, and follow the redirects."""
    articles = {article.title: node for node, article in enumerate(scan.articles)}
    wanted = {title: target for title, (target, _) in scan.redirects.items()}
    redirects, refused = follow_redirects(articles, wanted)
    rejected = [
        (f"page:{scan.redirects[title][1].page_id}", reason, f"{title}: {detail}")
        for title, (reason, detail) in refused.items()
    ]
    targets = [articles.get(title, redirects.get(title, -1)) for title in scan.target_numbers]
    return ResolvedTitles(articles, redirects, rejected, targets)


def resolve_links(
    scan: Scan, resolved: ResolvedTitles
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Return sources, targets and positions of the links that lead to an article of the corpus."""
    nodes = np.asarray([*resolved.targets, -1], dtype=np.int64)
    order = np.empty(len(scan.articles), dtype=np.int64)
    order[np.asarray([article.slot for article in scan.articles], dtype=np.int64)] = np.arange(len(scan.articles))
    sources = order[np.asarray(scan.link_sources, dtype=np.int64)]
    targets = nodes[np.asarray(scan.link_targets, dtype=np.int64)]
    kept = targets >= 0
    return sources[kept], targets[kept], np.asarray(scan.link_positions, dtype=np.int64)[kept]


def write_pages(folder: Path, scan: Scan, props: PageProps, graph: LinkGraph) -> dict[str, list[str]]:
    """Write ``pages.parquet`` and return article titles by the file of their image."""
    articles = scan.articles
    titles: dict[str, list[str]] = {}
    images = [props.image_free.get(a.page_id) or a.image or props.image.get(a.page_id, "") for a in articles]
    for article, image in zip(articles, images, strict=True):
        if image:
            titles.setdefault(image, []).append(article.title)
    qids = [props.qid.get(article.page_id, "") for article in articles]
    columns: dict[str, object] = {
        "node": np.arange(len(articles), dtype=np.uint32),
        "page_id": [article.page_id for article in articles],
        "title": [article.title for article in articles],
        "revision": [article.revision for article in articles],
        "timestamp": [article.timestamp for article in articles],
        "bytes": [article.size for article in articles],
        "text_sha256": [article.sha256 for article in articles],
        "is_list": [is_list_title(article.title) for article in articles],
        "is_disambiguation": [a.is_disambiguation or a.page_id in props.disambiguation for a in articles],
        "infobox": [article.infobox.template if article.infobox else "" for article in articles],
        "type": [article.kind for article in articles],
        "lead_type": [article.lead_kind for article in articles],
        "domain": [article.domain for article in articles],
        "in_degree": np.asarray(graph.in_degree),
        "qid": qids,
        "sitelinks": [props.sitelinks.get(qid, -1) for qid in qids],
        "statements": [props.statements.get(qid, -1) for qid in qids],
        "image": images,
        "image_free": [article.page_id in props.image_free for article in articles],
    }
    write_columns(folder / "pages.parquet", PAGES, columns)
    return titles


def write_facts(folder: Path, scan: Scan, resolved: ResolvedTitles, rules: TitleRules) -> tuple[int, int]:
    """Write ``facts.parquet``; values without readable text count in ``value_count`` but make no row.

    Returns:
        The number of facts, and of those whose value links to an article.
    """
    rows = [
        row
        for node, article in enumerate(scan.articles)
        if article.infobox
        for field in sorted(article.infobox.fields, key=lambda field: field.start)
        for row in _list_facts(node, field, resolved, rules)
    ]
    write_rows(folder / "facts.parquet", FACTS, rows)
    return len(rows), sum(row[-1] != -1 for row in rows)


def _list_facts(
    node: int, field: Field, resolved: ResolvedTitles, rules: TitleRules
) -> Iterator[tuple[int | str, ...]]:
    for index, value in enumerate(field.values):
        if not value.text:
            continue
        target = rules.resolve(value.link) if value.link is not None else None
        linked = resolved.find(target.title) if target is not None and target.namespace == 0 else -1
        yield (
            node,
            field.key,
            field.start,
            field.end,
            index,
            len(field.values),
            value.text,
            value.iso,
            value.start,
            value.end,
            value.link_start,
            linked,
        )


def write_names(folder: Path, scan: Scan, resolved: ResolvedTitles, anchor_pages: int) -> int:
    """Write ``redirects.parquet`` and ``aliases.parquet``; returns the number of aliases."""
    rows = []
    for title in sorted(resolved.redirects):
        page = scan.redirects[title][1]
        rows.append((title, resolved.redirects[title], page.page_id, page.revision))
    write_rows(folder / "redirects.parquet", REDIRECTS, rows)
    aliases = list_aliases(scan.articles, resolved.redirects, scan, resolved.targets, anchor_pages)
    write_rows(folder / "aliases.parquet", ALIASES, aliases)
    return len(aliases)


def list_passages(store: PageStore, scan: Scan, report: Callable[[int], None]) -> Iterator[tuple[int, str, str]]:
    """Yield (node, title, plain text) of every article, its infobox as ``Key: value.`` lines first."""
    for node, article in enumerate(scan.articles):
        if node % 256 == 0:
            report(node)
        yield node, article.title, _render_article(article, store.text(node))


def _render_article(article: Article, text: str) -> str:
    facts = "\n".join(render_fields(article.infobox)) if article.infobox else ""
    body = plain_text(text)
    return f"{facts}\n{body}" if facts else body


def render_fields(infobox: Infobox) -> Iterator[str]:
    """Yield ``Key: value; value.`` lines of the fields that say something in words."""
    for field in infobox.fields:
        if field.key.lower().startswith(_SKIPPED_KEYS):
            continue
        values = "; ".join(value for value, _ in groupby(value.text for value in field.values) if value)
        if values:
            yield f"{field.key.replace('_', ' ').capitalize()}: {values}."


def count_reasons(rejected: list[tuple[str, str, str]]) -> dict[str, int]:
    """Count rejections by reason, in alphabetical order."""
    return dict(sorted(Counter(reason for _, reason, _ in rejected).items()))
