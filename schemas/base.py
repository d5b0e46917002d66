"""What every row has: a content-derived id, its parent's id, and nothing undeclared."""

from typing import TypeVar

from pydantic import BaseModel, ConfigDict

from schemas.reasons import Reason


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
    reason: Reason
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
