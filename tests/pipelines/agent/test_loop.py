import asyncio
import json
from dataclasses import replace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pipelines.agent.dialects import DIALECTS, SYNTH, find_dialect
from pipelines.agent.loop import run_rollout
from pipelines.agent.transcript import Turn, render_turn
from pipelines.errors import RecordFailed
from pipelines.services.metering import add_waited
from pipelines.services.protocols import ChatReply, Message, ToolCall
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

TELLING = replace(SYNTH, tells_bad_turns=True)


BAD = render_turn(Turn("Try.", "image_search", '{"image":"img_9"}'))
NATIVE = find_dialect("native")


@pytest.fixture
def run(tmp_path):
    def run_lines(*lines, attempt=0, **settings):
        agent = make_agent(FakeModel(lines), make_tools(tmp_path), **settings)
        question = make_question(make_picture(tmp_path))
        return asyncio.run(run_rollout(agent, question, make_oracle(question, attempt))), agent.model

    return run_lines


def test_a_reply_that_does_not_parse_is_kept_as_the_last_step(run):
    rollout, _ = run(LOOK, "I think it is 1204.")
    assert (rollout.stop_reason, rollout.answer) == ("format", "")
    assert rollout.steps[-1].reply == "I think it is 1204."


def test_time_is_what_replies_took_when_they_were_recorded(tmp_path):
    class Slow(FakeModel):
        async def chat(self, request):
            add_waited(4000.0, f"2026-11-{20 + len(self.requests)}")
            return await super().chat(request)

    question = make_question(make_picture(tmp_path))
    agent = make_agent(Slow((LOOK, CROP, VISIT, ANSWER)), make_tools(tmp_path))
    rollout = asyncio.run(run_rollout(agent, question, make_oracle(question, 0)))
    assert (rollout.stop_reason, len(rollout.steps), rollout.day) == ("time-limit", 3, "2026-11-22")


def test_a_prompt_that_the_server_finds_too_long_is_the_context_limit_but_in_the_first_turn_a_failure(tmp_path):
    class Short(FakeModel):
        async def chat(self, request):
            if len(request.messages) > most:
                raise RecordFailed("prompt-too-long", "4096 tokens")
            return await super().chat(request)

    question = make_question(make_picture(tmp_path))
    agent, most = make_agent(Short((LOOK, CROP, ANSWER)), make_tools(tmp_path)), 4
    rollout = asyncio.run(run_rollout(agent, question, make_oracle(question, 0)))
    assert (rollout.stop_reason, len(rollout.steps)) == ("context-limit", 2)
    most = 1
    rollout = asyncio.run(run_rollout(agent, question, make_oracle(question, 0)))
    assert (rollout.stop_reason, rollout.steps) == ("failed", ())
    assert rollout.failure == "prompt-too-long: 4096 tokens"


def test_a_request_that_gets_no_reply_ends_a_rollout_with_the_turns_before_it(tmp_path):
    class Unsteady(FakeModel):
        async def chat(self, request):
            if len(request.messages) > 4:
                raise RecordFailed("no-reply", "HTTP 500 \ud800")
            return await super().chat(request)

    question = make_question(make_picture(tmp_path))
    agent = make_agent(Unsteady((LOOK, CROP, ANSWER)), make_tools(tmp_path))
    rollout = asyncio.run(run_rollout(agent, question, make_oracle(question, 0)))
    assert (rollout.stop_reason, len(rollout.steps), rollout.answer) == ("failed", 2, "")
    assert rollout.failure == "no-reply: HTTP 500 ?"
    assert [image.id for image in rollout.images] == ["img_1", "img_2"]


# Errors


def test_the_fatal_step_ends_the_rollout_and_both_its_places_are_kept(run):
    rollout, model = run(LOOK, BAD, LOOK, BAD, BAD, BAD, ANSWER)
    assert (rollout.stop_reason, len(model.requests)) == ("tool-errors", 6)
    assert (rollout.fatal_begins, rollout.fatal_reached) == (3, 5)


