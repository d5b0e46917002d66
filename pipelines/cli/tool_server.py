"""``synth serve-tools``: the tool environment over HTTP, and over MCP if that is wanted.

::

    GET    /                      dialect, limits, number of questions
    GET    /tools                 the tools as a JSON array of OpenAI function schemas
    GET    /questions             ids of the questions that may be opened
    POST   /sessions              {"question_id"} -> id, messages, pictures
    POST   /sessions/ID/calls     {"name", "arguments"} -> observation, new pictures
    POST   /sessions/ID/turns     {"text"} -> the same for a model's whole turn, or its answer
    DELETE /sessions/ID
    POST   /sessions/ID/mcp       a session's tools over MCP's streamable HTTP

What the dialect answers with an observation has status 200, a bad call too. Other statuses are for what no model has
caused: 403 for a question that is held out, 404, 413, 422, 503 for a service or a place that is not free, 504.
"""

import asyncio
import base64
import json
import socket
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, closing, contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Literal, TextIO

from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from pydantic import BaseModel, Field
from starlette.datastructures import Headers
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from pipelines.agent.dialects import find_dialect
from pipelines.agent.environment import Refusal, RefusalKind, Reply, Session, ToolEnvironment
from pipelines.checks.sets import HeldOut, make_signature
from pipelines.cli.plan import find_built_corpus, read_rounds
from pipelines.config.settings import RunConfig
from pipelines.corpus.store import Corpus
from pipelines.errors import ConfigError, ServiceError
from pipelines.release.making import read_proofs
from pipelines.release.manifest import ReleaseManifest, read_release_manifest
from pipelines.run.assembly import Acting, Assembly
from pipelines.run.runner import PlannedStage
from pipelines.run.shards import read_parts
from pipelines.run.workspace import Workspace
from pipelines.services.clients.serving import owned_servers
from schemas.datasets import Enhancement, RolloutImage

STATUS: Mapping[RefusalKind, int] = {
    "unknown-question": 404,
    "held-out": 403,
    "unknown-session": 404,
    "too-many-sessions": 503,
    "timeout": 504,
}
LOOPBACK = ("127.0.0.1", "localhost")
Protocol = Literal["", "stdio", "http"]


@dataclass(frozen=True, slots=True)
class ServingOptions:
    """What is served, and how.

    Attributes:
        release: whose questions are served; None for all of the last run.
        dialect: protocol; empty for that of the configuration.
        evaluating: whether questions that are held out may be opened.
        host: address to listen at.
        port: 0 for any that is free.
        record: file that calls are appended to; None for none.
        mcp: whether MCP is spoken, too (``http``), or alone (``stdio``).
        question: that MCP over stdio is about.
    """

    release: Path | None = None
    dialect: str = ""
    evaluating: bool = False
    host: str = "127.0.0.1"
    port: int = 8765
    record: Path | None = None
    mcp: Protocol = ""
    question: str = ""


@contextmanager
def open_environment(config: RunConfig, root: Path, options: ServingOptions) -> Iterator[ToolEnvironment]:
    """Open the tools of a run's rollouts over its questions; the workspace is held meanwhile.

    Raises:
        ConfigError: if the workspace has no such run, or the release was made with another configuration.
        WorkspaceBusy: if a run holds the workspace.
    """
    workspace = Workspace(root.resolve())
    folder = find_built_corpus(config, workspace)
    if folder is None:
        raise ConfigError(f"serve-tools: workspace {workspace.root} has no corpus of recipe {config.recipe}; run it")
    manifest = read_release_manifest(options.release) if options.release else None
    roles = ["summariser"] if config.summarises else []
    with (
        workspace.claim(config.replies.address, "serve-tools"),
        owned_servers(config.models, roles, workspace.logs),
        closing(Corpus.open(folder)) as corpus,
        closing(Assembly(config, workspace, corpus)) as assembly,
    ):
        if config.targets.wanted:
            read_rounds(assembly)
        planned = {plan.name: plan for plan in assembly.plan_stages()}
        if manifest is not None:
            check_origin(manifest, planned)
        chosen = options.dialect or config.rollouts.dialect
        rollouts = config.rollouts.model_copy(update={"dialect": find_dialect(chosen).name})
        spoken = config.model_copy(update={"rollouts": rollouts})
        agent = Acting(spoken, corpus, assembly.roles, assembly.seeing).make_agent()
        rows = list(read_parts(planned["selections"].folder, Enhancement))
        wanted = {row.record_id for row in rows}
        if options.release is not None:
            wanted &= {proof.record_id for proof in read_proofs(options.release)}
        questions = {row.record_id: row for row in rows if row.record_id in wanted}
        held_out = HeldOut.of(map(make_signature, rows))
        yield ToolEnvironment(agent, questions, held_out, config.tool_server, options.evaluating)


