"""The tool environment for agents outside a run: sessions of one question each, with the tools and limits of rollouts.

A session is what :func:`pipelines.agent.loop.run_rollout` holds between two turns: the pictures by their names, how
many calls were made and how many failed in a row. Calls are read and made by the functions that the loop uses, so the
same call after the same calls is answered as in a rollout.

What decides a question is never given out: no answer, no proof, no title of what the picture shows.
"""

import asyncio
import json
import secrets
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Literal

from pipelines.agent.contamination import Watched
from pipelines.agent.dialects import CALL, Dialect
from pipelines.agent.loop import MAX_CHARACTERS, MAX_SECONDS, Agent, explain_bad_turn, read_reply, render_question
from pipelines.agent.observations import ToolOutcome
from pipelines.agent.tools import call_tool
from pipelines.agent.transcript import BadTurn, Turn, parse_turn, read_strict_object, render_observation
from pipelines.checks.rollouts import FATAL_ERRORS
from pipelines.checks.sets import HeldOut
from pipelines.services.protocols import ChatReply, Message
from schemas.datasets import Enhancement, Observation, RolloutImage, StopReason

Ending = Literal[StopReason, ""]
RefusalKind = Literal["unknown-question", "held-out", "unknown-session", "too-many-sessions", "timeout"]
_NO_MORE: Mapping[str, str] = {
    "turn-limit": "no call is left",
    "tool-errors": "too many calls failed one after another",
    "context-limit": "the transcript is too long",
    "time-limit": "the time is over",
    "answered": "the answer was given",
    "format": "a turn could not be read",
}


class Refusal(Exception):
    """A request that the environment does not serve; no observation, for no model has caused it."""

    def __init__(self, kind: RefusalKind, text: str) -> None:
        super().__init__(text)
        self.kind = kind


@dataclass(slots=True)
class Session:
    """One attempt at one question."""

    id: str
    question: Enhancement
    opening: tuple[Message, Message]
    """System message and the question, with its picture, as the dialect shows them."""
    images: tuple[RolloutImage, ...]
    opened: float
    used: float
    calls: int = 0
    failed: int = 0
    """Calls that failed one after another."""
    length: int = 0
    """Characters of the transcript, as far as the environment sees it."""
    ended: Ending = ""
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)


@dataclass(frozen=True, slots=True)
class Reply:
    """What a call or a turn led to.

    Attributes:
        observation: None where the attempt is over, or was ended by what was said.
        text: of the observation for trainers whose chat template frames tools' messages, else why it is over.
        message: of the observation as the dialect shows it, with its tags; empty without one.
        images: pictures that are new.
        calls_left: before the answer must be given.
        ended: why the attempt is over; empty while it goes on.
        answer: that a turn gave.
        held_out: whether the observation states the final fact of a question for evaluation. Its trajectory must not
            train: releases refuse such ones.
    """

    observation: Observation | None
    text: str
    message: str
    images: tuple[RolloutImage, ...]
    calls_left: int
    ended: Ending
    answer: str = ""
    held_out: bool = False


IDLE_SECONDS = 900.0
"""Seconds without a call after which a session is forgotten: longer than a trainer takes for one turn of a batch."""
CALL_SECONDS = 60.0
"""Seconds that one call may take."""


