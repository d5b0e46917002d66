import tomllib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.config.loading import list_recipes, make_config, read_recipe
from pipelines.config.writing import write_toml

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
PLAIN = st.one_of(
    TEXT, st.booleans(), st.integers(-(2**63), 2**63 - 1), st.floats(allow_nan=False), st.dates(), st.lists(TEXT)
)
TABLES = st.recursive(
    st.dictionaries(TEXT, PLAIN, max_size=4),
    lambda below: st.dictionaries(TEXT, st.one_of(PLAIN, below, st.lists(below, max_size=3)), max_size=4),
    max_leaves=12,
)


@given(TABLES)
def test_what_is_written_reads_back_equal(tables):
    assert tomllib.loads(write_toml(tables)) == tables


@pytest.mark.parametrize("recipe", list_recipes())
def test_a_whole_configuration_reads_back_equal(recipe):
    config = make_config(read_recipe(recipe), ['corpus.dump=a \\ "b".xml', "models.judge.adapter='judge'"])
    assert make_config(tomllib.loads(write_toml(config.model_dump(mode="json")))) == config


def test_a_key_that_is_none_is_left_out():
    assert write_toml({"a": None, "b": {"c": None, "d": 1}}) == "[b]\nd = 1\n"
