"""What can be told of a transcript from its own text and its question's proof."""

import json
import re
from collections.abc import Iterator, Sequence

from pipelines.agent.cascade import ASKED_OF_PATHS
from pipelines.agent.dialects import Dialect, find_dialect
from pipelines.agent.observations import ANSWER, ERRORS, WARNINGS, list_forms
from pipelines.agent.transcript import BadTurn, Turn, parse_turn, read_observation
from pipelines.checks.rollouts import fold_words, locate_form, locate_value
from pipelines.errors import ConfigError, GateNotMet
from pipelines.graph.answers import compare_answers
from pipelines.release.rows import (
    PLACEHOLDER,
    ProofRow,
    SftRow,
    check_messages,
    shorten,
    show_pictures,
    strip_page_text,
)
from schemas.datasets import Support
from schemas.proofs import Answer

PICTURES = re.compile(rf"\A(?:{PLACEHOLDER})+\n")
FAILED = re.compile(rf"\Aerror: (?:{'|'.join(ERRORS)})\n")
WARNING = re.compile(rf"\Awarning: (?:{'|'.join(WARNINGS)})\n")
"""First line of a tool's error or warning; a page may begin with the same word."""
WITHIN = re.compile(r"\w\w|\d[.,]\d")
"""Two characters, or three, that belong to one word or number."""
DAY = re.compile(r"\d{4}-\d{2}-\d{2}")
ACCEPTED = {"stop_reason": "answered", "verdict": "correct"}
"""What every released transcript has."""


def find_transcript_problems(proof: ProofRow, row: SftRow) -> Iterator[str]:
    """Yield the problems of a transcript: its form, tools, question, dates, loss flags, supports and answer."""
    try:
        check_messages(row.messages, len(row.images), "messages")
        dialect = find_dialect(row.dialect)
        if dialect.native:
            raise ConfigError(f"messages: {row.dialect} is not a text dialect")
        turns = [parse_turn(message.content, dialect) for message in row.messages if message.role == "assistant"]
    except (GateNotMet, BadTurn, ConfigError) as error:
        yield f"messages: {error}".replace("messages: messages: ", "messages: ")
        return
    users = [message.content for message in row.messages if message.role == "user"]
    roles = [message.role for message in row.messages]
    if roles[:1] != ["system"] or "system" in roles[1:]:
        yield "messages: there must be one system message, the first"
    if users[0] != show_pictures(int(proof.picture is not None), strip_page_text(proof.text)):
        yield f"messages: the user asks {shorten(users[0])}, not the proof's question"
    yield from _find_tool_problems(row, dialect, turns)
    yield from _find_date_problems(proof, row)
    shown = [read_shown(user, dialect) for user in users[1:]]
    yield from _find_turn_problems(turns, shown)
    yield from _find_flag_problems(row, shown)
    yield from _find_support_problems(proof, row, shown, turns[-1].answer)
    if set(row.left_out) - set(() if proof.proof.nodes else ASKED_OF_PATHS):
        spared = "nothing" if proof.proof.nodes else ", ".join(ASKED_OF_PATHS)
        yield f"left_out: {shorten(row.left_out)} were not checked; the question is spared {spared}"
    if compare_answers(turns[-1].answer, proof.answer) != "correct":
        yield f"messages: the last answer is {turns[-1].answer!r}, the proof's is {proof.answer.surface!r}"


def _find_turn_problems(turns: Sequence[Turn], shown: Sequence[str | None]) -> Iterator[str]:
    for number, turn in enumerate(turns, 1):
        last = number == len(turns)
        if last is bool(turn.tool):
            yield f"messages: turn {number} of {len(turns)} {'makes a call' if last else 'answers'}"
    for number, text in enumerate(shown, 1):
        if text is None or strip_page_text(text) != text:
            yield f"messages: the observation after turn {number} is not a tool response"


