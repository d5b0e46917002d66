"""Prompts from ``prompts/<name>/v<N>.md``: load, render, request a reply, and repair an unusable one once.

A prompt file is front matter (``key: value`` lines between ``---``) and parts headed ``system:`` and ``user:`` on lines
of their own, in Jinja. Page values enter only as variables. A shipped version is never edited: ``prompts/prompts.lock``
holds each file's sha256. A user's own versions lie in a folder of the same shape. A structured reply is one JSON object
of the requested shape. Who has to reason first replies in free text whose last line is the answer: a forced shape
leaves no room to think.
"""

import hashlib
import json
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import lru_cache, partial
from importlib import resources
from math import isfinite
from pathlib import Path
from typing import Any, Generic, TypeVar, cast

from jinja2 import StrictUndefined, TemplateError
from jinja2.meta import find_undeclared_variables
from jinja2.sandbox import SandboxedEnvironment
from pydantic import BaseModel, ValidationError
from pydantic_core import PydanticSerializationError

from pipelines.config.settings import ModelConfig
from pipelines.errors import ConfigError, RecordFailed
from pipelines.ids import digest_value
from pipelines.services.health import note_request
from pipelines.services.protocols import ChatModel, ChatReply, ChatRequest, Message, Sampling
from schemas.manifest import ModelEntry
from schemas.tasks import AnswerReply, InLanguageInputs

ReplyT = TypeVar("ReplyT", bound=BaseModel)
LONGEST_REPLY = 1 << 18
"""Characters; several times the longest reply to any prompt."""
LONGEST_TEXT = 4000
"""Characters of one text in a reply."""
_LONGEST_PROBLEM = 500
_PROBLEMS = 5
_THOUGHT, _THOUGHT_END = "<think>", "</think>"
_REFUSAL = re.compile(
    r"\W*(?:(?:i am |i'm )?(?:very |so |truly )?sorry\b.{0,60}?\b(?:can't|cannot|can not|won't|unable|not able)\b"
    r"|(?:unfortunately,? |i apologi[sz]e,? (?:but )?)?i (?:can't|cannot|can not|won't|will not|am (?:un|not )able)\b"
    r".{0,40}?\b(?:help|assist|comply|provide|answer|fulfil|continue|generate|create|write|do (?:that|this))"
    r"|as an ai\b)",
    re.IGNORECASE | re.DOTALL,
)
"""Beginnings of refusals inside a well-formed reply."""
_ANSWER = re.compile(r"[\s*_#>-]*(?:(?:the|my) )?(?:final |best )?answer(?: is)?[\s*_]*:(?P<value>.*)", re.IGNORECASE)
_OWN_WORDS = re.compile(r"\.(?:question|answer|descriptors\.\d+\.text)")
"""Fields that a model words itself; the others are copied, and a title may sound like a refusal."""
_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]")


class BadReply(ValueError):
    """A reply that cannot be used: the problem in words for the repair request, and the error code of a failed row."""

    def __init__(self, problem: str, code: str = "unparseable-reply") -> None:
        super().__init__(problem.encode("utf-8", "replace").decode()[:_LONGEST_PROBLEM])
        self.code = code


def read_reply(said: ChatReply, model: type[ReplyT]) -> ReplyT:
    """Return the parsed reply; a cut or refused reply is bad, even if it contains an object.

    Raises:
        BadReply: if the reply is unusable.
    """
    _check_ending(said)
    return parse_reply(said.text, model)


def read_answer(said: ChatReply) -> AnswerReply:
    """Return the answer of a reply in free text: its last line, ``Answer: ...``, or the object that it is as a whole.

    Raises:
        BadReply: if the reply is unusable, does not end with its answer, or gives another one before.
    """
    _check_ending(said)
    text = _skip_thought(said.text).strip()
    if text.startswith(("{", "```")):
        return parse_reply(text, AnswerReply)
    lines = [line for line in text.splitlines() if line.strip()]
    labelled = [match for line in lines if (match := _ANSWER.fullmatch(line))]
    if not labelled or labelled[-1].string != lines[-1]:
        raise BadReply('its last line is not "Answer: ..."')
    given = [match["value"].strip(" \t*_`") for match in labelled]
    if len(set(given)) > 1:
        raise BadReply("it gives several answers that differ")
    return parse_reply(json.dumps({"answer": given[-1]}), AnswerReply)


