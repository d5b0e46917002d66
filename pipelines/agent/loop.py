"""The ReAct loop: think, call one tool, read, until an answer or a limit."""

from dataclasses import dataclass, field

from pipelines.agent.tools import ToolBox
from pipelines.agent.transcript import BadTurn, Turn, neutralise_markup, parse_turn, render_messages
from pipelines.backends.protocols import ChatModel, ChatRequest, Message, Sampling
from pipelines.errors import ConfigError, RecordFailed
from pipelines.ids import digest_value, make_record_id
from pipelines.prompting import Prompt
from pipelines.prompting import render_messages as render_prompt
from schemas.groundings import Grounding, Picture
from schemas.rollouts import Rollout, RolloutImage, Step, StopReason
from schemas.tasks import ActInputs, TeacherOracle

TASK = "act"


@dataclass(frozen=True, slots=True)
class Limits:
    """Where a rollout ends without an answer.

    Attributes:
        turns: turns of the model, the answering one included.
        context: characters of all messages together; checked before each turn.
    """

    turns: int = 30
    context: int = 200_000


@dataclass(frozen=True, slots=True)
class Agent:
    """A teacher with its tools and settings; the same agent makes every rollout of a stage."""

    model: ChatModel
    prompt: Prompt
    tools: ToolBox
    limits: Limits = Limits()
    sampling: Sampling = field(default_factory=lambda: Sampling(temperature=0.7, top_p=0.95))

    @property
    def identity(self) -> str:
        """Digest of everything that decides a rollout beside the question and the attempt."""
        limits = [self.limits.turns, self.limits.context]
        sampling = [self.sampling.temperature, self.sampling.top_p, self.sampling.max_tokens]
        return digest_value([self.model.identity, self.prompt.digest, self.tools.identity, limits, sampling])


@dataclass(frozen=True, slots=True)
class Course:
    """How far a rollout has come."""

    steps: tuple[Step, ...]
    images: tuple[RolloutImage, ...]
    answer: str = ""
    stop_reason: StopReason | None = None


async def run_rollout(agent: Agent, question: Grounding, oracle: TeacherOracle) -> Rollout:
    """Run one attempt at one question.

    Args:
        agent: teacher, prompt, tools, limits.
        question: must have a picture.
        oracle: seen by scripted teachers only; its ``attempt`` numbers the sample.

    Returns:
        The rollout, ended by an answer, by a turn that does not parse (kept as the last step) or by a limit.

    Raises:
        RecordFailed: ``no-picture`` if the question has none.
        ServiceError: if the model or a tool's backend is away.
    """
    if question.picture is None:
        raise RecordFailed("no-picture", f"question {question.record_id} has no picture to begin with")
    opening = _render_opening(agent, question.text, question.picture, oracle)
    course = Course((), (RolloutImage(id="img_1", picture=question.picture),))
    while course.stop_reason is None:
        course = await _take_turn(agent, opening, course, oracle)
    return Rollout(
        record_id=make_record_id(
            "rollout", [question.record_id, oracle.attempt, agent.model.identity, agent.prompt.digest]
        ),
        parent_id=question.record_id,
        split=question.split,
        attempt=oracle.attempt,
        teacher=agent.model.name,
        prompt=agent.prompt.label,
        system=opening[0].text,
        question=opening[1].text,
        images=course.images,
        steps=course.steps,
        answer=course.answer,
        stop_reason=course.stop_reason,
        reference=question.answer,
        bridges=tuple(node.title for node in question.proof.nodes if node.role == "bridge"),
    )


def _render_opening(agent: Agent, question: str, picture: Picture, oracle: TeacherOracle) -> tuple[Message, Message]:
    inputs = _make_inputs(agent, neutralise_markup(question), agent.limits.turns, oracle)
    rendered = render_prompt(agent.prompt, inputs, (picture.sha256,))
    if len(rendered) != 2:
        raise ConfigError(f"prompt {agent.prompt.label}: a rollout needs a system: and a user: part")
    return rendered[0], rendered[1]


def _make_inputs(agent: Agent, question: str, turns_left: int, oracle: TeacherOracle) -> ActInputs:
    return ActInputs(question=question, tools=agent.tools.describe(), turns_left=turns_left, oracle=oracle)


async def _take_turn(agent: Agent, opening: tuple[Message, Message], course: Course, oracle: TeacherOracle) -> Course:
    turns_left = agent.limits.turns - len(course.steps)
    if turns_left <= 0:
        return Course(course.steps, course.images, stop_reason="turn-limit")
    messages = render_messages(opening, course.steps, course.images)
    if sum(len(message.text) for message in messages) > agent.limits.context:
        return Course(course.steps, course.images, stop_reason="context-limit")
    inputs = _make_inputs(agent, opening[1].text, turns_left, oracle)
    request = ChatRequest(
        TASK, agent.prompt.label, messages, inputs, agent.sampling, schema_json="", sample=oracle.attempt
    )
    said = await agent.model.chat(request)
    reply = said.text
    try:
        if said.ended != "whole":
            raise BadTurn(f"the reply was {said.ended}")
        turn = parse_turn(reply)
    except BadTurn:
        kept = reply.encode("utf-8", "replace").decode()
        step = Step(thought="", tool="", arguments="", reply=kept, observation=None)
        return Course((*course.steps, step), course.images, stop_reason="format")
    return await _act(agent, course, turn, reply)


async def _act(agent: Agent, course: Course, turn: Turn, reply: str) -> Course:
    if not turn.tool:
        step = Step(thought=turn.thought, tool="", arguments="", reply=reply, observation=None)
        return Course((*course.steps, step), course.images, turn.answer, "answered")
    outcome = await agent.tools.call(turn.tool, turn.arguments, course.images)
    step = Step(
        thought=turn.thought,
        tool=turn.tool,
        arguments=turn.arguments,
        reply=reply,
        observation=outcome.observation,
    )
    return Course((*course.steps, step), (*course.images, *outcome.images))
