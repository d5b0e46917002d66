"""Conversations in another protocol than the one they were held in: tags, tool names, tools and the system message."""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path

from pipelines.agent.dialects import Dialect, find_dialect, render_system, translate_tools
from pipelines.agent.restating import restate_turn
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
SHOWN_REASONS = 3
"""Of what a dialect has no words for, the most frequent are told."""


def read_in_dialect(release: Path, name: str) -> Iterator[Conversation]:
    """Yield the rows of an SFT release in a dialect; with an empty name, as they are.

    Raises:
        ConfigError: if there is no such dialect, or it has no words for a turn of some rows, which are counted over the
            whole release; and as :func:`read_conversations`.
        GateNotMet: as :func:`read_conversations`.
    """
    dialect = find_dialect(name) if name else None
    rows, first, unsayable = 0, "", Counter[str]()
    for conversation in read_conversations(release):
        rows += 1
        try:
            rewritten = rewrite_conversation(conversation, dialect) if dialect else conversation
        except UnsayableTurn as error:
            unsayable[str(error)] += 1
            first = first or conversation.row.id
            continue
        if not unsayable:
            yield rewritten
    if unsayable:
        reasons = "; ".join(f"{count:,} as {reason}" for reason, count in unsayable.most_common(SHOWN_REASONS))
        raise ConfigError(
            f"export {release}: {unsayable.total():,} of {rows:,} rows cannot be said in {name}, first row {first}: "
            f"{reasons}; leave the dialect as it is, take another, or hold rollouts in it (rollouts.dialect)"
        )


def rewrite_conversation(conversation: Conversation, dialect: Dialect) -> Conversation:
    """Return a conversation in another dialect; a turn that was none stays as it is.

    Raises:
        UnsayableTurn: if the dialect has no words for one of its turns.
    """
    if dialect is conversation.dialect:
        return conversation
    sizes = _measure_pictures(conversation) if dialect.forms is not None else {}
    exchanges = tuple(
        Exchange(_rewrite_shown(each.shown, dialect), _rewrite_said(each.said, conversation.dialect, dialect, sizes))
        for each in conversation.exchanges
    )
    calls = max(dialect.calls or CALLS, len(exchanges) - 1)
    system = strip_tokens(render_system(dialect, conversation.row.tools, calls))
    tools = translate_tools(conversation.row.tools, dialect)
    return replace(conversation, system=system, dialect=dialect, tools=tools, exchanges=exchanges)


def _measure_pictures(conversation: Conversation) -> dict[str, tuple[int, int]]:
    """Return the pictures' sizes by name; a picture's number is its place in reading order."""
    return {f"img_{number}": each.measure() for number, each in enumerate(conversation.pictures, 1)}


def _rewrite_shown(shown: Shown, dialect: Dialect) -> Shown:
    if shown.told is None:
        return shown
    tag = RESPONSE if dialect.native else dialect.response
    return replace(shown, text=f"<{tag}>\n{shown.told}\n</{tag}>")


def _rewrite_said(said: Said, source: Dialect, dialect: Dialect, sizes: Mapping[str, tuple[int, int]]) -> Said:
    try:
        turn = parse_turn(said.text, source)
    except BadTurn:
        return said
    return read_said(render_turn(restate_turn(turn, dialect, sizes), dialect), said.loss, dialect)
