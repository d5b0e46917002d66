"""Prompts from ``prompts/<name>/v<N>.md``: load, render, ask, and ask once more where the reply is of no use.

A prompt file is YAML-like front matter (``key: value`` lines between ``---``) and parts headed ``system:`` and
``user:`` on a line of their own, in Jinja. Page values enter only as variables. A shipped version is never edited:
``prompts/prompts.lock`` holds each file's sha256 and a test compares.
"""

import hashlib
import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib import resources

from jinja2 import StrictUndefined
from jinja2.meta import find_undeclared_variables
from jinja2.sandbox import SandboxedEnvironment
from pydantic import BaseModel

from pipelines.backends.protocols import ChatModel, ChatRequest, Message, Sampling
from pipelines.errors import ConfigError, RecordFailed
from pipelines.ids import digest_value
from pipelines.structured import BadReply, ReplyT, read_reply
from schemas.manifest import ModelEntry

FRONT = re.compile(r"\A---\n(?P<front>.*?)\n---\n(?P<body>.*)\Z", re.DOTALL)
PART = re.compile(r"^(system|user):\s*$", re.MULTILINE)
_ECHOED = 4000
"""Characters of a bad reply that the model is shown again."""


@dataclass(frozen=True, slots=True)
class Prompt:
    """One version of one prompt. ``label`` (``write_question/v1``) names it in rows and manifests."""

    label: str
    digest: str
    inputs: tuple[str, ...]
    system: str
    user: str


@lru_cache(maxsize=64)
def load_prompt(name: str, version: int = 1) -> Prompt:
    """Load a prompt.

    Raises:
        ConfigError: if there is no such prompt or its file is malformed.
    """
    source = resources.files("prompts") / name / f"v{version}.md"
    if not source.is_file():
        raise ConfigError(f"prompt {name}/v{version}: no file prompts/{name}/v{version}.md")
    raw = source.read_bytes()
    match = FRONT.match(raw.decode())
    if match is None:
        raise ConfigError(f"prompt {name}/v{version}: the file must begin with front matter between --- lines")
    front = dict(line.split(":", 1) for line in match["front"].splitlines() if ":" in line)
    pieces = PART.split(match["body"])
    parts = {pieces[i]: pieces[i + 1].strip() for i in range(1, len(pieces) - 1, 2)}
    inputs = tuple(word.strip() for word in front.get("inputs", "").split(",") if word.strip())
    if "user" not in parts:
        raise ConfigError(f"prompt {name}/v{version}: no user: part")
    digest = hashlib.sha256(raw).hexdigest()
    return Prompt(f"{name}/v{version}", digest, inputs, parts.get("system", ""), parts["user"])


@lru_cache(maxsize=1)
def _make_environment() -> SandboxedEnvironment:
    return SandboxedEnvironment(undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True, autoescape=False)


@lru_cache(maxsize=256)
def _compile(source: str) -> Callable[[Mapping[str, object]], str]:
    """Return what renders a template; one that no value enters is rendered once."""
    template = _make_environment().from_string(source)
    if find_undeclared_variables(_make_environment().parse(source)):
        return template.render
    constant = template.render()
    return lambda values: constant


def render_messages(prompt: Prompt, inputs: BaseModel, images: Sequence[str] = ()) -> tuple[Message, ...]:
    """Render a prompt with the fields it declares; no other field of ``inputs`` can reach the text.

    Args:
        prompt: the prompt.
        inputs: must have every declared field.
        images: sha256 names of pictures shown with the user message.

    Raises:
        ConfigError: if the prompt declares a field the inputs lack.
    """
    missing = [name for name in prompt.inputs if name not in type(inputs).model_fields]
    if missing:
        raise ConfigError(f"prompt {prompt.label} declares {missing}; {type(inputs).__name__} has no such field")
    values = {name: getattr(inputs, name) for name in prompt.inputs}
    messages = []
    if prompt.system:
        messages.append(Message("system", _compile(prompt.system)(values)))
    messages.append(Message("user", _compile(prompt.user)(values), tuple(images)))
    return tuple(messages)


GREEDY = Sampling()


@lru_cache(maxsize=64)
def make_schema(reply: type[BaseModel]) -> str:
    """Return a reply model's JSON schema; the same text every time, since it is part of a request's identity."""
    return json.dumps(reply.model_json_schema(), sort_keys=True)


@dataclass(frozen=True, slots=True)
class Asking:
    """Everything one structured request needs beside its inputs."""

    model: ChatModel
    prompt: Prompt
    sampling: Sampling = GREEDY

    @property
    def identity(self) -> str:
        """Digest of everything that decides a reply beside the inputs: model, prompt and sampling."""
        return digest_value([self.model.identity, self.prompt.digest, self.sampling.describe()])

    def describe(self, role: str) -> ModelEntry:
        """Return the model's entry in a manifest."""
        sampling = self.sampling.describe()
        return ModelEntry(role=role, name=self.model.name, revision=self.model.identity, sampling=sampling)


async def ask_model(
    asking: Asking, inputs: BaseModel, reply: type[ReplyT], images: Sequence[str] = (), sample: int = 0
) -> ReplyT:
    """Ask for a structured reply, as :func:`ask_on_day`, and return it alone."""
    return (await ask_on_day(asking, inputs, reply, images, sample))[0]


async def ask_on_day(
    asking: Asking, inputs: BaseModel, reply: type[ReplyT], images: Sequence[str] = (), sample: int = 0
) -> tuple[ReplyT, str]:
    """Ask for a structured reply; one that cannot be used is repaired once by telling the model what was wrong.

    Replies are read anew wherever they come from, so a recorded one is held to the same.

    Returns:
        The reply, and the day on which it was first given as ``2026-11-22``, empty for scripted players.

    Raises:
        RecordFailed: ``unparseable-reply``, ``cut-reply``, ``refused-reply`` or ``empty-reply``, whichever the repaired
            reply is.
    """
    messages = render_messages(asking.prompt, inputs, images)
    task = asking.prompt.label.split("/", 1)[0]
    schema = make_schema(reply)
    problems: list[BadReply] = []
    for _ in range(2):
        request = ChatRequest(task, asking.prompt.label, messages, inputs, asking.sampling, schema, sample)
        said = await asking.model.chat(request)
        try:
            return read_reply(said, reply), said.day
        except BadReply as problem:
            problems.append(problem)
            messages = (*messages, *_ask_again(said.text, problem))
    detail = f"{asking.prompt.label} on {asking.model.name}: {problems[1]}; before that: {problems[0]}"
    raise RecordFailed(problems[1].code, detail)


def _ask_again(text: str, problem: BadReply) -> tuple[Message, Message]:
    """Return the messages that follow a reply that cannot be used: its beginning, and what was wrong."""
    # Many chat templates want the roles in turn and each with a text.
    echo = text[:_ECHOED].encode("utf-8", "replace").decode().strip() or "(nothing)"
    repair = f"That reply cannot be used: {problem}. Reply again with one JSON object and nothing else."
    return Message("assistant", echo), Message("user", repair)
