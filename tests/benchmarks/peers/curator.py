"""Bespoke Curator on the benchmark's requests. Run by a Python that has bespokelabs-curator; prints one JSON line.

``python curator.py ADDRESS ROWS IN_FLIGHT``: the same prompts and the same shape of reply as ours, no rate limit.
"""

import json
import os
import sys
import tempfile
import time

os.environ |= {"OPENAI_API_KEY": "none", "CURATOR_CACHE_DIR": tempfile.mkdtemp(), "TELEMETRY_ENABLED": "false"}
os.environ |= {"CURATOR_DISABLE_RICH_DISPLAY": "1", "HF_HUB_OFFLINE": "1", "LITELLM_LOCAL_MODEL_COST_MAP": "True"}

import tiktoken
from bespokelabs import curator
from datasets import Dataset
from pydantic import BaseModel


class _Words:
    """Stands in for an encoding that Curator would download."""

    def encode(self, text: str, **_: object) -> list[str]:
        return text.split()


tiktoken.get_encoding = lambda _: _Words()


class Answer(BaseModel):
    answer: str


class Answers(curator.LLM):
    response_format = Answer

    def prompt(self, row: dict) -> list[dict]:
        return [{"role": "system", "content": row["system"]}, {"role": "user", "content": row["user"]}]

    def parse(self, row: dict, reply: Answer) -> dict:
        return {"id": row["id"], "answer": reply.answer}


def main(address: str, rows: int, in_flight: int) -> None:
    """Ask for every row and say how long it took."""
    from prompts import make_prompts

    data = Dataset.from_list([{"id": n, "system": s, "user": u} for n, (s, u) in enumerate(make_prompts(rows))])
    limits = {"max_requests_per_minute": 10_000_000, "max_tokens_per_minute": 10_000_000_000}
    settings = {"base_url": address, "max_concurrent_requests": in_flight, "max_retries": 2, **limits}
    llm = Answers(model_name="mock", backend="openai", backend_params=settings, generation_params={"temperature": 0.0})
    started = time.monotonic()
    made = llm(data)
    spent = time.monotonic() - started
    made = getattr(made, "dataset", made)
    sys.stdout.write("\n" + json.dumps({"rows": len(made), "seconds": spent}) + "\n")


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
