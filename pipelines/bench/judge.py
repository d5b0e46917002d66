"""The judge card: how the comparer, each judge and all of them together do on near misses and true paraphrases.

Measured by type of answer (research/quality.md 1G, J2). The judges are whatever the configuration names, so that the
cards of models and of scripted judges can be laid side by side.
"""

import asyncio
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

from pipelines.agent.judging import By, Jury, Truth, ask_judge, make_judge_inputs
from pipelines.backends.protocols import ChatModel, ChatReply, ChatRequest
from pipelines.backends.scripted_judge import ScriptedJudge
from pipelines.bench.answer_trials import TYPES, Case, Trial, list_cases
from pipelines.bench.judge_faults import FaultRow, count_faults
from pipelines.bench.shares import Share, make_share
from pipelines.bench.trajectory_faults import TrajectoryFaultRow, count_trajectory_faults
from pipelines.errors import ConfigError, RecordFailed
from pipelines.prompting import Asking, load_prompt
from pipelines.scoring.agreement import Corrected, Rate, cohen_kappa, correct_share
from pipelines.scoring.compare import compare_answers
from schemas.proofs import AnswerType
from schemas.trajectories import Verdict

COMPARER, CASCADE = "comparer", "cascade"
PASS_RATES = (0.05, 0.1, 0.25, 0.5, 0.75, 0.9)
"""True pass rates of a solver for which the wrong share among accepted answers is implied."""
FAULT_TRIALS = 300
"""Answers that each fault of a judge is planted on, and no more than ``FAULTS_A_PAIR`` for each question."""
FAULTS_A_PAIR = 5
CONCURRENCY = 64  # answers in flight


@dataclass(frozen=True, slots=True)
class JudgeRow:
    """How somebody did on one type of answer."""

    who: str
    """``comparer``, a judge by role and name, or ``cascade``: the comparer, then the judges."""
    type: AnswerType
    false_positive: Share
    """Near misses called correct."""
    false_negative: Share
    """True answers called incorrect."""
    true_positive: Share
    """True answers called correct. As with the two above, those left unscored count among the trials."""
    decided_false_positive: Share
    """Near misses called correct, of those that were decided."""
    decided_false_negative: Share
    """True answers called incorrect, of those that were decided."""
    unscored: Share
    """Answers left undecided, of all."""
    disagreement: Share
    """Answers that the judges differ about, of those they were asked; of the cascade alone."""
    kappa: float
    """Cohen's kappa with the truth over the decided answers; 0.0 when none was decided."""
    corrected: Corrected
    """Share of true answers among the planted, made again from the verdicts: how far to trust such a correction."""
    planted: float
    """The same as it was planted."""


@dataclass(frozen=True, slots=True)
class KindRow:
    """Verdicts on one kind of trial."""

    who: str
    type: AnswerType
    kind: str
    truth: Verdict
    correct: int
    incorrect: int
    unscored: int


@dataclass(frozen=True, slots=True)
class ImpliedRow:
    """Wrong answers among the accepted ones of a solver, were all that it gets wrong near misses."""

    who: str
    type: AnswerType
    pass_rate: float
    wrong_share: float
    high: float
    """With the upper end of the false-positive rate's interval, and the lower one of the true-positive rate's."""


@dataclass(frozen=True, slots=True)
class JudgeReport:
    """The card."""

    pairs: int
    seed: int
    rows: tuple[JudgeRow, ...]
    kinds: tuple[KindRow, ...]
    implied: tuple[ImpliedRow, ...]
    faults: tuple[FaultRow, ...]
    trajectory_faults: tuple[TrajectoryFaultRow, ...]
    kappa: float | None
    """Of the first two judges with one another, over what both decided; None with fewer judges or over nothing."""


@dataclass(frozen=True, slots=True)
class _Judged:
    """A trial with what was held of it."""

    trial: Trial
    verdict: Verdict
    by: By = "comparer"


