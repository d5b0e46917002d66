"""How good the checks are: recall and false alarms on planted defects, always in minimal pairs.

A check that refuses everything has full recall; only the pair flip rate (clean twin accepted and defective twin
refused with the right code) shows that it looks.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from random import Random

from rich.table import Table

from pipelines.bench.plants import DEFECTS, Defect, Pair
from pipelines.bench.vocabulary import BY_HALF, HALVES, Half
from pipelines.errors import ConfigError
from pipelines.scoring.agreement import wilson_interval


@dataclass(frozen=True, slots=True)
class Share:
    """``count`` of ``trials`` with its 95% Wilson interval."""

    count: int
    trials: int
    share: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class DefectRow:
    """One check against one kind of defect, on one half of the vocabulary."""

    code: str
    title: str
    half: Half
    recall: Share
    """Defective twins refused with the right code."""
    false_alarm: Share
    """Clean twins that did not pass, UNKNOWN included."""
    flip: Share
    met: bool
    """Whether recall and false alarms meet the demands of research/quality.md 4.3."""
    missed: tuple[str, ...]
    """Up to five plants that were not recognised."""


@dataclass(frozen=True, slots=True)
class Confusion:
    """How often a planted defect drew a code; ``PASS`` is a miss."""

    planted: str
    returned: str
    count: int


@dataclass(frozen=True, slots=True)
class PlantedReport:
    """All defects, both halves."""

    pairs: int
    seed: int
    rows: tuple[DefectRow, ...]
    confusion: tuple[Confusion, ...]
    precision_at_5_percent: float
    """Share of refusals that are right when one row in twenty is defective, over all checks here."""
    met: bool


def run_planted(pairs: int, seed: int) -> PlantedReport:
    """Plant every defect ``pairs`` times, half of them with held-out words, and measure its check.

    Raises:
        ConfigError: if ``pairs`` is less than two.
    """
    if pairs < 2:
        raise ConfigError(f"bench planted: pairs is {pairs}, allowed are 2 and more (one for each half)")
    rows: list[DefectRow] = []
    confusion: Counter[tuple[str, str]] = Counter()
    for defect in DEFECTS:
        for half in HALVES:
            count = pairs // 2 if half == "held-out" else pairs - pairs // 2
            planted = _plant(defect, half, count, seed)
            rows.append(_measure(defect, half, planted))
            confusion.update((defect.code, pair.defective.code or "PASS") for pair in planted)
    return PlantedReport(
        pairs,
        seed,
        tuple(rows),
        tuple(Confusion(planted, returned, count) for (planted, returned), count in sorted(confusion.items())),
        _compute_precision(rows, 0.05),
        all(row.met for row in rows),
    )


def make_share(count: int, trials: int) -> Share:
    """Return a share with its interval; no trials give the share 0.0 and the interval 0 to 1."""
    return Share(count, trials, count / trials if trials else 0.0, *wilson_interval(count, trials))


def render_planted(report: PlantedReport) -> Table:
    """Return the report as a table for the terminal."""
    table = Table(title=f"Planted defects: {report.pairs} pairs each, seed {report.seed}")
    for heading in ("defect", "", "words", "recall", "95%", "false alarm", "95%", "flips", "met"):
        table.add_column(heading, justify="left" if heading in ("defect", "", "words") else "right")
    for row in report.rows:
        table.add_row(
            row.code,
            row.title,
            row.half,
            f"{row.recall.count}/{row.recall.trials}",
            show_interval(row.recall),
            f"{row.false_alarm.count}/{row.false_alarm.trials}",
            show_interval(row.false_alarm),
            f"{row.flip.count}/{row.flip.trials}",
            "yes" if row.met else "no",
        )
    return table


def show_interval(share: Share) -> str:
    """Return an interval as text, such as ``0.951-1.000``."""
    return f"{share.low:.3f}-{share.high:.3f}"


def _plant(defect: Defect, half: Half, count: int, seed: int) -> list[Pair]:
    rng = Random(f"{seed}:{defect.code}:{half}")
    return [defect.plant(BY_HALF[half], rng) for _ in range(count)]


def _measure(defect: Defect, half: Half, pairs: Sequence[Pair]) -> DefectRow:
    caught = [not pair.defective.passed and pair.defective.code in pair.codes for pair in pairs]
    alarms = [not pair.clean.passed for pair in pairs]
    flips = sum(hit and not alarm for hit, alarm in zip(caught, alarms, strict=True))
    recall, false_alarm = make_share(sum(caught), len(pairs)), make_share(sum(alarms), len(pairs))
    missed = tuple(pair.plant for pair, hit in zip(pairs, caught, strict=True) if not hit)[:5]
    met = recall.share >= defect.recall and false_alarm.share <= defect.false_alarm
    return DefectRow(defect.code, defect.title, half, recall, false_alarm, make_share(flips, len(pairs)), met, missed)


def _compute_precision(rows: Sequence[DefectRow], prevalence: float) -> float:
    recall = sum(row.recall.count for row in rows) / sum(row.recall.trials for row in rows)
    alarm = sum(row.false_alarm.count for row in rows) / sum(row.false_alarm.trials for row in rows)
    refused = recall * prevalence + alarm * (1 - prevalence)
    return recall * prevalence / refused if refused else 0.0