@dataclass
class ToolEnvironment:
    """Sessions over an agent's tools; its model is never asked.

    Attributes:
        agent: tools, prompt, dialect and limits of the run's rollouts.
        questions: by id, those that may be opened and those that are held out.
        held_out: final facts of the questions for evaluation.
        sessions: most that are open at once.
        evaluating: whether questions that are held out may be opened.
        clock: monotonic seconds.
    """

    agent: Agent
    questions: Mapping[str, Enhancement]
    held_out: HeldOut
    sessions: int = 1000
    evaluating: bool = False
    clock: Callable[[], float] = time.monotonic
    _sessions: dict[str, Session] = field(default_factory=dict, init=False)

    def list_questions(self) -> list[str]:
        """Return the ids of the questions that may be opened."""
        return [name for name, row in self.questions.items() if self.evaluating or row.split != "eval"]

    def open_session(self, question_id: str) -> Session:
        """Begin an attempt at a question."""
        question = self.questions.get(question_id)
        if question is None or question.picture is None:
            raise Refusal("unknown-question", f"there is no question {question_id[:80]!r} with a picture")
        if question.split == "eval" and not self.evaluating:
            raise Refusal("held-out", f"question {question_id} is held out for evaluation")
        now = self.clock()
        self._drop_idle(now)
        if len(self._sessions) >= self.sessions:
            raise Refusal("too-many-sessions", f"{self.sessions} sessions are open; close some")
        opening = render_question(self.agent, question.text, question.picture)
        images = (RolloutImage(id="img_1", picture=question.picture),)
        session = Session(secrets.token_urlsafe(16), question, opening, images, now, now)
        session.length = sum(len(message.text) for message in opening)
        self._sessions[session.id] = session
        return session

    def find_session(self, session_id: str) -> Session:
        """Return an open session."""
        now = self.clock()
        session = self._sessions.get(session_id)
        if session is None or now - session.used > IDLE_SECONDS:
            self._sessions.pop(session_id, None)
            raise Refusal("unknown-session", "there is no such session; it was closed, or has expired")
        session.used = now
        return session

    def close_session(self, session_id: str) -> None:
        """Forget a session; one that is not there is forgotten already."""
        self._sessions.pop(session_id, None)

    def _drop_idle(self, now: float) -> None:
        idle = [each.id for each in self._sessions.values() if now - each.used > IDLE_SECONDS]
        for session_id in idle:
            del self._sessions[session_id]

    async def call(self, session: Session, name: str, arguments: str) -> Reply:
        """Make one call; calls of one session are made one after another."""
        async with session.lock:
            if over := self._find_end(session):
                return over
            try:
                turn = read_call(name, arguments, self.agent.dialect)
            except BadTurn as error:
                return self._answer_bad_turn(session, error)
            return await self._make_call(session, turn)

    async def take_turn(self, session: Session, text: str) -> Reply:
        """Read a model's whole turn as the dialect reads it: make its call, or end the attempt by its answer."""
        async with session.lock:
            if session.ended:
                return self._end(session, session.ended)
            try:
                _, turn = read_reply(ChatReply(text, 0, 0), self.agent.dialect)
            except BadTurn as error:
                over = self._find_end(session)
                return over or self._answer_bad_turn(session, error)
            if not turn.tool:
                return self._end(session, "answered", turn.answer)
            session.length += len(text)
            return self._find_end(session) or await self._make_call(session, turn)

    async def _make_call(self, session: Session, turn: Turn) -> Reply:
        agent, question = self.agent, session.question
        about = Watched(question.text, (question.record_id, question.parent_id))
        made = call_tool(agent.tools, agent.dialect, turn, session.images, about)
        try:
            outcome = await asyncio.wait_for(made, CALL_SECONDS)
        except TimeoutError as error:
            raise Refusal("timeout", f"{turn.tool} took more than {CALL_SECONDS:g} seconds") from error
        return self._count(session, outcome)

    def _answer_bad_turn(self, session: Session, error: BadTurn) -> Reply:
        outcome = explain_bad_turn(error)
        if not self.agent.dialect.tells_bad_turns:
            return self._end(session, "format", text=outcome.observation.text)
        return self._count(session, outcome)

    def _count(self, session: Session, outcome: ToolOutcome) -> Reply:
        observation, settings = outcome.observation, self.agent.settings
        message = render_observation(observation, self.agent.dialect)
        session.calls += 1
        session.failed = 0 if observation.ok else session.failed + 1
        session.images = (*session.images, *outcome.images)
        session.length += len(message)
        session.used = self.clock()
        if session.failed >= FATAL_ERRORS:
            session.ended = "tool-errors"
        told = not self.evaluating and bool(self.held_out.find_told([observation.text]))
        left = max(0, settings.max_calls - session.calls)
        text = render_plainly(observation)
        return Reply(observation, text, message, outcome.images, left, session.ended, held_out=told)

    def _find_end(self, session: Session) -> Reply | None:
        settings, ended = self.agent.settings, session.ended
        if not ended and session.calls >= settings.max_calls:
            ended = "turn-limit"
        if not ended and self.clock() - session.opened >= MAX_SECONDS:
            ended = "time-limit"
        if not ended and session.length > MAX_CHARACTERS:
            ended = "context-limit"
        return self._end(session, ended) if ended else None

    def _end(self, session: Session, ended: Ending, answer: str = "", text: str = "") -> Reply:
        session.ended = ended
        told = f"{ended}: {text or _NO_MORE[ended]}"
        return Reply(None, told, "", (), max(0, self.agent.settings.max_calls - session.calls), ended, answer)


def render_plainly(observation: Observation) -> str:
    """Return an observation without tags, the class of an error or warning first: chat templates frame it."""
    heads = [f"error: {observation.error}"] if not observation.ok else []
    heads += [f"warning: {observation.warning}"] if observation.warning else []
    return "\n".join((*heads, observation.text))


def read_call(name: str, arguments: str, dialect: Dialect) -> Turn:
    """Return a call by name and arguments as the turn that the dialect would read."""
    try:
        values = read_strict_object(arguments) if arguments.strip() else {}
    except ValueError as error:
        raise BadTurn(f"the call's arguments are not a JSON object: {error}") from error
    form = next((form for form in dialect.forms or () if form.name == name and form.tag), None)
    if form is None:
        tag, inner = CALL, json.dumps({"name": name, "arguments": values})
    else:
        tag, inner = form.tag, form.content or str(values.get(next(iter(form.fields)), ""))
    return parse_turn(f"<{dialect.think}>\n-\n</{dialect.think}>\n<{tag}>{inner}</{tag}>", dialect)
