import asyncio
import json
from dataclasses import fields, replace

import pytest

from pipelines.agent.dialects import DIALECTS, find_dialect
from pipelines.agent.loop import run_rollout
from pipelines.agent.observations import find_name, list_forms, read_hits
from pipelines.agent.transcript import read_observation
from pipelines.errors import ConfigError
from pipelines.services.protocols import ChatRequest
from pipelines.stages.rollouts import make_oracle
from pipelines.toy.teacher import EXPECTED, VERIFIED, ScriptedTeacher, Vices, list_vices, make_vices
from schemas.tasks import AnswerReply
from tests.pipelines.agent.trail import (
    TEXTS,
    TITLES,
    FakeImageSearch,
    FakePages,
    FakeTextSearch,
    find_faults,
    list_messages,
    make_agent,
    make_picture,
    make_question,
    make_tools,
)


@pytest.fixture
def play(tmp_path):
    picture = make_picture(tmp_path)

    def play_attempt(vices=None, attempt=0, number=1, turns=30, repair="", **tools):
        agent = make_agent(
            ScriptedTeacher("teacher", Vices(**(vices or {}))), make_tools(tmp_path, **tools), calls=turns - 1
        )
        question = make_question(picture, number)
        oracle = make_oracle(question, attempt).model_copy(update={"repair": repair})
        return asyncio.run(run_rollout(agent, question, oracle))

    return play_attempt


def list_tools(rollout):
    return [step.tool for step in rollout.steps]


def test_a_virtuous_teacher_walks_from_the_picture_to_the_answer(play):
    rollouts = [play(attempt=attempt) for attempt in range(12)]
    assert {rollout.answer for rollout in rollouts} == {"5 April 1204"}
    for rollout in rollouts:
        assert list_tools(rollout)[:2] == ["image_search", "visit"]
        assert not find_faults(rollout)
    assert len({len(rollout.steps) for rollout in rollouts}) > 1, "some go on from a snippet, others open the page"
    assert len({tuple(step.thought for step in rollout.steps) for rollout in rollouts}) == 12
    assert play(attempt=3) == rollouts[3]


def test_every_name_and_address_was_shown_before_it_was_used(play):
    for attempt in range(12):
        messages = list_messages(play({"crop_first": 0.5, "repeat": 0.5}, attempt))
        for place in range(2, len(messages), 2):
            shown = "\n".join(message.text for message in messages[1:place:2])
            used = messages[place].text
            for title in TITLES:
                if any(find_name(used, form) for form in list_forms(title)):
                    assert any(find_name(shown, form) for form in list_forms(title))
            if '"url"' in used:
                addresses = {
                    hit.url for message in messages[3:place:2] for hit in read_hits(read_observation(message.text))
                }
                assert any(address in used for address in addresses)


TOOLS = {"blocked_hosts": ("huggingface.co",)}


@pytest.mark.parametrize("vice", EXPECTED)
def test_each_vice_is_first_found_by_the_check_that_looks_for_it(play, vice):
    for attempt in range(6):
        faults = find_faults(play({vice: 1.0}, attempt, **TOOLS))
        assert faults[0].reason == EXPECTED[vice], faults


BROKEN = TEXTS | {"Kelm Bridge": "Opened: 1931\n\nKelm Bridge is a bridge."}
LINKED = TEXTS | {"Ana Kovač": TEXTS["Ana Kovač"] + " She drew Kelm Bridge."}
FAKES = {"image_search": FakeImageSearch, "text_search": FakeTextSearch, "pages": FakePages}


@pytest.mark.parametrize(
    ("vices", "shown", "calls", "answer"),
    [
        pytest.param({}, {"image_search": ()}, "image_search text_search", "5 April 1204", id="by the question"),
        pytest.param({}, {"image_search": (), "text_search": {}}, "image_search text_search -", "unknown", id="lost"),
        pytest.param(
            {},
            {"pages": BROKEN, "text_search": {"Kelm Bridge": BROKEN["Kelm Bridge"]}},
            "image_search visit text_search -",
            "unknown",
            id="a name that its page lacks is searched once",
        ),
        pytest.param(
            {},
            {"pages": {}, "text_search": dict.fromkeys(TITLES, "A page.")},
            "image_search visit",
            "unknown",
            id="no page opens",
        ),
        pytest.param({"lucky": 1.0}, {"pages": LINKED, "text_search": LINKED}, "text_search", "unknown", id="anchor"),
        pytest.param({"lucky": 1.0}, {"text_search": {}}, "text_search text_search -", "unknown", id="half a name"),
        pytest.param({"from_memory": 1.0}, {}, "-", "5 April 1204", id="from memory"),
        pytest.param({"crop_first": 1.0}, {}, "crop image_search image_search visit", "5 April 1204", id="crop"),
    ],
)
def test_what_the_tools_show_decides_how_far_it_goes(play, vices, shown, calls, answer):
    rollout = play(vices, **{tool: FAKES[tool](given) for tool, given in shown.items()})
    assert " ".join(tool or "-" for tool in list_tools(rollout)).startswith(calls)
    assert rollout.answer == answer


