import asyncio
import json

import pytest

from pipelines.agent.judging import ProcessJury
from pipelines.services.prompting import RoleClient, load_prompt
from tests.pipelines.checks.walking import CLEAN, make_rollout
from tests.pipelines.stages.players import FakeModel

PROMPT = load_prompt("judge_process")
ROLLOUT = make_rollout(*CLEAN)
GOOD = '{"relevance": 4, "progression": 5, "evidence": 3, "cross_modal": 4}'


def write(**changes):
    return json.dumps(json.loads(GOOD) | changes)


def mark(*replies, rollout=ROLLOUT):
    """Return the judgement and the requests, of a judge that gives its replies in order."""
    turns = iter(replies)
    model = FakeModel(lambda inputs: next(turns))
    return asyncio.run(ProcessJury(RoleClient(model, PROMPT)).mark(rollout)), model.asked


def test_four_marks_and_their_mean_are_read_after_free_reasoning():
    judgement, asked = mark(f"Each query builds on the last.\n{GOOD}")
    process = judgement.process
    assert (process.relevance, process.progression, process.evidence, process.cross_modal) == (4, 5, 3, 4)
    assert (process.score, process.judge, judgement.problem) == (4.0, "fake", "")
    assert [request.schema_json for request in asked] == [""]


@pytest.mark.parametrize(
    "reply",
    [
        "",
        "It did well.",
        '{"relevance": 4}',
        write(relevance=6),
        write(evidence=3.5),
        GOOD + write(relevance=1),
        GOOD[:-5],
    ],
)
def test_what_is_no_four_marks_is_repaired_once_and_then_unscored(reply):
    repaired, asked = mark(reply, GOOD)
    assert repaired.process is not None
    assert "whole number from 1 to 5" in asked[1].messages[-1].text
    judgement, asked = mark(reply, reply)
    assert judgement.process is None
    assert "no marks in two replies" in judgement.problem
    assert len(asked) == 2


def test_the_judge_sees_the_way_and_the_picture_and_no_reference():
    reference = ROLLOUT.reference.model_copy(
        update={"surface": "zq-gold", "value": "zq-value", "aliases": ("zq-alias",)}
    )
    _, (request,) = mark(GOOD, rollout=ROLLOUT.model_copy(update={"reference": reference}))
    shown = "".join(message.text for message in request.messages)
    assert "zq-" not in shown
    assert "rollout-00000001" not in shown
    assert ROLLOUT.question in shown
    assert "Step 7" in shown
    assert "Step 8" not in shown
    assert request.messages[-1].images == (ROLLOUT.images[0].picture.sha256,)
    assert request.task == "judge_process"
