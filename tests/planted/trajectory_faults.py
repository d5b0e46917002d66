"""D23 of rollouts: judges with faults behind the rejection cascade. Each rollout ends as a row that says what it is.

The rollouts are without a fault of their own. Judges of answers are asked of answers that the comparer leaves open, the
process judge of right ones. A judge that cannot be understood may neither let a rollout pass nor make it disappear
under another reason: the row says ``unscored`` or ``process-unscored``.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from pipelines.agent.judging import Jury, ProcessJury
from pipelines.agent.transcript import Turn, render_turn
from pipelines.cli.judge_card import JudgeCase, JudgeTrial
from pipelines.errors import ConfigError, ServiceError
from pipelines.services.prompting import RoleClient, load_prompt
from pipelines.services.protocols import ChatModel, ChatReply, ChatRequest
from pipelines.stages.trajectories import Trajectories
from schemas.base import Failure, Rejection
from schemas.datasets import Picture, Rollout, RolloutImage, Step, Trajectory, Verdict
from schemas.tasks import JudgeAnswerInputs
from tests.planted.judge_faults import ERRING, FAULTY, list_open_trials
from tests.planted.rollout_plants import Call, make_step, show, show_hits

PLACE = "Orsk Crossing"
"""What every question here is about."""
ADDRESS = "https://pages.example/wiki/Orsk_Crossing"
PICTURE = Picture(
    file="crossing.jpg",
    sha256="0" * 64,
    extension=".jpg",
    width=640,
    height=480,
    phash="",
    author="",
    licence="",
    licence_url="",
    source_url="",
)
MOST = 100
"""Rollouts that each fault is planted on."""
Row = Trajectory | Rejection | Failure


@dataclass(frozen=True, slots=True)
class TrajectoryFaultRow:
    """What became of rollouts that a faulty judge was asked about."""

    asked: str
    """``answer`` or ``process``: which judge is faulty."""
    fault: str
    jury: str
    """``alone``, or the place of the faulty judge beside one that never errs."""
    rollouts: int
    silent_accepts: int
    """Rollouts with a wrong answer, or whose way nobody marked, that were kept."""
    silent_drops: int
    """Rollouts of which no row came, and faultless ones that were refused as if they were not."""
    unscored: int
    """Rows that say that a judge could not be understood."""
    stopped: int
    """Rollouts at which the run stopped: a service was away."""


@dataclass(frozen=True, slots=True)
class Saying:
    """A judge that always says the same."""

    said: str
    name: str = "saying"
    reads_inputs: bool = field(default=True, init=False)

    @property
    def identity(self) -> str:
        """What it says."""
        return f"{self.name}:{self.said}"

    async def chat(self, request: ChatRequest) -> ChatReply:
        """Return it."""
        return ChatReply(self.said, 0, 0)


@dataclass(frozen=True, slots=True)
class Knowing:
    """A judge of answers that never errs, as it knows the truth about each rollout."""

    truths: Mapping[str, Verdict]
    """By record id."""
    name: str = "knowing"
    reads_inputs: bool = field(default=True, init=False)

    @property
    def identity(self) -> str:
        """How many it knows; it is nowhere recorded."""
        return f"{self.name}:{len(self.truths)}"

    async def chat(self, request: ChatRequest) -> ChatReply:
        """Return the verdict.

        Raises:
            ConfigError: if it is asked for anything else.
        """
        if not isinstance(request.inputs, JudgeAnswerInputs):
            raise ConfigError(f"knowing judge: task {request.task!r} given, it plays only 'judge_answer'")
        return ChatReply(f"Verdict: {self.truths[request.inputs.oracle.trial]}", 0, 0)


MISTAKEN: dict[str, ChatModel] = {
    "near miss accepted": Saying("Verdict: correct"),
    "right one refused": Saying("Verdict: incorrect"),
}
"""Judges that err and can be understood. Alone nothing keeps them from it; what they err by the card measures."""
UNMARKED: dict[str, ChatModel] = {
    **{name: model for name, model in FAULTY.items() if name not in ERRING},
    "marks out of range": Saying('{"relevance": 6, "progression": 0, "evidence": 5, "cross_modal": 5}'),
    "a mark missing": Saying('{"relevance": 5, "progression": 5, "evidence": 5}'),
    "marks in words": Saying('{"relevance": "five", "progression": "5", "evidence": 5, "cross_modal": 5}'),
    "half marks": Saying('{"relevance": 4.5, "progression": 5, "evidence": 5, "cross_modal": 5}'),
    "true for a mark": Saying('{"relevance": true, "progression": 5, "evidence": 5, "cross_modal": 5}'),
    "praise": Saying("A flawless way. 5/5, would accept again."),
    "a list": Saying("[5, 5, 5, 5]"),
    "a verdict": Saying("Verdict: correct"),
}
"""Replies of a process judge from which nobody can tell four marks."""


def count_trajectory_faults(trials: int, seed: int) -> tuple[TrajectoryFaultRow, ...]:
    """Plant every fault in a judge of answers, alone, first and second, and in the process judge.

    Args:
        trials: rollouts that each faulty judge is asked about, :data:`MOST` at most.
        seed: of the answers.
    """
    found = list_open_trials(min(trials, MOST), seed)
    return (*_count_answers(found), *_count_ways(found))


def _count_answers(found: Sequence[tuple[JudgeCase, JudgeTrial]]) -> Iterator[TrajectoryFaultRow]:
    rollouts = [make_rollout(number, case, trial.given) for number, (case, trial) in enumerate(found)]
    truths: list[Verdict] = [trial.truth for _, trial in found]
    knowing = Knowing({rollout.record_id: truth for rollout, truth in zip(rollouts, truths, strict=True)})
    faulty = {name: model for name, model in FAULTY.items() if name not in ERRING} | MISTAKEN
    for fault, model in faulty.items():
        juries = {"alone": (model,), "first": (model, knowing), "second": (knowing, model)}
        for place, models in juries.items():
            if fault in MISTAKEN and place == "alone":
                continue
            jury = Jury(tuple(RoleClient(each, load_prompt("judge_answer")) for each in models))
            rows, stopped = _run(Trajectories(jury=jury), rollouts)
            yield _sum_up(("answer", fault, place), rows, truths, stopped)


def _count_ways(found: Sequence[tuple[JudgeCase, JudgeTrial]]) -> Iterator[TrajectoryFaultRow]:
    rollouts = [make_rollout(number, case, case.answer.surface) for number, (case, _) in enumerate(found)]
    for fault, model in UNMARKED.items():
        process = ProcessJury(RoleClient(model, load_prompt("judge_process")))
        rows, stopped = _run(Trajectories(process=process), rollouts)
        # Nobody marked any of these ways: none may be kept.
        yield _sum_up(("process", fault, "alone"), rows, ["incorrect"] * len(rollouts), stopped)


def _run(stage: Trajectories, rollouts: Sequence[Rollout]) -> tuple[list[Row], int]:
    """Return the rows that came, and how many rollouts the run stopped at; none of those makes a row."""
    try:
        return list(stage([rollouts])), 0
    except ServiceError:
        return [], len(rollouts)


def _sum_up(
    names: tuple[str, str, str], rows: Sequence[Row], truths: Sequence[Verdict], stopped: int
) -> TrajectoryFaultRow:
    counts: Counter[str] = Counter()
    for row, truth in zip(rows, truths, strict=False):
        if isinstance(row, Trajectory):
            counts["accepts"] += truth == "incorrect"
        elif isinstance(row, Rejection) and row.reason in ("unscored", "process-unscored"):
            counts["unscored"] += 1
        else:
            counts["drops"] += names[0] == "process" or truth == "correct"
    lost = len(truths) - len(rows) - stopped
    return TrajectoryFaultRow(
        *names, len(truths), counts["accepts"], counts["drops"] + lost, counts["unscored"], stopped
    )


def make_rollout(number: int, case: JudgeCase, given: str) -> Rollout:
    """Return a rollout that finds an answer on the page of the place, and gives it."""
    text = f"Title: {PLACE}\nURL: {ADDRESS}\n\n{PLACE}: {given}\nIn full: {case.answer.surface}"
    calls = (
        Call("image_search", {"image": "img_1"}, show_hits((ADDRESS, PLACE, "A page."))),
        Call("visit", {"url": ADDRESS}, show(text), "The page should say it."),
    )
    turn = Turn("The page says it.", answer=given)
    last = Step(thought=turn.thought, tool="", arguments="", reply=render_turn(turn), observation=None)
    return Rollout(
        record_id=f"rollout-{number:06d}",
        parent_id=f"question-{number:06d}",
        split="sft",
        attempt=0,
        teacher="bench",
        prompt="bench",
        system="",
        question=case.question,
        images=(RolloutImage(id="img_1", picture=PICTURE),),
        steps=(*map(make_step, calls), last),
        answer=given,
        stop_reason="answered",
        reference=case.answer,
        bridges=(),
        path=(PLACE,),
    )
