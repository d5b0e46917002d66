"""``synth doctor``: check whether a run is ready. Each line says what was checked, the result, and what to do.

All servers are sent a few tokens at the same time, with a timeout of a few seconds. Their replies are untrusted: they
are read up to a bound, and API keys are removed from quotes.
"""

import asyncio
import importlib.util
import io
import json
import os
import re
import shutil
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from functools import partial
from importlib.metadata import distributions
from pathlib import Path
from typing import Any, Final, NamedTuple

from PIL import Image
from pydantic import BaseModel
from rich.table import Table
from rich.text import Text

from pipelines.agent.dialects import find_dialect
from pipelines.agent.pictures import has_opencv, make_repairs
from pipelines.config.profiles import NO_RULES, find_replies
from pipelines.config.settings import CommonsConfig, LiveConfig, ModelConfig, RunConfig
from pipelines.corpus.articles import list_source_files
from pipelines.corpus.dump import list_parts, read_site
from pipelines.corpus.manifest import find_side_files
from pipelines.errors import RateLimited, RecordFailed, SynthError
from pipelines.run.advice import lacks_pictures
from pipelines.run.assembly import (
    LiveService,
    has_clip,
    list_missing_roles,
    list_services,
    make_engine,
    make_upscaler,
    open_client,
    picks_clip,
)
from pipelines.run.corpora import DUMP_PATTERN
from pipelines.run.integrity import find_damage
from pipelines.run.judges import Finding, look_at_judges
from pipelines.run.languages import list_problems
from pipelines.run.models import make_commons_api
from pipelines.run.plugins import check_plugins, find_prompt_folder, list_named
from pipelines.run.workspace import Workspace
from pipelines.services.clients.chat import PictureParts, make_body, name_key, read_headers
from pipelines.services.clients.http import (
    Busy,
    HttpReply,
    HttpRequest,
    HttpSession,
    NoConnection,
    NoReply,
    name_host,
    redact,
)
from pipelines.services.clients.ledger import check_ledger
from pipelines.services.clients.pages import name_converter
from pipelines.services.clients.replies import REPAIR, open_ledger
from pipelines.services.clients.search import Service
from pipelines.services.clients.serving import find_port
from pipelines.services.clients.sqlite import FILE
from pipelines.services.clients.vendors import KnownServer, Vendors, read_refusal
from pipelines.services.prompting import check_prompts, make_sampling
from pipelines.services.protocols import ChatRequest, Message
from pipelines.services.traffic import Waiting

SEEING = frozenset(["solver", "teacher", "judge"])
"""Roles that are shown pictures; the writer is where questions are about news."""
PATIENCE: Final = 10.0
"""Seconds for one reply; a model that is slower than that at a few tokens is no use for thousands of requests."""
TYPICAL_PROMPT: Final = 3000
"""Tokens of a long prompt of ours: instructions, an article's beginning, search results, a picture."""
TYPICAL_REPLY: Final = 2048
"""Tokens of a long reply, where a role sets no limit."""
CHARACTERS_A_TOKEN: Final = 4
MAX_REPLY: Final = 1 << 20
QUOTED: Final = 160
"""Characters of an answer that a finding quotes."""
BYTES_PER_DUMP_BYTE = 12
"""Workspace bytes a byte of compressed dump needs at most: page store, search index, tables."""
SPARE_BYTES = 500_000_000
_NAMES = ("flows", "pipelines", "prompts", "schemas")
"""Names that we import ourselves by; any other package may have them, too."""
_REPLY_TOKENS = 128
_STONES = ("quartz", "basalt")
"""Not colours: a model gives one only if the schema is enforced."""
_SCHEMA = {
    "type": "object",
    "properties": {"colour": {"type": "string", "enum": list(_STONES)}},
    "required": ["colour"],
    "additionalProperties": False,
}
_SENT = {
    *("name", "api_key_env", "replies", "profile", "temperature", "extra_body", "headers", "mode"),
}
"""Settings of which a server sees something in a request."""
_TOOLS = '[{"type":"function","function":{"name":"look","parameters":{"type":"object","properties":{}}}}]'
_TAG = re.compile(r"<(script|style)\b[^<>]*>.*?</\1\s*>|<[^<>]*(?:>|$)", re.IGNORECASE | re.DOTALL)
# Found and not imported: importing it takes longer than everything else here.
_FIND_VLLM = "import importlib.util as u; s = u.find_spec('vllm'); print(s.origin if s and s.origin else '')"


