"""How parts are worded for trainers: thoughts, the system message, texts that a template would fill in.

Chat templates of the Qwen family hold ``<think>``, one newline, the thought, ``</think>`` between newlines, and one
empty line; LLaMA-Factory 0.9.5 knows a thought by exactly that.
"""

import re

from pipelines.release.exporters.conversations import Conversation, Said
from pipelines.release.exporters.shapes import ExportOptions
from pipelines.release.transcript import PLACEHOLDER

LISTED = "(listed at the end of this message)"
"""Stands in the system message for the tools' schemas where a reader adds them from a column of their own."""


def write_thought(said: Said) -> str:
    """Return a turn's thought as templates write it; empty where the turn has none."""
    return f"<think>\n{said.thought}\n</think>\n\n" if said.thought else ""


def write_native(said: Said) -> str:
    """Return a call, or what follows a thought, after the thought as templates write it."""
    return write_thought(said) + (said.call or said.rest)


def show_images(count: int, text: str) -> str:
    """Return a text with its placeholders before it."""
    return f"{PLACEHOLDER * count}\n{text}" if count else text


def leave_tools_out(conversation: Conversation, options: ExportOptions) -> tuple[str, str]:
    """Return the system message and the tools' column, so that the schemas reach the model once.

    In native form they are moved from the message to the column; as text they stay in the message.
    """
    if options.calls == "text" or not conversation.native:
        return write_tools_in(conversation), ""
    return conversation.system.replace(conversation.tools, LISTED), conversation.tools


def write_tools_in(conversation: Conversation) -> str:
    """Return the system message with the tools' schemas in it, for readers that have no other place for them."""
    if not conversation.tools or conversation.tools in conversation.system:
        return conversation.system
    return f"{conversation.system}\n\nThe tools, as JSON schemas:\n{conversation.tools}".lstrip()


def defuse(text: str, names: tuple[str, ...]) -> str:
    """Put a space into ``{{name}}``, which a reader's template would fill in wherever it stands."""
    return re.sub(r"\{\{(?=(?:" + "|".join(names) + r")\}\})", "{ {", text)
