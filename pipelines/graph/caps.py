"""Caps on how many paths of a shard ask for one fact, have one answer or ask for one relation.

Walks of a link graph funnel into few articles. A walk drawn by chance goes elsewhere where one more would be too many
(:class:`Tally`); what a guide walked to is counted the same way before a writer is paid (:func:`find_capped`). A
shard is the largest set whose order nothing else decides, so shares hold for each shard alone, and so for all of them.
Names come first: of dates and numbers there are always enough.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import ceil, floor

from pipelines.graph.answers import type_answer
from pipelines.graph.facts import Attribute, stem_key
from pipelines.ids import draw_unit
from pipelines.names import fold_name
from schemas.datasets import Path
from schemas.proofs import Answer

LEAST = 2
"""Paths that may ask for the same however few a shard has."""


@dataclass(slots=True)
class Tally:
    """What the paths of a shard ask for, counted one after another: none goes over a share of those counted so far.

    Few paths have no shares: ``LEAST`` of them may ask for the same in any case, and each answer of a relation is right
    for one.
    """

    answer_share: float
    """Largest share of one final fact and of one answer."""
    relation_share: float
    """The same of one relation asked for."""
    guess_share: float
    """Largest share of one answer among the paths that ask for its relation: what guessing it would score."""
    whole: int = 0
    """Number of all paths, where it is known: the shares of answers, facts and relations are of them."""
    paths: int = 0
    seen: Counter[tuple[str, str]] = field(default_factory=Counter)

    def find_over(self, asked: Attribute | Path) -> str:
        """Return what one more path to a fact would ask for too often, empty for nothing."""
        count = self.whole or self.paths + 1
        caps = {"answer": _cap(self.answer_share, count), "fact": _cap(self.answer_share, count),
                "relation": _cap(self.relation_share, count)}  # fmt: skip
        keys = _list_keys(asked)
        over = next((kind for kind, cap in caps.items() if self.seen[kind, keys[kind]] >= cap), "")
        most = max(floor(self.guess_share * (self.seen["relation", keys["relation"]] + 1)), 1)
        return over or ("guess" if self.seen["guess", keys["guess"]] >= most else "")

    def add(self, asked: Attribute | Path) -> None:
        """Count a path to a fact."""
        self.paths += 1
        self.seen.update(_list_keys(asked).items())


@dataclass(slots=True)
class Ration:
    """How often the paths of a shard may ask for what a release limits: the shard's part of what earlier rounds left.

    Parts are not whole numbers: a draw decides which shards of a round may ask once more, so that together they ask
    about as often as the limit says, and no shard waits for another.
    """

    most: int
    """Questions of a split that a release keeps with one answer, or about one entity."""
    used: Mapping[tuple[str, str], int]
    """Those of the rounds before, by split and what :meth:`name` says."""
    parts: Mapping[str, float]
    """The shard's part of its round, by split."""
    identity: str
    """Of the shard."""
    seen: Counter[tuple[str, str]] = field(default_factory=Counter)

    @staticmethod
    def name(key: str, page_id: int | None) -> tuple[str, ...]:
        """Return what a question is counted by: its answer's key, and the page that has it."""
        return (f"answer {key}",) if page_id is None else (f"answer {key}", f"page {page_id}")

    def allows(self, split: str, names: Sequence[str]) -> bool:
        """Say whether one more path may ask for it."""
        return all(self.seen[split, name] < self._count_allowed(split, name) for name in names)

    def add(self, split: str, names: Sequence[str]) -> None:
        """Count a path."""
        self.seen.update((split, name) for name in names)

    def _count_allowed(self, split: str, name: str) -> int:
        left = max(self.most - self.used.get((split, name), 0), 0)
        return floor(left * self.parts[split] + draw_unit("ration", self.identity, split, name))


def _list_keys(asked: Attribute | Path) -> dict[str, str]:
    if isinstance(asked, Path):
        typed, end, key = _type_answer(asked), asked.nodes[-1].title, asked.answer_relation
        answer = typed.key if typed else fold_name(asked.answer_text)
    else:
        end, key, answer = str(asked.fact.node), asked.fact.key, asked.answer.key
    relation = stem_key(key)
    return {"fact": f"{relation} of {end}", "answer": answer, "relation": relation, "guess": f"{relation} is {answer}"}


def find_capped(
    paths: Sequence[Path], answer_share: float, relation_share: float, guess_share: float = 1.0
) -> dict[str, str]:
    """Return the record ids of the paths over a cap, each with what is asked too often.

    Args:
        paths: of one shard.
        answer_share: largest share of one final fact and of one answer.
        relation_share: the same of one relation asked for.
        guess_share: largest share of one answer among the kept paths that ask for its relation.
    """
    tally = Tally(answer_share, relation_share, guess_share, len(paths))
    left = sorted(paths, key=lambda path: (not _is_name(path), draw_unit("cap", path.record_id)))
    # Of more paths that ask for a relation one answer may have more: those over are tried again after the others.
    while True:
        over = {}
        for path in left:
            if kind := tally.find_over(path):
                over[path.record_id] = f"{kind} {_list_keys(path)[kind]!r} asked for often enough in {len(paths)} paths"
            else:
                tally.add(path)
        if len(over) == len(left):
            return over
        left = [path for path in left if path.record_id in over]


def _cap(share: float, count: int) -> int:
    return max(ceil(share * count), LEAST)


def _type_answer(path: Path) -> Answer | None:
    return type_answer(path.answer_text, path.answer_iso, path.answer_relation)


def _is_name(path: Path) -> bool:
    answer = _type_answer(path)
    return answer is not None and answer.type in ("name", "string")