@dataclass(frozen=True, slots=True)
class Examination:
    """The results of all checks; ready unless one is a problem."""

    findings: tuple[Finding, ...]

    @property
    def ready(self) -> bool:
        """Whether no finding is a problem."""
        return all(finding.state != "problem" for finding in self.findings)


def examine_run(config: RunConfig, root: Path, patience: float = PATIENCE, deep: bool = False) -> Examination:
    """Check software, input, workspace, disk and models.

    Written are a probe in an existing workspace and what was learned of servers that answer.

    A server has ``patience`` seconds for each reply. ``deep`` compares the sha256 of every file.
    """
    workspace = Workspace(root.resolve())
    findings = [
        *_look_at_software(),
        *_look_at_input(config),
        _look_at_workspace(workspace, config.replies.address),
        *_look_at_ledger(workspace, config.replies.address),
        _look_at_disk(config, workspace),
        *(_look_at_files(workspace) if deep else ()),
        *_look_at_prompts(config),
        *_look_at_plugins(config, workspace.root),
        *_look_at_models(config),
        *look_at_judges(config),
        *look_at_own_servers(config),
        *look_at_pictures(config),
        *asyncio.run(_ask_servers(config, patience, Vendors(workspace.vendors))),
    ]
    return Examination(tuple(findings))


def _look_at_files(workspace: Workspace) -> list[Finding]:
    damage = [Finding("files", "problem", line) for line in find_damage(workspace)]
    return damage or [Finding("files", "ok", "every sha256 is as it was written")]


async def _ask_servers(config: RunConfig, patience: float, vendors: Vendors) -> list[Finding]:
    found = await ask_models(config, patience, vendors)
    found += await ask_live(config.live, patience) if config.tools.family == "live" else []
    return found + ([await ask_commons(config.commons, patience)] if config.commons.endpoint else [])


def _look_at_software() -> list[Finding]:
    version = ".".join(map(str, sys.version_info[:3]))
    found = [Finding("python", "ok" if sys.version_info >= (3, 11) else "problem", version)]
    for module in ("huggingface_hub", "datasets"):
        here = importlib.util.find_spec(module) is not None
        found.append(Finding(module, "ok" if here else "warning", "installed" if here else "pip install 'synth[hub]'"))
    return [*found, _look_at_names()]


def _look_at_names() -> Finding:
    """Say whether another installed package has one of our import names: whose module is imported is then chance."""
    # The library's packages_distributions makes a path of each of some 40,000 installed files, which takes a second.
    owners: dict[str, set[str]] = {name: set() for name in _NAMES}
    for package in distributions():
        listed = f"\n{package.read_text('top_level.txt') or ''}\n{package.read_text('RECORD') or ''}\n"
        for name in _NAMES:
            if any(f"\n{name}{end}" in listed for end in ("\n", "/", ".py,")):
                owners[name].add(package.name)
    taken = [f"{name} ({', '.join(others)})" for name in _NAMES if (others := sorted(owners[name] - {"synth"}))]
    if taken:
        return Finding(
            "import names", "warning", f"others have {', '.join(taken)}: give synth an environment of its own"
        )
    return Finding("import names", "ok", f"{', '.join(_NAMES)}: nobody else's here")


def _look_at_input(config: RunConfig) -> list[Finding]:
    if config.corpus.generate is not None:
        return [Finding("input", "ok", f"a toy Wikipedia of {config.corpus.generate.entities:,} entities is generated")]
    if config.method == "news" and config.news.source:
        source = Path(config.news.source)
        return [_try("input", lambda: f"{source}: {len(list_source_files(source)):,} files of articles")]
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
    return [
        Finding("input", "ok", f"{dumps[0].name}: {site.dbname}, {dumps[0].stat().st_size:,} bytes"),
        *(Finding("language", "problem", problem) for problem in list_problems(config, dumps[0])),
        Finding(
            "files beside it",
            "ok" if side else "warning",
            ", ".join(side) or "none: no Qids, counts or pictures will be known",
        ),
    ]


def _look_at_prompts(config: RunConfig) -> list[Finding]:
    own = config.prompts
    if not own.dir and not own.plugin:
        return []
    look = partial(check_prompts, chosen=own.versions)
    return [_try("prompts", lambda: f"{look(find_prompt_folder(own))} replaced by those of {own.dir or own.plugin}")]


