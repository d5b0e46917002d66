"""A MediaWiki that answers ``prop=imageinfo`` and hands out files on loopback, and misbehaves when told to."""

import json
import threading
import time
from collections.abc import Callable
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from urllib.parse import parse_qs

from tests.pipelines.services.clients.loopback_server import run_server

JPEG = {"url": "https://u/A.jpg", "width": 800, "height": 600, "size": 1234, "mime": "image/jpeg", "sha1": "a" * 40}


def make_image(**changes) -> dict:
    """Return one entry of ``imageinfo``: extmetadata fields in capitals, others as they are."""
    said = {"LicenseShortName": "CC BY-SA 4.0", "LicenseUrl": "https://l", "Artist": "<a href='//u'>A. Uthor</a>"}
    said |= {name: value for name, value in changes.items() if name[0].isupper()}
    fields = {name: value for name, value in changes.items() if not name[0].isupper()}
    extended = {name: {"value": value, "source": "commons-desc-page"} for name, value in said.items()}
    return JPEG | {"descriptionurl": "https://c/File:A.jpg", "extmetadata": extended} | fields


@dataclass(frozen=True, slots=True)
class Fault:
    """What to send in place of an answer."""

    status: int = 200
    body: bytes = b"<html>busy</html>"
    headers: dict = field(default_factory=dict)
    cut: int = 0
    """Bytes promised and not sent."""
    drip: float = 0.0
    """Seconds between bytes."""
    is_endless: bool = False
    """Sent without a length."""


@dataclass
class CommonsServer:
    """What it holds, and what it was asked."""

    images: dict = field(default_factory=dict)
    """Title to its ``imageinfo``, None for a file page without a file."""
    moved: dict = field(default_factory=dict)
    faults: list = field(default_factory=list)
    """Sent first, one a request."""
    files: dict = field(default_factory=dict)
    """What a GET of a path brings: bytes, or a fault."""
    found: dict = field(default_factory=dict)
    """Search to the titles it finds, best first."""
    kind: str = "image/png"
    """Media type of all files."""
    answer: Callable[["CommonsServer", dict], dict] | None = None
    """Makes the reply in place of :meth:`reply`."""
    at_once: int = 50
    """Files whose images fit one reply."""
    url: str = ""
    requests: list = field(default_factory=list)
    """Forms, or the paths of a GET, each with headers and times."""
    busy: int = 0
    most_busy: int = 0
    lock: threading.Lock = field(default_factory=threading.Lock)

    def reply(self, form: dict) -> dict:
        """Answer as MediaWiki does, ``formatversion=2``."""
        if "generator" in form:
            return self.search(form)
        asked = form["titles"].split("|")
        normal = {title: title.replace("_", " ") for title in asked}
        start = int(form.get("iistart", "0"))
        titles = [self.moved.get(normal[title], normal[title]) for title in asked]
        pages = []
        for place, title in enumerate(dict.fromkeys(titles)):
            page = {"ns": 6, "title": title}
            if title in self.images:
                page |= {"pageid": place + 1, "imagerepository": "local" if self.images[title] else ""}
                if self.images[title] and start <= place < start + self.at_once:
                    page["imageinfo"] = self.images[title]
            else:
                page["missing"] = True
            pages.append(page)
        query = {"pages": pages}
        changed = [{"fromencoded": False, "from": old, "to": new} for old, new in normal.items() if old != new]
        if changed:
            query["normalized"] = changed
        renamed = [{"from": old, "to": new} for old, new in self.moved.items() if old in normal.values()]
        if renamed:
            query["redirects"] = renamed
        more = {"continue": {"iistart": str(start + self.at_once), "continue": "||"}}
        return {"query": query} | (more if start + self.at_once < len(pages) else {"batchcomplete": True})

    def search(self, form: dict) -> dict:
        """Answer ``generator=search``: pages in the order of their ids, each with its rank; no query for no hits."""
        titles = self.found.get(form["gsrsearch"], [])[: int(form["gsrlimit"])]
        start = int(form.get("iistart", "0"))
        pages = []
        for place, title in enumerate(titles):
            page = {"pageid": 100 - place, "ns": 6, "title": title, "index": place + 1, "imagerepository": "local"}
            if start <= place < start + self.at_once:
                page["imageinfo"] = self.images[title]
            pages.insert(0, page)
        more = {"continue": {"iistart": str(start + self.at_once), "continue": "||"}}
        done = {"batchcomplete": True, "continue": {"gsroffset": len(titles), "continue": "gsroffset||"}}
        if not titles:
            return {"batchcomplete": True}
        return {"query": {"pages": pages}} | (more if start + self.at_once < len(pages) else done)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        form = parse_qs(self.rfile.read(int(self.headers["Content-Length"])).decode(), keep_blank_values=True)
        self._answer(form={name: values[0] for name, values in form.items()})

    def do_GET(self):
        self._answer(path=self.path)

    def do_HEAD(self):
        server = self.server.commons
        found = server.files.get(self.path)
        with server.lock:
            server.requests.append({"path": self.path, "method": "HEAD", "at": time.monotonic()})
        self.send_response(200 if isinstance(found, bytes) else 503)
        self.send_header("Content-Type", server.kind)
        self.end_headers()

    def _answer(self, **asked):
        server = self.server.commons
        with server.lock:
            server.busy += 1
            server.most_busy = max(server.most_busy, server.busy)
            server.requests.append(asked | {"headers": dict(self.headers), "at": time.monotonic()})
            fault = server.faults.pop(0) if server.faults else None
        try:
            if fault is None:
                fault = self._make_reply(server, **asked)
            self._send(fault)
        except (BrokenPipeError, ConnectionResetError):
            self.close_connection = True
        finally:
            with server.lock:
                server.busy -= 1

    def _make_reply(self, server, form=None, path=""):
        if form is None:
            found = server.files.get(path, Fault(404, b"not found"))
            return found if isinstance(found, Fault) else Fault(body=found)
        reply = server.answer(server, form) if server.answer else server.reply(form)
        return Fault(body=json.dumps(reply).encode(), headers={"Content-Type": "application/json"})

    def _send(self, fault):
        self.send_response(fault.status)
        for name, value in fault.headers.items():
            self.send_header(name, value)
        if not fault.is_endless:
            self.send_header("Content-Length", str(len(fault.body) + fault.cut))
        self.end_headers()
        if fault.drip:
            for byte in fault.body:
                self.wfile.write(bytes([byte]))
                self.wfile.flush()
                time.sleep(fault.drip)
        else:
            self.wfile.write(fault.body)
        self.close_connection = bool(fault.cut) or fault.is_endless

    def log_message(self, *parts):
        """Say nothing."""


@contextmanager
def run_commons(**settings):
    """Run a server until the block ends."""
    commons = CommonsServer(**settings)
    with run_server(_Handler) as httpd:
        httpd.commons = commons
        commons.url = f"http://127.0.0.1:{httpd.server_port}/w/api.php"
        yield commons
