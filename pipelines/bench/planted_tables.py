"""The planted-defect report as tables for the terminal."""

from rich.console import Group
from rich.table import Table

from pipelines.bench.accepted import AcceptedRate
from pipelines.bench.planted import LEAST_FLIPS, PlantedReport

_LEFT = ("defect", "", "recipe", "planted", "said", "besides", "kind", "plant and what was said")


def render_planted(report: PlantedReport) -> Group:
    """Return the report as tables for the terminal."""
    tables = (_render_defects, _render_kinds, _render_misses, _render_accepted, _render_confusion, _render_compounds)
    return Group(*(table for table in (render(report) for render in tables) if table.row_count), _summarise(report))


def _make_table(title: str, *headings: str, caption: str | None = None) -> Table:
    table = Table(title=title, caption=caption)
    for heading in headings:
        table.add_column(heading, justify="left" if heading in _LEFT else "right")
    return table


def _render_defects(report: PlantedReport) -> Table:
    worlds = f", missing rates {', '.join(map(str, report.missing))}" if report.missing else ""
    added = any(row.added_recall is not None for row in report.defects)
    table = _make_table(
        f"Planted defects, seed {report.seed}{worlds}",
        "defect", "pairs", "from", "recall", "95%", "demanded", "held out", *(["added"] if added else []), "undecided",
        "false alarms", "95%", "allowed", "flips", "met",
        caption="From: different questions that the pairs share. Undecided: refused as UNKNOWN. False alarms are "
        "measured on rows that the checks had accepted, harmlessly edited. Proven: the one-sided 95% bound of the "
        f"recall is as demanded.{_note(report)}",
    )  # fmt: skip
    for row in report.defects:
        demanded = bool(row.demanded_recall)
        met = ("proven" if row.proven else "yes" if row.met else "no") if demanded else "-"
        table.add_row(
            row.code,
            str(row.pairs),
            str(row.questions),
            f"{row.recall:.3f}",
            _show(row.recall_interval),
            f"{row.demanded_recall:.2f}" if demanded else "none",
            f"{row.held_out_recall:.3f}",
            *([f"{row.added_recall or 0.0:.3f}"] if added else []),
            str(row.undecided),
            f"{row.false_alarm_rate:.3f}",
            _show(row.false_alarm_interval),
            f"{row.demanded_false_alarm_rate:.2f}" if demanded else "none",
            f"{row.flip_rate:.3f}",
            met if row.met else "no",
        )
    return table


def _note(report: PlantedReport) -> str:
    """Return what else is to be known: who read the signs, and what is not planted."""
    left_out = ", ".join(f"{each.code} ({each.why})" for each in report.not_planted)
    return (f" Signs were read by {report.ocr}." if report.ocr else "") + (
        f" Not planted: {left_out}." if left_out else ""
    )


def _render_kinds(report: PlantedReport) -> Table:
    table = _make_table("Recall by kind", "defect", "kind", "recall")
    for row in report.defects:
        for kind, recall in row.recall_by_kind.items():
            table.add_row(row.code, kind, f"{recall:.3f}")
    return table


def _render_misses(report: PlantedReport) -> Table:
    table = _make_table("Missed, and accused falsely", "defect", "kind", "plant and what was said")
    for row in report.defects:
        for kind, quoted in (("missed", row.missed), ("accused", row.accused)):
            for quote in quoted:
                table.add_row(row.code, kind, quote)
    return table


def _render_accepted(report: PlantedReport) -> Table:
    table = _make_table(
        "What the pipeline accepts, against the whole truth",
        "missing", "recipe", "seeds", "refused", "accepted", "wrong", "rate", "95%", "allowed",
        "first pass", "trusting", "wrong", "lost",
        caption="Trusting: the first pass with confirmation of answers and look-up of near misses off; lost: accepted "
        "less for asking. "
        + "; ".join(_describe_rate(rate) for rate in report.accepted_rates),
    )  # fmt: skip
    for row in report.accepted:
        numbers = (row.seeds, row.refused, row.accepted, row.defects)
        allowed = next(rate.allowed for rate in report.accepted_rates if rate.missing == row.missing)
        trusting = (row.asking.accepted, row.trusting.accepted, row.trusting.defects, row.lost_to_unknown)
        table.add_row(
            f"{row.missing:g}", row.method, *map(str, numbers), f"{row.rate:.1%}", _show(row.interval),
            f"under {allowed:.1%}" if allowed else "none", *map(str, trusting),
        )  # fmt: skip
    return table


def _describe_rate(rate: AcceptedRate) -> str:
    """Return what one missing rate says of all recipes together."""
    said = "met" if rate.met else "not met"
    shown = "" if rate.shown else f", not shown: it may be up to {rate.interval[1]:.1%}"
    return f"at {rate.missing:g} {rate.defects} of {rate.accepted} wrong, {said}{shown}"


def _render_confusion(report: PlantedReport) -> Table:
    table = _make_table("Planted, and everything that was said", "planted", "said")
    for code in dict.fromkeys(cell.planted for cell in report.confusion):
        cells = sorted((c for c in report.confusion if c.planted == code), key=lambda cell: -cell.count)
        table.add_row(code, ", ".join(f"{cell.returned} {cell.count}" for cell in cells))
    return table


def _render_compounds(report: PlantedReport) -> Table:
    table = _make_table("Two defects at once", "planted", "besides", "pairs", "both named", "one", "none")
    for row in report.compounds:
        first, second = (f"{code} {title}" for code, title in zip((row.first, row.second), row.titles, strict=True))
        table.add_row(first, second, *map(str, (row.pairs, row.both, row.one, row.none)))
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


def _show(interval: tuple[float, float]) -> str:
    return "{:.3f}-{:.3f}".format(*interval)
