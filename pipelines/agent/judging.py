"""Judging answers and the process that led to them.

The typed comparer decides what it can; judges decide the rest. A judge sees the question, the reference with its other
forms, and the short answer: no reasoning, no other attempt, no other judge. Two unparsable replies, an empty or cut
reply, a time-out and judges that disagree leave an answer unscored: never right, never wrong, never lost
(research/quality.md 1G).

A process judge marks a rollout in four respects (OpenSearch-VL, 3.3). It sees the question, the steps and the given
answer, never the reference: a judge that knows the answer marks the answer. A reply without marks leaves the rollout
unscored. In the place of marks it may verify two statements: that the way is coherent, and that it is plausible
(SenseNova-MARS, 3.3).
"""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from statistics import fmean
from typing import Annotated, Final, Literal, Self, TypeVar

from pydantic import BeforeValidator, Field, model_validator

from pipelines.agent.observations import cut_text
from pipelines.errors import GateNotMet, RecordFailed
from pipelines.graph.answers import LONGEST_ANSWER, compare_answers
from pipelines.ids import digest_value
from pipelines.names import strip_invisible
from pipelines.services.prompting import BadReply, Prompted, RoleClient, read_reply, render_messages
from pipelines.services.protocols import ChatReply, ChatRequest, Message
from schemas.datasets import Process, Rollout, Step, Verdict
from schemas.manifest import ModelEntry
from schemas.proofs import Answer
from schemas.tasks import (
    JudgeAnswerInputs,
    JudgeOracle,
    JudgeProcessInputs,
    ProcessReply,
    VerificationReply,
    VerifyTrajectoryInputs,
)

_WORDS: dict[str, Verdict] = {
    "correct": "correct",
    "yes": "correct",
    "true": "correct",
    "incorrect": "incorrect",
    "wrong": "incorrect",
    "no": "incorrect",
    "false": "incorrect",
}
_KEYS = ("verdict", "judgement", "judgment", "correct")
_THOUGHT, _THOUGHT_END = "<think>", "</think>"
_LONGEST = 1 << 16
"""Longest reply that is read, characters; a longer one gives no verdict."""
_FENCE = re.compile(r"```(?:json)?\s*(?P<body>.*?)\s*```", re.DOTALL)
_LABELLED = re.compile(r"[\s*_#>-]*(?:final )?(?:verdict|judgement|judgment)[\s*_]*:(?P<value>.*)", re.IGNORECASE)


def parse_verdict(reply: str) -> Verdict:
    """Return the one verdict that a reply gives, else ``unscored``.

    Read are: a JSON object with one of ``verdict``, ``judgement``, ``correct`` (fenced or not); the bare word
    (``correct``, ``incorrect``, ``yes``, ``no``); or reasoning whose last line is ``Verdict: <word>``, the only such.
    A train of thought before it, which servers without a reasoning parser leave in, is skipped; one without an end
    leaves nothing to read.
    """
    if len(reply) > _LONGEST:
        return "unscored"
    _, ended, rest = reply.rpartition(_THOUGHT_END)
    text = rest.strip()
    if not ended and text.startswith(_THOUGHT):
        return "unscored"
    fenced = _FENCE.fullmatch(text)
    if fenced:
        text = fenced["body"]
    if text.startswith("{"):
        return _read_object(text)
    lines = [line for line in text.splitlines() if line.strip()]
    if not lines:
        return "unscored"
    labelled = [match for line in lines if (match := _LABELLED.fullmatch(line))]
    if labelled:
        last = _LABELLED.fullmatch(lines[-1])
        return _read_word(last["value"]) if last and len(labelled) == 1 else "unscored"
    return _read_word(lines[0]) if len(lines) == 1 else "unscored"


def _read_word(text: str) -> Verdict:
    return _WORDS.get(text.strip(" \t*_`\"'.!").lower(), "unscored")


def _read_object(text: str) -> Verdict:
    try:
        pairs = json.loads(text, object_pairs_hook=list)
    except (ValueError, RecursionError):
        return "unscored"
    found = [value for key, value in pairs if isinstance(key, str) and key.strip().lower() in _KEYS]
    if len(found) != 1:
        return "unscored"
    value = found[0]
    if isinstance(value, bool):
        return "correct" if value else "incorrect"
    return _read_word(value) if isinstance(value, str) else "unscored"


