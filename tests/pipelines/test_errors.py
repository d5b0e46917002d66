import inspect

import pytest

from pipelines import errors
from pipelines.errors import (
    ConfigError,
    ConservationError,
    CorruptInput,
    GateNotMet,
    RateLimited,
    RecordFailed,
    ServiceError,
    SynthError,
    Unavailable,
)


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


def test_every_error_of_the_module_is_one_of_synth():
    found = [cls for _, cls in inspect.getmembers(errors, inspect.isclass) if cls.__module__ == errors.__name__]
    assert len(found) == 12
    assert all(issubclass(cls, SynthError) for cls in found)


def test_the_kinds_are_never_mixed():
    kinds = (ConfigError, RecordFailed, ServiceError, GateNotMet, ConservationError)
    for kind in kinds:
        assert not any(issubclass(kind, other) for other in kinds if other is not kind)


def test_a_failed_record_has_a_class_to_count_and_a_detail_to_read():
    error = RecordFailed("parse-timeout", "page 7")
    assert (error.error, error.detail, str(error)) == ("parse-timeout", "page 7", "parse-timeout: page 7")
    assert str(RecordFailed("parse-timeout")) == "parse-timeout"


def test_a_rate_limit_says_how_long_to_wait_if_the_service_did():
    assert RateLimited("slow down", 2.5).retry_after == 2.5
    assert RateLimited("slow down").retry_after == 0.0
