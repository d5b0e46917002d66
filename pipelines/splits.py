"""The split of entities and answer keys, decided by hash before anything is generated."""

from collections.abc import Mapping
from dataclasses import dataclass

from pipelines.ids import draw_unit
from schemas.datasets import Split

SHARES: dict[Split, float] = {"sft": 0.6, "rl": 0.3, "eval": 0.1}
"""The shares where a configuration says nothing."""


@dataclass(frozen=True, slots=True)
class SplitRule:
    """Puts names into splits by hash; the shares add up to 1, and a split without a share gets none."""

    shares: Mapping[Split, float]
    seed: int

    def place(self, kind: str, name: str) -> Split:
        """Return the split of a name; ``kind`` is ``entity`` or ``answer``."""
        draw, sft = draw_unit(self.seed, "split", kind, name), self.shares.get("sft", 0.0)
        if draw < sft:
            return "sft"
        return "rl" if draw < sft + self.shares.get("rl", 0.0) else "eval"
