import asyncio
import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipelines.agent.acceptance import Cascade
from pipelines.agent.cascade import find_faults
from pipelines.agent.judging import Jury, ProcessJury, UnscoredWatch
from pipelines.agent.loop import run_rollout
from pipelines.agent.observations import ANSWER as ANSWER_SUPPORT
from pipelines.agent.transcript import Turn, render_turn
from pipelines.config.settings import ALL_CHECKS, TrajectoriesConfig
from pipelines.errors import GateNotMet, Unavailable
from pipelines.run.stage import DatasetStage, RecordStage
from pipelines.services.prompting import RoleClient, load_prompt
from pipelines.services.protocols import ChatReply
from pipelines.stages.rollouts import make_oracle
from pipelines.stages.trajectories import Trajectories
from pipelines.toy.teacher import ScriptedTeacher
from schemas.base import Rejection, make_table
from schemas.datasets import Rollout, Step, Trajectory
from schemas.reasons import STAGE_REASONS
from tests.pipelines.agent.trail import make_agent, make_picture, make_question, make_tools
from tests.pipelines.stages.players import make_asking
from tests.record_shards import process_records


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


def drop_text(steps, text):
    """Return steps whose observations do not hold a text."""
    changed = []
    for step in steps:
        seen = step.observation and step.observation.model_copy(
            update={"text": step.observation.text.replace(text, "long ago")}
        )
        changed.append(step.model_copy(update={"observation": seen}))
    return tuple(changed)


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


def test_a_right_answer_that_was_never_seen_is_refused_as_unsupported(good):
    steps = drop_text(good.steps, "5 April 1204")
    (row,) = decide(Cascade(TrajectoriesConfig(checks=("unsupported",))), [change(good, steps=steps)])
    assert isinstance(row, Rejection)
    assert (row.reason, row.codes) == ("unsupported", ("unsupported",))
    assert "5 April 1204" in row.detail


def test_a_bridge_that_was_never_seen_has_no_support(good):
    (row,) = select([change(good, bridges=(*good.bridges, "Jon Vask"))])
    assert isinstance(row, Trajectory)
    assert "Jon Vask" not in {support.what for support in row.supports}


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


def test_a_stop_without_an_answer_is_no_answer(good):
    for stop in ("turn-limit", "context-limit"):
        assert list_reasons(change(good, stop_reason=stop, answer="", steps=good.steps[:-1])) == ["no-answer"]


def test_a_format_stop_is_format_first_and_names_every_code(good):
    bad = Step(thought="", tool="", arguments="", reply="1204!", observation=None)
    (row,) = select([change(good, stop_reason="format", answer="", steps=(*good.steps[:-1], bad))])
    assert (row.reason, row.codes) == ("format", ("format", "no-answer"))


def test_a_malformed_step_in_the_middle_is_format_even_when_the_answer_is_right(good):
    first = good.steps[0]
    for broken in (
        first.model_copy(update={"tool": "visit"}),
        first.model_copy(update={"observation": None}),
        first.model_copy(
            update={"observation": first.observation.model_copy(update={"ok": False, "error": "bad-arguments"})}
        ),
    ):
        assert list_reasons(change(good, steps=(broken, *good.steps[1:]))) == ["format"]


def test_a_page_that_was_not_there_is_no_format_fault(good):
    seen = good.steps[0].observation.model_copy(update={"ok": False, "error": "unknown-page"})
    first = good.steps[0].model_copy(update={"observation": seen})
    assert list_reasons(change(good, steps=(first, *good.steps[1:]))) == []


@settings(max_examples=30, deadline=None)
@given(answers=st.lists(st.sampled_from(["5 April 1204", "1999", "", "unknown"]), max_size=8))
def test_each_rollout_is_decided_by_itself_and_none_that_passes_is_dropped(good, answers):
    rollouts = [change(answer_with(good, answer), record_id=f"r{n}", attempt=n) for n, answer in enumerate(answers)]
    kept = [row.record_id for row in select(rollouts) if isinstance(row, Trajectory)]
    assert kept == [rollout.record_id for rollout in rollouts if rollout.answer == "5 April 1204"]


CHANGED_RULES = {
    "checks": ("repetition",),
    "max_tokens": 9,
    "image_pixels": 9,
    "overlap": 0.5,
    "max_repeats": 2,
    "min_process": 4.0,
    "verifications": ("coherence",),
}


def test_the_stage_is_a_record_stage_and_its_rules_decide():
    assert isinstance(Trajectories(), RecordStage)
    assert not isinstance(Trajectories(), DatasetStage)
    rules = [{name: value} for name, value in CHANGED_RULES.items()]
    prints = {Trajectories(Cascade(TrajectoriesConfig(**changes))).fingerprint() for changes in (*rules, {})}
    assert len(prints) == len(CHANGED_RULES) + 1
    assert {*CHANGED_RULES, "tokenizer"} == set(TrajectoriesConfig.model_fields)
    assert Trajectories(Cascade(fatal_errors=2)).fingerprint() not in prints


OPEN = "It was on 5 April 1204"
"""An answer that the comparer leaves open."""


def make_judge(verdict, name="judge"):
    return make_asking("judge_answer", lambda inputs: f"Verdict: {verdict}", name=name)


def test_without_a_judge_what_the_comparer_leaves_open_is_unscored(good):
    (row,) = select([answer_with(good, OPEN)])
    assert (row.reason, row.codes) == ("unscored", ("unscored",))
    assert "there is no judge" in row.detail


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


