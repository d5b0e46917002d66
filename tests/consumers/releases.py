"""Releases over which every trainer's loader is run: pages that speak like templates, thumbnails, failed calls."""

from dataclasses import dataclass
from pathlib import Path

from pipelines.release.exporters.base import ExportOptions
from pipelines.release.exporters.registry import export_release
from schemas.datasets import Trajectory
from tests.consumers.expected import Form, compare_rows, expect
from tests.pipelines.release.exporters.trajectories import (
    HOSTILE,
    LONG,
    Maker,
    make_release,
    make_whole,
    sort_as_released,
)

PINS = Path(__file__).parents[2] / ".ci" / "consumers"
TOLD = ("Nothing else.", *HOSTILE, " ".join(HOSTILE), "\n".join(HOSTILE) + LONG)
"""What pages say, one trajectory each; the last says more than a megabyte."""


@dataclass(frozen=True, slots=True)
class Export:
    """An export with the trajectories of its rows, in order."""

    root: Path
    folder: Path
    trajectories: tuple[Trajectory, ...]

    def compare(self, said: dict, form: Form) -> dict[str, object]:
        """Hold what a driver said of every row against its trajectory."""
        return compare_rows(said, [expect(each, form, self.root) for each in self.trajectories])


def export_told(root: Path, to: str, told: tuple[str, ...] = TOLD, make: Maker = make_whole, **options) -> Export:
    """Export a release of one trajectory for each text that a page says.

    Where another dialect is asked for, the trajectories to compare with are those of rollouts held in it.
    """
    release, trajectories = make_release(root, told, make=make)
    if options.get("dialect"):
        held = [make(root, number, text, options["dialect"], number % 2 == 0) for number, text in enumerate(told, 1)]
        trajectories = sort_as_released(held)
    report = export_release(release, root / "export", to, ExportOptions(**options))
    assert report.rows == len(told)
    return Export(root, root / "export", tuple(trajectories))


def read_pin(consumer: str, package: str = "") -> str:
    """Return the version of a package that a trainer's environment is made with; of the trainer itself by default."""
    pins = (PINS / f"{consumer}.txt").read_text().splitlines()
    return dict(pin.split("==") for pin in pins if "==" in pin)[package or consumer]
