"""The small server of the view: loopback only, GET only, nothing from outside, nothing written."""

import re
import sys
import webbrowser
from collections.abc import Callable, Mapping
from contextvars import copy_context
from functools import lru_cache
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import parse_qs, unquote

import duckdb

from pipelines.cli.view.pages import TEMPLATES, render, show_funnel, show_list, show_row, shrink
from pipelines.cli.view.queries import Explorer
from pipelines.errors import ConfigError, Damaged, SynthError
from pipelines.pictures import PictureStore

LOOPBACK = "127.0.0.1"
SMALL = 160
"""Longest side in pixels of a small copy."""
LONGEST_ADDRESS = 8000
_SHA256 = re.compile(r"[0-9a-f]{64}")
_HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; img-src 'self' data:; style-src 'self'; form-action 'self'; base-uri 'none'; "
        "frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}


class Response(NamedTuple):
    """What is sent, and whether a browser may keep it."""

    status: HTTPStatus
    media: str
    body: bytes
    keep: bool = False


class ViewServer(ThreadingHTTPServer):
    """Serves one workspace on the loopback; port 0 takes a free one."""

    daemon_threads = True

    def __init__(self, workspace: Path, port: int = 0) -> None:
        self._context = copy_context()
        self.explorer = Explorer(workspace)
        self.explorer.list_stages()
        self.store = PictureStore(self.explorer.root / "images")
        self.shrink = lru_cache(maxsize=512)(lambda sha256: shrink(self.store.load(sha256)[0], SMALL))
        try:
            super().__init__((LOOPBACK, port), _Handler)
        except OSError as error:
            raise ConfigError(
                f"view: port {port} cannot be used ({error.strerror}); --port 0 takes a free one"
            ) from error

    def process_request_thread(self, request: Any, client_address: Any) -> None:  # noqa: ANN401 - the base class says so
        """Answer within the context of the command: it says which run is looked at."""
        self._context.copy().run(super().process_request_thread, request, client_address)

    @property
    def address(self) -> str:
        """Where the first page is."""
        return f"http://{LOOPBACK}:{self.server_port}/"

    def answer(self, target: str) -> Response:
        """Return the response to a GET of an address."""
        if not target.startswith("/"):
            return _refuse(HTTPStatus.BAD_REQUEST, "The address has no path.")
        path, _, asked = target.partition("?")
        parts = [unquote(part, errors="replace") for part in path.split("/")[1:]]
        query = {name: values[-1] for name, values in parse_qs(asked, keep_blank_values=True).items()}
        try:
            return self._route(parts, query)
        except (ConfigError, Damaged) as error:
            return _refuse(HTTPStatus.NOT_FOUND, str(error))
        except (SynthError, duckdb.Error, OSError) as error:
            # DuckDB adds the query, which is ours.
            said = " ".join(str(error).partition("LINE 1:")[0].split())[:500]
            return _refuse(HTTPStatus.INTERNAL_SERVER_ERROR, f"{said}; load the page again")

    def _route(self, parts: list[str], query: Mapping[str, str]) -> Response:
        match parts:
            case [""]:
                return _page(show_list(self.explorer, query))
            case ["row", stage, record_id]:
                return _page(show_row(self.explorer, stage, record_id))
            case ["funnel"]:
                return _page(show_funnel(self.explorer))
            case ["view.css"]:
                return Response(HTTPStatus.OK, "text/css; charset=utf-8", (TEMPLATES / "view.css").read_bytes())
            case ["picture", sha256] if _SHA256.fullmatch(sha256):
                if "small" in query:
                    return Response(HTTPStatus.OK, "image/webp", self.shrink(sha256), keep=True)
                content, media = self.store.load(sha256)
                if media in ("image/jpeg", "image/png", "image/gif", "image/webp"):
                    return Response(HTTPStatus.OK, media, content, keep=True)
        return _refuse(HTTPStatus.NOT_FOUND, "There is no such page.")


def _page(html: str, status: HTTPStatus = HTTPStatus.OK) -> Response:
    # Rows of the web may hold lone surrogates, which no encoding has.
    return Response(status, "text/html; charset=utf-8", html.encode("utf-8", "replace"))


def _refuse(status: HTTPStatus, message: str) -> Response:
    return _page(render("base", f"{status.value} {status.phrase}", message=message), status)


class _Handler(BaseHTTPRequestHandler):
    server: ViewServer
    server_version = "synth"
    sys_version = ""
    protocol_version = "HTTP/1.1"
    timeout = 30

    def do_GET(self) -> None:
        # Another site's name may lead here (DNS rebinding).
        own = {f"{host}:{self.server.server_port}" for host in (LOOPBACK, "localhost")}
        if self.headers.get("Host") not in own:
            self._send(Response(HTTPStatus.MISDIRECTED_REQUEST, "text/plain; charset=utf-8", b"Not this host.\n"))
        elif len(self.path) > LONGEST_ADDRESS:
            self._send(_refuse(HTTPStatus.REQUEST_URI_TOO_LONG, "The address is too long."))
        else:
            self._send(self.server.answer(self.path))

    def _send(self, response: Response) -> None:
        self.send_response(response.status)
        kept = "private, max-age=86400, immutable" if response.keep else "no-store"
        named = {"Content-Type": response.media, "Content-Length": str(len(response.body)), "Cache-Control": kept}
        for name, value in (named | _HEADERS).items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(response.body)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: ANN401 - the base class says so
        """Say nothing of requests."""


def serve_view(workspace: Path, port: int, opened: bool, say: Callable[[str], None]) -> None:
    """Serve a workspace until the process is interrupted.

    Args:
        workspace: its folder.
        port: of the loopback; 0 for a free one.
        opened: open a browser.
        say: gets the address.

    Raises:
        ConfigError: if there is no workspace, or the port is taken.
    """
    with ViewServer(workspace, port) as server:
        say(server.address)
        sys.stdout.flush()
        if opened:
            webbrowser.open(server.address)
        try:
            server.serve_forever()
        except KeyboardInterrupt:
            server.server_close()
