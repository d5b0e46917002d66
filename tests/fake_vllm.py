"""A stand-in for vLLM that starts at once: a Python with a package ``vllm`` whose server names its model.

Its behaviour is set by the arguments it is started with, as a real one's is: ``--fake die``, ``--fake hang``,
``--fake leave`` (once it was ready) and ``--fake other-name``.
"""

import os
import stat
import sys
from pathlib import Path

SERVER = """
import argparse, http.server, json, os, subprocess, sys, time

parser = argparse.ArgumentParser()
parser.add_argument("--host")
parser.add_argument("--port", type=int)
parser.add_argument("--model")
parser.add_argument("--served-model-name")
parser.add_argument("--fake", default="")
known, _ = parser.parse_known_args()
print("arguments", json.dumps(sys.argv[1:]), flush=True)
print("usage", os.environ.get("VLLM_NO_USAGE_STATS"), "key", os.environ.get("VLLM_API_KEY", "none")[:4], flush=True)
if known.fake == "die":
    sys.exit("no memory for the model")
if known.fake == "hang":
    time.sleep(600)
worker = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
print("worker", worker.pid, flush=True)


class Answers(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        key = os.environ.get("VLLM_API_KEY")
        if key and self.path.startswith("/v1") and self.headers["Authorization"] != f"Bearer {key}":
            self.send_error(401)
            return
        name = "another" if known.fake == "other-name" else known.served_model_name
        body = json.dumps({"data": [{"id": name}]}).encode() if self.path == "/v1/models" else b"{}"
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
        if known.fake == "leave" and self.path == "/v1/models":
            print("out of memory", flush=True)
            os._exit(9)


http.server.ThreadingHTTPServer((known.host, known.port), Answers).serve_forever()
"""
FILES = {
    "__init__.py": "",
    "entrypoints/__init__.py": "",
    "entrypoints/openai/__init__.py": "",
    "entrypoints/openai/api_server.py": SERVER,
}


def write_fake_vllm(folder: Path) -> Path:
    """Write the package, and return a Python that has it."""
    for name, text in FILES.items():
        path = folder / "packages" / "vllm" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    python = folder / "python"
    python.write_text(f'#!/bin/sh\nPYTHONPATH="{folder / "packages"}" exec "{sys.executable}" "$@"\n')
    python.chmod(python.stat().st_mode | stat.S_IXUSR)
    return python


def is_alive(pid: int) -> bool:
    """Whether a process runs; one that nobody waited for yet does not."""
    try:
        os.kill(pid, 0)
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (ProcessLookupError, FileNotFoundError):
        return False
