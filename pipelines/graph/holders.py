"""Draws of articles, the same in every run, whatever the size of the corpus."""

from collections.abc import Iterable

import numpy as np
import numpy.typing as npt

from pipelines.corpus.store import Corpus
from pipelines.graph.relations import split_key as split_key
from pipelines.graph.relations import stem_key as stem_key
from pipelines.ids import draw_unit

DRAWN_FROM = 50
"""Nodes looked at for each that is drawn: of more, so many at even distances are taken first."""


def sample_nodes(corpus: Corpus, count: int) -> list[int]:
    """Return at most about ``count`` nodes of a corpus, ascending: all, or those that a hash draws."""
    nodes = corpus.article_nodes()
    if len(nodes) <= count:
        return list(nodes)
    return [node for node in nodes if draw_unit("sample", node) < count / len(nodes)]


def draw_nodes(nodes: Iterable[int] | npt.NDArray[np.uint32], count: int, *parts: object) -> list[int]:
    """Return ``count`` of some nodes, the same for the same nodes and parts, ascending."""
    ordered = np.sort(np.fromiter(nodes, dtype=np.int64))
    looked_at = ordered[:: max(1, len(ordered) // (count * DRAWN_FROM))].tolist()
    drawn = sorted(looked_at, key=lambda node: (draw_unit(*parts, node), node))[:count]
    return sorted(drawn)