def test_no_judge_is_asked_of_what_the_comparer_decides(good):
    judge = make_judge("incorrect")
    rows = select([good, change(answer_with(good, "5 April 1205"), record_id="r2")], judges=[judge])
    assert isinstance(rows[0], Trajectory)
    assert rows[1].codes == ("wrong-answer",)
    assert judge.model.asked == []


def test_a_judge_sees_the_question_and_the_answer_alone(good):
    judge = make_judge("correct")
    select([answer_with(good, OPEN)], judges=[judge])
    (request,) = judge.model.asked
    shown = "".join(message.text for message in request.messages)
    assert good.question in shown
    assert OPEN in shown
    assert all(step.thought not in shown for step in good.steps if len(step.thought) > 10)
    assert (request.inputs.oracle.trial, request.inputs.oracle.truth) == (good.record_id, "unknown")


def test_a_judge_that_is_away_stops_the_stage(good):
    def leave(inputs):
        raise Unavailable("nobody answers")

    with pytest.raises(Unavailable):
        select([answer_with(good, OPEN)], judges=[make_asking("judge_answer", leave)])


def test_too_many_unscored_answers_stop_the_stage(good):
    watch = UnscoredWatch(0.5, 4)
    rollouts = [change(answer_with(good, OPEN), record_id=f"r{n}", parent_id=f"q{n}") for n in range(6)]
    with pytest.raises(GateNotMet, match="there is no judge"):
        decide(Cascade(watch=watch), rollouts)
    assert Trajectories(Cascade(watch=watch)).fingerprint() == Trajectories().fingerprint()


def test_rollouts_are_judged_at_the_same_time_and_their_rows_are_in_order(good):
    inside, most, full = [], [], asyncio.Event()

    class Slow:
        name, identity, reads_inputs = "slow", "slow:1", False

        async def chat(self, request):
            inside.append(1)
            most.append(len(inside))
            if len(inside) == 32:
                full.set()
            await asyncio.wait_for(full.wait(), 60)
            inside.pop()
            return ChatReply("Verdict: incorrect", 1, 1)

    rollouts = [change(answer_with(good, OPEN), record_id=f"r{n}") for n in range(70)]
    stage = Trajectories(Cascade(jury=Jury((RoleClient(Slow(), load_prompt("judge_answer")),))))
    rows, _ = asyncio.run(process_records(stage, rollouts, 32))
    assert [row.record_id for row in rows.rejected] == [rollout.record_id for rollout in rollouts]
    assert max(most) == 32


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


def test_a_way_that_the_process_judge_says_nothing_clear_of_is_refused_as_unscored(good):
    (row,) = select([change(good, record_id="r0")], process=make_process("good work"))
    assert (row.reason, row.codes) == ("process-unscored", ("process-unscored",))


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


def test_ways_that_nobody_could_mark_stop_the_stage_when_they_are_too_many(good):
    process = ProcessJury(make_asking("judge_process", lambda inputs: "?"))
    rollouts = [change(good, record_id=f"r{n}", parent_id=f"q{n}") for n in range(6)]
    with pytest.raises(GateNotMet, match="no marks in two replies"):
        decide(Cascade(process=process, watch=UnscoredWatch(0.3, 6)), rollouts)


def test_a_process_judge_that_is_away_stops_the_stage(good):
    def leave(inputs):
        raise Unavailable("nobody answers")

    with pytest.raises(Unavailable):
        select([good], process=ProcessJury(make_asking("judge_process", leave)))


def test_each_check_can_be_left_out(good):
    memory = change(good, steps=good.steps[-1:])
    assert {"from-memory", "unsupported", "path-not-covered"} <= set(refuse(memory))
    for left_out in refuse(memory):
        checks = [name for name in ALL_CHECKS if name != left_out]
        assert refuse(memory, *checks) == [name for name in refuse(memory) if name != left_out]


def test_codes_come_in_the_order_of_the_cascade_whatever_the_order_of_the_checks(good):
    memory = change(good, steps=good.steps[-1:])
    assert refuse(memory, *reversed(ALL_CHECKS)) == refuse(memory)
    order = STAGE_REASONS["trajectories"]
    assert sorted(refuse(memory), key=order.index) == refuse(memory)


def test_a_rollout_that_gives_no_answer_is_not_asked_how_it_came_by_it(good):
    assert refuse(answer_with(good, "unknown")) == ["no-answer"]


def test_of_a_wrong_answer_it_is_not_asked_whether_a_tool_showed_it(good):
    assert refuse(answer_with(good, "5 April 1205")) == ["wrong-answer", "unseen-claim"]


def test_a_rollout_without_a_path_is_refused_as_nothing_can_be_held_against_it(good):
    assert refuse(change(good, path=())) == ["path-not-covered"]


def test_an_accepted_rollout_keeps_its_length_and_what_is_trained_on(good):
    (row,) = select([good])
    assert (refuse(good), row.process) == ([], None)
    assert row.loss == (True,) * len(good.steps)
    assert row.tokens > sum(len(step.reply) for step in good.steps) / 8


def test_a_rollout_longer_than_a_student_reads_is_refused(good):
    (row,) = select([good])
    assert refuse(good, max_tokens=row.tokens) == []
    assert refuse(good, max_tokens=row.tokens - 1) == ["too-long"]
    assert refuse(good, max_tokens=0) == []
