"""How good the checks are: recall and false alarms on planted defects, always in minimal pairs: ``make bench-planted``.

``python -m tests.planted.bench --pairs 8 --missing 0 --missing 0.2 --defect D07`` measures a part; exit 1 below demand.

A check that refuses everything has full recall; only the pair flip rate (clean twin accepted and defective twin
refused with the right code) shows that it looks. Pairs are spread over toy worlds whose infoboxes leave out none to
three in ten of their fields, and each pair is judged in overlays of its own. False alarms are
measured on rows that the checks had accepted before: they say whether a harmless edit upsets a check, not how many good
rows it refuses.

The planted-defect report as tables for the terminal.

From pairs to rows: recall, false alarms and flips of each check, and what was said of each defect.

Pairs share questions, and the clean twin of a pair is a row that the checks themselves had accepted, however edited. So
a false alarm here means that a harmless edit upset a check, not how many good rows are refused in the first place, and
intervals, which take pairs to be independent, are rather too narrow.
"""

import argparse
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random

from rich.console import Group
from rich.table import Table

from pipelines.cli.console import emit_json, emit_table, to_json
from pipelines.cli.judge_card import Proportion, make_share
from pipelines.errors import ConfigError
from pipelines.run.progress import Reporter, SilentReporter, make_reporter
from tests.planted.catalogue import (
    DEMANDS,
    NOT_PLANTED,
    READ,
    CompoundRow,
    NotPlanted,
    PlantedDefect,
    list_defects,
    plant_compounds,
)
from tests.planted.picture_plants import open_engine
from tests.planted.scenes import LARGE, SMALL, Pool, open_pools
from tests.planted.truth import AcceptedRate, AcceptedRow, evaluate, measure_rate
from tests.planted.words import HALVES, Half, Pair, Vocabulary, find_lower_bound, load_half, load_vocabulary

SHOWN = 5
"""Plants missed and clean twins accused that a report quotes."""
Found = Sequence[tuple[Half, Pair]]
"""Pairs, each with the half its words are of."""
Planted = Mapping[PlantedDefect, Found]


@dataclass(frozen=True, slots=True)
class DefectRow:
    """One check against one kind of defect."""

    code: str
    title: str
    pairs: int
    questions: int
    """Different accepted questions that the pairs start from: fewer than pairs, which share them. A pair of texts
    starts from none and counts as one of its own."""
    pairs_by_missing: dict[str, int]
    """Pairs by the missing rate of their world; texts alone have none."""
    recall: float
    """Share of the decided defective twins that were refused with a right code."""
    recall_interval: tuple[float, float]
    undecided: int
    """Defective twins refused as UNKNOWN without a word of the defect: never accepted, and left out of the recall."""
    false_alarm_rate: float
    """Share of the clean twins that did not pass, UNKNOWN included."""
    false_alarm_interval: tuple[float, float]
    flip_rate: float
    demanded_recall: float
    """0.0 where the design demands none."""
    demanded_false_alarm_rate: float
    met: bool
    """Whether what was seen is as demanded."""
    proven: bool
    """Whether the one-sided 95% lower bound of the recall is as demanded too; no number of pairs proves 1."""
    held_out_recall: float
    """Of the pairs with words that were kept from those who wrote the checks."""
    added_recall: float | None
    """Of the pairs with words of somebody else's file; None without one."""
    recall_by_kind: dict[str, float]
    missed: tuple[str, ...]
    accused: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Confusion:
    """How often a planted defect drew a code, beside others or alone; ``PASS`` is a miss."""

    planted: str
    returned: str
    count: int


def measure_defect(planted: Planted) -> DefectRow:
    """Return the row of a code from the pairs of each of its kinds."""
    kinds, pairs = list(planted), [pair for found in planted.values() for _, pair in found]
    demand, code = kinds[0].demand, kinds[0].code
    recall = _recall(pairs)
    alarm = make_share(sum(not pair.clean.passed for pair in pairs), len(pairs))
    by_half = {
        half: [pair for found in planted.values() for own, pair in found if own == half]
        for half in ("held-out", "added")
    }
    return DefectRow(
        code=code,
        title="; ".join(kind.title for kind in kinds),
        pairs=len(pairs),
        questions=len({pair.question for pair in pairs} - {""}) + sum(not pair.question for pair in pairs),
        pairs_by_missing=dict(sorted(Counter(f"{p.missing:g}" for p in pairs if p.missing is not None).items())),
        recall=recall.share,
        recall_interval=(recall.low, recall.high),
        undecided=len(pairs) - recall.trials,
        false_alarm_rate=alarm.share,
        false_alarm_interval=(alarm.low, alarm.high),
        flip_rate=sum(pair.flips for pair in pairs) / len(pairs),
        demanded_recall=demand.recall,
        demanded_false_alarm_rate=demand.false_alarm,
        met=recall.share >= demand.recall and alarm.share <= demand.false_alarm,
        proven=bool(demand.recall) and find_lower_bound(recall.count, recall.trials) >= demand.recall,
        held_out_recall=_recall(by_half["held-out"]).share,
        added_recall=_recall(by_half["added"]).share if by_half["added"] else None,
        recall_by_kind={kind.title: _recall([pair for _, pair in found]).share for kind, found in planted.items()},
        missed=tuple(_quote(p, defective=True) for p in pairs if not p.caught and not p.undecided)[:SHOWN],
        accused=tuple(_quote(pair, defective=False) for pair in pairs if not pair.clean.passed)[:SHOWN],
    )


