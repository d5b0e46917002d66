"""``synth doctor``: whether a run is ready. All checks of :mod:`pipelines.run.readiness`, and those that ask somebody.

All servers are sent a few tokens at the same time, each with a timeout of a few seconds.
"""

import asyncio
import importlib.util
import io
import json
import os
import shutil
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Final

from PIL import Image
from pydantic import BaseModel
from rich.table import Table

from pipelines.agent.dialects import find_dialect
from pipelines.agent.pictures import has_opencv, make_repairs
from pipelines.config.profiles import find_replies
from pipelines.config.settings import LiveConfig, ModelConfig, RunConfig
from pipelines.corpus.articles import list_source_files
from pipelines.corpus.dump import list_parts
from pipelines.corpus.manifest import find_side_files
from pipelines.errors import RecordFailed, SynthError
from pipelines.run.assembly import (
    has_clip,
    list_missing_roles,
    make_engine,
    make_reader,
    make_text_search,
    make_upscaler,
    picks_clip,
)
from pipelines.run.corpora import find_dump
from pipelines.run.integrity import find_damage
from pipelines.run.models import make_commons_api
from pipelines.run.plugins import check_plugins, find_prompt_folder
from pipelines.run.progress import Reporter
from pipelines.run.readiness import Finding, check_dump, check_models, names_same
from pipelines.run.workspace import Workspace
from pipelines.services.clients.chat import OpenAIChat
from pipelines.services.prompting import check_prompts, make_sampling
from pipelines.services.protocols import ChatReply, ChatRequest, Message, PageNotFound
from pipelines.services.traffic import Waiting

SEEING = frozenset(["solver", "teacher", "judge"])
"""Roles that are shown pictures; the writer is where questions are about news."""
PATIENCE: Final = 10.0
"""Seconds for one reply; a model that is slower than that at a few tokens is no use for thousands of requests."""
REPLY_TOKENS = 128
BYTES_PER_DUMP_BYTE = 12
"""Workspace bytes a byte of compressed dump needs at most: page store, search index, tables."""
SPARE_BYTES = 500_000_000
SENT = {"name", "api_key_env", "replies", "profile", "temperature", "extra_body", "headers", "max_tokens"}
"""Settings of which a server sees something in a request."""
TOOLS = '[{"type":"function","function":{"name":"look","parameters":{"type":"object","properties":{}}}}]'
STONES = ("quartz", "basalt")
"""Not colours: a model gives one only if the schema is enforced."""
SCHEMA = {
    "type": "object",
    "properties": {"colour": {"type": "string", "enum": list(STONES)}},
    "required": ["colour"],
    "additionalProperties": False,
}


def examine_run(config: RunConfig, root: Path, deep: bool = False, patience: float = PATIENCE) -> list[Finding]:
    """Check software, input, workspace, disk and models; ``deep`` compares the sha256 of every file.

    A probe is written in an existing workspace.
    """
    workspace = Workspace(root.resolve())
    # They live until the loop has ended, which closes their connections.
    servers = list_servers(config, patience)
    return [
        *_check_software(),
        *_try("input", lambda: _describe_input(config, workspace)),
        *_check_dump(config, workspace),
        *_check_workspace(workspace),
        _check_disk(config, workspace),
        *(Finding("files", "error", line) for line in (find_damage(workspace) if deep else ())),
        *_try("prompts", lambda: f"{check_prompts(find_prompt_folder(config))} are the user's own"),
        *_try("plugins", lambda: ", ".join(each.name for each in check_plugins(config)) or "none"),
        *(
            Finding(f"models.{role}", "error", "names no model; set models.default")
            for role in list_missing_roles(config)
        ),
        *check_models(config),
        *_check_pictures(config),
        *asyncio.run(_ask_all(config, servers, patience)),
    ]


def _try(what: str, look: Callable[[], str]) -> Iterator[Finding]:
    try:
        yield Finding(what, "ok", look())
    except SynthError as error:
        yield Finding(what, "error", str(error))


def _check_software() -> Iterator[Finding]:
    for extra, module in (("hub", "huggingface_hub"), ("vision", "cv2"), ("clip", "open_clip")):
        here = importlib.util.find_spec(module) is not None
        yield Finding(f"extra {extra}", "ok", "installed" if here else f"not installed: pip install 'synth[{extra}]'")


def _describe_input(config: RunConfig, workspace: Workspace) -> str:
    if config.corpus.generate is not None:
        return f"a toy Wikipedia of {config.corpus.generate.entities:,} entities is generated"
    if config.method == "news" and config.news.source:
        source = Path(config.news.source)
        return f"{source}: {len(list_source_files(source)):,} files of articles"
    dump = find_dump(config.corpus, workspace, Reporter())
    beside = ", ".join(path.name for _, path in find_side_files(dump).list_files())
    return f"{dump}; beside it {beside or 'nothing: no Qids, counts or pictures will be known'}"


