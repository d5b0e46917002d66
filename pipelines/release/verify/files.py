"""A release's files as they are: columns and types, rows read leniently, proof rows."""

from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pydantic import ValidationError

from pipelines.errors import CorruptInput
from pipelines.release.rows import (
    ROW_TYPES,
    ProofRow,
    explain_misfit,
    make_release_schema,
    read_values,
)
from pipelines.release.verify.reports import Problem
from schemas.base import derive_schema
from schemas.datasets import Dataset

RawRow = tuple[str, int, Mapping[str, Any]]
"""A row as its file has it: split by the file's name, place in the split, values."""


def check_columns(folder: Path, dataset: Dataset) -> Iterator[Problem]:
    """Compare every file's columns and types with those of the dataset; rows are read leniently afterwards."""
    wanted = {"data": make_release_schema(ROW_TYPES[dataset]), "proofs": derive_schema(ProofRow)}
    for kind, schema in wanted.items():
        for path in _list_tables(folder / kind):
            try:
                found = pq.read_schema(path)
            except (OSError, pa.ArrowException) as error:
                raise CorruptInput(f"{path}: a Parquet file cannot be read as {dataset}: {error}") from error
            if not found.equals(schema):
                yield Problem(f"{kind}/{path.name}", f"columns: they are not those of {dataset}")
            elif (found.metadata or {}) != (schema.metadata or {}):
                yield Problem(f"{kind}/{path.name}", f"columns: their description is not that of {dataset}")


def _list_tables(folder: Path) -> list[Path]:
    """Return the Parquet files of a folder that are plain files: what a link leads to, or a pipe, is not read."""
    return sorted(path for path in folder.glob("*.parquet") if path.is_file() and not path.is_symlink())


def read_rows(folder: Path) -> Iterator[RawRow]:
    """Yield the rows of a folder of Parquet files, leniently."""
    places: Counter[str] = Counter()
    for path in _list_tables(folder):
        split = path.name.partition("-")[0]
        for values in read_values(path):
            yield split, places[split], values
            places[split] += 1


def read_proof_rows(folder: Path) -> tuple[dict[str, ProofRow], list[Problem]]:
    """Return the proof rows by id, and what keeps others from being one."""
    proofs: dict[str, ProofRow] = {}
    problems = []
    for split, _, values in read_rows(folder / "proofs"):
        where = str(values.get("record_id"))
        try:
            proof = ProofRow.model_validate(values, strict=False)
        except ValidationError as error:
            problems.append(Problem(where, f"proof: {explain_misfit(error)}"))
            continue
        if where in proofs:
            problems.append(Problem(where, "proof: the question has two"))
        if proof.split != split:
            problems.append(Problem(where, f"proof: it is of split {proof.split}, its file of {split}"))
        proofs[where] = proof
    return proofs, problems