def test_a_bad_turn_is_told_and_counts_as_an_error_where_that_is_the_setting(run):
    rollout, model = run(LOOK, "It is <image> 1204.", ANSWER, dialect=TELLING)
    assert (rollout.stop_reason, rollout.answer) == ("answered", "5 April 1204")
    told = rollout.steps[1]
    assert (told.tool, told.reply) == ("", "It is <image> 1204.")
    assert (told.observation.ok, told.observation.error) == (False, "bad-turn")
    assert "a turn is [think]...[/think] and then one [tool_call]" in told.observation.text
    assert model.requests[2].messages[-2:] == (
        Message("assistant", "It is <image> 1204."),
        Message("user", f"<tool_response>\nerror: bad-turn\n{told.observation.text}\n</tool_response>"),
    )


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


# Dialects


@pytest.mark.parametrize("name", [name for name in DIALECTS if name != "native"])
def test_a_rollout_in_any_dialect_has_steps_in_our_own_names(tmp_path, name):
    dialect = find_dialect(name)
    turns = [
        Turn("Look.", "image_search", '{"image":"img_1"}'),
        Turn("Find.", "text_search", '{"query":"Ana"}'),
        Turn("Done.", answer="5 April 1204"),
    ]
    model = FakeModel(tuple(render_turn(turn, dialect) for turn in turns))
    question = make_question(make_picture(tmp_path))
    rollout = asyncio.run(
        run_rollout(make_agent(model, make_tools(tmp_path), dialect), question, make_oracle(question, 0))
    )
    assert [(step.tool, step.arguments) for step in rollout.steps] == [(turn.tool, turn.arguments) for turn in turns]
    assert [step.observation.ok for step in rollout.steps[:-1]] == [True, True]
    assert [step.reply for step in rollout.steps] == list(model.lines)
    assert list_messages(rollout)[:-1] == model.requests[-1].messages
    assert model.requests[0].stop == (f"<{dialect.response}>",)
    assert {request.inputs.dialect for request in model.requests} == {name}


@pytest.mark.parametrize(
    ("call", "error", "said"),
    [
        (
            {"name": "visit", "arguments": {"url": "u"}},
            "unknown-tool",
            "There is no tool 'visit'; there are: image_zoom",
        ),
        ({"name": "text_search", "arguments": {"query": "x"}}, "unknown-tool", "There is no tool 'text_search'; there"),
        (
            {"name": "image_zoom_in_tool", "arguments": {"box": [0, 0, 9, 9]}},
            "bad-arguments",
            "image_zoom_in_tool takes",
        ),
        ({"name": "image_search_tool", "arguments": {"image": "img_2"}}, "bad-arguments", "image_search_tool takes"),
    ],
)
def test_what_is_wrong_with_a_call_is_said_in_the_dialects_own_names(tmp_path, call, error, said):
    model = FakeModel((f"<think>x</think><tool_call>{json.dumps(call)}</tool_call>", ANSWER))
    question = make_question(make_picture(tmp_path))
    agent = make_agent(model, make_tools(tmp_path), find_dialect("mars"))
    observation = asyncio.run(run_rollout(agent, question, make_oracle(question, 0))).steps[0].observation
    assert (observation.error, observation.text[: len(said)]) == (error, said)
    assert "bbox_2d" in observation.text or error == "unknown-tool" or "img_idx" in observation.text


def test_a_search_that_says_image_for_url_is_made_and_kept_in_the_published_words(tmp_path):
    call = {"name": "image_search", "arguments": {"image": "img_1"}}
    model = FakeModel(
        (f"<think>x</think><tool_call>{json.dumps(call)}</tool_call>", "<think>x</think><response>y</response>")
    )
    question, dialect = make_question(make_picture(tmp_path)), find_dialect("opensearch-vl")
    agent = make_agent(model, make_tools(tmp_path), dialect)
    step = asyncio.run(run_rollout(agent, question, make_oracle(question, 0))).steps[0]
    assert step.observation.ok
    assert step.reply == render_turn(Turn("x", "image_search", '{"image":"img_1"}'), dialect)
    assert '{"url": "img_1"}' in step.reply