def test_at_most_one_vice_is_drawn(tmp_path):
    question = make_question(make_picture(tmp_path))
    every = Vices(**dict.fromkeys(EXPECTED, 0.5))
    drawn = [list_vices(make_oracle(question, attempt), "teacher", every) for attempt in range(40)]
    assert {len(each) for each in drawn} == {1}
    assert {field.name for field in fields(Vices)} == {*EXPECTED, *VERIFIED, "crop_first"}
    always = Vices(**dict.fromkeys(EXPECTED, 1.0))
    assert list_vices(make_oracle(question, 0), "teacher", always) == {"break_format"}


def test_what_a_dialect_has_no_words_for_is_not_drawn(tmp_path):
    oracle = make_oracle(make_question(make_picture(tmp_path)), 0)
    for vice, dialect in (
        ("lost_image", "vsearcher"),
        ("lucky", "vsearcher"),
        ("peek", "mars"),
        ("unknown_tool", "mmsearch-r1"),
    ):
        assert list_vices(oracle, "teacher", Vices(**{vice: 1.0})) == {vice}
        assert list_vices(oracle, "teacher", Vices(**{vice: 1.0}), dialect) == frozenset()


@pytest.fixture
def speak(tmp_path):
    """Play one attempt in a dialect."""
    picture = make_picture(tmp_path)

    def speak_in(name, vices=None, attempt=0):
        dialect = find_dialect(name)
        teller = ScriptedTeacher("teacher", Vices(**(vices or {})))
        tools = make_tools(tmp_path, **TOOLS)
        agent = replace(make_agent(teller, tools), dialect=dialect, prompt=dialect.load_prompt())
        question = make_question(picture)
        return asyncio.run(run_rollout(agent, question, make_oracle(question, attempt)))

    return speak_in


@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_virtuous_teacher_finds_the_answer_in_every_dialect(speak, dialect):
    for attempt in range(4):
        rollout = speak(dialect, {"crop_first": 0.5}, attempt)
        assert (rollout.dialect, rollout.stop_reason, rollout.answer) == (dialect, "answered", "5 April 1204")
        assert [step.observation.error for step in rollout.steps[:-1]] == [""] * (len(rollout.steps) - 1)


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("vice", ["break_format", "two_calls"])
def test_a_spoiled_reply_is_none_in_every_dialect(speak, dialect, vice):
    assert {speak(dialect, {vice: 1.0}, attempt).stop_reason for attempt in range(6)} == {
        "answered" if DIALECTS[dialect].tells_bad_turns else "format"
    }


@pytest.mark.parametrize("vice", ["break_format", "two_calls"])
def test_a_teacher_that_is_told_of_a_bad_turn_goes_on_without_another(tmp_path, vice):
    agent = make_agent(ScriptedTeacher("teacher", Vices(**{vice: 1.0})), make_tools(tmp_path))
    agent = replace(agent, dialect=replace(agent.dialect, tells_bad_turns=True))
    question = make_question(make_picture(tmp_path))
    rollout = asyncio.run(run_rollout(agent, question, make_oracle(question, 0)))
    assert [step.observation.error for step in rollout.steps[:-1]].count("bad-turn") == 1
    assert rollout.answer == "5 April 1204"


def list_calls(rollout, count):
    return [(step.tool, json.loads(step.arguments).get("image")) for step in rollout.steps[:count]]


def test_a_degraded_picture_is_repaired_first_and_what_came_of_it_is_looked_up(play):
    for attempt in range(6):
        rollout = play(attempt=attempt, repair="sharpen")
        assert list_calls(rollout, 2) == [("sharpen", "img_1"), ("image_search", "img_2")]
        assert rollout.answer == "5 April 1204"
        assert not find_faults(rollout)


@pytest.mark.parametrize(
    ("repair", "opencv", "warning", "error"),
    [
        ("super_resolution", True, "no-weights", ""),
        ("perspective_correct", True, "no-quadrilateral", ""),
        ("perspective_correct", False, "", "unknown-tool"),
    ],
)
def test_a_repair_that_makes_nothing_is_tried_once_and_the_original_is_looked_up(play, repair, opencv, warning, error):
    rollout = play(repair=repair, opencv=opencv)
    assert list_calls(rollout, 2) == [(repair, "img_1"), ("image_search", "img_1")]
    observation = rollout.steps[0].observation
    assert (observation.warning, observation.error) == (warning, error)
    assert rollout.answer == "5 April 1204"


def test_settings_are_checked():
    assert make_vices({"wrong": 0.2}) == Vices(wrong=0.2)
    with pytest.raises(ConfigError, match="unknown setting 'lazy'"):
        make_vices({"lazy": 0.2})
    with pytest.raises(ConfigError, match=r"0\.0 to 1\.0"):
        make_vices({"wrong": 1.2})


def test_another_task_is_refused():
    request = ChatRequest("answer_question", "p", (), AnswerReply(answer=""))
    with pytest.raises(ConfigError, match="plays only 'act'"):
        asyncio.run(ScriptedTeacher().chat(request))
