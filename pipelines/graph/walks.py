"""Constrained walks over the link graph (OpenSearch-VL, section 3.1 and appendix D.1).

The published walk tries at random and gives up after ten dead ends. Ours looks ahead: for every split and number of
steps left it knows which entities can still end at an answer, so a walk fails only on cycles and unreadable sentences.

That is another distribution than the published one. The look-ahead asks whether a walk can be completed from a node,
not in how many ways: of two bridges, one leading on by 1 of its 10 links and the other by 10 of 10, each gets half of
the walks, where drawing failed walks again from the start gives the first 1 of 11 (9.1%). So answers behind narrow
bridges are drawn more often than published. ``WalkRules.look_ahead = False`` draws as published: any allowed link is a
step, a walk that ends where there is no answer fails as ``out-of-reach``, and the stage's ``walks`` are the tries.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path

import numpy as np
import numpy.typing as npt

from pipelines.corpus.store import Corpus, Fact
from pipelines.corpus.wikitext import WikiLink
from pipelines.graph.clauses import Clause, make_clause
from pipelines.graph.draws import draw_units, make_keys
from pipelines.graph.reach import (
    REACH_VERSION,
    SPLITS,
    Bits,
    Marks,
    digest_tables,
    extend_reach,
    find_bit,
    keep_marks,
    place_answers,
    read_flags,
    show_mark,
)
from pipelines.graph.relations import Attribute, RelationIndex, read_attributes, read_relations
from pipelines.graph.sampling import REASONS, Draw, Mask, Numbers, Rows, Sampled, Starts, Terrain, sample_walks
from pipelines.graph.splits import SplitRule
from pipelines.ids import digest_value
from schemas.seeds import Split

__all__ = ["SPLITS", "Drawn", "Move", "Order", "Walk", "WalkGraph", "WalkRules", "find_hub_threshold"]

KEPT_PAGES = 1024
KEPT_SENTENCES = 1 << 14
_LENGTH, _ATTRIBUTE = 1 << 32, (1 << 32) + 1
"""What is drawn beside the steps; their counters are far above those of any step."""


@dataclass(frozen=True, slots=True)
class WalkRules:
    """What a walk may do."""

    hops: tuple[int, ...]
    weights: tuple[float, ...]
    hub_in_degree: int
    """Entities with more incoming links are never stepped on."""
    text_hops: bool
    """Whether a link in a sentence may be a hop too."""
    max_answer_tokens: int
    splits: SplitRule
    relation_preference: float = 1.0
    """Probability that a step looks for an infobox relation first; at 1 a link is taken only where none leads on."""
    look_ahead: bool = True
    """Whether a step is taken only where an answer is in reach. A walk's length is always one that can be walked, which
    leaves the distribution of walks drawn again from the start as it is: the other lengths never end at an answer."""


@dataclass(frozen=True, slots=True)
class Move:
    """One step of a walk: along an infobox relation (``fact``) or a link in a sentence (``clause``)."""

    target: int
    fact: Fact | None
    link: WikiLink | None
    clause: Clause | None


@dataclass(frozen=True, slots=True)
class Walk:
    """A walk that reached an answer: the moves from the seed and the attributes at its end."""

    moves: tuple[Move, ...]
    attributes: tuple[Attribute, ...]
    """Those that may be asked for, in the order in which they are to be tried; one at least."""


@dataclass(frozen=True, slots=True)
class Order:
    """A walk to be drawn. The same order gives the same walk, whatever is drawn with it."""

    node: int
    split: Split
    identity: int
    """64 bits that name the walk."""
    length: int = 0
    """In hops; 0 draws one of those that :meth:`WalkGraph.lengths_from` returns."""


@dataclass(frozen=True, slots=True, eq=False)
class Drawn:
    """A drawn walk as numbers; :meth:`WalkGraph.read_walk` looks up what it stands for."""

    order: Order
    sampled: Sampled
    """The walks that were drawn together."""
    row: int
    choice: float
    """Which attribute is asked for, in [0, 1)."""

    @property
    def refused(self) -> dict[str, int]:
        """How many links were looked at and not taken, by reason; reasons that occurred alone."""
        counts = zip(REASONS, self.sampled.refused[self.row].tolist(), strict=True)
        return {reason: count for reason, count in counts if count}


class WalkGraph:
    """A corpus with the rules applied: who may be stepped on, and who still leads to an answer.

    Nothing is read before the first walk: a run whose paths are complete asks for the rules alone.

    Args:
        corpus: what is walked over.
        rules: of the walks.
        relations: of the corpus.
        kept: folder where the marks of the look-ahead are kept, so that they are computed once and then mapped.
    """

    def __init__(self, corpus: Corpus, rules: WalkRules, relations: RelationIndex, kept: Path | None = None) -> None:
        self.corpus = corpus
        self.rules = rules
        self.relations = relations
        self._kept = kept
        self._links_of = lru_cache(maxsize=KEPT_PAGES)(self._find_links)
        self._sentence_of = lru_cache(maxsize=KEPT_SENTENCES)(self._find_sentence)

    @cached_property
    def flags(self) -> Bits:
        """Why an article may not be stepped on: list, disambiguation page, hub; 0 when it may."""
        return read_flags(self.corpus, self.rules.hub_in_degree)

    @cached_property
    def marks(self) -> Marks:
        """From where each split's answers can be reached, see :mod:`pipelines.graph.reach`."""
        if self._kept is None:
            return self._find_marks()
        rules = self.rules
        decides = [max(rules.hops), rules.hub_in_degree, rules.text_hops, rules.max_answer_tokens, repr(rules.splits)]
        name = digest_value([REACH_VERSION, digest_tables(), self.corpus.digest, decides])[:16]
        return keep_marks(self._kept / f"reach-{name}.npy", len(self.corpus.article_nodes()), self._find_marks)

    @cached_property
    def terrain(self) -> Terrain:
        """The arrays that are walked on."""
        related, links = self._edges
        return Terrain(links, related, self.flags, self.marks)

    def can_reach(self, split: Split, left: int) -> Mask:
        """Return for each node whether so many more steps can end at an answer of the split."""
        return show_mark(self.marks, split, left, max(self.rules.hops))

    def lengths_from(self, node: int, split: Split) -> list[tuple[int, float]]:
        """Return the path lengths that can be walked from a seed, with their weights, which are above 0."""
        marks = int(self.marks[node]) >> find_bit(split, max(self.rules.hops))
        return [(h, w) for h, w in zip(self.rules.hops, self.rules.weights, strict=True) if w > 0 and marks >> h & 1]

    def draw_walks(self, orders: Sequence[Order], seed: int) -> list[Drawn]:
        """Draw walks, all at once.

        Raises:
            ValueError: no length can be walked from a node.
        """
        if not orders:
            return []
        identities = np.asarray([order.identity for order in orders], dtype=np.uint64)
        keys = make_keys(seed, identities)
        nodes = np.asarray([order.node for order in orders], dtype=np.int64)
        bits = np.asarray([find_bit(order.split, max(self.rules.hops)) for order in orders], dtype=np.uint16)
        lengths = np.asarray([order.length for order in orders], dtype=np.int64)
        lengths = np.where(lengths > 0, lengths, self._draw_lengths(nodes, bits, draw_units(keys, _LENGTH)))
        if not lengths.all():
            raise ValueError(f"no answer in reach of node {int(nodes[lengths == 0][0])}: look at lengths_from first")
        draw = Draw(seed, relation_preference=self.rules.relation_preference, look_ahead=self.rules.look_ahead)
        sampled = sample_walks(self.terrain, Starts(nodes, lengths, identities, bits), draw, self._read_links)
        choices = draw_units(keys, _ATTRIBUTE).tolist()
        return [Drawn(order, sampled, row, choices[row]) for row, order in enumerate(orders)]

    def read_walk(self, drawn: Drawn) -> Walk | None:
        """Return what a drawn walk stands for; None when it ended early."""
        sampled, row = drawn.sampled, drawn.row
        if not sampled.whole[row]:
            return None
        steps = int((sampled.edges[row] >= 0).sum())
        nodes, edges, related = (array[row].tolist() for array in (sampled.nodes, sampled.edges, sampled.related))
        moves = tuple(self._read_move(nodes[step], edges[step], related[step]) for step in range(steps))
        attributes = self.read_split_attributes(nodes[steps], drawn.order.split)
        first = int(drawn.choice * len(attributes))
        return Walk(moves, (*attributes[first:], *attributes[:first])) if attributes else None

    def read_split_attributes(self, node: int, split: Split) -> list[Attribute]:
        """Return a page's attributes whose answer key belongs to the split."""
        attributes = read_attributes(self.corpus, node, self.rules.max_answer_tokens)
        return [a for a in attributes if self.rules.splits.place("answer", a.answer.key) == split]

    def _find_marks(self) -> Marks:
        rules = self.rules
        ends = place_answers(self.corpus, rules.splits, rules.max_answer_tokens, self.flags)
        return extend_reach(ends, [rows for rows in self._edges if rows is not None], self.flags, max(rules.hops))

    @cached_property
    def _edges(self) -> tuple[Rows, Rows | None]:
        """Relations, and links when a walk may go along them."""
        graph = self.corpus.graph
        links = Rows(graph.offsets, graph.targets) if self.rules.text_hops else None
        return Rows(self.relations.offsets, self.relations.objects), links

    def _draw_lengths(self, nodes: Numbers, bits: npt.NDArray[np.uint16], units: npt.NDArray[np.float64]) -> Numbers:
        """Return a length for each walk by the weights of those in reach; 0 where there is none."""
        hops = np.asarray([*self.rules.hops, 0], dtype=np.int64)
        marks = (self.marks.take(nodes) >> bits).astype(np.int64)
        open_ = (marks[:, None] >> hops[:-1]) & 1
        ends = np.cumsum(open_ * np.asarray(self.rules.weights), axis=1)
        lengths: Numbers = hops[(units[:, None] * ends[:, -1:] >= ends).sum(axis=1)]
        return lengths

    def _read_move(self, node: int, edge: int, related: bool) -> Move:
        if related:
            fact = read_relations(self.corpus, node)[edge - int(self.relations.offsets[node])]
            return Move(fact.target, fact, None, None)
        link, clause = self._sentence_of(node, edge) or (None, None)
        return Move(int(self.corpus.graph.targets[edge]), None, link, clause)

    def _read_links(self, nodes: npt.NDArray[np.int32], edges: Numbers) -> Mask:
        """Return which links stand in a sentence that can be put into words."""
        pairs = zip(nodes.tolist(), edges.tolist(), strict=True)
        return np.asarray([self._sentence_of(node, edge) is not None for node, edge in pairs], dtype=bool)

    def _find_sentence(self, node: int, edge: int) -> tuple[WikiLink, Clause] | None:
        link = self._links_of(node).get(int(self.corpus.graph.positions[edge]))
        clause = None if link is None else make_clause(self.corpus.text(node), link, ())
        return None if link is None or clause is None else (link, clause)

    def _find_links(self, node: int) -> dict[int, WikiLink]:
        return {link.start: link for link in self.corpus.links(node)}


def find_hub_threshold(in_degree: npt.NDArray[np.uint32], hub_in_degree: int, hub_share: float, small: bool) -> int:
    """Return the in-degree above which an article is a hub.

    The paper's 10,000 is the top 0.03% of enwiki; on a small corpus the share decides, and there is at least one hub.
    """
    if not small or not len(in_degree):
        return hub_in_degree
    hubs = max(1, round(len(in_degree) * hub_share))
    ordered = np.sort(in_degree)[::-1]
    return min(hub_in_degree, int(ordered[min(hubs, len(ordered) - 1)]))