def count_confusion(planted: Planted) -> tuple[Confusion, ...]:
    """Return how often each code came back for each planted defect."""
    cells = Counter(
        (defect.code, code) for defect, found in planted.items() for _, pair in found for code in pair.list_returned()
    )
    return tuple(Confusion(*cell, count) for cell, count in sorted(cells.items()))


def measure_flips(planted: Planted) -> Proportion:
    """Return the share of pairs told apart, over the defects whose recall is demanded."""
    pairs = _list_demanded(planted)
    return make_share(sum(pair.flips for pair in pairs), len(pairs))


def compute_precision(planted: Planted, prevalence: float) -> float:
    """Return the share of refusals that are right when so large a share of rows is defective."""
    pairs = _list_demanded(planted)
    recall = sum(not pair.defective.passed for pair in pairs) / max(len(pairs), 1)
    alarm = sum(not pair.clean.passed for pair in pairs) / max(len(pairs), 1)
    refused = recall * prevalence + alarm * (1 - prevalence)
    return recall * prevalence / refused if refused else 0.0


def _list_demanded(planted: Planted) -> list[Pair]:
    return [pair for defect, found in planted.items() if DEMANDS[defect.code].recall for _, pair in found]


def _recall(pairs: Sequence[Pair]) -> Proportion:
    decided = [pair for pair in pairs if not pair.undecided]
    return make_share(sum(pair.caught for pair in decided), len(decided))


def _quote(pair: Pair, defective: bool) -> str:
    result = pair.defective if defective else pair.clean
    return f"{pair.plant[:200]} -> {result.outcome} {result.code} {result.detail[:200]}".strip()


MISSING = (0.0, 0.1, 0.2, 0.3)
PREVALENCE = 0.05
LEAST_FLIPS = 0.98
FEW = 100
"""Pairs from which the worlds are large."""
COMPOUNDS_A_PAIR = 0.1
MOST_COMPOUNDS = 10
"""Questions with each combination of two defects."""


@dataclass(frozen=True, slots=True)
class PlantedReport:
    """All defects over all worlds, and how sound the accepted questions are."""

    seed: int
    missing: tuple[float, ...]
    pair_flip_rate: float
    """Over the defects of which recall is demanded."""
    pair_flip_interval: tuple[float, float]
    accepted_defect_rate: dict[str, float]
    """Share of the accepted questions that are wrong by the whole truth, by missing rate."""
    defects: tuple[DefectRow, ...]
    not_planted: tuple[NotPlanted, ...]
    ocr: str
    """Engine that read the signs: ``rapidocr``, or ``layer`` (what the drawer says is written there) where that is not
    installed; empty where no sign was planted."""
    confusion: tuple[Confusion, ...]
    compounds: tuple[CompoundRow, ...]
    accepted: tuple[AcceptedRow, ...]
    accepted_rates: tuple[AcceptedRate, ...]
    precision_at_5_percent: float
    """Share of refusals that are right when one row in twenty is defective, over all checks here."""
    met: bool