def _check_dump(config: RunConfig, workspace: Workspace) -> Iterator[Finding]:
    if config.corpus.generate is not None or (config.method == "news" and config.news.source):
        return
    try:
        yield from check_dump(config, find_dump(config.corpus, workspace, Reporter()))
    except SynthError as error:
        yield Finding("dump", "error", str(error))


def _check_workspace(workspace: Workspace) -> Iterator[Finding]:
    root, place = workspace.root, _find_place(workspace.root)
    if place == root:

        def claim() -> str:
            with workspace.claim("doctor"):
                return f"{root}: free, and its file system renames and locks"

        yield from _try("workspace", claim)
    elif place.is_dir() and os.access(place, os.W_OK | os.X_OK):
        yield Finding("workspace", "ok", f"{root}: will be made in {place}")
    else:
        yield Finding("workspace", "error", f"{root}: {place} cannot be written to; choose another --workspace")


def _find_place(path: Path) -> Path:
    """Return a path's nearest ancestor that exists, itself included."""
    return next(place for place in (path, *path.parents) if place.exists())


def _check_disk(config: RunConfig, workspace: Workspace) -> Finding:
    free, dump = shutil.disk_usage(_find_place(workspace.root)).free, Path(config.corpus.dump)
    size = sum(path.stat().st_size for path in list_parts(dump)) if config.corpus.dump and dump.is_file() else 0
    need = SPARE_BYTES + BYTES_PER_DUMP_BYTE * size
    said = f"{free / 1e9:.1f} GB free, about {need / 1e9:.1f} GB may be needed"
    return Finding("disk", "ok" if free > need else "error", said)


def _check_pictures(config: RunConfig) -> Iterator[Finding]:
    groundings, encoder, enhancements = config.groundings, config.encoder, config.enhancements
    if not picks_clip(config):
        why = "pip install 'synth[clip]'" if encoder["pretrained"] else "encoder.pretrained names no weights"
        yield Finding("ranker", "warning", f"pictures are ranked by what is known of their files alone: {why}")
    if picks_clip(config) or config.tools.image_search == "clip":
        yield from _try("encoder", lambda: _find_encoder(config))
    for name in dict.fromkeys((*groundings.ocr, *filter(None, [config.tools.layout]))):
        yield from _try(f"OCR {name}", partial(lambda name: make_engine(name).identity, name))
    if enhancements.share:
        try:
            possible = make_repairs(make_upscaler(config.tools), has_opencv())
        except SynthError as error:
            yield Finding("tools.edsr", "error", str(error))
            return
        if missing := [each for each in enhancements.degradations if each not in possible]:
            why = "for want of OpenCV (pip install 'synth[vision]') or of weights (tools.edsr)"
            yield Finding("degraded pictures", "warning", f"{' and '.join(missing)} is left out {why}")


def _find_encoder(config: RunConfig) -> str:
    if not has_clip():
        return "the extra is not installed: pip install 'synth[clip]'"
    from pipelines.services.clients.encoder import find_checkpoint, read_architecture

    model, weights = config.encoder["model"], config.encoder["pretrained"]
    read_architecture(model)
    return f"{model}, weights {find_checkpoint(weights) or f'{weights}, fetched when first used'}"


async def _ask_all(config: RunConfig, servers: Sequence["Server"], patience: float) -> list[Finding]:
    asked = [_ask_model(server, patience) for server in servers]
    found = [finding for findings in await asyncio.gather(*asked) for finding in findings]
    if config.tools.family == "live":
        found += await ask_live(config.live, config.contact, patience)
    if config.commons.endpoint:
        look = make_commons_api(config).describe_images(["Example.jpg"])
        found.append(await _wait(f"Commons at {config.commons.endpoint}", look, patience))
    return found


class Nothing(BaseModel):
    """The inputs of a request that has none."""


@dataclass(frozen=True)
class Server:
    """One model at one address, and what its roles want of it."""

    roles: tuple[str, ...]
    model: ModelConfig
    patience: float
    sees: bool
    acts: bool
    """Whether the teacher acts through it."""
    dialect: str

    @property
    def place(self) -> str:
        """How findings name it."""
        return f"{', '.join(self.roles)} at {self.model.base_url[0]}"

    @cached_property
    def chat(self) -> OpenAIChat:
        """What sends the requests."""
        model = self.model.model_copy(update={"timeout": self.patience, "mode": "live"})
        return OpenAIChat(model, _draw_square, patience=self.patience, tries=1)

    def make_request(self, text: str, images: tuple[str, ...] = (), schema: str = "") -> ChatRequest:
        """Return a request of a few tokens, made as its roles make theirs."""
        most = min(REPLY_TOKENS, self.model.max_tokens or REPLY_TOKENS)
        sampling, dialect = replace(make_sampling(self.model), max_tokens=most), find_dialect(self.dialect)
        tools, stop = (TOOLS if dialect.native else "", dialect.stop) if self.acts and not schema else ("", ())
        message = Message("user", text, images)
        return ChatRequest("sky", "sky", (message,), Nothing(), sampling, schema, 1, tools, stop)


