"""What the judge verifies of a way: two statements and a step, never half of them."""

import asyncio
import json

import pytest

from pipelines.agent.acceptance import Cascade
from pipelines.agent.judging import Verifier, make_process_inputs
from pipelines.agent.loop import run_rollout
from pipelines.config.settings import TrajectoriesConfig
from pipelines.services.prompting import RoleClient, load_prompt
from pipelines.stages.rollouts import make_oracle
from pipelines.stages.trajectories import Trajectories
from pipelines.toy.players import ScriptedJudge, verify_way
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
    "reply",
    [
        "",
        "It holds together.",
        '{"coherent": true}',
        say(coherent="true"),
        say(step=1),
        say(coherent=False, step=0),
        say() + say(coherent=False, step=1),
        say()[:-4],
    ],
)
def test_what_is_no_two_statements_is_repaired_once_and_never_passes(reply):
    repaired, asked = verify(reply, say())
    assert isinstance(repaired, VerificationReply)
    assert "true or false" in asked[1].messages[-1].text
    assert decide(reply, reply).codes == ("unverified",)


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
