"""``synth doctor``: is a run ready? Every line says what was looked at, what was found, and what to do about it.

What ``synth doctor`` says of each thing it looks at.

What ``synth doctor`` asks of the servers behind models: are they there, and can they do what their roles need?

Every address is asked at the same time and nothing is waited for longer than a few seconds. What a server says is
hostile: it is read up to a bound, and the key is cut out of whatever is quoted.

Asking a server one thing, on a short lead: a bounded answer in a bounded time, and the key cut out of it.

What ``synth doctor`` sees of models without asking any server: vLLM on this machine, and who judges whom.

What ``synth doctor`` sees of pictures: who ranks, reads, searches and repairs them, and what is missing for it.

What ``synth doctor`` asks of the services behind the live tools: are they there, and do they take the key?

Each gets one request that asks for nothing, which no service charges: a key is looked at before what is asked for.
"""

import asyncio
import base64
import binascii
import importlib.util
import json
import os
import re
import shutil
import socket
import ssl
import struct
import subprocess
import sys
import time
import zlib
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final, Literal
from urllib.parse import urlsplit

import aiohttp
from pydantic import BaseModel, Field, ValidationError
from rich.table import Table

from pipelines.agent.pictures import has_opencv, make_repairs
from pipelines.config.settings import LiveConfig, ModelConfig, ModelsConfig, OcrEngine, RunConfig
from pipelines.corpus.dump import list_parts, read_site
from pipelines.corpus.manifest import find_side_files
from pipelines.errors import ConfigError, RateLimited, RecordFailed, SynthError
from pipelines.run.assembly import (
    LiveService,
    has_clip,
    list_services,
    make_engine,
    make_manners,
    make_upscaler,
    picks_clip,
)
from pipelines.run.corpora import DUMP_PATTERN
from pipelines.run.workspace import Workspace
from pipelines.services.clients.http import Busy, LiveReply, LiveRequest, NoReply, Refusal, open_client, redact
from pipelines.services.clients.pages import name_converter
from pipelines.services.clients.search import Service

State = Literal["ok", "warning", "problem"]


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing looked at: what was found, and what to do about it."""

    what: str
    state: State
    detail: str


MAX_REPLY = 1 << 20
QUOTED = 160
"""Characters of an answer that a finding quotes."""
_LOOKED: Final = 4000
"""Characters of a page in which words are looked for."""
_TAG = re.compile(r"<(script|style)\b[^<>]*>.*?</\1\s*>|<[^<>]*(?:>|$)", re.IGNORECASE | re.DOTALL)
_NO_TLS = ("WRONG_VERSION_NUMBER", "RECORD_LAYER_FAILURE", "PACKET_LENGTH_TOO_LONG", "HTTP_REQUEST")
"""What OpenSSL calls a reply that is no handshake."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What a server answered; status 0 where nothing whole came, and then ``text`` says what came."""

    status: int
    text: str
    milliseconds: float = 0.0
    advice: str = ""
    """What to do where nothing whole came, if the cause says so."""

    @property
    def is_busy(self) -> bool:
        """Whether the server asks for patience; an account with nothing left is not that."""
        return self.status == 429 and isinstance(Refusal("", 429, 0.0, self.text, "").explain(), RateLimited)

    @property
    def is_refusal(self) -> bool:
        """Whether the server understood the request and does not take it."""
        return 400 <= self.status < 500 and self.status not in (408, 409, 425, 429)

    @property
    def is_cut(self) -> bool:
        """Whether a completion ended at the limit of its tokens."""
        return bool(json.loads(self.text)["choices"][0].get("finish_reason") == "length")

    def quote(self) -> str:
        """Return the beginning of it for a reader, a page without its tags."""
        if not self.status:
            return self.text
        said = _strip_tags(self.text[:_LOOKED])[:QUOTED]
        return f"HTTP {self.status}: {said}" if said else f"HTTP {self.status}"

    def read_completion(self) -> str | None:
        """Return the text of a completion, or None where it is none."""
        if self.status != 200:
            return None
        try:
            message = json.loads(self.text)["choices"][0]["message"]
            return str(message.get("content") or "")
        except (ValueError, RecursionError, LookupError, TypeError, AttributeError):
            return None


