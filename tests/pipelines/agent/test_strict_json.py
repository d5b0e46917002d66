import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.agent.transcript import read_strict_object

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=10,
)


@given(st.dictionaries(st.text(max_size=5), VALUES, max_size=4))
def test_what_json_writes_is_read(value):
    assert read_strict_object(json.dumps(value)) == value


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ("[]", "no object but list"),
        ('{"a": 1, "a": 1}', "a key occurs twice"),
        ('{"a": NaN}', "NaN is no JSON number"),
        ('{"a": 1e999}', "out of range"),
    ],
)
def test_what_json_has_no_word_for_is_refused(source, said):
    with pytest.raises(ValueError, match=said):
        read_strict_object(source)
