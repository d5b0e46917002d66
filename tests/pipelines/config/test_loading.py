"""Configurations as people write them: recipes, files over them, ``--set``, and what is refused with which words."""

import re
import tomllib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.cli.commands import load_config
from pipelines.config.loading import list_recipes, make_config, read_config_file, read_layers, read_recipe
from pipelines.config.settings import RunConfig
from pipelines.config.writing import write_toml
from pipelines.errors import ConfigError

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
PLAIN = st.one_of(
    TEXT, st.booleans(), st.integers(-(2**63), 2**63 - 1), st.floats(allow_nan=False), st.dates(), st.lists(TEXT)
)
TABLES = st.recursive(
    st.dictionaries(TEXT, PLAIN, max_size=4),
    lambda below: st.dictionaries(TEXT, st.one_of(PLAIN, below, st.lists(below, max_size=3)), max_size=4),
    max_leaves=12,
)


def make(*settings, recipe="demo"):
    return make_config(read_recipe(recipe), settings)


def write(folder, **files):
    paths = []
    for name, text in files.items():
        path = folder / f"{name}.toml"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        paths.append(path)
    return paths


# Recipes


@pytest.mark.parametrize("players", ["", " scripted"])
@pytest.mark.parametrize("recipe", list_recipes())
def test_a_recipe_is_valid_once_it_has_a_dump_and_reads_back_equal(recipe, players):
    config = make("corpus.dump=dump.xml", *(["models=scripted"] if players else []), recipe=recipe)
    assert (config.recipe, config.corpus.generate) == (recipe, None)
    assert make_config(tomllib.loads(write_toml(config.model_dump(mode="json")))) == config


@given(TABLES)
def test_what_is_written_reads_back_equal(tables):
    assert tomllib.loads(write_toml(tables)) == tables
    assert write_toml({"a": None, "b": {"c": None, "d": 1}}) == "[b]\nd = 1\n"


@pytest.mark.parametrize("recipe", list_recipes())
def test_scripted_players_read_a_world_by_its_text_layer_and_a_dump_by_the_recipes_engine(recipe, tmp_path):
    (own,) = write(tmp_path, own='[corpus]\ndump = "x.xml"\n')

    def find_engines(*settings, paths=()):
        return load_config(recipe, paths, ("models=scripted", *settings)).groundings.ocr

    assert find_engines("corpus.world=x") == ("layer",)
    assert find_engines("corpus.dump=x.xml") == ("rapidocr",)
    assert find_engines("corpus.world=x", 'groundings.ocr=["rapidocr"]') == ("rapidocr",)
    assert find_engines(paths=(own,)) == ("rapidocr",)


def test_a_file_may_choose_the_players_and_has_the_last_word(tmp_path):
    (own,) = write(
        tmp_path, own='extends = "mars"\nmodels = "scripted"\n[paths]\nguide = "model"\n[corpus]\nworld = "w"\n'
    )
    config = load_config("", [own], [])
    assert (config.models["solver"].adapter, config.paths.guide) == ("scripted", "model")


# Settings


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ("seed.limit=3", "seed: Input should be a valid integer"),
        ("seeds.limits=3", r"unknown key seeds\.limits; did you mean limit\?"),
        ("sedes.limit=3", r"unknown key sedes; did you mean seeds\?"),
        ("corpus.generate.entitys=3", r"unknown key corpus\.generate\.entitys; did you mean entities\?"),
        ("splits.zzz=1", "unknown key splits.zzz; there are: sft, rl, eval"),
        ("models.writer.nam='x'", r"unknown key models\.writer\.nam; did you mean name\?"),
        ("models.namer.name='x'", r"unknown role namer; there are: default, writer, rewriter, evaluator"),
        ("seeds.limit", r"write it as section\.key=value"),
        ("=3", r"write it as section\.key=value"),
        ("seeds.limit=-1", r"seeds\.limit.*\(given -1\)"),
        ("paths.walks=0", r"paths\.walks.*\(given 0\)"),
        ("corpus.world=b", "models"),
    ][:-1],
)
def test_a_setting_that_cannot_be_is_refused_with_what_to_say(setting, message):
    with pytest.raises(ConfigError, match=message):
        make(setting)