def _strip_tags(text: str) -> str:
    return " ".join(_TAG.sub(" ", text).split()) if text.startswith("<") else text


@dataclass(frozen=True, slots=True)
class Line:
    """An open line to one service."""

    session: aiohttp.ClientSession
    key: str = field(repr=False)
    patience: float

    async def send(self, url: str, body: Mapping[str, Any] | None = None) -> Answer:
        """Return the answer to a GET, or to a POST of a JSON body; whatever goes wrong is an answer, too."""
        headers = {"Authorization": f"Bearer {self.key}"} if self.key else {}
        started = time.monotonic()
        try:
            async with (
                asyncio.timeout(self.patience),
                self.session.request(
                    "GET" if body is None else "POST", url, json=body, headers=headers, allow_redirects=False
                ) as response,
            ):
                text = redact(await _read_bounded(response), self.key)
                return Answer(response.status, text, (time.monotonic() - started) * 1000)
        except TimeoutError:
            return Answer(0, f"no answer in {self.patience:g} s")
        except (aiohttp.ClientError, OSError, ValueError) as error:
            said, advice = _explain(error)
            return Answer(0, redact(said.encode(), self.key)[:QUOTED], advice=advice)


def _explain(error: Exception) -> tuple[str, str]:
    """Return in words why nothing whole came, and what to do if that is plain."""
    if isinstance(error, aiohttp.ClientConnectorCertificateError):
        return f"the certificate of {error.host}:{error.port} is not trusted", "see SSL_CERT_FILE, or base_url"
    if isinstance(error, aiohttp.ClientConnectorError):
        return _explain_connection(f"{error.host}:{error.port}", error)
    if isinstance(error, aiohttp.InvalidURL):
        return f"{error} is no address", "see base_url"
    if isinstance(error, aiohttp.ClientResponseError):
        return "no answer: it speaks no HTTP", "see base_url"
    if isinstance(error, (aiohttp.ClientError, OSError)):
        return "the connection ended before a whole answer came", ""
    return f"no answer: {error}", ""


def _explain_connection(place: str, error: aiohttp.ClientConnectorError) -> tuple[str, str]:
    cause = error.os_error
    if isinstance(cause, ConnectionRefusedError):
        return f"nothing listens at {place}", ""
    if isinstance(error, aiohttp.ClientConnectorDNSError):
        return f"no address is known of {error.host}", "see base_url"
    if isinstance(cause, ssl.SSLError):
        if cause.reason in _NO_TLS:
            return f"{place} speaks no TLS", "say http:// in base_url"
        reason = (cause.reason or "unknown cause").replace("_", " ").lower()
        return f"no TLS connection to {place}: {reason}", "see base_url"
    return f"no connection to {place}: {cause.strerror or cause}", ""


async def _read_bounded(response: aiohttp.ClientResponse) -> bytes:
    body = bytearray()
    async for chunk in response.content.iter_chunked(1 << 16):
        body += chunk
        if len(body) > MAX_REPLY:
            raise ValueError(f"a reply of over {MAX_REPLY:,} bytes")
    return bytes(body)


