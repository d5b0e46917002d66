"""Shard files: rows in, three Parquet files and a sidecar out; what exists is complete.

``rows_in = kept + rejected + failed`` is held by identity, not by count: every row that came in ends in one place.
"""

from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from pipelines.errors import ConfigError, ConservationError, Damaged
from pipelines.files import replacing
from pipelines.ids import digest_file, digest_value
from pipelines.run.stage import ExtendedStage, Stage
from pipelines.run.workspace import StageFolder, write_model
from schemas.base import Failure, Record, RecordT, Rejection, make_table, read_row
from schemas.datasets import REFUSALS, FetchedPicture
from schemas.manifest import FileEntry, InputEntry, Manifest, PluginEntry, ShardSidecar, Usage
from schemas.reasons import STAGE_REASONS

ROW_GROUP = 1000
ROWS_AT_ONCE = 64
"""Rows of a part that are read together: a transcript may take megabytes."""


@dataclass(slots=True)
class ShardRows:
    """The outcomes of one shard's rows, in input order."""

    kept: list[Record] = field(default_factory=list)
    rejected: list[Rejection] = field(default_factory=list)
    failed: list[Failure] = field(default_factory=list)

    def add(self, row: Record | Rejection | Failure) -> None:
        """File one row where it belongs."""
        if isinstance(row, Rejection):
            self.rejected.append(row)
        elif isinstance(row, Failure):
            self.failed.append(row)
        else:
            self.kept.append(row)


@dataclass(frozen=True, slots=True)
class ShardInput:
    """What came into a shard, and which of it led to rows."""

    ids: tuple[str, ...]
    """Id of every row that came in."""
    kept: tuple[str, ...]
    """Those that made at least one row out."""
    source: str = ""
    """sha256 of the part they were read from, empty for a stage that reads no single part."""
    usage: Usage = field(default_factory=Usage)
    seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class Origin:
    """Where a stage's output comes from, for its manifest."""

    inputs: tuple[InputEntry, ...]
    config_digest: str
    git_commit: str
    rows_in: int = -1
    """Rows the input stage made, to be met exactly; -1 where rows do not come from one stage."""
    plugins: tuple[PluginEntry, ...] = ()
    """Those that decided the stage's rows."""


def read_rows(path: Path, model: type[RecordT]) -> Iterator[RecordT]:
    """Yield a part's rows as records, batch by batch.

    Raises:
        Damaged: if the file is damaged.
    """
    try:
        with pq.ParquetFile(path) as source:
            # One call for all groups would keep every group in memory.
            for group in range(source.num_row_groups):
                for batch in source.iter_batches(batch_size=ROWS_AT_ONCE, row_groups=[group]):
                    for row in batch.to_pylist():
                        row.pop("key")
                        yield read_row(model, row)
    except (pa.ArrowException, KeyError, OSError, UnicodeDecodeError) as error:
        raise Damaged(path, f"cannot be read ({error})", explain_remake(path.parent)) from error


def explain_remake(folder: Path) -> str:
    """Return how a stage is made again, given its folder."""
    return f"remove {folder}: `synth run` then makes {folder.parent.name} again from recorded replies"


def read_parts(folder: StageFolder, model: type[RecordT]) -> Iterator[RecordT]:
    """Yield all kept rows of a sealed stage in shard order; only files its manifest names are read.

    Raises:
        ConfigError: if the stage is not sealed.
        Damaged: if a file is damaged.
    """
    for path in list_parts(folder):
        yield from read_rows(path, model)


def read_rejections(folder: StageFolder, reasons: Collection[str]) -> Iterator[Rejection]:
    """Yield the refused rows of a sealed stage that some reasons were given for; other shards are not opened.

    Raises:
        Damaged: if a file is damaged.
    """
    manifest = folder.read_manifest()
    for sidecar in manifest.shards if manifest is not None else ():
        if sidecar.rejected.keys() & set(reasons):
            path = folder.rejected(sidecar.shard)
            try:
                rows = pq.read_table(path).to_pylist()
            except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
                raise Damaged(path, f"cannot be read ({error})", explain_remake(path.parent)) from error
            model = find_refusal(folder.path.parent.name)
            yield from (model.model_validate(row, strict=False) for row in rows if row["reason"] in reasons)


