"""Verifying a release: every row's answer re-derived from the corpus and the proof alone, with no model.

A release is checked twice: its files against the manifest, and each row against its proof and the corpus. The second
does not trust the first, so a release whose manifest was rewritten after tampering fails all the same.
"""

import hashlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pydantic import ValidationError

from pipelines.checks.proofs import Claim, find_problems
from pipelines.corpus.store import Corpus
from pipelines.errors import CorruptInput, GateNotMet
from pipelines.graph.relations import RelationIndex
from pipelines.release.manifest import check_release_files, read_release_manifest
from pipelines.release.proofs import ProofRow, read_proofs
from pipelines.release.transcript import strip_page_text

ROWS_AT_ONCE = 50


@dataclass(frozen=True, slots=True)
class Problem:
    """Something that does not hold: the row (or file) and what is wrong with it."""

    where: str
    what: str


@dataclass(frozen=True, slots=True)
class VerifyReport:
    """What verification found in one release."""

    dataset: str
    version: str
    rows: int
    verified: int
    problems: tuple[Problem, ...]

    @property
    def passed(self) -> bool:
        """Whether every row and every file holds, and there was at least one row."""
        return self.rows > 0 and self.verified == self.rows and not self.problems


def verify_release(
    folder: Path, corpus: Corpus, relations: RelationIndex, advance: Callable[[int], None] = lambda done: None
) -> VerifyReport:
    """Verify a release folder against a corpus.

    Args:
        folder: ``releases/<dataset>/<version>``.
        corpus: the corpus the proofs refer to, built by anyone from the same dump.
        relations: the corpus's relations.
        advance: told how many rows are done.

    Raises:
        ConfigError: if the folder is no release.
        CorruptInput: if a Parquet file cannot be read.
    """
    manifest = read_release_manifest(folder)
    problems = _check_files(folder)
    rows = verified = 0
    try:
        proofs = {proof.record_id: proof for proof in read_proofs(folder)}
        verdicts: dict[str, list[str]] = {}
        for row in _read_data(folder):
            rows += 1
            found = _check_row(manifest.dataset, row, proofs, verdicts, corpus, relations)
            problems += [Problem(str(row["id"]), what) for what in found]
            verified += not found
            advance(rows)
    except (ValidationError, OSError, KeyError, pa.ArrowException) as error:
        raise CorruptInput(f"release {folder}: a Parquet file cannot be read as {manifest.dataset}: {error}") from error
    if rows != manifest.rows:
        problems.append(Problem("manifest.json", f"it says {manifest.rows} rows, the files hold {rows}"))
    return VerifyReport(manifest.dataset, manifest.version, rows, verified, tuple(problems))


def _check_files(folder: Path) -> list[Problem]:
    try:
        check_release_files(folder)
    except GateNotMet as error:
        return [Problem("files", str(error))]
    return []


def _read_data(folder: Path) -> Iterator[dict[str, Any]]:
    for path in sorted((folder / "data").glob("*.parquet")):
        with pq.ParquetFile(path) as source:
            for batch in source.iter_batches(batch_size=ROWS_AT_ONCE):
                yield from batch.to_pylist()


def _check_row(
    dataset: str,
    row: Mapping[str, Any],
    proofs: Mapping[str, ProofRow],
    verdicts: dict[str, list[str]],
    corpus: Corpus,
    relations: RelationIndex,
) -> list[str]:
    question_id = str(row["question_id"] if dataset == "sft" else row["id"])
    proof = proofs.get(question_id)
    if proof is None:
        return [f"no proof for question {question_id}"]
    if question_id not in verdicts:
        verdicts[question_id] = find_problems(corpus, relations, Claim(proof.text, proof.answer, proof.proof))
    return [*verdicts[question_id], *_check_claim(dataset, row, proof), *_check_images(row, proof)]


def _check_claim(dataset: str, row: Mapping[str, Any], proof: ProofRow) -> Iterator[str]:
    """Compare what the row asks and answers with what its proof is about."""
    accepted = {proof.answer.surface, *proof.answer.aliases}
    if dataset == "rl":
        question, given = row["extra_info"]["question"], row["reward_model"]["ground_truth"]
        aliases, told = row["reward_model"]["candidate_answers"], row["prompt"][-1]["content"]
    else:
        question, given, aliases = row["question"], row["answer"], row["answer_aliases"]
        told = "".join(message["content"] for message in row["messages"]) if dataset == "sft" else question
    expected = strip_page_text(proof.text)
    if strip_page_text(question) != expected or expected not in told:
        yield "the row asks another question than its proof"
    if given != proof.answer.surface:
        yield f"the row answers {given!r}, its proof {proof.answer.surface!r}"
    if not set(aliases) <= accepted:
        yield f"the row accepts {sorted(set(aliases) - accepted)}, which its proof does not"


def _check_images(row: Mapping[str, Any], proof: ProofRow) -> Iterator[str]:
    """Hash every embedded picture; the first one must be the anchor's."""
    images = row["images"] if "images" in row else [row["image"]] if row["image"] else []
    hashes = [hashlib.sha256(image["bytes"]).hexdigest() for image in images]
    for image, digest in zip(images, hashes, strict=True):
        if not str(image["path"]).startswith(digest):
            yield f"picture {image['path']} has sha256 {digest}"
    wanted = proof.picture.sha256 if proof.picture else ""
    if wanted and (not hashes or hashes[0] != wanted):
        yield f"the first picture is not the anchor's, {wanted}"