def make_png(side: int = 8) -> bytes:
    """Return a small green picture."""
    rows = (b"\0" + b"\x30\xa0\x30" * side) * side
    header = struct.pack(">IIBBBBB", side, side, 8, 2, 0, 0, 0)
    chunks = ((b"IHDR", header), (b"IDAT", zlib.compress(rows)), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(data)) + kind + data + struct.pack(">I", binascii.crc32(kind + data))
        for kind, data in chunks
    )


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
class ServicesService:
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

    Servers that the run starts itself are not there yet, and are looked at by ``pipelines.cli.doctor``.

    Args:
        config: of the run.
        patience: seconds for one reply; each server is asked up to three times in a row.
    """
    services = list_services_services(config)
    keys = [_look_at_key(service) for service in services]
    asked = [service for service, missing in zip(services, keys, strict=True) if missing is None]
    found = [missing for missing in keys if missing is not None]
    return [*dict.fromkeys(found), *asyncio.run(_ask_all(asked, patience))] if services else []


def list_roles_in_use(config: RunConfig) -> list[str]:
    """Return the roles that the run has work for: further solvers only where difficulty names them."""
    named = {*config.difficulty.solvers, config.difficulty.text_solver}
    return [role for role in config.models.list_roles() if role not in config.models.solvers or role in named]


def list_services_services(config: RunConfig) -> list[ServicesService]:
    """Return every address that is to be asked, once for all roles that ask it for the same model."""
    found: dict[tuple[Any, ...], ServicesService] = {}
    for role in list_roles_in_use(config):
        model = config.models.get(role)
        if model.adapter != "openai" or model.serve.own:
            continue
        longest = model.max_tokens + _guess_prompt(config, role)
        for url in (model.base_url, *model.more_urls):
            key = (url, model.name, model.api_key_env, model.replies)
            before = found.get(key)
            roles = (*before.roles, role) if before else (role,)
            found[key] = ServicesService(roles, url.rstrip("/"), model, max(longest, before.longest if before else 0))
    return list(found.values())


def _guess_prompt(config: RunConfig, role: str) -> int:
    return config.rollouts.max_context // CHARACTERS_A_TOKEN if role == "teacher" else TYPICAL_PROMPT


def _is_shown_pictures(role: str) -> bool:
    """Say whether a role is shown pictures; one without a name of ours is a further solver."""
    return role in SEEING or role not in ModelsConfig.model_fields


def _look_at_key(service: ServicesService) -> Finding | None:
    """Return a problem where the key's variable is not set: without it nothing is sent."""
    name = service.model.api_key_env
    if not name or os.environ.get(name):
        return None
    return Finding(f"{service.place}: key", "problem", f"environment variable {name} is not set; it holds the key")


async def _ask_all(services: Sequence[ServicesService], patience: float) -> list[Finding]:
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


async def _ask(service: ServicesService, line: Line) -> tuple[list[Finding], _Model | None]:
    """Ask one service: what it serves first, then for a few words, and the rest together if it has any."""
    served, entry = await _look_at_list(service, line)
    if served.state == "problem":
        return [served], None
    looks: dict[str, Callable[[ServicesService, Line], Awaitable[Finding]]] = {}
    if service.seen:
        looks["pictures"] = _look_at_pictures
    if service.model.replies != "text":
        looks["replies"] = _look_at_replies
    found = [served, *(_look_at_context(service, entry) if entry else []), await _look_at_chat(service, line)]
    if found[-1].state == "ok":
        return [*found, *await asyncio.gather(*(look(service, line) for look in looks.values()))], entry
    untried = "not tried: the chat failed"
    return [*found, *(Finding(f"{service.place}: {name}", "warning", untried) for name in looks)], entry


async def _look_at_list(service: ServicesService, line: Line) -> tuple[Finding, _Model | None]:
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


def _look_at_context(service: ServicesService, entry: _Model) -> list[Finding]:
    if entry.max_model_len is None:
        return []
    what, length = f"{service.place}: context", entry.max_model_len
    if length <= service.model.max_tokens:
        return [Finding(what, "problem", f"{length:,} tokens; max_tokens of {service.model.max_tokens:,} leaves none")]
    if length < service.longest:
        wanted = f"a long prompt and max_tokens of {service.model.max_tokens:,} take about {service.longest:,}"
        return [Finding(what, "warning", f"{length:,} tokens; {wanted}: questions may fail as prompt-too-long")]
    return [Finding(what, "ok", f"{length:,} tokens")]


