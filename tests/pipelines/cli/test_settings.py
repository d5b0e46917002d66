import io
import json

import pytest
from rich.console import Console

from pipelines.cli.main import main
from pipelines.cli.settings import list_keys, render_keys
from pipelines.config.loading import make_config, read_recipe
from pipelines.errors import ConfigError

DEMO = make_config(read_recipe("demo"))


def test_every_key_has_a_sentence_that_says_what_it_means():
    keys = list_keys(DEMO)
    assert len(keys) > 150
    assert [key.name for key in keys if len(key.meaning.split()) < 2] == []
    assert len({key.name for key in keys}) == len(keys)


def test_a_recipe_shows_its_own_values():
    (hops,) = list_keys(
        make_config(read_recipe("opensearch-vl"), ["corpus.dump=x.xml", "paths.hops=[2]", "paths.weights=[1]"]),
        ["paths.hops"],
    )
    assert (hops.default, hops.value) == ((2, 3, 4), (2,))


def test_a_key_that_must_be_given_says_so_in_place_of_a_default():
    shown = {key.name: key for key in list_keys(DEMO, ["pools"])}
    assert (shown["pools.name"].required, shown["pools.name"].default) == (True, None)
    assert not shown["pools.share"].required
    console = Console(width=80, record=True, file=io.StringIO())
    console.print(render_keys(list_keys(DEMO, ["pools"]), "demo"))
    text = console.export_text()
    assert "pools.name  string, required\n" in text
    assert "Undefined" not in text
    assert max(map(len, text.splitlines())) <= 80


def test_a_key_has_a_type_in_tomls_words_and_what_is_allowed():
    said = {key.name: (key.type, key.allowed) for key in list_keys(DEMO)}
    assert said["paths.hops"] == ("array of integers", "")
    assert said["paths.guide"] == ("string", "off, model")
    assert said["splits.sft"] == ("float", ">= 0 and <= 1")
    assert said["tools.summarise"] == ("boolean or string", "auto")
    assert said["releases.search_free"] == ("array of 2 floats", ">= 0 and <= 1")
    assert said["models.solver.temperature"] == ("float", ">= 0 and <= 2")
    assert said["paths.answer_types"] == ("table", ">= 0; date, number, name, string")
    words = {word for kind, _ in said.values() for word in kind.split()}
    assert words <= set("array of 2 or string strings integer integers float floats boolean table tables".split())


def test_keys_of_models_are_listed_once_a_role():
    names = [key.name for key in list_keys(DEMO, ["models"])]
    assert {"models.teacher.base_url", "models.solver.serve.own", "models.solvers.NAME.name"} <= set(names)


def test_an_unknown_name_is_refused_with_what_there_is():
    with pytest.raises(ConfigError, match="no key under this name; there are: recipe"):
        list_keys(DEMO, ["pathz"])


@pytest.mark.parametrize("command", [["config", "keys", "seeds"], ["config", "seeds"]])
def test_the_command_prints_the_keys_of_a_section(capsys, command):
    with pytest.raises(SystemExit) as ended:
        main([*command, "--json"])
    assert ended.value.code == 0
    assert {key["name"].partition(".")[0] for key in json.loads(capsys.readouterr().out)} == {"seeds"}


def test_the_command_alone_lists_every_key_of_the_demo(capsys):
    with pytest.raises(SystemExit) as ended:
        main(["config"])
    assert ended.value.code == 0
    said = capsys.readouterr().out
    assert all(f"{key.name}  {key.type}," in said for key in list_keys(DEMO))
    assert "seeds.limit  integer, default 0; demo: 850\n" in said


def test_keys_of_a_recipe_for_real_dumps_are_listed_without_a_dump_or_models(capsys):
    with pytest.raises(SystemExit) as ended:
        main(["config", "seeds", "--recipe", "vsearcher"])
    assert ended.value.code == 0
    said = capsys.readouterr().out
    assert 'seeds.rule  string, default "opensearch-vl"; vsearcher: "vsearcher"\n' in said
    assert "the endpoint of [sparql] has" in said