def make_native(thought, name, reasoning="", **values):
    return ChatReply(thought, 1, 1, calls=(ToolCall("c7", name, json.dumps(values)),), reasoning=reasoning)


def test_native_calls_are_asked_for_and_written_down_in_our_protocol(run):
    crop = make_native("Closer.", "crop", reasoning="It is small.", box=[0, 0, 500, 500])
    rollout, model = run(
        crop,
        make_native("Look.", "image_search"),
        ChatReply("<answer>1204</answer>", 1, 1, reasoning="So."),
        dialect=NATIVE,
    )
    assert (rollout.stop_reason, rollout.answer, rollout.dialect) == ("answered", "1204", "native")
    assert [step.thought for step in rollout.steps] == ["It is small.", "Look.", "So."]
    assert rollout.steps[0].reply == render_turn(Turn("It is small.", "crop", '{"box":[0,0,500,500]}'))
    (system, _, said, heard, shown, *_) = model.requests[-1].messages
    assert said == Message("assistant", "It is small.", calls=(ToolCall("call00000", "crop", '{"box":[0,0,500,500]}'),))
    assert (heard.role, heard.call_id, heard.images) == ("tool", "call00000", ())
    assert (shown.role, shown.images) == ("user", (rollout.images[1].picture.sha256,))
    assert model.requests[0].stop == ()
    assert {each["function"]["name"] for each in json.loads(model.requests[0].tools)} >= {"crop", "visit"}
    assert "<tool_call>" not in system.text


# Any model


LINES = st.sampled_from([LOOK, CROP, VISIT, ANSWER, BAD, "nothing", "\ud800", "", ANSWER + LOOK]).map(
    lambda line: ChatReply(line, 700, 10)
)
CUT = st.just(ChatReply(LOOK, 1, 1, "cut"))


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(
    lines=st.lists(LINES | CUT, min_size=8, max_size=8),
    calls=st.integers(0, 6),
    context_tokens=st.sampled_from([0, 710, 711]),
    dialect=st.sampled_from([SYNTH, TELLING]),
)
def test_every_rollout_ends_for_one_reason_within_its_limits_and_with_its_pictures_in_order(run, lines, **setting):
    rollout, model = run(*lines, **setting)
    steps, last = rollout.steps, rollout.steps[-1] if rollout.steps else None
    assert len(model.requests) == len(steps) <= setting["calls"] + 1
    assert [image.id for image in rollout.images] == [f"img_{n + 1}" for n in range(len(rollout.images))]
    made = [name for step in steps if step.observation for name in step.observation.images]
    assert made == [image.id for image in rollout.images[1:]]
    assert [step.observation is None for step in steps[:-1]] == [False] * len(steps[:-1])
    ended = {
        "answered": lambda: not last.tool and last.observation is None and rollout.answer == "5 April 1204",
        "format": lambda: not last.tool and last.observation is None and not setting["dialect"].tells_bad_turns,
        "tool-errors": lambda: rollout.fatal_reached == len(steps) - 1,
        "turn-limit": lambda: len(steps) == setting["calls"] + 1,
        "context-limit": lambda: setting["context_tokens"],
    }
    assert ended[rollout.stop_reason]()
    assert bool(rollout.answer) == (rollout.stop_reason == "answered")
    outcomes = "".join("x" if step.observation and not step.observation.ok else "." for step in steps)
    begins = outcomes.find("xxx")
    assert (-1 if rollout.fatal_begins is None else rollout.fatal_begins) == begins
    if rollout.fatal_begins is not None:
        assert rollout.stop_reason == "tool-errors"
    assert list_messages(rollout)[: len(model.requests[-1].messages) if model.requests else 2] == (
        model.requests[-1].messages if model.requests else list_messages(rollout)[:2]
    )
