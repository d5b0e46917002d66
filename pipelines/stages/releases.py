"""Releases: duplicates and what splits share refused, and each question assigned to the datasets."""

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import ClassVar

from pipelines.checks.apartness import Apart
from pipelines.checks.mixes import refuse_mix
from pipelines.checks.pictures import COPY_DISTANCE, hash_variants
from pipelines.checks.sets import (
    HeldOut,
    Signature,
    make_signature,
    refuse_anchors,
    refuse_answers,
    refuse_duplicates,
    refuse_like_pictures,
    refuse_search_free,
    refuse_shared,
    refuse_skeletons,
    refuse_told,
)
from pipelines.config.settings import ReleasesConfig
from pipelines.errors import ConfigError, ConservationError
from pipelines.ids import digest_value, make_record_id
from pipelines.pictures import PictureStore
from schemas.base import Failure, Record, Rejection
from schemas.datasets import Dataset, Enhancement, ReleaseEntry, Split, Trajectory
from schemas.manifest import ModelEntry

SPLIT_OF_VQA: dict[Split, str] = {"sft": "train", "rl": "train", "eval": "test"}
PASSES = 16
"""Most passes in which the two share limits are applied in turn."""
Limit = Callable[[Sequence[Signature]], dict[str, Rejection]]
"""Returns its rejections among the questions kept so far."""


@dataclass(frozen=True, slots=True)
class Releases:
    """The stage: questions and accepted trajectories in, rows of the sft, rl, vqa and exam datasets out.

    The question with the smallest record id, which is a digest, wins among duplicates and under every limit, so the
    outcome does not depend on the order of rows. Memory holds a signature a question, never its text.
    """

    settings: ReleasesConfig = field(default_factory=ReleasesConfig)
    pictures: PictureStore | None = None
    """Opened for pictures that are cropped or mirrored copies; without it the recorded hashes alone are compared."""
    apart: Apart = field(default_factory=Apart)
    """What no question may share with other releases."""
    shares: Mapping[int, float] = field(default_factory=dict)
    """Wanted shares of the numbers of rounds; empty: not looked at."""
    name: str = "releases"
    version: int = 7
    inputs: ClassVar[tuple[type[Record], ...]] = (Enhancement, Trajectory)
    output: ClassVar[type[Record]] = ReleaseEntry

    def fingerprint(self) -> str:
        """Digest of the split table and the limits."""
        settings = self.settings
        limits: list[float] = [settings.max_per_answer, settings.max_per_anchor]
        limits += [settings.max_skeleton_share, settings.max_search_free]
        mix = [sorted(self.shares.items()), settings.rounds_tolerance]
        return digest_value([SPLIT_OF_VQA, limits, mix, settings.exam, self.apart.digest])

    def prompts(self) -> dict[str, str]:
        """No prompt: nothing here asks a model."""
        return {}

    def models(self) -> tuple[ModelEntry, ...]:
        """No model."""
        return ()

    def __call__(self, inputs: Sequence[Iterable[Record]]) -> Iterator[ReleaseEntry | Rejection | Failure]:
        """Yield the entries of each question, or its one rejection, by record id.

        Raises:
            ConservationError: if a trajectory names a question that did not come in.
        """
        signatures = sorted(map(make_signature, inputs[0]), key=lambda signature: signature.record_id)
        known = {signature.record_id for signature in signatures}
        trajectories, told = collect_trajectories(inputs[1], known, HeldOut.of(signatures))
        refused = self.apart.refuse(signatures)
        refused |= refuse_shared([each for each in signatures if each.record_id not in refused])
        refused |= self._refuse_like([each for each in signatures if each.record_id not in refused])
        refused |= refuse_told((each for each in signatures if each.record_id not in refused), told)
        kept = [each for each in signatures if each.record_id not in refused]
        refused |= self._refuse(kept, trajectories.keys())
        for signature in signatures:
            if signature.record_id in refused:
                yield refused[signature.record_id]
            else:
                yield from make_entries(signature, trajectories.get(signature.record_id, []), exam=self.settings.exam)

    def _refuse_like(self, signatures: Sequence[Signature]) -> dict[str, Rejection]:
        """Return the rejections of questions that train on a picture like one of evaluation."""
        store = self.pictures
        if store is None:
            return {}
        return refuse_like_pictures(signatures, lambda sha256: hash_variants(store.load(sha256)[0]), COPY_DISTANCE)

    def _refuse(self, signatures: Sequence[Signature], solved: Collection[str]) -> dict[str, Rejection]:
        """Return the rejections of duplicates, then of each limit in turn; a limit counts rows kept so far."""
        kept, refused = refuse_duplicates(signatures)
        limits: list[Limit] = [
            partial(refuse_anchors, cap=self.settings.max_per_anchor),
            partial(refuse_answers, cap=self.settings.max_per_answer),
        ]
        # Shares are of what is kept: what one of them refuses may leave too much under the other.
        for number in range(PASSES + 1):
            count = len(refused)
            limits.append(partial(self._refuse_search_free, number=number))
            limits.append(partial(refuse_skeletons, solved=solved, share=self.settings.max_skeleton_share))
            limits.append(partial(refuse_mix, shares=self.shares, tolerance=self.settings.rounds_tolerance))
            for refuse in limits:
                refused |= refuse(kept)
                kept = [signature for signature in kept if signature.record_id not in refused]
            limits.clear()
            if len(refused) == count:
                break
        return refused

    def _refuse_search_free(self, signatures: Sequence[Signature], number: int) -> dict[str, Rejection]:
        """Refuse questions that need no search beyond their share, in pass ``number``.

        The two share limits pull at each other. A share found broken again is undercut, by twice as much in each pass,
        so that both are met in a few passes and not a row at a time.
        """
        over = refuse_search_free(signatures, self.settings.max_search_free)
        spared = 2.0 ** (number - PASSES) if over and number else 0.0
        return refuse_search_free(signatures, self.settings.max_search_free * (1.0 - spared)) if spared else over


def collect_trajectories(
    rows: Iterable[Record], questions: set[str], held_out: HeldOut
) -> tuple[dict[str, list[str]], dict[str, str]]:
    """Return the ids of each question's correct trajectories, sorted, and the questions whose observations tell a fact.

    The second is a question for evaluation by the question whose transcripts state its final fact.

    Raises:
        ConfigError: if a row is no Trajectory.
        ConservationError: if a trajectory names a question that did not come in.
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


def make_entries(signature: Signature, trajectories: Sequence[str], exam: bool = False) -> Iterator[ReleaseEntry]:
    """Yield a kept question's rows: one of vqa, or of the exam if it is for evaluation, and those of its split."""
    dataset: Dataset = "exam" if exam and signature.split == "eval" else "vqa"
    yield _make_entry(dataset, SPLIT_OF_VQA[signature.split], signature.record_id)
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
