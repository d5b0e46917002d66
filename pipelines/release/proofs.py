"""``proofs/<split>-*.parquet``: what a stranger needs to derive each answer again, one row a question."""

from collections.abc import Iterator, Sequence
from pathlib import Path

import pyarrow.parquet as pq

from pipelines.release.making import Example, make_proof_row
from pipelines.release.rows import ProofRow

__all__ = ["ProofRow", "make_proofs", "read_proofs"]


def make_proofs(examples: Sequence[Example]) -> list[ProofRow]:
    """Return one proof row for each question of the examples, by id."""
    rows = {example.question.record_id: example for example in examples}
    return [make_proof_row(example) for _, example in sorted(rows.items())]


def read_proofs(folder: Path) -> Iterator[ProofRow]:
    """Yield a release's proof rows, file by file.

    Raises:
        pydantic.ValidationError: if a row does not have the shape of :class:`ProofRow`.
    """
    for path in sorted((folder / "proofs").glob("*.parquet")):
        with pq.ParquetFile(path) as source:
            for batch in source.iter_batches(batch_size=1000):
                for row in batch.to_pylist():
                    yield ProofRow.model_validate(row, strict=False)
