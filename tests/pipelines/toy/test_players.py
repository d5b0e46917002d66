import asyncio
import json
from statistics import fmean

import pytest

from pipelines.agent.agreement import wilson_interval
from pipelines.agent.attempts import NOTHING_FOUND
from pipelines.agent.judging import make_judge_inputs, parse_verdict
from pipelines.errors import ConfigError, RecordFailed
from pipelines.services.prompting import BadReply, RoleClient, ask_model, load_prompt, parse_reply
from pipelines.services.protocols import ChatRequest, Message
from pipelines.toy.players import UNKNOWN, ScriptedJudge, ScriptedSolver
from schemas.proofs import Answer
from schemas.tasks import (
    AnswerQuestionInputs,
    FactView,
    JudgePictureInputs,
    JudgeProcessInputs,
    PictureReply,
    ProcessReply,
    SolverOracle,
)

RIGHT = "5 April 1931"
DATE = Answer(type="date", value="1931-04-05", precision="day", unit="", surface=RIGHT, aliases=(), key="1931-04-05")
NAME = Answer(type="name", value="Ana Kovač", precision="", unit="", surface="Ana Kovač", aliases=(), key="text:ana")
SURE_SOLVER = ScriptedSolver(fact_popularity=10, sight_popularity=50, guess_rate=0.0, slip_rate=0.0)
SURE_JUDGE = ScriptedJudge(fpr=0.0, fnr=0.0)
TRIALS = 2000


def solve(solver, condition, sample=0, *, popularity=(60, 20, 20), alone=7, seen=(), question="q-1", found="1. A page"):
    oracle = SolverOracle(
        question_id=question,
        answer=DATE,
        popularity=popularity,
        alone_count=alone,
        guesses=("6 May 1932", "7 June 1933"),
        seen_titles=seen,
        anchor_title="Kelm Bridge",
    )
    tools = condition.partition("+")[2]
    inputs = AnswerQuestionInputs(
        question="When?",
        condition=condition,
        pictured=not condition.startswith(("clause", "text")),
        image_results="1. A page" if tools in ("image-search", "both") else "",
        search_results=found if tools in ("text-search", "both") else "",
        oracle=oracle,
    )
    request = ChatRequest("answer_question", "answer_question/v1", (), inputs, sample=sample)
    return json.loads(asyncio.run(solver.chat(request)).text)["answer"]


SHOWN, MISLED = ("Kelm Bridge", "Oster Bridge"), ("Oster Bridge", "Kelm Bridge")


@pytest.mark.parametrize(
    ("condition", "given", "knows"),
    [
        ("text", {"alone": 7}, False),
        ("text", {"alone": 1, "popularity": (1, 1, 10)}, True),
        ("text", {"alone": 1, "popularity": (99, 99, 9)}, False),
        ("clause", {"popularity": (99, 99, 99)}, False),
        ("clause", {"alone": 1, "popularity": (1, 1, 10)}, True),
        ("text+text-search", {"alone": 1, "popularity": (1, 1, 1)}, True),
        ("text+text-search", {"alone": 2, "popularity": (99, 99, 99)}, False),
        ("image", {}, True),
        ("image", {"popularity": (60, 9, 20)}, False),
        ("image", {"popularity": (49, 20, 20)}, False),
        ("image+image-search", {"popularity": (10, 20, 20), "seen": SHOWN}, True),
        ("image+image-search", {"popularity": (99, 20, 20), "seen": MISLED}, False),
        ("image+text-search", {"popularity": (60, 9, 20)}, True),
        ("image+text-search", {"popularity": (60, 9, 9)}, False),
        ("image+text-search", {"popularity": (60, 9, 20), "found": NOTHING_FOUND}, False),
        ("image+text-search", {"popularity": (49, 20, 20)}, False),
        ("image+both", {"popularity": (10, 9, 20), "seen": SHOWN}, True),
        ("image+both", {"popularity": (10, 9, 20), "seen": MISLED}, False),
    ],
)
def test_the_solver_answers_what_its_condition_and_its_knowledge_allow(condition, given, knows):
    assert solve(SURE_SOLVER, condition, **given) == (RIGHT if knows else UNKNOWN)


@pytest.mark.parametrize("condition", ["text", "image", "text+text-search", "image+image-search", "image+both"])
def test_a_planted_probability_decides_by_class_of_condition_and_a_higher_one_loses_no_success(condition):
    expected = 0.7 if "+" in condition else 0.2
    answers = [solve(ScriptedSolver(right_without_tools=0.2, right_with_search=0.7), condition, n) for n in range(500)]
    assert set(answers) == {RIGHT, UNKNOWN}
    assert abs(answers.count(RIGHT) / 500 - expected) < 0.06
    higher = ScriptedSolver(right_without_tools=0.9, right_with_search=0.9)
    assert all(solve(higher, condition, n) == RIGHT for n in range(50) if answers[n] == RIGHT)


