import asyncio
import json

import pytest

from pipelines.agent.acceptance import Cascade
from pipelines.agent.judging import Jury, ProcessJury
from pipelines.agent.loop import run_rollout
from pipelines.agent.observations import ANSWER as ANSWER_SUPPORT
from pipelines.agent.transcript import Turn, render_turn
from pipelines.config.settings import ALL_CHECKS, TrajectoriesConfig
from pipelines.stages.rollouts import make_oracle
from pipelines.stages.trajectories import Trajectories
from pipelines.toy.teacher import ScriptedTeacher
from schemas.base import Rejection, make_table
from schemas.datasets import Rollout, Step, Trajectory
from tests.pipelines.agent.trail import find_faults, make_agent, make_picture, make_question, make_tools
from tests.pipelines.stages.players import make_asking


@pytest.fixture(scope="module")
def good(tmp_path_factory) -> Rollout:
    folder = tmp_path_factory.mktemp("store")
    agent = make_agent(ScriptedTeacher("teacher"), make_tools(folder))
    question = make_question(make_picture(folder))
    return asyncio.run(run_rollout(agent, question, make_oracle(question, 0)))


def change(rollout, **changes):
    return rollout.model_copy(update=changes)


def answer_with(rollout, answer):
    turn = Turn("So.", answer=answer)
    last = Step(thought=turn.thought, tool="", arguments="", reply=render_turn(turn), observation=None)
    return change(rollout, answer=answer, steps=(*rollout.steps[:-1], last))


def decide(cascade, rollouts):
    """Return the row of each rollout, in order."""
    stage = Trajectories(cascade)

    async def run():
        return [await stage(rollout) for rollout in rollouts]

    return [row if isinstance(row, Rejection) else row[0] for row in asyncio.run(run())]


def select(rollouts, judges=(), process=None):
    return decide(Cascade(TrajectoriesConfig(checks=(), min_process=3.0), Jury(tuple(judges)), process), rollouts)


def refuse(rollout, *checks, **changes):
    """Return the codes against a rollout under some mechanical checks, all by default."""
    rules = TrajectoriesConfig(checks=checks or ALL_CHECKS, **changes)
    return [fault.reason for fault in find_faults(rollout, rules=rules)]


def list_reasons(rollout):
    return [fault.reason for fault in find_faults(rollout, rules=TrajectoriesConfig(checks=(), min_process=3.0))]


def test_a_right_answer_becomes_a_trajectory_under_the_rollouts_id(good):
    (row,) = select([good])
    assert isinstance(row, Trajectory)
    assert (row.record_id, row.parent_id, row.verdict, row.decided_by) == (
        good.record_id,
        good.parent_id,
        "correct",
        "comparer",
    )
    assert make_table(Trajectory, [row], "key").num_rows == 1


def test_supports_point_at_the_first_place_where_each_name_was_seen(good):
    (row,) = select([good])
    spans = {
        support.what: row.steps[support.step].observation.text[support.start : support.end] for support in row.supports
    }
    assert spans == {"Ana Kovač": "Ana Kovač", ANSWER_SUPPORT: "5 April 1204"}
    bridge = next(support for support in row.supports if support.what == "Ana Kovač")
    assert all("Ana Kovač" not in step.observation.text for step in row.steps[: bridge.step])


@pytest.mark.parametrize(
    ("answer", "reasons"),
    [
        ("April 5, 1204", []),
        ("5 April 1205", ["wrong-answer"]),
        ("", ["no-answer"]),
        ("Unknown", ["no-answer"]),
    ],
)
def test_the_answer_decides(good, answer, reasons):
    assert list_reasons(answer_with(good, answer)) == reasons


def test_a_format_stop_is_format_first_and_names_every_code(good):
    bad = Step(thought="", tool="", arguments="", reply="1204!", observation=None)
    (row,) = select([change(good, stop_reason="format", answer="", steps=(*good.steps[:-1], bad))])
    assert (row.reason, row.codes) == ("format", ("format", "no-answer"))


OPEN = "It was on 5 April 1204"
"""An answer that the comparer leaves open."""


def make_judge(verdict, name="judge"):
    return make_asking("judge_answer", lambda inputs: f"Verdict: {verdict}", name=name)