async def _look_at_chat(service: ServicesService, line: Line) -> Finding:
    what, answer = f"{service.place}: chat", await _chat(service, line, "Say hello.", 8)
    if answer.is_busy:
        return _make_busy(what, answer)
    if answer.read_completion() is None:
        return Finding(what, "problem", f"no completion ({answer.quote()})")
    return Finding(what, "ok", f"answers in {answer.milliseconds:,.0f} ms")


async def _look_at_pictures(service: ServicesService, line: Line) -> Finding:
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


async def _look_at_replies(service: ServicesService, line: Line) -> Finding:
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
    service: ServicesService,
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


LOOPBACK: Final = "127.0.0.1"
START_SECONDS: Final = 20.0
_FIND_VLLM = "import importlib.util as u; s = u.find_spec('vllm'); print(s.origin if s and s.origin else '')"
"""Found and not imported: importing it takes longer than everything else here."""
_FAMILY = re.compile(r"[^\W\d_]+")
SCRIPTED = frozenset(["templates", "knower", "teacher", "judge"])


def look_at_local_models(config: RunConfig) -> list[Finding]:
    """Say whether vLLM, its models and its ports are ready for what the run starts itself."""
    models = {role: config.models.get(role) for role in list_roles_in_use(config)}
    local = {role: model for role, model in models.items() if _is_own(model)}
    found: list[Finding] = []
    for role, model in local.items():
        found += [_look_at_python(role, model), _look_at_weights(role, model), _look_at_port(role, model)]
    return [*found, *_look_at_shared_ports(local)]


def _is_own(model: ModelConfig) -> bool:
    return model.adapter == "openai" and model.serve.own


def _look_at_python(role: str, model: ModelConfig) -> Finding:
    what, python = f"{role}: vLLM", model.serve.python or sys.executable
    said = find_vllm(python)
    if said:
        return Finding(what, "problem", f"{python}: {said}; name one that has it: models.{role}.serve.python")
    return Finding(what, "ok", f"{python} has it")


