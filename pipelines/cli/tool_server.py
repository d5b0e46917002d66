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
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, nullcontext
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
from pipelines.release.manifest import read_release_manifest
from pipelines.run.assembly import Acting, Assembly
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
REQUEST_BYTES = 262_144
"""Largest request: a whole turn of a model with room to spare."""


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
    mcp: Literal["", "stdio", "http"] = ""
    question: str = ""


@contextmanager
def open_environment(config: RunConfig, root: Path, options: ServingOptions) -> Iterator[ToolEnvironment]:
    """Open the tools of a run's rollouts over its questions; the workspace is held meanwhile."""
    workspace = Workspace(root.resolve())
    folder = find_built_corpus(config, workspace)
    if folder is None:
        raise ConfigError(f"serve-tools: workspace {workspace.root} has no corpus of recipe {config.recipe}; run it")
    lineage = read_release_manifest(options.release).lineage if options.release else ()
    with (
        workspace.claim("serve-tools"),
        owned_servers(config.models, ["summariser"] if config.summarises else [], workspace.logs),
        closing(Corpus.open(folder)) as corpus,
        closing(Assembly(config, workspace, corpus)) as assembly,
    ):
        if config.targets.wanted:
            read_rounds(assembly)
        planned = {plan.name: plan for plan in assembly.plan_stages()}
        for entry in lineage:
            # With other tools an observation would not be the one that the release's rows were made of.
            if entry.name in planned and planned[entry.name].key != entry.key:
                raise ConfigError(
                    f"serve-tools: release {options.release} has {entry.name} {entry.key}, this configuration would "
                    f"have {planned[entry.name].key}; give the --config and --set that it was made with"
                )
        chosen = find_dialect(options.dialect or config.rollouts.dialect).name
        spoken = config.model_copy(update={"rollouts": config.rollouts.model_copy(update={"dialect": chosen})})
        agent = Acting(spoken, corpus, assembly.roles, assembly.seeing).make_agent()
        rows = list(read_parts(planned["selections"].folder, Enhancement))
        wanted = {proof.record_id for proof in read_proofs(options.release)} if options.release else None
        questions = {row.record_id: row for row in rows if wanted is None or row.record_id in wanted}
        held_out = HeldOut.of(map(make_signature, rows))
        yield ToolEnvironment(agent, questions, held_out, evaluating=options.evaluating)


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


@dataclass(frozen=True, slots=True)
class ToolService:
    """What both protocols ask: the environment, with a record of what was asked and answered.

    The record is a JSON object a line; pictures are named by their sha256 and lie in the workspace's ``images/``.
    """

    environment: ToolEnvironment
    sink: TextIO | None = None

    @property
    def tools(self) -> list[dict[str, Any]]:
        """The tools as OpenAI's API takes them."""
        offered: list[dict[str, Any]] = json.loads(self.environment.agent.offered)
        return offered

    def open(self, question_id: str) -> Session:
        """Open a session; see :meth:`ToolEnvironment.open_session`."""
        session = self.environment.open_session(question_id)
        self._note(session, {"opened": True}, session.images)
        return session

    async def call(self, session_id: str, name: str, arguments: str) -> Reply:
        """Make a call; see :meth:`ToolEnvironment.call`."""
        session = self.environment.find_session(session_id)
        reply = await self.environment.call(session, name, arguments)
        told = {"name": name, "arguments": arguments, "call": session.calls, **describe_reply(reply)}
        self._note(session, told, reply.images)
        return reply

    async def take_turn(self, session_id: str, text: str) -> Reply:
        """Take a turn; see :meth:`ToolEnvironment.take_turn`."""
        session = self.environment.find_session(session_id)
        reply = await self.environment.take_turn(session, text)
        self._note(session, {"turn": text, "call": session.calls, **describe_reply(reply)}, reply.images)
        return reply

    def _note(self, session: Session, told: Mapping[str, object], shown: Sequence[RolloutImage]) -> None:
        if self.sink is not None:
            images = [{"id": each.id, "sha256": each.picture.sha256} for each in shown]
            line = {"session": session.id, "question_id": session.question.record_id, **told, "images": images}
            self.sink.write(json.dumps(line) + "\n")
            self.sink.flush()

    async def load(self, images: Sequence[RolloutImage]) -> list[dict[str, str]]:
        """Return pictures with their content."""
        return [await asyncio.to_thread(self._load, image) for image in images]

    def _load(self, image: RolloutImage) -> dict[str, str]:
        picture = image.picture
        data = base64.b64encode(self.environment.agent.tools.store.read(picture)).decode()
        kind = "jpeg" if picture.extension == "jpg" else picture.extension
        return {"id": image.id, "sha256": picture.sha256, "media_type": f"image/{kind}", "data": data}