def run_planted(
    pairs: int,
    seed: int,
    missing: Sequence[float] = MISSING,
    defects: Sequence[str] | None = None,
    vocabulary: Path | None = None,
    reporter: Reporter | None = None,
) -> PlantedReport:
    """Plant every defect ``pairs`` times, twice as often where next to no miss is allowed, and measure its check.

    Args:
        pairs: half of them have words held out from those who wrote the checks; fewer than a hundred are planted in
            smaller worlds.
        seed: of the worlds and the plants.
        missing: rates at which infoboxes of a world leave fields out; pairs are spread over them.
        defects: codes to plant; all when not given.
        vocabulary: file with somebody else's words, which a third of the pairs is planted with.
        reporter: told how far the work is.

    Raises:
        ConfigError: if a number is out of range, a defect is not planted here, or no question admits it.
    """
    _check_arguments(pairs, missing)
    chosen, told = list_defects(defects), reporter or SilentReporter()
    words = [*map(load_half, HALVES), *([load_vocabulary(vocabulary)] if vocabulary else [])]
    # Defects of a text alone need no world, and say nothing of what the pipeline accepts.
    rates = tuple(missing) if any(defect.needs_world for defect in chosen) else ()
    told.begin("worlds", len(rates), "worlds")
    with open_pools(seed, rates, LARGE if pairs >= FEW else SMALL) as pools:
        told.finish(", ".join(f"{len(pool.questions)} clean questions at {pool.missing:g}" for pool in pools) or "none")
        kinds = Counter(defect.code for defect in chosen)
        planted = {
            defect: _plant(defect, -(-defect.count_pairs(pairs) // kinds[defect.code]), seed, pools, words, told)
            for defect in chosen
        }
        count = 0 if defects else min(MOST_COMPOUNDS, max(1, round(pairs * COMPOUNDS_A_PAIR)))
        compounds = plant_compounds(pools, words[0], Random(f"{seed}:compounds"), count) if count else ()
        accepted = tuple(row for pool in pools for row in evaluate(pool))
    return _report(seed, rates, planted, compounds, accepted)


def _check_arguments(pairs: int, missing: Sequence[float]) -> None:
    if pairs < 2:
        raise ConfigError(f"bench planted: pairs is {pairs}, allowed are 2 and more (one for each half)")
    if not missing or not all(0.0 <= rate <= 0.3 for rate in missing):
        raise ConfigError(f"bench planted: missing rates are {list(missing)}; give one or more of 0.0 to 0.3")


def _plant(
    defect: PlantedDefect, count: int, seed: int, pools: Sequence[Pool], words: Sequence[Vocabulary], told: Reporter
) -> list[tuple[Half, Pair]]:
    """Return the pairs of one kind of defect, with the half their words are of."""
    told.begin(defect.code, count, "pairs")
    found = []
    for number in range(count):
        # Worlds take turns faster than vocabularies, so that each world meets each of them.
        chosen = words[number * len(words) // count]
        rng = Random(f"{seed}:{defect.code}:{defect.title}:{number}")
        first = number % max(len(pools), 1)
        found.append((chosen.half, defect.source([*pools[first:], *pools[:first]], chosen, rng)))
        told.advance(number + 1)
    row = measure_defect({defect: found})
    told.finish(f"{defect.title}: recall {row.recall:.3f}, false alarms {row.false_alarm_rate:.3f}")
    return found


def _report(
    seed: int,
    missing: tuple[float, ...],
    planted: Planted,
    compounds: tuple[CompoundRow, ...],
    accepted: tuple[AcceptedRow, ...],
) -> PlantedReport:
    by_code = ({defect: found for defect, found in planted.items() if defect.code == code} for code in DEMANDS)
    rows = tuple(measure_defect(kinds) for kinds in by_code if kinds)
    flips = measure_flips(planted)
    rates = tuple(measure_rate(rate, accepted) for rate in missing)
    return PlantedReport(
        seed=seed,
        missing=missing,
        pair_flip_rate=flips.share,
        pair_flip_interval=(flips.low, flips.high),
        accepted_defect_rate={f"{rate.missing:g}": rate.rate for rate in rates},
        defects=rows,
        not_planted=NOT_PLANTED,
        ocr=open_engine().name if any(row.code in READ for row in rows) else "",
        confusion=count_confusion(planted),
        compounds=compounds,
        accepted=accepted,
        accepted_rates=rates,
        precision_at_5_percent=compute_precision(planted, PREVALENCE),
        met=all(row.met for row in rows)
        and (flips.share >= LEAST_FLIPS or not flips.trials)
        and all(rate.met for rate in rates),
    )


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


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure, print, and exit with 1 if a demand is not met."""
    parser = argparse.ArgumentParser(description="Plant defects in minimal pairs and count what the checks catch.")
    parser.add_argument("--pairs", type=int, default=150, help="minimal pairs a defect")
    parser.add_argument("--seed", type=int, default=7, help="of the worlds and the plants")
    parser.add_argument("--missing", type=float, action="append", help="share of infobox fields left to the prose")
    parser.add_argument("--defect", action="append", help="code of a defect, such as D07; all when not given")
    parser.add_argument("--vocabulary", type=Path, help="TOML file with words of your own to plant with")
    parser.add_argument("--json", action="store_true", help="print one JSON document")
    given = parser.parse_args(arguments)
    report = run_planted(
        given.pairs, given.seed, given.missing or MISSING, given.defect, given.vocabulary, make_reporter()
    )
    emit_json(to_json(report)) if given.json else emit_table(render_planted(report))
    raise SystemExit(0 if report.met else 1)


if __name__ == "__main__":
    main()