def _look_at_plugins(config: RunConfig, root: Path) -> list[Finding]:
    def look() -> str:
        return ", ".join(f"{each.name} ({each.distribution} {each.version})" for each in check_plugins(config, root))

    return [_try("plugins", look)] if list_named(config) else []


def _look_at_workspace(workspace: Workspace, address: str) -> Finding:
    root, place = workspace.root, _find_place(workspace.root)
    if place != root:
        if place.is_dir() and os.access(place, os.W_OK | os.X_OK):
            return Finding("workspace", "ok", f"{root}: will be made in {place}, which can be written to")
        why = "cannot be written to" if place.is_dir() else "is no folder"
        return Finding("workspace", "problem", f"{root}: {place} {why}; choose another --workspace")
    try:
        with workspace.claim(address, "doctor"):
            return Finding("workspace", "ok", f"{root}: free, and its file system renames and locks")
    except SynthError as error:
        return Finding("workspace", "problem", str(error))


def _find_place(path: Path) -> Path:
    """Return a path's nearest ancestor that exists, itself included."""
    return next(place for place in (path, *path.parents) if place.exists())


def _look_at_ledger(workspace: Workspace, address: str) -> list[Finding]:
    if address:
        return [_try("replies", lambda: _count_replies(workspace, address))]
    if not (workspace.replies / FILE).is_file():
        return []
    try:
        found = check_ledger(workspace.replies)
    except SynthError as error:
        return [Finding("replies", "problem", str(error))]
    if found.sound:
        return [Finding("replies", "ok", found.explain())]
    return [Finding("replies", "problem", f"{found.explain()}; {REPAIR}")]


def _count_replies(workspace: Workspace, address: str) -> str:
    with closing(open_ledger(workspace.replies, address, reads=True)) as ledger:
        asks, replies = ledger.count()
        return f"{ledger.name}: {replies:,} replies to {asks:,} requests; `synth replies check` reads them all"


def _look_at_disk(config: RunConfig, workspace: Workspace) -> Finding:
    free, dump = shutil.disk_usage(_find_place(workspace.root)).free, Path(config.corpus.dump)
    known = config.corpus.dump and dump.is_file()
    need = SPARE_BYTES + BYTES_PER_DUMP_BYTE * (sum(p.stat().st_size for p in list_parts(dump)) if known else 0)
    detail = f"{free / 1e9:.1f} GB free, about {need / 1e9:.1f} GB may be needed"
    return Finding("disk", "ok" if free > need else "problem", detail)


def _look_at_models(config: RunConfig) -> Iterator[Finding]:
    roles = {role: config.models[role] for role in config.roles}
    for role in list_missing_roles(config):
        yield Finding(f"{role} model", "problem", f"models.{role} names no model; set models.default or models.{role}")
    for role, model in roles.items():
        how = "no service needed" if model.adapter == "scripted" else "started by the run" if model.serve.own else ""
        yield Finding(f"{role} model", "ok", f"{model.name} ({', '.join(filter(None, (model.adapter, how)))})")
    solver, teacher = roles.get("solver"), roles.get("teacher")
    if solver and teacher and solver.name == teacher.name:
        yield Finding("roles", "warning", "solver and teacher are the same model: difficulty will flatter it")
    if solver is None or solver.adapter == "scripted":
        return
    if "judge" not in roles:
        detail = "the solver is a model and no judge is set: names and phrases in other words stay unscored"
        yield Finding("judge", "warning", f"{detail}; set models.judge")
    if solver.temperature == 0.0 and (tries := config.difficulty.attempts) > 1:
        detail = f"the solver has temperature 0: {tries} attempts are one answer, paid {tries} times; raise it"
        yield Finding("attempts", "warning", detail)


def look_at_own_servers(config: RunConfig) -> list[Finding]:
    """Say whether vLLM, its weights and its ports are ready for the servers that the run starts itself."""
    models = {role: config.models[role] for role in config.roles}
    own = {role: model for role, model in models.items() if model.adapter == "openai" and model.serve.own}
    found, ports = list[Finding](), dict[int, tuple[str, ModelConfig]]()
    for role, model in own.items():
        found += [_look_at_python(role, model), _look_at_weights(role, model), _look_at_port(role, model)]
        other, before = ports.setdefault(find_port(model), (role, model))
        if (before.name, before.serve) != (model.name, model.serve):
            detail = f"{find_port(model)} is that of {other}, which is another model; give each one its own"
            found.append(Finding(f"{role}: port", "problem", detail))
    return found


