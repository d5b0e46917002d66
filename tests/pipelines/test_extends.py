"""Configurations that extend one another: recipes, files, and what of it is refused."""

import re

import pytest

from pipelines.cli.commands import load_config
from pipelines.config.loading import choose_players, list_recipes, make_config, read_layers, read_recipe
from pipelines.errors import ConfigError
from pipelines.ids import digest_value

RESOLVED = {
    "bridgevqa": "662e48356ecd6a0b",
    "bridgevqa scripted": "7fe96bea202e7b5b",
    "demo": "5e7f66b7041dce22",
    "demo scripted": "1a4bff9a704bda6c",
    "exam": "6c5bde9b6b235f6d",
    "exam scripted": "3a31e5d073b9fdcd",
    "fvqa": "003aaabd926c5c31",
    "fvqa scripted": "ecc7912490048f96",
    "mars": "4690923fd313012c",
    "mars scripted": "6d9615b43cfcaed7",
    "opensearch-vl": "c68eaab8354219a8",
    "opensearch-vl scripted": "91442b7100062fb6",
    "vsearcher": "2aabd966ec3055dd",
    "vsearcher scripted": "d28437878aac2caf",
}
"""Digests of what each recipe sets beyond the defaults. Who changes values on purpose changes them, too."""


def write(folder, **files):
    paths = []
    for name, text in files.items():
        path = folder / f"{name}.toml"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        paths.append(path)
    return paths


@pytest.mark.parametrize("players", ["", " scripted"])
@pytest.mark.parametrize("recipe", list_recipes())
def test_a_recipe_has_its_values_whatever_it_extends(recipe, players):
    tables = read_recipe(recipe)
    if players:
        choose_players(tables)
    config = make_config(tables, ["corpus.dump=dump.xml"])
    values = config.model_dump(mode="json", exclude_defaults=True)
    assert digest_value(values)[:16] == RESOLVED[recipe + players]


def test_what_a_file_extends_lies_below_it_then_the_second_file_then_settings(tmp_path):
    write(tmp_path / "team", base='extends = "opensearch-vl"\n[rollouts]\nattempts = 7\nwanted = 3\nmax_calls = 11\n')
    own, over = write(
        tmp_path,
        own='extends = "team/base.toml"\nrecipe = "own"\n[rollouts]\nwanted = 4\nmax_calls = 12\n',
        over="[rollouts]\nmax_calls = 13\n[seeds]\nlimit = 5\n",
    )
    config = load_config("", [own, over], ["seeds.limit=6", "corpus.dump=dump.xml"])
    rollouts = config.rollouts
    assert (config.recipe, rollouts.dialect, rollouts.attempts) == ("own", "opensearch-vl", 7)
    assert (rollouts.wanted, rollouts.max_calls, config.seeds.limit) == (4, 13, 6)


def test_a_file_that_extends_nothing_is_whole_although_a_recipe_has_its_name(tmp_path):
    (path,) = write(tmp_path, whole='extends = ""\nrecipe = "exam"\n[corpus]\ndump = "dump.xml"\n')
    assert read_layers("", [path]) == {"recipe": "exam", "corpus": {"dump": "dump.xml"}}
    with pytest.raises(ConfigError, match=r"more than one recipe is named \(--recipe exam, .*whole.toml: nothing\)"):
        load_config("exam", [path], [])


def test_a_file_over_another_file_needs_no_recipe_of_its_own(tmp_path):
    whole, over = write(tmp_path, whole='recipe = "mine"\n[corpus.generate]\nentities = 60\n', over="seed = 9\n")
    assert load_config("", [whole, over], []).seed == 9


def test_a_recipe_named_beside_a_file_lies_below_it_or_is_refused_with_both_names(tmp_path):
    open_, bound, far = write(
        tmp_path,
        open="[rollouts]\nwanted = 4\n",
        bound='extends = "vsearcher"\n',
        far='extends = "bound.toml"\n',
    )
    config = load_config("mars", [open_], ["corpus.dump=dump.xml"])
    assert (config.recipe, config.rollouts.wanted, config.rollouts.dialect) == ("mars", 4, "mars")
    assert load_config("vsearcher", [bound, open_], ["corpus.dump=dump.xml"]).recipe == "vsearcher"
    for path, said in ((bound, "bound.toml: vsearcher"), (far, "far.toml: .*bound.toml")):
        with pytest.raises(ConfigError, match=rf"more than one recipe is named \(--recipe mars, .*{said}\)"):
            load_config("mars", [path], [])


@pytest.mark.parametrize("length", [1, 2, 3])
def test_a_circle_is_refused_with_the_names_in_it(tmp_path, length):
    names = [f"f{number}" for number in range(length)]
    following = dict(zip(names, [*names[1:], names[0]], strict=True))
    first, *_ = write(tmp_path, **{name: f'extends = "{following[name]}.toml"\n' for name in names})
    with pytest.raises(ConfigError, match="extend one another in a circle") as caught:
        load_config("", [first], [])
    assert {*re.findall(r"f\d", str(caught.value).partition("circle:")[2])} == {*names}


@pytest.mark.parametrize(
    ("said", "message"),
    [
        ("extends = 3", "a.toml: extends 3: expected the name of a recipe, or the path of a file"),
        ('extends = "none.toml"', r"a.toml: extends 'none.toml': no such file"),
        ('extends = "opensearchvl"', r"a.toml: extends: recipe 'opensearchvl' does not exist; there are: .*mars"),
        ("[seeds]\nlimits = 3", r"config \S*a.toml: unknown key seeds.limits; did you mean limit\?"),
        ("[seeds]\nlimit = -3\n[rollouts]\nwant = 1", r"config \S*a.toml: seeds.limit: .* unknown key rollouts.want;"),
        ('[seeds]\nextends = "demo"', "unknown key seeds.extends"),
    ],
)
@pytest.mark.parametrize("over", [False, True])
def test_what_is_wrong_in_a_file_is_said_with_its_name(tmp_path, said, message, over):
    paths = write(tmp_path, a=f"{said}\n", b='extends = "a.toml"\n')
    with pytest.raises(ConfigError, match=message):
        load_config("" if over else "demo" if "extends =" not in said else "", [paths[over]], ["corpus.world=w"])


def test_a_fragment_below_others_leaves_the_recipe_to_them(tmp_path):
    _, own = write(
        tmp_path, servers="[seeds]\nlimit = 3\n", own='extends = "servers.toml"\nrecipe = "own"\n[corpus]\ndump = "d"\n'
    )
    config = load_config("", [own], [])
    assert (config.recipe, config.seeds.limit) == ("own", 3)
    (alone,) = write(tmp_path, alone='extends = "servers.toml"\n')
    with pytest.raises(ConfigError, match=r"alone.toml: names no recipe; say extends"):
        load_config("", [alone], [])
