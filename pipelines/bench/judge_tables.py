"""The judge card as tables for the terminal."""

from rich.console import Group
from rich.table import Table
from rich.text import Text

from pipelines.bench.judge import CASCADE, COMPARER, PASS_RATES, ImpliedRow, JudgeReport, KindRow
from pipelines.bench.shares import show_interval

_LEFT = ("who", "type", "kind", "truth", "fault", "jury")


def render_judge(report: JudgeReport) -> Group:
    """Return the card as tables: rates by type, kinds that go wrong, corrected and implied shares, faults."""
    renderers = (_render_rates, _render_kinds, _render_corrected, _render_implied, _render_faults)
    tables = [render(report) for render in renderers]
    agree = "" if report.kappa is None else f"kappa of the judges with one another: {report.kappa:.3f}"
    return Group(*(table for table in tables if table.row_count), Text(agree))


def _make_table(title: str, *headings: str) -> Table:
    table = Table(title=title)
    for heading in headings:
        table.add_column(heading, justify="left" if heading in _LEFT else "right")
    return table


def _render_rates(report: JudgeReport) -> Table:
    title = f"Judge card: {report.pairs} questions of each type, seed {report.seed}"
    table = _make_table(
        title, "who", "type", "near misses taken", "95%", "true ones refused", "95%", "unscored", "differ", "kappa",
    )  # fmt: skip
    for row in report.rows:
        table.add_row(
            row.who,
            row.type,
            f"{row.false_positive.count}/{row.false_positive.trials}",
            show_interval(row.false_positive),
            f"{row.false_negative.count}/{row.false_negative.trials}",
            show_interval(row.false_negative),
            f"{row.unscored.share:.1%}",
            f"{row.disagreement.share:.1%}" if row.who == CASCADE else "",
            f"{row.kappa:.3f}",
        )
    return table


def _render_corrected(report: JudgeReport) -> Table:
    table = _make_table("Share of right answers, corrected by half of the plants", "who", "type", "found", "95%", "is")
    for row in report.rows:
        found = row.corrected
        table.add_row(
            row.who, row.type, f"{found.share:.3f}", f"{found.low:.3f}-{found.high:.3f}", f"{row.planted:.3f}"
        )
    return table


def _render_kinds(report: JudgeReport) -> Table:
    """Return the kinds of which the cascade takes or refuses any falsely, or leaves any open."""
    table = _make_table(
        "Kinds that the cascade gets wrong or leaves open", "type", "kind", "truth", "correct", "incorrect", "unscored"
    )
    for row in report.kinds:
        if row.who == CASCADE and (row.unscored or _count_wrong(row)):
            table.add_row(row.type, row.kind, row.truth, str(row.correct), str(row.incorrect), str(row.unscored))
    return table


def _count_wrong(row: KindRow) -> int:
    return row.incorrect if row.truth == "correct" else row.correct


def _render_implied(report: JudgeReport) -> Table:
    rates = [f"{rate:.0%} right" for rate in PASS_RATES]
    table = _make_table("Wrong among accepted, by true pass rate (with the bounds of its rates)", "who", "type", *rates)
    for row in report.rows:
        if row.who != COMPARER:
            cells = [each for each in report.implied if (each.who, each.type) == (row.who, row.type)]
            table.add_row(row.who, row.type, *map(_show_implied, cells))
    return table


def _show_implied(row: ImpliedRow) -> str:
    return f"{row.wrong_share:.1%} (<= {row.high:.1%})"


def _render_faults(report: JudgeReport) -> Table:
    table = _make_table(
        "D23: faults of judges", "fault", "jury", "answers", "accepted in silence", "lost in silence", "unscored",
        "stopped",
    )  # fmt: skip
    for row in report.faults:
        counts = (row.trials, row.silent_accepts, row.silent_drops, row.unscored, row.stopped)
        table.add_row(row.fault, row.jury, *map(str, counts))
    return table
