"""Tools of sessions over MCP, by the official package (extra ``serve``): the dialect's schemas, text and pictures.

Over HTTP a session is opened as for the plain protocol, and its tools are at ``/sessions/ID/mcp``. Over stdio the
process is about one question. The question with its picture is the prompt ``question`` of either.
"""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import mcp_types as types
from mcp import MCPError
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp.server.transport_security import TransportSecuritySettings
from starlette.requests import Request

from pipelines.agent.environment import Refusal
from pipelines.cli.tool_server import LOOPBACK, REQUEST_BYTES, ToolService
from pipelines.errors import ConfigError, ServiceError
from schemas.datasets import RolloutImage

QUESTION = "question"
Context = ServerRequestContext[Any, Request]


def make_mcp_server(service: ToolService, find_session: Callable[[Context], str]) -> Server[Any]:
    """Return an MCP server of a session's tools.

    ``find_session`` returns the id of the session that a request is about.
    """

    async def list_tools(_: Context, __: types.PaginatedRequestParams | None) -> types.ListToolsResult:
        return types.ListToolsResult(tools=[_describe_tool(each["function"]) for each in service.tools])

    async def call_tool(context: Context, params: types.CallToolRequestParams) -> types.CallToolResult:
        with _explaining():
            reply = await service.call(find_session(context), params.name, json.dumps(params.arguments or {}))
        failed = reply.observation is None or not reply.observation.ok
        left = {"calls_left": reply.calls_left, "ended": reply.ended, "held_out": reply.held_out}
        content = [types.TextContent(type="text", text=reply.text), *await _show(service, reply.images)]
        return types.CallToolResult(content=content, is_error=failed, _meta=left)

    async def list_prompts(_: Context, __: types.PaginatedRequestParams | None) -> types.ListPromptsResult:
        return types.ListPromptsResult(prompts=[types.Prompt(name=QUESTION, description="The question to answer.")])

    async def get_prompt(context: Context, params: types.GetPromptRequestParams) -> types.GetPromptResult:
        with _explaining():
            session = service.environment.find_session(find_session(context))
        texts = [types.TextContent(type="text", text=message.text) for message in session.opening]
        content = [texts[0], *await _show(service, session.images[:1]), texts[1]]
        return types.GetPromptResult(messages=[types.PromptMessage(role="user", content=part) for part in content])

    return Server(
        "synth",
        on_list_tools=list_tools,
        on_call_tool=call_tool,
        on_list_prompts=list_prompts,
        on_get_prompt=get_prompt,
    )


def _describe_tool(function: Mapping[str, Any]) -> types.Tool:
    return types.Tool(name=function["name"], description=function["description"], input_schema=function["parameters"])


@contextmanager
def _explaining() -> Iterator[None]:
    try:
        yield
    except Refusal as error:
        raise MCPError(types.INVALID_PARAMS, f"{error.kind}: {error}") from error
    except ServiceError as error:
        raise MCPError(types.INTERNAL_ERROR, f"away: {error}") from error


async def _show(service: ToolService, images: Sequence[RolloutImage]) -> list[types.ImageContent]:
    loaded = await service.load(images)
    return [
        types.ImageContent(type="image", data=each["data"], mime_type=each["media_type"], _meta={"id": each["id"]})
        for each in loaded
    ]


def _read_path(context: Context) -> str:
    return str(context.request.path_params["session_id"]) if context.request else ""


def make_http_endpoint(service: ToolService, host: str) -> StreamableHTTPSessionManager:
    """Return what answers at ``/sessions/{session_id}/mcp``; MCP's own sessions are not used, ours are in the path."""
    names = [f"{name}:*" for name in LOOPBACK]
    guard = TransportSecuritySettings(
        enable_dns_rebinding_protection=host in LOOPBACK,
        allowed_hosts=names,
        allowed_origins=[f"http://{name}" for name in names],
    )
    server = make_mcp_server(service, _read_path)
    most = REQUEST_BYTES
    return StreamableHTTPSessionManager(
        server, json_response=True, stateless=True, security_settings=guard, max_request_body_size=most
    )


async def serve_stdio(service: ToolService, question_id: str) -> None:
    """Speak MCP on standard input and output about one question, until the input ends."""
    try:
        session = service.open(question_id)
    except Refusal as error:
        raise ConfigError(f"serve-tools: {error}") from error
    server = make_mcp_server(service, lambda _: session.id)
    async with stdio_server() as (reading, writing):
        await server.run(reading, writing, server.create_initialization_options())
