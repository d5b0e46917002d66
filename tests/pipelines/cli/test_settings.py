"""``synth config`` and ``synth init``."""

import json

import pytest

from pipelines.cli.commands import load_config
from pipelines.cli.settings import list_keys
from pipelines.config.loading import list_recipes
from tests.chaos.driving import call_here

POOL = '[[pools]]\nname = "mine"\npath = "a.jsonl"\nshare = 0.5\ncolumns = { question = "q" }\n'
SERVER = "{ name = 'm', base_url = 'http://127.0.0.1:9/v1', max_tokens = 9 }"


def list_origins(*arguments, **more):
    return {key.key: key.origin for key in list_keys(*arguments, **more)}


def test_every_key_has_a_sentence_that_says_what_it_means():
    keys = list_keys()
    assert len(keys) > 100
    assert [key.key for key in keys if len(key.meaning.split()) < 2] == []
    assert len({key.key for key in keys}) == len(keys)
    assert {"models.NAME.base_url", "models.solver.extra_body", "pools.NAME.name"} <= {key.key for key in keys}


def test_each_value_says_who_set_it_last(tmp_path):
    below, own, over = tmp_path / "below.toml", tmp_path / "own.toml", tmp_path / "over.toml"
    below.write_text('extends = "exam"\n[seeds]\nlimit = 1\n[rollouts]\nwanted = 3\nattempts = 7\n')
    own.write_text('extends = "below.toml"\n[seeds]\nlimit = 2\n[rollouts]\nwanted = 4\n' + POOL)
    over.write_text("[seeds]\nlimit = 3\nhub_share = 0.5\n")
    said = list_origins("", [own, over], ["seed=9", f"models.default={SERVER}", "models.evaluator.name=e"])
    assert (said["seeds.limit"], said["rollouts.wanted"]) == (str(over), str(own))
    assert said["rollouts.attempts"] == str(below.resolve())
    assert (said["recipe"], said["seeds.rule"]) == ("recipe exam", "recipe vsearcher")
    assert (said["seed"], said["seeds.classes"], said["seeds.hub_share"]) == ("--set", "default", str(over))
    assert (said["models.writer.name"], said["models.default.name"]) == ("models.default", "--set")
    assert (said["models.judge.name"], said["models.judge.max_tokens"]) == ("models.evaluator", "models.default")
    assert (said["models.teacher.extra_body"], said["models.teacher.name"]) == ("recipe vsearcher", "models.default")


def test_what_a_layer_above_takes_away_is_the_default_again():
    said = list_origins("demo", settings=["corpus.dump=d", f"models.solver={SERVER}"])
    assert (said["corpus.dump"], said["groundings.ocr"]) == ("--set", "default")
    assert (said["models.solver.name"], said["models.writer.name"]) == ("--set", "recipe demo")
    assert "models.solver.extra_body" not in said


def test_the_command_lists_keys_without_a_dump_or_models(capsys):
    outcome = call_here(capsys, "config", "seeds", "--recipe", "vsearcher")
    assert outcome.code == 0
    assert 'seeds.rule = "vsearcher"  (recipe vsearcher)\n' in outcome.out
    told = json.loads(call_here(capsys, "config", "seeds.limit", "--set", "seeds.limit=3", "--json").out)
    assert told[0] == {"key": "seeds.limit", "value": 3, "from": "--set", "meaning": told[0]["meaning"]}
    refused = call_here(capsys, "config", "pathz")
    assert (refused.code, "no key under this name; there are: recipe" in refused.err) == (2, True)


def test_no_key_of_a_service_is_shown(capsys):
    key = "sk-" + "a1B2" * 8
    for more in ((), ("--json",)):
        outcome = call_here(capsys, "config", "--set", f"models.writer.name='{key}'", *more)
        assert outcome.code == 0
        assert key not in outcome.out + outcome.err
        assert "[a key]" in outcome.out


@pytest.mark.parametrize("recipe", list_recipes())
def test_the_file_that_init_writes_loads_as_it_is_with_two_models(tmp_path, capsys, recipe):
    outcome = call_here(capsys, "init", tmp_path / "new", "--recipe", recipe, "--json")
    path = tmp_path / "new" / "synth.toml"
    assert json.loads(outcome.out) == {"config": str(path)}
    config = load_config("", [path], [])
    assert config.recipe == recipe
    if recipe == "demo":
        assert config == load_config("demo", None, [])
    else:
        assert {config.models[role].name for role in config.roles} == {"MODEL", "ANOTHER-MODEL"}


def test_init_overwrites_nothing_and_names_a_recipe_that_does_not_exist(tmp_path, capsys):
    assert call_here(capsys, "init", tmp_path).code == 0
    before = (tmp_path / "synth.toml").read_text()
    again = call_here(capsys, "init", tmp_path, "--recipe", "demo")
    assert (again.code, "synth.toml: exists already" in again.err) == (2, True)
    assert (tmp_path / "synth.toml").read_text() == before
    assert "recipe 'none' does not exist" in call_here(capsys, "init", tmp_path / "other", "--recipe", "none").err
    assert not (tmp_path / "other").exists()