def check_origin(manifest: ReleaseManifest, planned: Mapping[str, PlannedStage]) -> None:
    """Refuse a release whose rollouts had other tools: an observation would not be the one that its rows were made of.

    Raises:
        ConfigError: naming the first stage that differs.
    """
    for entry in manifest.lineage:
        if entry.name in planned and planned[entry.name].key != entry.key:
            raise ConfigError(
                f"serve-tools: release {manifest.version} has {entry.name} {entry.key}, this configuration would have "
                f"{planned[entry.name].key}; give the --recipe, --config and --set that it was made with"
            )


class Question(BaseModel, extra="forbid"):
    """Body of ``POST /sessions``."""

    question_id: str = Field(max_length=200)


class Call(BaseModel, extra="forbid"):
    """Body of ``POST /sessions/ID/calls``."""

    name: str = Field(max_length=200)
    arguments: dict[str, Any] | str = Field(description="an object, or the JSON text of one as OpenAI's API gives it")


class Said(BaseModel, extra="forbid"):
    """Body of ``POST /sessions/ID/turns``."""

    text: str


class Recorder:
    """Appends what was asked and answered to a file, a JSON object a line; pictures are named by their sha256.

    The pictures themselves lie in the workspace's ``images/<ab>/<sha256>.<ext>``.
    """

    def __init__(self, sink: TextIO | None) -> None:
        self._sink = sink

    def note(self, session: Session, asked: Mapping[str, object], reply: Reply | None = None) -> None:
        """Append one exchange; None for the opening of a session."""
        if self._sink is None:
            return
        shown = session.images if reply is None else reply.images
        line: dict[str, object] = {"session": session.id, "question_id": session.question.record_id, **asked}
        line["images"] = [{"id": each.id, "sha256": each.picture.sha256} for each in shown]
        if reply is not None:
            line |= {"call": session.calls, **_describe(reply)}
        self._sink.write(json.dumps(line, ensure_ascii=True) + "\n")
        self._sink.flush()


def _describe(reply: Reply) -> dict[str, object]:
    seen = reply.observation
    return {
        "ok": seen is not None and seen.ok,
        "error": seen.error if seen is not None else "",
        "warning": seen.warning if seen is not None else "",
        "text": reply.text,
        "message": reply.message,
        "calls_left": reply.calls_left,
        "ended": reply.ended,
        "answer": reply.answer,
        "held_out": reply.held_out,
    }