def _check_ending(said: ChatReply) -> None:
    if said.ended == "refused":
        raise BadReply("it refuses to answer", "refused-reply")
    if said.ended == "cut":
        raise BadReply("it was cut off before its end; be brief", "cut-reply")
    if not said.text.strip():
        raise BadReply("it is empty", "empty-reply")


def parse_reply(text: str, model: type[ReplyT]) -> ReplyT:
    """Return the one JSON object of a reply as its model; reasoning before it and text around it are ignored.

    If several objects differ or one is broken, it is unclear which is the model's own, and the reply is bad.
    An object inside another one, or in the rest of a cut one, is never taken.

    Raises:
        BadReply: if there is no such object, it has another shape, or a text in it is unusable.
    """
    if len(text) > LONGEST_REPLY:
        raise BadReply(f"it has {len(text):,} characters, allowed are {LONGEST_REPLY:,}")
    try:
        parsed = model.model_validate(_find_object(_skip_thought(text)), strict=False)
        _check_texts(parsed.model_dump(mode="python"))
        # A lone surrogate is valid JSON, but could not be written to a file.
        parsed.model_dump_json()
    except RecursionError as error:
        raise BadReply("the JSON object is nested too deeply") from error
    except PydanticSerializationError as error:
        raise BadReply(f"the JSON object holds text that is not Unicode: {error}") from error
    except ValidationError as error:
        told = error.errors(include_url=False, include_context=False, include_input=False)[:_PROBLEMS]
        problems = "; ".join(f"{'.'.join(map(str, one['loc']))}: {one['msg']}" for one in told)
        raise BadReply(f"the JSON object does not fit: {problems}") from error
    return parsed


def _skip_thought(text: str) -> str:
    """Return the text after the reasoning, which servers without a reasoning parser leave in the reply."""
    _, end, rest = text.rpartition(_THOUGHT_END)
    if not end and rest.lstrip().startswith(_THOUGHT):
        raise BadReply("its thinking has no end")
    return rest


def _find_object(text: str) -> dict[str, object]:
    found: dict[str, object] | None = None
    start = text.find("{")
    while start >= 0:
        try:
            value, end = _DECODER.raw_decode(text, start)
        except json.JSONDecodeError as error:
            raise BadReply(f"the JSON object is broken or incomplete ({error.msg})") from error
        except ValueError as error:
            raise BadReply(f"the JSON object cannot be read: {error}") from error
        if found is not None and value != found:
            raise BadReply("it holds several JSON objects that differ")
        found = value
        start = text.find("{", end)
    if found is None:
        raise BadReply("the reply holds no JSON object")
    return found


def _check_texts(value: object, place: str = "") -> None:
    """Raise :class:`BadReply` for a text that is too long, blank, a refusal, or has control characters.

    A blank text in a list is one candidate of several; the checks of candidates refuse it.
    """
    if isinstance(value, dict):
        for name, part in value.items():
            if not place and isinstance(part, str) and not part.strip():
                raise BadReply(f"the JSON object does not fit: {name} is blank", "empty-reply")
            _check_texts(part, f"{place}.{name}")
    elif isinstance(value, list | tuple):
        for index, part in enumerate(value):
            _check_texts(part, f"{place}.{index}")
    elif isinstance(value, str):
        if len(value) > LONGEST_TEXT:
            raise BadReply(
                f"the JSON object does not fit: {place[1:]} has {len(value):,} of {LONGEST_TEXT:,} characters"
            )
        if _CONTROL.search(value):
            raise BadReply(f"the JSON object does not fit: {place[1:]} holds control characters")
        if _OWN_WORDS.fullmatch(place) and _REFUSAL.match(value.replace("’", "'")):
            raise BadReply(f"{place[1:]} refuses to answer", "refused-reply")


def _refuse_constant(name: str) -> object:
    raise ValueError(f"{name} is not JSON")


def _read_float(digits: str) -> float:
    value = float(digits)
    if not isfinite(value):
        raise ValueError(f"{digits[:20]} is too large a number")
    return value


def _make_object(pairs: list[tuple[str, object]]) -> dict[str, object]:
    made = dict(pairs)
    if len(made) != len(pairs):
        twice = next(name for name, count in Counter(name for name, _ in pairs).items() if count > 1)
        raise ValueError(f"key {twice[:40]!r} appears more than once")
    return made


