"""The odds of a guesser who reads a question, does not see its picture, and knows the corpus.

Without the picture the anchor may be any entity of its type. Each of them leads to an answer or to none, and an answer
that half of them lead to is guessed half the time: what the question's own answer has of them is its gold share.
"""

from collections import Counter
from dataclasses import dataclass

import numpy as np

from pipelines.graph.facts import Nodes
from pipelines.graph.query import (
    MAX_ANCHORS,
    MENTIONS,
    Indexes,
    Query,
    find_only_answer,
    join_sides,
    list_anchors,
)
from schemas.proofs import Count, Proof

SAMPLED = 1_000
"""Entities of the anchor's type that are tried; of more, so many are drawn. A share of a quarter is then right within
three points nineteen times in twenty, if each leads to an answer."""
_SPREAD = np.uint32(2_654_435_761)
"""Knuth's multiplier: page numbers times it lie in an order that no property of pages follows."""


@dataclass(frozen=True, slots=True)
class Odds:
    """What a question's words allow where nobody sees its picture."""

    anchors: int
    """Entities of the anchor's type from which the query has one answer."""
    answers: int
    """Distinct answers over them (N_img)."""
    gold: int
    """How many of them have the question's own answer."""
    capped: bool
    """Whether not all entities of the type were tried."""

    @property
    def share(self) -> float:
        """The gold share, 0 to 1; 1.0 where no entity has an answer, so that nothing is fine by not being found."""
        return self.gold / self.anchors if self.anchors else 1.0

    def as_counts(self, countable: bool) -> tuple[Count, ...]:
        """Return the proof's counts, the last of them only where the gold share can be counted."""
        numbers = {"anchors": self.anchors, "answers": self.answers} | ({"gold": self.gold} if countable else {})
        return tuple(Count(name=name, node=0, value=n, capped=self.capped) for name, n in numbers.items())  # type: ignore[arg-type]


def is_countable(query: Query) -> bool:
    """Say whether other anchors can be asked the same: not where a step or the answer is quoted from one page."""
    return not query.answer_clause and all(hop.relation != MENTIONS or hop.field for hop in query.hops)


def count_odds(ground: Indexes, query: Query, anchor_type: str, gold: str, least: int, sampled: int = SAMPLED) -> Odds:
    """Count the answers of a query over the entities of the anchor's type."""
    admitted = join_sides(ground, query)
    nodes = list_anchors(ground, query, anchor_type, admitted)
    found: Counter[str] = Counter()
    tried = 0
    for node in draw_anchors(nodes).tolist():
        if tried >= sampled and len(found) >= least:
            break
        tried += 1
        answer = find_only_answer(ground, query, node, admitted)
        found.update([answer] if answer else [])
    return Odds(found.total(), len(found), found[gold], tried < len(nodes))


def draw_anchors(nodes: Nodes, most: int = MAX_ANCHORS) -> Nodes:
    """Return at most so many of distinct nodes, mixed: the first of an ascending list are the oldest pages."""
    # The multiplier is odd, so no two nodes have one key: the smallest keys, sorted, are the start of the whole order.
    keys = nodes * _SPREAD
    chosen = np.argpartition(keys, most)[:most] if most < len(nodes) else np.arange(len(nodes))
    return nodes[chosen[np.argsort(keys[chosen])]]


def read_gold_share(proof: Proof) -> float | None:
    """Return the gold share by a proof's own counts; None where it was not counted."""
    counted = {count.name: count.value for count in proof.counts if count.node == 0}
    if "gold" not in counted:
        return None
    return counted["gold"] / counted["anchors"] if counted.get("anchors") else 1.0
