import asyncio
from dataclasses import dataclass, field, replace

import pytest

from pipelines.agent.acceptance import Cascade
from pipelines.agent.judging import Jury
from pipelines.config.settings import RolloutsConfig, TrajectoriesConfig
from pipelines.errors import RateLimited, RecordFailed, Unavailable
from pipelines.services.clients.recorded import RecordedChat
from pipelines.services.clients.replies import open_replies
from pipelines.services.protocols import ChatReply
from pipelines.stages.rollouts import Rollouts, make_oracle
from pipelines.stages.trajectories import Trajectories
from pipelines.toy.teacher import ScriptedTeacher, Vices
from schemas.base import Rejection, make_table
from schemas.datasets import Parameter, Rollout, Trial
from tests.pipelines.agent.trail import (
    FakePages,
    find_faults,
    make_agent,
    make_picture,
    make_question,
    make_tools,
)
from tests.pipelines.stages.players import make_asking


@pytest.fixture
def stage(tmp_path) -> Rollouts:
    return Rollouts(make_agent(ScriptedTeacher("teacher"), make_tools(tmp_path)), attempts=3)


@dataclass
class Together:
    """Answers nobody before all attempts have asked, the last one first; some are refused."""

    attempts: int
    errors: dict[int, Exception] = field(default_factory=dict)
    name: str = "together"
    identity: str = "together@1"
    reads_inputs: bool = False
    asked: list[int] = field(default_factory=list)
    answered: list[int] = field(default_factory=list)
    all_asked: asyncio.Event = field(default_factory=asyncio.Event)

    async def chat(self, request):
        self.asked.append(request.sample)
        if len(self.asked) == self.attempts:
            self.all_asked.set()
        await asyncio.wait_for(self.all_asked.wait(), 10)
        await asyncio.sleep(0.002 * (self.attempts - request.sample))
        if request.sample in self.errors:
            raise self.errors[request.sample]
        self.answered.append(request.sample)
        return ChatReply(
            f"<think>Well.</think><answer>{request.sample}</answer>", 1, 1, day=f"2026-11-2{request.sample}"
        )


def run_together(model, tmp_path):
    stage = Rollouts(make_agent(model, make_tools(tmp_path)), attempts=model.attempts)
    return asyncio.run(stage(make_question(make_picture(tmp_path))))


def test_attempts_are_under_way_at_once_and_their_rows_are_in_order(tmp_path):
    model = Together(5)
    rollouts = run_together(model, tmp_path)
    assert model.answered == [4, 3, 2, 1, 0]
    assert [(rollout.attempt, rollout.answer) for rollout in rollouts] == [(n, str(n)) for n in range(5)]


@pytest.mark.parametrize(
    ("errors", "raised"),
    [
        ({1: RateLimited("slow down"), 3: Unavailable("no route")}, RateLimited),
        ({1: RecordFailed("too-long", "prompt"), 3: Unavailable("no route")}, Unavailable),
    ],
    ids=["the first attempt's", "a service's before a record's"],
)
def test_a_service_that_is_away_stops_the_question_whatever_else_went_wrong(tmp_path, errors, raised):
    with pytest.raises(raised) as caught:
        run_together(Together(4, errors), tmp_path)
    assert caught.value is next(error for error in errors.values() if isinstance(error, raised))


def test_an_attempt_that_failed_is_a_row_beside_the_others_and_the_cascade_refuses_it(tmp_path):
    model = Together(3, {1: RecordFailed("picture-refused", "not this one")})
    rollouts = run_together(model, tmp_path)
    assert [(rollout.attempt, rollout.answer) for rollout in rollouts] == [(0, "0"), (1, ""), (2, "2")]
    assert (rollouts[1].stop_reason, rollouts[1].failure) == ("failed", "picture-refused: not this one")
    assert {rollout.failure for rollout in (rollouts[0], rollouts[2])} == {""}
    (fault,) = find_faults(rollouts[1])
    assert (fault.reason, "picture-refused: not this one" in fault.detail) == ("no-answer", True)
    assert make_table(Rollout, rollouts, "key").num_rows == 3


def test_a_question_fails_only_where_every_attempt_does_with_the_first_ones_reason(tmp_path):
    errors = {number: RecordFailed(f"error-{number}", f"why: {number}") for number in range(3)}
    with pytest.raises(RecordFailed) as caught:
        run_together(Together(3, errors), tmp_path)
    assert (caught.value.error, caught.value.detail) == ("error-0", "why: 0")


RIGHT = "5 April 1204"
ANSWERS_ALONE = Cascade(TrajectoriesConfig(checks=()))
"""A cascade that a rollout without a step passes if its answer is right."""


