"""The ReAct loop: think, call one tool, read, until an answer or a limit.

A killed rollout is replayed: replies are recorded, so its first turns repeat and only the next one is requested. All
that decides a request must therefore follow from recorded values; the time limit counts the seconds that the replies
took when they were first made.
"""

from dataclasses import dataclass, field

from pipelines.agent.cascade import estimate_tokens
from pipelines.agent.contamination import Watched
from pipelines.agent.dialects import SYNTH, Dialect, SystemInputs, list_offered, translate_tools
from pipelines.agent.observations import ToolOutcome, refuse_call
from pipelines.agent.tools import ToolBox, call_tool
from pipelines.agent.transcript import (
    BadTurn,
    Turn,
    neutralise_markup,
    parse_turn,
    render_step,
    render_turn,
    restore_thought,
    show_reply,
    write_down,
)
from pipelines.checks.rollouts import FATAL_ERRORS, find_fatal
from pipelines.config.settings import RolloutsConfig
from pipelines.errors import ConfigError, RecordFailed
from pipelines.ids import digest_value, make_record_id
from pipelines.services.health import note_request
from pipelines.services.metering import Stopwatch, open_stopwatch
from pipelines.services.prompting import Prompt
from pipelines.services.prompting import render_messages as render_prompt
from pipelines.services.protocols import ChatModel, ChatReply, ChatRequest, Message, Sampling
from schemas.datasets import Grounding, Observation, Picture, Rollout, RolloutImage, Step, StopReason
from schemas.tasks import ActInputs, TeacherOracle

TASK = "act"
_PLAIN = str.maketrans("<>", "[]")
MAX_SECONDS = 9000.0
"""Seconds that models and live tools may take in a rollout, recorded ones included: VSearcher's 150 minutes."""
MAX_CHARACTERS = 200_000
"""Characters of transcript a rollout, where no limit of tokens is set."""
BAD_TURN = "bad-turn"
"""Error class of the observation that answers an unparsable turn."""


@dataclass(frozen=True, slots=True)
class Agent:
    """A teacher with its tools and settings; the same agent makes every rollout of a stage.

    Attributes:
        dialect: protocol of the conversation; ``prompt`` must belong to it.
    """

    model: ChatModel
    prompt: Prompt
    tools: ToolBox
    settings: RolloutsConfig = field(default_factory=RolloutsConfig)
    sampling: Sampling = field(default_factory=lambda: Sampling(temperature=0.7, top_p=0.95))
    dialect: Dialect = SYNTH

    @property
    def identity(self) -> str:
        settings = self.settings.model_dump(exclude={"splits", "wanted", "attempts", "dialect"})
        sampling = [self.sampling.temperature, self.sampling.top_p, self.sampling.max_tokens]
        sampling += [self.sampling.presence_penalty]
        parts = [self.model.identity, self.prompt.digest, self.tools.identity, self.dialect.identity]
        return digest_value([*parts, settings, sampling])

    @property
    def offered(self) -> str:
        """The tools' schemas as the teacher sees them, a JSON array."""
        return translate_tools(self.tools.describe(), self.dialect)


@dataclass(frozen=True, slots=True)
class Frame:
    """The parts of a rollout's requests that do not change."""

    opening: tuple[Message, Message]
    oracle: TeacherOracle
    about: Watched
    stopwatch: Stopwatch


@dataclass(frozen=True, slots=True)
class Course:
    """The state of a rollout."""

    messages: tuple[Message, ...]
    images: tuple[RolloutImage, ...]
    steps: tuple[Step, ...] = ()
    tokens: int = 0
    """Tokens in and out of the last turn."""
    errors: int = 0
    """Consecutive tool errors."""


@dataclass(frozen=True, slots=True)
class End:
    """How a rollout ended."""

    course: Course
    reason: StopReason
    answer: str = ""
    failure: str = ""


async def run_rollout(agent: Agent, question: Grounding, oracle: TeacherOracle) -> Rollout:
    """Run one attempt at one question."""
    if question.picture is None:
        raise RecordFailed("no-picture", f"question {question.record_id} has no picture to begin with")
    opening = render_question(agent, question.text, question.picture)
    course = Course(opening, (RolloutImage(id="img_1", picture=question.picture),))
    about = Watched(question.text, (question.record_id, question.parent_id))
    with open_stopwatch() as stopwatch:
        frame = Frame(opening, oracle, about, stopwatch)
        reached = await _take_turn(agent, frame, course)
        while isinstance(reached, Course):
            reached = await _take_turn(agent, frame, reached)
    return _write_rollout(agent, question, oracle.attempt, reached, stopwatch.day)


def _write_rollout(agent: Agent, question: Grounding, attempt: int, end: End, day: str) -> Rollout:
    steps, nodes, trace = end.course.steps, question.proof.nodes, question.trace
    fatal = find_fatal(steps)
    return Rollout(
        record_id=make_record_id("rollout", [question.record_id, attempt, agent.model.identity, agent.prompt.digest]),
        parent_id=question.record_id,
        split=question.split,
        attempt=attempt,
        teacher=agent.model.name,
        prompt=agent.prompt.label,
        system=end.course.messages[0].text,
        question=end.course.messages[1].text,
        images=end.course.images,
        steps=steps,
        answer=end.answer,
        stop_reason=end.reason,
        failure=end.failure,
        reference=question.answer,
        bridges=tuple(node.title for node in nodes if node.role == "bridge") if trace is None else (trace.bridge,),
        path=tuple(node.title for node in nodes) if trace is None else (trace.anchor, trace.bridge),
        dialect=agent.dialect.name,
        fatal_begins=fatal[0] if fatal else None,
        fatal_reached=fatal[1] if fatal else None,
        day=day,
        snapshot=agent.tools.snapshot,
    )


