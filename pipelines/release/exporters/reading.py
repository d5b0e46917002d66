"""Rows of JSON-lines and Parquet files, a few in memory at a time."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, TypeVar

import pyarrow as pa
import pyarrow.parquet as pq
from pydantic import ValidationError

from pipelines.errors import CorruptInput
from pipelines.release.manifest import check_release_files
from pipelines.release.rows import RlRow, SftRow, explain_misfit
from schemas.releases import Dataset

RowT = TypeVar("RowT", SftRow, RlRow)
ROWS_AT_ONCE = 8
"""Rows of a table that are objects of Python at a time; each may hold its pictures."""


def read_lines(path: Path) -> Iterator[dict[str, Any]]:
    """Yield the rows of a JSON-lines file.

    Raises:
        CorruptInput: if a line is no JSON object.
    """
    with path.open("rb") as lines:
        for number, line in enumerate(lines, 1):
            row = _read_json(line, f"{path}: line {number}")
            if not isinstance(row, dict):
                raise CorruptInput(f"{path}: line {number} is no JSON object")
            yield row


def read_document(path: Path) -> object:
    """Return what a JSON file holds, all of it in memory.

    Raises:
        CorruptInput: if it is none.
    """
    return _read_json(path.read_bytes(), str(path))


def _read_json(source: bytes, where: str) -> object:
    """Return a value; of bytes that are no UTF-8 the decoder's error is a ValueError, too."""
    try:
        return json.loads(source.decode())
    except (ValueError, RecursionError) as error:
        raise CorruptInput(f"{where} is no JSON: {error}") from error


def read_table(path: Path) -> Iterator[dict[str, Any]]:
    """Yield the rows of a Parquet file, a few in memory at a time.

    Raises:
        CorruptInput: if it cannot be read.
    """
    try:
        with pq.ParquetFile(path) as source:
            for group in range(source.num_row_groups):
                # Asked for all at once, it would keep every group that it has read.
                for batch in source.iter_batches(batch_size=ROWS_AT_ONCE, row_groups=[group]):
                    yield from batch.to_pylist()
    except (pa.ArrowException, UnicodeDecodeError) as error:
        raise CorruptInput(f"{path}: a Parquet file cannot be read: {error}") from error


def read_release(release: Path, dataset: Dataset, model: type[RowT]) -> Iterator[tuple[str, RowT]]:
    """Yield the split and each row of a release, split by split, in the order of its files.

    Raises:
        ConfigError: if there is no readable manifest.
        CorruptInput: if it is a release of another dataset, or a row is not what such a release holds.
        GateNotMet: if a file is not the one that the manifest lists.
    """
    manifest = check_release_files(release)
    if manifest.dataset != dataset:
        raise CorruptInput(f"release {release}: its dataset is {manifest.dataset}; rows are read from {dataset}")
    for path in sorted((release / "data").glob("*.parquet")):
        for values in read_table(path):
            yield path.name.partition("-")[0], _read_row(values, model, path)


def _read_row(values: dict[str, Any], model: type[RowT], path: Path) -> RowT:
    try:
        return model.model_validate(values, strict=False)
    except ValidationError as error:
        what = f"{path}: row {values.get('id')!r} is no {model.__name__} of this version"
        raise CorruptInput(f"{what}: {explain_misfit(error)}; make the release anew") from error
