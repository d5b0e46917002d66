"""Spans: the shards of a chain cut into lists that run anywhere, each on one event loop of one process.

A span is the unit of dispatch, a shard stays the unit of commit: sidecars say what is done, so a span that is run again
makes only what is missing. What travels to a worker and back is here; :mod:`.workers` is what runs there, and
:mod:`.executors` what drives it.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

from pipelines.checks.quotas import Quotas
from pipelines.config.settings import RunConfig
from pipelines.run.runner import PlannedStage, find_shard, read_source
from pipelines.services.health import Health
from schemas.manifest import InputEntry

SPANS = 4
"""Spans a worker: enough that none is idle for long at the end, few enough to be seen one by one."""


@dataclass(frozen=True, slots=True)
class Span:
    """Shards of a chain of stages.

    Attributes:
        stages: name and key of each stage of the chain, in order.
        shards: numbers of the shards, the same for each stage.
    """

    stages: tuple[tuple[str, str], ...]
    shards: tuple[int, ...]

    def describe(self) -> str:
        """Return the name of its task."""
        first, last = self.stages[0][0], self.stages[-1][0]
        chain = first if first == last else f"{first}-{last}"
        return f"{chain} {self.shards[0]:05d}-{self.shards[-1]:05d} ({len(self.shards)})"


def cut_spans(shards: Sequence[int], most: int) -> list[tuple[int, ...]]:
    """Cut shards into at most so many lists that are as long as one another; each shard is in exactly one."""
    count = min(most, len(shards))
    bounds = [len(shards) * number // count for number in range(count + 1)] if count else []
    return [tuple(shards[low:high]) for low, high in pairwise(bounds)]


def list_missing(chain: Sequence[PlannedStage]) -> list[int]:
    """Return the shards of a chain of which some stage has none that is made of its present input."""
    missing = []
    for source in read_source(chain[0]).shards:
        made: Any = source
        for plan in chain:
            made = made and find_shard(plan, made)
        if made is None:
            missing.append(source.shard)
    return missing


def make_spans(chain: Sequence[PlannedStage], workers: int) -> list[Span]:
    """Return what is missing of a chain as spans for so many workers."""
    stages = tuple((plan.name, plan.key) for plan in chain)
    return [Span(stages, shards) for shards in cut_spans(list_missing(chain), SPANS * workers)]


@dataclass(frozen=True, slots=True)
class WorkerSpec:
    """What a worker needs to make any span of a run.

    Attributes:
        config: of the run.
        root: the workspace.
        last: last stage that is planned, empty for all.
        corpus: the run's corpus: the name of its folder and its digest.
        run: name of the run, as the workspace has it.
        stop: file in the workspace whose appearance asks workers to stop.
        quotas: of the round of drawing; None where no target size is set.
    """

    config: RunConfig
    root: Path
    last: str
    corpus: InputEntry
    run: str = ""
    stop: Path = field(default=Path())
    quotas: Quotas | None = None


@dataclass(slots=True)
class SpanReport:
    """How a span ended in its worker. Errors travel in it, so that what was read before them is not lost.

    Attributes:
        healths: the replies that each stage has read, by its name.
        scored: how many answers of a stage were unscored, of how many.
        error: what stopped it.
        unusable: stages of which too many replies were unusable.
    """

    healths: dict[str, Health] = field(default_factory=dict)
    scored: dict[str, tuple[int, int]] = field(default_factory=dict)
    error: Exception | None = None
    unusable: tuple[str, ...] = ()
