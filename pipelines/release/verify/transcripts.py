"""What follows of a transcript from its own text, its question's proof, and the settings that a manifest tells."""

import json
import re
from collections.abc import Iterator, Sequence

from pipelines.agent.cascade import ASKED_OF_PATHS, examine_rollout
from pipelines.agent.dialects import (
    SYNTH,
    Dialect,
    find_dialect,
    list_specs,
    render_system,
    render_tools,
    translate_tools,
)
from pipelines.agent.observations import ERRORS, WARNINGS
from pipelines.agent.transcript import BadTurn, Turn, parse_turn, read_observation
from pipelines.config.disclosure import Told, read_sections
from pipelines.config.settings import TrajectoriesConfig
from pipelines.errors import ConfigError, GateNotMet
from pipelines.graph.answers import compare_answers
from pipelines.ids import digest_value, make_record_id
from pipelines.release.manifest import SERVED, ReleaseManifest
from pipelines.release.rows import (
    PLACEHOLDER,
    ProofRow,
    SftRow,
    check_messages,
    find_text_dialect,
    shorten,
    show_pictures,
    strip_page_text,
    strip_tokens,
)
from schemas.datasets import Trajectory

PICTURES = re.compile(rf"\A(?:{PLACEHOLDER})+\n")
FAILED = re.compile(rf"\Aerror: (?:{'|'.join(ERRORS)})\n")
WARNING = re.compile(rf"\Awarning: (?:{'|'.join(WARNINGS)})\n")
"""First line of a tool's error or warning; a page may begin with the same word."""
DAY = re.compile(r"\d{4}-\d{2}-\d{2}")
ACCEPTED = {"stop_reason": "answered", "verdict": "correct"}
"""What every released transcript has."""


def find_transcript_problems(proof: ProofRow, row: SftRow) -> Iterator[str]:
    """Yield the problems of a transcript: its form, tools, question, dates, loss flags and answer."""
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
    yield from _find_turn_problems(row, turns, shown)
    if set(row.left_out) - set(() if proof.proof.nodes else ASKED_OF_PATHS):
        spared = "nothing" if proof.proof.nodes else ", ".join(ASKED_OF_PATHS)
        yield f"left_out: {shorten(row.left_out)} were not checked; the question is spared {spared}"
    if compare_answers(turns[-1].answer, proof.answer) != "correct":
        yield f"messages: the last answer is {turns[-1].answer!r}, the proof's is {proof.answer.surface!r}"


def _find_turn_problems(row: SftRow, turns: Sequence[Turn], shown: Sequence[str | None]) -> Iterator[str]:
    for number, turn in enumerate(turns, 1):
        last = number == len(turns)
        if last is bool(turn.tool):
            yield f"messages: turn {number} of {len(turns)} {'makes a call' if last else 'answers'}"
    for number, text in enumerate(shown, 1):
        if text is None or strip_page_text(text) != text:
            yield f"messages: the observation after turn {number} is not a tool response"
    # A call that failed is not trained on; everything else is.
    wanted = (*(FAILED.match(text or "") is None for text in shown), True)
    if row.loss != wanted:
        yield f"loss: the row says {shorten(row.loss)}, its observations {shorten(wanted)}"


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


EMPTY = digest_value("")
MOST_ATTEMPTS = 1000


def find_protocol_problems(manifest: ReleaseManifest, system: str, tools: str, dialect: str) -> Iterator[str]:
    """Yield what the system message, the tools and the dialect of all transcripts say otherwise than the settings."""
    told = manifest.told
    name, calls = told.get("rollouts.dialect"), told.get("rollouts.max_calls")
    if not isinstance(name, str) or not isinstance(calls, int):
        return
    spoken = find_dialect(name)
    if dialect != find_text_dialect(name).name:
        yield f"dialect: the rows are in {dialect}, the settings say {name}"
        return
    layout = told.get("tools.layout") != ""
    offers = [render_tools(list_specs(opencv, layout)) for opencv in (True, False)]
    fitting = [offer for offer in offers if translate_tools(offer, spoken) == tools]
    if not fitting:
        yield f"tools: they are not those that {name} offers: {shorten(tools)}"
        return
    ours = all(manifest.untold.get(key, EMPTY) == EMPTY for key in ("prompts", "plugins.prompts"))
    if not ours and not spoken.native:
        return
    wanted = strip_tokens(render_system(SYNTH if spoken.native else spoken, fitting[0], calls))
    if system != wanted:
        yield f"messages: the system message is {shorten(system)}, the prompt's is {shorten(wanted)}"


def find_trajectory_problems(manifest: ReleaseManifest, trajectory: Trajectory, whole: bool) -> Iterator[str]:
    """Yield why a transcript could not have been accepted under the settings, and what it says that differs.

    The observations were made again; ``whole`` says whether all of them were.
    """
    told = manifest.told
    yield from _find_id_problems(manifest, trajectory)
    if told.get("tools.family") == "local":
        yield from _find_stamp_problems(manifest, trajectory)
    if not whole or "trajectories.checks" not in told:
        return
    rules = TrajectoriesConfig.model_validate(read_sections(told).get("trajectories", {}), strict=False)
    counted = told.get("rollouts.dialect") == trajectory.dialect
    if not counted:
        rules = rules.model_copy(update={"max_tokens": 0})
    result = examine_rollout(trajectory, None, rules)
    yield from (f"messages: {fault.reason}: {fault.detail}" for fault in result.faults)
    if not result.faults and result.supports != trajectory.supports:
        yield f"supports: the row says {shorten(trajectory.supports)}, its observations {shorten(result.supports)}"
    if counted and result.tokens != trajectory.tokens:
        yield f"tokens: the row says {trajectory.tokens}, its messages take {result.tokens}"


def _find_stamp_problems(manifest: ReleaseManifest, trajectory: Trajectory) -> Iterator[str]:
    if trajectory.snapshot != manifest.snapshot:
        yield f"snapshot: the row says {shorten(trajectory.snapshot)}, its tools searched {manifest.snapshot}"
    if trajectory.day and not any(model.revision.startswith(SERVED) for model in manifest.models):
        yield f"day: the row says {shorten(trajectory.day)}, no reply was of a model behind a server"


def _find_id_problems(manifest: ReleaseManifest, trajectory: Trajectory) -> Iterator[str]:
    teacher = next((model for model in manifest.models if model.role == "teacher"), None)
    attempts: Told = manifest.told.get("rollouts.attempts")
    dialect = find_dialect(str(manifest.told.get("rollouts.dialect", SYNTH.name)))
    prompt = manifest.prompts.get(dialect.load_prompt().label)
    if teacher is None or prompt is None or not isinstance(attempts, int):
        return
    made = (
        make_record_id("rollout", [trajectory.parent_id, attempt, teacher.revision, prompt])
        for attempt in range(min(attempts, MOST_ATTEMPTS))
    )
    if trajectory.record_id not in made:
        yield f"id: {trajectory.record_id} is no attempt of {teacher.name} at {trajectory.parent_id}"
