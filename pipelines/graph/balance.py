"""Balance of what a shard's walks ask for: types of answers, relations, and final facts.

Walks of a link graph funnel into few articles, and most of what infoboxes hold are dates and numbers. Which walk ends
where is known when the first walks of a shard are drawn, before anything is checked or paid: an article at which too
many end is let pass as often as its share allows, and the walk is drawn again; what may be asked at an end is drawn by
the wanted shares of types, each relation of a type as likely as any other however many pages have it. What checks
refuse afterwards moves the shares: they are aims, and the caps of :mod:`pipelines.graph.caps` are bounds.
"""

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from math import ceil
from typing import Self

from pipelines.graph.caps import LEAST
from pipelines.graph.facts import Attribute, stem_key
from pipelines.graph.walks import Walk
from pipelines.ids import draw_unit
from schemas.proofs import AnswerType


@dataclass(frozen=True, slots=True)
class Balance:
    """How often each end of a shard's walks is let pass, and how what may be asked there is weighed."""

    wanted: Mapping[AnswerType, float]
    """Wanted share of each type of answer; 0 is never asked for."""
    rates: Mapping[int, float] = field(default_factory=dict)
    """By end, the share of the walks to it that are let pass; 1 for others."""
    held: Mapping[str, int] = field(default_factory=dict)
    """How many ends hold each relation, by its stem."""
    kinds: Mapping[AnswerType, int] = field(default_factory=dict)
    """How many relations have answers of a type."""

    @classmethod
    def of(cls, wanted: Mapping[AnswerType, float], ends: Iterable[tuple[int, Walk]], share: float) -> Self:
        """Return the balance of a shard.

        Args:
            wanted: share of each type of answer.
            ends: of its first walks: the node and the walk.
            share: largest share of the walks that may ask one end; 1 for no bound.
        """
        count: Counter[int] = Counter()
        asked: dict[int, Sequence[Attribute]] = {}
        for node, walk in ends:
            count[node] += 1
            asked[node] = walk.attributes
        most = max(ceil(share * count.total()), LEAST)
        held: Counter[str] = Counter()
        kinds: defaultdict[AnswerType, set[str]] = defaultdict(set)
        for attributes in asked.values():
            for attribute in attributes:
                held[stem_key(attribute.fact.key)] += 1
                kinds[attribute.answer.type].add(stem_key(attribute.fact.key))
        rates = {node: most / walks for node, walks in count.items() if walks > most}
        return cls(wanted, rates, held, {kind: len(stems) for kind, stems in kinds.items()})

    def passes(self, node: int, identity: int) -> bool:
        """Say whether a walk that ends at a node is kept."""
        return draw_unit("end", identity) < self.rates.get(node, 1.0)

    def order(
        self, attributes: Sequence[Attribute], identity: int, weigh: Callable[[Attribute], float] = lambda each: 1.0
    ) -> tuple[Attribute, ...]:
        """Return the attributes that may be asked for, drawn one after another by their weights.

        Efraimidis and Spirakis: a number of which the least is drawn first, for each by itself.
        """
        keyed = []
        for attribute in attributes:
            weight = weigh(attribute) * self._weigh(attribute)
            if weight > 0:
                unit = draw_unit("ask", identity, attribute.fact.key)
                keyed.append((-math.log(1.0 - unit) / weight, attribute.fact.start, attribute.fact.key, attribute))
        return tuple(entry[-1] for entry in sorted(keyed, key=lambda entry: entry[:-1]))

    def _weigh(self, attribute: Attribute) -> float:
        kind = attribute.answer.type
        spread = self.kinds.get(kind, 1) * self.held.get(stem_key(attribute.fact.key), 1)
        return self.wanted.get(kind, 0.0) / spread
