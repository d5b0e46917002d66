import asyncio

import pytest

from pipelines.agent.cascade import read_trail
from pipelines.agent.dialects import DIALECTS, SYNTH
from pipelines.agent.loop import run_rollout
from pipelines.agent.transcript import Turn, render_turn, restore_thought
from pipelines.checks.rollouts import check_turns
from pipelines.services.protocols import ChatReply
from pipelines.stages.rollouts import make_oracle
from tests.pipelines.agent.trail import FakeModel, make_agent, make_picture, make_question, make_tools

TEXT_DIALECTS = [dialect for name, dialect in DIALECTS.items() if name != "native"]
TURNS = [Turn("It is\nold.", "text_search", '{"query":"Ana"}'), Turn("So.", answer="1204")]


def restore(text: str, reasoning: str = "", dialect=SYNTH) -> str:
    return restore_thought(ChatReply(text, 1, 1, reasoning=reasoning), dialect)


@pytest.mark.parametrize("dialect", TEXT_DIALECTS, ids=lambda dialect: dialect.name)
@pytest.mark.parametrize("turn", TURNS, ids=["call", "answer"])
def test_a_thought_that_the_server_took_out_is_put_back(turn, dialect):
    whole = render_turn(turn, dialect)
    thought, _, rest = whole.partition(f"</{dialect.think}>")
    reasoning = thought.removeprefix(f"<{dialect.think}>")
    assert restore(f"\n\n{rest.strip()}", reasoning, dialect) == whole
    assert restore(rest.strip(), f"\n{reasoning}\n", dialect) == whole


@pytest.mark.parametrize("dialect", TEXT_DIALECTS, ids=lambda dialect: dialect.name)
def test_a_thought_whose_tag_the_prompt_opened_is_opened(dialect):
    whole = render_turn(TURNS[0], dialect)
    assert restore(whole.removeprefix(f"<{dialect.think}>\n"), dialect=dialect) == whole


@pytest.mark.parametrize("dialect", TEXT_DIALECTS, ids=lambda dialect: dialect.name)
def test_a_teacher_whose_server_gives_thoughts_apart_makes_rollouts_like_any_other(tmp_path, dialect):
    turns = [Turn("Look.", "image_search", '{"image":"img_1"}'), *TURNS]
    whole = [render_turn(turn, dialect) for turn in turns]
    apart = [text.partition(f"</{dialect.think}>\n")[2] for text in whole]
    lines = [ChatReply(f"\n{text}", 1, 1, reasoning=turn.thought) for text, turn in zip(apart, turns, strict=True)]
    model, question = FakeModel(tuple(lines)), make_question(make_picture(tmp_path))
    agent = make_agent(model, make_tools(tmp_path), dialect)
    rollout = asyncio.run(run_rollout(agent, question, make_oracle(question, 0)))
    assert (rollout.stop_reason, rollout.answer) == ("answered", "1204")
    assert [step.reply for step in rollout.steps] == whole
    assert [message.text for message in model.requests[-1].messages if message.role == "assistant"] == whole[:-1]
    assert check_turns(read_trail(rollout)).outcome == "PASS"
