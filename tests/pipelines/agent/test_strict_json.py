import json
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.agent.transcript import MOST_DEEP, read_strict_object

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=10,
)


def nest(levels: int) -> str:
    """Return an object of so many levels, itself included."""
    return '{"a":' + "[" * (levels - 1) + "]" * (levels - 1) + "}" if levels > 1 else "{}"


@given(st.dictionaries(st.text(max_size=5), VALUES, max_size=4))
def test_what_json_writes_is_read(value):
    assert read_strict_object(json.dumps(value)) == value


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ("[]", "no object but list"),
        ("{", "property name"),
        ('{"a": 1, "a": 1}', "a key occurs twice"),
        ('{"a": {"b": 1, "b": 2}}', "a key occurs twice"),
        ('{"a": NaN}', "NaN is no JSON number"),
        ('{"a": -Infinity}', "is no JSON number"),
        ('{"a": 1e999}', "out of range"),
        ('{"a": ' + "9" * 5000 + "}", "digits"),
    ],
)
def test_what_json_has_no_word_for_is_refused(source, said):
    with pytest.raises(ValueError, match=said):
        read_strict_object(source)


@pytest.mark.parametrize("levels", [MOST_DEEP + 1, 500, 100_000])
def test_an_object_is_too_deep_at_one_level_whoever_asks(levels):
    assert read_strict_object(nest(MOST_DEEP))
    with pytest.raises(ValueError, match=f"deeper than {MOST_DEEP}"):
        read_strict_object(nest(levels))


def test_how_deep_the_caller_stands_makes_no_difference():
    def ask(frames: int) -> bool:
        return ask(frames - 1) if frames else bool(read_strict_object(nest(MOST_DEEP)))

    assert ask(sys.getrecursionlimit() // 2)
