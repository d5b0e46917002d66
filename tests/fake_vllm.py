"""A stand-in for vLLM that starts at once: a Python with a package ``vllm`` whose server and ``LLM`` echo.

Its behaviour is set by the arguments it is started with, as a real one's is: ``--fake die``, ``--fake hang``,
``--fake leave`` (once it was ready), ``--fake other-name`` and, for an engine, ``--fake crash``.
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
ENGINE = '''
import dataclasses, json, os, sys, time


@dataclasses.dataclass
class SamplingParams:
    temperature: float
    top_p: float
    max_tokens: int
    seed: int
    structured_outputs: object = None
    top_k: int = 0
    presence_penalty: float = 0.0
    stop: object = None


@dataclasses.dataclass
class Said:
    text: str
    token_ids: list
    finish_reason: str


@dataclasses.dataclass
class Output:
    prompt_token_ids: list
    outputs: list


class LLM:
    """Says what it was asked and with which sampling, and how many were in its batch."""

    def __init__(self, arguments):
        self.fake = arguments.fake
        self.longest = arguments.max_model_len or 1000
        self.queue = []
        self.default_sampling_params = None
        print("to be ignored", flush=True)
        if self.fake == "die":
            sys.exit("no memory for the model")
        if self.fake == "hang":
            time.sleep(600)

    @classmethod
    def from_engine_args(cls, arguments):
        return cls(arguments)

    def get_default_sampling_params(self):
        self.default_sampling_params = {"top_k": 20}

    def enqueue_chat(self, messages, sampling_params, use_tqdm=True):
        (conversation,), (sampling,) = messages, sampling_params
        print("{not for you}", flush=True)
        text = json.dumps(conversation)
        if len(text) > self.longest:
            raise ValueError(f"This model's maximum context length is {self.longest} tokens")
        if "refuse me" in text:
            raise TypeError("tiny is not a multimodal model")
        self.queue.append((conversation, sampling))

    def wait_for_completion(self, use_tqdm=True):
        queue, self.queue = self.queue, []
        if self.fake == "crash" and any("crash" in json.dumps(conversation) for conversation, _ in queue):
            print("engine core died", file=sys.stderr, flush=True)
            os._exit(7)
        if any("slowly" in json.dumps(conversation) for conversation, _ in queue):
            time.sleep(0.5)
        said = []
        for conversation, sampling in queue:
            shape = sampling.structured_outputs and dataclasses.asdict(sampling.structured_outputs)
            told = {
                "messages": conversation, "sampling": [sampling.temperature, sampling.top_p, sampling.max_tokens],
                "seed": sampling.seed, "top_k": sampling.top_k, "shape": shape, "batch": len(queue), "pid": os.getpid(),
                "presence_penalty": sampling.presence_penalty, "stops": len(sampling.stop or ()),
            }
            reason = "length" if sampling.max_tokens == 1 else "stop"
            said.append(Output([1, 2, 3], [Said(json.dumps(told), [4, 5], reason)]))
        return said
'''
ARGUMENTS = """
import argparse


class EngineArgs:
    @staticmethod
    def add_cli_args(parser):
        parser.add_argument("--model")
        parser.add_argument("--fake", default="")
        parser.add_argument("--tensor-parallel-size", type=int)
        parser.add_argument("--max-model-len", type=int)
        return parser

    @staticmethod
    def from_cli_args(arguments):
        return arguments
"""
SAMPLING = """
import dataclasses


@dataclasses.dataclass
class StructuredOutputsParams:
    json: object = None
    json_object: object = None
"""
FILES = {
    "__init__.py": ENGINE,
    "entrypoints/__init__.py": "",
    "entrypoints/openai/__init__.py": "",
    "entrypoints/openai/api_server.py": SERVER,
    "engine/__init__.py": "",
    "engine/arg_utils.py": ARGUMENTS,
    "sampling_params.py": SAMPLING,
    "utils/__init__.py": "",
    "utils/argparse_utils.py": "from argparse import ArgumentParser as FlexibleArgumentParser\n",
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
