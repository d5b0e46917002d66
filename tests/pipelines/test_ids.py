import hashlib
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.ids import canonical_json, digest_value, draw_unit, make_record_id, make_stage_key

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=8,
)


@given(VALUES)
def test_canonical_json_says_what_it_was_given(value):
    assert json.loads(canonical_json(value)) == value


def test_a_value_without_a_json_form_is_refused():
    with pytest.raises(TypeError, match="no JSON form for set"):
        canonical_json({"a": {1}})


def test_ids_are_the_same_in_every_run_and_on_every_machine():
    assert make_record_id("seed", [1, "a"]) == "seed-" + hashlib.sha256(b'[1,"a"]').hexdigest()[:16]
    assert make_stage_key("seeds", 1, "f", ["c"]) == digest_value(["seeds@1", "f", ["c"]])[:16]


def test_a_stage_key_changes_with_everything_that_decides_it():
    keys = {
        make_stage_key("seeds", 1, "f", ["a", "b"]),
        make_stage_key("paths", 1, "f", ["a", "b"]),
        make_stage_key("seeds", 2, "f", ["a", "b"]),
        make_stage_key("seeds", 1, "g", ["a", "b"]),
        make_stage_key("seeds", 1, "f", ["b", "a"]),
        make_stage_key("seeds", 1, "f", ["ab"]),
    }
    assert len(keys) == 6


@given(st.lists(st.integers() | st.text(), min_size=1, max_size=4))
def test_a_draw_is_in_the_unit_interval_and_decided_by_its_parts(parts):
    assert 0.0 <= draw_unit(*parts) < 1.0
    assert draw_unit(*parts) == draw_unit(*parts)