def _look_at_python(role: str, model: ModelConfig) -> Finding:
    what, python = f"{role}: vLLM", model.serve.python or sys.executable
    advice = f"name one that has it: models.{role}.serve.python"
    try:
        done = subprocess.run([python, "-c", _FIND_VLLM], capture_output=True, check=False, timeout=20.0)
    except (OSError, subprocess.TimeoutExpired) as error:
        return Finding(what, "problem", f"{python}: cannot be run ({type(error).__name__}); {advice}")
    if done.returncode or not done.stdout.strip():
        return Finding(what, "problem", f"{python}: has no vLLM; {advice}")
    return Finding(what, "ok", f"{python} has it")


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
    what, port = f"{role}: port", find_port(model)
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        # As servers do: a port that was closed a moment ago is free.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError as error:
            advice = f"end what listens there, or choose another in models.{role}.base_url"
            return Finding(what, "problem", f"{port} cannot be used ({error.strerror}); {advice}")
    return Finding(what, "ok", f"{port} is free")


def look_at_pictures(config: RunConfig) -> Iterator[Finding]:
    """Yield the checks for pictures; nothing is loaded that takes longer than a second."""
    groundings, encoder, enhancements = config.groundings, config.encoder, config.enhancements
    if picks_clip(config):
        yield Finding("ranker", "ok", f"pictures are compared with descriptions by {encoder.model}")
    elif groundings.ranker == "metadata":
        yield Finding("ranker", "ok", "pictures are ranked by what is known of their files")
    else:
        why = "pip install 'synth[clip]'" if encoder.pretrained else "encoder.pretrained names no weights"
        yield Finding("ranker", "warning", f"pictures are ranked by what is known of their files alone: {why}")
    if picks_clip(config) or config.image_search.method == "clip":
        yield _look_at_encoder(config)
    for name in dict.fromkeys((*groundings.ocr, *filter(None, [config.tools.layout]))):
        yield _try(f"OCR {name}", lambda name=name: make_engine(name).identity)  # type: ignore[misc]
    if enhancements.share:
        yield _look_at_repairs(config)
    if config.corpus.dump:
        yield from _look_at_sources(config, Path(config.corpus.dump))


def _look_at_sources(config: RunConfig, dump: Path) -> Iterator[Finding]:
    """Yield what is wrong with where pictures and their metadata come from."""
    side, commons = find_side_files(dump), config.commons
    if lacks_pictures(config, dump):
        detail = "no images/images.tsv beside the dump and commons.fetch is false: every row lacks a picture"
        yield Finding("pictures", "problem" if config.groundings.require_image else "warning", detail)
    if not config.seeds.require_image:
        return
    if side.page_props is None:
        detail = "no page_props table beside the dump: no lead picture is known to be free, and every seed needs one"
        yield Finding("seeds' pictures", "warning", f"{detail} (seeds.require_image)")
    elif commons.endpoint and side.media is None and side.images is None:
        detail = f"no MediaInfo beside the dump: {commons.endpoint} is asked, 50 files in a request"
        yield Finding("seeds' pictures", "ok", detail)


def _try(what: str, look: Callable[[], str]) -> Finding:
    try:
        return Finding(what, "ok", look())
    except SynthError as error:
        return Finding(what, "problem", str(error))


def _look_at_repairs(config: RunConfig) -> Finding:
    what, wanted = "degraded pictures", config.enhancements.degradations
    try:
        possible = make_repairs(make_upscaler(config.tools), has_opencv())
    except SynthError as error:
        return Finding(what, "problem", str(error))
    if missing := [each for each in wanted if each not in possible]:
        why = "for want of OpenCV (pip install 'synth[vision]') or of weights (tools.edsr)"
        return Finding(what, "warning", f"{' and '.join(missing)} is left out {why}")
    return Finding(what, "ok", f"{config.enhancements.share:.0%} by {', '.join(wanted)}")


