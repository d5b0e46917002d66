import asyncio
import inspect
from statistics import fmean

import pytest

from pipelines.agent.agreement import wilson_interval
from pipelines.agent.judging import Jury, make_judge_inputs, parse_verdict
from pipelines.errors import ConfigError, RecordFailed
from pipelines.services.prompting import Asking, BadReply, ask_model, load_prompt, parse_reply
from pipelines.services.protocols import ChatRequest, Message
from pipelines.toy import players as scripted_judge
from pipelines.toy.players import FAULTS, ScriptedJudge
from schemas.proofs import Answer
from schemas.tasks import FactView, JudgePictureInputs, JudgeProcessInputs, PictureReply, ProcessReply

NAME = Answer(type="name", value="Ana Kovač", precision="", unit="", surface="Ana Kovač", aliases=(), key="text:ana")
SURE = ScriptedJudge(fpr=0.0, fnr=0.0)
TRIALS = 2000


def ask(judge, truth, trial="t", given="A. Kovač-Brandt", turns=2):
    inputs = make_judge_inputs("Who?", given, NAME, trial, truth)
    messages = tuple(Message("user", "x") for _ in range(turns))
    return asyncio.run(judge.chat(ChatRequest("judge_answer", "judge_answer/v1", messages, inputs))).text


def judge(scripted, truth, trial="t", **changes):
    return parse_verdict(ask(scripted, truth, str(trial), **changes))


def list_errors(scripted, truth):
    return [judge(scripted, truth, trial) != truth for trial in range(TRIALS)]


@pytest.mark.parametrize("truth", ["correct", "incorrect"])
def test_a_judge_without_errors_says_what_is_true(truth):
    assert not any(list_errors(SURE, truth))


@pytest.mark.parametrize(("truth", "rate"), [("incorrect", 0.1), ("correct", 0.3)])
def test_errors_come_at_the_set_rates(truth, rate):
    low, high = wilson_interval(sum(list_errors(ScriptedJudge(fpr=0.1, fnr=0.3), truth)), TRIALS, 3.3)
    assert low <= rate <= high


@pytest.mark.parametrize("rho", [0.0, 0.3, 0.8, 1.0])
def test_two_judges_err_together_as_often_as_their_correlation_says(rho):
    one, two = (list_errors(ScriptedJudge(fpr=0.2, rho=rho, name=name), "incorrect") for name in "ab")
    both = sum(left and right for left, right in zip(one, two, strict=True)) / TRIALS
    first, second = sum(one) / TRIALS, sum(two) / TRIALS
    spread = (first * (1 - first) * second * (1 - second)) ** 0.5
    assert (both - first * second) / spread == pytest.approx(rho, abs=0.08)


def test_the_same_trial_is_judged_alike_every_time():
    noisy = ScriptedJudge(fpr=0.5, empty=0.3)
    assert [ask(noisy, "incorrect", str(n)) for n in range(50)] == [ask(noisy, "incorrect", str(n)) for n in range(50)]


@pytest.mark.parametrize("fault", ["empty", "hedge", "malformed"])
def test_a_fault_gives_no_verdict(fault):
    assert {judge(ScriptedJudge(**{fault: 1.0}), "correct", n) for n in range(20)} == {"unscored"}


def test_a_time_out_fails_the_record():
    with pytest.raises(RecordFailed, match="no-reply"):
        ask(ScriptedJudge(timeout=1.0), "correct")


def test_faults_are_drawn_anew_for_each_turn():
    """So that a repair helps as often as it would with a model."""
    faulty = ScriptedJudge(fnr=0.0, malformed=0.5)
    first, second = ([judge(faulty, "correct", n, turns=turns) for n in range(400)] for turns in (2, 4))
    assert first != second
    jury = Jury((Asking(faulty, load_prompt("judge_answer")),))

    async def judge_all():
        return [await jury.judge("Who?", "A. Kovač-Brandt", NAME, str(n), "correct") for n in range(400)]

    unscored = sum(judged.verdict == "unscored" for judged in asyncio.run(judge_all()))
    low, high = wilson_interval(unscored, 400, 3.3)
    assert low <= 0.25 <= high


