"""``synth config show``: a whole configuration, who says each value, and no secret."""

import json
import tomllib

import pytest

from pipelines.cli.commands import load_config
from pipelines.cli.settings import list_sources, render_values, trace_values
from pipelines.config.loading import list_recipes
from tests.chaos.driving import call_here

SERVER = "{ name = 'm', base_url = 'http://127.0.0.1:9/v1', settings = {}, image = { max_pixels = 9 } }"
POOL = """
[[pools]]
name = "mine"
path = "a.jsonl"
share = 0.5
[pools.columns]
question = "q"
"""


def show(recipe, paths=(), settings=(), models=""):
    """Return the text of a configuration, and the sources of its values by their keys."""
    config = load_config(recipe, list(paths), settings, models=models)
    values = trace_values(config, list_sources(recipe or ("" if paths else "demo"), list(paths), settings, models))
    return render_values(values), {".".join(each.path): each.source for each in values}


@pytest.mark.parametrize("models", ["", "scripted"])
@pytest.mark.parametrize("recipe", list_recipes())
def test_what_is_shown_is_the_same_configuration_again(recipe, models, tmp_path):
    body = """models.writer.extra_body={ a = [[1], { b = 2 }], "c = d" = "e # f" }"""
    settings = ["corpus.world=w", f"models.default={SERVER}", body]
    text, _ = show(recipe, settings=settings, models=models)
    (tmp_path / "whole.toml").write_text(text)
    again = load_config("", [tmp_path / "whole.toml"], [])
    assert again == load_config(recipe, None, settings, models=models)


def test_each_value_says_who_set_it_last(tmp_path):
    below, own, over = tmp_path / "below.toml", tmp_path / "own.toml", tmp_path / "over.toml"
    below.write_text('extends = "exam"\n[seeds]\nlimit = 1\n[rollouts]\nwanted = 3\nattempts = 7\n')
    own.write_text('extends = "below.toml"\n[seeds]\nlimit = 2\n[rollouts]\nwanted = 4\n' + POOL)
    over.write_text("[seeds]\nlimit = 3\nmin_image_side = 512\n")
    text, said = show("", [own, over], ["seed=9", "corpus.dump=d", f"models.default={SERVER}"])
    assert (said["seeds.limit"], said["rollouts.wanted"]) == (str(over), str(own))
    assert said["rollouts.attempts"] == str(below.resolve())
    assert (said["recipe"], said["seeds.rule"]) == ("recipe exam", "recipe vsearcher")
    assert (said["seed"], said["seeds.abstract"], said["seeds.min_image_side"]) == ("--set", "default", str(over))
    assert (said["models.writer.name"], said["models.writer.image.max_pixels"]) == ("models.default", "models.default")
    assert (said["models.default.name"], said["models.evaluator.name"]) == ("--set", "default")
    assert (said["models.teacher.top_p"], said["models.teacher.name"]) == ("recipe vsearcher", "models.default")
    assert said["pools"] == str(own)
    assert f"limit = 3  # {over}\n" in text
    assert "seed = 9  # --set\n" in text
    assert all("  # " in line for line in text.splitlines() if line[:1].isalpha())


def test_what_a_layer_above_takes_away_is_the_default_again():
    _, said = show("demo", settings=["corpus.dump=d", f"models.solver={SERVER}"])
    assert said["corpus.dump"] == "--set"
    assert "corpus.generate.entities" not in said
    assert said["groundings.ocr"] == "default"
    _, said = show("vsearcher", settings=["corpus.world=w"], models="scripted")
    assert (said["models.solver.adapter"], said["models.solver.temperature"]) == (
        "--models scripted",
        "recipe vsearcher",
    )


def test_no_key_of_a_service_is_shown(capsys, tmp_path):
    key = "sk-" + "a1B2" * 8
    given = ("--set", f"models.writer.name='{key}'", "--set", f"prompts.dir={key}")
    for more in ((), ("--json",)):
        outcome = call_here(capsys, "config", "show", *given, *more)
        assert outcome.code == 0
        assert key not in outcome.out + outcome.err
        assert "[a key]" in outcome.out
    tomllib.loads(call_here(capsys, "config", "show", *given).out)


def test_the_command_leaves_out_what_nobody_sets(capsys):
    outcome = call_here(capsys, "config", "show", "--changed", "--set", "seeds.limit=3")
    tables = tomllib.loads(outcome.out)
    assert (tables["extends"], tables["seeds"]) == (
        "",
        {"limit": 3, "small_corpus": {"min_in_degree": 3, "hub_share": 0.004}},
    )
    told = json.loads(call_here(capsys, "config", "show", "--json").out)
    assert {"key": "seeds.limit", "value": 850, "from": "recipe demo"} in told
    assert {"key": "seeds.abstract", "value": False, "from": "default"} in told