def _look_at_encoder(config: RunConfig) -> Finding:
    """Say whether the encoder could be loaded; its weights are found, not read."""
    if not has_clip():
        return Finding("encoder", "problem", "the extra is not installed: pip install 'synth[clip]'")
    from pipelines.services.clients.encoder import find_checkpoint, read_architecture

    def find() -> str:
        read_architecture(config.encoder.model)
        found = find_checkpoint(config.encoder.pretrained)
        where = f"weights in {found}" if found else f"weights {config.encoder.pretrained}, fetched when first used"
        return f"{config.encoder.model}, {where}"

    return _try("encoder", find)


class Choice(NamedTuple):
    """What a completion says."""

    text: str
    cut: bool
    thinks: bool
    """Whether reasoning comes apart from the text."""
    calls: bool
    """Whether it calls a tool."""


@dataclass(frozen=True, slots=True)
class ServerAnswer:
    """What a server answered; status 0 when nothing whole came, and then ``text`` says why."""

    status: int
    text: str

    def quote(self) -> str:
        """Return the beginning of it for a reader, a page without its tags."""
        if not self.status:
            return self.text
        said = self.text[:4000]
        said = " ".join(_TAG.sub(" ", said).split()) if said.startswith("<") else said
        return f"HTTP {self.status}: {said[:QUOTED]}" if said else f"HTTP {self.status}"

    def read_choice(self) -> Choice | None:
        """Return what a completion says; None if this is no completion."""
        try:
            choice = json.loads(self.text)["choices"][0]
            message, cut = choice["message"], choice.get("finish_reason") == "length"
            thinks = bool(message.get("reasoning_content") or message.get("reasoning"))
            said = Choice(str(message.get("content") or ""), cut, thinks, bool(message.get("tool_calls")))
        except (ValueError, RecursionError, LookupError, TypeError, AttributeError):
            return None
        return said if self.status == 200 else None

    def read_model(self) -> str:
        """Return the model that a completion says it is by; empty if it does not say."""
        try:
            said = json.loads(self.text)["model"]
        except (ValueError, RecursionError, LookupError, TypeError):
            return ""
        return said if isinstance(said, str) else ""


class Nothing(BaseModel):
    """The inputs of a request that has none."""


@dataclass(frozen=True, slots=True)
class Server:
    """One model at one address, and what its roles want of it."""

    roles: tuple[str, ...]
    url: str
    model: ModelConfig
    longest: int
    """Tokens of a prompt and its reply that must fit."""
    session: HttpSession
    patience: float
    known: KnownServer
    sees: bool = False
    """Whether a role is shown pictures."""
    stop: tuple[str, ...] = ()
    tools: str = ""

    @property
    def place(self) -> str:
        """How findings name it."""
        return f"{', '.join(self.roles)} at {self.url}"

    async def send(self, path: str, body: bytes = b"") -> ServerAnswer:
        """Return the answer to a GET, or to a POST of a JSON body; every failure is an answer, too."""
        key = os.environ.get(self.model.api_key_env, "") if self.model.api_key_env else ""
        headers = name_key(self.model, key) if key else {}
        try:
            headers |= read_headers(self.model)
        except SynthError as error:
            return ServerAnswer(0, str(error))
        request = HttpRequest(self.url + path, headers=headers)
        if body:
            headers |= {"Content-Type": "application/json"}
            request = HttpRequest(self.url + path, "POST", headers, body=body)
        try:
            with Waiting.on(self.place, self.patience):
                reply = await self.session.fetch(request, self.patience, MAX_REPLY)
        except NoConnection as error:
            return ServerAnswer(0, f"cannot connect to {name_host(self.url)} ({error}); start it, or see base_url")
        except (NoReply, SynthError, ValueError) as error:
            # aiohttp raises ValueError for a key that can be no header.
            said = redact(str(error).encode(), key)[:QUOTED]
            return ServerAnswer(0, f"no whole answer ({said}); start it, or see base_url")
        return ServerAnswer(reply.status, redact(reply.body, key))

    async def chat(self, text: str, tokens: int, **more: Any) -> ServerAnswer:  # noqa: ANN401 - of a ChatRequest
        """Return the answer to one message, sent as its roles send theirs; what the server refuses is learned."""
        model, most = self.model, min(tokens, self.model.max_tokens or tokens)
        sampling = replace(make_sampling(model), max_tokens=most)
        message = Message("user", text, more.pop("images", ()))
        request = ChatRequest("sky", "sky", (message,), Nothing(), sampling, sample=1, **more)
        while True:
            body = await make_body(model, request, PictureParts(_draw_square), self.known.rules)
            answer = await self.send("/chat/completions", body.data)
            if answer.status == 200:
                self.known.accept(body.keys)
            refusal = read_refusal(answer.text, body.keys) if answer.status in (400, 422) else NO_RULES
            if refusal == NO_RULES or not self.known.learn(refusal, answer.text):
                return answer