def list_servers(config: RunConfig, patience: float) -> list[Server]:
    """Return every address to ask, once for all roles that ask it for the same model in the same way."""
    found: dict[tuple[str, str], Server] = {}
    for role in config.roles:
        model = config.models[role]
        for url in model.base_url if model.adapter == "openai" and not model.serve.own else ():
            key = url, model.model_dump_json(include=SENT)
            roles = (*found[key].roles, role) if key in found else (role,)
            sees = bool(SEEING & {*roles}) or (config.method == "news" and "writer" in roles)
            alone = model.model_copy(update={"base_url": (url,)})
            found[key] = Server(roles, alone, patience, sees, "teacher" in roles, config.rollouts.dialect)
    return list(found.values())


async def _ask_model(server: Server, patience: float) -> list[Finding]:
    """Ask a server for a text, about a picture and for a structured reply, as far as its roles do."""
    schema, asks = json.dumps(SCHEMA), [("chat", server.make_request("Say hello."))]
    if server.sees:
        asks.append(("pictures", server.make_request("What is it?", ("0" * 64,))))
    if find_replies(server.model) != "text":
        prompt = "Which colour has the sky? Reply with a JSON object with the one key colour."
        asks.append(("replies", server.make_request(prompt, schema=schema)))
    found = list[Finding]()
    for kind, request in asks:
        what = f"{server.place}: {kind}"
        try:
            with Waiting.on(server.place, patience):
                found.append(_judge(what, server, request, await server.chat.chat(request)))
        except SynthError as error:
            found.append(Finding(what, "error", str(error)))
            break
    return found


def _judge(what: str, server: Server, request: ChatRequest, reply: ChatReply) -> Finding:
    if not reply.text.strip() and not reply.calls:
        if reply.ended == "cut":
            return Finding(
                what, "warning", f"says nothing in {REPLY_TOKENS} tokens; max_tokens must have room for thoughts"
            )
        return Finding(
            what, "error", "replies without content; look at the server's chat template and reasoning parser"
        )
    if reply.served and not names_same(server.model.name, reply.served):
        return Finding(what, "warning", f"answers as {reply.served}, and {server.model.name} was asked")
    forced = find_replies(server.model)
    if request.schema_json and not _is_obeyed(reply.text, forced):
        advice = 'replies that do not parse are repaired by asking again; replies = "text" says so beforehand'
        return Finding(what, "warning", f"{forced} is not obeyed ({reply.text[:60]!r}); {advice}")
    return Finding(what, "ok", "answers")


def _is_obeyed(text: str, forced: str) -> bool:
    try:
        said = json.loads(text)
    except (ValueError, RecursionError):
        return False
    return isinstance(said, dict) and (forced != "schema" or said.get("colour") in STONES)


def _draw_square(sha256: str) -> tuple[bytes, str]:
    target = io.BytesIO()
    Image.new("RGB", (64, 64), (48, 160, 48)).save(target, "PNG")
    return target.getvalue(), "image/png"


async def ask_live(config: LiveConfig, contact: str, patience: float = PATIENCE) -> list[Finding]:
    """Search once and read one page; of the search by picture only the key is looked for."""
    # Both are held to the end: a session that is collected while the loop runs is not closed.
    search, reader = make_text_search(config), make_reader(config, contact)
    found = [
        await _wait("live search", search.search_text("Eiffel Tower", 1), patience),
        await _wait("live reader", reader.read_page("https://www.wikipedia.org/"), patience),
    ]
    key = config.key_envs.get("images")
    if key and not os.environ.get(key):
        found.append(Finding("live images", "error", f"environment variable {key} is not set; it holds the key"))
    if config.images == "serpapi" and "pictures" not in config.urls:
        said = "is empty: serpapi takes addresses alone; say where images/ is published"
        found.append(Finding("live.urls.pictures", "error", said))
    return found


async def _wait(what: str, asked: Awaitable[object], patience: float) -> Finding:
    try:
        with Waiting.on(what, patience):
            await asyncio.wait_for(asked, patience)
    except (RecordFailed, PageNotFound) as error:
        return Finding(what, "warning", str(error))
    except TimeoutError:
        return Finding(what, "error", f"no answer in {patience:g} s")
    except SynthError as error:
        return Finding(what, "error", str(error))
    return Finding(what, "ok", "answers")


def render_findings(findings: Sequence[Finding]) -> Table:
    """Return the findings as a table."""
    table = Table("check", "state", "found", title="not ready" if is_refused(findings) else "ready")
    for finding in findings:
        table.add_row(finding.what, finding.state, finding.said)
    return table


def is_refused(findings: Sequence[Finding]) -> bool:
    """Say whether one of them is an error."""
    return any(finding.state == "error" for finding in findings)
