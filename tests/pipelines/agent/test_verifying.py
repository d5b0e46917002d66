"""What the judge verifies of a way: two statements and a step, never half of them."""

import asyncio
import json
from dataclasses import replace

import pytest

from pipelines.agent.acceptance import Cascade
from pipelines.agent.judging import ProcessJury, UnscoredWatch, Verifier, make_process_inputs
from pipelines.agent.loop import run_rollout
from pipelines.config.settings import TrajectoriesConfig
from pipelines.errors import GateNotMet, RecordFailed, Unavailable
from pipelines.services.prompting import RoleClient, load_prompt
from pipelines.services.protocols import ChatReply
from pipelines.stages.rollouts import make_oracle
from pipelines.stages.trajectories import Trajectories
from pipelines.toy.players import FAULTS, ScriptedJudge, verify_way
from pipelines.toy.teacher import VERIFIED, ScriptedTeacher, Vices
from schemas.datasets import Trajectory
from schemas.tasks import VerificationReply, VerifyTrajectoryInputs
from tests.pipelines.agent.trail import make_agent, make_picture, make_question, make_tools
from tests.pipelines.checks.walking import CLEAN, make_rollout
from tests.pipelines.stages.players import FakeModel

PROMPT = load_prompt("verify_trajectory")
ROLLOUT = make_rollout(*CLEAN)
BOTH = TrajectoriesConfig(verifications=("coherence", "plausibility"))


def say(coherent=True, plausible=True, step=0, **more):
    return json.dumps({"coherent": coherent, "plausible": plausible, "step": step} | more)


def verify(*replies):
    """Return what is said, and the requests, of a judge that gives its replies in order."""
    turns = iter(replies)
    model = FakeModel(lambda inputs: next(turns))
    return asyncio.run(Verifier(RoleClient(model, PROMPT)).verify(ROLLOUT)), model.asked


def decide(*replies, rules=BOTH, watch=None):
    turns = iter(replies)
    verifier = Verifier(RoleClient(FakeModel(lambda inputs: next(turns)), PROMPT))
    return asyncio.run(Trajectories(Cascade(rules, verifier=verifier, watch=watch))(ROLLOUT))


def test_two_statements_and_the_step_are_read_after_free_reasoning():
    said, asked = verify(f"Step 3 searches for nothing.\n{say(plausible=False, step=3)}")
    assert (said.coherent, said.plausible, said.step) == (True, False, 3)
    assert [request.task for request in asked] == ["verify_trajectory"]
    assert asked[0].messages[-1].images == (ROLLOUT.images[0].picture.sha256,)


@pytest.mark.parametrize(
    ("reply", "reasons"),
    [
        (say(coherent=False, step=2), ("incoherent",)),
        (say(plausible=False, step=2), ("implausible",)),
        (say(coherent=False, plausible=False, step=2), ("incoherent", "implausible")),
    ],
)
def test_each_verification_refuses_for_a_reason_of_its_own_and_names_the_step(reply, reasons):
    refused = decide(reply)
    assert refused.codes == reasons
    assert "from step 2 on" in refused.detail


def test_what_both_verifications_pass_is_accepted_and_says_so():
    (row,) = decide(say())
    assert isinstance(row, Trajectory)
    assert row.verified == ("coherence", "plausibility")
    assert row.process is None


@pytest.mark.parametrize(
    ("wanted", "reply"),
    [("coherence", say(plausible=False, step=1)), ("plausibility", say(coherent=False, step=1))],
)
def test_a_verification_that_is_not_wanted_refuses_nothing(wanted, reply):
    (row,) = decide(reply, rules=TrajectoriesConfig(verifications=(wanted,)))
    assert row.verified == (wanted,)


@pytest.mark.parametrize(
    "reply",
    [
        "",
        "It holds together.",
        "yes",
        '{"coherent": true}',
        say(coherent="true"),
        say(coherent=1),
        say(plausible=None),
        say(step=1),
        say(coherent=False, step=0),
        say(step=-1),
        say(step=True),
        say(reason="fine"),
        say() + say(coherent=False, step=1),
        say()[:-4],
    ],
)
def test_what_is_no_two_statements_is_repaired_once_and_never_passes(reply):
    repaired, asked = verify(reply, say())
    assert isinstance(repaired, VerificationReply)
    assert "true or false" in asked[1].messages[-1].text
    assert decide(reply, reply).codes == ("unverified",)


def test_a_step_that_is_not_there_is_no_statement():
    assert decide(say(coherent=False, step=99)).codes == ("unverified",)


