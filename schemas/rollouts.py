"""Rollouts: what one teacher attempt did, turn by turn."""

from typing import Literal

from schemas.base import Nested, Record
from schemas.groundings import Picture
from schemas.proofs import Answer
from schemas.searches import SearchResult
from schemas.seeds import Split

StopReason = Literal["answered", "format", "tool-errors", "turn-limit", "context-limit", "time-limit", "failed"]
"""``format``: a turn that does not parse. ``tool-errors``: the fatal step. ``failed``: the model gave no reply to a
request, for a reason that lies in it. The others are limits."""
ObservationFlag = Literal["question-text", "row-id", "protocol-tags", "dataset-host"]
"""What contaminates an observation: it holds the question's own text, the row's id, tags of an agent's protocol, or
names a host that publishes datasets. The offending result is left out of what the model sees where that can be done."""


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
    results: tuple[SearchResult, ...] = ()
    """What a search found, best first; empty for other tools."""
    flags: tuple[ObservationFlag, ...] = ()
    """What contaminates it; sorted."""


class Step(Nested):
    """One turn: a thought and one tool call, or the answer."""

    thought: str
    tool: str
    """Tool name; empty on the last step, which answers, and on a turn that is none."""
    arguments: str
    """The call's arguments as a JSON object."""
    reply: str
    """The model's turn as it came, before parsing; of native tool calls, the same turn in the text protocol."""
    observation: Observation | None
    """None for an answer, and for a turn that ended the rollout. A turn that is none and ended nothing has the error
    ``bad-turn``."""


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
    path: tuple[str, ...] = ()
    """Titles of all nodes of the proof, from the anchor to the answer node."""
    dialect: str = "synth"
    """Protocol in which the teacher was spoken to."""
    fatal_begins: int | None = None
    """Step at which the first run of K consecutive tool errors begins (OpenSearch-VL, 4.2: where it "commences");
    None without one."""
    fatal_reached: int | None = None
    """Step at which that run reaches K (OpenSearch-VL, appendix B, equation 20); K - 1 steps later."""
    day: str = ""
    """Latest day, UTC, on which a model or a live tool said any of it; empty where all is scripted or local."""
    snapshot: str = ""
    """Date of the corpus that local tools search; empty for live ones."""
    failure: str = ""
    """Error class and detail of the request that the model gave no reply to; empty unless ``failed``."""