@dataclass(frozen=True, slots=True)
class _Remembering:
    """A model whose replies to the same trial are kept: a judge is asked alone and in the cascade, and paid once."""

    model: ChatModel
    said: dict[tuple[str, int], ChatReply | RecordFailed] = field(default_factory=dict)

    @property
    def name(self) -> str:
        return self.model.name

    @property
    def identity(self) -> str:
        return self.model.identity

    @property
    def reads_inputs(self) -> bool:
        return self.model.reads_inputs

    async def chat(self, request: ChatRequest) -> ChatReply:
        key = (repr(request.messages), len(request.messages))
        if self.model.reads_inputs:
            key = (repr(request.inputs), len(request.messages))
        if key not in self.said:
            try:
                self.said[key] = await self.model.chat(request)
            except RecordFailed as error:
                self.said[key] = error
        said = self.said[key]
        if isinstance(said, RecordFailed):
            raise RecordFailed(said.error, said.detail)
        return said


def make_scripted_judges() -> tuple[Asking, Asking]:
    """Return two judges that err now and then and sometimes together: what a card is shown for without a model."""
    prompt = load_prompt("judge_answer")
    first = ScriptedJudge(fpr=0.06, fnr=0.05, rho=0.3, hedge=0.01, name="scripted-judge-1")
    second = ScriptedJudge(fpr=0.08, fnr=0.04, rho=0.3, empty=0.01, name="scripted-judge-2")
    return Asking(first, prompt), Asking(second, prompt)


def run_judge_bench(
    pairs: int, seed: int, judges: Sequence[Asking] = (), concurrency: int = CONCURRENCY
) -> JudgeReport:
    """Judge the near misses and paraphrases of ``pairs`` answers of each type, half of them from held-out words.

    Args:
        pairs: questions of each type; each has six answers or more.
        seed: of the plants.
        judges: asked of every answer alone, and in the cascade of what the comparer leaves open.
        concurrency: answers in flight.

    Raises:
        ConfigError: if ``pairs`` is less than two or ``concurrency`` less than one.
        ServiceError: if a judge is away.
    """
    if pairs < 2:
        raise ConfigError(f"bench judge: pairs is {pairs}, allowed are 2 and more (one for each half)")
    if concurrency < 1:
        raise ConfigError(f"bench judge: concurrency is {concurrency}, allowed are 1 and more")
    return asyncio.run(_run(pairs, seed, tuple(judges), concurrency))


async def _run(pairs: int, seed: int, judges: tuple[Asking, ...], concurrency: int) -> JudgeReport:
    kept = tuple(replace(judge, model=_Remembering(judge.model)) for judge in judges)
    names = [f"judge {number}: {judge.model.name}" for number, judge in enumerate(judges, start=1)]
    rows: list[JudgeRow] = []
    kinds: list[KindRow] = []
    spoken: list[tuple[Verdict, ...]] = []
    for type_ in TYPES:
        said = await _judge_type(type_, pairs, seed, kept, concurrency)
        spoken += [tuple(each.verdict for each in answer[1:-1]) for answer in said]
        for place, who in enumerate((COMPARER, *names, CASCADE)):
            judged = [answer[place] for answer in said]
            rows.append(_measure(who, type_, judged))
            kinds.extend(_count_kinds(who, type_, judged))
    implied = tuple(_imply(row, rate) for row in rows for rate in PASS_RATES)
    faults = await count_faults(min(FAULT_TRIALS, FAULTS_A_PAIR * pairs), seed)
    ways, kappa = await asyncio.to_thread(count_trajectory_faults, FAULTS_A_PAIR * pairs, seed), _compare_judges(spoken)
    return JudgeReport(pairs, seed, tuple(rows), tuple(kinds), implied, faults, ways, kappa)


async def _judge_type(
    type_: AnswerType, pairs: int, seed: int, judges: tuple[Asking, ...], concurrency: int
) -> list[tuple[_Judged, ...]]:
    """Return for each answer of a type what the comparer, each judge and the cascade hold of it."""
    places = asyncio.Semaphore(concurrency)

    async def judge(case: Case, trial: Trial, name: str) -> tuple[_Judged, ...]:
        async with places:
            return await _judge_trial(case, trial, judges, name)

    cases = list(list_cases(type_, pairs, seed))
    return await asyncio.gather(
        *(
            judge(case, trial, f"{seed}:{type_}:{number}:{place}")
            for number, case in enumerate(cases)
            for place, trial in enumerate(case.trials)
        )
    )


