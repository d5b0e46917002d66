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
    console = Console(width=200, record=True, file=io.StringIO())
    console.print(render_keys(list_keys(DEMO, ["pools"]), "pools"))
    text = console.export_text()
    assert "(required)" in text
    assert "Undefined" not in text


def test_keys_of_models_are_listed_once_a_role():
    names = [key.name for key in list_keys(DEMO, ["models"])]
    assert {"models.teacher.base_url", "models.solver.serve.own", "models.solvers.NAME.name"} <= set(names)


def test_an_unknown_name_is_refused_with_what_there_is():
    with pytest.raises(ConfigError, match="no key under this name; there are: recipe"):
        list_keys(DEMO, ["pathz"])


def test_the_command_prints_the_keys_of_a_section(capsys):
    with pytest.raises(SystemExit) as ended:
        main(["config", "seeds", "--json"])
    assert ended.value.code == 0
    assert "seeds.limit" in [key["name"] for key in json.loads(capsys.readouterr().out)]
