"""Caps on how many paths of a shard ask for one fact, have one answer or ask for one relation.

Walks of a link graph funnel into few articles. A walk drawn by chance goes elsewhere where one more would be too many
(:class:`Tally`); what a guide walked to is known to be over the caps before a writer is paid (:func:`find_capped`). A
shard is the largest set whose order nothing else decides, so shares hold for each shard alone, and so for all of them.
Names come first: of dates and numbers there are always enough.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from math import ceil, floor

from pipelines.graph.answers import type_answer
from pipelines.graph.facts import Attribute, stem_key
from pipelines.ids import draw_unit
from pipelines.names import fold_name
from schemas.datasets import Path

LEAST = 2
"""Paths that may ask for the same however few a shard has."""


@dataclass(slots=True)
class Tally:
    """What the paths of a shard ask for, counted as they are drawn, so that no share is exceeded at any time."""

    answer_share: float
    """Largest share of one final fact and of one answer."""
    relation_share: float
    """The same of one relation asked for."""
    guess_share: float
    """Largest share of one answer among the paths that ask for its relation: what guessing it would score."""
    paths: int = 0
    seen: Counter[tuple[str, str]] = field(default_factory=Counter)

    def find_over(self, attribute: Attribute) -> str:
        """Return what one more path to a fact would ask for too often, empty for nothing."""
        caps = {"answer": _cap(self.answer_share, self.paths + 1), "fact": _cap(self.answer_share, self.paths + 1),
                "relation": _cap(self.relation_share, self.paths + 1)}  # fmt: skip
        keys = _list_keys(attribute)
        relation, guess = keys["relation"], keys["guess"]
        if self.seen["guess", guess] >= max(floor(self.guess_share * (self.seen["relation", relation] + 1)), 1):
            return "guess"
        return next((kind for kind, cap in caps.items() if self.seen[kind, keys[kind]] >= cap), "")

    def add(self, attribute: Attribute) -> None:
        """Count a path to a fact."""
        self.paths += 1
        self.seen.update(_list_keys(attribute).items())


def _list_keys(attribute: Attribute) -> dict[str, str]:
    relation, answer = stem_key(attribute.fact.key), attribute.answer.key
    return {"fact": f"{relation} of {attribute.fact.node}", "answer": answer, "relation": relation,
            "guess": f"{relation} is {answer}"}  # fmt: skip


def find_capped(paths: Sequence[Path], answer_share: float, relation_share: float) -> dict[str, str]:
    """Return the record ids of the paths over a cap, each with what is asked too often.

    Args:
        paths: of one shard.
        answer_share: largest share of one final fact and of one answer.
        relation_share: the same of one relation asked for.
    """
    caps = {"answer": _cap(answer_share, len(paths)), "fact": _cap(answer_share, len(paths)),
            "relation": _cap(relation_share, len(paths))}  # fmt: skip
    seen: Counter[tuple[str, str]] = Counter()
    refused = {}
    for path in sorted(paths, key=lambda path: (not _is_name(path), draw_unit("cap", path.record_id))):
        relation = stem_key(path.answer_relation)
        keys = (("fact", f"{relation} of {path.nodes[-1].title}"), ("answer", fold_name(path.answer_text)),
                ("relation", relation))  # fmt: skip
        over = next((key for key in keys if seen[key] >= caps[key[0]]), None)
        if over is None:
            seen.update(keys)
        else:
            refused[path.record_id] = f"{over[0]} {over[1]!r} of more than {caps[over[0]]} paths of {len(paths)}"
    return refused


def _cap(share: float, count: int) -> int:
    return max(ceil(share * count), LEAST)


def _is_name(path: Path) -> bool:
    answer = type_answer(path.answer_text, path.answer_iso, path.answer_relation)
    return answer is not None and answer.type in ("name", "string")
