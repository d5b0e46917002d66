"""A release's rows while it is published: questions and transcripts wait on disk, and one row at a time is in memory.

Stages hand over their rows once, in their own order; a release wants them by picture, and more than once. So each
record that is released is written to a file without a name, compressed, and found again by its place in it. The system
removes the file with the process, however that ends.
"""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryFile
from typing import BinaryIO, Generic, NamedTuple, TypeVar, overload

import pyarrow as pa

from pipelines.checks.sets import Signature, make_signature
from pipelines.errors import ConservationError
from pipelines.release.making import Example
from schemas.datasets import Dataset, Enhancement, Picture, ReleaseEntry, Trajectory

RecordT = TypeVar("RecordT", Enhancement, Trajectory)
LEVEL = 1


class _Spot(NamedTuple):
    """Where a record lies in the file: its place, its compressed and its plain size, bytes."""

    start: int
    size: int
    plain: int
    sha256: str
    """Of the first picture; empty without one."""


@dataclass(slots=True)
class Spill(Generic[RecordT]):
    """Records of one type on disk, by id; the one that was read last is kept."""

    model: type[RecordT]
    file: BinaryIO
    spots: dict[str, _Spot] = field(default_factory=dict)
    _codec: pa.Codec = field(default_factory=lambda: pa.Codec("zstd", LEVEL))
    _last: RecordT | None = None

    def add(self, record: RecordT, shown: Picture | None) -> None:
        """Append a record whose first picture is given."""
        plain = record.model_dump_json().encode()
        packed = self._codec.compress(plain, asbytes=True)
        sha256 = shown.sha256 if shown else ""
        self.spots[record.record_id] = _Spot(self.file.seek(0, 2), len(packed), len(plain), sha256)
        self.file.write(packed)

    def get(self, record_id: str) -> RecordT:
        """Return a record.

        Raises:
            KeyError: if it was not added.
        """
        if self._last is None or self._last.record_id != record_id:
            spot = self.spots[record_id]
            self.file.seek(spot.start)
            plain = self._codec.decompress(self.file.read(spot.size), spot.plain, asbytes=True)
            self._last = self.model.model_validate_json(plain)
        return self._last


class _Place(NamedTuple):
    """A row's place in the order of a release: by its first picture, then by its id."""

    sha256: str
    row_id: str
    split: str
    question: str
    trajectory: str
    entry: str


@dataclass(frozen=True, slots=True)
class Examples(Sequence[Example]):
    """Rows of one dataset in their order; each is read from disk when it is asked for."""

    dataset: Dataset
    places: Sequence[_Place]
    questions: Spill[Enhancement]
    trajectories: Spill[Trajectory]

    def __len__(self) -> int:
        """Return the number of rows."""
        return len(self.places)

    @overload
    def __getitem__(self, index: int) -> Example: ...

    @overload
    def __getitem__(self, index: slice) -> "Examples": ...

    def __getitem__(self, index: int | slice) -> "Example | Examples":
        """Return a row, or some rows."""
        if isinstance(index, slice):
            return self._replace(self.places[index])
        place = self.places[index]
        entry = ReleaseEntry(
            record_id=place.entry,
            parent_id=place.question,
            dataset=self.dataset,
            split=place.split,
            trajectory_id=place.trajectory,
        )
        trajectory = self.trajectories.get(place.trajectory) if place.trajectory else None
        return Example(entry, self.questions.get(place.question), trajectory)

    def list_splits(self) -> list[str]:
        """Return the names of the splits that have rows."""
        return sorted({place.split for place in self.places})

    def select(self, split: str) -> "Examples":
        """Return the rows of a split."""
        return self._replace([place for place in self.places if place.split == split])

    def list_questions(self) -> "Examples":
        """Return each question once, by id and without a transcript."""
        found = {place.question: place._replace(trajectory="", row_id=place.question) for place in self.places}
        return self._replace([found[question] for question in sorted(found)])

    def find_first(self) -> Example:
        """Return the row with the smallest id."""
        return self[min(range(len(self.places)), key=lambda index: self.places[index].row_id)]

    def _replace(self, places: Sequence[_Place]) -> "Examples":
        return Examples(self.dataset, places, self.questions, self.trajectories)


@dataclass(frozen=True, slots=True)
class Material:
    """Everything that is published: rows by dataset, and a signature of each released question."""

    examples: dict[Dataset, Examples]
    signatures: tuple[Signature, ...]


@contextmanager
def spill_material(
    questions: Iterable[Enhancement],
    trajectories: Iterable[Trajectory],
    entries: Iterable[ReleaseEntry],
    folder: Path,
) -> Iterator[Material]:
    """Read rows once and hold them on disk until the end of the block.

    They come in any order; those without an entry are passed over. The folder must have room for them.

    Raises:
        ConservationError: if an entry names a question or trajectory that is not there.
    """
    named = list(entries)
    wanted = {entry.parent_id for entry in named}, {entry.trajectory_id for entry in named}
    with ExitStack() as stack:
        asked = Spill(Enhancement, stack.enter_context(TemporaryFile(dir=folder)))
        solved = Spill(Trajectory, stack.enter_context(TemporaryFile(dir=folder)))
        signatures = []
        for question in questions:
            if question.record_id in wanted[0]:
                asked.add(question, question.picture)
                signatures.append(make_signature(question))
        for trajectory in trajectories:
            if trajectory.record_id in wanted[1]:
                solved.add(trajectory, trajectory.images[0].picture if trajectory.images else None)
        places: dict[Dataset, list[_Place]] = {}
        for entry in named:
            places.setdefault(entry.dataset, []).append(_find_place(entry, asked, solved))
        examples = {name: Examples(name, sorted(some), asked, solved) for name, some in places.items()}
        yield Material(examples, tuple(signatures))


def _find_place(entry: ReleaseEntry, asked: Spill[Enhancement], solved: Spill[Trajectory]) -> _Place:
    name = entry.trajectory_id
    if entry.parent_id not in asked.spots or (name and name not in solved.spots):
        detail = f"entry {entry.record_id} names {entry.parent_id} {name}, which does not exist"
        raise ConservationError(f"releases: {detail}")
    own = solved.spots[name].sha256 if name else ""
    shown = own or asked.spots[entry.parent_id].sha256
    return _Place(shown, name or entry.parent_id, entry.split, entry.parent_id, name, entry.record_id)
