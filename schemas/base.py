"""What every row has: a content-derived id, its parent's id, and nothing undeclared.

Arrow schemas derived from row types, never inferred from rows.

pyarrow infers ``null`` for an all-None column, drops unknown keys and fills missing ones in silence, so rows are
validated by pydantic first and written against the schema made here.
"""

import types
from collections.abc import Iterable, Sequence
from typing import Annotated, Any, Literal, NewType, TypeVar, Union, get_args, get_origin

import pyarrow as pa
from pydantic import BaseModel, ConfigDict

from schemas.reasons import AnyReason


class Nested(BaseModel):
    """A value inside a row: frozen, strict, no undeclared fields."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


class Record(Nested):
    """One row of one dataset. The stage key is a column beside these fields, added when the row is written."""

    record_id: str
    """Derived from the row's meaning, so the same row has the same id in every run."""
    parent_id: str
    """The row this one was made from; for seeds the page, as ``page:<page_id>``."""


class Rejection(Nested):
    """A row that a stage refused, with a reason from the closed list."""

    record_id: str
    reason: AnyReason
    detail: str = ""
    """What exactly was found, for a reader; never needed to count."""
    codes: tuple[str, ...] = ()
    """Every reason that applied, the first included, when the stage looked for more than one."""


class Failure(Nested):
    """A row that could not be processed: neither kept nor judged."""

    record_id: str
    error: str
    detail: str = ""


RecordT = TypeVar("RecordT", bound=Record)


def read_row(model: type[RecordT], row: dict[str, object]) -> RecordT:
    """Return a Parquet row as its model; lists become tuples.

    Raises:
        pydantic.ValidationError: if the row does not have the model's shape.
    """
    return model.model_validate(row, strict=False)


SCALARS: dict[object, pa.DataType] = {
    str: pa.string(),
    int: pa.int64(),
    float: pa.float64(),
    bool: pa.bool_(),
    bytes: pa.binary(),
}


def derive_type(annotation: object, where: str) -> pa.DataType:
    """Return the Arrow type of one annotation.

    Raises:
        TypeError: if the annotation has no Arrow type here (dicts and unions of several types have none on purpose).
    """
    if annotation in SCALARS:
        return SCALARS[annotation]
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin is Literal:
        return pa.string()
    if isinstance(annotation, NewType):
        return derive_type(annotation.__supertype__, where)
    if origin is Annotated:
        return derive_type(arguments[0], where)
    if origin in (Union, types.UnionType):
        inner = {derive_type(argument, where) for argument in arguments if argument is not type(None)}
        if len(inner) == 1:
            return inner.pop()
    if origin is tuple and len(arguments) == 2 and arguments[1] is Ellipsis:
        return pa.list_(pa.field("item", derive_type(arguments[0], where), nullable=False))
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return pa.struct(derive_fields(annotation))
    raise TypeError(f"{where}: no Arrow type for {annotation}; use a scalar, Literal, tuple[T, ...] or nested model")


def derive_fields(model: type[BaseModel]) -> list[pa.Field]:
    """Return the Arrow fields of a model in declaration order; only ``| None`` fields are nullable."""
    fields = []
    for name, field in model.model_fields.items():
        nullable = type(None) in get_args(field.annotation)
        fields.append(pa.field(name, derive_type(field.annotation, f"{model.__name__}.{name}"), nullable=nullable))
    return fields


def derive_schema(model: type[BaseModel]) -> pa.Schema:
    """Return the Arrow schema of a dataset: the model's fields, then ``key``, the stage key, for records."""
    fields = derive_fields(model)
    if issubclass(model, Record):
        fields.append(pa.field("key", pa.string(), nullable=False))
    return pa.schema(fields, metadata={"synth.record": model.__name__})


def make_table(model: type[BaseModel], rows: Sequence[BaseModel], key: str = "") -> pa.Table:
    """Return validated rows as a table in the model's schema; ``key`` fills the key column of records."""
    schema = derive_schema(model)
    dumped: Iterable[dict[str, Any]] = (row.model_dump() for row in rows)
    if "key" in schema.names and "key" not in model.model_fields:
        dumped = ({**row, "key": key} for row in dumped)
    return pa.Table.from_pylist(list(dumped), schema=schema)
