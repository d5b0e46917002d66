"""The rows of an RL release taken apart, and the tables that RL trainers read.

Nothing is believed that was not checked: the files against the manifest, a picture against the name its content gives
it, the prompt against question and pictures.
"""

from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from pipelines.errors import CorruptInput
from pipelines.release.exporters.base import VerifiedPicture, check_picture, read_release
from pipelines.release.rows import RlRow, open_writer, show_pictures

ROWS_AT_ONCE = 8
"""Rows in memory at a time; each holds its pictures and thumbnails."""
TRAIN = "train"
"""The split that is trained on; every other one is tested on."""


@dataclass(frozen=True, slots=True)
class FoundThing:
    """One page that a search by the question's picture finds, best first."""

    title: str
    url: str
    thumbnail: VerifiedPicture | None


@dataclass(frozen=True, slots=True)
class RlTask:
    """One question to be answered with tools."""

    id: str
    split: str
    index: int
    """Place in its split, from 0."""
    question: str
    """Without placeholders."""
    pictures: tuple[VerifiedPicture, ...]
    answer: str
    answer_type: str
    accepted: tuple[str, ...]
    """Every accepted answer, the answer first."""
    results: tuple[FoundThing, ...]

    @property
    def prompt(self) -> str:
        """The question with its placeholders before it."""
        return show_pictures(len(self.pictures), self.question)

    @property
    def replayed(self) -> tuple[FoundThing, ...]:
        """The results that have a thumbnail, for readers that keep titles and thumbnails in two lists."""
        return tuple(found for found in self.results if found.thumbnail is not None)


def read_tasks(release: Path) -> Iterator[RlTask]:
    """Yield the rows of an RL release; see :func:`read_release` for their order and the errors.

    Raises:
        CorruptInput: if the parts of a row do not belong together.
    """
    for split, row in read_release(release, "rl", RlRow):
        yield take_apart(row, split)


def take_apart(row: RlRow, split: str) -> RlTask:
    """Return a row as a task.

    Raises:
        CorruptInput: if prompt, question, answer and pictures do not belong together.
    """
    pictures = tuple(check_picture(image, row.id) for image in row.images)
    results = tuple(
        FoundThing(found.title, found.url, check_picture(found.thumbnail, row.id) if found.thumbnail else None)
        for found in row.image_search
    )
    truth, accepted = row.reward_model.ground_truth, row.reward_model.candidate_answers
    extra = row.extra_info
    task = RlTask(
        row.id,
        split,
        extra.index,
        extra.question,
        pictures,
        truth,
        extra.answer_type,
        tuple(dict.fromkeys((truth, *accepted))),
        results,
    )
    asked = [(message.role, message.content) for message in row.prompt]
    if asked != [("user", task.prompt)]:
        raise CorruptInput(f"{row.id}: the prompt is not the question after one placeholder for each picture")
    if extra.answer != truth or extra.split != split:
        raise CorruptInput(f"{row.id}: answer or split in extra_info are not those of the row")
    return task


class PlainTables:
    """Parquet files of an export, one a split, with no word of the Hub's features in them.

    Readers that decode an Image feature would hand on pictures that are no longer the bytes they came from.
    """

    def __init__(self, folder: Path, schema: pa.Schema, suffix: str = "") -> None:
        self.folder = folder
        self.schema = schema
        self.suffix = suffix
        self.rows: dict[str, int] = {}
        self._waiting: dict[str, list[dict[str, Any]]] = {}
        self._writers: dict[str, pq.ParquetWriter] = {}
        self._stack = ExitStack()

    def __enter__(self) -> "PlainTables":
        return self

    def __exit__(self, *_: object) -> None:
        with self._stack:
            for split in self._waiting:
                self._flush(split)

    def write(self, split: str, row: Mapping[str, Any]) -> None:
        """Append a row to the split's file."""
        waiting = self._waiting.setdefault(split, [])
        waiting.append(dict(row))
        self.rows[split] = self.rows.get(split, 0) + 1
        if len(waiting) == ROWS_AT_ONCE:
            self._flush(split)

    def _flush(self, split: str) -> None:
        if split not in self._writers:
            writer = open_writer(self.folder / f"{split}{self.suffix}.parquet", self.schema)
            self._writers[split] = self._stack.enter_context(writer)
        rows, self._waiting[split] = self._waiting[split], []
        if rows:
            self._writers[split].write_table(pa.Table.from_pylist(rows, schema=self.schema))