def test_several_problems_are_told_at_once():
    with pytest.raises(ConfigError, match=r"seeds\.limit.*; .*paths\.walks"):
        make("seeds.limit=-1", "paths.walks=0")


@pytest.mark.parametrize(
    ("setting", "read", "value"),
    [
        ("seeds.limit=12", lambda c: c.seeds.limit, 12),
        ("seeds.require_image=false", lambda c: c.seeds.require_image, False),
        ("models.solver.name=gpt", lambda c: c.models["solver"].name, "gpt"),
        ("models.solver.name='a=b'", lambda c: c.models["solver"].name, "a=b"),
        ("corpus.dump=/a b/c=d.xml", lambda c: c.corpus.dump, "/a b/c=d.xml"),
        ("splits={sft=0.5, rl=0.5, eval=0}", lambda c: c.splits, {"sft": 0.5, "rl": 0.5, "eval": 0.0}),
        (" seeds.limit =3", lambda c: c.seeds.limit, 3),
    ],
)
def test_a_setting_is_toml_or_else_text(setting, read, value):
    assert read(make(setting)) == value


@pytest.mark.parametrize(
    ("settings", "word"),
    [
        (("corpus.dump=a", "corpus.world=b"), "exactly one of dump, world, generate"),
        (("corpus.dump=a", "corpus.generate.entities=60"), "exactly one of dump, world, generate"),
        (("corpus.dump=''",), "exactly one of dump, world, generate"),
        (("splits={sft=0.6, rl=0.3, eval=0.4}",), r"shares of splits add up to 1\.3, not 1"),
        (("paths.hops=[2]",), r"paths\.hops"),
        (("paths.hops=[3, 4, 5]",), r"paths\.hops"),
        (("corpus.dump=x.xml", 'groundings.ocr=["layer"]'), "generated worlds alone"),
        (("corpus.dump=x.xml", "tools.layout=layer"), "generated worlds alone"),
        (("tools.image_search=clip",), "encoder.pretrained is empty"),
        (("commons.fetch=true",), "contact is empty"),
        (("tools.summarise=true",), "name models.summariser or models.default"),
        (("tools.family=live", "contact=a@b.example", "live.images=serpapi"), "live.urls.pictures is empty"),
        (("tools.family=live",), "contact is empty"),
        (("rollouts.dialect=klingon",), "rollouts.dialect"),
        (("live.urls.search=http://a@b/",), "live.urls.search"),
        (("method=concepts", "releases.search_free=[0.5, 0.4]"), r"releases\.search_free \[0\.5, 0\.4\]"),
    ],
)
def test_settings_that_do_not_go_together_are_refused_with_what_to_say(settings, word):
    with pytest.raises(ConfigError, match=word):
        make(*settings)


def test_what_only_later_stages_need_may_be_missing():
    assert make_config(read_recipe("demo"), ["tools.family=live"], "groundings").tools.family == "live"
    with pytest.raises(ConfigError, match="contact is empty"):
        make_config(read_recipe("fvqa"), ["corpus.dump=dump.xml", "tools.family=live"], "difficulty")


@pytest.mark.parametrize("key", ["commons.api", "seeds.endpoint"])
@pytest.mark.parametrize("value", ["https://me:secret@c.example/api", "https://c.example/api?key=secret"])
def test_an_address_with_a_secret_is_refused_and_the_secret_not_repeated(key, value):
    with pytest.raises(ConfigError, match=rf"{key}.*c\.example/api") as caught:
        make(f"{key}={value}")
    assert "secret" not in str(caught.value)


def test_a_contact_holds_an_address():
    for value in ("", "me@example.org", "https://example.org/bot", "A team, bot@example.org, https://example.org"):
        assert make(f"contact='{value}'").contact == value
    for value in (" ", "me", "me @ example.org", "@", "https:// x", "é@b", "a@b\n"):
        with pytest.raises(ConfigError, match="contact"):
            make_config(read_recipe("demo") | {"contact": value})


