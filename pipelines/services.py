"""What ``synth doctor`` asks of the servers behind models: are they there, and can they do what their roles need?

Every address is asked at the same time and nothing is waited for longer than a few seconds. What a server says is
hostile: it is read up to a bound, and the key is cut out of whatever is quoted.
"""

import asyncio
import base64
import json
import os
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import aiohttp
from pydantic import BaseModel, Field, ValidationError

from pipelines.asking_services import QUOTED, Answer, Line, make_png
from pipelines.backends.openai_errors import redact
from pipelines.config import RunConfig
from pipelines.findings import Finding
from pipelines.settings import ModelConfig, ModelsConfig

PATIENCE: Final = 10.0
"""Seconds for one reply; a model that is slower than that at a few tokens is no use for thousands of requests."""
TYPICAL_PROMPT: Final = 3000
"""Tokens of a long prompt of ours: instructions, an article's beginning, search results, a picture."""
CHARACTERS_A_TOKEN: Final = 4
SEEING = frozenset(["solver", "teacher", "image_judge", "process_judge"])
"""Roles that are shown pictures, solvers by another name besides."""
_SHOWN_NAMES = 8
_REPLY_TOKENS = 128
_STONES = ("quartz", "basalt")
"""Colours, if a server says so: nobody would unless the schema leaves no choice."""
_SCHEMA = {
    "type": "object",
    "properties": {"colour": {"type": "string", "enum": list(_STONES)}},
    "required": ["colour"],
    "additionalProperties": False,
}


class _Model(BaseModel):
    id: str
    max_model_len: int | None = Field(None, ge=1)


class _Models(BaseModel):
    data: list[_Model]


@dataclass(frozen=True, slots=True)
class Service:
    """One model at one address, and what its roles want of it."""

    roles: tuple[str, ...]
    url: str
    model: ModelConfig
    longest: int
    """Tokens of a prompt and its reply that must fit."""

    @property
    def place(self) -> str:
        """How findings name it."""
        return f"{', '.join(self.roles)} at {self.url}"

    @property
    def seen(self) -> bool:
        """Whether pictures are shown to it."""
        return any(_is_shown_pictures(role) for role in self.roles)


def look_at_services(config: RunConfig, patience: float = PATIENCE) -> list[Finding]:
    """Ask every server that a role of the run is played by; none is asked where all players are scripted.

    Servers that the run starts itself are not there yet, and are looked at by ``pipelines.local_models``.

    Args:
        config: of the run.
        patience: seconds for one reply; each server is asked up to three times in a row.
    """
    services = list_services(config)
    keys = [_look_at_key(service) for service in services]
    asked = [service for service, missing in zip(services, keys, strict=True) if missing is None]
    found = [missing for missing in keys if missing is not None]
    return [*dict.fromkeys(found), *asyncio.run(_ask_all(asked, patience))] if services else []


def list_roles_in_use(config: RunConfig) -> list[str]:
    """Return the roles that the run has work for: further solvers only where difficulty names them."""
    named = {*config.difficulty.solvers, config.difficulty.text_solver}
    return [role for role in config.models.list_roles() if role not in config.models.solvers or role in named]


def list_services(config: RunConfig) -> list[Service]:
    """Return every address that is to be asked, once for all roles that ask it for the same model."""
    found: dict[tuple[Any, ...], Service] = {}
    for role in list_roles_in_use(config):
        model = config.models.get(role)
        if model.adapter != "openai" or model.serve.own:
            continue
        longest = model.max_tokens + _guess_prompt(config, role)
        for url in (model.base_url, *model.more_urls):
            key = (url, model.name, model.api_key_env, model.replies)
            before = found.get(key)
            roles = (*before.roles, role) if before else (role,)
            found[key] = Service(roles, url.rstrip("/"), model, max(longest, before.longest if before else 0))
    return list(found.values())


def _guess_prompt(config: RunConfig, role: str) -> int:
    return config.rollouts.max_context // CHARACTERS_A_TOKEN if role == "teacher" else TYPICAL_PROMPT


def _is_shown_pictures(role: str) -> bool:
    """Say whether a role is shown pictures; one without a name of ours is a further solver."""
    return role in SEEING or role not in ModelsConfig.model_fields