def ask(judge, truth, trial="t", given="A. Kovač-Brandt", turns=2):
    inputs = make_judge_inputs("Who?", given, NAME, str(trial), truth)
    messages = tuple(Message("user", "x") for _ in range(turns))
    return asyncio.run(judge.chat(ChatRequest("judge_answer", "judge_answer/v1", messages, inputs))).text


def judge(scripted, truth, trial="t", **changes):
    return parse_verdict(ask(scripted, truth, trial, **changes))


def list_errors(scripted, truth):
    return [judge(scripted, truth, trial) != truth for trial in range(TRIALS)]


def is_near(found, rate, trials):
    low, high = wilson_interval(found, trials, 3.3)
    return low <= rate <= high


@pytest.mark.parametrize(("truth", "rate"), [("incorrect", 0.1), ("correct", 0.3)])
def test_the_judge_errs_at_the_set_rates(truth, rate):
    assert not any(list_errors(SURE_JUDGE, truth))
    assert is_near(sum(list_errors(ScriptedJudge(fpr=0.1, fnr=0.3), truth)), rate, TRIALS)


@pytest.mark.parametrize(
    ("given", "verdict"),
    [("Anna Kovac", "correct"), ("KOVAČ, Ana", "correct"), ("Hans Oder", "incorrect"), ("", "incorrect")],
)
def test_where_the_oracle_does_not_know_letters_in_common_decide(given, verdict):
    assert judge(SURE_JUDGE, "unknown", given=given) == verdict


def judge_picture(scripted, sha256):
    asking = RoleClient(scripted, load_prompt("judge_picture"))
    return asyncio.run(ask_model(asking, JudgePictureInputs(anchor_type="bridge"), PictureReply, [sha256])).simple


def mark(scripted, trial):
    inputs = JudgeProcessInputs(question="Who?", answer="Ana", steps="Step 1", pictures=1, trial=str(trial))
    request = ChatRequest("judge_process", "judge_process/v1", (Message("user", "x"),), inputs)
    return parse_reply(asyncio.run(scripted.chat(request)).text, ProcessReply)


def test_a_set_share_of_pictures_is_too_simple_and_of_ways_poor():
    found = [judge_picture(ScriptedJudge(simple=0.3), f"{n:064}") for n in range(500)]
    assert is_near(sum(found), 0.3, 500)
    assert not judge_picture(SURE_JUDGE, "a" * 64)
    marks = [mark(ScriptedJudge(poor=0.3), n) for n in range(TRIALS)]
    means = [fmean((one.relevance, one.progression, one.evidence, one.cross_modal)) for one in marks]
    assert all(mean <= 2 or mean >= 4 for mean in means)
    assert is_near(sum(mean <= 2 for mean in means), 0.3, TRIALS)
    assert {one.evidence for one in marks} == {1, 2, 4, 5}


def test_a_fault_gives_no_verdict_whatever_is_judged():
    for fault in ("empty", "hedge", "malformed"):
        assert {judge(ScriptedJudge(**{fault: 1.0}), "correct", n) for n in range(20)} == {"unscored"}
    for play in (lambda late: ask(late, "correct"), lambda late: mark(late, 1)):
        with pytest.raises(RecordFailed, match="no-reply"):
            play(ScriptedJudge(timeout=1.0))
    with pytest.raises(RecordFailed, match="unparseable-reply"):
        judge_picture(ScriptedJudge(malformed=1.0), "a" * 64)
    with pytest.raises(BadReply):
        mark(ScriptedJudge(hedge=1.0), 1)


def test_impossible_settings_are_refused_with_what_is_allowed():
    for settings in ({"guess_rate": 1.5}, {"right_with_search": 2.0}, {"slip_rate": -0.1}, {"fact_popularity": -1}):
        with pytest.raises(ConfigError, match="allowed"):
            ScriptedSolver(**settings)
    with pytest.raises(ConfigError, match=r"fpr is 1\.1; allowed: 0.0 to 1.0"):
        ScriptedJudge(fpr=1.1)


@pytest.mark.parametrize(
    ("player", "tasks"),
    [
        (SURE_SOLVER, "answer_question"),
        (SURE_JUDGE, "judge_picture, judge_process and verify_trajectory"),
    ],
)
def test_another_task_is_refused(player, tasks):
    with pytest.raises(ConfigError, match=tasks):
        asyncio.run(player.chat(ChatRequest("act", "act/v1", (), FactView(relation="x", text="y"))))