@dataclass(frozen=True, slots=True)
class ToolService:
    """What both protocols ask: the environment, with a record of what was asked."""

    environment: ToolEnvironment
    recorder: Recorder

    @property
    def tools(self) -> list[dict[str, Any]]:
        """The tools as OpenAI's API takes them."""
        offered: list[dict[str, Any]] = json.loads(self.environment.agent.offered)
        return offered

    def open(self, question_id: str) -> Session:
        """Open a session; see :meth:`ToolEnvironment.open_session`."""
        session = self.environment.open_session(question_id)
        self.recorder.note(session, {"opened": True})
        return session

    async def call(self, session_id: str, name: str, arguments: str) -> Reply:
        """Make a call; see :meth:`ToolEnvironment.call`."""
        session = self.environment.find_session(session_id)
        reply = await self.environment.call(session, name, arguments)
        self.recorder.note(session, {"name": name, "arguments": arguments}, reply)
        return reply

    async def take_turn(self, session_id: str, text: str) -> Reply:
        """Take a turn; see :meth:`ToolEnvironment.take_turn`."""
        session = self.environment.find_session(session_id)
        reply = await self.environment.take_turn(session, text)
        self.recorder.note(session, {"turn": text}, reply)
        return reply

    async def load(self, images: Sequence[RolloutImage]) -> list[dict[str, str]]:
        """Return pictures with their content."""
        return [await asyncio.to_thread(self._load, image) for image in images]

    def _load(self, image: RolloutImage) -> dict[str, str]:
        picture, store = image.picture, self.environment.agent.tools.store
        data = base64.b64encode(store.read(picture)).decode()
        kind = "jpeg" if picture.extension == "jpg" else picture.extension
        return {"id": image.id, "sha256": picture.sha256, "media_type": f"image/{kind}", "data": data}


def make_app(service: ToolService, host: str = "127.0.0.1", speaks_mcp: bool = False) -> FastAPI:
    """Return the server's application.

    Args:
        service: what is served.
        host: that it listens at; on loopback requests under other names are refused, which a web page could send.
        speaks_mcp: whether sessions have an address for MCP.

    Raises:
        ConfigError: if MCP is wanted and not installed.
    """
    mcp: Any = None
    if speaks_mcp:
        from pipelines.cli.tool_mcp import make_http_endpoint

        mcp = make_http_endpoint(service, host)

    @asynccontextmanager
    async def living(_: FastAPI) -> AsyncIterator[None]:
        if mcp is None:
            yield
            return
        async with mcp.run():
            yield

    app = FastAPI(title="synth serve-tools", lifespan=living, openapi_url=None)
    _add_limits(app, host, service.environment.limits.request_bytes)
    _add_views(app, service)
    _add_sessions(app, service)
    if mcp is not None:
        # A route and no mount: that would answer with a redirect.
        app.router.routes.append(Route("/sessions/{session_id}/mcp", mcp.asgi_app))
    return app


