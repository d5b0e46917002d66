"""A release verified as a whole."""

from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path

import pyarrow as pa
from pydantic import ValidationError

from pipelines.errors import CorruptInput, GateNotMet
from pipelines.graph.query import Indexes
from pipelines.release.manifest import check_release_files, read_release_manifest
from pipelines.release.rows import (
    ROW_TYPES,
    ProofRow,
    SftRow,
    explain_misfit,
)
from pipelines.release.verify.claims import describe_basis
from pipelines.release.verify.files import RawRow, check_columns, read_proof_rows, read_rows
from pipelines.release.verify.questions import find_question_problems
from pipelines.release.verify.reports import Problem, VerifyReport
from pipelines.release.verify.rows import find_row_problems
from pipelines.release.verify.together import Ledger, check_together
from schemas.datasets import Dataset


def verify_release(folder: Path, ground: Indexes, advance: Callable[[int], None] = lambda done: None) -> VerifyReport:
    """Verify a release folder against a corpus.

    Args:
        folder: ``releases/<dataset>/<version>``.
        ground: the corpus the proofs refer to, built by anyone from the same dump.
        advance: called with the number of rows that are done.

    Raises:
        ConfigError: if the folder is no release.
        CorruptInput: if a Parquet file cannot be read.
    """
    manifest = read_release_manifest(folder)
    problems = [*check_columns(folder, manifest.dataset)]
    try:
        check_release_files(folder)
    except GateNotMet as error:
        problems.insert(0, Problem("files", str(error)))
    rows, verified = Counter[bool](), Counter[bool]()
    ledger = Ledger()
    try:
        proofs, found = read_proof_rows(folder)
        problems += found
        for raw in read_rows(folder / "data"):
            whats = _check_row(manifest.dataset, raw, proofs, ledger, ground)
            problems += [Problem(str(raw[2].get("id")), what) for what in whats]
            proof = proofs.get(_name_question(manifest.dataset, raw))
            # A row whose proof is missing is none that is from outside: it counts as one that does not verify.
            proved = proof is None or bool(proof.proof.nodes) or proof.trace is not None
            rows[proved] += 1
            verified[proved] += not whats
            advance(rows.total())
    except (OSError, UnicodeDecodeError, pa.ArrowException) as error:
        raise CorruptInput(f"release {folder}: a Parquet file cannot be read as {manifest.dataset}: {error}") from error
    problems += check_together(proofs, ledger)
    if rows.total() != manifest.rows:
        problems.append(Problem("manifest.json", f"it says {manifest.rows} rows, the files hold {rows.total()}"))
    claims = tuple(sorted({describe_basis(row) for row in proofs.values()}))
    told, counts = tuple(problems), (rows[False], verified[False])
    return VerifyReport(manifest.dataset, manifest.version, rows[True], verified[True], told, claims, *counts)


def _check_row(
    dataset: Dataset, raw: RawRow, proofs: Mapping[str, ProofRow], ledger: Ledger, ground: Indexes
) -> list[str]:
    split, index, values = raw
    ledger.ids[str(values.get("id"))] += 1
    question = _name_question(dataset, raw)
    ledger.questions.add(question)
    proof = proofs.get(question)
    if proof is None:
        return [f"no proof for question {question}"]
    try:
        row = ROW_TYPES[dataset].model_validate(values, strict=False)
    except ValidationError as error:
        return [f"row: {explain_misfit(error)}"]
    if isinstance(row, SftRow):
        ledger.settings.add((row.messages[0].content if row.messages else "", row.tools, row.dialect))
    if question not in ledger.verdicts:
        ledger.verdicts[question] = find_question_problems(ground, proof)
    problems = ledger.verdicts[question] or find_row_problems(proof, row, index)
    if split != proof.split:
        problems = [*problems, f"split: the row's file is of {split}, its proof of {proof.split}"]
    return problems


def _name_question(dataset: Dataset, raw: RawRow) -> str:
    return str(raw[2].get("question_id" if dataset == "sft" else "id"))
