import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.config.loading import apply_setting, list_recipes, make_config, read_config_file, read_recipe
from pipelines.config.settings import RunConfig
from pipelines.errors import ConfigError

DEMO = "corpus.generate.entities=60"


def make(*settings):
    return make_config(read_recipe("demo"), settings)


@pytest.mark.parametrize("name", list_recipes())
def test_every_shipped_recipe_is_valid_once_it_has_a_dump(name):
    config = make_config(read_recipe(name), ["corpus.dump=dump.xml"])
    assert config.recipe == name
    assert config.corpus.generate is None


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ("seed.limit=3", "seed is a value, not a section"),
        ("seeds.limits=3", r"unknown key seeds\.limits; did you mean limit\?"),
        ("sedes.limit=3", r"unknown key sedes; did you mean seeds\?"),
        ("seeds.small_corpus.hub_shares=3", r"unknown key seeds\.small_corpus\.hub_shares; did you mean hub_share\?"),
        ("corpus.generate.entitys=3", r"unknown key corpus\.generate\.entitys; did you mean entities\?"),
        ("splits.zzz=1", "unknown key splits.zzz; there are: sft, rl, eval"),
        ("models.writer.nam='x'", r"unknown key models\.writer\.nam; did you mean name\?"),
    ],
)
def test_an_unknown_key_names_the_nearest_one(setting, message):
    with pytest.raises(ConfigError, match=message):
        make(setting)


@pytest.mark.parametrize(
    ("setting", "read", "value"),
    [
        ("seeds.limit=12", lambda c: c.seeds.limit, 12),
        ("seeds.require_image=false", lambda c: c.seeds.require_image, False),
        ("seeds.small_corpus.hub_share=0.5", lambda c: c.seeds.small_corpus.hub_share, 0.5),
        ("models.solver.name=gpt", lambda c: c.models.solver.name, "gpt"),
        ("models.solver.name='a=b'", lambda c: c.models.solver.name, "a=b"),
        ("corpus.dump=/a b/c=d.xml", lambda c: c.corpus.dump, "/a b/c=d.xml"),
        ("splits={sft=0.5, rl=0.5, eval=0.0}", lambda c: c.splits.rl, 0.5),
        (" seeds.limit =3", lambda c: c.seeds.limit, 3),
    ],
)
def test_a_setting_is_toml_or_else_text(setting, read, value):
    assert read(make(setting)) == value


@pytest.mark.parametrize("setting", ["seeds.limit", "=3", ""])
def test_a_setting_without_a_name_and_a_value_says_how_to_write_it(setting):
    with pytest.raises(ConfigError, match=r"write it as section\.key=value"):
        make(setting)


@pytest.mark.parametrize(
    "setting",
    ["seeds.limit=-1", "seeds.limit='many'", "corpus.generate.missing=0.95", "runtime.shard_rows=0", "paths.walks=0"],
)
def test_a_value_out_of_range_names_the_key_and_what_was_given(setting):
    key, _, given_value = setting.partition("=")
    with pytest.raises(ConfigError, match=key) as caught:
        make(setting)
    assert f"(given {given_value}" in str(caught.value)


@pytest.mark.parametrize("key", ["commons.api", "sparql.endpoint"])
@pytest.mark.parametrize("value", ["https://me:secret@c.example/api", "https://c.example/api?key=secret"])
def test_an_address_with_a_secret_is_refused_and_the_secret_not_repeated(key, value):
    with pytest.raises(ConfigError, match=rf"{key}.*c\.example/api") as caught:
        make(f"{key}={value}")
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize("value", ["https://c.example/api#x", "c.example/api", "ftp://c.example/api", "https://a b/"])
def test_the_address_of_commons_is_an_address(value):
    with pytest.raises(ConfigError, match=r"commons\.api"):
        make(f"commons.api={value}")