async def _judge_trial(case: Case, trial: Trial, judges: tuple[Asking, ...], name: str) -> tuple[_Judged, ...]:
    truth: Truth = "correct" if trial.truth == "correct" else "incorrect"
    inputs = make_judge_inputs(case.question, trial.given, case.answer, name, truth)
    found = [_Judged(trial, compare_answers(trial.given, case.answer))]
    for judge in judges:
        verdict, _ = await ask_judge(judge, inputs)
        found.append(_Judged(trial, verdict, "judge"))
    judgement = await Jury(judges).judge(case.question, trial.given, case.answer, name, truth)
    return (*found, _Judged(trial, judgement.verdict, judgement.by))


def _measure(who: str, type_: AnswerType, judged: Sequence[_Judged]) -> JudgeRow:
    misses = [each.verdict for each in judged if each.trial.truth == "incorrect"]
    hits = [each.verdict for each in judged if each.trial.truth == "correct"]
    decided = [each for each in judged if each.verdict != "unscored"]
    asked = [each for each in judged if who == CASCADE and each.by != "comparer"]
    accepted, refused, taken = hits.count("correct"), hits.count("incorrect"), misses.count("correct")
    return JudgeRow(
        who,
        type_,
        false_positive=make_share(taken, len(misses)),
        false_negative=make_share(refused, len(hits)),
        true_positive=make_share(accepted, len(hits)),
        decided_false_positive=make_share(taken, taken + misses.count("incorrect")),
        decided_false_negative=make_share(refused, refused + accepted),
        unscored=make_share(len(judged) - len(decided), len(judged)),
        disagreement=make_share(sum(each.by == "disagreement" for each in asked), len(asked)),
        kappa=_kappa((each.trial.truth, each.verdict) for each in decided),
        corrected=_check_correction(judged),
        planted=len(hits) / len(judged),
    )


def _check_correction(judged: Sequence[_Judged]) -> Corrected:
    """Calibrate on every second answer of each kind, and correct the accepted share of the others."""
    seen: Counter[str] = Counter()
    known, new = list[_Judged](), list[_Judged]()
    for each in judged:
        (new if seen[each.trial.kind] % 2 else known).append(each)
        seen[each.trial.kind] += 1
    wrong = [each.verdict for each in known if each.trial.truth == "incorrect"]
    right = [each.verdict for each in known if each.trial.truth == "correct"]
    return correct_share(
        Rate(sum(each.verdict == "correct" for each in new), len(new)),
        Rate(len(wrong) - wrong.count("correct"), len(wrong)),
        Rate(right.count("correct"), len(right)),
    )


def _imply(row: JudgeRow, pass_rate: float) -> ImpliedRow:
    taken, kept = row.false_positive, row.true_positive
    return ImpliedRow(
        row.who,
        row.type,
        pass_rate,
        _share_wrong(pass_rate, taken.share, kept.share),
        _share_wrong(pass_rate, taken.high, kept.low),
    )


def _share_wrong(pass_rate: float, taken: float, kept: float) -> float:
    """Return the share of wrong answers among those accepted; 0.0 when none is accepted."""
    wrong, right = (1 - pass_rate) * taken, pass_rate * kept
    return wrong / (wrong + right) if wrong + right else 0.0


def _kappa(pairs: Iterable[tuple[str, str]]) -> float:
    labels = list(pairs)
    return cohen_kappa([first for first, _ in labels], [second for _, second in labels]) if labels else 0.0


def _compare_judges(spoken: Sequence[tuple[Verdict, ...]]) -> float | None:
    if not spoken or len(spoken[0]) < 2:
        return None
    decided = [(said[0], said[1]) for said in spoken if "unscored" not in said[:2]]
    return _kappa(decided) if decided else None


def _count_kinds(who: str, type_: AnswerType, judged: Sequence[_Judged]) -> list[KindRow]:
    rows = []
    for kind, truth in dict.fromkeys((each.trial.kind, each.trial.truth) for each in judged):
        verdicts = [each.verdict for each in judged if each.trial.kind == kind]
        counts = (verdicts.count("correct"), verdicts.count("incorrect"), verdicts.count("unscored"))
        rows.append(KindRow(who, type_, kind, truth, *counts))
    return rows
