"""The JSON Schema of configuration files, held to an independent validator of it."""

import json
import re
import tomllib
from importlib import resources

import pytest
from jsonschema import Draft202012Validator

from pipelines.cli.init import write_starter
from pipelines.cli.settings import list_keys
from pipelines.config.loading import list_recipes, make_config, read_recipe
from pipelines.config.schema import make_schema
from pipelines.config.writing import write_toml
from tests.chaos.driving import call_here

SCHEMA = make_schema()


def explain(tables):
    return [f"{error.json_path}: {error.message}" for error in Draft202012Validator(SCHEMA).iter_errors(tables)]


def test_the_schema_is_one_and_the_command_prints_it(capsys):
    Draft202012Validator.check_schema(SCHEMA)
    assert json.loads(call_here(capsys, "config", "schema").out) == SCHEMA


@pytest.mark.parametrize("recipe", list_recipes())
def test_every_recipe_is_valid_as_its_file_says_it_and_whole(recipe):
    assert explain(tomllib.loads((resources.files("pipelines.config") / f"recipes/{recipe}.toml").read_text())) == []
    config = make_config(read_recipe(recipe), ["corpus.dump=dump.xml"])
    assert explain(tomllib.loads(write_toml(config.model_dump(mode="json")))) == []


@pytest.mark.parametrize("recipe", list_recipes())
def test_the_file_that_init_writes_is_valid_by_the_schema_that_its_first_line_names(tmp_path, recipe):
    path = write_starter(tmp_path / "new", recipe)
    first, _, rest = path.read_text().partition("\n")
    named = tmp_path / "new" / first.removeprefix("#:schema ")
    assert json.loads(named.read_text()) == SCHEMA
    assert explain(tomllib.loads(rest)) == []


@pytest.mark.parametrize(
    ("said", "where"),
    [
        ("[seeds]\nlimits = 3", r"\$.seeds: .*'limits' was unexpected"),
        ("[seeds]\nlimit = -1", r"\$.seeds.limit: -1 is less than"),
        ("[paths]\nguide = 'on'", r"\$.paths.guide: 'on' is not one of"),
        ("[models.solvers.big]\nbase_url = 'x'", r"\$.models.solvers.big.base_url: .*does not match"),
        ("[[pools]]\nname = 'a'", r"\$.pools\[0\]: 'path' is a required property"),
        ("extends = 3", r"\$.extends: 3 is not of type 'string'"),
    ],
)
def test_what_is_wrong_in_a_file_is_wrong_by_the_schema(said, where):
    assert any(re.search(where, problem) for problem in explain(tomllib.loads(said))), explain(tomllib.loads(said))


def test_every_key_of_the_settings_has_its_meaning_in_the_schema():
    described = json.dumps(SCHEMA, ensure_ascii=False)
    keys = list_keys(make_config(read_recipe("demo")))
    assert [key.name for key in keys if json.dumps(key.meaning, ensure_ascii=False) not in described] == []
