"""D23: judges with faults, one at a time. A jury must not accept or lose an answer in silence."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from pipelines.agent.judging import Jury, Truth
from pipelines.cli.judge_card import TYPES, JudgeCase, JudgeTrial, list_cases
from pipelines.errors import ServiceError, Unavailable
from pipelines.graph.answers import compare_answers
from pipelines.services.prompting import RoleClient, load_prompt
from pipelines.services.protocols import ChatModel, ChatReply, ChatRequest
from pipelines.toy.players import ScriptedJudge


@dataclass(frozen=True, slots=True)
class FaultRow:
    """What became of answers that a jury with a faulty judge was asked about."""

    fault: str
    jury: str
    """``alone``, or the place of the faulty judge beside one that never errs."""
    trials: int
    silent_accepts: int
    """Wrong answers called correct."""
    silent_drops: int
    """Right answers called incorrect, and answers of which nothing came back."""
    unscored: int
    stopped: int
    """Answers at which the run stopped: a service was away."""


@dataclass(frozen=True, slots=True)
class _Away:
    """A judge that cannot be reached."""

    name: str = "away"
    identity: str = "away"
    reads_inputs: bool = True

    async def chat(self, request: ChatRequest) -> ChatReply:
        raise Unavailable("away: no reply")


SURE = ScriptedJudge(fpr=0.0, fnr=0.0, name="sure")


FAULTY: dict[str, ChatModel] = {
    "empty": ScriptedJudge(empty=1.0, name="empty"),
    "yes and no": ScriptedJudge(hedge=1.0, name="hedge"),
    "malformed": ScriptedJudge(malformed=1.0, name="malformed"),
    "time-out": ScriptedJudge(timeout=1.0, name="time-out"),
    "away": _Away(),
    "near miss accepted": ScriptedJudge(fpr=1.0, fnr=0.0, name="lenient"),
    "right one refused": ScriptedJudge(fpr=0.0, fnr=1.0, name="strict"),
}


ERRING = ("near miss accepted", "right one refused")
"""What one judge alone cannot be kept from; its rates are what the card measures."""


async def count_faults(trials: int, seed: int) -> tuple[FaultRow, ...]:
    """Plant every fault in a judge that is asked alone, first and second, on answers that the comparer leaves open."""
    found = list_open_trials(trials, seed)
    rows = []
    for fault, model in FAULTY.items():
        for place, models in _list_juries(model):
            if not (fault in ERRING and place == "alone"):
                rows.append(await _count(fault, place, models, found))
    return tuple(rows)


def list_open_trials(count: int, seed: int) -> list[tuple[JudgeCase, JudgeTrial]]:
    """Return ``count`` planted answers that the comparer leaves open, near misses and right ones in turn."""
    pairs, found = 0, list[tuple[JudgeCase, JudgeTrial]]()
    while len(found) < count:
        # Three answers or more of each four questions are left open.
        pairs = pairs * 2 or count // 2 + 2
        open_ones = [
            (case, trial)
            for type_ in TYPES
            for case in list_cases(type_, pairs, seed)
            for trial in case.trials
            if compare_answers(trial.given, case.answer) == "unscored"
        ]
        misses = [each for each in open_ones if each[1].truth == "incorrect"]
        hits = [each for each in open_ones if each[1].truth == "correct"]
        found = [each for pair in zip(misses, hits, strict=False) for each in pair]
    return found[:count]


def _list_juries(model: ChatModel) -> tuple[tuple[str, tuple[ChatModel, ...]], ...]:
    return ("alone", (model,)), ("first", (model, SURE)), ("second", (SURE, model))


async def _count(
    fault: str, place: str, models: Sequence[ChatModel], trials: Sequence[tuple[JudgeCase, JudgeTrial]]
) -> FaultRow:
    jury = Jury(tuple(RoleClient(model, load_prompt("judge_answer")) for model in models))
    counts: Counter[str] = Counter()
    for number, (case, trial) in enumerate(trials):
        truth: Truth = "correct" if trial.truth == "correct" else "incorrect"
        try:
            judgement = await jury.judge(case.question, trial.given, case.answer, f"fault:{number}", truth)
        except ServiceError:
            counts["stopped"] += 1
            continue
        counts["unscored"] += judgement.verdict == "unscored"
        counts["accepts"] += (judgement.verdict, truth) == ("correct", "incorrect")
        counts["drops"] += (judgement.verdict, truth) == ("incorrect", "correct")
        counts["right"] += judgement.verdict == truth
    lost = len(trials) - counts.total()
    return FaultRow(
        fault, place, len(trials), counts["accepts"], counts["drops"] + lost, counts["unscored"], counts["stopped"]
    )


def make_scripted_judges() -> tuple[RoleClient, RoleClient]:
    """Return two judges that err now and then and sometimes together: what a card is shown for without a model."""
    prompt = load_prompt("judge_answer")
    first = ScriptedJudge(fpr=0.06, fnr=0.05, rho=0.3, hedge=0.01, name="scripted-judge-1")
    second = ScriptedJudge(fpr=0.08, fnr=0.04, rho=0.3, empty=0.01, name="scripted-judge-2")
    return RoleClient(first, prompt), RoleClient(second, prompt)