class RequestLimit:
    """Refuses a request whose body is longer than allowed, or whose length is unknown."""

    def __init__(self, app: ASGIApp, most: int) -> None:
        self.app, self.most = app, most

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, or answer it."""
        if scope["type"] != "http" or scope["method"] != "POST":
            await self.app(scope, receive, send)
            return
        size = Headers(scope=scope).get("content-length", "")
        if not size.isdecimal():
            await _refuse(411, "length", "a request must say its content-length")(scope, receive, send)
        elif int(size) > self.most:
            await _refuse(413, "too-long", f"a request has at most {self.most} bytes")(scope, receive, send)
        else:
            await self.app(scope, receive, send)


def _add_limits(app: FastAPI, host: str, most: int) -> None:
    """Refuse requests that are too long or name another host, and report failures in one form."""
    if host in LOOPBACK:
        app.add_middleware(TrustedHostMiddleware, allowed_hosts=list(LOOPBACK))

    app.add_middleware(RequestLimit, most=most)

    @app.exception_handler(Refusal)
    async def refuse(_: Request, error: Refusal) -> Response:
        return _refuse(STATUS[error.kind], error.kind, str(error))

    @app.exception_handler(ServiceError)
    async def away(_: Request, error: ServiceError) -> Response:
        return _refuse(503, "away", str(error))

    @app.exception_handler(RequestValidationError)
    async def malformed(_: Request, error: RequestValidationError) -> Response:
        told = "; ".join(f"{'.'.join(map(str, part['loc']))}: {part['msg']}" for part in error.errors())
        return _refuse(422, "malformed", told)


def _refuse(status: int, error: str, text: str) -> JSONResponse:
    return JSONResponse({"error": error, "detail": text.encode("utf-8", "replace").decode()}, status)


def _add_views(app: FastAPI, service: ToolService) -> None:
    """Add what says what is served."""
    environment = service.environment

    @app.get("/")
    async def describe() -> dict[str, Any]:
        agent = environment.agent
        return {
            "dialect": agent.dialect.name,
            "native": agent.dialect.native,
            "questions": len(environment.list_questions()),
            "calls": agent.settings.max_calls,
            "snapshot": agent.tools.snapshot,
            "tools": agent.tools.identity,
        }

    @app.get("/tools")
    async def list_tools() -> list[dict[str, Any]]:
        return service.tools

    @app.get("/questions")
    async def list_questions() -> dict[str, list[str]]:
        return {"questions": environment.list_questions()}


def _add_sessions(app: FastAPI, service: ToolService) -> None:
    """Add what begins, goes on with and ends an attempt."""
    environment = service.environment

    @app.post("/sessions", status_code=201)
    async def open_session(body: Question) -> dict[str, Any]:
        session = service.open(body.question_id)
        return {
            "session": session.id,
            "question_id": session.question.record_id,
            "messages": [{"role": message.role, "content": message.text} for message in session.opening],
            "images": await service.load(session.images),
            "calls_left": environment.agent.settings.max_calls,
        }

    @app.post("/sessions/{session_id}/calls")
    async def call(session_id: str, body: Call) -> dict[str, Any]:
        given = body.arguments
        reply = await service.call(session_id, body.name, given if isinstance(given, str) else json.dumps(given))
        return {**_describe(reply), "images": await service.load(reply.images)}

    @app.post("/sessions/{session_id}/turns")
    async def take_turn(session_id: str, body: Said) -> dict[str, Any]:
        reply = await service.take_turn(session_id, body.text)
        return {**_describe(reply), "images": await service.load(reply.images)}

    @app.delete("/sessions/{session_id}", status_code=204)
    async def close_session(session_id: str) -> Response:
        environment.close_session(session_id)
        return Response(status_code=204)


@contextmanager
def open_recorder(path: Path | None) -> Iterator[Recorder]:
    """Open the file that calls are appended to.

    Raises:
        ConfigError: if it cannot be written.
    """
    if path is None:
        yield Recorder(None)
        return
    try:
        sink = path.open("a", encoding="utf-8")
    except OSError as error:
        raise ConfigError(f"serve-tools: {path} cannot be written: {error.strerror}") from error
    with sink:
        yield Recorder(sink)


def serve_tools(config: RunConfig, root: Path, options: ServingOptions, say: Callable[[str], None]) -> None:
    """Serve the tools until the process is stopped.

    ``say`` gets the address, once requests are answered.

    Raises:
        ConfigError: as :func:`open_environment`, and if the address is taken or MCP is not installed.
    """
    if options.mcp and find_spec("mcp") is None:
        raise ConfigError("serve-tools: --mcp needs the package mcp; install it with: pip install 'synth[serve]'")
    if (options.mcp == "stdio") != bool(options.question):
        raise ConfigError("serve-tools: --mcp stdio is about one question; name it with --question, and only then")
    with open_environment(config, root, options) as environment, open_recorder(options.record) as recorder:
        service = ToolService(environment, recorder)
        if options.mcp == "stdio":
            from pipelines.cli.tool_mcp import serve_stdio

            asyncio.run(serve_stdio(service, options.question))
        else:
            asyncio.run(_serve_http(service, options, say))


async def _serve_http(service: ToolService, options: ServingOptions, say: Callable[[str], None]) -> None:
    import uvicorn

    try:
        place = socket.create_server((options.host, options.port))
    except OSError as error:
        where = f"{options.host}:{options.port}"
        raise ConfigError(f"serve-tools: cannot listen at {where}: {error.strerror}; give another --port") from error
    app = make_app(service, options.host, options.mcp == "http")
    server = uvicorn.Server(uvicorn.Config(app, log_level="warning", access_log=False, ws="none"))
    with place:
        host, port = place.getsockname()[:2]
        dialect, questions = service.environment.agent.dialect.name, len(service.environment.list_questions())
        say(f"http://{host}:{port}: {len(service.tools)} tools in the dialect {dialect}, {questions} questions")
        await server.serve(sockets=[place])
