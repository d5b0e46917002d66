import pytest

from pipelines.cli.commands import load_config
from pipelines.config.loading import list_recipes, make_config, read_recipe
from pipelines.errors import ConfigError


@pytest.mark.parametrize(
    ("settings", "word"),
    [
        (("corpus.dump=x.xml", 'groundings.ocr=["layer"]'), "generated worlds alone"),
        (("corpus.dump=x.xml", "tools.layout=layer"), "generated worlds alone"),
        (("groundings.ranker=clip",), "encoder.pretrained is empty"),
        (("image_search.method=clip",), "encoder.pretrained is empty"),
        (("commons.fetch=true",), "commons.contact is empty"),
        (("commons.search=true", "commons.contact=a@b.example"), "commons.search needs"),
        (("commons.width=1000",), "commons.width"),
        (("enhancements.strengths=[0.0]",), "enhancements.strengths"),
    ],
)
def test_settings_that_do_not_go_together_are_refused_with_what_to_say(settings, word):
    with pytest.raises(ConfigError, match=word):
        make_config(read_recipe("demo"), settings)


def test_a_dump_is_read_by_a_real_engine_unless_another_is_named():
    assert make_config(read_recipe("demo"), ["corpus.dump=x.xml"]).groundings.ocr == ("rapidocr",)
    assert make_config(read_recipe("demo")).groundings.ocr == ("layer",)


@pytest.mark.parametrize("recipe", list_recipes())
def test_scripted_players_read_a_world_by_its_text_layer_and_a_dump_by_the_recipes_engine(recipe, tmp_path):
    own = tmp_path / "own.toml"
    own.write_text('[corpus]\ndump = "x.xml"\n')

    def find_engines(paths, *settings):
        return load_config(recipe, paths, settings, models="scripted").groundings.ocr

    assert find_engines((), "corpus.world=x") == ("layer",)
    assert find_engines((), "corpus.dump=x.xml") == ("rapidocr",)
    assert find_engines((), "corpus.world=x", 'groundings.ocr=["rapidocr"]') == ("rapidocr",)
    if recipe != "demo":
        assert find_engines((own,)) == ("rapidocr",)


def test_players_of_one_recipe_lie_over_those_of_all():
    bare, own = (
        load_config(recipe, (), ("corpus.world=x",), models="scripted").models.solver
        for recipe in ("mars", "opensearch-vl")
    )
    assert (bare.adapter, own.adapter) == ("knower", "knower")
    assert bare.settings["fact_popularity"] != own.settings["fact_popularity"]