_DECODER = json.JSONDecoder(object_pairs_hook=_make_object, parse_constant=_refuse_constant, parse_float=_read_float)


FRONT = re.compile(r"\A---\n(?P<front>.*?)\n---\n(?P<body>.*)\Z", re.DOTALL)
PART = re.compile(r"^(system|user):\s*$", re.MULTILINE)
OWN = "/own-v"
"""What stands before the version in the label of a user's own prompt, and in that of no shipped one."""
_VERSION = re.compile(r"v(?P<number>[1-9][0-9]{0,5})\.md")
_ECHOED = 4000
"""Characters of a bad reply that the repair request quotes."""


@dataclass(frozen=True, slots=True)
class Prompt:
    """One version of one prompt. ``label`` (``write_question/v1``) names it in rows and manifests."""

    label: str
    digest: str
    inputs: tuple[str, ...]
    system: str
    user: str


def load_prompt(name: str, version: int = 0, folder: str = "") -> Prompt:
    """Load a prompt: the user's highest version in ``folder/<name>/``, else the shipped one.

    Args:
        name: of the prompt.
        version: of the shipped prompt; 0: the newest.
        folder: of the user's own prompts; empty for none.

    Raises:
        ConfigError: if there is no such prompt or its file is malformed, or the user's declares what the shipped one
            does not.
    """
    shipped = _load_shipped(name, version)
    own = max(_list_versions(Path(folder) / name), default=None) if folder else None
    if own is None:
        return shipped
    number, path = own
    prompt = _read_prompt(f"{name}{OWN}{number}", f"prompt {path}", path.read_bytes())
    strange = sorted({*prompt.inputs} - {*shipped.inputs})
    if strange:
        raise ConfigError(f"prompt {path}: inputs {', '.join(strange)}; there are: {', '.join(shipped.inputs)}")
    if bool(prompt.system) != bool(shipped.system):
        raise ConfigError(f"prompt {path}: it must have {'a' if shipped.system else 'no'} system: part, as {name} has")
    return prompt


_LANGUAGE = re.compile(r"[a-z]{2,8}(?:-[a-z0-9]{1,12}){0,3}", re.IGNORECASE)
WORDED = frozenset([
    "write_question", "rewrite_question", "propose_descriptors", "refer_to_anchor", "ask_fact", "extract_fact",
    "inject_fact", "read_question", "screen_question", "ask_concept", "classify_question", "find_bridge", "ask_bridge",
    "name_anchors",
])  # fmt: skip
"""Prompts whose replies are worded in, or read out of, the language of the corpus."""


def speak(prompt: Prompt, language: Prompt, code: str) -> Prompt:
    """Return a prompt that also says in which language its words are.

    Args:
        prompt: for English.
        language: what is added to it; it knows the variable ``language``.
        code: of the language, such as ``it``.

    Raises:
        ConfigError: if the code is invalid: it comes from a dump, and is read as a rule.
    """
    if not _LANGUAGE.fullmatch(code):
        raise ConfigError(f"language {code[:40]!r} of the dump; expected a code such as it or zh-classical")
    told = render_messages(language, InLanguageInputs(language=code))[0].text
    # The system part is a template, too: what is added must not be read as one.
    added = "{% raw %}" + told + "{% endraw %}"
    return replace(
        prompt,
        label=f"{prompt.label}+{language.label.partition('/')[2]}-{code}",
        digest=digest_value([prompt.digest, language.digest, code]),
        system=f"{prompt.system}\n\n{added}",
    )


@lru_cache(maxsize=64)
def _load_shipped(name: str, version: int) -> Prompt:
    versions = dict(_list_versions(Path(str(resources.files("prompts"))) / name))
    label = f"{name}/v{version or max(versions)}"
    if version and version not in versions:
        raise ConfigError(f"prompt {label}: no file prompts/{label}.md")
    return _read_prompt(label, f"prompt {label}", versions[version or max(versions)].read_bytes())


