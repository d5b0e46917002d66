"""Which rows two versions of a release do not share, and how the funnel moved."""

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from pipelines.errors import ConfigError, CorruptInput
from pipelines.ids import digest_value
from pipelines.release.manifest import FunnelRow, ReleaseManifest, read_release_manifest
from pipelines.release.rows import GROUP_ROWS
from schemas.manifest import Manifest

Counted = FunnelRow | Manifest
RowDigests = dict[str, dict[str, str]]
"""Row id to column name to the digest of the cell."""


@dataclass(frozen=True, slots=True)
class ChangedRow:
    """A row of both versions, and the columns in which it differs."""

    id: str
    columns: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class FunnelShift:
    """One number of one stage that changed: ``rows_in``, ``kept``, ``failed``, ``rows_out`` or a rejection reason."""

    stage: str
    number: str
    before: int
    after: int


@dataclass(frozen=True, slots=True)
class ReleaseDiff:
    """The difference of two versions of one dataset."""

    dataset: str
    before: str
    after: str
    added: tuple[str, ...]
    removed: tuple[str, ...]
    changed: tuple[ChangedRow, ...]
    same: int
    funnel: tuple[FunnelShift, ...]


def diff_releases(before: Path, after: Path) -> ReleaseDiff:
    """Compare two release folders row by row.

    Raises:
        ConfigError: if a folder is no release, or they are of different datasets.
        CorruptInput: if an id occurs twice in one of them.
    """
    old, new = read_release_manifest(before), read_release_manifest(after)
    if old.dataset != new.dataset:
        raise ConfigError(
            f"diff: {before} is {old.dataset}, {after} is {new.dataset}; give two versions of one dataset"
        )
    old_rows, new_rows = digest_rows(before), digest_rows(after)
    common = sorted(old_rows.keys() & new_rows.keys())
    changed = [row for row in (_compare(name, old_rows[name], new_rows[name]) for name in common) if row.columns]
    return ReleaseDiff(
        dataset=new.dataset,
        before=old.version,
        after=new.version,
        added=tuple(sorted(new_rows.keys() - old_rows.keys())),
        removed=tuple(sorted(old_rows.keys() - new_rows.keys())),
        changed=tuple(changed),
        same=len(common) - len(changed),
        funnel=tuple(_compare_funnels(old, new)),
    )


def digest_rows(folder: Path) -> RowDigests:
    """Return the digest of each cell of each data row; the file a row lies in counts as its ``split``."""
    rows: RowDigests = {}
    for path in sorted((folder / "data").glob("*.parquet")):
        split = path.name.split("-", 1)[0]
        with pq.ParquetFile(path) as source:
            for batch in source.iter_batches(batch_size=GROUP_ROWS):
                for row in batch.to_pylist():
                    if row["id"] in rows:
                        raise CorruptInput(f"diff: {folder} has {row['id']} twice; ids must be unique")
                    cells = {name: digest_value(_hash_bytes(value)) for name, value in row.items()}
                    rows[row["id"]] = cells | {"split": split}
    return rows


def _hash_bytes(value: Any) -> Any:  # noqa: ANN401 - a Parquet value
    if isinstance(value, bytes):
        return hashlib.sha256(value).hexdigest()
    if isinstance(value, dict):
        return {name: _hash_bytes(inner) for name, inner in value.items()}
    return [_hash_bytes(inner) for inner in value] if isinstance(value, list) else value


def _compare(name: str, old: dict[str, str], new: dict[str, str]) -> ChangedRow:
    columns = sorted(old.keys() | new.keys())
    return ChangedRow(name, tuple(column for column in columns if old.get(column) != new.get(column)))


def _compare_funnels(old: ReleaseManifest, new: ReleaseManifest) -> Iterator[FunnelShift]:
    before, after = ({row.stage: row for row in manifest.funnel} for manifest in (old, new))
    for stage in dict.fromkeys([*before, *after]):
        yield from list_shifts(stage, before.get(stage), after.get(stage))


def list_shifts(stage: str, old: Counted | None, new: Counted | None) -> Iterator[FunnelShift]:
    """Yield the numbers of a stage that two runs do not share; a run without the stage has none."""
    before, after = ({} if row is None else _list_numbers(row) for row in (old, new))
    for number in dict.fromkeys([*before, *after]):
        if before.get(number, 0) != after.get(number, 0):
            yield FunnelShift(stage, number, before.get(number, 0), after.get(number, 0))


def _list_numbers(row: Counted) -> dict[str, int]:
    refused = {f"rejected: {reason}": count for reason, count in sorted(row.rejected.items())}
    return {"rows_in": row.rows_in, "kept": row.kept, **refused, "failed": row.failed, "rows_out": row.rows_out}
