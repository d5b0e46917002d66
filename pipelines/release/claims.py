"""What a released row claims, compared with its proof, and what its proof claims, compared with the corpus.

A row is made again from its proof row by the functions that publishing uses, so a column that is not compared does not
exist. What no proof can decide, a transcript, is held to the rules it was accepted by.
"""

import hashlib
import json
import re
from collections.abc import Iterator, Sequence
from functools import partial

from pipelines.agent.transcript import BadTurn, Turn, parse_turn
from pipelines.checks.descriptors import check_spoken
from pipelines.checks.injections import list_hidden_checks
from pipelines.checks.proofs import Claim, find_problems
from pipelines.checks.verdicts import Check, run_checks
from pipelines.checks.wording import check_named
from pipelines.errors import GateNotMet, RecordFailed
from pipelines.graph.ground import Ground
from pipelines.graph.proofs import make_question_id
from pipelines.graph.query import locate_nodes
from pipelines.pictures import probe_picture
from pipelines.release.picture_claims import find_picture_problems
from pipelines.release.rows import (
    BridgeRow,
    EmbeddedImage,
    ProofRow,
    ReleaseRow,
    RlRow,
    SftRow,
    Transcript,
    make_bridge_row,
    make_rl_row,
    make_sft_row,
)
from pipelines.release.transcript import PLACEHOLDER, check_messages, show_pictures, strip_page_text
from pipelines.scoring.compare import compare_answers
from schemas.groundings import Picture

OBSERVATION = re.compile(rf"(?:(?:{PLACEHOLDER})+\n)?<tool_response>\n(?P<text>.*)\n</tool_response>", re.DOTALL)
SHOWN = 80
"""Characters of a value that a problem quotes."""


def find_question_problems(ground: Ground, proof: ProofRow) -> list[str]:
    """Return what does not hold of a question: its query, its text, its picture, its id; empty when it verifies."""
    corpus = ground.corpus
    problems = find_problems(ground, Claim(proof.text, proof.answer, proof.proof))
    if problems:
        return problems
    (anchor,) = locate_nodes(corpus, proof.proof.nodes[:1])
    page = corpus.page(anchor)
    if proof.domain != page.domain:
        problems.append(f"domain: {page.title} is of {page.domain}, the proof says {proof.domain}")
    problems += find_picture_problems(ground, anchor, proof)
    problems += _find_wording_problems(ground, proof)
    sha256 = proof.picture.sha256 if proof.picture else ""
    wanted = make_question_id(proof.text, sha256, proof.answer, proof.proof)
    if proof.record_id != wanted:
        problems.append(f"id: the question's id is {wanted}, the proof says {proof.record_id}")
    return problems


def _find_wording_problems(ground: Ground, row: ProofRow) -> Iterator[str]:
    """Hold the earlier wordings to what they were: the canonical one names the path, the fuzzy one its anchor alone."""
    proof = row.proof
    # Injection starts with a question about its answer node alone, and hides it in the first round.
    grown = any(hop.backward for hop in proof.hops)
    named = proof.nodes[-1:] if grown else proof.nodes[:-1]
    earlier: dict[str, tuple[Check, ...]] = {
        "canonical": tuple(partial(check_named, row.canonical, node.title) for node in named),
        "fuzzy": (
            partial(check_named, row.fuzzy, proof.nodes[0].title),
            *list_hidden_checks(ground.corpus, row.fuzzy, proof, row.answer),
            partial(check_spoken, row.fuzzy, proof.descriptors),
        ),
    }
    for name, checks in earlier.items():
        if not getattr(row, name).rstrip().endswith("?"):
            yield f"{name}: it is no question"
        for result in run_checks(checks, audit=True):
            yield f"{name}: {result.code}: {result.detail}"


