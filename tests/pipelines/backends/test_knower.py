import asyncio
import inspect
import json
from typing import get_args

import pytest

from pipelines.agent.attempts import NOTHING_FOUND
from pipelines.errors import ConfigError
from pipelines.services.protocols import ChatRequest
from pipelines.toy import players as knower
from pipelines.toy.players import UNKNOWN, ScriptedKnower
from schemas.proofs import Answer
from schemas.tasks import AnswerQuestionInputs, Condition, FactView, SolverOracle

RIGHT = "5 April 1931"
ANSWER = Answer(type="date", value="1931-04-05", precision="day", unit="", surface=RIGHT, aliases=(), key="1931-04-05")
SURE = ScriptedKnower(fact_popularity=10, sight_popularity=50, guess_rate=0.0, slip_rate=0.0)


def make_inputs(condition: Condition, popularity=(60, 20, 20), alone=7, seen=(), question="q-1", found="1. A page"):
    oracle = SolverOracle(
        question_id=question,
        answer=ANSWER,
        popularity=popularity,
        alone_count=alone,
        guesses=("6 May 1932", "7 June 1933"),
        seen_titles=seen,
        anchor_title="Kelm Bridge",
    )
    tools = condition.partition("+")[2]
    return AnswerQuestionInputs(
        question="When?",
        condition=condition,
        pictured=not condition.startswith("text"),
        image_results="1. A page" if tools in ("image-search", "both") else "",
        search_results=found if tools in ("text-search", "both") else "",
        oracle=oracle,
    )


def ask(knower: ScriptedKnower, inputs, sample: int = 0) -> str:
    request = ChatRequest("answer_question", "answer_question/v1", (), inputs, sample=sample)
    return json.loads(asyncio.run(knower.chat(request)).text)["answer"]


def test_text_alone_is_not_enough_when_many_entities_fit_the_descriptor():
    assert ask(SURE, make_inputs("text", alone=7)) == UNKNOWN


def test_text_alone_is_enough_when_the_last_entity_stands_out_and_is_popular():
    assert ask(SURE, make_inputs("text", popularity=(1, 1, 10), alone=1)) == RIGHT


def test_text_alone_fails_when_the_last_fact_is_obscure():
    assert ask(SURE, make_inputs("text", popularity=(99, 99, 9), alone=1)) == UNKNOWN


def test_a_recognised_anchor_and_a_known_chain_give_the_answer():
    assert ask(SURE, make_inputs("image")) == RIGHT


def test_one_unknown_fact_along_the_chain_is_enough_to_fail():
    assert ask(SURE, make_inputs("image", popularity=(60, 9, 20))) == UNKNOWN


def test_an_anchor_below_the_sight_threshold_is_not_recognised():
    assert ask(SURE, make_inputs("image", popularity=(49, 20, 20))) == UNKNOWN


def test_the_first_hit_of_an_image_search_replaces_recognition():
    inputs = make_inputs("image+image-search", popularity=(10, 20, 20), seen=("Kelm Bridge", "Oster Bridge"))
    assert ask(SURE, inputs) == RIGHT


def test_a_wrong_first_hit_of_an_image_search_misleads():
    inputs = make_inputs("image+image-search", popularity=(99, 20, 20), seen=("Oster Bridge", "Kelm Bridge"))
    assert ask(SURE, inputs) == UNKNOWN


@pytest.mark.parametrize("condition", [name for name in get_args(Condition) if name.startswith("swapped")])
def test_a_swapped_picture_leads_elsewhere_whatever_is_known(condition):
    inputs = make_inputs(condition, popularity=(99, 99, 99), alone=1, seen=("Kelm Bridge",))
    assert ask(SURE, inputs) == UNKNOWN


def test_a_text_search_makes_up_for_one_unknown_fact():
    assert ask(SURE, make_inputs("image+text-search", popularity=(60, 9, 20))) == RIGHT
    assert ask(SURE, make_inputs("image+text-search", popularity=(60, 9, 9))) == UNKNOWN


def test_a_text_search_that_finds_nothing_makes_up_for_nothing():
    assert ask(SURE, make_inputs("image+text-search", popularity=(60, 9, 20), found=NOTHING_FOUND)) == UNKNOWN


def test_a_text_search_does_not_name_the_picture():
    assert ask(SURE, make_inputs("image+text-search", popularity=(49, 20, 20))) == UNKNOWN


