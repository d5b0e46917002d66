"""JSON objects that models write, held to what JSON allows and to one value a key."""

import json
from math import isfinite

MOST_DEEP = 32
"""Objects and lists within each other. How deep the interpreter reads depends on who calls it: a turn that was one for
the loop could be none for a check."""
_TOO_DEEP = f"it is deeper than {MOST_DEEP} objects and lists"


def read_strict_object(source: str) -> dict[str, object]:
    """Return a JSON object.

    Raises:
        ValueError: if it is none: no JSON, another value, a key twice in one object, a number that is none or is out
            of range, or deeper than :data:`MOST_DEEP`.
    """
    try:
        read = json.loads(
            source, object_pairs_hook=_make_object, parse_float=_parse_finite, parse_constant=_refuse_constant
        )
    except RecursionError as error:
        raise ValueError(_TOO_DEEP) from error
    if not isinstance(read, dict):
        raise ValueError(f"it is no object but {type(read).__name__}")
    if not _is_shallow(read, MOST_DEEP):
        raise ValueError(_TOO_DEEP)
    return read


def _is_shallow(value: object, levels: int) -> bool:
    """Whether a value is no deeper than some levels."""
    if not isinstance(value, dict | list):
        return True
    inner = value.values() if isinstance(value, dict) else value
    return levels > 0 and all(_is_shallow(each, levels - 1) for each in inner)


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