By = Literal["comparer", "judge", "judges", "disagreement", "nobody"]
"""Who decided. ``judges``: several that agree. ``disagreement``: they differ. ``nobody``: no judge is configured, or
no reply could be parsed."""
Truth = Literal["correct", "incorrect", "unknown"]
VERSION = 1
"""Version of the order of judging; part of a verdict's identity."""
MAX_ALIASES = 50
"""Most other forms that a judge sees; a well-known title has hundreds of redirects."""
_ECHOED = 4000
"""Characters of an unparsable reply that the repair request quotes."""
_REPAIR = (
    'That reply gives no single verdict. Reply again with one line and nothing else: "Verdict: correct" or '
    '"Verdict: incorrect".'
)


@dataclass(frozen=True, slots=True)
class Judgement:
    """The verdict on an answer."""

    verdict: Verdict
    by: By
    detail: str = ""
    """Why there is no verdict; empty otherwise."""


@dataclass(frozen=True, slots=True)
class Jury:
    """The typed comparer and the judges behind it: none, one, or several that must agree."""

    judges: tuple[RoleClient, ...] = ()

    @property
    def identity(self) -> str:
        return digest_value([VERSION, _REPAIR, MAX_ALIASES, [judge.identity for judge in self.judges]])

    def prompts(self) -> dict[str, str]:
        return {judge.prompt.label: judge.prompt.digest for judge in self.judges}

    def models(self) -> tuple[ModelEntry, ...]:
        return tuple(judge.describe("judge") for judge in self.judges)

    async def judge(self, question: str, given: str, answer: Answer, trial: str, truth: Truth = "unknown") -> Judgement:
        """Return whether a short answer is the reference.

        The first unparsable judge ends it, as the others could not change the outcome.
        """
        verdict = compare_answers(given, answer)
        if verdict != "unscored":
            return Judgement(verdict, "comparer")
        if len(given) > LONGEST_ANSWER:
            # A judge that is shown a page finds the answer in it.
            return Judgement("unscored", "nobody", f"{len(given):,} characters, allowed are {LONGEST_ANSWER}")
        if not self.judges:
            return Judgement("unscored", "nobody", "the comparer leaves it open and there is no judge")
        inputs = make_judge_inputs(question, given, answer, trial, truth)
        verdicts: list[Verdict] = []
        for judge in self.judges:
            verdict, problem = await ask_judge(judge, inputs)
            if verdict == "unscored":
                return Judgement("unscored", "nobody", f"{judge.model.name}: {problem}")
            verdicts.append(verdict)
        if len(set(verdicts)) > 1:
            said = ", ".join(f"{judge.model.name}: {one}" for judge, one in zip(self.judges, verdicts, strict=True))
            return Judgement("unscored", "disagreement", said)
        return Judgement(verdicts[0], "judge" if len(verdicts) == 1 else "judges")


COMPARER_ALONE = Jury()
"""A jury without judges: what the comparer leaves open stays unscored."""


def make_judge_inputs(
    question: str, given: str, answer: Answer, trial: str, truth: Truth = "unknown"
) -> JudgeAnswerInputs:
    """Return a judge's inputs: the reference as the page writes it, and its other forms.

    The given answer is put on one line without invisible characters, which could hide text or fake its end.
    """
    forms = dict.fromkeys(form for form in (answer.value, *answer.aliases) if form and form != answer.surface)
    return JudgeAnswerInputs(
        question=question,
        reference=answer.surface,
        aliases=tuple(forms)[:MAX_ALIASES],
        answer_type=answer.type,
        given=" ".join(strip_invisible(given).split()),
        oracle=JudgeOracle(trial=trial, truth=truth),
    )


async def ask_judge(judge: RoleClient, inputs: JudgeAnswerInputs) -> tuple[Verdict, str]:
    """Return one judge's verdict, or the reason why it is missing.

    The reply is free text, as judges do better with reasoning before the verdict. A reply without a verdict is repaired
    once; then the answer is unscored.
    """
    messages = render_messages(judge.prompt, inputs)
    problem = ""
    for _ in range(2):
        request = ChatRequest("judge_answer", judge.prompt.label, messages, inputs, judge.sampling)
        try:
            said = await judge.model.chat(request)
        except RecordFailed as error:
            return "unscored", str(error)
        verdict, problem = read_verdict(said)
        if verdict != "unscored":
            return verdict, ""
        echo = said.text[:_ECHOED].encode("utf-8", "replace").decode().strip() or "(nothing)"
        messages = (*messages, Message("assistant", echo), Message("user", _REPAIR))
    return "unscored", f"no verdict in two replies ({problem})"


