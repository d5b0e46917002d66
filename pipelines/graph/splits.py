"""Which split an entity or an answer key belongs to, decided by hash before anything is generated.

A path may start, end and be answered only inside one split, so no anchor, answer node or answer key can be shared.
"""

from dataclasses import dataclass

from pipelines.ids import draw_unit
from schemas.seeds import Split


@dataclass(frozen=True, slots=True)
class SplitRule:
    """Shares of the splits; they add up to 1."""

    sft: float
    rl: float
    eval: float
    seed: int

    def place(self, kind: str, name: str) -> Split:
        """Return the split of a name; ``kind`` is ``entity`` or ``answer``."""
        draw = draw_unit(self.seed, "split", kind, name)
        if draw < self.sft:
            return "sft"
        return "rl" if draw < self.sft + self.rl else "eval"