@pytest.mark.parametrize(
    ("given", "verdict"),
    [("Anna Kovac", "correct"), ("KOVAČ, Ana", "correct"), ("Hans Oder", "incorrect"), ("", "incorrect")],
)
def test_where_nobody_knows_it_goes_by_letters_in_common(given, verdict):
    assert judge(SURE, "unknown", given=given) == verdict


def ask_picture(scripted, sha256):
    asking = Asking(scripted, load_prompt("judge_picture"))
    return asyncio.run(ask_model(asking, JudgePictureInputs(anchor_type="bridge"), PictureReply, [sha256])).simple


def test_a_set_share_of_pictures_is_too_simple():
    found = [ask_picture(ScriptedJudge(simple=0.3), f"{n:064}") for n in range(500)]
    low, high = wilson_interval(sum(found), 500, 3.3)
    assert low <= 0.3 <= high
    assert not ask_picture(SURE, "a" * 64)


def test_an_image_judge_has_the_same_faults():
    with pytest.raises(RecordFailed, match="unparseable-reply"):
        ask_picture(ScriptedJudge(malformed=1.0), "a" * 64)
    assert not parse_reply('{"simple": false}', PictureReply).simple


def mark(scripted, trial):
    inputs = JudgeProcessInputs(question="Who?", answer="Ana", steps="Step 1", pictures=1, trial=str(trial))
    request = ChatRequest("judge_process", "judge_process/v1", (Message("user", "x"),), inputs)
    return parse_reply(asyncio.run(scripted.chat(request)).text, ProcessReply)


def test_a_set_share_of_ways_is_marked_poorly():
    marks = [mark(ScriptedJudge(poor=0.3), n) for n in range(1000)]
    means = [fmean((one.relevance, one.progression, one.evidence, one.cross_modal)) for one in marks]
    assert all(mean <= 2 or mean >= 4 for mean in means)
    low, high = wilson_interval(sum(mean <= 2 for mean in means), 1000, 3.3)
    assert low <= 0.3 <= high
    assert {one.evidence for one in marks} == {1, 2, 4, 5}


def test_a_process_judge_has_the_same_faults():
    with pytest.raises(RecordFailed, match="no-reply"):
        mark(ScriptedJudge(timeout=1.0), 1)
    with pytest.raises(BadReply):
        mark(ScriptedJudge(hedge=1.0), 1)


@pytest.mark.parametrize("name", ["fpr", "fnr", "rho", "simple", "poor", *FAULTS])
@pytest.mark.parametrize("value", [-0.1, 1.1])
def test_a_rate_outside_0_and_1_is_refused(name, value):
    with pytest.raises(ConfigError, match=f"{name} is {value}; allowed: 0.0 to 1.0"):
        ScriptedJudge(**{name: value})


def test_faults_of_more_than_1_are_refused():
    with pytest.raises(ConfigError, match=r"its faults add up to 1\.2"):
        ScriptedJudge(empty=0.6, timeout=0.6)


def test_another_task_is_refused():
    request = ChatRequest("act", "act/v1", (), FactView(relation="x", text="y"))
    with pytest.raises(ConfigError, match="it can do judge_answer, judge_picture and judge_process"):
        asyncio.run(SURE.chat(request))


def test_identity_changes_with_every_setting_and_with_the_rules(monkeypatch):
    settings = [{name: 0.5} for name in ("fpr", "fnr", "rho", "simple", "poor", *FAULTS)]
    names = [ScriptedJudge(**changes).identity for changes in (*settings, {"name": "other"}, {})]
    assert len(set(names)) == len(names)
    source = inspect.getsource(scripted_judge)
    scripted_judge._digest_source.cache_clear()
    monkeypatch.setattr(inspect, "getsource", lambda module: source + "# another rule")
    changed = ScriptedJudge().identity
    scripted_judge._digest_source.cache_clear()
    assert changed not in names