def read_verdict(said: ChatReply) -> tuple[Verdict, str]:
    """Return the verdict of a reply, or the reason why it has none; a truncated or refused reply has none."""
    if said.ended != "whole":
        return "unscored", f"{said.ended} reply"
    if not said.text.strip():
        return "unscored", "empty reply"
    verdict = parse_verdict(said.text)
    return verdict, f"not one verdict: {said.text.strip()[-80:]!r}" if verdict == "unscored" else ""


LEAST_SCORED = 200
"""Answers before their unscored share is looked at: it is within 6 points of the true one, 19 times of 20."""


class UnscoredWatch:
    """Counts unscored answers and stops the run if there are too many.

    All attempts of a stage share one. It counts answers in the order of this run, recorded replies included: near the
    limit a resumed run may stop where the first did not. The limit decides no row: with a higher limit the run
    continues without a new request.
    """

    def __init__(self, limit: float, least: int = LEAST_SCORED) -> None:
        self._limit, self._least = limit, least
        self._unscored = self._seen = 0

    def add(self, verdict: Verdict, problem: str = "") -> None:
        """Count an answer."""
        self.merge((verdict == "unscored", 1), problem)

    @property
    def counts(self) -> tuple[int, int]:
        """How many answers were unscored, of how many."""
        return self._unscored, self._seen

    def merge(self, counts: tuple[int, int], problem: str = "") -> None:
        """Count answers that were counted elsewhere, or one."""
        self._unscored, self._seen = self._unscored + counts[0], self._seen + counts[1]
        unscored, seen = self._unscored, self._seen
        if seen >= self._least and unscored > self._limit * seen:
            raise GateNotMet(
                f"judging: {unscored:,} of {seen:,} answers are unscored, allowed is a share of {self._limit:g} "
                f"(runtime.unscored); the last one: {problem or 'no reason given'}"
            )


TASK: Final = "judge_process"
ROLE: Final = "judge"
PROCESS_JUDGING_VERSION = 1
"""Version of how a transcript is shown and a reply is read."""
LONGEST_OBSERVATION = 1500
"""Characters of a step's observation that a judge sees."""
LONGEST_WORDS = 1500
"""Characters of a thought, of a call's arguments, and of the answer that a judge sees."""
_PROCESS_JUDGING_ECHOED = 4000
"""Characters of a reply without marks that the judge is shown again."""
_PROCESS_JUDGING_REPAIR = (
    "That reply gives no marks that can be read: {problem}. Reply again with one JSON object and nothing else, with "
    "the keys relevance, progression, evidence and cross_modal, each a whole number from 1 to 5."
)


def _check_mark(value: object) -> object:
    if isinstance(value, bool) or not isinstance(value, int):
        raise ValueError("a mark is a whole number from 1 to 5")
    return value


Mark = Annotated[int, BeforeValidator(_check_mark), Field(ge=1, le=5)]


class Marks(ProcessReply):
    """Four marks, whole numbers from 1 to 5."""

    relevance: Mark
    progression: Mark
    evidence: Mark
    cross_modal: Mark


def _check_statement(value: object) -> object:
    if not isinstance(value, bool):
        raise ValueError("the value is true or false")
    return value


Statement = Annotated[bool, BeforeValidator(_check_statement)]


class Statements(VerificationReply):
    """Two statements, and the step that makes one of them false: one is named where one is false, and else none."""

    coherent: Statement
    plausible: Statement

    @model_validator(mode="after")
    def check_step(self) -> Self:
        """Refuse a reply whose step and statements contradict each other."""
        if (self.step > 0) == (self.coherent and self.plausible) or self.step < 0:
            raise ValueError(f"step is {self.step}; it is 0 exactly where both are true")
        return self


WayT = TypeVar("WayT", Marks, Statements)
_REPAIRS: Mapping[type[ProcessReply | VerificationReply], str] = {
    Marks: _PROCESS_JUDGING_REPAIR,
    Statements: (
        "That reply says nothing that can be read: {problem}. Reply again with one JSON object and nothing else, with "
        "the keys coherent and plausible, each true or false, and step, the number of the first step that is not so, 0 "
        "where both are true."
    ),
}
_WANTED: Mapping[type[ProcessReply | VerificationReply], str] = {Marks: "marks", Statements: "statements"}


@dataclass(frozen=True, slots=True)
class ProcessJudgement:
    """The marks of a rollout's process."""

    process: Process | None
    """None if unscored."""
    problem: str = ""
    """Why it is unscored; empty otherwise."""


