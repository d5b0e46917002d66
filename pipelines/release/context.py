"""What a release says of its origin, and what publishing returns."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from schemas.manifest import InputEntry, ManifestPart, ModelEntry
from schemas.releases import Dataset

SHARD_BYTES = 400_000_000


class FunnelRow(ManifestPart):
    """What became of the rows of one stage: ``rows_in = kept + rejected + failed``."""

    stage: str
    rows_in: int
    kept: int
    rejected: dict[str, int]
    failed: int
    rows_out: int


@dataclass(frozen=True, slots=True)
class ReleaseContext:
    """Where the rows come from. Nothing here may differ between two runs of the same work: no time, host or cost."""

    corpus: str
    """Content digest of the corpus that the proofs' offsets refer to."""
    snapshot: str
    """The dump's date as the corpus gives it, such as ``2026-09-01``."""
    base_url: str
    """Address that a title with underscores is appended to, such as ``https://en.wikipedia.org/wiki/``."""
    recipe: str
    seeds: Mapping[str, int]
    """Seed of each random choice by name."""
    config_digest: str
    git_commit: str
    lineage: tuple[InputEntry, ...]
    """Corpus and stages with their keys and manifest digests, in pipeline order."""
    funnel: tuple[FunnelRow, ...]
    models: tuple[ModelEntry, ...]
    prompts: Mapping[str, str]
    """Prompt label to the sha256 of its file."""
    tools: str
    """JSON array of the tools' schemas, as the teacher saw them."""
    system: str = ""
    """System message of the rows where the teacher's own does not say how to call a tool, as with native calls."""
    unknown_licences: bool = False
    """Whether pages and pictures may pass whose licence nobody knows."""
    shard_bytes: int = field(default=SHARD_BYTES)
    """Largest Parquet file, bytes before compression."""


@dataclass(frozen=True, slots=True)
class PublishedRelease:
    """One published dataset; the same content always has the same version."""

    dataset: Dataset
    version: str
    path: Path
    rows: int