@pytest.mark.parametrize(("judges", "by"), [(["correct"], "judge"), (["correct", "correct"], "judges")])
def test_judges_accept_what_the_comparer_leaves_open(good, judges, by):
    (row,) = select([answer_with(good, OPEN)], judges=[make_judge(verdict) for verdict in judges])
    assert isinstance(row, Trajectory)
    assert (row.verdict, row.decided_by) == ("correct", by)


@pytest.mark.parametrize(
    ("said", "code"),
    [(["incorrect"], "wrong-answer"), (["correct", "incorrect"], "unscored"), (["correct", "yes and no"], "unscored"),
     (["who knows"], "unscored")],
)  # fmt: skip
def test_a_judge_refuses_and_judges_that_differ_or_are_unclear_leave_a_rollout_unscored(good, said, code):
    (row,) = select(
        [answer_with(good, OPEN)], judges=[make_judge(verdict, name) for verdict, name in zip(said, "ab", strict=False)]
    )
    assert row.codes == (code,)


def test_the_judges_are_part_of_the_stage():
    judge = make_judge("correct")
    stage = Trajectories(Cascade(jury=Jury((judge,))))
    assert stage.fingerprint() != Trajectories().fingerprint()
    assert [(entry.role, entry.name) for entry in stage.models()] == [("judge", "judge")]
    assert stage.prompts() == {judge.prompt.label: judge.prompt.digest}
    assert (Trajectories().models(), Trajectories().prompts()) == ((), {})
    process = ProcessJury(make_asking("judge_process", lambda inputs: "", name="marker"))
    stage = Trajectories(Cascade(process=process))
    assert stage.fingerprint() != Trajectories().fingerprint()
    assert [(entry.role, entry.name) for entry in stage.models()] == [("judge", "marker")]
    assert stage.prompts() == {process.judge.prompt.label: process.judge.prompt.digest}


def make_process(*said, name="process"):
    """Return a process judge that gives marks, or says texts, by the rollout's number in its id."""
    replies = {f"r{number}": one if isinstance(one, str) else write_marks(*one) for number, one in enumerate(said)}
    return ProcessJury(make_asking("judge_process", lambda inputs: replies[inputs.trial], name=name))


def write_marks(*marks):
    names = ("relevance", "progression", "evidence", "cross_modal")
    return json.dumps(dict(zip(names, marks, strict=True)))


def test_the_process_judges_marks_decide_on_their_mean(good):
    rows = select(
        [change(good, record_id=f"r{n}", parent_id=f"q{n}") for n in range(3)],
        process=make_process((3, 3, 3, 3), (3, 3, 3, 2), (1, 5, 5, 1)),
    )
    assert [row.process.score if isinstance(row, Trajectory) else row.codes for row in rows] == [
        3.0,
        ("poor-process",),
        3.0,
    ]
    assert "marks 3, 3, 3, 2; the least mean is 3" in rows[1].detail
    assert (rows[2].process.relevance, rows[2].process.cross_modal, rows[2].process.judge) == (1, 1, "process")


def test_the_process_judge_is_asked_of_faultless_rollouts_alone(good):
    rollouts = [
        change(good, record_id="r0"),
        change(answer_with(good, "1999"), record_id="r1"),
        change(good, record_id="r2"),
    ]
    process = make_process((1, 1, 1, 1), "", (5, 5, 5, 5))
    rows = select(rollouts, process=process)
    assert [request.inputs.trial for request in process.judge.model.asked] == ["r0", "r2"]
    assert [row.reason if isinstance(row, Rejection) else row.process.score for row in rows] == [
        "poor-process",
        "wrong-answer",
        5.0,
    ]


def test_a_rollout_that_gives_no_answer_is_not_asked_how_it_came_by_it(good):
    assert refuse(answer_with(good, "unknown")) == ["no-answer"]


def test_a_rollout_without_a_path_is_refused_as_nothing_can_be_held_against_it(good):
    assert refuse(change(good, path=())) == ["path-not-covered"]


def test_an_accepted_rollout_keeps_its_length_and_what_is_trained_on(good):
    (row,) = select([good])
    assert (refuse(good), row.process) == ([], None)
    assert row.loss == (True,) * len(good.steps)
    assert row.tokens > sum(len(step.reply) for step in good.steps) / 8
