"""Configurations that people write: files over a recipe, a file to begin with, prompts of their own."""

import json
import re

import pytest

from pipelines.cli.commands import load_config
from pipelines.cli.init import write_starter
from pipelines.cli.main import main
from pipelines.config.loading import list_recipes
from pipelines.errors import ConfigError

MODEL = 'name = "m"\nbase_url = "http://127.0.0.1:9/v1"\n'


def write(folder, name, text):
    path = folder / name
    path.write_text(text)
    return path


def test_files_lie_over_the_recipe_in_the_order_given_and_settings_over_all(tmp_path):
    first = write(tmp_path, "a.toml", "[rollouts]\nattempts = 7\nmax_calls = 9\n[paths]\nhops = [2]\nweights = [1.0]\n")
    second = write(tmp_path, "b.toml", "[rollouts]\nmax_calls = 8\n[seeds]\nlimit = 5\n")
    config = load_config("opensearch-vl", [first, second], ["seeds.limit=3", "corpus.dump=dump.xml"])
    rollouts = config.rollouts
    assert (config.recipe, rollouts.attempts, rollouts.max_calls, config.seeds.limit) == ("opensearch-vl", 7, 8, 3)
    assert (config.paths.hops, rollouts.dialect) == ((2,), "opensearch-vl")
    other = load_config("opensearch-vl", [second, first], ["corpus.dump=dump.xml"])
    assert (other.rollouts.max_calls, other.seeds.limit) == (9, 5)


@pytest.mark.parametrize(
    "said", ['extends = "vsearcher"\n', 'recipe = "vsearcher"\n', 'extends = "vsearcher"\nrecipe = "my own"\n']
)
def test_a_file_says_what_it_lies_over(tmp_path, said):
    path = write(tmp_path, "a.toml", f'{said}[corpus]\ndump = "dump.xml"\n')
    config = load_config("", [path], [])
    assert (config.method, config.seeds.rule) == ("injection", "vsearcher")
    assert config.recipe == ("my own" if "my own" in said else "vsearcher")


def test_a_file_with_a_name_of_its_own_and_no_recipe_below_is_the_whole_configuration(tmp_path):
    path = write(tmp_path, "a.toml", 'recipe = "mine"\n[corpus.generate]\nentities = 60\n')
    config = load_config("", [path], [])
    assert (config.recipe, config.seeds.limit, config.models.list_roles()) == ("mine", 0, ("solver",)[:0])


@pytest.mark.parametrize(
    ("recipe", "said", "message"),
    [
        ("exam", 'extends = "vsearcher"', r"more than one recipe is named \(--recipe exam, .*a.toml: vsearcher\)"),
        ("", "[seeds]\nlimit = 3", r'a.toml: names no recipe; say extends = "RECIPE" in it, or --recipe RECIPE'),
        ("", 'extends = "opensearchvl"', r"recipe 'opensearchvl' does not exist"),
        ("demo", "[seeds]\nlimits = 3", r"unknown key seeds.limits; did you mean limit\?"),
    ],
)
def test_a_file_that_cannot_be_laid_over_a_recipe_is_explained(tmp_path, recipe, said, message):
    with pytest.raises(ConfigError, match=message):
        load_config(recipe, [write(tmp_path, "a.toml", said)], [])


def test_a_model_in_a_file_takes_the_place_of_a_scripted_player_and_a_dump_that_of_the_toy(tmp_path):
    path = write(tmp_path, "a.toml", f'[corpus]\ndump = "dump.xml"\n[models.solver]\n{MODEL}')
    config = load_config("demo", [path], [])
    solver = config.models.solver
    assert (solver.adapter, solver.name, solver.settings, solver.temperature) == ("openai", "m", {}, 0.7)
    assert (config.corpus.generate, config.groundings.ocr) == (None, ("rapidocr",))
    assert config.models.teacher.adapter == "teacher"


@pytest.mark.parametrize(
    ("said", "message"),
    [
        ('profile = "openia"', r"models.writer: profile 'openia' does not exist; there are: openai, azure"),
        ("extra_body = { messages = [] }", r"extra_body.messages: synth words this key itself"),
        ('headers = { X-Api-Key = "sk-1" }', r'X-Api-Key: a secret is named by its variable, as "env:VARIABLE"'),
        ('headers = { Authorization = "env:KEY" }', r"name the variable of the API key in api_key_env"),
        ('headers = { "a b" = "x" }', r"should match pattern"),
    ],
)
def test_what_cannot_be_sent_is_refused_when_it_is_read(tmp_path, said, message):
    with pytest.raises(ConfigError, match=message) as caught:
        load_config("demo", [write(tmp_path, "a.toml", f"[models.writer]\n{MODEL}{said}")], [])
    assert "sk-1" not in str(caught.value)


# A file to begin with


@pytest.mark.parametrize("recipe", list_recipes())
def test_the_file_that_init_writes_loads_without_a_change(tmp_path, recipe):
    path = write_starter(tmp_path / "new", recipe)
    config = load_config("", [path], [])
    assert config.recipe == recipe
    roles = config.models.list_roles()
    own = "namer" if config.method == "news" else "rewriter"
    assert {"writer", own, "solver", "teacher", "evaluator"} <= {*roles}
    if recipe == "demo":
        assert config == load_config("demo", None, [])
    else:
        assert {"judge", "process_judge"} <= {*roles}
        assert len({config.models.get(role).name for role in roles}) == len(roles)


def test_every_key_that_the_file_shows_in_a_comment_is_one(tmp_path):
    path = write_starter(tmp_path, "opensearch-vl")
    lines = [line for line in path.read_text().splitlines() if line.startswith("#   ") and " = " in line]
    told = [line.removeprefix("#   ").partition("  #")[0] for line in lines]
    shown = [part for line in told for part in re.split(r", (?=[a-z_]+ = )", line)]
    keys = {part.partition(" = ")[0] for part in shown}
    assert {"profile", "api_key_env", "extra_body", "headers", "more_urls"} <= keys
    for part in shown:
        load_config("", [path], ["models.writer.revision=r1", f"models.writer.{part}"])


def test_init_overwrites_nothing_and_names_a_recipe_that_does_not_exist(tmp_path, capsys):
    main_code = run_main("init", tmp_path / "new", "--recipe", "vsearcher", "--json")
    assert main_code == 0
    path = json.loads(capsys.readouterr().out)["config"]
    before = (tmp_path / "new" / "synth.toml").read_text()
    assert path == str(tmp_path / "new" / "synth.toml")
    with pytest.raises(ConfigError, match=r"synth.toml: exists already"):
        write_starter(tmp_path / "new", "demo")
    assert (tmp_path / "new" / "synth.toml").read_text() == before
    with pytest.raises(ConfigError, match="recipe 'none' does not exist"):
        write_starter(tmp_path / "other", "none")
    assert not (tmp_path / "other").exists()


def run_main(*arguments):
    try:
        main([str(argument) for argument in arguments])
    except SystemExit as ending:
        return ending.code or 0
    return 0