def list_parts(folder: StageFolder) -> Iterator[Path]:
    """Yield the parts of a sealed stage in shard order, each held against its sha256 first.

    Raises:
        ConfigError: if the stage is not sealed.
        Damaged: if a part is gone or has other bytes.
    """
    manifest = folder.read_manifest()
    if manifest is None:
        raise ConfigError(f"{folder.path}: not complete; run `synth run` to finish it")
    for sidecar in manifest.shards:
        path = folder.part(sidecar.shard)
        check_part(path, sidecar.files[0].sha256)
        yield path


def check_part(path: Path, sealed: str = "") -> str:
    """Hold a part against the sha256 of its sidecar before anything is built on it, and return its sha256.

    Raises:
        Damaged: if the file is gone or has other bytes; an empty ``sealed`` stands for any.
    """
    digest = digest_file(path) if path.is_file() else ""
    if not digest or sealed not in ("", digest):
        raise Damaged(path, "is not the file that was sealed" if digest else "is missing", explain_remake(path.parent))
    return digest


def write_shard(stage: Stage, folder: StageFolder, shard: int, came: ShardInput, rows: ShardRows) -> ShardSidecar:
    """Write a shard's three files, then its sidecar, and return that.

    Raises:
        ConservationError: if rows were lost or invented, or a reason is not the stage's.
    """
    check_conservation(stage, shard, came, rows)
    key = folder.path.name
    files = (
        _write_rows(folder.part(shard), make_table(stage.output, rows.kept, key)),
        _write_rows(folder.rejected(shard), _make_refused(stage.name, rows.rejected)),
        _write_rows(folder.failed(shard), make_table(Failure, rows.failed)),
    )
    sidecar = ShardSidecar(
        shard=shard,
        source=came.source,
        rows_in=len(came.ids),
        kept=len(came.kept),
        rejected=dict(sorted(Counter(row.reason for row in rows.rejected).items())),
        failed=len(rows.failed),
        rows_out=len(rows.kept),
        files=files,
        usage=came.usage,
        seconds=round(came.seconds, 3),
    )
    write_model(folder.sidecar(shard), sidecar)
    return sidecar


def count_pools(folder: StageFolder) -> Counter[str]:
    """Return how many of a sealed stage's questions are of each pool, those made here under an empty name."""
    counts = Counter[str]()
    for path in list_parts(folder):
        for batch in pq.ParquetFile(path).iter_batches(columns=["origin.pool"]):
            counts.update((row or {}).get("pool") or "" for row in batch.column("origin").to_pylist())
    return counts


def check_conservation(stage: Stage, shard: int, came: ShardInput, rows: ShardRows) -> None:
    """Hold every id that came in against where it went.

    Raises:
        ConservationError: naming the first ids that are lost, invented or in two places.
    """
    went = Counter([*came.kept, *(row.record_id for row in rows.rejected), *(row.record_id for row in rows.failed)])
    entered = Counter(came.ids)
    wrong = sorted((went - entered) | (entered - went)) or [i for i, count in entered.items() if count > 1]
    if wrong:
        detail = f"{sum(entered.values())} rows in, {sum(went.values())} accounted for; see {', '.join(wrong[:3])}"
        raise ConservationError(f"{stage.name} shard {shard}: {detail}")
    allowed = {*STAGE_REASONS.get(stage.name, ()), *(stage.reasons if isinstance(stage, ExtendedStage) else ())}
    strange = {str(row.reason) for row in rows.rejected} - allowed
    if strange:
        raise ConservationError(f"{stage.name}: reasons {sorted(strange)} are not in its closed list")


def find_refusal(stage: str) -> type[Rejection]:
    """Return the type of a stage's refused rows."""
    return REFUSALS.get(stage, Rejection)


def _make_refused(stage: str, rows: Sequence[Rejection]) -> pa.Table:
    model = find_refusal(stage)
    return make_table(model, [row if isinstance(row, model) else model(**dict(row)) for row in rows])


