"""The strata of target sizes as a table: what is wanted, accepted and drawn, and what a row takes."""

from collections.abc import Sequence

from rich.box import SIMPLE
from rich.table import Table

from pipelines.run.quotas import TargetRow


def render_targets(rows: Sequence[TargetRow]) -> Table:
    """Return a line for each stratum; ``-`` where no row is accepted yet."""
    table = Table(title="target sizes", box=SIMPLE, padding=0)
    table.add_column("stratum")
    for column in ("wanted", "accepted", "seeds", "calls a row", "tokens a row", "money a row"):
        table.add_column(column, justify="right")
    table.add_column("state")
    for row in rows:
        costs = (_show(row.calls, 1), _show(row.tokens, 0), _show(row.money, 4))
        table.add_row(row.stratum, f"{row.wanted:,}", f"{row.accepted:,}", f"{row.drawn:,}", *costs, row.state)
    return table


def _show(number: float | None, places: int) -> str:
    return "-" if number is None else f"{number:,.{places}f}"