def find_vllm(python: str) -> str:
    """Return why a Python cannot be used for vLLM; empty where it has it."""
    try:
        done = subprocess.run(
            [python, "-c", _FIND_VLLM], capture_output=True, text=True, check=False, timeout=START_SECONDS
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"cannot be run ({type(error).__name__})"
    return "" if done.returncode == 0 and done.stdout.strip() else "has no vLLM"


def _look_at_weights(role: str, model: ModelConfig) -> Finding:
    what, name = f"{role}: weights", model.serve.model or model.name
    folder = Path(name).expanduser()
    if (folder / "config.json").is_file():
        return Finding(what, "ok", f"{name}: a model's folder")
    if folder.is_dir():
        return Finding(what, "problem", f"{name}: no config.json in it; name a model's folder")
    if folder.is_absolute() or name.startswith((".", "~")) or name.count("/") > 1:
        return Finding(what, "problem", f"{name}: no such folder; see models.{role}.serve.model")
    return Finding(what, "ok", f"{name}: no folder here; vLLM takes it from the Hub or its cache")


def _look_at_port(role: str, model: ModelConfig) -> Finding:
    what, port = f"{role}: port", model.serve.port
    address = urlsplit(model.base_url)
    if (address.port or {"https": 443}.get(address.scheme, 80)) != port:
        return Finding(what, "problem", f"base_url is {model.base_url}, but the server will be at port {port}")
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        # As servers do: a port that was closed a moment ago is free.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((LOOPBACK, port))
        except OSError as error:
            advice = f"end what listens there, or choose another models.{role}.serve.port"
            return Finding(what, "problem", f"{port} cannot be had ({error.strerror}); {advice}")
    return Finding(what, "ok", f"{port} is free")


def _look_at_shared_ports(local: Mapping[str, ModelConfig]) -> Iterator[Finding]:
    """Find ports that two different models want."""
    first: dict[int, tuple[str, ModelConfig]] = {}
    for role, model in local.items():
        other, before = first.setdefault(model.serve.port, (role, model))
        if (before.name, before.serve) != (model.name, model.serve):
            detail = f"{model.serve.port} is that of {other}, which is another model; give each one its own"
            yield Finding(f"{role}: port", "problem", detail)


def look_at_judges(config: RunConfig) -> list[Finding]:
    """Say whether a judge is a model it judges, and whether two judges are of one family."""
    models = config.models
    judged = {role: models.get(role) for role in list_roles_in_use(config) if role in models.solvers}
    judged |= {"solver": models.solver, "teacher": models.teacher}
    judges = {"judge": models.judge, "second_judge": models.second_judge}
    found = []
    for role, judge in judges.items():
        if judge is None:
            continue
        for other, model in judged.items():
            finding = _compare(role, judge, other, model)
            found += [finding] if finding else []
    if models.process_judge:
        finding = _compare("process_judge", models.process_judge, "teacher", models.teacher)
        found += [finding] if finding else []
    if models.judge and models.second_judge:
        found.append(_compare_judges(models.judge, models.second_judge))
    return found


def _compare(role: str, judge: ModelConfig, other: str, model: ModelConfig) -> Finding | None:
    if judge.name != model.name:
        return None
    if judge.revision == model.revision:
        return Finding(f"{role} and {other}", "problem", f"both are {judge.name}; a judge is never the model it judges")
    detail = f"both are {judge.name}, of the revisions {judge.revision!r} and {model.revision!r}"
    return Finding(f"{role} and {other}", "warning", f"{detail}; a judge flatters its own kind")


def _compare_judges(judge: ModelConfig, second: ModelConfig) -> Finding:
    what = "judge and second_judge"
    if (judge.name, judge.revision) == (second.name, second.revision):
        return Finding(what, "problem", f"both are {judge.name}; they will always agree")
    family = name_family(judge.name)
    if family and family == name_family(second.name):
        return Finding(
            what, "warning", f"{judge.name} and {second.name} look like one family, {family}: they err alike"
        )
    return Finding(what, "ok", f"{judge.name} and {second.name}")


def name_family(name: str) -> str:
    """Return what family a model's name looks like: its first word, up to a digit, such as ``qwen`` of Qwen/Qwen3-VL.

    A rule of thumb: relatives by another name are not found, and a family of two makers' models is taken for one.
    """
    word = _FAMILY.search(name.rstrip("/").rsplit("/", 1)[-1])
    return word.group().lower() if word else ""


_MISSING = {
    "downsample": "tools.edsr names no weights",
    "perspective": "OpenCV is not installed: pip install 'synth[vision]'",
}
"""Why the tool that repairs a degradation cannot work here."""


def look_at_pictures(config: RunConfig) -> list[Finding]:
    """Return what stands ready for pictures and what does not; nothing is loaded that takes longer than a second."""
    return [
        _look_at_ranker(config),
        *_look_at_encoder(config),
        *(_look_at_engine(config, name) for name in _list_engines(config)),
        *_look_at_repairs(config),
        *_look_at_source(config),
    ]


def _look_at_ranker(config: RunConfig) -> Finding:
    ranker, pretrained = config.groundings.ranker, config.encoder.pretrained
    if picks_clip(config):
        return Finding("ranker", "ok", f"pictures are compared with descriptions by {config.encoder.model}")
    if ranker == "metadata":
        return Finding("ranker", "ok", "pictures are ranked by what is told of them")
    why = "pip install 'synth[clip]'" if pretrained else "encoder.pretrained names no weights"
    return Finding("ranker", "warning", f"pictures are ranked by what is told of them alone: {why}")


def _look_at_encoder(config: RunConfig) -> list[Finding]:
    """Say whether the encoder could be loaded; its weights are found, not read."""
    if not picks_clip(config) and config.image_search.method != "clip":
        return []
    if not has_clip():
        return [Finding("encoder", "problem", "the extra is not installed: pip install 'synth[clip]'")]
    from pipelines.services.clients.encoder import find_checkpoint, read_architecture

    try:
        read_architecture(config.encoder.model)
        found = find_checkpoint(config.encoder.pretrained)
    except SynthError as error:
        return [Finding("encoder", "problem", str(error))]
    where = f"weights in {found}" if found else f"weights {config.encoder.pretrained}, fetched when first used"
    return [Finding("encoder", "ok", f"{config.encoder.model}, {where}")]


def _list_engines(config: RunConfig) -> list[OcrEngine]:
    named: list[OcrEngine] = [*config.groundings.ocr]
    if config.tools.layout:
        named.append(config.tools.layout)
    return list(dict.fromkeys(named))


def _look_at_engine(config: RunConfig, name: OcrEngine) -> Finding:
    try:
        engine = make_engine(name)
    except SynthError as error:
        return Finding(f"OCR {name}", "problem", str(error))
    return Finding(f"OCR {name}", "ok", engine.identity)


def _look_at_repairs(config: RunConfig) -> list[Finding]:
    if not config.enhancements.share:
        return []
    try:
        possible = make_repairs(make_upscaler(config.tools), has_opencv())
    except SynthError as error:
        return [Finding("degraded pictures", "problem", str(error))]
    wanted = config.enhancements.degradations
    missing = [
        f"{each} is left out: {_MISSING.get(each, 'nothing repairs it')}" for each in wanted if each not in possible
    ]
    if missing:
        return [Finding("degraded pictures", "warning", "; ".join(missing))]
    return [Finding("degraded pictures", "ok", f"{config.enhancements.share:.0%} by {', '.join(wanted)}")]


def _look_at_source(config: RunConfig) -> list[Finding]:
    if not config.corpus.dump or config.commons.fetch or find_side_files(Path(config.corpus.dump)).images is not None:
        return []
    detail = (
        "no images/images.tsv beside the dump and commons.fetch is false: no picture is at hand, every row is refused"
    )
    return [Finding("pictures", "warning" if not config.groundings.require_image else "problem", detail)]


LIVE_SERVICES_PATIENCE: Final = 10.0
"""Seconds for one reply."""


def look_at_live(config: LiveConfig, patience: float = LIVE_SERVICES_PATIENCE) -> list[Finding]:
    """Ask every service behind the live tools, all at the same time.

    Args:
        config: of the services.
        patience: seconds for one reply.
    """
    found = asyncio.run(_ask_all_live_services(config, list_services(config), patience))
    if config.images == "serpapi" and not config.picture_base:
        detail = "live.picture_base is empty: serpapi takes addresses alone; say where images/ is published"
        found.append(Finding("live images: pictures", "problem", detail))
    return found


async def _ask_all_live_services(config: LiveConfig, services: Sequence[LiveService], patience: float) -> list[Finding]:
    return list(await asyncio.gather(*(_ask_live_services(config, service, patience) for service in services)))


async def _ask_live_services(config: LiveConfig, asked: LiveService, patience: float) -> Finding:
    if not asked.url:
        return _look_at_direct()
    what = f"live {asked.tool}: {asked.protocol} at {asked.url}"
    client = open_client(replace(make_manners(config), tries=1, timeout=patience))
    service = Service(asked.protocol, asked.url, asked.key_env, client, f"live.{asked.tool}_url")
    try:
        reply = await client.send(_make_request(asked, service.read_key()))
    except SynthError as error:
        return Finding(what, "problem", str(error))
    except NoReply as error:
        return Finding(what, "problem", f"{error}; see {service.setting}")
    return _judge(what, service, reply)


def _look_at_direct() -> Finding:
    what = "live reader: pages are fetched here"
    try:
        return Finding(what, "ok", name_converter())
    except ConfigError as error:
        return Finding(what, "problem", str(error))


def _make_request(asked: LiveService, key: str) -> LiveRequest:
    """Return a request that a service refuses for what is missing in it, and before that for a wrong key."""
    json = {"Content-Type": "application/json", "Accept": "application/json"}
    match asked.protocol:
        case "serper":
            return LiveRequest(asked.url, "POST", json | ({"X-API-KEY": key} if key else {}), body=b"{}")
        case "google-vision":
            keyed = json | ({"X-Goog-Api-Key": key} if key else {})
            return LiveRequest(asked.url, "POST", keyed, body=b'{"requests": []}')
        case "serpapi":
            engine = "google" if asked.tool == "search" else "google_lens"
            return LiveRequest(asked.url, query={"engine": engine} | ({"api_key": key} if key else {}))
    return LiveRequest(asked.url, headers={"Authorization": f"Bearer {key}"} if key else {})


def _judge(what: str, service: Service, reply: LiveReply) -> Finding:
    if reply.status == 200:
        return Finding(what, "ok", "is there")
    match service.explain(reply):
        case RecordFailed():
            return Finding(what, "ok", "is there and takes the key" if service.key_env else "is there")
        case Busy() | RateLimited():
            return Finding(what, "warning", f"busy (HTTP {reply.status}); look again later")
        case error:
            return Finding(what, "problem", str(error))


BYTES_PER_DUMP_BYTE = 12
"""Workspace bytes a byte of compressed dump needs at most: page store, search index, tables."""
SPARE_BYTES = 500_000_000


@dataclass(frozen=True, slots=True)
class Examination:
    """Everything looked at; ready unless something is a problem."""

    findings: tuple[Finding, ...]

    @property
    def ready(self) -> bool:
        """Whether no finding is a problem."""
        return all(finding.state != "problem" for finding in self.findings)


def examine_run(config: RunConfig, root: Path, patience: float = PATIENCE) -> Examination:
    """Look at software, input, workspace, disk and models; nothing is written but a probe in an existing workspace.

    Args:
        config: of the run.
        root: the workspace.
        patience: seconds for one reply of a server; servers are asked a few tokens each, where models have some.
    """
    workspace = Workspace(root.resolve())
    looks: tuple[Callable[[], list[Finding]], ...] = (
        _look_at_software,
        lambda: _look_at_input(config),
        lambda: _look_at_workspace(workspace),
        lambda: _look_at_disk(config, workspace),
        lambda: _look_at_models(config),
        lambda: look_at_judges(config),
        lambda: look_at_local_models(config),
        lambda: look_at_pictures(config),
        lambda: look_at_services(config, patience),
        lambda: look_at_live(config.live, patience) if config.tools.family == "live" else [],
    )
    return Examination(tuple(finding for look in looks for finding in look()))


def _look_at_software() -> list[Finding]:
    version = ".".join(map(str, sys.version_info[:3]))
    found = [Finding("python", "ok" if sys.version_info >= (3, 11) else "problem", version)]
    for extra, module in (("hub", "huggingface_hub"), ("hub", "datasets")):
        here = importlib.util.find_spec(module) is not None
        found.append(
            Finding(module, "ok" if here else "warning", "installed" if here else f"pip install 'synth[{extra}]'")
        )
    return found


def _look_at_input(config: RunConfig) -> list[Finding]:
    if config.corpus.generate is not None:
        return [Finding("input", "ok", f"a toy Wikipedia of {config.corpus.generate.entities:,} entities is generated")]
    dumps = [Path(config.corpus.dump)]
    if config.corpus.world:
        dumps = sorted(p for p in Path(config.corpus.world).glob(DUMP_PATTERN) if "-index" not in p.name)
    if len(dumps) != 1 or not dumps[0].is_file():
        return [Finding("input", "problem", f"{config.corpus.dump or config.corpus.world}: no dump there")]
    try:
        site = read_site(dumps[0])
    except SynthError as error:
        return [Finding("input", "problem", str(error))]
    side = [path.name for _, path in find_side_files(dumps[0]).list_files()]
    state: State = "ok" if side else "warning"
    return [
        Finding("input", "ok", f"{dumps[0].name}: {site.dbname}, {dumps[0].stat().st_size:,} bytes"),
        Finding("files beside it", state, ", ".join(side) or "none: no Qids, counts or pictures will be known"),
    ]


def _look_at_workspace(workspace: Workspace) -> list[Finding]:
    if not workspace.root.exists():
        return [_look_at_place(workspace.root)]
    try:
        with workspace.claim():
            return [Finding("workspace", "ok", f"{workspace.root}: free, and its file system renames and locks")]
    except SynthError as error:
        return [Finding("workspace", "problem", str(error))]


def _look_at_place(root: Path) -> Finding:
    """Say whether a workspace that is not there yet could be made; nothing is made."""
    place = _find_place(root)
    if place.is_dir() and os.access(place, os.W_OK | os.X_OK):
        return Finding("workspace", "ok", f"{root}: will be made in {place}, which can be written to")
    why = "cannot be written to" if place.is_dir() else "is no folder"
    return Finding("workspace", "problem", f"{root}: {place} {why}; choose another --workspace")


def _find_place(path: Path) -> Path:
    """Return a path's nearest ancestor that exists, itself included."""
    return next(place for place in (path, *path.parents) if place.exists())


def _look_at_disk(config: RunConfig, workspace: Workspace) -> list[Finding]:
    free = shutil.disk_usage(_find_place(workspace.root)).free
    dump = Path(config.corpus.dump)
    known = config.corpus.dump and dump.is_file()
    size = sum(path.stat().st_size for path in list_parts(dump)) if known else 0
    need = SPARE_BYTES + BYTES_PER_DUMP_BYTE * size
    detail = f"{free / 1e9:.1f} GB free, about {need / 1e9:.1f} GB may be needed"
    return [Finding("disk", "ok" if free > need else "problem", detail)]


def _look_at_models(config: RunConfig) -> list[Finding]:
    models = config.models
    roles = {role: models.get(role) for role in list_roles_in_use(config)}
    found = [Finding(f"{role} model", "ok", _describe_model(model)) for role, model in roles.items()]
    solvers = [role for role in roles if role == "solver" or role in models.solvers]
    alike = [role for role in solvers if roles[role].name == models.teacher.name]
    if alike:
        detail = f"{alike[0]} and teacher are the same model: difficulty will flatter it"
        found.append(Finding("roles", "warning", detail))
    return [*found, *_look_at_attempts(config, {role: roles[role] for role in solvers})]


def _look_at_attempts(config: RunConfig, solvers: Mapping[str, ModelConfig]) -> list[Finding]:
    """Say what makes several attempts one: no temperature, or one model in two roles, whose replies are shared."""
    tries, found = config.difficulty.attempts, []
    real = [role for role, model in solvers.items() if model.adapter not in SCRIPTED]
    if real and config.models.judge is None:
        detail = (
            f"{real[0]} is a model and nobody judges: names and phrases in other words stay unscored; set models.judge"
        )
        found.append(Finding("judge", "warning", detail))
    greedy = [role for role, model in solvers.items() if model.adapter not in SCRIPTED and model.temperature == 0.0]
    if greedy and tries > 1:
        detail = f"{greedy[0]} has temperature 0: {tries} attempts are one answer, paid {tries} times; give it one"
        found.append(Finding("attempts", "warning", detail))
    played = Counter((model.name, model.revision or model.base_url) for model in solvers.values())
    same = [name for (name, _), count in played.items() if count > 1]
    if same:
        found.append(Finding("solvers", "warning", f"{same[0]} plays two of them; its attempts are counted twice"))
    return found


def _describe_model(model: ModelConfig) -> str:
    if model.adapter in SCRIPTED:
        return f"{model.name} ({model.adapter}, no service needed)"
    if model.serve.own:
        return f"{model.name} ({model.adapter}, started by the run)"
    return f"{model.name} ({model.adapter})"


def render_examination(examination: Examination) -> Table:
    """Return the findings as a table."""
    table = Table(title="ready" if examination.ready else "not ready")
    for column in ("looked at", "state", "found"):
        table.add_column(column)
    for finding in examination.findings:
        table.add_row(finding.what, finding.state, finding.detail)
    return table
