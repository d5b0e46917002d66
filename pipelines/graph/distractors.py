"""Entities that an anchor's picture is held against: of its own type, or a picture of any bridge would do for a bridge.

Who is chosen is decided by a hash of the seed, the anchor's title and the other's, not by numbers of nodes: an entity
more in the corpus takes at most one other's place.
"""

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from functools import lru_cache

from pipelines.backends.protocols import PictureFile
from pipelines.corpus.records import Page
from pipelines.corpus.store import Corpus
from pipelines.errors import ConfigError
from pipelines.ids import draw_unit

MAX_SCANNED = 8_192
"""Articles looked at for a type or a domain; of more, so many at equal distances, which do move when some are added."""
KEPT_POOLS = 512
_SPARE = 64
"""Drawn for a whole type beyond those asked for, in place of the anchor, its path and who shares its picture. The draw
is one for all anchors of the type, so that they share what was encoded."""
_SHOWN_POOLS = 1 << 14


@dataclass(frozen=True, slots=True)
class Pool:
    """Who may be chosen: a type's or a domain's nodes."""

    kind: str
    """``type`` or ``domain``."""
    name: str
    size: int
    seed: int


@dataclass(frozen=True, slots=True)
class Draw:
    """How many are drawn, and by which seed."""

    needed: int
    """Where the type has fewer, others of its domain are added."""
    most: int
    """Of the type."""
    seed: int


def choose_distractors(corpus: Corpus, node: int, draw: Draw, avoid: Collection[int]) -> tuple[int, ...]:
    """Return entities of an anchor's type, those whose picture is at hand before others; then of its domain.

    Never chosen are the anchor, lists, disambiguation pages, and who leads with the anchor's picture.

    Args:
        corpus: the open corpus.
        node: the anchor.
        draw: how many are needed, how many are taken; another seed chooses others.
        avoid: nodes not to be chosen, such as the path's.

    Returns:
        At most ``draw.most`` nodes, and fewer than ``draw.needed`` only when the corpus has no more.
    """
    page = corpus.page(node)
    chosen: list[int] = []
    for kind, name, wanted in (("type", page.type, draw.most), ("domain", page.domain, draw.needed)):
        if not name or len(chosen) >= wanted:
            continue
        pool = _list_pool(corpus, Pool(kind, name, wanted + _SPARE, draw.seed))
        taken = {node, *avoid, *chosen}
        fitting = [other for other in pool if other not in taken and not _shares_picture(corpus, node, other)]
        fitting.sort(key=lambda other: _rank(corpus, page, other, draw.seed))
        chosen += fitting[: wanted - len(chosen)]
    return tuple(chosen)


@lru_cache(maxsize=_SHOWN_POOLS)
def find_lead_picture(corpus: Corpus, node: int) -> PictureFile | None:
    """Return an article's lead picture where it is at hand and can be used, else None."""
    file = corpus.page(node).image
    image = corpus.image(file) if file else None
    if image is None or image.error or not image.path:
        return None
    try:
        return PictureFile(image.sha256, corpus.image_path(file))
    except ConfigError:  # its path leads outside the folder
        return None


def _rank(corpus: Corpus, page: Page, other: int, seed: int) -> tuple[bool, float]:
    title = corpus.page(other).title
    return find_lead_picture(corpus, other) is None, draw_unit("distractor", seed, page.title, title)


def _shares_picture(corpus: Corpus, node: int, other: int) -> bool:
    file = corpus.page(node).image
    if file and corpus.page(other).image == file:
        return True
    own, shown = find_lead_picture(corpus, node), find_lead_picture(corpus, other)
    return own is not None and shown is not None and own.sha256 == shown.sha256


@lru_cache(maxsize=KEPT_POOLS)
def _list_pool(corpus: Corpus, pool: Pool) -> tuple[int, ...]:
    """Return a draw from a type or a domain, those whose article has a picture first."""
    if pool.kind == "type":
        nodes: Iterable[int] = _spread(corpus.nodes_of_type(pool.name).tolist())
    else:
        nodes = (node for node in _spread(corpus.article_nodes()) if corpus.page(node).domain == pool.name)
    drawn = []
    for node in nodes:
        page = corpus.page(node)
        if not page.is_list and not page.is_disambiguation:
            drawn.append((not page.image, draw_unit("pool", pool.seed, pool.name, page.title), node))
    return tuple(node for _, _, node in sorted(drawn)[: pool.size])


def _spread(nodes: list[int] | range) -> list[int] | range:
    """Return some nodes at equal distances, ``MAX_SCANNED`` at most."""
    return nodes[:: -(-len(nodes) // MAX_SCANNED)] if nodes else nodes