def check_prompts(folder: str) -> int:
    """Return how many prompts a user's folder replaces; refuse one that is missing or holds anything else.

    Raises:
        ConfigError: naming the path.
    """
    if not folder:
        return 0
    root, shipped = Path(folder), resources.files("prompts")
    if not root.is_dir():
        raise ConfigError(f"prompts {root}: no such folder")
    known = sorted(entry.name for entry in shipped.iterdir() if entry.is_dir() and entry.name[0] != "_")
    # A folder of a plugin is a package, too.
    replaced = [path for path in sorted(root.iterdir()) if not path.name.startswith((".", "__"))]
    for path in replaced:
        if path.name not in known or not path.is_dir():
            raise ConfigError(f"prompts {path}: no prompt has this name; there are: {', '.join(known)}")
        for number, version in _list_versions(path):
            _read_prompt(f"{path.name}{OWN}{number}", f"prompt {version}", version.read_bytes())
    return len(replaced)


def _list_versions(folder: Path) -> list[tuple[int, Path]]:
    """Return the numbers and files of a prompt's versions in a user's folder, none if there is no such folder."""
    found = []
    for path in sorted(folder.iterdir()) if folder.is_dir() else ():
        match = _VERSION.fullmatch(path.name)
        if match is None:
            raise ConfigError(f"prompt {path}: versions are called v1.md, v2.md and so on")
        found.append((int(match["number"]), path))
    return found


def _read_prompt(label: str, place: str, raw: bytes) -> Prompt:
    try:
        match = FRONT.match(raw.decode())
    except UnicodeDecodeError as error:
        raise ConfigError(f"{place}: not UTF-8") from error
    if match is None:
        raise ConfigError(f"{place}: the file must begin with front matter between --- lines")
    front = dict(line.split(":", 1) for line in match["front"].splitlines() if ":" in line)
    pieces = PART.split(match["body"])
    parts = {pieces[i]: pieces[i + 1].strip() for i in range(1, len(pieces) - 1, 2)}
    inputs = tuple(word.strip() for word in front.get("inputs", "").split(",") if word.strip())
    if "user" not in parts:
        raise ConfigError(f"{place}: no user: part")
    try:
        used = set().union(*(find_undeclared_variables(_make_environment().parse(part)) for part in parts.values()))
    except TemplateError as error:
        raise ConfigError(f"{place}: not a template: {error}") from error
    if strange := sorted(used - {*inputs}):
        raise ConfigError(f"{place}: {', '.join(strange)} is used but not declared in inputs")
    return Prompt(label, hashlib.sha256(raw).hexdigest(), inputs, parts.get("system", ""), parts["user"])


@lru_cache(maxsize=1)
def _make_environment() -> SandboxedEnvironment:
    return SandboxedEnvironment(undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True, autoescape=False)


@lru_cache(maxsize=256)
def _compile(source: str) -> Callable[[Mapping[str, object]], str]:
    """Return a template's render function; a template without variables is rendered once."""
    template = _make_environment().from_string(source)
    if find_undeclared_variables(_make_environment().parse(source)):
        return template.render
    constant = template.render()
    return lambda values: constant


def render_messages(prompt: Prompt, inputs: BaseModel, images: Sequence[str] = ()) -> tuple[Message, ...]:
    """Render a prompt with the fields that it declares; no other field of ``inputs`` can reach the text.

    The pictures, by sha256, are shown with the user message.

    Raises:
        ConfigError: if the prompt declares a field that the inputs lack.
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
SAMPLED = ("top_p", "presence_penalty")
"""Keys of extra_body that are sampling: a recipe sets them, and a vendor's profile may leave them out."""


def make_sampling(model: ModelConfig) -> Sampling:
    """Return the sampling settings of a role."""
    top_p, penalty = (model.extra_body.get(key) for key in SAMPLED)
    return Sampling(model.temperature, top_p, model.max_tokens, penalty)


@lru_cache(maxsize=64)
def make_schema(reply: type[BaseModel]) -> str:
    """Return a reply model's JSON schema, always the same text, since it is part of a request's identity."""
    return json.dumps(reply.model_json_schema(), sort_keys=True)


@dataclass(frozen=True, slots=True)
class RoleClient:
    """Everything that a structured request needs besides its inputs."""

    model: ChatModel
    prompt: Prompt
    sampling: Sampling = GREEDY

    @property
    def identity(self) -> str:
        """Digest of everything that decides a reply except the inputs: model, prompt and sampling."""
        return digest_value([self.model.identity, self.prompt.digest, self.sampling.describe()])

    def describe(self, role: str) -> ModelEntry:
        """Return the model's entry in a manifest."""
        sampling = self.sampling.describe()
        return ModelEntry(role=role, name=self.model.name, revision=self.model.identity, sampling=sampling)

    def prompts(self) -> dict[str, str]:
        """Return the prompt's label with its digest."""
        return {self.prompt.label: self.prompt.digest}