def test_a_dump_named_on_the_command_line_takes_the_place_of_the_recipes_source():
    corpus = make("corpus.dump=dump.xml").corpus
    assert (corpus.dump, corpus.world, corpus.generate) == ("dump.xml", "", None)
    assert make("corpus.world=w").corpus.generate is None


def test_every_section_refuses_strangers():
    sections = [
        field.annotation for field in RunConfig.model_fields.values() if hasattr(field.annotation, "model_config")
    ]
    assert len(sections) > 10
    assert all(section.model_config["extra"] == "forbid" for section in sections)


# Files


def test_a_file_that_is_missing_or_no_toml_is_refused(tmp_path):
    with pytest.raises(ConfigError, match="no such file"):
        read_config_file(tmp_path / "none.toml")
    for content in (b"a = [", b"\xff\xfe"):
        (tmp_path / "bad.toml").write_bytes(content)
        with pytest.raises(ConfigError, match="not TOML"):
            read_config_file(tmp_path / "bad.toml")


def test_files_lie_over_the_recipe_in_the_order_given_and_settings_over_all(tmp_path):
    first, second = write(
        tmp_path,
        a="[rollouts]\nattempts = 7\nmax_calls = 9\n[paths]\nhops = [2]\nweights = [1.0]\n",
        b="[rollouts]\nmax_calls = 8\n[seeds]\nlimit = 5\n",
    )
    config = load_config("opensearch-vl", [first, second], ["seeds.limit=3", "corpus.dump=dump.xml"])
    rollouts = config.rollouts
    assert (config.recipe, rollouts.attempts, rollouts.max_calls, config.seeds.limit) == ("opensearch-vl", 7, 8, 3)
    assert (config.paths.hops, rollouts.dialect) == ((2,), "opensearch-vl")
    other = load_config("opensearch-vl", [second, first], ["corpus.dump=dump.xml"])
    assert (other.rollouts.max_calls, other.seeds.limit) == (9, 5)


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


@pytest.mark.parametrize(
    "said", ['extends = "vsearcher"\n', 'recipe = "vsearcher"\n', 'extends = "vsearcher"\nrecipe = "my own"\n']
)
def test_a_file_says_what_it_lies_over(tmp_path, said):
    (path,) = write(tmp_path, a=f'{said}[corpus]\ndump = "dump.xml"\n')
    config = load_config("", [path], [])
    assert (config.method, config.seeds.rule) == ("injection", "vsearcher")
    assert config.recipe == ("my own" if "my own" in said else "vsearcher")


def test_a_file_with_a_name_of_its_own_and_no_recipe_below_is_the_whole_configuration(tmp_path):
    mine, over, whole = write(
        tmp_path,
        mine='recipe = "mine"\n[corpus.generate]\nentities = 60\n',
        over="seed = 9\n",
        whole='extends = ""\nrecipe = "exam"\n[corpus]\ndump = "dump.xml"\n',
    )
    config = load_config("", [mine, over], [])
    assert (config.recipe, config.seed, config.seeds.limit, config.roles) == ("mine", 9, 0, ())
    assert read_layers("", [whole]) == {"recipe": "exam", "corpus": {"dump": "dump.xml"}}


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


def test_a_circle_is_refused_with_the_names_in_it(tmp_path):
    first, _ = write(tmp_path, f1='extends = "f2.toml"\n', f2='extends = "f1.toml"\n')
    with pytest.raises(ConfigError, match="extend one another in a circle") as caught:
        load_config("", [first], [])
    assert {*re.findall(r"f\d", str(caught.value).partition("circle:")[2])} == {"f1", "f2"}


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
    _, own, alone = write(
        tmp_path,
        servers="[seeds]\nlimit = 3\n",
        own='extends = "servers.toml"\nrecipe = "own"\n[corpus]\ndump = "d"\n',
        alone='extends = "servers.toml"\n',
    )
    config = load_config("", [own], [])
    assert (config.recipe, config.seeds.limit) == ("own", 3)
    with pytest.raises(ConfigError, match=r"alone.toml: names no recipe; say extends"):
        load_config("", [alone], [])
