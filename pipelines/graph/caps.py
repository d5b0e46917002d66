"""Caps on how many paths of a shard ask for one fact, have one answer or ask for one relation.

Walks of a link graph funnel into few articles. What is over the caps is known when a shard's paths are drawn, before
a writer is paid. A shard is the largest set whose order nothing else decides, so shares hold for each shard alone, and
so for all of them. Names come first: of dates and numbers there are always enough.
"""

from collections import Counter
from collections.abc import Sequence
from math import ceil

from pipelines.graph.answers import type_answer
from pipelines.graph.facts import stem_key
from pipelines.ids import draw_unit
from pipelines.names import fold_name
from schemas.datasets import Path

LEAST = 2
"""Paths that may ask for the same however few a shard has."""


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
