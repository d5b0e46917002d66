"""Rollouts: what one teacher attempt did, turn by turn."""

from typing import Literal

from schemas.base import Nested, Record
from schemas.groundings import Picture
from schemas.proofs import Answer
from schemas.seeds import Split

StopReason = Literal["answered", "format", "turn-limit", "context-limit"]


class Observation(Nested):
    """A tool's typed result: an error is a field, never text that looks like one."""

    ok: bool
    error: str
    """Error class such as ``unknown-page``; empty when ok."""
    text: str
    images: tuple[str, ...]
    """Ids (``img_2``) of the pictures this call produced."""
    warning: str = ""
    """Class of what the tool could not do although it answered, such as ``no-weights``; empty otherwise."""


class Step(Nested):
    """One turn: a thought and one tool call, or the answer."""

    thought: str
    tool: str
    """Tool name; empty on the last step, which answers."""
    arguments: str
    """The call's arguments as a JSON object."""
    reply: str
    """The model's turn as it came, before parsing."""
    observation: Observation | None


class RolloutImage(Nested):
    """A picture that the rollout could see: ``img_1`` is the question's, each produced one takes the next number."""

    id: str
    picture: Picture


class Rollout(Record):
    """One attempt of the teacher at one question; ``parent_id`` is the question."""

    split: Split
    attempt: int
    teacher: str
    prompt: str
    system: str
    question: str
    images: tuple[RolloutImage, ...]
    steps: tuple[Step, ...]
    answer: str
    stop_reason: StopReason
    reference: Answer
    bridges: tuple[str, ...]
    """Titles of the bridges, for the checks that ask whether each was seen."""