def _look_at_key(service: Service) -> Finding | None:
    """Return a problem where the key's variable is not set: without it nothing is sent."""
    name = service.model.api_key_env
    if not name or os.environ.get(name):
        return None
    return Finding(f"{service.place}: key", "problem", f"environment variable {name} is not set; it holds the key")


async def _ask_all(services: Sequence[Service], patience: float) -> list[Finding]:
    timeout = aiohttp.ClientTimeout(total=None)
    async with aiohttp.ClientSession(timeout=timeout, trust_env=False, cookie_jar=aiohttp.DummyCookieJar()) as session:
        lines = [Line(session, os.environ.get(service.model.api_key_env, ""), patience) for service in services]
        asked = await asyncio.gather(*(_ask(service, line) for service, line in zip(services, lines, strict=True)))
    lengths: dict[tuple[tuple[str, ...], str], set[int]] = {}
    for service, (_, entry) in zip(services, asked, strict=True):
        if entry is not None and entry.max_model_len is not None:
            lengths.setdefault((service.roles, service.model.name), set()).add(entry.max_model_len)
    found = [finding for findings, _ in asked for finding in findings]
    return found + [_compare_lengths(*key, some) for key, some in lengths.items() if len(some) > 1]


def _compare_lengths(roles: tuple[str, ...], name: str, lengths: set[int]) -> Finding:
    detail = f"{name} has contexts of {', '.join(f'{length:,}' for length in sorted(lengths))} tokens"
    return Finding(f"{', '.join(roles)}: addresses", "warning", f"{detail}; they must serve the very same model")


async def _ask(service: Service, line: Line) -> tuple[list[Finding], _Model | None]:
    """Ask one service: what it serves first, then for a few words, and the rest together if it has any."""
    served, entry = await _look_at_list(service, line)
    if served.state == "problem":
        return [served], None
    looks: dict[str, Callable[[Service, Line], Awaitable[Finding]]] = {}
    if service.seen:
        looks["pictures"] = _look_at_pictures
    if service.model.replies != "text":
        looks["replies"] = _look_at_replies
    found = [served, *(_look_at_context(service, entry) if entry else []), await _look_at_chat(service, line)]
    if found[-1].state == "ok":
        return [*found, *await asyncio.gather(*(look(service, line) for look in looks.values()))], entry
    untried = "not tried: the chat failed"
    return [*found, *(Finding(f"{service.place}: {name}", "warning", untried) for name in looks)], entry


async def _look_at_list(service: Service, line: Line) -> tuple[Finding, _Model | None]:
    """Say whether the server is there and lists the model, and return what it says of it."""
    what, answer = service.place, await line.send(f"{service.url}/models")
    if answer.status in (401, 403):
        variable = service.model.api_key_env or "no variable; name one as api_key_env"
        return Finding(what, "problem", f"does not take the key of {variable} ({answer.quote()})"), None
    if not answer.status or answer.status >= 500:
        advice = answer.advice or "start it, or see base_url"
        return Finding(what, "problem", f"{answer.quote()}; {advice}"), None
    if answer.is_busy:
        return _make_busy(what, answer), None
    try:
        listed = _Models.model_validate_json(answer.text).data
    except ValidationError:
        return Finding(what, "warning", f"does not say which models it serves ({answer.quote()}); see base_url"), None
    entry = next((model for model in listed if model.id == service.model.name), None)
    if entry is None:
        settings = " and ".join(f"models.{_name_table(role)}.name" for role in service.roles)
        detail = f"serves {_name_some(listed)}; not {service.model.name}: say what it serves in {settings}"
        return Finding(what, "problem", detail), None
    return Finding(what, "ok", f"serves {entry.id}"), entry


def _make_busy(what: str, answer: Answer) -> Finding:
    return Finding(what, "warning", f"busy ({answer.quote()}); look again later")


def _name_table(role: str) -> str:
    """Return where a role is set; a further solver has a table among the solvers."""
    return role if role in ModelsConfig.model_fields else f"solvers.{role}"


def _name_some(listed: Sequence[_Model]) -> str:
    names = [model.id[:QUOTED] for model in listed]
    more = len(names) - _SHOWN_NAMES
    return (", ".join(names[:_SHOWN_NAMES]) or "nothing") + (f" and {more} more" if more > 0 else "")


