"""A trajectory as chat messages that trainers load without losing, adding or shifting a picture.

Rules, as LLaMA-Factory 0.9.5, veRL 0.9.1, TRL 1.16 and ms-swift 4.6 enforce them: the number of ``<image>`` in all
messages equals the number of pictures, in reading order; after the system message user and assistant take turns; the
last word is the assistant's; text from elsewhere holds no placeholder and no control token.
"""

from collections.abc import Mapping, Sequence
from typing import Literal

from pipelines.agent.dialects import SYNTH, Dialect, find_dialect
from pipelines.agent.transcript import TOKEN, neutralise_markup, render_observation
from pipelines.errors import GateNotMet
from schemas.base import Nested
from schemas.groundings import Picture
from schemas.rollouts import Observation
from schemas.trajectories import Trajectory

PLACEHOLDER = "<image>"


class Message(Nested):
    """One chat message as trainers read it."""

    role: Literal["system", "user", "assistant"]
    content: str


def strip_tokens(text: str) -> str:
    """Remove media placeholders and control tokens, until none is left: a removal can join the halves of another.

    Our own tags stay, since the assistant and the system message write them.
    """
    while (stripped := TOKEN.sub("", text)) != text:
        text = stripped
    return text


def strip_page_text(text: str) -> str:
    """Remove, beside tokens, the tags that only the assistant may write; for text from pages and tools."""
    return neutralise_markup(text)


def show_observation(observation: Observation, dialect: Dialect) -> str:
    """Return an observation as the user message the teacher saw: a placeholder a picture, then the tool's response."""
    clean = observation.model_copy(update={"text": strip_page_text(observation.text)})
    return show_pictures(len(observation.images), render_observation(clean, dialect))


def find_text_dialect(name: str) -> Dialect:
    """Return the dialect that a rollout's messages are written in; native calls are written down in ours.

    Raises:
        ConfigError: if there is none of that name.
    """
    dialect = find_dialect(name)
    return SYNTH if dialect.native else dialect


def show_pictures(count: int, text: str) -> str:
    """Return text with a line of placeholders before it, when there are pictures."""
    return f"{PLACEHOLDER * count}\n{text}" if count else text


def make_messages(trajectory: Trajectory, system: str = "") -> tuple[tuple[Message, ...], tuple[Picture, ...]]:
    """Return a trajectory's messages and its pictures in reading order.

    Args:
        trajectory: whose replies are text, native calls written down.
        system: in place of the teacher's own system message; empty: that one.

    Raises:
        GateNotMet: if the messages break a rule of the trainers, or a picture is named that the rollout does not have.
    """
    pictures = {image.id: image.picture for image in trajectory.images}
    shown = [image.picture for image in trajectory.images[:1]]
    dialect = find_text_dialect(trajectory.dialect)
    system = system or trajectory.system
    messages = [Message(role="system", content=strip_tokens(system))] if system else []
    question = show_pictures(len(shown), strip_page_text(trajectory.question))
    messages.append(Message(role="user", content=question))
    for number, step in enumerate(trajectory.steps, 1):
        messages.append(Message(role="assistant", content=strip_tokens(step.reply)))
        if step.observation is not None and number < len(trajectory.steps):
            messages.append(Message(role="user", content=show_observation(step.observation, dialect)))
            shown += find_pictures(step.observation.images, pictures, trajectory.record_id)
    check_messages(messages, len(shown), trajectory.record_id)
    return tuple(messages), tuple(shown)


def find_pictures(ids: Sequence[str], pictures: Mapping[str, Picture], where: str) -> list[Picture]:
    """Return the pictures of the given ids.

    Raises:
        GateNotMet: if an id is not among them.
    """
    missing = [name for name in ids if name not in pictures]
    if missing:
        raise GateNotMet(f"{where}: an observation shows {missing}; the rollout has {sorted(pictures)}")
    return [pictures[name] for name in ids]


def check_messages(messages: Sequence[Message], images: int, where: str) -> None:
    """Refuse messages that a trainer would drop, shift or fail on.

    Raises:
        GateNotMet: naming the row and the broken rule.
    """
    count = sum(message.content.count(PLACEHOLDER) for message in messages)
    if count != images:
        raise GateNotMet(f"{where}: {count} placeholders for {images} pictures; there must be one each")
    turns = [message.role for message in messages if message.role != "system"]
    expected = ["user", "assistant"] * (len(turns) // 2)
    if not turns or turns != expected:
        raise GateNotMet(f"{where}: turns are {turns}; user and assistant alternate and the assistant ends")
    empty = [number for number, message in enumerate(messages) if not message.content.strip()]
    if any(messages[number].role == "assistant" for number in empty):
        raise GateNotMet(f"{where}: the assistant says nothing in message {empty[0]}")
