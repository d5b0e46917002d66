"""JSON objects that models write, held to what JSON allows and to one value a key."""

import json
from math import isfinite


def read_strict_object(source: str) -> dict[str, object]:
    """Return a JSON object.

    Raises:
        ValueError: if it is none: no JSON, another value, a key twice in one object, a number that is none or is out
            of range, or too deep.
    """
    try:
        read = json.loads(
            source, object_pairs_hook=_make_object, parse_float=_parse_finite, parse_constant=_refuse_constant
        )
    except RecursionError as error:
        raise ValueError("it is too deep") from error
    if not isinstance(read, dict):
        raise ValueError(f"it is no object but {type(read).__name__}")
    return read


def _make_object(pairs: list[tuple[str, object]]) -> dict[str, object]:
    made = dict(pairs)
    if len(made) != len(pairs):
        raise ValueError("a key occurs twice in one object")
    return made


def _parse_finite(literal: str) -> float:
    number = float(literal)
    if not isfinite(number):
        raise ValueError(f"{literal[:40]} is out of range")
    return number


def _refuse_constant(literal: str) -> float:
    raise ValueError(f"{literal} is no JSON number")
