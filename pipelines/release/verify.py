"""Verifying a release: every row's answer re-derived from the corpus and the proof alone, with no model.

A release is checked three times: its files against the manifest, each row against its proof and the corpus, and the
rows against one another. The later ones do not trust the manifest, so a release that was resealed after tampering fails
all the same.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pydantic import ValidationError

from pipelines.errors import CorruptInput, GateNotMet
from pipelines.graph.ground import Ground
from pipelines.release.claims import find_question_problems, find_row_problems
from pipelines.release.features import make_release_schema
from pipelines.release.manifest import check_release_files, read_release_manifest
from pipelines.release.rows import ROW_TYPES, ProofRow, SftRow, explain_misfit
from schemas.arrow import derive_schema
from schemas.proofs import Proof
from schemas.releases import Dataset

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
    claims: tuple[str, ...] = ()
    """What the proofs claim to have held, in words: a release made under weak thresholds verifies, and says so."""

    @property
    def passed(self) -> bool:
        """Whether every row and every file holds, and there was at least one row."""
        return self.rows > 0 and self.verified == self.rows and not self.problems


@dataclass(frozen=True, slots=True)
class RawRow:
    """A row as its file has it, whatever it may hold."""

    split: str
    """From the file's name."""
    index: int
    """Place in its split, from 0."""
    values: Mapping[str, Any]


@dataclass(slots=True)
class Ledger:
    """What was seen so far, for claims about all rows together."""

    verdicts: dict[str, list[str]] = field(default_factory=dict)
    """What does not hold of each question, found once however many rows ask it."""
    ids: Counter[str] = field(default_factory=Counter)
    questions: set[str] = field(default_factory=set)
    settings: set[tuple[str, str, str]] = field(default_factory=set)
    """System message, tools and dialect of SFT rows: the same in all of them."""


def verify_release(folder: Path, ground: Ground, advance: Callable[[int], None] = lambda done: None) -> VerifyReport:
    """Verify a release folder against a corpus.

    Args:
        folder: ``releases/<dataset>/<version>``.
        ground: the corpus the proofs refer to, built by anyone from the same dump.
        advance: told how many rows are done.

    Raises:
        ConfigError: if the folder is no release.
        CorruptInput: if a Parquet file cannot be read.
    """
    manifest = read_release_manifest(folder)
    problems = [*_check_files(folder), *_check_columns(folder, manifest.dataset)]
    rows = verified = 0
    ledger = Ledger()
    try:
        proofs, found = _read_proofs(folder)
        problems += found
        for raw in _read_rows(folder / "data"):
            rows += 1
            whats = _check_row(manifest.dataset, raw, proofs, ledger, ground)
            problems += [Problem(str(raw.values.get("id")), what) for what in whats]
            verified += not whats
            advance(rows)
    except (OSError, UnicodeDecodeError, pa.ArrowException) as error:
        raise CorruptInput(f"release {folder}: a Parquet file cannot be read as {manifest.dataset}: {error}") from error
    problems += _check_together(proofs, ledger)
    if rows != manifest.rows:
        problems.append(Problem("manifest.json", f"it says {manifest.rows} rows, the files hold {rows}"))
    claims = tuple(sorted({describe_claim(proof) for proof in proofs.values()}))
    return VerifyReport(manifest.dataset, manifest.version, rows, verified, tuple(problems), claims)


def describe_claim(row: ProofRow) -> str:
    """Return in words what a proof's thresholds and switches make of it."""
    proof = row.proof
    least = proof.thresholds
    parts = [
        "one entity fits every hidden node given the chain",
        f"at least {least.alone_first} the first and {least.alone} the others without it",
        f"at least {least.answers} answers over other pictures"
        if least.answers
        else "need for the picture not counted",
        "no shorter path" if proof.shortcuts_checked else "shorter paths not looked for",
        f"articles of up to {least.near_misses} near misses looked up, none left open"
        if least.near_misses
        else "near misses not looked for",
        *_describe_fact(proof),
        f"not among the first {least.retrieval_rank} results of one search"
        if least.retrieval_rank
        else "one search not tried",
    ]
    return "; ".join(parts)


def _describe_fact(proof: Proof) -> tuple[str, ...]:
    least = proof.thresholds
    told = {
        "required": "a sentence says the answer too",
        "uncontradicted": "no sentence says another answer",
        "off": "prose not compared with the answer",
    }
    lasting = f"the same in the dump of {proof.compared_snapshot}" if proof.compared_snapshot else "no other dump seen"
    return (
        told[least.agreement],
        f"no answer with more than {least.answer_share:.0%} of its relation"
        if least.answer_share < 1.0
        else "frequency of the answer not looked at",
        "facts that change with time allowed" if least.volatile else f"no fact that changes with time, {lasting}",
    )


def _check_files(folder: Path) -> list[Problem]:
    try:
        check_release_files(folder)
    except GateNotMet as error:
        return [Problem("files", str(error))]
    return []


