import pytest

from pipelines.agent.dialects import find_dialect
from pipelines.config.loading import make_config, read_recipe
from pipelines.errors import ConfigError
from pipelines.run.judges import look_at_judges

LIVE = ("tools.family=live", "live.contact=a@b.example")
OPENAI = ("models.{role}.adapter=openai", "models.{role}.name=m", "models.{role}.base_url=http://127.0.0.1:9/v1")


def play(role):
    return tuple(setting.format(role=role) for setting in OPENAI)


@pytest.mark.parametrize(
    ("settings", "word"),
    [
        (("tools.summarise=true",), "models.summariser; name one"),
        ((*LIVE, "live.images=serpapi"), "live.picture_base is empty"),
        (("tools.family=live",), "live.contact is empty"),
        (("rollouts.dialect=klingon",), "rollouts.dialect"),
        (("rollouts.max_turns=3",), "unknown key rollouts.max_turns"),
        (('trajectories.checks=["luck"]',), "trajectories.checks"),
        (("live.search_url=http://a@b/",), "live.search_url"),
    ],
)
def test_settings_that_do_not_go_together_are_refused_with_what_to_say(settings, word):
    with pytest.raises(ConfigError, match=word):
        make_config(read_recipe("demo"), settings)


def test_live_tools_need_no_more_than_a_contact():
    assert make_config(read_recipe("demo"), LIVE).tools.family == "live"


def test_a_process_judge_is_never_the_teacher():
    config = make_config(read_recipe("demo"), [*play("process_judge"), *play("teacher")])
    assert [finding.state for finding in look_at_judges(config)] == ["problem"]


@pytest.mark.parametrize("recipe", ["opensearch-vl", "vsearcher", "exam", "fvqa", "mars"])
def test_recipes_of_papers_with_a_summariser_have_one_where_a_model_is_named(recipe):
    source = ("corpus.dump=d.xml", "models.evaluator.name=e", "models.evaluator.base_url=http://127.0.0.1:9/v1")
    default = play("default")
    config = make_config(read_recipe(recipe), [*source, *default])
    assert (config.summarises, config.models.summariser.name) == (True, "m")
    assert make_config(read_recipe(recipe), [*source, *play("summariser")]).summarises
    assert not make_config(read_recipe(recipe), source).summarises
    assert not make_config(read_recipe(recipe), [*source, *default, "tools.summarise=false"]).summarises


@pytest.mark.parametrize(
    ("dialect", "bare", "summed"),
    [
        ("opensearch-vl", True, True),
        ("mmsearch-r1", True, True),
        ("mars", True, True),
        ("vsearcher", False, False),
        ("dr-mmsearch", False, False),
        ("synth", False, True),
    ],
)
def test_a_search_reads_pages_where_the_paper_says_so_or_nothing_else_opens_them(dialect, bare, summed):
    assert [find_dialect(dialect).reads_pages(summarised) for summarised in (False, True)] == [bare, summed]
