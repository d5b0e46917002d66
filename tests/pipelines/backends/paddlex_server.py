"""A layout service as PaddleX serves it, on loopback: it finds what is not ground and reads what it is told."""

import base64
import io
import json
import time
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler

from PIL import Image, ImageChops

from tests.pipelines.backends.loopback_server import run_server


@dataclass(frozen=True, slots=True)
class Fault:
    """What to send in place of an answer."""

    status: int = 500
    body: bytes = b'{"errorCode": 500, "errorMsg": "Internal server error"}'
    headers: dict = field(default_factory=dict)
    cut: int = 0
    """Bytes promised and not sent."""
    silence: float = 0.0
    """Seconds before it is sent."""


@dataclass
class LayoutServer:
    """What it reads, and what it was asked."""

    text: str = "Kelmor Bridge"
    stray: str = ""
    """A line that stands in no block."""
    healthy: bool = True
    fault: Fault | None = None
    """Sent in place of every answer."""
    url: str = ""
    requests: list = field(default_factory=list)
    paths: list = field(default_factory=list)

    def describe(self, request: dict) -> dict:
        """Answer as PP-StructureV3 does."""
        picture = Image.open(io.BytesIO(base64.b64decode(request["file"]))).convert("RGB")
        box = ImageChops.difference(picture, Image.new("RGB", picture.size, picture.getpixel((0, 0)))).getbbox()
        blocks = [{"block_label": "paragraph_title", "block_content": self.text, "block_bbox": box}] if box else []
        lines = [self.text, *([self.stray] if self.stray else [])] if box else []
        pruned = {
            "parsing_res_list": blocks,
            "overall_ocr_res": {
                "rec_texts": lines, "rec_scores": [0.9] * len(lines), "rec_boxes": [box] * len(lines),
            },
        }  # fmt: skip
        return {"errorCode": 0, "errorMsg": "Success", "result": {"layoutParsingResults": [{"prunedResult": pruned}]}}


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        layout = self.server.layout
        layout.paths.append(self.path)
        self._send(Fault(200 if layout.healthy else 500, b"{}"))

    def do_POST(self):
        layout = self.server.layout
        request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        layout.paths.append(self.path)
        layout.requests.append(request)
        fault = layout.fault or Fault(200, json.dumps(layout.describe(request)).encode())
        time.sleep(fault.silence)
        try:
            self._send(fault)
        except (BrokenPipeError, ConnectionResetError):
            self.close_connection = True

    def _send(self, fault):
        self.send_response(fault.status)
        for name, value in fault.headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(fault.body) + fault.cut))
        self.end_headers()
        self.wfile.write(fault.body)
        self.close_connection = bool(fault.cut)

    def log_message(self, *parts):
        """Say nothing."""


@contextmanager
def run_layout(**settings):
    """Run a server until the block ends."""
    layout = LayoutServer(**settings)
    with run_server(_Handler) as httpd:
        httpd.layout = layout
        layout.url = f"http://127.0.0.1:{httpd.server_address[1]}"
        yield layout
