"""Other names of an article, from its title, redirects, lead and the texts of links to it."""

from collections.abc import Iterator, Mapping, Sequence

from pipelines.corpus.scan import Article, Scan
from pipelines.corpus.titles import strip_qualifier

SOURCES = ("title", "title-base", "redirect", "bold", "anchor")
"""Where an alias may come from; one found twice keeps the earlier source."""

AliasRow = tuple[int, str, str]


def list_aliases(
    articles: Sequence[Article],
    redirects: Mapping[str, int],
    scan: Scan,
    target_nodes: Sequence[int],
    anchor_pages: int,
) -> list[AliasRow]:
    """Return (node, alias, source) sorted by node and alias, each alias of a node once.

    Args:
        articles: in node order.
        redirects: node by redirect title.
        scan: the anchors found.
        target_nodes: node of each target number of the scan, -1 when it is no article.
        anchor_pages: an anchor text counts when this many articles, or one infobox, use it.
    """
    found: dict[tuple[int, str], str] = {}
    for source, names in (
        ("title", ((node, article.title) for node, article in enumerate(articles))),
        ("title-base", ((node, strip_qualifier(article.title)) for node, article in enumerate(articles))),
        ("redirect", ((node, title) for title, node in redirects.items())),
        ("bold", ((node, name) for node, article in enumerate(articles) for name in article.bold)),
        ("anchor", _list_anchors(scan, target_nodes, anchor_pages)),
    ):
        for node, name in names:
            if len(name) > 1 or source in ("title", "redirect"):
                found.setdefault((node, name), source)
    return sorted((node, name, source) for (node, name), source in found.items())


def _list_anchors(scan: Scan, target_nodes: Sequence[int], anchor_pages: int) -> Iterator[tuple[int, str]]:
    for anchor, count in scan.anchors.items():
        number, text = anchor
        if target_nodes[number] < 0 or not any(character.isalpha() for character in text):
            continue
        if count >= anchor_pages or anchor in scan.infobox_anchors:
            yield target_nodes[number], text