def _check_columns(folder: Path, dataset: Dataset) -> Iterator[Problem]:
    """Compare every file's columns and types with those of the dataset; rows are read leniently afterwards."""
    wanted = {"data": make_release_schema(ROW_TYPES[dataset]), "proofs": derive_schema(ProofRow)}
    for kind, schema in wanted.items():
        for path in sorted((folder / kind).glob("*.parquet")):
            try:
                found = pq.read_schema(path)
            except (OSError, pa.ArrowException) as error:
                raise CorruptInput(f"{path}: a Parquet file cannot be read as {dataset}: {error}") from error
            if not found.equals(schema):
                yield Problem(f"{kind}/{path.name}", f"columns: they are not those of {dataset}")


def _read_rows(folder: Path) -> Iterator[RawRow]:
    places: Counter[str] = Counter()
    for path in sorted(folder.glob("*.parquet")):
        split = path.name.partition("-")[0]
        for values in _read_values(path):
            yield RawRow(split, places[split], values)
            places[split] += 1


def _read_values(path: Path) -> Iterator[dict[str, Any]]:
    with pq.ParquetFile(path) as source:
        for group in range(source.num_row_groups):
            # Asked for all at once, it would keep every group that it has read.
            for batch in source.iter_batches(batch_size=ROWS_AT_ONCE, row_groups=[group]):
                yield from batch.to_pylist()


def _read_proofs(folder: Path) -> tuple[dict[str, ProofRow], list[Problem]]:
    """Return the proof rows by id, and what keeps others from being one."""
    proofs: dict[str, ProofRow] = {}
    problems = []
    for raw in _read_rows(folder / "proofs"):
        where = str(raw.values.get("record_id"))
        try:
            proof = ProofRow.model_validate(raw.values, strict=False)
        except ValidationError as error:
            problems.append(Problem(where, f"proof: {explain_misfit(error)}"))
            continue
        if where in proofs:
            problems.append(Problem(where, "proof: the question has two"))
        if proof.split != raw.split:
            problems.append(Problem(where, f"proof: it is of split {proof.split}, its file of {raw.split}"))
        proofs[where] = proof
    return proofs, problems


def _check_row(
    dataset: Dataset,
    raw: RawRow,
    proofs: Mapping[str, ProofRow],
    ledger: Ledger,
    ground: Ground,
) -> list[str]:
    ledger.ids[str(raw.values.get("id"))] += 1
    question = str(raw.values.get("question_id" if dataset == "sft" else "id"))
    ledger.questions.add(question)
    proof = proofs.get(question)
    if proof is None:
        return [f"no proof for question {question}"]
    try:
        row = ROW_TYPES[dataset].model_validate(raw.values, strict=False)
    except ValidationError as error:
        return [f"row: {explain_misfit(error)}"]
    if isinstance(row, SftRow):
        ledger.settings.add((row.messages[0].content if row.messages else "", row.tools, row.dialect))
    if question not in ledger.verdicts:
        ledger.verdicts[question] = find_question_problems(ground, proof)
    problems = ledger.verdicts[question] or find_row_problems(proof, row, raw.index)
    if raw.split != proof.split:
        problems = [*problems, f"split: the row's file is of {raw.split}, its proof of {proof.split}"]
    return problems


def _check_together(proofs: Mapping[str, ProofRow], ledger: Ledger) -> Iterator[Problem]:
    """Check what no row shows alone: each row once, each proof used, one set of tools and rules, splits apart."""
    for row, times in ledger.ids.items():
        if times > 1:
            yield Problem(row, f"rows: {times} rows have this id")
    for question in sorted(proofs.keys() - ledger.questions):
        yield Problem(question, "proof: no row asks this question")
    if len(ledger.settings) > 1:
        yield Problem(
            "data", f"rows: {len(ledger.settings)} sets of system message, tools and dialect; there must be one"
        )
    rules = {
        (proof.thresholds, proof.shortcuts_checked, proof.hub_in_degree, proof.compared_snapshot)
        for proof in (row.proof for row in proofs.values())
    }
    if len(rules) > 1:
        yield Problem("proofs", f"thresholds: questions were accepted by {len(rules)} sets of them; there must be one")
    yield from _check_splits(proofs)


def _check_splits(proofs: Mapping[str, ProofRow]) -> Iterator[Problem]:
    """No anchor, answer node, answer key or picture may be in two splits; no two questions may be the same."""
    splits: defaultdict[tuple[str, str], set[str]] = defaultdict(set)
    asked: defaultdict[tuple[str, str], list[str]] = defaultdict(list)
    for question, row in proofs.items():
        if not row.proof.nodes:
            continue
        anchor = str(row.proof.nodes[0].page_id)
        splits["anchor", anchor].add(row.split)
        splits["answer node", str(row.proof.nodes[-1].page_id)].add(row.split)
        splits["answer key", row.answer.key].add(row.split)
        if row.picture:
            splits["picture", row.picture.sha256].add(row.split)
        asked[anchor, row.answer.key].append(question)
    for (name, value), found in splits.items():
        if len(found) > 1:
            yield Problem("splits", f"splits: {' and '.join(sorted(found))} share {name} {value}")
    for same in asked.values():
        if len(same) > 1:
            yield Problem(same[-1], f"rows: it asks the same of the same anchor as {same[0]}")