async def ask_models(config: RunConfig, patience: float = PATIENCE, vendors: Vendors | None = None) -> list[Finding]:
    """Check every server that plays a role: its list of models, its context, a chat, a picture, a structured reply.

    What a server refuses is learned on the way and kept in ``vendors``.
    Servers that the run starts itself do not run yet; :func:`look_at_own_servers` checks them.
    """
    servers = list_servers(config, HttpSession(), patience, vendors or Vendors())
    answers = await asyncio.gather(*map(_ask, servers))
    found, lengths = list[Finding](), dict[tuple[tuple[str, ...], str], set[int]]()
    for server, (findings, length) in zip(servers, answers, strict=True):
        found += findings
        lengths.setdefault((server.roles, server.model.name), set()).update([length] if length else [])
    for (roles, name), some in lengths.items():
        if len(some) > 1:
            detail = f"{name} has contexts of {', '.join(f'{length:,}' for length in sorted(some))} tokens"
            advice = "they must serve the very same model"
            found.append(Finding(f"{', '.join(roles)}: addresses", "warning", f"{detail}; {advice}"))
    return list(dict.fromkeys(found))


def list_servers(config: RunConfig, session: HttpSession, patience: float, vendors: Vendors) -> list[Server]:
    """Return every address to check, once for all roles that ask it for the same model in the same way."""
    found: dict[tuple[Any, ...], Server] = {}
    for role in config.roles:
        model = config.models[role]
        if model.adapter != "openai" or model.serve.own:
            continue
        longest_rollout = config.rollouts.max_context_tokens or config.rollouts.max_context // CHARACTERS_A_TOKEN
        prompt = longest_rollout if role == "teacher" else TYPICAL_PROMPT
        known = vendors.find(model.base_url[0], model.name)
        for url in model.base_url:
            key = (url, model.model_dump_json(include=_SENT))
            before = found.get(key)
            roles = (*before.roles, role) if before else (role,)
            longest = max((model.max_tokens or TYPICAL_REPLY) + prompt, before.longest if before else 0)
            sees = bool(SEEING & {*roles}) or (config.method == "news" and "writer" in roles)
            found[key] = Server(roles, url.rstrip("/"), model, longest, session, patience, known, sees)
            if "teacher" in roles:
                dialect = find_dialect(config.rollouts.dialect)
                found[key] = replace(found[key], stop=dialect.stop, tools=_TOOLS if dialect.native else "")
    return list(found.values())


async def _ask(server: Server) -> tuple[list[Finding], int]:
    """Ask one server, and return the findings and its context in tokens, 0 if it does not say."""
    name, place = server.model.api_key_env, server.place
    if name and not os.environ.get(name):
        return [Finding(f"{place}: key", "problem", f"environment variable {name} is not set; it holds the key")], 0
    served, length = await _look_at_list(server)
    if served.state == "problem":
        return [served], 0
    found = [served, *_look_at_context(server, length)]
    answer = await server.chat("Say hello.", _REPLY_TOKENS, stop=server.stop, tools=server.tools)
    found.append(_look_at_chat(server, answer))
    if answer.read_choice() is None:
        return found, length
    if refused := server.known.describe():
        found.append(Finding(f"{place}: parameters", "ok", f"refuses {refused}"))
    if server.sees:
        found.append(await _look_at_sight(server))
    if find_replies(server.model) != "text":
        found.append(await _look_at_replies(server))
    if server.model.mode == "batch":
        found.append(await _look_at_batches(server))
    return found, length