def _find_tool_problems(row: SftRow, dialect: Dialect, turns: Sequence[Turn]) -> Iterator[str]:
    tools = read_tool_names(row.tools)
    strange = [turn.tool for turn in turns if turn.tool and dialect.name_tool(turn.tool) not in tools]
    if strange:
        yield f"messages: a turn calls {strange[0]!r}; the row's tools are {sorted(tools)}"
    known = tools if dialect.forms is None else {form.name for form in dialect.forms}
    if tools - known:
        yield f"tools: the row has {sorted(tools - known)}, which its dialect {dialect.name} has not"


def _find_date_problems(proof: ProofRow, row: SftRow) -> Iterator[str]:
    snapshot = proof.proof.snapshot if proof.trace is None else proof.trace.snapshot
    if snapshot and row.snapshot not in ("", snapshot):
        yield f"snapshot: the row's tools searched {shorten(row.snapshot)}, its proof is of {snapshot}"
    if row.day and DAY.fullmatch(row.day) is None:
        yield f"day: {shorten(row.day)} is not a date such as 2026-11-22"


def read_tool_names(tools: str) -> frozenset[str]:
    """Return the names of the functions in a JSON array of their schemas; empty for another text."""
    try:
        specs = json.loads(tools)
        return frozenset(str(spec["function"]["name"]) for spec in specs)
    except (ValueError, TypeError, KeyError):
        return frozenset()


def read_shown(user: str, dialect: Dialect) -> str | None:
    """Return the tool's response in a user message; None without one."""
    text = PICTURES.sub("", user)
    told = read_observation(text, dialect)
    return told if text == f"<{dialect.response}>\n{told}\n</{dialect.response}>" else None


def _find_flag_problems(row: SftRow, shown: Sequence[str | None]) -> Iterator[str]:
    """A call that failed is not trained on; everything else is."""
    wanted = (*(FAILED.match(text or "") is None for text in shown), True)
    if row.loss != wanted:
        yield f"loss: the row says {shorten(row.loss)}, its observations {shorten(wanted)}"


def _find_support_problems(proof: ProofRow, row: SftRow, shown: Sequence[str | None], given: str) -> Iterator[str]:
    """Check that each support points at what it names, in any writing, and one at the answer."""
    answer = proof.answer
    bridges = [node.title for node in proof.proof.nodes if node.role == "bridge"]
    forms = {title: list_forms(title) for title in ([proof.trace.bridge] if proof.trace is not None else bridges)}
    forms[ANSWER] = tuple(form for form in (given, answer.surface, answer.value, *answer.aliases) if form.strip())
    for support in row.supports:
        told = shown[support.step] if 0 <= support.step < len(shown) else None
        text = "" if FAILED.match(told or "") else WARNING.sub("", told or "")
        if support.what not in forms:
            yield f"supports: {support.what!r} is neither a bridge nor the answer"
        elif not _points_at(text, support, forms[support.what], answer if support.what == ANSWER else None):
            stands = shorten(text[max(support.start, 0) : max(support.end, 0)])
            yield f"supports: {support.what!r} is not the text there: {stands}"
    if all(support.what != ANSWER for support in row.supports):
        yield "supports: none for the answer"


def _points_at(text: str, support: Support, forms: Sequence[str], answer: Answer | None) -> bool:
    """Return whether a span of a text is one of the forms, in whole words, or the answer's value."""
    start, end = support.start, support.end
    if not 0 <= start < end <= len(text):
        return False
    part = text[start:end]
    words, whole = fold_words(part), (0, len(part))
    if any(locate_form(part, words, (form,)) == whole for form in forms):
        return not any(_divides(text, place) for place in (start, end))
    return answer is not None and (locate_value(part, answer) == whole or locate_value(text, answer) == (start, end))


def _divides(text: str, place: int) -> bool:
    """Return whether a place in a text is inside a word or a number."""
    spans = ((place - 1, place + 1), (place - 1, place + 2), (place - 2, place + 1))
    # A span beyond the end of the text would be compared only in part.
    inside = ((start, end) for start, end in spans if start >= 0 and end <= len(text))
    return any(WITHIN.fullmatch(text, start, end) is not None for start, end in inside)