def test_a_text_search_finds_what_stands_out_by_its_words():
    assert ask(SURE, make_inputs("text+text-search", popularity=(1, 1, 1), alone=1)) == RIGHT
    assert ask(SURE, make_inputs("text+text-search", popularity=(99, 99, 99), alone=2)) == UNKNOWN


def test_both_searches_name_the_picture_and_make_up_for_one_fact():
    assert ask(SURE, make_inputs("image+both", popularity=(10, 9, 20), seen=("Kelm Bridge",))) == RIGHT
    assert ask(SURE, make_inputs("image+both", popularity=(10, 9, 20), seen=("Oster Bridge",))) == UNKNOWN


@pytest.mark.parametrize("condition", ["text", "image", "text+text-search", "image+image-search", "image+both"])
def test_a_planted_probability_decides_by_class_of_condition(condition):
    free, searched = 0.2, 0.7
    knower = ScriptedKnower(right_without_tools=free, right_with_search=searched)
    answers = [ask(knower, make_inputs(condition), sample) for sample in range(500)]
    expected = searched if "+" in condition else free
    assert set(answers) == {RIGHT, UNKNOWN}
    assert abs(answers.count(RIGHT) / 500 - expected) < 0.06


def test_a_higher_planted_probability_loses_no_success():
    knowers = [ScriptedKnower(right_without_tools=rate) for rate in (0.1, 0.4, 0.9)]
    right = [{n for n in range(100) if ask(knower, make_inputs("image"), n) == RIGHT} for knower in knowers]
    assert right[0] < right[1] < right[2]


def test_who_always_slips_never_gives_the_right_answer():
    knower = ScriptedKnower(fact_popularity=0, sight_popularity=0, guess_rate=0.0, slip_rate=1.0)
    answers = {ask(knower, make_inputs("image"), sample) for sample in range(40)}
    assert answers == {"6 May 1932", "7 June 1933"}


def test_guesses_come_at_the_set_rate_and_are_sometimes_lucky():
    knower = ScriptedKnower(fact_popularity=999, sight_popularity=999, guess_rate=0.3, slip_rate=0.0)
    answers = [ask(knower, make_inputs("text", question=f"q-{n}")) for n in range(1000)]
    guessed = [answer for answer in answers if answer != UNKNOWN]
    assert 240 <= len(guessed) <= 360
    assert 0.2 <= guessed.count(RIGHT) / len(guessed) <= 0.47


def test_samples_and_names_draw_different_luck_and_repeat_exactly():
    first = ScriptedKnower(fact_popularity=999, guess_rate=0.5)
    second = ScriptedKnower(fact_popularity=999, guess_rate=0.5, name="other")
    rows = [[ask(knower, make_inputs("text"), n) for n in range(30)] for knower in (first, second, first)]
    assert rows[0] == rows[2]
    assert rows[0] != rows[1]
    assert len(set(rows[0])) > 1


def test_every_setting_is_part_of_the_identity():
    changed = (
        ScriptedKnower(fact_popularity=1),
        ScriptedKnower(sight_popularity=1),
        ScriptedKnower(guess_rate=0.5),
        ScriptedKnower(slip_rate=0.5),
        ScriptedKnower(right_without_tools=0.5),
        ScriptedKnower(right_with_search=0.5),
        ScriptedKnower(name="other"),
    )
    assert len({knower.identity for knower in (ScriptedKnower(), *changed)}) == 8


@pytest.mark.parametrize(
    "settings",
    [{"guess_rate": 1.5}, {"right_with_search": 2.0}, {"slip_rate": -0.1}, {"fact_popularity": -1}],
)
def test_impossible_settings_are_refused_with_what_is_allowed(settings):
    with pytest.raises(ConfigError, match="allowed"):
        ScriptedKnower(**settings)


def test_another_task_is_refused():
    request = ChatRequest("act", "act/v1", (), FactView(relation="height", text="3 m"))
    with pytest.raises(ConfigError, match="answer_question"):
        asyncio.run(SURE.chat(request))


def test_a_question_without_popularity_is_refused():
    with pytest.raises(ConfigError, match="popularity"):
        ask(SURE, make_inputs("text", popularity=()))


def test_the_rules_are_part_of_the_identity(monkeypatch):
    before, read = SURE.identity, inspect.getsource
    monkeypatch.setattr(inspect, "getsource", lambda given: read(given) + "# new")
    knower._digest_source_knower.cache_clear()
    assert SURE.identity != before
    knower._digest_source_knower.cache_clear()
