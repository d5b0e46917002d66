"""How good the checks are: recall and false alarms on planted defects, always in minimal pairs.

A check that refuses everything has full recall; only the pair flip rate (clean twin accepted and defective twin
refused with the right code) shows that it looks. Pairs are spread over toy worlds whose infoboxes leave out none to
three in ten of their fields, and each pair is judged in overlays of its own. False alarms are
measured on rows that the checks had accepted before: they say whether a harmless edit upsets a check, not how many good
rows it refuses.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random

from pipelines.bench.accepted import AcceptedRate, AcceptedRow, evaluate, measure_rate
from pipelines.bench.catalogue import DEMANDS, NOT_PLANTED, READ, NotPlanted, PlantedDefect, list_defects
from pipelines.bench.compounds import CompoundRow, plant_compounds
from pipelines.bench.measuring import (
    Confusion,
    DefectRow,
    Planted,
    compute_precision,
    count_confusion,
    measure_defect,
    measure_flips,
)
from pipelines.bench.plants import Pair
from pipelines.bench.pools import LARGE, SMALL, Pool, open_pools
from pipelines.bench.sign_plants import open_engine
from pipelines.bench.vocabulary import HALVES, Half, Vocabulary, load_half, load_vocabulary
from pipelines.errors import ConfigError
from pipelines.progress import Reporter, SilentReporter

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