@pytest.mark.parametrize("section", ["sparql", "commons"])
def test_a_contact_holds_an_address(section):
    for value in ("", "me@example.org", "https://example.org/bot", "A team, bot@example.org, https://example.org"):
        assert getattr(make(f"{section}.contact='{value}'"), section).contact == value
    for value in (" ", "me", "me @ example.org", "@", "https:// x", "é@b", "a@b\n"):
        with pytest.raises(ConfigError, match=rf"{section}\.contact"):
            make_config(read_recipe("demo") | {section: {"contact": value}})


def test_several_problems_are_told_at_once():
    with pytest.raises(ConfigError, match=r"seeds\.limit.*; .*paths\.walks"):
        make("seeds.limit=-1", "paths.walks=0")


def test_a_dump_named_on_the_command_line_takes_the_place_of_the_recipes_source():
    corpus = make("corpus.dump=dump.xml").corpus
    assert (corpus.dump, corpus.world, corpus.generate) == ("dump.xml", "", None)
    assert make("corpus.world=w").corpus.generate is None


@pytest.mark.parametrize(
    "settings", [("corpus.dump=a", "corpus.world=b"), ("corpus.dump=a", DEMO), ("corpus.dump=''",)], ids=str
)
def test_a_corpus_has_exactly_one_source(settings):
    with pytest.raises(ConfigError, match="exactly one of dump, world, generate"):
        make(*settings)


def test_the_shares_of_the_splits_add_up_to_one():
    with pytest.raises(ConfigError, match=r"shares of splits add up to 1\.3, not 1"):
        make("splits={sft=0.6, rl=0.3, eval=0.4}")


@pytest.mark.parametrize("setting", ["paths.hops=[2]", "paths.hops=[1, 2, 3]", "paths.hops=[3, 4, 5]"])
def test_path_lengths_are_two_to_four_with_a_weight_each(setting):
    with pytest.raises(ConfigError, match=r"paths\.hops"):
        make(setting)


def test_a_recipe_that_does_not_exist_names_those_that_do():
    with pytest.raises(ConfigError, match="demo"):
        read_recipe("../demo")


def test_a_file_that_is_missing_or_no_toml_is_refused(tmp_path):
    with pytest.raises(ConfigError, match="no such file"):
        read_config_file(tmp_path / "none.toml")
    for content in (b"a = [", b"\xff\xfe"):
        (tmp_path / "bad.toml").write_bytes(content)
        with pytest.raises(ConfigError, match="not TOML"):
            read_config_file(tmp_path / "bad.toml")


def test_a_file_of_ones_own_is_a_recipe(tmp_path):
    (tmp_path / "good.toml").write_text('recipe = "mine"\n[corpus]\ndump = "d"\n')
    assert make_config(read_config_file(tmp_path / "good.toml")).recipe == "mine"


@given(st.lists(st.from_regex(r"[a-z]{1,6}", fullmatch=True), min_size=1, max_size=4), st.integers(-9, 9))
def test_a_setting_reaches_the_table_it_names(parts, value):
    tables = {}
    apply_setting(tables, f"{'.'.join(parts)}={value}")
    for part in parts:
        tables = tables[part]
    assert tables == value


def test_every_section_refuses_strangers():
    sections = [
        field.annotation for field in RunConfig.model_fields.values() if hasattr(field.annotation, "model_config")
    ]
    assert len(sections) > 10
    assert all(section.model_config["extra"] == "forbid" for section in sections)


def test_another_player_of_a_role_leaves_the_abilities_of_the_scripted_one_behind() -> None:
    served = ["models.solver.adapter=openai", "models.solver.base_url=http://127.0.0.1:8000/v1"]
    assert make_config(read_recipe("demo"), served).models.solver.settings == {}
    with pytest.raises(ConfigError, match=r"models\.solver\.settings: openai takes none"):
        make_config(read_recipe("demo"), [*served, "models.solver.settings={ slip_rate = 0.1 }"])
