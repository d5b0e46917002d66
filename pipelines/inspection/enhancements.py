"""What became of the pictures that were to be degraded: a table, and examples before, after and repaired."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil
from pathlib import Path

from pipelines.agent.enhancing import REPAIRS, has_opencv, make_repairs
from pipelines.agent.repairing import Loss, read_loss
from pipelines.errors import CorruptInput, RecordFailed
from pipelines.ids import draw_unit
from pipelines.inspection.catalogue import list_latest
from pipelines.inspection.facets import describe_trial
from pipelines.inspection.rows import read_refusals, read_stage
from pipelines.inspection.thumbnails import make_thumbnail, shrink_to_address
from pipelines.release.pictures import read_picture
from schemas.enhancements import Enhancement, Trial
from schemas.groundings import Picture

EXAMPLES = 6
SEED = 7


@dataclass(frozen=True, slots=True)
class EnhancementRow:
    """What became of the pictures that ended at one degradation and a tenth of its strengths."""

    degradation: str
    repair: str
    test: str
    strength: str
    """From, and to: strengths are looked for picture by picture, and hardly two are alike."""
    degraded: int
    """Pictures that were of no use any more."""
    restored: int

    @property
    def share(self) -> int:
        """Per cent of the degraded pictures that the repair truly restored."""
        return round(100 * self.restored / self.degraded)


@dataclass(frozen=True, slots=True)
class ShownPicture:
    """A picture as a ``data:`` address with what it is."""

    label: str
    data: str


@dataclass(frozen=True, slots=True)
class EnhancementExample:
    """One picture before, degraded, and repaired where the tool is installed here."""

    pictures: tuple[ShownPicture, ...]
    caption: str


@dataclass(frozen=True, slots=True)
class EnhancementReport:
    """Everything the page says of degraded pictures."""

    chosen: int
    kept: int
    rows: tuple[EnhancementRow, ...]
    refused: tuple[tuple[str, int], ...]
    examples: tuple[EnhancementExample, ...]


def report_enhancements(root: Path) -> EnhancementReport:
    """Return what became of the pictures that were to be degraded in the latest run of a workspace."""
    kept = [row for row in read_stage(root, "enhancements") if isinstance(row, Enhancement) and row.trial is not None]
    refusals = [
        refusal for found in list_latest(root) if found.stage == "enhancements" for refusal in read_refusals(found)
    ]
    refused = Counter(refusal.reason for refusal in refusals)
    losses = [loss for refusal in refusals if (loss := read_loss(refusal.detail or "")) is not None]
    shown = sorted(kept, key=lambda row: draw_unit(SEED, row.record_id))[:EXAMPLES]
    examples = [example for row in shown if (example := _show_example(root, row)) is not None]
    return EnhancementReport(
        chosen=len(kept) + refused.total(),
        kept=len(kept),
        rows=_count_rows([row.trial for row in kept if row.trial is not None], losses),
        refused=tuple(sorted(refused.items())),
        examples=tuple(examples),
    )


def _count_rows(held: Sequence[Trial], losses: Sequence[Loss]) -> tuple[EnhancementRow, ...]:
    restored = Counter((trial.degradation, trial.test, _find_tenth(trial.strength)) for trial in held)
    lost = Counter((loss.degradation, loss.test, _find_tenth(loss.strength)) for loss in losses)
    return tuple(
        EnhancementRow(
            degradation=degradation,
            repair=REPAIRS[degradation],
            test=test,
            strength=f"{tenth / 10:.1f} to {(tenth + 1) / 10:.1f}",
            degraded=restored[degradation, test, tenth] + lost[degradation, test, tenth],
            restored=restored[degradation, test, tenth],
        )
        for degradation, test, tenth in sorted(restored.keys() | lost.keys())
    )


def _find_tenth(strength: float) -> int:
    """Return the tenth that a strength lies in, its upper end included."""
    return max(0, ceil(round(strength * 10, 6)) - 1)


def _show_example(root: Path, row: Enhancement) -> EnhancementExample | None:
    if row.original is None or row.picture is None or row.trial is None:
        return None
    try:
        pictures = [
            ShownPicture("original", make_thumbnail(root, row.original)),
            ShownPicture(row.trial.degradation, make_thumbnail(root, row.picture)),
        ]
        repaired = _repair(root, row.picture, row.trial)
    except (CorruptInput, RecordFailed) as error:
        return EnhancementExample((), f"{row.picture.file}: {error}")
    if repaired is not None:
        pictures.append(ShownPicture(row.trial.repair, shrink_to_address(repaired)))
    credit = f"{row.original.file} · {row.original.author} · {row.original.licence}"
    return EnhancementExample(tuple(pictures), f"{describe_trial(row.trial)} · {credit}")


def _repair(root: Path, picture: Picture, trial: Trial) -> bytes | None:
    """Return the picture as its tool repairs it; None where the tool is not installed or needs weights."""
    tool = make_repairs(None, has_opencv()).get(trial.degradation)
    return None if tool is None else tool.mend(read_picture(root, picture))
