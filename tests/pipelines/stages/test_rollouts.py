import asyncio
from dataclasses import replace

import pytest

from pipelines.agent.loop import Limits
from pipelines.backends.teacher import ScriptedTeacher, Vices
from pipelines.record_running import process_records
from pipelines.scoring.compare import compare_answers
from pipelines.stage import DatasetStage, RecordStage
from pipelines.stages.rollouts import Rollouts, make_oracle
from schemas.arrow import make_table
from schemas.base import Rejection
from schemas.enhancements import Parameter, Trial
from schemas.rollouts import Rollout
from tests.pipelines.agent.trail import (
    FakePages,
    make_agent,
    make_picture,
    make_question,
    make_tools,
)


@pytest.fixture
def stage(tmp_path) -> Rollouts:
    return Rollouts(make_agent(ScriptedTeacher("teacher"), make_tools(tmp_path)), attempts=3)


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
    assert (len(kept), make_table(Rollout, rows.kept, "key").num_rows) == (2, 6)


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
    assert list(stage.prompts()) == ["act/v2"]
    (model,) = stage.models()
    assert (model.role, model.name) == ("teacher", "teacher")


def test_the_oracle_is_the_proof_as_a_plan(tmp_path):
    oracle = make_oracle(make_question(make_picture(tmp_path)), 2)
    assert (oracle.anchor_title, oracle.attempt) == ("Kelm Bridge", 2)
    assert [(hop.relation, hop.object_title) for hop in oracle.hops] == [
        ("designer", "Ana Kovač"),
        ("birth_place", "Marlow (town)"),
    ]


def test_the_oracle_names_the_tool_that_repairs_a_degraded_picture(tmp_path):
    question = make_question(make_picture(tmp_path))
    trial = Trial(
        degradation="blur",
        repair="sharpen",
        strength=0.5,
        parameters=(Parameter(name="sigma", value=3.0),),
        test="text",
        before=True,
        degraded=False,
        repaired=True,
    )
    assert make_oracle(question, 0).repair == ""
    assert make_oracle(question.model_copy(update={"trial": trial}), 0).repair == "sharpen"


def test_the_wrong_answer_of_the_plan_is_wrong(tmp_path):
    question = make_question(make_picture(tmp_path))
    assert compare_answers(make_oracle(question, 0).wrong_answer, question.answer) == "incorrect"
