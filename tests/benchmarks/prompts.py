"""Counts what the recipe opensearch-vl asks models: requests by stage, letters and pictures of each kind of request.

The world is generated and its players are scripted; they are sent the prompts that models would be sent. How many
requests a row takes depends on how good the players are, and a prompt's length on the wiki's articles, short ones here.
"""

from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from unittest.mock import patch

from pipelines.cli.commands import load_config, run_recipe
from pipelines.services.clients.recorded import RecordedChat
from pipelines.services.protocols import ChatReply, ChatRequest
from pipelines.toy.publishing import write_world
from pipelines.toy.world import WorldConfig
from tests.benchmarks.measured import Measured

ENTITIES = 500


@dataclass
class Asked:
    """What was asked, by task."""

    requests: Counter[str] = field(default_factory=Counter)
    letters: Counter[str] = field(default_factory=Counter)
    said: Counter[str] = field(default_factory=Counter)
    pictures: Counter[str] = field(default_factory=Counter)

    def add(self, request: ChatRequest, reply: ChatReply) -> None:
        """Count a request."""
        self.requests[request.task] += 1
        self.letters[request.task] += sum(len(message.text) for message in request.messages) + len(request.tools)
        self.said[request.task] += len(reply.text)
        self.pictures[request.task] += sum(len(message.images) for message in request.messages)

    def describe(self, task: str) -> Measured:
        """Return a task's row."""
        count = self.requests[task]
        shown = f"{self.letters[task] / count:,.0f} letters in, {self.said[task] / count:,.0f} out"
        return Measured(f"`{task}`: requests", f"{count:,}; {shown}, {self.pictures[task] / count:.2f} pictures")


def measure(scratch: Path) -> list[Measured]:
    """Run the recipe with scripted players."""
    write_world(scratch / "world", WorldConfig(entities=ENTITIES))
    config = load_config("opensearch-vl", None, ["models=scripted", f"corpus.world={scratch / 'world'}"])
    asked, chat = Asked(), RecordedChat.chat

    async def count(self: RecordedChat, request: ChatRequest) -> ChatReply:
        reply = await chat(self, request)
        asked.add(request, reply)
        return reply

    with patch.object(RecordedChat, "chat", count):
        document = run_recipe(config, scratch / "workspace", "", ())
    told = document.as_dict()
    released = [Measured(f"released: {each['dataset']}", f"{each['rows']:,}") for each in told["releases"]]
    return [*map(_describe_stage, told["stages"]), *released, *map(asked.describe, sorted(asked.requests))]


def _describe_stage(stage: dict[str, Any]) -> Measured:
    """Return a stage's row; requests are those to tools, too, and those that were answered from the recording."""
    numbers = [stage["rows_in"], stage["kept"], stage["rows_out"], stage["calls"] + stage["cached_calls"]]
    return Measured(f"{stage['stage']}: rows in, kept, rows out, requests", ", ".join(f"{n:,}" for n in numbers))