@pytest.mark.parametrize("ended", ["cut", "refused"])
def test_a_reply_that_did_not_end_verifies_nothing(ended):
    class Ending(FakeModel):
        async def chat(self, request):
            return ChatReply(say(), 1, 1, ended=ended)

    said = asyncio.run(Verifier(RoleClient(Ending(lambda inputs: ""), PROMPT)).verify(ROLLOUT))
    assert isinstance(said, str)


def test_a_judge_that_fails_the_record_verifies_nothing_and_one_that_is_away_stops():
    def fail_record(inputs):
        raise RecordFailed("no-reply", "too late")

    def leave(inputs):
        raise Unavailable("nobody answers")

    said = asyncio.run(Verifier(RoleClient(FakeModel(fail_record), PROMPT)).verify(ROLLOUT))
    assert "too late" in said
    with pytest.raises(Unavailable):
        asyncio.run(Verifier(RoleClient(FakeModel(leave), PROMPT)).verify(ROLLOUT))


def test_ways_that_nobody_could_verify_stop_the_stage_when_they_are_too_many():
    watch = UnscoredWatch(0.2, 1)
    with pytest.raises(GateNotMet, match="unscored"):
        decide("?", "?", watch=watch)


@pytest.mark.parametrize("fault", FAULTS)
def test_no_fault_of_a_judge_verifies(fault):
    said = asyncio.run(Verifier(RoleClient(ScriptedJudge(**{fault: 1.0}), PROMPT)).verify(ROLLOUT))
    assert isinstance(said, str)


def test_the_verifier_is_part_of_the_stage():
    verifier = Verifier(RoleClient(FakeModel(str, identity="a"), PROMPT))
    other = replace(verifier, judge=RoleClient(FakeModel(str, identity="b"), PROMPT))
    marking = ProcessJury(RoleClient(FakeModel(str, identity="a"), load_prompt("judge_process")))
    cascades = [
        Cascade(BOTH),
        Cascade(BOTH, verifier=verifier),
        Cascade(BOTH, verifier=other),
        Cascade(BOTH, process=marking),
    ]
    assert len({cascade.identity for cascade in cascades}) == 4
    assert cascades[1].prompts() == {"verify_trajectory/v1": PROMPT.digest}
    assert [entry.role for entry in cascades[1].models()] == ["judge"]


# The scripted judge, and what is planted for it.


def play(folder, attempt, **vices):
    agent = make_agent(ScriptedTeacher("teacher", Vices(**vices)), make_tools(folder))
    question = make_question(make_picture(folder), attempt)
    return asyncio.run(run_rollout(agent, question, make_oracle(question, attempt)))


def read(rollout):
    return verify_way(VerifyTrajectoryInputs(**dict(make_process_inputs(rollout))))


def test_sound_ways_are_verified(tmp_path):
    for attempt in range(12):
        found = read(play(tmp_path, attempt, crop_first=0.5))
        assert (found.coherent, found.plausible) == (True, True)


@pytest.mark.parametrize("vice", VERIFIED)
def test_what_is_planted_passes_the_mechanical_checks_and_is_refused_by_the_judge(tmp_path, vice):
    stage = Trajectories(Cascade(BOTH, verifier=Verifier(RoleClient(ScriptedJudge(), PROMPT))))
    for attempt in range(8):
        rollout = play(tmp_path, attempt, **{vice: 1.0})
        assert isinstance(asyncio.run(Trajectories()(rollout)), tuple)
        assert asyncio.run(stage(rollout)).codes == (VERIFIED[vice],)


def test_shuffled_thoughts_are_seen(tmp_path):
    for attempt in range(8):
        rollout = play(tmp_path, attempt)
        thoughts = [step.thought for step in rollout.steps]
        turned = [*thoughts[1:], thoughts[0]]
        steps = [step.model_copy(update={"thought": one}) for step, one in zip(rollout.steps, turned, strict=True)]
        assert not read(rollout.model_copy(update={"steps": tuple(steps)})).coherent


def test_the_judge_errs_at_the_set_rates(tmp_path):
    sound, planted = play(tmp_path, 0), play(tmp_path, 0, shuffled=1.0)

    def count(rollout, **rates):
        verifier = Verifier(RoleClient(ScriptedJudge(**rates), PROMPT))
        ways = [rollout.model_copy(update={"record_id": f"way-{number}"}) for number in range(100)]
        return sum(asyncio.run(verifier.verify(way)).coherent for way in ways) / 100

    assert count(sound, harsh=0.3) == pytest.approx(0.7, abs=0.15)
    assert count(planted, lax=0.3) == pytest.approx(0.3, abs=0.15)
    assert (count(sound, lax=1.0), count(planted, harsh=1.0)) == (1.0, 0.0)
