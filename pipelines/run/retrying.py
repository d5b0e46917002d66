"""``synth run --retry``: rows that failed, were unscored or were refused for a reason are asked again, and no others.

Their shards are made again. Each has a note of the rows, so that a worker knows them, and so does the next run if this
one is killed: it goes by the moment at which the retry began, and what was asked since then is not paid again.
"""

import time
from collections.abc import Callable, Sequence

import pyarrow.parquet as pq

from pipelines.errors import ConfigError
from pipelines.run.runner import PlannedStage
from pipelines.run.stage import RecordStage
from pipelines.run.workspace import StageFolder, write_model
from schemas.manifest import RetryNote, ShardSidecar

FAILED = "failed"
UNSCORED = {"unscored": frozenset(["unscored", "process-unscored"])}
"""What is named by one word, and the reasons that it stands for."""


def begin_retry(chosen: Sequence[PlannedStage], words: Sequence[str], say: Callable[[str], None]) -> None:
    """Open the shards again in which rows of stages that ask models ended as named.

    ``words`` are ``failed``, ``unscored`` and reasons; without any, nothing is retried.

    Raises:
        ConfigError: if no row ended so.
    """
    if not words:
        return
    before, count = int(time.time()), 0
    reasons = frozenset[str]().union(*(UNSCORED.get(word, {word}) for word in words))
    for plan in chosen:
        if not (isinstance(plan.stage, RecordStage) and plan.stage.models()):
            continue
        found = [(s, ids) for s in plan.folder.list_sidecars() if (ids := _find_rows(plan.folder, s, reasons))]
        for sidecar, ids in found:
            _open_shard(plan.folder, sidecar, RetryNote(before=before, ids=tuple(sorted(ids))))
        if rows := sum(len(ids) for _, ids in found):
            say(f"{plan.name}: {rows:,} rows are asked anew, of {len(found):,} shards")
        count += rows
    if not count:
        raise ConfigError(f"--retry {' '.join(words)}: no row of a stage that asks models ended so; see `synth sql`")


def _find_rows(folder: StageFolder, sidecar: ShardSidecar, reasons: frozenset[str]) -> set[str]:
    """Return the ids of a shard's rows that ended for one of the reasons."""
    ids: set[str] = set()
    if FAILED in reasons and sidecar.failed:
        ids |= set(pq.read_table(folder.failed(sidecar.shard))["record_id"].to_pylist())
    if reasons & sidecar.rejected.keys():
        filters = [("reason", "in", list(reasons))]
        ids |= set(pq.read_table(folder.rejected(sidecar.shard), filters=filters)["record_id"].to_pylist())
    return ids


def _open_shard(folder: StageFolder, sidecar: ShardSidecar, note: RetryNote) -> None:
    """Forget a shard, whose cost stays noted, and note which rows are asked again.

    The note comes last: a crash before it leaves a shard that is made again from recorded replies, and costs nothing.
    """
    folder.unseal()
    folder.note_stopped(sidecar.usage)
    folder.sidecar(sidecar.shard).unlink()
    write_model(folder.retried(sidecar.shard), note)
