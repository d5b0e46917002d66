"""Backends that know nothing."""

from dataclasses import dataclass

from pipelines.api import ChatReply, ChatRequest


@dataclass(frozen=True)
class Shrug:
    """A chat model that never knows."""

    said: str = "unknown"
    name: str = "shrug"
    reads_inputs: bool = False

    @property
    def identity(self) -> str:
        return f"shrug:{self.said}"

    async def chat(self, request: ChatRequest) -> ChatReply:
        return ChatReply(text=f"Answer: {self.said}", tokens_in=1, tokens_out=1)


@dataclass(frozen=True)
class Silence:
    """A text search that finds nothing."""

    identity: str = "silence"

    async def search_text(self, query: str, count: int) -> tuple:
        return ()