def describe_reply(reply: Reply) -> dict[str, object]:
    """Return a reply without its pictures."""
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


def make_app(service: ToolService, host: str = "127.0.0.1", speaks_mcp: bool = False) -> FastAPI:
    """Return the server's application.

    Args:
        service: what is served.
        host: that it listens at; on loopback requests under other names are refused, which a web page could send.
        speaks_mcp: whether sessions have an address for MCP.
    """
    mcp: Any = None
    if speaks_mcp:
        from pipelines.cli.tool_mcp import make_http_endpoint

        mcp = make_http_endpoint(service, host)
    app = FastAPI(title="synth serve-tools", openapi_url=None, lifespan=lambda _: mcp.run() if mcp else nullcontext())
    if host in LOOPBACK:
        app.add_middleware(TrustedHostMiddleware, allowed_hosts=list(LOOPBACK))
    app.add_middleware(RequestLimit, most=REQUEST_BYTES)
    _explain_failures(app)
    _add_paths(app, service)
    if mcp is not None:
        # A route and no mount: that would answer with a redirect.
        app.router.routes.append(Route("/sessions/{session_id}/mcp", mcp.asgi_app))
    return app


class RequestLimit:
    """Refuses a request whose body is longer than allowed, or whose length is unknown."""

    def __init__(self, app: ASGIApp, most: int) -> None:
        self.app, self.most = app, most

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        answer: ASGIApp = self.app
        if scope["type"] == "http" and scope["method"] == "POST":
            size = Headers(scope=scope).get("content-length", "")
            if not size.isdecimal():
                answer = _refuse(411, "length", "a request must say its content-length")
            elif int(size) > self.most:
                answer = _refuse(413, "too-long", f"a request has at most {self.most} bytes")
        await answer(scope, receive, send)


def _refuse(status: int, error: str, text: str) -> JSONResponse:
    return JSONResponse({"error": error, "detail": text.encode("utf-8", "replace").decode()}, status)


def _explain_failures(app: FastAPI) -> None:
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


def _add_paths(app: FastAPI, service: ToolService) -> None:
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
        given = body.arguments if isinstance(body.arguments, str) else json.dumps(body.arguments)
        reply = await service.call(session_id, body.name, given)
        return {**describe_reply(reply), "images": await service.load(reply.images)}

    @app.post("/sessions/{session_id}/turns")
    async def take_turn(session_id: str, body: Said) -> dict[str, Any]:
        reply = await service.take_turn(session_id, body.text)
        return {**describe_reply(reply), "images": await service.load(reply.images)}

    @app.delete("/sessions/{session_id}", status_code=204)
    async def close_session(session_id: str) -> Response:
        environment.close_session(session_id)
        return Response(status_code=204)


@contextmanager
def open_service(config: RunConfig, root: Path, options: ServingOptions) -> Iterator[ToolService]:
    """Open the environment, and the file that calls are appended to."""
    try:
        sink = options.record.open("a", encoding="utf-8") if options.record else None
    except OSError as error:
        raise ConfigError(f"serve-tools: {options.record} cannot be written: {error.strerror}") from error
    with sink or nullcontext(), open_environment(config, root, options) as environment:
        yield ToolService(environment, sink)


def serve_tools(config: RunConfig, root: Path, options: ServingOptions, say: Callable[[str], None]) -> None:
    """Serve the tools until the process is stopped.

    ``say`` gets the address, once requests are answered.
    """
    if options.mcp and find_spec("mcp") is None:
        raise ConfigError("serve-tools: --mcp needs the package mcp; install it with: pip install 'synth[serve]'")
    if (options.mcp == "stdio") != bool(options.question):
        raise ConfigError("serve-tools: --mcp stdio is about one question; name it with --question, and only then")
    with open_service(config, root, options) as service:
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
