"""Difficulty: a staged filter of cheap attempts (OpenSearch-VL, section 3.2), each attempt kept as a count.

Conditions run in order of cost and stop at the first that a solver meets too often: question only, question with the
picture, and with what one image search returns.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from pipelines.backends.protocols import ImageHit, ImageSearch, PictureFile
from pipelines.errors import RecordFailed
from pipelines.ids import digest_value
from pipelines.names import fold_name
from pipelines.pictures import PictureStore
from pipelines.prompting import Asking, ask_model, make_schema
from pipelines.scoring.agreement import wilson_interval
from pipelines.scoring.compare import compare_answers
from pipelines.scoring.decoys import make_decoys
from schemas.base import Record, Rejection
from schemas.difficulty import Cell, Difficulty
from schemas.groundings import Grounding
from schemas.manifest import ModelEntry
from schemas.reasons import DifficultyReason
from schemas.tasks import AnswerQuestionInputs, AnswerReply, Condition, SolverOracle
from schemas.trajectories import Verdict

TOOL_FREE: tuple[Condition, ...] = ("text", "image")
SEARCH_HITS = 3
GUESSES = 3
"""Wrong answers that a scripted solver chooses from, beside the right one, when it guesses."""
NOT_KNOWN = frozenset(["", "unknown", "i don t know", "none", "n a"])


@dataclass(frozen=True)
class MeasuredDifficulty:
    """Attempts every question under each condition and refuses what is solved too easily."""

    solver: Asking
    images: ImageSearch
    pictures: PictureStore
    attempts: int
    max_correct: int
    """A question with more correct attempts than this in a condition is refused."""
    name: str = "difficulty"
    version: int = 2
    input: ClassVar[type[Record]] = Grounding
    output: ClassVar[type[Record]] = Difficulty

    def fingerprint(self) -> str:
        """Digest of the solver, the prompt, the search and the thresholds."""
        asked = [self.solver.identity, make_schema(AnswerReply), self.images.identity, SEARCH_HITS]
        return digest_value([asked, self.attempts, self.max_correct])

    def prompts(self) -> dict[str, str]:
        """The answering prompt."""
        return {self.solver.prompt.label: self.solver.prompt.digest}

    def models(self) -> tuple[ModelEntry, ...]:
        """The solver."""
        return (self.solver.describe("solver"),)

    async def __call__(self, record: Grounding) -> Sequence[Difficulty] | Rejection:
        """Measure one question; conditions that need a picture are left out when it has none."""
        cells: list[Cell] = []
        conditions: tuple[Condition, ...] = (*TOOL_FREE, "image+image-search") if record.picture else ("text",)
        for condition in conditions:
            cell = await self._measure(record, condition)
            cells.append(cell)
            reason = self._judge(cell)
            if reason is not None:
                detail = f"{cell.correct} of {cell.attempts} correct by {cell.solver} ({condition})"
                return Rejection(record_id=record.record_id, reason=reason, detail=detail)
        return (Difficulty(**dict(record), cells=tuple(cells)),)

    def _judge(self, cell: Cell) -> DifficultyReason | None:
        if cell.correct > self.max_correct:
            return "solved-without-tools" if cell.condition in TOOL_FREE else "solved-by-one-image-search"
        # An attempt nobody could score might have been right: too many of them and nothing is known.
        return "unscored" if cell.correct + cell.unscored > self.max_correct else None

    async def _measure(self, record: Grounding, condition: Condition) -> Cell:
        hits = await self._search(record) if condition == "image+image-search" else ()
        tries = (self._attempt(record, condition, hits, sample) for sample in range(self.attempts))
        verdicts = await asyncio.gather(*tries)
        correct, unscored = verdicts.count("correct"), verdicts.count("unscored")
        scored = self.attempts - unscored
        low, high = wilson_interval(correct, scored) if scored else (0.0, 1.0)
        return Cell(
            condition=condition,
            solver=self.solver.model.name,
            prompt=self.solver.prompt.label,
            attempts=self.attempts,
            correct=correct,
            unscored=unscored,
            low=round(low, 6),
            high=round(high, 6),
        )

    async def _search(self, record: Grounding) -> tuple[ImageHit, ...]:
        if record.picture is None:
            return ()
        path = self.pictures.path(record.picture.sha256, record.picture.extension)
        return await self.images.search_image(PictureFile(record.picture.sha256, path), SEARCH_HITS)

    async def _attempt(
        self, record: Grounding, condition: Condition, hits: tuple[ImageHit, ...], sample: int
    ) -> Verdict:
        """Return the verdict of one attempt; a reply that does not parse twice is unscored, never wrong."""
        inputs = AnswerQuestionInputs(
            question=record.text,
            condition=condition,
            pictured=condition != "text",
            search_results="",
            image_results="\n".join(f"{rank}. {hit.title}: {hit.snippet}" for rank, hit in enumerate(hits, start=1)),
            oracle=make_oracle(record, hits),
        )
        shown = [record.picture.sha256] if record.picture and condition != "text" else []
        try:
            given = (await ask_model(self.solver, inputs, AnswerReply, shown, sample)).answer
        except RecordFailed:
            return "unscored"
        return "incorrect" if fold_name(given) in NOT_KNOWN else compare_answers(given, record.answer)


def make_oracle(record: Grounding, hits: Sequence[ImageHit]) -> SolverOracle:
    """Return what the scripted Knower may know of a question; real models never see it."""
    # A capped count is a lower bound: it never says that an entity stands out by itself.
    alone = [count.value + count.capped for count in record.proof.counts if count.name == "alone"]
    return SolverOracle(
        question_id=record.record_id,
        answer=record.answer,
        popularity=tuple(node.in_degree for node in record.proof.nodes),
        alone_count=min(alone, default=1),
        guesses=make_decoys(record.answer, GUESSES),
        seen_titles=tuple(hit.title for hit in hits),
        anchor_title=record.proof.nodes[0].title,
    )