@dataclass(frozen=True, slots=True)
class ProcessJury(Prompted):
    """The process judge."""

    judge: RoleClient

    @property
    def identity(self) -> str:
        return digest_value(
            [PROCESS_JUDGING_VERSION, _PROCESS_JUDGING_REPAIR, LONGEST_OBSERVATION, LONGEST_WORDS, self.judge.identity]
        )

    def models(self) -> tuple[ModelEntry, ...]:
        return (self.judge.describe(ROLE),)

    async def mark(self, rollout: Rollout) -> ProcessJudgement:
        """Return the marks of a rollout. A reply without four marks is repaired once; then the rollout is unscored."""
        given = await ask_about_way(self.judge, TASK, rollout, make_process_inputs(rollout), Marks)
        if isinstance(given, str):
            return ProcessJudgement(None, given)
        return ProcessJudgement(_sum_up(given, self.judge.model.name))


async def ask_about_way(
    judge: RoleClient, task: str, rollout: Rollout, inputs: JudgeProcessInputs, model: type[WayT]
) -> WayT | str:
    """Return what a judge says of a rollout, or why it says nothing. An unusable reply is repaired once."""
    shown = tuple(image.picture.sha256 for image in rollout.images[:1])
    messages: tuple[Message, ...] = render_messages(judge.prompt, inputs, shown)
    problem = ""
    for _ in range(2):
        request = ChatRequest(task, judge.prompt.label, messages, inputs, judge.sampling)
        try:
            said = await judge.model.chat(request)
        except RecordFailed as error:
            return f"{judge.model.name}: {error}"
        try:
            return read_reply(said, model)
        except BadReply as error:
            problem = str(error)
        echo = said.text[:_PROCESS_JUDGING_ECHOED].encode("utf-8", "replace").decode().strip() or "(nothing)"
        messages = (*messages, Message("assistant", echo), Message("user", _REPAIRS[model].format(problem=problem)))
    return f"{judge.model.name}: no {_WANTED[model]} in two replies ({problem})"


@dataclass(frozen=True, slots=True)
class Verifier(Prompted):
    """The process judge as a verifier of trajectories: two statements in the place of four marks."""

    judge: RoleClient

    @property
    def identity(self) -> str:
        shown = [PROCESS_JUDGING_VERSION, LONGEST_OBSERVATION, LONGEST_WORDS]
        return digest_value([*shown, _REPAIRS[Statements], self.judge.identity])

    def models(self) -> tuple[ModelEntry, ...]:
        return (self.judge.describe(ROLE),)

    async def verify(self, rollout: Rollout) -> VerificationReply | str:
        """Return what the judge says of a rollout, or why it says nothing."""
        inputs = VerifyTrajectoryInputs(**dict(make_process_inputs(rollout)))
        given = await ask_about_way(self.judge, "verify_trajectory", rollout, inputs, Statements)
        if not isinstance(given, str) and given.step > len(rollout.steps):
            return f"{self.judge.model.name}: it names step {given.step} of {len(rollout.steps)}"
        return given


def make_process_inputs(rollout: Rollout) -> JudgeProcessInputs:
    """Return the process judge's inputs for a rollout."""
    return JudgeProcessInputs(
        question=rollout.question,
        answer=_show(rollout.answer, LONGEST_WORDS),
        steps="\n\n".join(_show_step(number, step) for number, step in enumerate(rollout.steps, 1)),
        pictures=len(rollout.images),
        trial=rollout.record_id,
    )


def _show_step(number: int, step: Step) -> str:
    lines = [f"Step {number}", f"  thought: {_show(step.thought, LONGEST_WORDS)}"]
    if step.tool:
        lines.append(f"  call: {_show(step.tool, LONGEST_WORDS)} {_show(step.arguments, LONGEST_WORDS)}")
    observation = step.observation
    if observation is not None:
        state = "came back" if observation.ok else f"failed ({_show(observation.error, LONGEST_WORDS)})"
        made = f" with {', '.join(observation.images)}" if observation.images else ""
        lines.append(f"  {state}{made}: {_show(observation.text, LONGEST_OBSERVATION)}")
    return "\n".join(lines)


def _show(text: str, limit: int) -> str:
    return cut_text(" ".join(strip_invisible(text).split()), limit)


def _sum_up(marks: ProcessReply, judge: str) -> Process:
    four = (marks.relevance, marks.progression, marks.evidence, marks.cross_modal)
    return Process(**dict(marks), score=fmean(four), judge=judge)
