"""Conversations in another protocol than the one they were held in: tags, tool names, tools and the system message."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from pipelines.agent.dialects import Dialect, find_dialect, render_system, translate_tools
from pipelines.agent.toolforms import UnsayableTurn
from pipelines.agent.transcript import BadTurn, parse_turn, render_turn
from pipelines.errors import ConfigError
from pipelines.release.exporters.conversations import (
    RESPONSE,
    Conversation,
    Exchange,
    Said,
    Shown,
    read_conversations,
    read_said,
)
from pipelines.release.transcript import strip_tokens

CALLS = 30
"""Tool calls that the system message allows where the dialect names no limit."""


def read_in_dialect(release: Path, name: str) -> Iterator[Conversation]:
    """Yield the rows of an SFT release in a dialect; with an empty name, as they are.

    Raises:
        ConfigError: if there is no such dialect, or it has no words for a turn; and as :func:`read_conversations`.
        GateNotMet: as :func:`read_conversations`.
    """
    dialect = find_dialect(name) if name else None
    for conversation in read_conversations(release):
        yield rewrite_conversation(conversation, dialect) if dialect else conversation


def rewrite_conversation(conversation: Conversation, dialect: Dialect) -> Conversation:
    """Return a conversation in another dialect; a turn that was none stays as it is.

    Raises:
        ConfigError: if the dialect has no words for one of its turns.
    """
    if dialect is conversation.dialect:
        return conversation
    try:
        exchanges = tuple(
            Exchange(_rewrite_shown(each.shown, dialect), _rewrite_said(each.said, conversation.dialect, dialect))
            for each in conversation.exchanges
        )
    except UnsayableTurn as error:
        raise ConfigError(f"row {conversation.row.id}: {error}; leave the dialect as it is, or take another") from error
    calls = max(dialect.calls or CALLS, len(exchanges) - 1)
    system = strip_tokens(render_system(dialect, conversation.row.tools, calls))
    tools = translate_tools(conversation.row.tools, dialect)
    return replace(conversation, system=system, dialect=dialect, tools=tools, exchanges=exchanges)


def _rewrite_shown(shown: Shown, dialect: Dialect) -> Shown:
    if shown.told is None:
        return shown
    tag = RESPONSE if dialect.native else dialect.response
    return replace(shown, text=f"<{tag}>\n{shown.told}\n</{tag}>")


def _rewrite_said(said: Said, source: Dialect, dialect: Dialect) -> Said:
    try:
        turn = parse_turn(said.text, source)
    except BadTurn:
        return said
    return read_said(render_turn(turn, dialect), said.loss, dialect)
