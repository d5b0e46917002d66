"""How good the checks are: recall and false alarms on planted defects, always in minimal pairs.

A check that refuses everything has full recall; only the pair flip rate (clean twin accepted and defective twin
refused with the right code) shows that it looks. Pairs are spread over toy worlds whose infoboxes leave out none to
three in ten of their fields, and each pair is judged in overlays of its own.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random

from pipelines.bench.accepted import AcceptedRow, evaluate, find_allowed
from pipelines.bench.catalogue import DEMANDS, PlantedDefect, list_defects
from pipelines.bench.compounds import CompoundRow, plant_compounds
from pipelines.bench.plants import Pair
from pipelines.bench.pools import LARGE, SMALL, Pool, open_pools
from pipelines.bench.shares import Share, make_share, show_interval
from pipelines.bench.vocabulary import HALVES, Half, Vocabulary, load_half, load_vocabulary
from pipelines.errors import ConfigError
from pipelines.progress import Reporter, SilentReporter

__all__ = ["Share", "make_share", "run_planted", "show_interval"]

MISSING = (0.0, 0.1, 0.2, 0.3)
PREVALENCE = 0.05
LEAST_FLIPS = 0.98
FEW = 100
"""Pairs from which the worlds are large."""
SHOWN = 5
"""Plants missed and clean twins accused that a report quotes."""
COMPOUNDS_A_PAIR = 0.1
MOST_COMPOUNDS = 10
"""Questions with each combination of two defects."""


@dataclass(frozen=True, slots=True)
class DefectRow:
    """One check against one kind of defect."""

    code: str
    title: str
    pairs: int
    recall: float
    """Share of the defective twins that were refused with a right code."""
    recall_interval: tuple[float, float]
    false_alarm_rate: float
    """Share of the clean twins that did not pass, UNKNOWN included."""
    false_alarm_interval: tuple[float, float]
    flip_rate: float
    demanded_recall: float
    demanded_false_alarm_rate: float
    met: bool
    held_out_recall: float
    """Of the pairs with words that were kept from those who wrote the checks."""
    recall_by_kind: dict[str, float]
    missed: tuple[str, ...]
    accused: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Confusion:
    """How often a planted defect drew a code; ``PASS`` is a miss."""

    planted: str
    returned: str
    count: int


@dataclass(frozen=True, slots=True)
class PlantedReport:
    """All defects over all worlds, and how sound the accepted questions are."""

    seed: int
    missing: tuple[float, ...]
    pair_flip_rate: float
    pair_flip_interval: tuple[float, float]
    accepted_defect_rate: dict[str, float]
    """Share of the accepted questions that are wrong by the whole truth, by missing rate."""
    defects: tuple[DefectRow, ...]
    confusion: tuple[Confusion, ...]
    compounds: tuple[CompoundRow, ...]
    accepted: tuple[AcceptedRow, ...]
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
    row = _measure({defect: found})
    told.finish(f"{defect.title}: recall {row.recall:.3f}, false alarms {row.false_alarm_rate:.3f}")
    return found


def _report(
    seed: int,
    missing: tuple[float, ...],
    planted: dict[PlantedDefect, list[tuple[Half, Pair]]],
    compounds: tuple[CompoundRow, ...],
    accepted: tuple[AcceptedRow, ...],
) -> PlantedReport:
    rows, confusion = [], Counter[tuple[str, str]]()
    for code in DEMANDS:
        kinds = {defect: found for defect, found in planted.items() if defect.code == code}
        if kinds:
            rows.append(_measure(kinds))
            pairs = (pair for found in kinds.values() for _, pair in found)
            confusion.update((code, pair.defective.code or "PASS") for pair in pairs)
    everything = [pair for pairs in planted.values() for _, pair in pairs]
    flips = make_share(sum(map(_flips, everything)), len(everything))
    rates = {f"{rate:g}": _find_rate(rate, accepted) for rate in missing}
    sound = all(rates[f"{rate:g}"] <= find_allowed(rate) for rate in missing)
    return PlantedReport(
        seed=seed,
        missing=missing,
        pair_flip_rate=flips.share,
        pair_flip_interval=(flips.low, flips.high),
        accepted_defect_rate=rates,
        defects=tuple(rows),
        confusion=tuple(Confusion(*cell, count) for cell, count in sorted(confusion.items())),
        compounds=compounds,
        accepted=accepted,
        precision_at_5_percent=_compute_precision(everything, PREVALENCE),
        met=all(row.met for row in rows) and flips.share >= LEAST_FLIPS and sound,
    )


def _caught(pair: Pair) -> bool:
    return not pair.defective.passed and pair.defective.code in pair.codes


def _flips(pair: Pair) -> bool:
    return _caught(pair) and pair.clean.passed


def _measure(planted: Mapping[PlantedDefect, Sequence[tuple[Half, Pair]]]) -> DefectRow:
    """Return the row of a code from the pairs of each of its kinds."""
    kinds, pairs = list(planted), [pair for found in planted.values() for _, pair in found]
    demand = kinds[0].demand
    recall = make_share(sum(map(_caught, pairs)), len(pairs))
    alarm = make_share(sum(not pair.clean.passed for pair in pairs), len(pairs))
    held = [pair for found in planted.values() for half, pair in found if half != "open"]
    return DefectRow(
        code=kinds[0].code,
        title="; ".join(kind.title for kind in kinds),
        pairs=len(pairs),
        recall=recall.share,
        recall_interval=(recall.low, recall.high),
        false_alarm_rate=alarm.share,
        false_alarm_interval=(alarm.low, alarm.high),
        flip_rate=sum(map(_flips, pairs)) / len(pairs),
        demanded_recall=demand.recall,
        demanded_false_alarm_rate=demand.false_alarm,
        met=recall.share >= demand.recall and alarm.share <= demand.false_alarm,
        held_out_recall=sum(map(_caught, held)) / max(len(held), 1),
        recall_by_kind={
            kind.title: sum(_caught(pair) for _, pair in found) / max(len(found), 1) for kind, found in planted.items()
        },
        missed=tuple(_quote(pair, defective=True) for pair in pairs if not _caught(pair))[:SHOWN],
        accused=tuple(_quote(pair, defective=False) for pair in pairs if not pair.clean.passed)[:SHOWN],
    )


def _quote(pair: Pair, defective: bool) -> str:
    result = pair.defective if defective else pair.clean
    return f"{pair.plant[:200]} -> {result.outcome} {result.code} {result.detail[:200]}".strip()


def _find_rate(missing: float, accepted: Sequence[AcceptedRow]) -> float:
    rows = [row for row in accepted if row.missing == missing]
    questions = sum(row.accepted for row in rows)
    return sum(row.defects for row in rows) / questions if questions else 0.0


def _compute_precision(pairs: Sequence[Pair], prevalence: float) -> float:
    recall = sum(map(_caught, pairs)) / max(len(pairs), 1)
    alarm = sum(not pair.clean.passed for pair in pairs) / max(len(pairs), 1)
    refused = recall * prevalence + alarm * (1 - prevalence)
    return recall * prevalence / refused if refused else 0.0