def _write_rows(path: Path, table: pa.Table) -> FileEntry:
    with replacing(path) as temp:
        pq.write_table(table, temp, compression="zstd", compression_level=3, row_group_size=ROW_GROUP)
    return FileEntry(name=path.name, rows=table.num_rows, bytes=path.stat().st_size, sha256=digest_file(path))


def seal_stage(stage: Stage, folder: StageFolder, shards: int, origin: Origin) -> Manifest:
    """Write the manifest over all sidecars: from now on the stage is complete. Files of an older cut are removed.

    Raises:
        ConservationError: if a sidecar is missing, rows of the input were left out, or two rows share an id.
    """
    sidecars = []
    for shard in range(shards):
        sidecar = folder.read_sidecar(shard)
        if sidecar is None:
            raise ConservationError(f"{stage.name}: shard {shard} of {shards} has no sidecar and cannot be sealed")
        sidecars.append(sidecar)
    rows_in = sum(sidecar.rows_in for sidecar in sidecars)
    if origin.rows_in not in (-1, rows_in):
        raise ConservationError(f"{stage.name}: its input has {origin.rows_in} rows, its shards read {rows_in}")
    _check_unique(stage, folder, shards)
    _remove_strangers(folder, sidecars)
    manifest = _make_manifest(stage, folder, sidecars, origin)
    write_model(folder.manifest, manifest)
    folder.unsealed.unlink(missing_ok=True)
    return manifest


def _make_manifest(stage: Stage, folder: StageFolder, sidecars: Sequence[ShardSidecar], origin: Origin) -> Manifest:
    return Manifest(
        stage=stage.name,
        stage_version=stage.version,
        key=folder.path.name,
        inputs=origin.inputs,
        prompts=stage.prompts(),
        models=stage.models(),
        config_digest=origin.config_digest,
        git_commit=origin.git_commit,
        **sum_sidecars(sidecars),
        stopped=folder.read_stopped(),
        seconds=round(sum(sidecar.seconds for sidecar in sidecars), 3),
        shards=tuple(sidecars),
        digest=digest_value([[entry.name, entry.rows, entry.sha256] for s in sidecars for entry in s.files]),
        plugins=origin.plugins,
    )


def sum_sidecars(sidecars: Sequence[ShardSidecar]) -> dict[str, Any]:
    """Return rows and usage of shards together, by the names that sidecars and manifests have in common."""
    rejected = Counter[str]()
    for sidecar in sidecars:
        rejected.update(sidecar.rejected)
    numbers = {
        name: sum(getattr(each, name) for each in sidecars) for name in ("rows_in", "kept", "failed", "rows_out")
    }
    usage = sum((sidecar.usage for sidecar in sidecars), Usage())
    return numbers | {"rejected": dict(sorted(rejected.items())), "usage": usage}


def _check_unique(stage: Stage, folder: StageFolder, shards: int) -> None:
    seen: set[str] = set()
    for shard in range(shards):
        ids = pq.read_table(folder.part(shard), columns=["record_id"])["record_id"].to_pylist()
        twice = sorted(seen.intersection(ids)) or sorted(i for i, count in Counter(ids).items() if count > 1)
        if twice:
            raise ConservationError(f"{stage.name}: two rows out have the id {twice[0]}")
        seen.update(ids)


def _remove_strangers(folder: StageFolder, sidecars: Sequence[ShardSidecar]) -> None:
    """Remove shard files of an interrupted run that was cut otherwise: readers go by the pattern of their names."""
    known = {entry.name for sidecar in sidecars for entry in sidecar.files}
    known |= {folder.sidecar(sidecar.shard).name for sidecar in sidecars}
    for pattern in ("part-*", "rejected-*", "failed-*"):
        for path in folder.path.glob(pattern):
            if path.name not in known:
                path.unlink()


def read_fetched(folder: StageFolder) -> Iterator[FetchedPicture]:
    """Yield what was fetched for each row of groundings, in order; no other column is read.

    Raises:
        ConfigError: if the stage is not complete: pictures of rows that are still to come would be missing.
        CorruptInput: if a part is gone or has other bytes.
    """
    for path in list_parts(folder):
        for batch in pq.ParquetFile(path).iter_batches(columns=["fetched"]):
            for row in batch.column("fetched").flatten().to_pylist():
                yield FetchedPicture.model_validate(row)