def _look_at_chat(server: Server, answer: ServerAnswer) -> Finding:
    """Return whether a completion says something, and by the model that was asked."""
    what, choice, asked = f"{server.place}: chat", answer.read_choice(), server.model.name
    if choice is None:
        return Finding(what, "warning" if answer.status == 429 else "problem", f"no completion ({answer.quote()})")
    if not choice.text.strip() and not (server.tools and choice.calls):
        if choice.cut:
            detail = f"says nothing in {_REPLY_TOKENS} tokens; max_tokens must have room for its thoughts, too"
            return Finding(what, "warning", detail)
        without = "a completion of reasoning without content" if choice.thinks else "a completion without content"
        return Finding(what, "problem", f"{without}; look at the server's chat template and reasoning parser")
    said = answer.read_model()
    # A vendor's name of a version begins with what was asked for: gpt-5 is gpt-5-2025-08-07.
    if said and asked.rpartition("/")[2].casefold() not in said.casefold():
        return Finding(what, "warning", f"answers as {said[:QUOTED]}, and {asked} was asked")
    return Finding(what, "ok", "answers, with its reasoning apart" if choice.thinks else "answers")


async def _look_at_batches(server: Server) -> Finding:
    what, answer = f"{server.place}: batches", await server.send("/batches?limit=1")
    if answer.status == 200:
        return Finding(what, "ok", "the server has a Batch API")
    return Finding(what, "problem", f'no Batch API ({answer.quote()}); set mode = "live" for {server.roles[0]}')


async def _look_at_list(server: Server) -> tuple[Finding, int]:
    """Return whether the server answers and lists the model; and the model's context."""
    what, answer = server.place, await server.send("/models")
    if answer.status in (401, 403):
        variable = server.model.api_key_env or "no variable; name one as api_key_env"
        return Finding(what, "problem", f"rejects the key of {variable} ({answer.quote()})"), 0
    if not answer.status or answer.status >= 500:
        return Finding(what, "problem", answer.quote()), 0
    if answer.status == 429:
        return Finding(what, "warning", f"busy ({answer.quote()}); look again later"), 0
    try:
        listed = {str(entry["id"]): entry.get("max_model_len") for entry in json.loads(answer.text)["data"]}
    except (ValueError, RecursionError, LookupError, TypeError, AttributeError):
        return Finding(what, "warning", f"does not say which models it serves ({answer.quote()}); see base_url"), 0
    if server.model.name not in listed:
        settings = " and ".join(f"models.{role}.name" for role in server.roles)
        serves = ", ".join(name[:QUOTED] for name in list(listed)[:8]) or "nothing"
        serves += f" and {len(listed) - 8} more" if len(listed) > 8 else ""
        return Finding(
            what, "problem", f"serves {serves}; not {server.model.name}: say what it serves in {settings}"
        ), 0
    length = listed[server.model.name]
    return Finding(what, "ok", f"serves {server.model.name}"), length if isinstance(length, int) else 0


def _look_at_context(server: Server, length: int) -> list[Finding]:
    what, most = f"{server.place}: context", server.model.max_tokens or TYPICAL_REPLY
    if not length:
        return []
    if length <= most:
        return [Finding(what, "problem", f"{length:,} tokens; max_tokens of {most:,} leaves no room for a prompt")]
    if length < server.longest:
        wanted = f"a long prompt and max_tokens of {most:,} take about {server.longest:,}"
        return [Finding(what, "warning", f"{length:,} tokens; {wanted}: questions may fail as prompt-too-long")]
    return [Finding(what, "ok", f"{length:,} tokens")]


async def _look_at_sight(server: Server) -> Finding:
    what, answer = f"{server.place}: pictures", await server.chat("What is it?", 8, images=("0" * 64,))
    if answer.read_choice() is None:
        return Finding(what, "problem", f"takes none ({answer.quote()}); the role is shown pictures")
    return Finding(what, "ok", "takes them")


def _draw_square(sha256: str) -> tuple[bytes, str]:
    target = io.BytesIO()
    Image.new("RGB", (64, 64), (48, 160, 48)).save(target, "PNG")
    return target.getvalue(), "image/png"


