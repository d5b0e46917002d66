"""Models that say what a test tells them, and what they were asked."""

from collections.abc import Callable
from dataclasses import dataclass, field

from pydantic import BaseModel

from pipelines.services.prompting import RoleClient, load_prompt
from pipelines.services.protocols import ChatReply, ChatRequest


@dataclass
class FakeModel:
    """Answers each request with ``reply(inputs)``: a model's JSON, or text as it is."""

    reply: Callable[[BaseModel], BaseModel | str]
    name: str = "fake"
    identity: str = "fake:1"
    reads_inputs: bool = True
    asked: list[ChatRequest] = field(default_factory=list)

    async def chat(self, request: ChatRequest) -> ChatReply:
        self.asked.append(request)
        said = self.reply(request.inputs)
        return ChatReply(said if isinstance(said, str) else said.model_dump_json(), 1, 1)


def make_asking(prompt: str, reply: Callable[[BaseModel], BaseModel | str], **changes) -> RoleClient:
    return RoleClient(FakeModel(reply, **changes), load_prompt(prompt))
