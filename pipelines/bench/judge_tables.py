"""The judge card as tables for the terminal."""

from rich.console import Group
from rich.table import Table
from rich.text import Text

from pipelines.bench.judge import CASCADE, COMPARER, PASS_RATES, ImpliedRow, JudgeReport, JudgeRow, KindRow
from pipelines.bench.shares import Share, show_interval

_CORRECTION = (
    "One half of the planted answers shows how often each one errs; by that, the share of right answers among the "
    "other half is worked out from its verdicts. Where the 95% interval holds what was planted, a pass rate that is "
    "corrected in this way can be trusted."
)
_LEFT = ("who", "type", "kind", "truth", "judge of", "fault", "jury")


def render_judge(report: JudgeReport) -> Group:
    """Return the card as tables: rates by type, kinds that go wrong, corrected and implied shares, faults."""
    renderers = (
        _render_rates,
        _render_kinds,
        _render_corrected,
        _render_implied,
        _render_faults,
        _render_trajectory_faults,
    )
    tables = [render(report) for render in renderers]
    lines = [f"{who} gave no verdict that can be read" for who in _list_silent(report)]
    if report.kappa is not None:
        lines.append(f"kappa of the judges with one another, over what both decided: {report.kappa:.3f}")
    return Group(*(table for table in tables if table.row_count), *map(Text, lines))


def _list_silent(report: JudgeReport) -> list[str]:
    """Return who decided nothing at all."""
    spoke: dict[str, bool] = {}
    for row in report.rows:
        spoke[row.who] = spoke.get(row.who, False) or _has_decided(row)
    return [who for who, has_spoken in spoke.items() if not has_spoken]


def _has_decided(row: JudgeRow) -> bool:
    return row.unscored.count < row.unscored.trials


def _make_table(title: str, *headings: str, caption: str | None = None) -> Table:
    table = Table(title=title, caption=caption, caption_justify="left")
    for heading in headings:
        table.add_column(heading, justify="left" if heading in _LEFT else "right", overflow="fold")
    return table


def _render_rates(report: JudgeReport) -> Table:
    title = f"Judge card: {report.pairs} questions of each type, seed {report.seed}"
    table = _make_table(
        title, "who", "type", "near misses taken", "of decided", "95%", "true ones refused", "of decided", "95%",
        "unscored", "differ", "kappa of decided",
    )  # fmt: skip
    for row in report.rows:
        table.add_row(
            row.who,
            row.type,
            *_show_rate(row.false_positive, row.decided_false_positive),
            *_show_rate(row.false_negative, row.decided_false_negative),
            f"{row.unscored.share:.1%}",
            f"{row.disagreement.share:.1%}" if row.who == CASCADE else "",
            f"{row.kappa:.3f}" if _has_decided(row) else "-",
        )
    return table


def _show_rate(share: Share, decided: Share) -> tuple[str, str, str]:
    """Return a rate's count of all and its share of the decided ones; who decides nothing has no rate."""
    if not decided.trials:
        return "-", "-", "-"
    return f"{share.count}/{share.trials}", f"{decided.share:.1%}", show_interval(decided)


def _render_corrected(report: JudgeReport) -> Table:
    table = _make_table(
        "Share of right answers, worked out from the verdicts", "who", "type", "worked out", "95%", "planted",
        caption=_CORRECTION,
    )  # fmt: skip
    for row in report.rows:
        found = row.corrected
        cells = (f"{found.share:.3f}", f"{found.low:.3f}-{found.high:.3f}") if _has_decided(row) else ("-", "-")
        table.add_row(row.who, row.type, *cells, f"{row.planted:.3f}")
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
            accepts = row.false_positive.count + row.true_positive.count
            table.add_row(row.who, row.type, *(_show_implied(cell) if accepts else "-" for cell in cells))
    return table


def _show_implied(row: ImpliedRow) -> str:
    return f"{row.wrong_share:.1%} (<= {row.high:.1%})"


def _render_faults(report: JudgeReport) -> Table:
    table = _make_table(
        "Judges with planted faults: no wrong answer may be accepted, and no right one lost, in silence",
        "fault", "jury", "answers", "accepted in silence", "lost in silence", "unscored", "stopped",
    )  # fmt: skip
    for row in report.faults:
        counts = (row.trials, row.silent_accepts, row.silent_drops, row.unscored, row.stopped)
        table.add_row(row.fault, row.jury, *map(str, counts))
    return table


def _render_trajectory_faults(report: JudgeReport) -> Table:
    table = _make_table(
        "The same behind the rejection cascade: every rollout must end as a row that says that it is unscored",
        "judge of", "fault", "jury", "rollouts", "accepted in silence", "lost in silence", "unscored", "stopped",
    )  # fmt: skip
    for row in report.trajectory_faults:
        counts = (row.rollouts, row.silent_accepts, row.silent_drops, row.unscored, row.stopped)
        table.add_row(row.asked, row.fault, row.jury, *map(str, counts))
    return table
