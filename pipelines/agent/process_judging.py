"""How was an answer come by? A judge marks the way in four respects, and may fail to say (OpenSearch-VL, 3.3).

It sees the question, the steps and the given answer, never the reference: a judge that knows the answer marks the
answer. What it cannot be understood to say leaves a rollout unscored: never kept, never lost.
"""

from dataclasses import dataclass
from statistics import fmean
from typing import Annotated, Final

from pydantic import BeforeValidator, Field

from pipelines.agent.layout import cut_text
from pipelines.backends.protocols import ChatRequest, Message
from pipelines.errors import RecordFailed
from pipelines.ids import digest_value
from pipelines.names import strip_invisible
from pipelines.prompting import Asking, render_messages
from pipelines.structured import BadReply, read_reply
from schemas.manifest import ModelEntry
from schemas.rollouts import Rollout, Step
from schemas.tasks import JudgeProcessInputs, ProcessReply
from schemas.trajectories import Process

TASK: Final = "judge_process"
ROLE: Final = "process_judge"
VERSION = 1
"""Of how a transcript is shown and a reply is read; part of what decides a mark."""
LONGEST_OBSERVATION = 1500
"""Characters of what came back that a judge is shown of a step."""
LONGEST_WORDS = 1500
"""Characters of a thought or of a call's arguments, and of the answer."""
_ECHOED = 4000
"""Characters of a reply without marks that the judge is shown again."""
_REPAIR = (
    "That reply gives no marks that can be read: {problem}. Reply again with one JSON object and nothing else, with "
    "the keys relevance, progression, evidence and cross_modal, each a whole number from 1 to 5."
)


def _check_mark(value: object) -> object:
    if isinstance(value, bool) or not isinstance(value, int):
        raise ValueError("a mark is a whole number from 1 to 5")
    return value


Mark = Annotated[int, BeforeValidator(_check_mark), Field(ge=1, le=5)]


class Marks(ProcessReply):
    """Four marks held to be whole numbers from 1 to 5."""

    relevance: Mark
    progression: Mark
    evidence: Mark
    cross_modal: Mark


@dataclass(frozen=True, slots=True)
class ProcessJudgement:
    """What is held of a way."""

    process: Process | None
    """None where it is unscored."""
    problem: str = ""
    """Why it is; empty where there are marks."""


@dataclass(frozen=True, slots=True)
class ProcessJury:
    """The judge of ways to answers."""

    judge: Asking

    @property
    def identity(self) -> str:
        """Digest of everything that decides the marks of a rollout."""
        return digest_value([VERSION, _REPAIR, LONGEST_OBSERVATION, LONGEST_WORDS, self.judge.identity])

    def prompts(self) -> dict[str, str]:
        """The marking prompt, by label."""
        return {self.judge.prompt.label: self.judge.prompt.digest}

    def models(self) -> tuple[ModelEntry, ...]:
        """The judge."""
        return (self.judge.describe(ROLE),)

    async def mark(self, rollout: Rollout) -> ProcessJudgement:
        """Return the marks of a rollout's way. A reply without four of them is repaired once, then it is unscored.

        Raises:
            ServiceError: if the judge is away.
        """
        inputs = make_process_inputs(rollout)
        shown = tuple(image.picture.sha256 for image in rollout.images[:1])
        messages = render_messages(self.judge.prompt, inputs, shown)
        problem = ""
        for _ in range(2):
            request = ChatRequest(TASK, self.judge.prompt.label, messages, inputs, self.judge.sampling)
            try:
                said = await self.judge.model.chat(request)
            except RecordFailed as error:
                return ProcessJudgement(None, f"{self.judge.model.name}: {error}")
            try:
                return ProcessJudgement(_sum_up(read_reply(said, Marks), self.judge.model.name))
            except BadReply as error:
                problem = str(error)
            echo = said.text[:_ECHOED].encode("utf-8", "replace").decode().strip() or "(nothing)"
            messages = (*messages, Message("assistant", echo), Message("user", _REPAIR.format(problem=problem)))
        return ProcessJudgement(None, f"{self.judge.model.name}: no marks in two replies ({problem})")


def make_process_inputs(rollout: Rollout) -> JudgeProcessInputs:
    """Return what a judge is shown of a rollout."""
    return JudgeProcessInputs(
        question=rollout.question,
        answer=_show(rollout.answer, LONGEST_WORDS),
        steps="\n\n".join(_show_step(number, step) for number, step in enumerate(rollout.steps, 1)),
        pictures=len(rollout.images),
        trial=rollout.record_id,
    )


def _show_step(number: int, step: Step) -> str:
    """Return a step as lines that begin with what they hold; what was said or came back is indented under it."""
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
    """Return text on one line, cut to a length, without characters that nobody sees: it cannot look like a step."""
    return cut_text(" ".join(strip_invisible(text).split()), limit)


def _sum_up(marks: ProcessReply, judge: str) -> Process:
    four = (marks.relevance, marks.progression, marks.evidence, marks.cross_modal)
    return Process(**dict(marks), score=fmean(four), judge=judge)
