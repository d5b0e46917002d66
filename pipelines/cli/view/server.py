"""The small server of the view: loopback only, GET only, nothing from outside, nothing written."""

import re
import sys
import webbrowser
from collections.abc import Callable, Mapping
from contextvars import copy_context
from dataclasses import dataclass
from functools import lru_cache
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib import resources
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, unquote, urlencode

import duckdb

from pipelines.cli.drawing import draw_thumbnail
from pipelines.cli.view.pages import render, show_comparison, show_funnel, show_list, show_row
from pipelines.cli.view.queries import Explorer
from pipelines.errors import ConfigError, Damaged, RecordFailed, SynthError
from pipelines.pictures import PictureStore

LOOPBACK = "127.0.0.1"
SMALL = 160
"""Longest side in pixels of a small copy."""
LONGEST_ADDRESS = 8000
ASSETS = {"drawing.css": "text/css", "view.css": "text/css", "view.js": "text/javascript"}
_SHA256 = re.compile(r"[0-9a-f]{64}")
_HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; img-src 'self' data:; style-src 'self'; script-src 'self'; form-action 'self'; "
        "base-uri 'none'; frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
}


@dataclass(frozen=True, slots=True)
class Response:
    """What is sent: status, media type, bytes, and whether a browser may keep it."""

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
        self.shrink = lru_cache(maxsize=512)(self._shrink)
        try:
            super().__init__((LOOPBACK, port), _Handler)
        except OSError as error:
            raise ConfigError(
                f"view: port {port} cannot be used ({error.strerror}); --port 0 takes a free one"
            ) from error

    def process_request_thread(self, request: Any, client_address: Any) -> None:  # noqa: ANN401 - the base class says so
        """Answer a request in what the command was called within: the run that it looks at."""
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
            case ["compare"]:
                return _page(show_comparison(self.explorer, query))
            case ["picture", sha256] if _SHA256.fullmatch(sha256):
                return self._show_picture(sha256, "small" in query)
            case ["assets", name] if name in ASSETS:
                content = (resources.files("pipelines.cli.view") / "templates" / name).read_bytes()
                return Response(HTTPStatus.OK, f"{ASSETS[name]}; charset=utf-8", content)
        return _refuse(HTTPStatus.NOT_FOUND, "There is no such page.")

    def _show_picture(self, sha256: str, small: bool) -> Response:
        if small:
            return Response(HTTPStatus.OK, "image/webp", self.shrink(sha256), keep=True)
        content, media = PictureStore(self.explorer.root / "images").load(sha256)
        if media not in ("image/jpeg", "image/png", "image/gif", "image/webp"):
            return _refuse(HTTPStatus.NOT_FOUND, "That is no picture that a page shows.")
        return Response(HTTPStatus.OK, media, content, keep=True)

    def _shrink(self, sha256: str) -> bytes:
        content, _ = PictureStore(self.explorer.root / "images").load(sha256)
        try:
            return draw_thumbnail(content, SMALL, 70)
        except RecordFailed as error:
            raise Damaged(Path(sha256), f"cannot be shown ({error})") from error


def _page(html: str) -> Response:
    # Rows of the web may hold lone surrogates, which no encoding has.
    return Response(HTTPStatus.OK, "text/html; charset=utf-8", html.encode("utf-8", "replace"))


def _refuse(status: HTTPStatus, message: str) -> Response:
    html = render("error", status=f"{status.value} {status.phrase}", message=message)
    return Response(status, "text/html; charset=utf-8", html.encode("utf-8", "replace"))


class _Handler(BaseHTTPRequestHandler):
    server: ViewServer
    server_version = "synth"
    sys_version = ""
    protocol_version = "HTTP/1.1"
    timeout = 30

    def do_GET(self) -> None:
        """Answer, unless another site's name leads here (DNS rebinding)."""
        own = {f"{host}:{self.server.server_port}" for host in (LOOPBACK, "localhost")}
        if self.headers.get("Host") not in own:
            self._send(Response(HTTPStatus.MISDIRECTED_REQUEST, "text/plain; charset=utf-8", b"Not this host.\n"))
        elif len(self.path) > LONGEST_ADDRESS:
            self._send(_refuse(HTTPStatus.REQUEST_URI_TOO_LONG, "The address is too long."))
        else:
            self._send(self.server.answer(self.path))

    def __getattr__(self, name: str) -> Callable[[], None]:
        """Refuse every method but GET: the base class looks for ``do_<METHOD>``."""
        if not name.startswith("do_"):
            raise AttributeError(name)
        return self._refuse_method

    def _refuse_method(self) -> None:
        self.close_connection = True
        self._send(Response(HTTPStatus.METHOD_NOT_ALLOWED, "text/plain; charset=utf-8", b"Only GET.\n"))

    def _send(self, response: Response) -> None:
        self.send_response(response.status)
        kept = "private, max-age=86400, immutable" if response.keep else "no-store"
        named = {"Content-Type": response.media, "Content-Length": str(len(response.body)), "Cache-Control": kept}
        allowed = {"Allow": "GET"} if response.status == HTTPStatus.METHOD_NOT_ALLOWED else {}
        for name, value in (named | allowed | _HEADERS).items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(response.body)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: ANN401 - the base class says so
        """Say nothing of requests."""


def serve_view(workspace: Path, port: int, release: str, opened: bool, say: Callable[[str], None]) -> None:
    """Serve a workspace until the process is interrupted.

    Args:
        workspace: its folder.
        port: of the loopback; 0 for a free one.
        release: ``dataset/version`` that the first page is limited to; may be empty.
        opened: open a browser.
        say: gets the address.

    Raises:
        ConfigError: if there is no workspace or no such release, or the port is taken.
    """
    with ViewServer(workspace, port) as server:
        if release:
            server.explorer.find_release(release)
        address = server.address + (f"?{urlencode({'release': release})}" if release else "")
        say(address)
        sys.stdout.flush()
        if opened:
            webbrowser.open(address)
        try:
            server.serve_forever()
        except KeyboardInterrupt:
            server.server_close()
