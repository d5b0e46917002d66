"""Records of a workspace's latest stages, read back as their models."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import pyarrow.parquet as pq

from pipelines.inspection.catalogue import LatestStage, list_latest
from pipelines.shards import read_parts
from schemas.base import Record
from schemas.difficulty import Difficulty
from schemas.enhancements import Enhancement
from schemas.groundings import Grounding
from schemas.paths import Path as WalkedPath
from schemas.questions import Question
from schemas.releases import ReleaseEntry
from schemas.rewrites import Rewrite
from schemas.rollouts import Rollout
from schemas.seeds import Seed
from schemas.trajectories import Trajectory

STAGE_MODELS: Mapping[str, type[Record]] = {
    "seeds": Seed,
    "paths": WalkedPath,
    "questions": Question,
    "rewrites": Rewrite,
    "groundings": Grounding,
    "difficulty": Difficulty,
    "enhancements": Enhancement,
    "rollouts": Rollout,
    "trajectories": Trajectory,
    "releases": ReleaseEntry,
}


@dataclass(frozen=True, slots=True)
class Refusal:
    """A refused or failed row."""

    stage: str
    record_id: str
    kind: str
    """``rejected`` or ``failed``."""
    reason: str
    detail: str


def read_stage(root: Path, stage: str) -> Iterator[Record]:
    """Yield the kept rows of a stage's latest sealed output; nothing when there is none."""
    for found in list_latest(root):
        if found.stage == stage and stage in STAGE_MODELS:
            yield from read_parts(found.folder, STAGE_MODELS[stage])


def read_refusals(found: LatestStage) -> Iterator[Refusal]:
    """Yield what a stage refused, then what failed in it."""
    for kind, column in (("rejected", "reason"), ("failed", "error")):
        for path in sorted(found.folder.path.glob(f"{kind}-*.parquet")):
            for row in pq.read_table(path, columns=["record_id", column, "detail"]).to_pylist():
                yield Refusal(found.stage, row["record_id"], kind, row[column], row["detail"])
