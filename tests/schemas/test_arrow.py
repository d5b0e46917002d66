from pathlib import Path as File
from typing import Literal

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pipelines.release.making import ProofRow
from pipelines.release.rows import BridgeVqaRow, RlRow, SftRow, VqaRow
from schemas.base import Failure, Nested, Record, Rejection, derive_schema, make_table, read_row
from schemas.datasets import (
    Anchor,
    Article,
    Bridge,
    Difficulty,
    Enhancement,
    Grounding,
    Path,
    Question,
    ReleaseEntry,
    Rewrite,
    Rollout,
    Seed,
    Trajectory,
)

GOLDEN = File(__file__).parent / "golden"
DATASETS = {
    "seeds": Seed, "paths": Path, "questions": Question, "rewrites": Rewrite, "groundings": Grounding,
    "difficulty": Difficulty, "enhancements": Enhancement, "rollouts": Rollout, "trajectories": Trajectory,
    "releases": ReleaseEntry, "rejected": Rejection, "failed": Failure, "release-sft": SftRow, "release-rl": RlRow,
    "release-vqa": VqaRow, "release-proofs": ProofRow, "release-bridgevqa": BridgeVqaRow, "articles": Article,
    "anchors": Anchor, "bridges": Bridge,
}  # fmt: skip


class Inner(Nested):
    name: str
    size: int | None


class Row(Record):
    kind: Literal["a", "b"]
    score: float
    ok: bool
    data: bytes
    names: tuple[str, ...]
    inner: Inner
    inners: tuple[Inner, ...]
    maybe: Inner | None


def make_row(**changes):
    inner = Inner(name="n", size=None)
    values = {
        "record_id": "row-1", "parent_id": "page:1", "kind": "a", "score": 0.5, "ok": True, "data": b"x", "names": (),
        "inner": inner, "inners": (inner,), "maybe": None,
    }  # fmt: skip
    return Row(**(values | changes))


@pytest.mark.parametrize("name", DATASETS)
def test_the_columns_of_a_dataset_change_only_with_their_golden_file(name):
    golden = GOLDEN / f"{name}.txt"
    assert golden.is_file(), f"no {golden}; commit the schema of a new dataset"
    shown = derive_schema(DATASETS[name]).to_string(truncate_metadata=False)
    assert shown + "\n" == golden.read_text()


def test_each_annotation_has_its_arrow_type():
    schema = derive_schema(Row)
    inner = pa.struct([pa.field("name", pa.string(), nullable=False), pa.field("size", pa.int64())])
    assert {field.name: field.type for field in schema} == {
        "record_id": pa.string(), "parent_id": pa.string(), "kind": pa.string(), "score": pa.float64(),
        "ok": pa.bool_(), "data": pa.binary(), "names": pa.list_(pa.field("item", pa.string(), nullable=False)),
        "inner": inner, "inners": pa.list_(pa.field("item", inner, nullable=False)), "maybe": inner,
        "key": pa.string(),
    }  # fmt: skip


def test_rows_come_back_from_parquet_as_they_went(tmp_path):
    row = make_row(names=("é", ""), maybe=Inner(name="m", size=3))
    pq.write_table(make_table(Row, [row], "k"), tmp_path / "rows.parquet")
    (read,) = pq.read_table(tmp_path / "rows.parquet").to_pylist()
    read.pop("key")
    assert read_row(Row, read) == row


def test_a_row_with_a_field_too_many_or_too_few_is_refused():
    row = make_row().model_dump()
    with pytest.raises(ValueError, match="extra"):
        read_row(Row, row | {"extra": 1})
    row.pop("score")
    with pytest.raises(ValueError, match="score"):
        read_row(Row, row)
