"""The planted-defect report as tables for the terminal."""

from rich.console import Group
from rich.table import Table

from pipelines.bench.accepted import find_allowed
from pipelines.bench.planted import LEAST_FLIPS, PlantedReport


def render_planted(report: PlantedReport) -> Group:
    """Return the report as tables for the terminal."""
    return Group(_render_defects(report), _render_accepted(report), _render_confusion(report), _summarise(report))


def _render_defects(report: PlantedReport) -> Table:
    table = Table(title=f"Planted defects, seed {report.seed}, missing rates {', '.join(map(str, report.missing))}")
    for heading in (
        "defect",
        "",
        "pairs",
        "recall",
        "95%",
        "demanded",
        "false alarms",
        "95%",
        "allowed",
        "flips",
        "met",
    ):
        table.add_column(heading, justify="left" if heading in ("defect", "") else "right")
    for row in report.defects:
        table.add_row(
            row.code,
            row.title,
            str(row.pairs),
            f"{row.recall:.3f}",
            "{:.3f}-{:.3f}".format(*row.recall_interval),
            f"{row.demanded_recall:.2f}",
            f"{row.false_alarm_rate:.3f}",
            "{:.3f}-{:.3f}".format(*row.false_alarm_interval),
            f"{row.demanded_false_alarm_rate:.2f}",
            f"{row.flip_rate:.3f}",
            "yes" if row.met else "no",
        )
    return table


def _render_accepted(report: PlantedReport) -> Table:
    table = Table(title="What the pipeline accepts, against the whole truth")
    for heading in ("missing", "recipe", "seeds", "refused", "not known", "accepted", "wrong", "rate", "allowed"):
        table.add_column(heading, justify="left" if heading == "recipe" else "right")
    for row in report.accepted:
        numbers = (row.seeds, row.refused, row.lost_to_unknown, row.accepted, row.defects)
        allowed = f"{find_allowed(row.missing):.1%}"
        table.add_row(f"{row.missing:g}", row.method, *map(str, numbers), f"{row.rate:.1%}", allowed)
    return table


def _render_confusion(report: PlantedReport) -> Table:
    table = Table(title="Planted, and what the check said")
    table.add_column("planted")
    table.add_column("said")
    for code in dict.fromkeys(cell.planted for cell in report.confusion):
        cells = sorted((c for c in report.confusion if c.planted == code), key=lambda cell: -cell.count)
        table.add_row(code, ", ".join(f"{cell.returned} {cell.count}" for cell in cells))
    return table


def _summarise(report: PlantedReport) -> str:
    named = sum(row.both for row in report.compounds)
    planted = sum(row.pairs for row in report.compounds)
    low, high = report.pair_flip_interval
    lines = [
        f"pair flip rate {report.pair_flip_rate:.4f} ({low:.4f}-{high:.4f}), demanded {LEAST_FLIPS}",
        f"precision at 5% defects: {report.precision_at_5_percent:.3f}",
        f"two defects at once: both named in {named} of {planted}",
        "every demand is met" if report.met else "a demand is not met",
    ]
    return "\n".join(lines)
