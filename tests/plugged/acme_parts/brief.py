"""A stage that keeps brief questions."""

from dataclasses import dataclass
from typing import ClassVar

from pipelines.api import PluginReason, Record, Rejection


@dataclass(frozen=True)
class Brief:
    """Refuses questions of more than so many words."""

    words: int = 60
    version: int = 1
    reasons: ClassVar[dict[str, str]] = {"too-many-words": "the question is longer than a reader's breath"}

    def fingerprint(self) -> str:
        return str(self.words)

    def prompts(self) -> dict[str, str]:
        return {}

    def models(self) -> tuple:
        return ()

    async def __call__(self, record: Record) -> tuple[Record, ...] | Rejection:
        count = len(record.text.split())
        if count > self.words:
            reason = PluginReason("brief:too-many-words")
            return Rejection(record_id=record.record_id, reason=reason, detail=f"{count} words")
        return (record,)
