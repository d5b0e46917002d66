"""Releases: duplicates and what splits share refused, and each question assigned to the datasets."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import ClassVar

from pipelines.checks.limits import Limits, leave_out, refuse_elsewhere, refuse_over_limits, sign_questions
from pipelines.checks.quotas import cut_rows
from pipelines.checks.sets import HeldOut, Signature, refuse_told
from pipelines.errors import ConfigError, ConservationError
from pipelines.ids import digest_value, make_record_id
from pipelines.pictures import PictureStore
from pipelines.services.prompting import WithoutModels
from schemas.base import Failure, Record, Rejection
from schemas.datasets import Dataset, Enhancement, ReleaseEntry, Split, Trajectory

SPLIT_OF_VQA: dict[Split, str] = {"sft": "train", "rl": "train", "eval": "test"}


@dataclass(frozen=True, slots=True)
class Releases(WithoutModels):
    """The stage: questions and accepted trajectories in, rows of the datasets out.

    The question with the smallest record id, which is a digest, wins among duplicates and under every limit, so the
    outcome does not depend on the order of rows. With target sizes the one that came first does: that of an earlier
    round, whose trajectories are paid for. Memory holds a signature a question, never its text.
    """

    limits: Limits = field(default_factory=Limits)
    pictures: PictureStore | None = None
    """Opened for pictures that are cropped or mirrored copies; without it the recorded hashes alone are compared."""
    name: str = "releases"
    version: int = 9
    inputs: ClassVar[tuple[type[Record], ...]] = (Enhancement, Trajectory)
    output: ClassVar[type[Record]] = ReleaseEntry

    def fingerprint(self) -> str:
        return digest_value([SPLIT_OF_VQA, self.limits.decides])

    def __call__(self, inputs: Sequence[Iterable[Record]]) -> Iterator[ReleaseEntry | Rejection | Failure]:
        signatures, strata = sign_questions(inputs[0], self.limits)
        known = {signature.record_id for signature in signatures}
        trajectories, told = collect_trajectories(inputs[1], known, HeldOut.of(signatures))
        refused = refuse_elsewhere(inputs[0], signatures, self.limits, self.pictures)
        refused |= refuse_told(leave_out(signatures, refused), told)
        kept = leave_out(signatures, refused)
        refused |= refuse_over_limits(kept, trajectories.keys(), self.limits)
        if self.limits.quotas:
            trajectories = cut_rows(leave_out(kept, refused), trajectories, self.limits.quotas, strata)
        for signature in sorted(signatures, key=lambda each: each.record_id):
            if signature.record_id in refused:
                yield refused[signature.record_id]
            else:
                yield from make_entries(signature, trajectories.get(signature.record_id, []))


def collect_trajectories(
    rows: Iterable[Record], questions: set[str], held_out: HeldOut
) -> tuple[dict[str, list[str]], dict[str, str]]:
    """Return the ids of each question's correct trajectories, sorted, and the questions whose observations tell a fact.

    The second is a question for evaluation by the question whose transcripts state its final fact.
    """
    found: defaultdict[str, list[str]] = defaultdict(list)
    told: dict[str, str] = {}
    for row in rows:
        if not isinstance(row, Trajectory):
            raise ConfigError(f"releases: the second input holds {type(row).__name__} rows; it takes Trajectory rows")
        if row.parent_id not in questions:
            raise ConservationError(
                f"releases: trajectory {row.record_id} names {row.parent_id}, which did not come in"
            )
        if row.verdict == "correct":
            found[row.parent_id].append(row.record_id)
            if fact := held_out.find_told(step.observation.text for step in row.steps if step.observation):
                told[row.parent_id] = fact
    return {question: sorted(ids) for question, ids in found.items()}, told


def make_entries(signature: Signature, trajectories: Sequence[str]) -> Iterator[ReleaseEntry]:
    """Yield a kept question's rows: one of its dataset, and those of its split."""
    yield _make_entry(signature.dataset, SPLIT_OF_VQA[signature.split], signature.record_id)
    if signature.split == "rl":
        yield _make_entry("rl", "train", signature.record_id)
    if signature.split == "sft":
        for trajectory in trajectories:
            yield _make_entry("sft", "train", signature.record_id, trajectory)


def _make_entry(dataset: Dataset, split: str, question: str, trajectory: str = "") -> ReleaseEntry:
    return ReleaseEntry(
        record_id=make_record_id("entry", [dataset, question, trajectory]),
        parent_id=question,
        dataset=dataset,
        split=split,
        trajectory_id=trajectory,
    )
