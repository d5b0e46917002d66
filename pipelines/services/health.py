"""Whether the models of a stage reply with something that can be used.

A broken chat template, a wrong reasoning parser or a cut context make every reply empty or unreadable. Rows that such
replies decide look like refusals, so a stage is stopped before it is sealed: it is the service that failed until the
opposite is shown. Readers of replies note each one to the health that the runner opened.
"""

from contextlib import AbstractContextManager
from contextvars import ContextVar
from dataclasses import dataclass, field

from pipelines.errors import UnusableReplies
from pipelines.services.protocols import ChatReply
from pipelines.services.traffic import holding

QUOTED = 3
"""Unusable replies that a message quotes, and that a stage must have at its end to be refused."""
LEAST = 20
"""Requests of one kind before a stage stops at once; at its end :data:`QUOTED` unusable ones are enough."""
_SHOWN = 200
"""Characters shown of each."""


@dataclass(slots=True)
class ReplyCounts:
    """The replies of one model to one kind of request."""

    read: int = 0
    """Requests, with their repairs, whose replies were read."""
    unusable: int = 0
    keys: list[str] = field(default_factory=list)
    """Under which the unusable replies are recorded."""
    shown: list[str] = field(default_factory=list)


@dataclass(slots=True)
class Health:
    """The replies that one stage has read in this run, by model and kind of request."""

    stage: str
    most: float = 0.5
    """Share of the requests of one kind that may have no usable reply."""
    _counts: dict[tuple[str, str], ReplyCounts] = field(default_factory=dict)

    def note(self, task: str, model: str, unusable: tuple[ChatReply, ...], error: str) -> None:
        """Note a request, with all its replies where none could be used, or the error that it ended with.

        Raises:
            UnusableReplies: if too many of at least :data:`LEAST` requests had none.
        """
        counts = self._counts.setdefault((task, model), ReplyCounts())
        counts.read += 1
        if not (unusable or error):
            return
        counts.unusable += 1
        counts.keys += [reply.key for reply in unusable if reply.key]
        counts.shown = [*counts.shown, error[:_SHOWN] or _show(unusable[-1])][-QUOTED:]
        self._check(task, model, LEAST)

    def merge(self, other: "Health") -> None:
        """Add what another process has read for the stage."""
        for kind, counts in other._counts.items():
            own = self._counts.setdefault(kind, ReplyCounts())
            own.read, own.unusable = own.read + counts.read, own.unusable + counts.unusable
            own.keys += counts.keys
            own.shown = [*own.shown, *counts.shown][-QUOTED:]

    def list_unusable(self) -> list[str]:
        """Return the keys under which unusable replies are recorded."""
        return [key for counts in self._counts.values() for key in counts.keys]

    def check(self, is_over: bool = True) -> None:
        """Check, at the end of the stage where :data:`QUOTED` unusable replies are enough, or before it.

        Raises:
            UnusableReplies: if too many requests of a kind had no usable reply.
        """
        for task, model in self._counts:
            self._check(task, model, QUOTED if is_over else LEAST)

    def _check(self, task: str, model: str, least: int) -> None:
        counts = self._counts[task, model]
        if counts.read < least or counts.unusable < QUOTED or counts.unusable <= self.most * counts.read:
            return
        raise UnusableReplies(
            f"{self.stage}: {counts.unusable:,} of {counts.read:,} requests `{task}` to {model} had no usable reply "
            f"(runtime.unusable is {self.most:g}); the last ones: {'; '.join(counts.shown)}. Look at the server's "
            "chat template, reasoning parser and context length, and at max_tokens; `synth doctor` tries each role. "
            "The same command then asks these requests again"
        )


def _show(reply: ChatReply) -> str:
    said = " ".join(reply.text.split()).encode("utf-8", "replace").decode()
    told = f'"{said[:_SHOWN]}"' if said else "nothing"
    if not said and reply.reasoning:
        told = f"nothing but {len(reply.reasoning):,} characters of reasoning"
    return told if reply.ended == "whole" else f"{told} ({reply.ended})"


_HEALTH: ContextVar[Health | None] = ContextVar("open_health", default=None)


def open_health(stage: str, most: float) -> AbstractContextManager[Health]:
    """Watch the replies that this task, and the tasks it starts, read inside the block."""
    return holding(_HEALTH, Health(stage, most))


def note_request(task: str, model: str, *unusable: ChatReply, error: str = "") -> None:
    """Note one request to the open health, if there is one.

    Args:
        task: kind of request: the prompt's name.
        model: name of the model.
        unusable: its replies, where none could be used.
        error: with which it failed, though the service answers others.

    Raises:
        UnusableReplies: as :meth:`Health.note`.
    """
    if (health := _HEALTH.get()) is not None:
        health.note(task, model, unusable, error)
