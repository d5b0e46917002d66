"""A release's questions read anew by a model."""

import asyncio
from dataclasses import replace
from pathlib import Path

from pipelines.checks.propositions import ProseReader
from pipelines.checks.readings import Evaluator
from pipelines.ids import draw_unit
from pipelines.release.rows import (
    ProofRow,
)
from pipelines.release.verify.files import read_proof_rows
from pipelines.release.verify.reports import Problem, VerifyReport


async def read_anew(
    report: VerifyReport, folder: Path, evaluator: Evaluator, pages: ProseReader, most: int = 0
) -> VerifyReport:
    """Let a model read a release's questions again, and add what it reads otherwise than proved to the report.

    Where a proof's pages were read, they are read again too.

    Args:
        report: of the release.
        folder: the release, made from the evaluator's corpus.
        evaluator: need not be the one that read before.
        pages: the same as a reader of pages.
        most: questions to read, drawn by their ids; 0 for all.

    Raises:
        ServiceError: if the model is unavailable.
    """
    proofs, _ = read_proof_rows(folder)
    drawn = sorted(
        (row for row in proofs.values() if row.proof.nodes), key=lambda row: draw_unit("read", row.record_id)
    )[: most or None]
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(_read_row(evaluator, pages, row)) for row in drawn]
    found = tuple(problem for task in tasks if (problem := task.result()))
    claim = f"{len(drawn) - len(found)} of {len(drawn)} questions read anew by {evaluator.asking.model.name} as proved"
    return replace(report, problems=(*report.problems, *found), claims=(*report.claims, claim))


async def _read_row(evaluator: Evaluator, pages: ProseReader, row: ProofRow) -> Problem | None:
    reading, result = await evaluator.check(row.text, row.proof, row.answer)
    if reading is not None and result.passed:
        _, result = await evaluator.screen(row.text, reading, row.proof, row.answer)
    if result.passed and row.proof.thresholds.read_pages:
        _, result = await pages.check(row.proof, row.answer)
    return None if result.passed else Problem(row.record_id, f"reading: {result.code}: {result.detail}")