class Prompted:
    """A dataclass whose prompts are those of its parts."""

    __slots__ = ()

    def prompts(self) -> dict[str, str]:
        """Return the digests of all prompts by label."""
        parts = (getattr(self, each.name) for each in fields(cast(Any, self)))
        return {label: digest for part in parts if hasattr(part, "prompts") for label, digest in part.prompts().items()}


class WithoutModels:
    """What a stage that uses no model says of prompts and models."""

    __slots__ = ()

    def prompts(self) -> dict[str, str]:
        """Return none."""
        return {}

    def models(self) -> tuple[ModelEntry, ...]:
        """Return none."""
        return ()


@dataclass(frozen=True, slots=True)
class _Form(Generic[ReplyT]):
    """What a reply looks like, and how it is read."""

    read: Callable[[ChatReply], ReplyT]
    wanted: str
    """In words, for the repair request."""
    schema: str = ""
    """JSON schema, empty for free text."""


_ANSWERED = _Form(read_answer, 'with a last line "Answer: ..." that holds one short answer')


async def ask_model(
    asking: RoleClient, inputs: BaseModel, reply: type[ReplyT], images: Sequence[str] = (), sample: int = 0
) -> ReplyT:
    """Request a structured reply, as :func:`ask_on_day`, and return it alone."""
    return (await ask_on_day(asking, inputs, reply, images, sample))[0]


async def ask_on_day(
    asking: RoleClient, inputs: BaseModel, reply: type[ReplyT], images: Sequence[str] = (), sample: int = 0
) -> tuple[ReplyT, str]:
    """Request a structured reply; an unusable one is repaired once by telling the model what was wrong.

    Returns:
        The reply, and the day on which it was first given as ``2026-11-22``, empty for scripted players.

    Raises:
        RecordFailed: ``unparseable-reply``, ``cut-reply``, ``refused-reply`` or ``empty-reply``, as the repaired reply
        is.
    """
    form = _Form(partial(read_reply, model=reply), "with one JSON object and nothing else", make_schema(reply))
    return await _ask(asking, inputs, form, images, sample)


async def ask_answer(
    asking: RoleClient, inputs: BaseModel, images: Sequence[str] = (), sample: int = 0
) -> tuple[AnswerReply, str]:
    """Request an answer after free reasoning (:func:`read_answer`); returns and raises as :func:`ask_on_day`."""
    return await _ask(asking, inputs, _ANSWERED, images, sample)


async def _ask(
    asking: RoleClient, inputs: BaseModel, form: _Form[ReplyT], images: Sequence[str], sample: int
) -> tuple[ReplyT, str]:
    messages = render_messages(asking.prompt, inputs, images)
    task = asking.prompt.label.split("/", 1)[0]
    problems: list[BadReply] = []
    unusable: list[ChatReply] = []
    for _ in range(2):
        request = ChatRequest(task, asking.prompt.label, messages, inputs, asking.sampling, form.schema, sample)
        try:
            said = await asking.model.chat(request)
            made = form.read(said)
        except RecordFailed as error:
            note_request(task, asking.model.name, *unusable, error=str(error))
            raise
        except BadReply as problem:
            problems.append(problem)
            unusable.append(said)
            messages = (*messages, *_ask_again(said.text, problem, form.wanted))
        else:
            note_request(task, asking.model.name)
            return made, said.day
    note_request(task, asking.model.name, *unusable)
    detail = f"{asking.prompt.label} on {asking.model.name}: {problems[1]}; before that: {problems[0]}"
    raise RecordFailed(problems[1].code, detail)


def _ask_again(text: str, problem: BadReply, wanted: str) -> tuple[Message, Message]:
    """Return the messages of the repair request: the beginning of the bad reply, and what was wrong."""
    # Many chat templates need alternating roles, each with a text.
    echo = text[:_ECHOED].encode("utf-8", "replace").decode().strip() or "(nothing)"
    repair = f"That reply cannot be used: {problem}. Reply again {wanted}."
    return Message("assistant", echo), Message("user", repair)
