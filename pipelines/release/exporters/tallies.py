"""What an export counts on its way, for the notes that say what a reader cannot be told."""

from dataclasses import dataclass

from pipelines.release.exporters.conversations import Conversation


@dataclass(slots=True)
class Tally:
    """Counts over the conversations of one export."""

    rows: int = 0
    masked: int = 0
    """Turns of the assistant that are not to be trained on."""
    silent: int = 0
    """Turns without a thought in think tags."""
    longest: int = 0
    """Tokens of the longest conversation, as the release counts them."""

    def add(self, conversation: Conversation) -> None:
        """Count one conversation."""
        self.rows += 1
        self.masked += conversation.masked
        self.silent += sum(not exchange.said.thought for exchange in conversation.exchanges)
        self.longest = max(self.longest, conversation.row.tokens)

    def explain_loss(self, why: str) -> list[str]:
        """Return a note on flags that the reader cannot honour, if there are any."""
        return [f"{self.masked} turns are trained on although the release says not to: {why}"] if self.masked else []

    def explain_silence(self, why: str) -> list[str]:
        """Return a note on turns without a thought, if there are any."""
        return [f"{self.silent} turns have no thought: {why}"] if self.silent else []

    def explain_length(self, what: str) -> list[str]:
        """Return a note on the length that a reader must be set to, if it is known."""
        if not self.longest:
            return []
        return [f"{what} must hold the longest conversation, {self.longest:,} tokens as the release counts them"]