@dataclass
class Answering:
    """Answers each attempt at once as it is told, and says which attempts were under way together."""

    answers: tuple[str, ...]
    name: str = "answering"
    identity: str = "answering@1"
    reads_inputs: bool = False
    waves: list[list[int]] = field(default_factory=list)
    waiting: list[int] = field(default_factory=list)

    async def chat(self, request):
        self.waiting.append(request.sample)
        await asyncio.sleep(0.01)
        if self.waiting:
            self.waves.append(sorted(self.waiting))
            self.waiting = []
        return ChatReply(f"<think>Well.</think><answer>{self.answers[request.sample]}</answer>", 1, 1)


def roll_out(model, tmp_path, wanted, cascade=ANSWERS_ALONE):
    agent = make_agent(model, make_tools(tmp_path))
    stage = Rollouts(agent, attempts=len(model.answers), wanted=wanted, cascade=cascade)
    return asyncio.run(stage(make_question(make_picture(tmp_path))))


@pytest.mark.parametrize(
    ("answers", "wanted", "waves"),
    [
        ((RIGHT,) * 6, 2, [[0, 1]]),
        (("1999", RIGHT, RIGHT, RIGHT), 2, [[0, 1], [2]]),
        (("1999", "1999", RIGHT, "1999", RIGHT, RIGHT), 2, [[0, 1], [2, 3], [4]]),
        (("1999",) * 5, 2, [[0, 1], [2, 3], [4]]),
        ((RIGHT,) * 3, 3, [[0, 1, 2]]),
        ((RIGHT,) * 3, 9, [[0, 1, 2]]),
    ],
)
def test_attempts_are_asked_for_in_waves_until_as_many_as_are_wanted_are_accepted(answers, wanted, waves, tmp_path):
    model = Answering(answers)
    rollouts = roll_out(model, tmp_path, wanted)
    assert model.waves == waves
    assert [rollout.attempt for rollout in rollouts] == sorted(number for wave in waves for number in wave)


def test_what_the_waves_count_is_what_the_trajectories_accept(tmp_path):
    judge = make_asking("judge_answer", lambda inputs: f"Verdict: {'in' * ('surely' in inputs.given)}correct")
    cascade = replace(ANSWERS_ALONE, jury=Jury((judge,)))
    rollouts = roll_out(
        Answering(("It was surely on 5 April 1204", "It was on 5 April 1204", RIGHT, RIGHT)), tmp_path, 2, cascade
    )
    asked = len(judge.model.asked)
    rows = [asyncio.run(Trajectories(cascade)(rollout)) for rollout in rollouts]
    assert [not isinstance(row, Rejection) for row in rows] == [False, True, True]
    assert len(judge.model.asked) == 2 * asked == 4


def test_a_question_of_a_split_that_releases_no_trajectory_is_rejected_and_no_model_is_asked(stage, tmp_path):
    question = make_question(make_picture(tmp_path)).model_copy(update={"split": "rl"})
    rejection = asyncio.run(stage(question))
    assert isinstance(rejection, Rejection)
    assert (rejection.record_id, rejection.reason) == (question.record_id, "other-split")
    assert len(asyncio.run(replace(stage, splits=("sft", "rl"))(question))) == 3


def test_a_question_whose_run_was_stopped_asks_only_for_what_is_missing(tmp_path):
    store = open_replies(tmp_path / "replies")
    asked = []
    for errors in ({3: Unavailable("no route")}, {}):
        model = Together(1 if not errors else 5, errors)
        stage = Rollouts(make_agent(RecordedChat(model, store), make_tools(tmp_path)), attempts=5)
        if errors:
            with pytest.raises(Unavailable):
                asyncio.run(stage(make_question(make_picture(tmp_path))))
        else:
            rollouts = asyncio.run(stage(make_question(make_picture(tmp_path))))
            assert [rollout.answer for rollout in rollouts] == ["0", "1", "2", "3", "4"]
        asked.append(sorted(model.asked))
    store.close()
    assert asked == [[0, 1, 2, 3, 4], [3]]


def test_the_fingerprint_changes_with_everything_that_decides_a_rollout(stage, tmp_path):
    agent = stage.agent
    others = [
        replace(stage, attempts=4),
        replace(stage, wanted=2),
        replace(stage, wanted=2, cascade=Cascade(TrajectoriesConfig(max_tokens=9))),
        replace(stage, splits=("sft", "rl")),
        replace(stage, agent=replace(agent, settings=RolloutsConfig(max_calls=3))),
        replace(stage, agent=replace(agent, model=ScriptedTeacher("teacher", Vices(wrong=0.5)))),
        replace(stage, agent=replace(agent, tools=make_tools(tmp_path, pages=FakePages(identity="other")))),
        replace(stage, agent=replace(agent, prompt=replace(agent.prompt, digest="other"))),
    ]
    assert len({each.fingerprint() for each in [stage, *others]}) == len(others) + 1
    same = [replace(stage), replace(stage, wanted=9), replace(stage, cascade=Cascade(TrajectoriesConfig(max_tokens=9)))]
    assert {each.fingerprint() for each in same} == {stage.fingerprint()}


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
