"""A release's questions and transcripts while it is published: on disk, compressed, and one of them in memory.

Stages hand over their rows once, in their own order; a release wants them by picture, and more than once.
"""

import zlib
from collections.abc import Iterable
from typing import BinaryIO, TypeVar

from pipelines.checks.sets import Signature, make_signature
from pipelines.errors import ConservationError
from pipelines.release.making import Example
from schemas.datasets import Dataset, Enhancement, Picture, ReleaseEntry, Trajectory

RecordT = TypeVar("RecordT", Enhancement, Trajectory)
FASTEST = 1


class Shelf:
    """The rows to publish: their entries by dataset, sorted by first picture and id; what those name is in a file."""

    def __init__(
        self,
        file: BinaryIO,
        questions: Iterable[Enhancement],
        trajectories: Iterable[Trajectory],
        entries: Iterable[ReleaseEntry],
    ) -> None:
        """Read all rows once; those without an entry are passed over."""
        self._file = file
        self._spots: dict[str, tuple[int, int, str]] = {}
        self.signatures: list[Signature] = []
        self.entries: dict[Dataset, list[ReleaseEntry]] = {}
        named = list(entries)
        asked, solved = {entry.parent_id for entry in named}, {entry.trajectory_id for entry in named}
        for question in questions:
            if question.record_id in asked:
                self._add(question, question.picture)
                self.signatures.append(make_signature(question))
        for trajectory in trajectories:
            if trajectory.record_id in solved:
                self._add(trajectory, trajectory.images[0].picture if trajectory.images else None)
        for entry in sorted(named, key=self._place):
            self.entries.setdefault(entry.dataset, []).append(entry)

    def read(self, entry: ReleaseEntry) -> Example:
        """Return an entry with the question and the transcript that it names."""
        trajectory = self._read(Trajectory, entry.trajectory_id) if entry.trajectory_id else None
        return Example(entry, self._read(Enhancement, entry.parent_id), trajectory)

    def _add(self, record: Enhancement | Trajectory, shown: Picture | None) -> None:
        packed = zlib.compress(record.model_dump_json().encode(), FASTEST)
        self._spots[record.record_id] = (self._file.seek(0, 2), len(packed), shown.sha256 if shown else "")
        self._file.write(packed)

    def _read(self, model: type[RecordT], record_id: str) -> RecordT:
        start, size, _ = self._spots[record_id]
        self._file.seek(start)
        return model.model_validate_json(zlib.decompress(self._file.read(size)))

    def _place(self, entry: ReleaseEntry) -> tuple[str, str]:
        names = [name for name in (entry.trajectory_id, entry.parent_id) if name]
        if missing := [name for name in names if name not in self._spots]:
            raise ConservationError(f"releases: entry {entry.record_id} names {missing[0]}, which does not exist")
        shown = (self._spots[name][2] for name in names)
        return next((sha256 for sha256 in shown if sha256), ""), names[0]