def find_row_problems(proof: ProofRow, row: ReleaseRow, index: int) -> list[str]:
    """Return what does not hold of a row.

    Args:
        proof: the row of the question's proof, which verifies.
        row: the row as it was read.
        index: its place in its split.
    """
    images = _list_images(row)
    problems = list(_find_image_problems(proof.picture, images))
    match row:
        case SftRow():
            made: ReleaseRow = make_sft_row(
                proof, Transcript(row.id, images, row.messages, row.tools, "answered", "correct")
            )
            problems += _find_transcript_problems(proof, row)
        case RlRow():
            made = make_rl_row(proof, images, index)
        case BridgeRow():
            made = make_bridge_row(proof, images)
    for name in type(row).model_fields:
        given, right = getattr(row, name), getattr(made, name)
        if given != right:
            problems.append(f"{name}: the row says {_shorten(given)}, its proof {_shorten(right)}")
    return problems


def _shorten(value: object) -> str:
    text = repr(value)
    return text if len(text) <= SHOWN else f"{text[:SHOWN]}..."


def _list_images(row: ReleaseRow) -> tuple[EmbeddedImage, ...]:
    if isinstance(row, BridgeRow):
        return () if row.image is None else (row.image,)
    return row.images


def _find_image_problems(picture: Picture | None, images: Sequence[EmbeddedImage]) -> Iterator[str]:
    """Hash and decode every embedded picture again; the first one must be the anchor's."""
    first = hashlib.sha256(images[0].bytes).hexdigest() if images else ""
    if first != (picture.sha256 if picture else ""):
        yield f"images: the first picture is {first or 'missing'}, not the anchor's"
    for number, image in enumerate(images):
        digest = hashlib.sha256(image.bytes).hexdigest()
        try:
            probe = probe_picture(image.bytes)
        except RecordFailed as error:
            yield f"images: picture {number}: {error}"
            continue
        if image.path != f"{digest}.{probe.extension}":
            yield f"images: picture {image.path} has sha256 {digest} and is {probe.extension}"
        seen = (probe.extension, probe.width, probe.height, probe.phash)
        if not number and picture and seen != (picture.extension, picture.width, picture.height, picture.phash):
            yield f"images: the first picture is {seen}, the proof says otherwise"


def _find_transcript_problems(proof: ProofRow, row: SftRow) -> Iterator[str]:
    """Hold a transcript to what it was accepted by: form, known tools, the question asked, the right answer given."""
    try:
        check_messages(row.messages, len(row.images), "messages")
        turns = [parse_turn(message.content) for message in row.messages if message.role == "assistant"]
    except (GateNotMet, BadTurn) as error:
        yield f"messages: {error}".replace("messages: messages: ", "messages: ")
        return
    users = [message.content for message in row.messages if message.role == "user"]
    roles = [message.role for message in row.messages]
    if roles[:1] != ["system"] or "system" in roles[1:]:
        yield "messages: there must be one system message, the first"
    if users[0] != show_pictures(int(proof.picture is not None), strip_page_text(proof.text)):
        yield f"messages: the user asks {_shorten(users[0])}, not the proof's question"
    yield from _find_turn_problems(turns, users, _read_tool_names(row.tools))
    if compare_answers(turns[-1].answer, proof.answer) != "correct":
        yield f"messages: the last answer is {turns[-1].answer!r}, the proof's is {proof.answer.surface!r}"


def _find_turn_problems(turns: Sequence[Turn], users: Sequence[str], tools: frozenset[str]) -> Iterator[str]:
    for number, turn in enumerate(turns, 1):
        last = number == len(turns)
        if last is bool(turn.tool):
            yield f"messages: turn {number} of {len(turns)} {'makes a call' if last else 'answers'}"
        elif turn.tool and turn.tool not in tools:
            yield f"messages: turn {number} calls {turn.tool!r}; the row's tools are {sorted(tools)}"
    for number, user in enumerate(users[1:], 1):
        told = OBSERVATION.fullmatch(user)
        if told is None or strip_page_text(told["text"]) != told["text"]:
            yield f"messages: the observation after turn {number} is no tool's response"


def _read_tool_names(tools: str) -> frozenset[str]:
    """Return the names of the functions in a JSON array of their schemas; none when it is something else."""
    try:
        specs = json.loads(tools)
        return frozenset(str(spec["function"]["name"]) for spec in specs)
    except (ValueError, TypeError, KeyError):
        return frozenset()