def render_question(agent: Agent, question: str, picture: Picture) -> tuple[Message, Message]:
    """Return the messages that a rollout begins with: the system message, and the question with its picture."""
    turns_left = agent.settings.max_calls + 1
    inputs = SystemInputs(
        tools=agent.offered,
        offered=list_offered(agent.offered),
        turns_left=turns_left,
        question=neutralise_markup(question),
    )
    rendered = render_prompt(agent.prompt, inputs, (picture.sha256,))
    if len(rendered) != 2:
        raise ConfigError(f"prompt {agent.prompt.label}: a rollout needs a system: and a user: part")
    return rendered[0], rendered[1]


def _make_inputs(agent: Agent, question: str, turns_left: int, oracle: TeacherOracle) -> ActInputs:
    return ActInputs(
        question=question,
        tools=agent.offered,
        offered=list_offered(agent.offered),
        turns_left=turns_left,
        oracle=oracle,
        dialect=agent.dialect.name,
    )


async def _take_turn(agent: Agent, frame: Frame, course: Course) -> Course | End:
    limit = _find_limit(agent.settings, frame, course)
    if limit is not None:
        return End(course, limit)
    try:
        said = await agent.model.chat(_make_request(agent, frame, course))
    except RecordFailed as error:
        if error.error == "prompt-too-long" and course.steps:
            return End(course, "context-limit")
        note_request(TASK, agent.model.name, error=str(error))
        return End(course, "failed", failure=str(error).encode("utf-8", "replace").decode())
    try:
        reply, turn = read_reply(said, agent.dialect)
    except BadTurn as error:
        note_request(TASK, agent.model.name, said)
        return _answer_bad_turn(agent, course, said, error)
    note_request(TASK, agent.model.name)
    if not turn.tool:
        return End(_add_step(agent, course, said, _make_step(turn, reply)), "answered", turn.answer)
    if len(course.steps) >= agent.settings.max_calls:
        # The turn that was left for the answer: what it calls for is not done.
        return End(_add_step(agent, course, said, _make_step(turn, reply)), "turn-limit")
    outcome = await call_tool(agent.tools, agent.dialect, turn, course.images, frame.about)
    return _go_on(agent, _add_step(agent, course, said, _make_step(turn, reply, outcome.observation), outcome.images))


def _find_limit(settings: RolloutsConfig, frame: Frame, course: Course) -> StopReason | None:
    if len(course.steps) > settings.max_calls:
        return "turn-limit"
    if frame.stopwatch.seconds >= MAX_SECONDS:
        return "time-limit"
    if settings.max_context_tokens:
        used = course.tokens or sum(estimate_tokens(message.text) for message in course.messages)
        is_long = used >= settings.max_context_tokens
    else:
        is_long = sum(len(message.text) for message in course.messages) > MAX_CHARACTERS
    return "context-limit" if is_long else None


def _make_request(agent: Agent, frame: Frame, course: Course) -> ChatRequest:
    turns_left = agent.settings.max_calls + 1 - len(course.steps)
    inputs = _make_inputs(agent, frame.opening[1].text, turns_left, frame.oracle)
    return ChatRequest(
        TASK,
        agent.prompt.label,
        course.messages,
        inputs,
        agent.sampling,
        sample=frame.oracle.attempt,
        tools=agent.offered if agent.dialect.native else "",
        stop=agent.dialect.stop,
    )


def read_reply(said: ChatReply, dialect: Dialect) -> tuple[str, Turn]:
    """Return a reply's text and turn."""
    if said.ended != "whole":
        raise BadTurn(f"the reply was {said.ended}")
    reply = write_down(said) if dialect.native else restore_thought(said, dialect)
    turn = parse_turn(reply, dialect)
    form = dialect.find_form(turn.tool)
    if form is not None and form.also and f'"{form.also}"' in reply:
        reply = render_turn(turn, dialect)  # a student learns the published name
    return reply, turn


def explain_bad_turn(error: BadTurn) -> ToolOutcome:
    """Return the message to a model about a turn that cannot be read."""
    # Tags are named in it, and none may stand in an observation.
    return refuse_call(BAD_TURN, f"This turn cannot be read: {str(error).translate(_PLAIN)}.")


def _answer_bad_turn(agent: Agent, course: Course, said: ChatReply, error: BadTurn) -> Course | End:
    reply = show_reply(said) if agent.dialect.native else restore_thought(said, agent.dialect)
    observation = None
    if agent.dialect.tells_bad_turns:
        observation = explain_bad_turn(error).observation
    kept = reply.encode("utf-8", "replace").decode()
    course = _add_step(agent, course, said, _make_step(Turn(""), kept, observation))
    return End(course, "format") if observation is None else _go_on(agent, course)


def _make_step(turn: Turn, reply: str, observation: Observation | None = None) -> Step:
    return Step(thought=turn.thought, tool=turn.tool, arguments=turn.arguments, reply=reply, observation=observation)


def _add_step(
    agent: Agent, course: Course, said: ChatReply, step: Step, images: tuple[RolloutImage, ...] = ()
) -> Course:
    shas = {image.id: image.picture.sha256 for image in (*course.images, *images)}
    failed = step.observation is not None and not step.observation.ok
    return Course(
        (*course.messages, *render_step(step, len(course.steps), shas, agent.dialect)),
        (*course.images, *images),
        (*course.steps, step),
        said.tokens_in + said.tokens_out,
        course.errors + 1 if failed else 0,
    )


def _go_on(agent: Agent, course: Course) -> Course | End:
    if course.errors >= FATAL_ERRORS:
        return End(course, "tool-errors")
    return course
