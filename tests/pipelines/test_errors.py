import inspect
import pickle
from pathlib import Path

import pytest

from pipelines import errors
from pipelines.errors import (
    BudgetSpent,
    ConfigError,
    ConservationError,
    CorruptInput,
    Damaged,
    GateNotMet,
    RateLimited,
    RecordFailed,
    ServiceError,
    SynthError,
    Unavailable,
    UnusableReplies,
    WorkspaceBusy,
)
from pipelines.services.clients.replies import StoreBusy
from pipelines.services.protocols import QueryTimeout


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (ConfigError, 2),
        (CorruptInput, 2),
        (ServiceError, 3),
        (RateLimited, 3),
        (Unavailable, 3),
        (GateNotMet, 1),
        (ConservationError, 4),
        (RecordFailed, 1),
    ],
)
def test_the_kind_of_failure_decides_the_exit_code(error, code):
    assert error("what happened").exit_code == code


MADE = (
    SynthError("what"),
    ConfigError("what"),
    CorruptInput("what"),
    Damaged(Path("stages/part-00000.parquet"), "is missing"),
    RecordFailed("parse-timeout", "it took too long"),
    ServiceError("what"),
    RateLimited("slow down", 7.5),
    BudgetSpent("5.02 of 5.00 in money"),
    QueryTimeout("what"),
    Unavailable("what"),
    UnusableReplies("what"),
    WorkspaceBusy("what"),
    StoreBusy("what"),
    GateNotMet("what"),
    ConservationError("what"),
)


def list_errors(root: type[SynthError] = SynthError) -> set[type[SynthError]]:
    """The class and all below it, wherever they are defined."""
    return {root}.union(*map(list_errors, root.__subclasses__()))


@pytest.mark.parametrize("error", MADE, ids=lambda error: type(error).__name__)
def test_an_error_is_the_same_after_it_has_travelled_to_another_process(error):
    again = pickle.loads(pickle.dumps(error))
    assert type(again) is type(error)
    assert str(again) == str(error)
    assert again.__dict__ == error.__dict__


def test_every_error_there_is_has_been_seen_to_travel():
    assert {cls for cls in list_errors() if cls.__module__.startswith("pipelines.")} == {type(error) for error in MADE}


def test_every_error_of_the_module_is_one_of_synth():
    found = [cls for _, cls in inspect.getmembers(errors, inspect.isclass) if cls.__module__ == errors.__name__]
    assert len(found) == 13
    assert all(issubclass(cls, SynthError) for cls in found)
