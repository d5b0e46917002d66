"""What the paths of a shard ask for: a balance of types of answers, and caps on facts, answers and relations.

Walks of a link graph funnel into few articles. A walk, guided or not, goes elsewhere where one more would be too many
(:class:`Tally`). A shard is the largest set whose order nothing else decides, so shares hold for each shard alone, and
so for all of them.
"""

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from math import ceil, floor
from typing import Self

from pipelines.graph.facts import Attribute, stem_key
from pipelines.ids import draw_unit
from schemas.proofs import AnswerType

LEAST, LEAST_ALIKE = 2, 5
"""Paths that may ask for the same, or by the same relation, however few a shard has."""


@dataclass(slots=True)
class Tally:
    """What the paths of a shard ask for, counted one after another: none goes over a share of those counted so far.

    Few paths have no shares: ``LEAST`` of them may ask for the same in any case, ``LEAST_ALIKE`` by one relation, and
    each answer of a relation is right for one.
    """

    answer_share: float
    """Largest share of one final fact and of one answer."""
    relation_share: float
    """The same of one relation asked for."""
    guess_share: float
    """Largest share of one answer among the paths that ask for its relation: what guessing it would score."""
    paths: int = 0
    seen: Counter[tuple[str, str]] = field(default_factory=Counter)

    def find_over(self, asked: Attribute) -> str:
        """Return what one more path to a fact would ask for too often, empty for nothing."""
        same = max(ceil(self.answer_share * (self.paths + 1)), LEAST)
        alike = max(ceil(self.relation_share * (self.paths + 1)), LEAST_ALIKE)
        keys = _list_keys(asked)
        guess = max(floor(self.guess_share * (self.seen["relation", keys["relation"]] + 1)), 1)
        most = {"answer": same, "fact": same, "relation": alike, "guess": guess}
        return next((kind for kind, cap in most.items() if self.seen[kind, keys[kind]] >= cap), "")

    def add(self, asked: Attribute) -> None:
        """Count a path to a fact."""
        self.paths += 1
        self.seen.update(_list_keys(asked).items())


@dataclass(slots=True)
class Ration:
    """How often the paths of a shard may ask for what a release limits: the shard's part of what earlier rounds left.

    Of an answer, and of an entity asked about, a draw decides which shards of a round may ask once more where parts are
    not whole: together they ask about as often as the limit says, and no shard waits for another. An answer of a
    relation, which is rarely kept more than once, each shard may ask for once.
    """

    most: int
    """Questions of a split that a release keeps with one answer, or about one entity."""
    share: float
    """Largest share of one answer among those that ask for its relation; each is kept once in any case."""
    used: Mapping[tuple[str, str], int]
    """Questions of the rounds before, by split and what :func:`list_marks` says."""
    parts: Mapping[str, float]
    """The shard's part of its round, by split."""
    identity: str
    """Of the shard."""
    seen: Counter[tuple[str, str]] = field(default_factory=Counter)

    def allows(self, split: str, marks: Sequence[str]) -> bool:
        """Say whether one more path may ask for it."""
        answer, page, relation, guess = ((split, mark) for mark in marks)
        rationed = all(self.seen[mark] < self._count_allowed(mark) for mark in (answer, page))
        often = max(floor(self.share * self.used.get(relation, 0)), 1) - self.used.get(guess, 0)
        return rationed and (self.share >= 1.0 or self.seen[guess] < often)

    def add(self, split: str, marks: Sequence[str]) -> None:
        """Count a path."""
        self.seen.update((split, mark) for mark in marks)

    def _count_allowed(self, mark: tuple[str, str]) -> int:
        left = max(self.most - self.used.get(mark, 0), 0)
        return floor(left * self.parts[mark[0]] + draw_unit("ration", self.identity, *mark))


def list_marks(answer: str, page_id: int, relation: str) -> tuple[str, str, str, str]:
    """Return what a question is counted by: its answer, the page that has it, the relation asked for, and both."""
    stem = stem_key(relation)
    return f"answer {answer}", f"page {page_id}", f"relation {stem}", f"guess {stem} {answer}"


def _list_keys(asked: Attribute) -> dict[str, str]:
    relation, answer = stem_key(asked.fact.key), asked.answer.key
    fact = f"{relation} of {asked.fact.node}"
    return {"fact": fact, "answer": answer, "relation": relation, "guess": f"{relation} is {answer}"}


@dataclass(frozen=True, slots=True)
class Balance:
    """The weights of what may be asked at the ends of a shard's walks: wanted shares of types, and relations alike.

    Most of what infoboxes hold are dates and numbers, and most of these are of few relations. What may be asked at the
    end of a walk is drawn by the wanted share of its type, each relation of a type as likely as any other however many
    ends have it. Checks refuse some of it afterwards, so the shares are aims; the caps are bounds.
    """

    wanted: Mapping[AnswerType, float]
    """Wanted share of each type of answer; 0 is never asked for."""
    held: Mapping[str, int] = field(default_factory=dict)
    """How many ends hold each relation, by its stem."""
    kinds: Mapping[AnswerType, int] = field(default_factory=dict)
    """How many relations have answers of a type."""

    @classmethod
    def of(cls, wanted: Mapping[AnswerType, float], ends: Mapping[int, Sequence[Attribute]]) -> Self:
        """Return the balance of a shard."""
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
