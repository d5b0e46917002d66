"""How good the checks are: recall and false alarms on planted defects, in minimal pairs: ``make bench``.

``python -m tests.planted.bench --pairs 8 --missing 0 --missing 0.2 --defect D07`` measures a part; exit 1 below demand.

A check that refuses everything has full recall; the flip rate (clean twin accepted, defective twin refused with the
right code) counts both. Pairs are spread over toy worlds whose infoboxes leave out none to three in ten of their
fields. The clean twin is an edit of a row that the checks had accepted: a false alarm says that a harmless edit upset a
check, not how many good rows it refuses. Pairs share questions, so the intervals are rather too narrow.
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
from pipelines.errors import ConfigError
from pipelines.run.progress import Reporter, make_reporter
from tests.planted.catalogue import DEMANDS, READ, PlantedDefect, list_defects
from tests.planted.picture_plants import open_engine
from tests.planted.scenes import LARGE, SMALL, Pool, open_pools
from tests.planted.shares import Proportion, make_share
from tests.planted.truth import AcceptedRate, AcceptedRow, evaluate, measure_rate
from tests.planted.words import HALVES, Half, Pair, Vocabulary, load_half, load_vocabulary

SHOWN = 5
"""Missed plants and refused clean twins that a report quotes."""
MISSING = (0.0, 0.1, 0.2, 0.3)
LEAST_FLIPS = 0.98
FEW = 100
"""Pairs from which the worlds are large."""
Planted = Mapping[PlantedDefect, Sequence[tuple[Half, Pair]]]
"""Pairs by defect, each with the half of the vocabulary."""


@dataclass(frozen=True, slots=True)
class DefectRow:
    """One check against one kind of defect."""

    code: str
    title: str
    pairs: int
    questions: int
    """Accepted questions that the pairs start from; a pair of texts counts as one of its own."""
    recall: float
    """Share of the decided defective twins that were refused with a right code."""
    recall_interval: tuple[float, float]
    undecided: int
    """Defective twins refused as UNKNOWN with another code; left out of the recall."""
    false_alarm_rate: float
    """Share of the clean twins that did not pass, UNKNOWN included."""
    false_alarm_interval: tuple[float, float]
    flip_rate: float
    demanded_recall: float
    """0.0 for no demand."""
    demanded_false_alarm_rate: float
    met: bool
    held_out_recall: float
    """Of the pairs with words that were kept from the authors of the checks."""
    added_recall: float | None
    """Of the pairs with words of ``--vocabulary``."""
    recall_by_kind: dict[str, float]
    returned: dict[str, int]
    """How often each code came back for a defective twin; ``PASS`` is a miss."""
    missed: tuple[str, ...]
    accused: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class PlantedReport:
    """All defects over all worlds, and how sound the accepted questions are."""

    seed: int
    missing: tuple[float, ...]
    pair_flip_rate: float
    """Over the defects with a demanded recall."""
    pair_flip_interval: tuple[float, float]
    accepted_defect_rate: dict[str, float]
    """Share of the accepted questions that are wrong by the whole truth, by missing rate."""
    defects: tuple[DefectRow, ...]
    ocr: str
    """Engine that read the signs: ``rapidocr``, or ``layer`` without the extra ``vision``; empty without signs."""
    accepted: tuple[AcceptedRow, ...]
    accepted_rates: tuple[AcceptedRate, ...]
    met: bool


def run_planted(
    pairs: int,
    seed: int,
    missing: Sequence[float] = MISSING,
    defects: Sequence[str] | None = None,
    vocabulary: Path | None = None,
    reporter: Reporter | None = None,
) -> PlantedReport:
    """Plant every defect ``pairs`` times (twice as often for strict demands) and measure its check.

    Args:
        pairs: half of them use held-out words; fewer than a hundred are planted in smaller worlds.
        seed: of the worlds and the plants.
        missing: shares of infobox fields that worlds leave out; pairs are spread over them.
        defects: codes to plant; all when not given.
        vocabulary: file with further words, used for a third of the pairs.
        reporter: receives progress.

    Raises:
        ConfigError: a number is out of range, a code is unknown, or no question admits a defect.
    """
    if pairs < 2:
        raise ConfigError(f"bench planted: pairs is {pairs}, allowed are 2 and more (one for each half)")
    if not missing or not all(0.0 <= rate <= 0.3 for rate in missing):
        raise ConfigError(f"bench planted: missing rates are {list(missing)}; give one or more of 0.0 to 0.3")
    chosen, progress = list_defects(defects), reporter or Reporter()
    words = [*map(load_half, HALVES), *([load_vocabulary(vocabulary)] if vocabulary else [])]
    # Defects of a text alone need no world.
    rates = tuple(missing) if any(defect.needs_world for defect in chosen) else ()
    progress.begin("worlds", len(rates), "worlds")
    with open_pools(seed, rates, LARGE if pairs >= FEW else SMALL) as pools:
        clean = ", ".join(f"{len(pool.questions)} clean questions at {pool.missing:g}" for pool in pools)
        progress.finish(clean or "none")
        kinds = Counter(defect.code for defect in chosen)
        planted = {
            defect: _plant(defect, -(-defect.count_pairs(pairs) // kinds[defect.code]), seed, pools, words, progress)
            for defect in chosen
        }
        accepted = tuple(row for pool in pools for row in evaluate(pool))
    return _report(seed, rates, planted, accepted)


def _plant(
    defect: PlantedDefect, count: int, seed: int, pools: Sequence[Pool], words: Sequence[Vocabulary], progress: Reporter
) -> list[tuple[Half, Pair]]:
    progress.begin(defect.code, count, "pairs")
    found = []
    for number in range(count):
        # Worlds rotate faster than vocabularies, so each world meets each of them.
        chosen = words[number * len(words) // count]
        rng = Random(f"{seed}:{defect.code}:{defect.title}:{number}")
        first = number % max(len(pools), 1)
        found.append((chosen.half, defect.source([*pools[first:], *pools[:first]], chosen, rng)))
        progress.advance(number + 1)
    row = measure_defect({defect: found})
    progress.finish(f"{defect.title}: recall {row.recall:.3f}, false alarms {row.false_alarm_rate:.3f}")
    return found


def _report(
    seed: int, missing: tuple[float, ...], planted: Planted, accepted: tuple[AcceptedRow, ...]
) -> PlantedReport:
    by_code = ({defect: found for defect, found in planted.items() if defect.code == code} for code in DEMANDS)
    rows = tuple(measure_defect(kinds) for kinds in by_code if kinds)
    flips = measure_flips(planted)
    rates = tuple(measure_rate(rate, accepted) for rate in missing)
    flipped = flips.share >= LEAST_FLIPS or not flips.trials
    return PlantedReport(
        seed=seed,
        missing=missing,
        pair_flip_rate=flips.share,
        pair_flip_interval=(flips.low, flips.high),
        accepted_defect_rate={f"{rate.missing:g}": rate.rate for rate in rates},
        defects=rows,
        ocr=open_engine().name if any(row.code in READ for row in rows) else "",
        accepted=accepted,
        accepted_rates=rates,
        met=flipped and all(row.met for row in rows) and all(rate.met for rate in rates),
    )


def measure_defect(planted: Planted) -> DefectRow:
    """Return the row of a code from the pairs of each of its kinds."""
    kinds, pairs = list(planted), [pair for found in planted.values() for _, pair in found]
    by_half = {
        half: [pair for found in planted.values() for own, pair in found if own == half]
        for half in ("held-out", "added")
    }
    demand, recall = kinds[0].demand, _recall(pairs)
    alarm = make_share(sum(not pair.clean.passed for pair in pairs), len(pairs))
    return DefectRow(
        code=kinds[0].code,
        title="; ".join(kind.title for kind in kinds),
        pairs=len(pairs),
        questions=len({pair.question for pair in pairs} - {""}) + sum(not pair.question for pair in pairs),
        recall=recall.share,
        recall_interval=(recall.low, recall.high),
        undecided=len(pairs) - recall.trials,
        false_alarm_rate=alarm.share,
        false_alarm_interval=(alarm.low, alarm.high),
        flip_rate=sum(pair.flips for pair in pairs) / len(pairs),
        demanded_recall=demand.recall,
        demanded_false_alarm_rate=demand.false_alarm,
        met=recall.share >= demand.recall and alarm.share <= demand.false_alarm,
        held_out_recall=_recall(by_half["held-out"]).share,
        added_recall=_recall(by_half["added"]).share if by_half["added"] else None,
        recall_by_kind={kind.title: _recall([pair for _, pair in found]).share for kind, found in planted.items()},
        returned=dict(Counter(code for pair in pairs for code in pair.list_returned()).most_common()),
        missed=tuple(_quote(p, defective=True) for p in pairs if not p.caught and not p.undecided)[:SHOWN],
        accused=tuple(_quote(pair, defective=False) for pair in pairs if not pair.clean.passed)[:SHOWN],
    )


def measure_flips(planted: Planted) -> Proportion:
    """Return the share of pairs told apart, over the defects with a demanded recall."""
    pairs = [pair for defect, found in planted.items() if defect.demand.recall for _, pair in found]
    return make_share(sum(pair.flips for pair in pairs), len(pairs))


def _recall(pairs: Sequence[Pair]) -> Proportion:
    decided = [pair for pair in pairs if not pair.undecided]
    return make_share(sum(pair.caught for pair in decided), len(decided))


def _quote(pair: Pair, defective: bool) -> str:
    result = pair.defective if defective else pair.clean
    return f"{pair.plant[:200]} -> {result.outcome} {result.code} {result.detail[:200]}".strip()


def render_planted(report: PlantedReport) -> Group:
    """Return the report as tables for the terminal."""
    tables = (render(report) for render in (_render_defects, _render_details, _render_accepted))
    flips = f"pair flip rate {report.pair_flip_rate:.4f} ({_show(report.pair_flip_interval)}), demanded {LEAST_FLIPS}"
    met = "every demand is met" if report.met else "a demand is not met"
    return Group(*(table for table in tables if table.row_count), f"{flips}\n{met}")


def _make_table(title: str, left: int, *headings: str, caption: str | None = None) -> Table:
    """Return an empty table whose first ``left`` columns are texts."""
    table = Table(title=title, caption=caption)
    for number, heading in enumerate(headings):
        table.add_column(heading, justify="left" if number < left else "right")
    return table


def _render_defects(report: PlantedReport) -> Table:
    worlds = f", missing rates {', '.join(map(str, report.missing))}" if report.missing else ""
    ocr = f" Signs were read by {report.ocr}." if report.ocr else ""
    table = _make_table(
        f"Planted defects, seed {report.seed}{worlds}", 1,
        "defect", "pairs", "from", "recall", "95%", "demanded", "held out", "added", "undecided",
        "false alarms", "95%", "allowed", "flips", "met",
        caption="From: different questions that the pairs share. Undecided: refused as UNKNOWN. False alarms are "
        f"measured on rows that the checks had accepted, harmlessly edited.{ocr}",
    )  # fmt: skip
    for row in report.defects:
        demanded = bool(row.demanded_recall)
        table.add_row(
            row.code, str(row.pairs), str(row.questions), f"{row.recall:.3f}", _show(row.recall_interval),
            f"{row.demanded_recall:.2f}" if demanded else "none", f"{row.held_out_recall:.3f}",
            "" if row.added_recall is None else f"{row.added_recall:.3f}", str(row.undecided),
            f"{row.false_alarm_rate:.3f}", _show(row.false_alarm_interval),
            f"{row.demanded_false_alarm_rate:.2f}" if demanded else "none", f"{row.flip_rate:.3f}",
            ("yes" if demanded else "-") if row.met else "no",
        )  # fmt: skip
    return table


def _render_details(report: PlantedReport) -> Table:
    table = _make_table("Recall by kind, codes returned, misses and false alarms", 2, "defect", "kind", "")
    for row in report.defects:
        for kind, recall in row.recall_by_kind.items():
            table.add_row(row.code, kind, f"{recall:.3f}")
        table.add_row(row.code, "returned", ", ".join(f"{code} {count}" for code, count in row.returned.items()))
        for kind, quoted in (("missed", row.missed), ("accused", row.accused)):
            for quote in quoted:
                table.add_row(row.code, kind, quote)
    return table


def _render_accepted(report: PlantedReport) -> Table:
    table = _make_table(
        "What the pipeline accepts, against the whole truth", 2,
        "missing", "recipe", "seeds", "refused", "accepted", "wrong", "rate", "95%", "allowed",
        caption="; ".join(_describe_rate(rate) for rate in report.accepted_rates),
    )  # fmt: skip
    for row in report.accepted:
        numbers = (row.seeds, row.refused, row.accepted, row.defects)
        allowed = next(rate.allowed for rate in report.accepted_rates if rate.missing == row.missing)
        table.add_row(
            f"{row.missing:g}", row.method, *map(str, numbers), f"{row.rate:.1%}", _show(row.interval),
            f"under {allowed:.1%}" if allowed else "none",
        )  # fmt: skip
    return table


def _describe_rate(rate: AcceptedRate) -> str:
    met = "met" if rate.met else "not met"
    shown = "" if rate.shown else f", not shown: it may be up to {rate.interval[1]:.1%}"
    return f"at {rate.missing:g} {rate.defects} of {rate.accepted} wrong, {met}{shown}"


def _show(interval: tuple[float, float]) -> str:
    return "{:.3f}-{:.3f}".format(*interval)


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure, print, and exit with 1 if a demand is not met."""
    parser = argparse.ArgumentParser(description="Plant defects in minimal pairs and count what the checks catch.")
    parser.add_argument("--pairs", type=int, default=150, help="minimal pairs per defect")
    parser.add_argument("--seed", type=int, default=7, help="of the worlds and the plants")
    parser.add_argument("--missing", type=float, action="append", help="share of infobox fields that are left out")
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
