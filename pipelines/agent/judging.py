"""Is an answer right? The typed comparer decides what it can; judges are asked of the rest, and may fail to say.

A judge sees the question, the reference with its other forms, and the short answer: no reasoning, no other attempt, no
other judge. Garbage twice, an empty or cut reply, a time-out and judges that differ all leave an answer unscored: never
right, never wrong, never lost (research/quality.md 1G).
"""

import threading
from dataclasses import dataclass
from typing import Literal

from pipelines.backends.protocols import ChatReply, ChatRequest, Message
from pipelines.errors import GateNotMet, RecordFailed
from pipelines.ids import digest_value
from pipelines.names import strip_invisible
from pipelines.prompting import Asking, render_messages
from pipelines.scoring.compare import LONGEST_ANSWER, compare_answers
from pipelines.scoring.verdicts import parse_verdict
from schemas.manifest import ModelEntry
from schemas.proofs import Answer
from schemas.tasks import JudgeAnswerInputs, JudgeOracle
from schemas.trajectories import Verdict

By = Literal["comparer", "judge", "judges", "disagreement", "nobody"]
"""Who decided. ``judges``: all of several. ``disagreement``: they differ. ``nobody``: there is no judge, or none to
be understood."""
Truth = Literal["correct", "incorrect", "unknown"]
ROLES = ("judge", "second_judge")
VERSION = 1
"""Of the order in which an answer is judged; part of what decides a verdict."""
MAX_ALIASES = 50
"""Other forms that a judge is shown: redirects of a well-known title run into hundreds."""
_ECHOED = 4000
"""Characters of a reply without a verdict that the judge is shown again."""
_REPAIR = (
    'That reply gives no single verdict. Reply again with one line and nothing else: "Verdict: correct" or '
    '"Verdict: incorrect".'
)


@dataclass(frozen=True, slots=True)
class Judgement:
    """What is held of an answer."""

    verdict: Verdict
    by: By
    detail: str = ""
    """Why nobody decided, for a reader; empty for a verdict."""


@dataclass(frozen=True, slots=True)
class Jury:
    """The typed comparer and the judges behind it: none, one, or several that have to agree."""

    judges: tuple[Asking, ...] = ()

    @property
    def identity(self) -> str:
        """Digest of everything that decides a verdict beside the comparer, whose rules are code."""
        return digest_value([VERSION, _REPAIR, MAX_ALIASES, [judge.identity for judge in self.judges]])

    def prompts(self) -> dict[str, str]:
        """The judging prompts, by label."""
        return {judge.prompt.label: judge.prompt.digest for judge in self.judges}

    def models(self) -> tuple[ModelEntry, ...]:
        """The judges."""
        return tuple(judge.describe(role) for judge, role in zip(self.judges, _name_roles(self.judges), strict=True))

    async def judge(self, question: str, given: str, answer: Answer, trial: str, truth: Truth = "unknown") -> Judgement:
        """Return whether a short answer is the reference.

        The first judge that cannot be understood ends it, as the others could not change the outcome.

        Args:
            question: as it was asked.
            given: the extracted answer alone.
            answer: the reference.
            trial: names this answer to a scripted judge, for its luck; real models never see it.
            truth: the same, where it is known.

        Raises:
            ServiceError: if a judge is away.
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
"""What it leaves open stays unscored."""


def make_judge_inputs(
    question: str, given: str, answer: Answer, trial: str, truth: Truth = "unknown"
) -> JudgeAnswerInputs:
    """Return what a judge is shown of an answer: the page's writing as the reference, all else as other forms.

    The given answer stands on one line and has no characters that a reader does not see: with them text hides what it
    says, or seems to end where it does not.
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


async def ask_judge(judge: Asking, inputs: JudgeAnswerInputs) -> tuple[Verdict, str]:
    """Return one judge's verdict, and why there is none.

    The reply is free text, as a judge does better with reasoning before its verdict. One without a verdict is repaired
    once; a judge that fails the record leaves it unscored.

    Raises:
        ServiceError: if the judge is away.
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
    """Return the verdict of a reply, and why there is none; a reply that was cut or refused gives none."""
    if said.ended != "whole":
        return "unscored", f"{said.ended} reply"
    if not said.text.strip():
        return "unscored", "empty reply"
    verdict = parse_verdict(said.text)
    return verdict, f"not one verdict: {said.text.strip()[-80:]!r}" if verdict == "unscored" else ""


def _name_roles(judges: tuple[Asking, ...]) -> tuple[str, ...]:
    return (*ROLES, *(f"judge_{number}" for number in range(3, len(judges) + 1)))[: len(judges)]


class UnscoredWatch:
    """Counts the answers that nobody could score and stops the run when they are too many.

    One is shared by all attempts of a stage; it may be told from any task or thread. It counts what this run sees as it
    comes, recorded replies among it: with a share near the limit another order, or a run that goes on with what another
    one left, may stop where that one did not. The limit decides no row: under a higher one a run goes on, and asks
    nothing again.

    Args:
        limit: largest share of unscored answers.
        least: answers before the share is looked at.
    """

    def __init__(self, limit: float, least: int) -> None:
        self._limit, self._least = limit, least
        self._unscored = self._seen = 0
        self._lock = threading.Lock()

    def add(self, verdict: Verdict, problem: str = "") -> None:
        """Count an answer.

        Args:
            verdict: what is held of it.
            problem: why it is unscored, for the message.

        Raises:
            GateNotMet: if more than the share are unscored.
        """
        with self._lock:
            self._seen += 1
            self._unscored += verdict == "unscored"
            unscored, seen = self._unscored, self._seen
        if seen >= self._least and unscored > self._limit * seen:
            raise GateNotMet(
                f"judging: {unscored:,} of {seen:,} answers are unscored, allowed is a share of {self._limit:g} "
                f"(judging.max_unscored); the last one: {problem or 'nobody says why'}"
            )
