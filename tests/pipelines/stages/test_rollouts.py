import asyncio
from dataclasses import replace
from decimal import Decimal

import pytest

from pipelines.agent.loop import Limits
from pipelines.backends.teacher import ScriptedTeacher, Vices
from pipelines.stage import DatasetStage, RecordStage, process_records
from pipelines.stages.rollouts import Rollouts, make_oracle, make_wrong_answer
from schemas.arrow import make_table
from schemas.base import Rejection
from schemas.proofs import Answer
from schemas.rollouts import Rollout
from tests.pipelines.agent.trail import (
    ANSWER,
    FakePages,
    make_agent,
    make_picture,
    make_proof,
    make_question,
    make_tools,
)


@pytest.fixture
def stage(tmp_path) -> Rollouts:
    return Rollouts(make_agent(ScriptedTeacher("teacher"), make_tools(tmp_path)), attempts=3)


def make_answer(**changes) -> Answer:
    return ANSWER.model_copy(update=changes)


def test_each_question_gets_every_attempt(stage, tmp_path):
    rollouts = asyncio.run(stage(make_question(make_picture(tmp_path))))
    assert [rollout.attempt for rollout in rollouts] == [0, 1, 2]
    assert {rollout.parent_id for rollout in rollouts} == {"question-0001"}
    assert len({rollout.record_id for rollout in rollouts}) == 3


def test_a_question_without_a_picture_is_rejected_with_the_reason(stage):
    rejection = asyncio.run(stage(make_question(None)))
    assert isinstance(rejection, Rejection)
    assert (rejection.record_id, rejection.reason) == ("question-0001", "no-teacher-turn")
    assert "no picture" in rejection.detail


def test_the_stage_runs_under_the_runner_and_its_rows_fit_parquet(stage, tmp_path):
    picture = make_picture(tmp_path)
    rows, kept = asyncio.run(process_records(stage, [make_question(picture, n) for n in (1, 2)], 2))
    assert isinstance(stage, RecordStage)
    assert not isinstance(stage, DatasetStage)
    assert (kept, make_table(Rollout, rows.kept, "key").num_rows) == (2, 6)


def test_the_fingerprint_changes_with_everything_that_decides_a_rollout(stage, tmp_path):
    agent = stage.agent
    others = [
        replace(stage, attempts=4),
        replace(stage, agent=replace(agent, limits=Limits(turns=4))),
        replace(stage, agent=replace(agent, model=ScriptedTeacher("teacher", Vices(wrong=0.5)))),
        replace(stage, agent=replace(agent, tools=make_tools(tmp_path, pages=FakePages(identity="other")))),
        replace(stage, agent=replace(agent, prompt=replace(agent.prompt, digest="other"))),
    ]
    assert len({each.fingerprint() for each in [stage, *others]}) == 6
    assert replace(stage).fingerprint() == stage.fingerprint()


def test_the_manifest_names_prompt_and_teacher(stage):
    assert list(stage.prompts()) == ["act/v1"]
    (model,) = stage.models()
    assert (model.role, model.name) == ("teacher", "teacher")


def test_the_oracle_is_the_proof_as_a_plan(tmp_path):
    oracle = make_oracle(make_question(make_picture(tmp_path)), 2)
    assert (oracle.anchor_title, oracle.attempt) == ("Kelm Bridge", 2)
    assert [(hop.relation, hop.object_title) for hop in oracle.hops] == [
        ("designer", "Ana Kovač"),
        ("birth_place", "Marlow (town)"),
    ]


@pytest.mark.parametrize(
    ("answer", "wrong"),
    [
        (ANSWER, "5 April 1205"),
        (make_answer(surface="spring", value="1204", aliases=()), "1205"),
        (make_answer(type="number", value="320", unit="m", surface="320 m"), "640 m"),
        (make_answer(type="number", value="1200", unit="", surface="1,200"), "2400"),
        (make_answer(type="number", value="0", unit="", surface="0"), "1"),
        (make_answer(type="name", value="Bell", surface="Bell", aliases=()), "Marlow (town)"),
        (make_answer(type="name", value="x", surface="Marlow (town)", aliases=()), "Ana Kovač"),
    ],
)
def test_a_wrong_answer_is_of_the_same_type_and_never_right(answer, wrong):
    made = make_wrong_answer(answer, make_proof())
    assert made == wrong
    assert made not in (answer.surface, answer.value, *answer.aliases)


def test_a_doubled_number_has_no_exponent():
    made = make_wrong_answer(make_answer(type="number", value="5000000", unit="", surface="5,000,000"), make_proof())
    assert Decimal(made) == 10_000_000
    assert "E" not in made
