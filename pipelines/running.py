"""Running stages that are not cut into shards beforehand: from the corpus, or over whole datasets."""

import shutil
import time
from array import array
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import xxhash

from pipelines.backends.metering import open_meter
from pipelines.errors import ConservationError
from pipelines.files import TEMP_PREFIX
from pipelines.shards import ShardInput, ShardRows, read_parts, write_shard
from pipelines.stage import DatasetStage, SourceStage, Stage
from pipelines.workspace import StageFolder
from schemas.base import Failure, Record, Rejection

REFUSED_ROWS = 20_000
"""Refused rows of a source stage that are in memory at once, and that go into one shard."""


def run_source_stage(stage: SourceStage, folder: StageFolder, shard_rows: int) -> int:
    """Run a stage that draws from the corpus and cut its kept rows into shards; refused rows go with the first ones.

    A corpus refuses millions of candidates, so refused rows wait on disk, and of all candidates 8 bytes stay in memory.

    Returns:
        How many shards were written, at least one.

    Raises:
        ConservationError: if the candidates are not each yielded once.
    """
    started = time.monotonic()
    _empty_folder(folder)
    kept: list[Record] = []
    seen = array("Q")
    folder.path.mkdir(parents=True)
    with TemporaryDirectory(dir=folder.path, prefix=TEMP_PREFIX) as scratch:
        refused = RefusedRows(Path(scratch))
        with open_meter() as meter:
            for row in stage():
                if isinstance(row, Rejection | Failure):
                    refused.add(row)
                else:
                    kept.append(row)
                candidate = row.record_id if isinstance(row, Rejection | Failure) else row.parent_id
                seen.append(xxhash.xxh3_64_intdigest(candidate.encode()))
        _check_candidates(stage, seen)
        seconds = time.monotonic() - started
        count = max(1, -(-len(kept) // shard_rows), refused.finish())
        for shard in range(count):
            cut = refused.read(shard)
            cut.kept.extend(kept[shard * shard_rows : (shard + 1) * shard_rows])
            made = tuple(row.parent_id for row in cut.kept)
            ids = (*made, *(row.record_id for row in cut.rejected), *(row.record_id for row in cut.failed))
            spent = () if shard else (meter.usage, seconds)
            write_shard(stage, folder, shard, ShardInput(ids, made, "", *spent), cut)
    return count


def _check_candidates(stage: SourceStage, seen: "array[int]") -> None:
    distinct = len(np.unique(np.frombuffer(seen, dtype=np.uint64)))
    if distinct != len(seen) or len(seen) != stage.count_candidates():
        detail = f"{stage.count_candidates()} candidates in, {len(seen)} accounted for, {distinct} of them distinct"
        raise ConservationError(f"{stage.name}: {detail}")


@dataclass(slots=True)
class RefusedRows:
    """Refused rows that wait on disk, in pieces of one size, until shards are written."""

    folder: Path
    pieces: int = 0
    held: list[Rejection | Failure] = field(default_factory=list)

    def add(self, row: Rejection | Failure) -> None:
        """Keep a row."""
        self.held.append(row)
        if len(self.held) >= REFUSED_ROWS:
            self._spill()

    def finish(self) -> int:
        """Return how many pieces there are."""
        if self.held:
            self._spill()
        return self.pieces

    def read(self, piece: int) -> ShardRows:
        """Return the rows of a piece, none beyond the last one."""
        rows = ShardRows()
        if piece < self.pieces:
            with self._place(piece).open(encoding="utf-8") as source:
                for line in source:
                    kind, _, body = line.partition(" ")
                    rows.add((Rejection if kind == "rejected" else Failure).model_validate_json(body))
        return rows

    def _spill(self) -> None:
        with self._place(self.pieces).open("w", encoding="utf-8") as out:
            for row in self.held:
                kind = "rejected" if isinstance(row, Rejection) else "failed"
                out.write(f"{kind} {row.model_dump_json()}\n")
        self.pieces += 1
        self.held = []

    def _place(self, piece: int) -> Path:
        return self.folder / f"{piece:05}.jsonl"


def run_dataset_stage(stage: DatasetStage, folder: StageFolder, sources: Sequence[StageFolder]) -> int:
    """Run a stage that sees whole datasets; its output is one shard.

    Returns:
        1, the number of shards.

    Raises:
        ConservationError: if a row was made from no row of the first input.
    """
    started = time.monotonic()
    _empty_folder(folder)
    readers = [CountingReader(source, model) for source, model in zip(sources, stage.inputs, strict=True)]
    rows = ShardRows()
    with open_meter() as meter:
        for row in stage(readers):
            rows.add(row)
    came_in = frozenset(readers[0].ids)
    parents = {find_parent(stage, row, came_in): None for row in rows.kept}
    came = ShardInput(tuple(readers[0].ids), tuple(parents), "", meter.usage, time.monotonic() - started)
    write_shard(stage, folder, 0, came, rows)
    return 1


def _empty_folder(folder: StageFolder) -> None:
    """Remove what an interrupted run of a stage that is not cut beforehand left; nothing of it can be gone on with."""
    if folder.path.exists():
        shutil.rmtree(folder.path)


def find_parent(stage: Stage, row: Record, ids: frozenset[str]) -> str:
    """Return the input row an output row belongs to: the one whose id it keeps, or its parent."""
    for candidate in (row.record_id, row.parent_id):
        if candidate in ids:
            return candidate
    raise ConservationError(f"{stage.name}: {row.record_id} was made from no row that came in")


@dataclass(slots=True)
class CountingReader:
    """Iterates a sealed stage's kept rows and remembers their ids."""

    folder: StageFolder
    model: type[Record]
    ids: list[str] = field(default_factory=list)

    def __iter__(self) -> Iterator[Record]:
        """Yield the rows in shard order; may be iterated again."""
        self.ids.clear()
        for row in read_parts(self.folder, self.model):
            self.ids.append(row.record_id)
            yield row
