"""What a row that is released took: requests, tokens and money of every stage, its refused rows included."""

from collections.abc import Iterable
from dataclasses import dataclass

from schemas.manifest import Manifest, Usage


@dataclass(frozen=True, slots=True)
class RowCost:
    """What one stage took for each row in the end; what was answered from recordings cost nothing."""

    stage: str
    calls: float
    tokens: float
    money: float
    """In the currency of the configured prices."""


def share_costs(used: Iterable[tuple[str, Usage]], rows: float) -> tuple[RowCost, ...]:
    """Return the costs of stages a row, stages without requests left out; the last is the sum, ``all``.

    Args:
        used: what each stage used, by its name.
        rows: over which it is shared out; none of 0 rows.
    """
    if not rows:
        return ()
    asking = [(stage, usage) for stage, usage in used if usage.calls]
    whole = sum((usage for _, usage in asking), Usage())
    return tuple(
        RowCost(stage, usage.calls / rows, (usage.tokens_in + usage.tokens_out) / rows, usage.cost / rows)
        for stage, usage in (*asking, ("all", whole))
    )


def read_spent(manifest: Manifest) -> Usage:
    """Return what a sealed stage used, in runs that were stopped, too."""
    return manifest.usage + manifest.stopped