def _look_at_context(service: Service, entry: _Model) -> list[Finding]:
    if entry.max_model_len is None:
        return []
    what, length = f"{service.place}: context", entry.max_model_len
    if length <= service.model.max_tokens:
        return [Finding(what, "problem", f"{length:,} tokens; max_tokens of {service.model.max_tokens:,} leaves none")]
    if length < service.longest:
        wanted = f"a long prompt and max_tokens of {service.model.max_tokens:,} take about {service.longest:,}"
        return [Finding(what, "warning", f"{length:,} tokens; {wanted}: questions may fail as prompt-too-long")]
    return [Finding(what, "ok", f"{length:,} tokens")]


async def _look_at_chat(service: Service, line: Line) -> Finding:
    what, answer = f"{service.place}: chat", await _chat(service, line, "Say hello.", 8)
    if answer.is_busy:
        return _make_busy(what, answer)
    if answer.read_completion() is None:
        return Finding(what, "problem", f"no completion ({answer.quote()})")
    return Finding(what, "ok", f"answers in {answer.milliseconds:,.0f} ms")


async def _look_at_pictures(service: Service, line: Line) -> Finding:
    what = f"{service.place}: pictures"
    address = f"data:image/png;base64,{base64.b64encode(make_png()).decode()}"
    content: list[dict[str, Any]] = [
        {"type": "image_url", "image_url": {"url": address}},
        {"type": "text", "text": "What is it?"},
    ]
    answer = await _chat(service, line, content, 8)
    if answer.read_completion() is None:
        return _explain_failure(what, answer, "takes none", "the role is shown pictures")
    return Finding(what, "ok", "takes them")


async def _look_at_replies(service: Service, line: Line) -> Finding:
    """Say whether a reply is forced into its shape, by a schema that nobody would follow by accident."""
    forced, what = service.model.replies, f"{service.place}: replies"
    prompt = "Which colour has the sky? Reply with a JSON object with the one key colour."
    shape: dict[str, Any] = {"type": "json_object"}
    if forced == "schema":
        shape = {"type": "json_schema", "json_schema": {"name": "sky", "schema": _SCHEMA, "strict": True}}
    answer = await _chat(service, line, prompt, _REPLY_TOKENS, shape)
    text = answer.read_completion()
    if text is None:
        advice = 'say replies = "json" or "text"' if forced == "schema" else 'say replies = "text"'
        return _explain_failure(what, answer, f"takes no request for replies = {forced!r}", advice)
    if _obeys(text, forced):
        return Finding(what, "ok", f"{forced} is obeyed")
    glimpse = redact(text.encode(), line.key)[:60]
    if answer.is_cut:
        # A model that likes white space may fill a forced reply with it for ever.
        detail = f"a forced reply did not end in {_REPLY_TOKENS} tokens ({glimpse!r}), so that nobody can tell"
        return Finding(what, "warning", f"{detail}; rows may fail as cut-reply")
    advice = 'those that fit none are repaired by asking again; replies = "text" says so beforehand'
    return Finding(what, "warning", f"{forced} is not obeyed ({glimpse!r}); {advice}")


def _explain_failure(what: str, answer: Answer, refuses: str, advice: str) -> Finding:
    """Say what a request came to that differs from the chat; only a refusal says what a server does not take."""
    if answer.is_busy:
        return _make_busy(what, answer)
    if answer.is_refusal:
        return Finding(what, "problem", f"{refuses} ({answer.quote()}); {advice}")
    return Finding(what, "problem", f"no completion ({answer.quote()}), though the chat had one")


def _obeys(text: str, forced: str) -> bool:
    try:
        said = json.loads(text)
    except (ValueError, RecursionError):
        return False
    return isinstance(said, dict) and (forced != "schema" or said.get("colour") in _STONES)


async def _chat(
    service: Service,
    line: Line,
    content: str | list[dict[str, Any]],
    tokens: int,
    shape: Mapping[str, Any] | None = None,
) -> Answer:
    body: dict[str, Any] = {
        "model": service.model.name,
        "messages": [{"role": "user", "content": content}],
        "max_tokens": min(tokens, service.model.max_tokens),
        "temperature": 0.0,
    }
    if shape is not None:
        body["response_format"] = shape
    return await line.send(f"{service.url}/chat/completions", body)
