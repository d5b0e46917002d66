"""`synth serve-tools` in a thread of the tests, over a copy of a workspace: another test may hold the original."""

import asyncio
import shutil
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import uvicorn

from pipelines.cli.tool_server import ServingOptions, ToolService, make_app, open_service
from pipelines.config.settings import RunConfig


@dataclass(frozen=True)
class ServedTools:
    """A server that answers."""

    address: str
    service: ToolService


def copy_workspace(root: Path, target: Path) -> Path:
    """Return a copy of a workspace without its releases and worlds."""
    return Path(shutil.copytree(root, target, ignore=shutil.ignore_patterns("releases", "logs")))


@contextmanager
def serving_tools(config: RunConfig, root: Path, options: ServingOptions | None = None) -> Iterator[ServedTools]:
    """Serve a workspace's tools at a free port, and end the server afterwards."""
    options = options or ServingOptions(mcp="http")
    place = socket.create_server(("127.0.0.1", 0))
    ready, told, failures = threading.Event(), list[tuple[uvicorn.Server, ToolService]](), list[BaseException]()

    async def serve() -> None:
        with open_service(config, root, options) as service:
            app = make_app(service, speaks_mcp=options.mcp == "http")
            server = uvicorn.Server(uvicorn.Config(app, log_level="warning", access_log=False, ws="none"))
            told.append((server, service))
            ready.set()
            await server.serve(sockets=[place])

    def run() -> None:
        try:
            asyncio.run(serve())
        except BaseException as error:  # noqa: BLE001 - told to the test
            failures.append(error)
        finally:
            ready.set()

    thread = threading.Thread(target=run)
    thread.start()
    ready.wait()
    try:
        if failures:
            raise failures[0]
        server, service = told[0]
        yield ServedTools(f"http://127.0.0.1:{place.getsockname()[1]}", service)
    finally:
        for server, _ in told:
            server.should_exit = True
        thread.join()
        place.close()
    if failures:
        raise failures[0]
