from dataclasses import replace

import pytest

from pipelines.cli.benches import list_lines, list_measures, render_card
from pipelines.config.loading import make_config, read_recipe
from pipelines.errors import ConfigError
from pipelines.run.ablations import SWITCHES, Ablated, Share, ablate, choose_switches


def make_ablated(switch, **measures):
    shares = {name.replace("_", " "): Share(*pair) for name, pair in measures.items()}
    return Ablated(switch=switch, rows={"vqa": 20, "sft": 30}, calls=1200, cost=0.5, measures=shares)


FUZZING = next(switch for switch in SWITCHES if switch.name == "fuzzing")
ENHANCEMENT = next(switch for switch in SWITCHES if switch.name == "enhancement")
WHOLE = make_ablated(None, leaks=(1, 20), degraded=(2, 20))


@pytest.mark.parametrize("switch", SWITCHES, ids=lambda switch: switch.name)
def test_each_switch_is_made_of_settings_that_change_the_recipe(switch):
    world = "corpus.world=w"
    whole = make_config(read_recipe("opensearch-vl"), [world])
    assert make_config(read_recipe("opensearch-vl"), [world, *switch.settings]) != whole
    assert choose_switches([switch.name]) == (switch,)


def test_all_are_chosen_where_none_is_named_and_a_strange_one_is_refused():
    assert choose_switches([]) == SWITCHES
    with pytest.raises(ConfigError, match="--only 'magic': there are: anchoring, fuzzing"):
        choose_switches(["magic"])


def test_nothing_anchored_is_a_walk_of_one_hop():
    walked = make_config(read_recipe("opensearch-vl"), ["corpus.world=w", "ablations.anchoring=false"]).walked
    assert (walked.hops, walked.weights) == ((1,), (1.0,))


def test_worse_is_more_of_what_is_bad_and_less_of_what_is_good():
    leaky = make_ablated(FUZZING, leaks=(10, 20), degraded=(2, 20))
    assert leaky.compare(WHOLE) == "+45.0 points worse, 10.0 times"
    plain = make_ablated(ENHANCEMENT, leaks=(1, 20), degraded=(0, 20))
    assert plain.compare(WHOLE) == "+10.0 points worse, to nothing; the intervals overlap"
    assert make_ablated(FUZZING, leaks=(0, 0)).compare(WHOLE) == "-5.0 points worse, to nothing; the intervals overlap"
    assert WHOLE.compare(WHOLE) == ""


def test_the_tables_say_what_was_left_out_with_intervals_rows_and_cost():
    leaky = make_ablated(FUZZING, leaks=(10, 20), degraded=(2, 20))
    lines = list_lines([WHOLE, leaky])
    assert lines[2].startswith("| nothing |  |  |  |  | 20 + 30 | 1,200 | 0.5000 |")
    assert "| fuzzing | leaks | 1 of 20: 5.0% (1% to 24%) | 10 of 20: 50.0% (30% to 70%) |" in lines[3]
    assert list_measures([WHOLE, leaky])[-1] == "| fuzzing | 50.0% | 10.0% |"
    assert leaky.as_dict()["measures"]["leaks"]["share"] == 0.5
    config = make_config(read_recipe("demo"))
    card = render_card(config, [WHOLE, leaky])
    assert card.startswith("# Ablations of demo\n")
    assert "2,000 entities, seed 7" in card
    assert "solver knower" in card
    assert "shows that switch and measure are wired, not what the part is worth" in card
    assert "not measured: anchoring, filtering, filter clause" in card
    assert "rerun on recorded stages" not in card
    again = [replace(each, calls=0) for each in (WHOLE, leaky)]
    assert "Calls and cost are of a rerun on recorded stages" in render_card(config, again)


@pytest.mark.parametrize(
    ("recipe", "settings", "said"),
    [
        ("bridgevqa", ["news.source=w"], "method = 'news'"),
        ("fvqa", ["corpus.world=w"], "method = 'concepts'"),
        ("opensearch-vl", ["corpus.world=w", 'pools=[{name="others", path="x.jsonl"}]'], "pool others"),
    ],
)
def test_a_recipe_whose_questions_have_no_path_is_refused_before_it_is_run(tmp_path, recipe, settings, said):
    config, ran = make_config(read_recipe(recipe), settings), []
    with pytest.raises(ConfigError, match=said):
        ablate(lambda *_: config, SWITCHES, tmp_path, ran.append)
    assert ran == []
