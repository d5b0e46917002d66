"""Balance of what a shard's walks ask for: the wanted shares of types of answers, and relations alike.

Most of what infoboxes hold are dates and numbers, and most of these are of few relations. What may be asked at the end
of a walk is drawn by the wanted share of its type, each relation of a type as likely as any other however many ends
have it. What checks refuse afterwards moves the shares: they are aims; :mod:`pipelines.graph.caps` has the bounds.
"""

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Self

from pipelines.graph.facts import Attribute, stem_key
from pipelines.ids import draw_unit
from schemas.proofs import AnswerType


@dataclass(frozen=True, slots=True)
class Balance:
    """How what may be asked at the ends of a shard's walks is weighed."""

    wanted: Mapping[AnswerType, float]
    """Wanted share of each type of answer; 0 is never asked for."""
    held: Mapping[str, int] = field(default_factory=dict)
    """How many ends hold each relation, by its stem."""
    kinds: Mapping[AnswerType, int] = field(default_factory=dict)
    """How many relations have answers of a type."""

    @classmethod
    def of(cls, wanted: Mapping[AnswerType, float], ends: Mapping[int, Sequence[Attribute]]) -> Self:
        """Return the balance of a shard.

        Args:
            wanted: share of each type of answer.
            ends: of its first walks, with what may be asked there.
        """
        held: Counter[str] = Counter()
        kinds: defaultdict[AnswerType, set[str]] = defaultdict(set)
        for attribute in chain.from_iterable(ends.values()):
            held[stem_key(attribute.fact.key)] += 1
            kinds[attribute.answer.type].add(stem_key(attribute.fact.key))
        return cls(wanted, held, {kind: len(stems) for kind, stems in kinds.items()})

    def order(
        self, attributes: Sequence[Attribute], identity: int, weigh: Callable[[Attribute], float]
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
