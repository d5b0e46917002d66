import asyncio
import json

import pytest

from pipelines.agent.loop import run_rollout
from pipelines.agent.transcript import Turn, render_turn
from pipelines.errors import RecordFailed
from pipelines.stages.rollouts import make_oracle
from tests.pipelines.agent.trail import (
    FakeModel,
    list_messages,
    make_agent,
    make_picture,
    make_question,
    make_tools,
    make_url,
)

LOOK = render_turn(Turn("Look it up.", "image_search", '{"image":"img_1"}'))
CROP = render_turn(Turn("Closer.", "crop", '{"box":[0,0,500,500]}'))
VISIT = render_turn(Turn("Read.", "visit", json.dumps({"url": make_url("Kelm Bridge")})))
ANSWER = render_turn(Turn("Done.", answer="5 April 1204"))


@pytest.fixture
def run(tmp_path):
    def run_lines(*lines, attempt=0, **limits):
        agent = make_agent(FakeModel(lines), make_tools(tmp_path), **limits)
        question = make_question(make_picture(tmp_path))
        return asyncio.run(run_rollout(agent, question, make_oracle(question, attempt))), agent.model

    return run_lines


def test_an_answer_ends_the_rollout(run):
    rollout, _ = run(LOOK, VISIT, ANSWER)
    assert (rollout.stop_reason, rollout.answer, len(rollout.steps)) == ("answered", "5 April 1204", 3)
    assert rollout.bridges == ("Ana Kovač",)
    assert rollout.steps[-1].observation is None


def test_a_reply_that_does_not_parse_is_kept_as_the_last_step(run):
    rollout, _ = run(LOOK, "I think it is 1204.")
    assert (rollout.stop_reason, rollout.answer) == ("format", "")
    assert rollout.steps[-1].reply == "I think it is 1204."


def test_a_reply_with_half_a_surrogate_can_still_be_written(run):
    rollout, _ = run("\ud800")
    assert rollout.steps[-1].reply.encode()


def test_the_turn_limit_ends_the_rollout_without_an_answer(run):
    rollout, model = run(LOOK, VISIT, ANSWER, turns=2)
    assert (rollout.stop_reason, rollout.answer, len(rollout.steps)) == ("turn-limit", "", 2)
    assert [request.inputs.turns_left for request in model.requests] == [2, 1]


def test_the_context_limit_ends_the_rollout_before_asking_again(run):
    rollout, model = run(LOOK, ANSWER, context=100)
    assert (rollout.stop_reason, rollout.steps, model.requests) == ("context-limit", (), [])


def test_a_failed_call_is_shown_and_the_rollout_goes_on(run):
    bad = render_turn(Turn("Try.", "image_search", '{"image":"img_9"}'))
    rollout, model = run(bad, ANSWER)
    assert rollout.stop_reason == "answered"
    assert "error: unknown-image" in model.requests[1].messages[-1].text


def test_a_produced_picture_is_shown_with_its_observation(run):
    rollout, model = run(CROP, CROP, ANSWER)
    assert [image.id for image in rollout.images] == ["img_1", "img_2", "img_3"]
    assert model.requests[1].messages[-1].images == (rollout.images[1].picture.sha256,)


def test_messages_made_from_the_rollout_are_those_the_model_saw(run):
    rollout, model = run(LOOK, CROP, VISIT, ANSWER)
    assert list_messages(rollout)[:-1] == model.requests[-1].messages


def test_no_oracle_value_reaches_the_messages(tmp_path):
    model = FakeModel((LOOK, ANSWER))
    question = make_question(make_picture(tmp_path))
    oracle = make_oracle(question, 0)
    secret = oracle.model_copy(
        update={
            "anchor_title": "SECRET",
            "wrong_answer": "SECRET",
            "answer_relation": "SECRET",
            "question_id": "SECRET",
            "hops": tuple(hop.model_copy(update={"object_title": "SECRET"}) for hop in oracle.hops),
            "answer": oracle.answer.model_copy(update={"surface": "SECRET", "aliases": ("SECRET",)}),
        }
    )
    asyncio.run(run_rollout(make_agent(model, make_tools(tmp_path)), question, secret))
    shown = "".join(message.text for request in model.requests for message in request.messages)
    assert "SECRET" not in shown
    assert question.text in shown


def test_placeholders_in_a_question_are_stripped_before_anyone_sees_it(tmp_path):
    question = make_question(make_picture(tmp_path)).model_copy(update={"text": "What is <image> this?"})
    agent = make_agent(FakeModel((ANSWER,)), make_tools(tmp_path))
    assert asyncio.run(run_rollout(agent, question, make_oracle(question, 0))).question == "What is  this?"


def test_attempts_have_different_ids_and_the_same_attempt_the_same(run):
    ids = [run(LOOK, ANSWER, attempt=attempt)[0].record_id for attempt in (0, 1, 0)]
    assert ids[0] == ids[2] != ids[1]


def test_a_question_without_a_picture_fails_as_a_record(tmp_path):
    question = make_question(None)
    agent = make_agent(FakeModel((ANSWER,)), make_tools(tmp_path))
    with pytest.raises(RecordFailed, match="no picture"):
        asyncio.run(run_rollout(agent, question, make_oracle(question, 0)))
