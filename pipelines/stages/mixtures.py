"""Mixtures: walked questions and those of pools together, each pool with its share of all.

What is taken of a pool is drawn by hash, so that neither the order of rows nor a row more changes the rest.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

from pipelines.ids import digest_value, draw_unit
from pipelines.services.prompting import WithoutModels
from schemas.base import Record, Rejection
from schemas.datasets import Grounding

WALKED = ""
"""In place of a pool's name: the questions that were made here."""


@dataclass(frozen=True, slots=True)
class Mixtures(WithoutModels):
    """The stage: questions of pools in, those of each pool's share out.

    No question that was made here is left out, and a pool without a share gives all it has.
    """

    shares: Mapping[str, float]
    """By pool, of all questions; 0 for one that gives all it has."""
    seed: int
    name: str = "mixtures"
    version: int = 1
    inputs: ClassVar[tuple[type[Record], ...]] = (Grounding,)
    output: ClassVar[type[Record]] = Grounding

    def fingerprint(self) -> str:
        return digest_value([dict(self.shares), self.seed])

    def __call__(self, inputs: Sequence[Iterable[Grounding]]) -> Iterator[Grounding | Rejection]:
        drawn: dict[str, list[tuple[float, str]]] = {}
        for rows in inputs:
            for row in rows:
                draw = draw_unit(self.seed, "mixture", row.record_id)
                drawn.setdefault(_name_pool(row), []).append((draw, row.record_id))
        quotas = find_quotas({pool: len(rows) for pool, rows in drawn.items()}, self.shares)
        kept = {record_id for pool, rows in drawn.items() for _, record_id in sorted(rows)[: quotas[pool]]}
        for rows in inputs:
            for row in rows:
                if row.record_id in kept:
                    yield row
                    continue
                pool = _name_pool(row)
                detail = f"{quotas[pool]} questions are {self.shares[pool]:.1%} of all, the share of {pool}"
                yield Rejection(record_id=row.record_id, reason="over-share", detail=detail)


class WalkedMixtures(Mixtures):
    """The same with the questions that were made here as a second input."""

    inputs: ClassVar[tuple[type[Record], ...]] = (Grounding, Grounding)


def _name_pool(row: Grounding) -> str:
    return row.origin.pool if row.origin else WALKED


def find_quotas(counts: Mapping[str, int], shares: Mapping[str, float]) -> dict[str, int]:
    """Return how many questions of each source are taken.

    Sources without a share give all they have, and with them the others' shares say how many there are in all. Where
    every source has a share, the scarcest says it. A pool that has too few gives all it has.
    """
    whole = sum(count for pool, count in counts.items() if not shares.get(pool))
    limited = {pool: share for pool, share in shares.items() if share}
    left = 1.0 - sum(limited.values())
    total = whole / left if whole and left > 0.0 else min(
        (counts.get(pool, 0) / share for pool, share in limited.items()), default=0.0
    )  # fmt: skip
    return {
        pool: min(count, round(limited[pool] * total)) if pool in limited else count for pool, count in counts.items()
    }


def list_unmet(counts: Counter[str], shares: Mapping[str, float]) -> Iterator[tuple[str, float, float]]:
    """Yield each pool that has less than its share of all, beyond what rounding takes: its name, share and part."""
    total = counts.total()
    for pool, share in shares.items():
        if share and counts[pool] < share * total - 1.0:
            yield pool, share, counts[pool] / total