async def _look_at_replies(server: Server) -> Finding:
    """Return whether structured output works, by a schema that no model would follow by accident."""
    forced, what = find_replies(server.model), f"{server.place}: replies"
    prompt = "Which colour has the sky? Reply with a JSON object with the one key colour."
    answer = await server.chat(prompt, _REPLY_TOKENS, schema_json=json.dumps(_SCHEMA))
    choice = answer.read_choice()
    if choice is None:
        advice = 'set replies = "json" or "text"' if forced == "schema" else 'set replies = "text"'
        return Finding(what, "problem", f"takes no request for replies = {forced!r} ({answer.quote()}); {advice}")
    text = choice.text
    try:
        said = json.loads(text)
    except (ValueError, RecursionError):
        said = None
    if isinstance(said, dict) and (forced != "schema" or said.get("colour") in _STONES):
        return Finding(what, "ok", f"{forced} is obeyed")
    if choice.cut:
        # A model that likes white space may fill a forced reply with it for ever.
        detail = f"a forced reply did not end in {_REPLY_TOKENS} tokens ({text[:60]!r})"
        return Finding(what, "warning", f"{detail}; rows may fail as cut-reply")
    advice = 'replies that do not parse are repaired by asking again; replies = "text" says so beforehand'
    return Finding(what, "warning", f"{forced} is not obeyed ({text[:60]!r}); {advice}")


async def ask_live(config: LiveConfig, patience: float = PATIENCE) -> list[Finding]:
    """Send every service behind the live tools one empty request, which no service charges."""
    services: Sequence[LiveService] = list_services(config)
    found = list(await asyncio.gather(*(_ask_live(config, service, patience) for service in services)))
    if config.images == "serpapi" and not config.picture_base:
        detail = "live.picture_base is empty: serpapi takes addresses alone; say where images/ is published"
        found.append(Finding("live images: pictures", "problem", detail))
    return found


async def ask_commons(config: CommonsConfig, patience: float = PATIENCE) -> Finding:
    """Ask Commons' API of one file, within its limits."""
    what = f"Commons at {config.endpoint}"
    try:
        with Waiting.on(what, patience):
            async with asyncio.timeout(patience):
                await make_commons_api(config).describe_images(["Example.jpg"])
    except TimeoutError:
        return Finding(what, "problem", f"no answer in {patience:g} s; see commons.api")
    except SynthError as error:
        return Finding(what, "problem", f"{error}; see commons.api")
    return Finding(what, "ok", "says what it knows of files")


async def _ask_live(config: LiveConfig, asked: LiveService, patience: float) -> Finding:
    if not asked.url:
        return _try("live reader: pages are fetched here", name_converter)
    what = f"live {asked.tool}: {asked.protocol} at {asked.url}"
    client = replace(open_client(config), tries=1, timeout=patience)
    service = Service(asked.protocol, asked.url, asked.key_env, client, f"live.{asked.tool}_url")
    try:
        with Waiting.on(what, patience):
            reply = await client.send(_make_request(asked, service.read_key()))
    except (NoReply, SynthError) as error:
        return Finding(what, "problem", f"{error}; see {service.setting}")
    return _judge(what, service, reply)


def _make_request(asked: LiveService, key: str) -> HttpRequest:
    """Return an incomplete request: a service refuses it for a wrong key first, else for the missing parameter."""
    json_headers = {"Content-Type": "application/json", "Accept": "application/json"}
    match asked.protocol:
        case "serper":
            return HttpRequest(asked.url, "POST", json_headers | ({"X-API-KEY": key} if key else {}), body=b"{}")
        case "google-vision":
            keyed = json_headers | ({"X-Goog-Api-Key": key} if key else {})
            return HttpRequest(asked.url, "POST", keyed, body=b'{"requests": []}')
        case "serpapi":
            engine = "google" if asked.tool == "search" else "google_lens"
            return HttpRequest(asked.url, query={"engine": engine} | ({"api_key": key} if key else {}))
    return HttpRequest(asked.url, headers={"Authorization": f"Bearer {key}"} if key else {})


def _judge(what: str, service: Service, reply: HttpReply) -> Finding:
    if reply.status == 200:
        return Finding(what, "ok", "is there")
    match service.explain(reply):
        case RecordFailed():
            return Finding(what, "ok", "is there and takes the key" if service.key_env else "is there")
        case Busy() | RateLimited():
            return Finding(what, "warning", f"busy (HTTP {reply.status}); look again later")
        case error:
            return Finding(what, "problem", str(error))


def render_examination(examination: Examination) -> Table:
    """Return the findings as a table."""
    table = Table(title="ready" if examination.ready else "not ready")
    for column in ("looked at", "state", "found"):
        table.add_column(column)
    for finding in examination.findings:
        # Not as markup: [clip] would be a style, and lost.
        table.add_row(finding.what, finding.state, Text(finding.detail))
    return table
