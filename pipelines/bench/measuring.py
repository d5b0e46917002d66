"""From pairs to rows: recall, false alarms and flips of each check, and what was said of each defect.

Pairs share questions, and the clean twin of a pair is a row that the checks themselves had accepted, however edited. So
a false alarm here means that a harmless edit upset a check, not how many good rows are refused in the first place, and
intervals, which take pairs to be independent, are rather too narrow.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pipelines.bench.catalogue import DEMANDS, PlantedDefect
from pipelines.bench.plants import Pair
from pipelines.bench.shares import Share, find_lower_bound, make_share
from pipelines.bench.vocabulary import Half

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


def measure_flips(planted: Planted) -> Share:
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


def _recall(pairs: Sequence[Pair]) -> Share:
    decided = [pair for pair in pairs if not pair.undecided]
    return make_share(sum(pair.caught for pair in decided), len(decided))


def _quote(pair: Pair, defective: bool) -> str:
    result = pair.defective if defective else pair.clean
    return f"{pair.plant[:200]} -> {result.outcome} {result.code} {result.detail[:200]}".strip()
