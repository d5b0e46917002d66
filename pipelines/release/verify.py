"""Verifying a release: every row's answer is derived again from the corpus and the proof alone, with no model.

A release is checked in three ways: its files against the manifest, each row against its proof and the corpus, and the
rows against each other. The later checks do not trust the manifest, so a release that was changed and resealed fails.

Each row is made again from its proof row by the functions that publishing uses, and every column is compared. A
transcript is checked by the rules it was accepted by: form, tools, question, answer and where the answer was seen. Its
length, and the pages that a search by picture finds, cannot be checked.
"""

import asyncio
import hashlib
import json
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pydantic import ValidationError

from pipelines.agent.cascade import ASKED_OF_PATHS
from pipelines.agent.depicting import gather_evidence, weigh_evidence
from pipelines.agent.dialects import Dialect, find_dialect
from pipelines.agent.observations import ANSWER, ERRORS, WARNINGS, list_forms
from pipelines.agent.pictures import MIN_WORDS, REPAIRS, fits_strength, list_words, measure_degraded
from pipelines.agent.transcript import BadTurn, Turn, parse_turn, read_observation
from pipelines.checks.answers import check_named
from pipelines.checks.descriptors import check_spoken, list_descriptors
from pipelines.checks.examination import Claim, check_picture_names, list_hidden_checks
from pipelines.checks.leakage import check_answer, list_type_words
from pipelines.checks.legibility import check_readable
from pipelines.checks.pictures import check_licence
from pipelines.checks.proofs import find_problems
from pipelines.checks.propositions import ProseReader
from pipelines.checks.readings import Evaluator, compare_reading, judge_screening
from pipelines.checks.rollouts import fold_words, locate_form, locate_value
from pipelines.checks.sets import list_edges, name_anchor, name_answer_node
from pipelines.checks.standings import COVERED, find_standing, is_solved
from pipelines.checks.traces import check_decision, list_trace_checks
from pipelines.checks.verdicts import Check, run_checks
from pipelines.corpus.images import find_page_images
from pipelines.corpus.store import Corpus
from pipelines.errors import ConfigError, CorruptInput, GateNotMet, RecordFailed
from pipelines.graph.answers import compare_answers, type_reference
from pipelines.graph.proofs import NO_PROOF, list_names, make_question_id
from pipelines.graph.query import Indexes, locate_nodes
from pipelines.graph.titles import asks_name
from pipelines.ids import draw_unit
from pipelines.pictures import probe_picture
from pipelines.release.making import TRANSCRIPT, make_bridgevqa_row, make_rl_row, make_sft_row, make_vqa_row
from pipelines.release.manifest import check_release_files, read_release_manifest
from pipelines.release.rows import (
    PLACEHOLDER,
    ROW_TYPES,
    BridgeVqaRow,
    EmbeddedImage,
    ProofRow,
    ReleaseRow,
    RlRow,
    SftRow,
    VqaRow,
    check_messages,
    explain_misfit,
    make_release_schema,
    read_values,
    shorten,
    show_pictures,
    strip_page_text,
)
from pipelines.release.scenes import find_scene_problems, find_view_problems
from schemas.base import derive_schema
from schemas.corpus import CorpusImage
from schemas.datasets import CandidateSource, Dataset, Picture, Support, Trial
from schemas.proofs import Answer, Proof, Reading, Screening, Trace

_SAID = ("author", "licence", "licence_url", "source_url")
"""What a picture keeps of its source, however it was scaled."""
_MEASURED = ("sha256", "width", "height", "phash")


def find_picture_problems(ground: Indexes, anchor: int, proof: ProofRow) -> Iterator[str]:
    """Yield the problems of a question's picture: its source, choice, degradation, licence and text.

    Of a picture that a search on Commons found, only licence and text can be checked: it is in no article.
    """
    picture = proof.original or proof.picture
    if picture is None:
        lead = _find_lead(ground.corpus, anchor)
        if lead is not None and lead.path:
            yield "picture: the proof has none, the anchor's page has one"
        if proof.depiction is not None or proof.trial is not None:
            yield "picture: the proof says how a picture was chosen, and has none"
        return
    yield from _find_source_problems(ground.corpus, anchor, proof, picture)
    yield from _find_choice_problems(ground.corpus, anchor, proof, picture)
    yield from _find_degradation_problems(proof)
    yield from find_scene_problems(ground.corpus, proof)
    licence = check_licence(picture.licence)
    if licence.outcome != "PASS":
        yield f"picture: {licence.code}: {licence.detail}"
    yield from _find_told_problems(ground, proof, picture)


def _find_source_problems(corpus: Corpus, anchor: int, proof: ProofRow, picture: Picture) -> Iterator[str]:
    source = proof.depiction.source if proof.depiction else "infobox"
    right = _find_source(corpus, anchor, picture)
    if source == "infobox" != right:
        lead = _find_lead(corpus, anchor)
        named = lead.file if lead else "none"
        yield f"picture: file of the anchor's lead picture is {named!r}, the proof says {picture.file!r}"
        return
    if source != right:
        yield f"picture: {picture.file} is from {right} of the anchor's article, the proof says {source}"
    image = corpus.image(picture.file)
    if image is None:
        return
    # A picture is fetched where the corpus lacks its metadata: then only the source has them.
    said = _SAID if image.path or (image.url and image.width and image.height and image.licence) else ()
    for name in ("file", *said, *(_MEASURED if image.path else ())):
        given, wanted = getattr(picture, name), getattr(image, name)
        if given != wanted:
            yield f"picture: {name} of the anchor's picture is {wanted!r}, the proof says {given!r}"
    if proof.depiction and proof.depiction.articles != len(image.title):
        yield f"picture: {len(image.title)} articles lead with {image.file}, the proof says {proof.depiction.articles}"


def _find_source(corpus: Corpus, anchor: int, picture: Picture) -> CandidateSource:
    """Return where a file comes from; one that is not in the article was found by a search."""
    lead = _find_lead(corpus, anchor)
    if lead is not None and lead.file == picture.file:
        return "infobox"
    shown = find_page_images(corpus.text(anchor), corpus.manifest.language)
    return "page" if picture.file in shown else "search"


def _find_lead(corpus: Corpus, anchor: int) -> CorpusImage | None:
    page = corpus.page(anchor)
    return corpus.image(page.image) if page.image and page.image_free else None


def _find_choice_problems(corpus: Corpus, anchor: int, proof: ProofRow, picture: Picture) -> Iterator[str]:
    """Yield the problems of how a picture was chosen, as far as the corpus can show them."""
    depiction = proof.depiction
    if depiction is None:
        yield "picture: the proof does not say how it was chosen"
        return
    judged = depiction.margin is not None and depiction.over_threshold is not None and depiction.distractors > 0
    told = depiction.margin is not None or depiction.over_threshold is not None or depiction.distractors != 0
    if (depiction.ranker == "metadata") == judged or judged != told:
        yield f"picture: {depiction.ranker} does not rank by such a margin, threshold and number of distractors"
    if depiction.candidates < 1:
        yield f"picture: it was chosen among {depiction.candidates} candidates"
    if not depiction.engines and (depiction.text or depiction.text_at_training):
        yield "picture: it has text and names no OCR engine"
    image = corpus.image(picture.file)
    if image is None:
        return
    evidence = gather_evidence(corpus, anchor, image, depiction.source)
    if depiction.depicts != evidence.depicts:
        yield f"picture: of what it depicts Commons says {evidence.depicts}, the proof {depiction.depicts}"
    if depiction.ranker == "metadata" and depiction.score != weigh_evidence(evidence):
        yield f"picture: the metadata give {weigh_evidence(evidence)} points, the proof says {depiction.score}"


def _find_degradation_problems(proof: ProofRow) -> Iterator[str]:
    """Another picture keeps author and licence; its trial or scene must have shown that a tool undoes what was done."""
    composed = proof.scene is not None and bool(proof.scene.parts)
    if (proof.original is not None) != (proof.trial is not None or composed):
        yield "picture: a degraded picture needs its original and its trial, the proof has one of the two"
    if proof.trial is not None and proof.scene is not None:
        yield "picture: it is said to be degraded and to be a scene"
    if proof.original is None or (proof.trial is None and proof.scene is None):
        return
    if proof.picture is None or proof.picture.sha256 == proof.original.sha256:
        yield "picture: it is said to be degraded and is the original"
        return
    if any(getattr(proof.picture, name) != getattr(proof.original, name) for name in ("file", *_SAID)):
        yield "picture: the degraded picture is credited otherwise than its original"
    if proof.trial is None:
        return
    yield from _find_trial_problems(proof.trial, proof.original, proof.picture)
    words = list_words(proof.depiction.text) if proof.depiction else frozenset()
    if proof.trial.test == "text" and len(words) < MIN_WORDS:
        yield "picture: its trial was to read words, and none were read in the original"


def _find_trial_problems(trial: Trial, original: Picture, picture: Picture) -> Iterator[str]:
    if not (trial.before and trial.repaired) or trial.degraded:
        yield "picture: its trial does not show that the repair restores what the degradation broke"
    if REPAIRS[trial.degradation] != trial.repair:
        yield f"picture: {trial.degradation} is repaired by {REPAIRS[trial.degradation]}, the proof says {trial.repair}"
    size = (original.width, original.height)
    if not fits_strength(trial.degradation, trial.strength, trial.parameters, size):
        yield f"picture: {trial.degradation} of strength {trial.strength:g} has other parameters"
    elif (picture.width, picture.height) != measure_degraded(trial.degradation, trial.parameters, size):
        yield f"picture: {trial.degradation} with these parameters makes another size"


def _find_told_problems(ground: Indexes, proof: ProofRow, picture: Picture) -> Iterator[str]:
    """Yield names that a picture's file, address or text gives away."""
    told = (picture.file, picture.source_url)
    names, words = list_names(ground.corpus, proof.proof.hidden), list_type_words(proof.proof.entities)
    results = [check_picture_names(told, names, proof.answer, words)]
    if proof.depiction and proof.depiction.text:
        results.append(check_readable(proof.depiction.text, names, proof.answer, words))
    if proof.depiction and proof.depiction.text_at_training:
        results.append(check_readable(proof.depiction.text_at_training, names, proof.answer, words))
    for result in results:
        if not result.passed:
            yield f"picture: {result.code}: {result.detail}"


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
    shown = [_read_shown(user, dialect) for user in users[1:]]
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
    tools = _read_tool_names(row.tools)
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


def _read_tool_names(tools: str) -> frozenset[str]:
    """Return the names of the functions in a JSON array of their schemas; empty for another text."""
    try:
        specs = json.loads(tools)
        return frozenset(str(spec["function"]["name"]) for spec in specs)
    except (ValueError, TypeError, KeyError):
        return frozenset()


def _read_shown(user: str, dialect: Dialect) -> str | None:
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


def find_question_problems(ground: Indexes, proof: ProofRow) -> list[str]:
    """Return the problems of a question: of its query, text, picture and id."""
    corpus = ground.corpus
    standing = list(_find_standing_problems(proof, corpus.manifest.language in COVERED))
    if proof.trace is not None:
        return [*find_trace_problems(corpus, proof, proof.trace), *standing]
    if not proof.proof.nodes:
        return [*find_outside_problems(proof), *standing]
    problems = find_problems(ground, Claim(proof.text, proof.answer, proof.proof))
    if proof.origin is not None or proof.reading is None or proof.screening is None:
        problems.append("proof: a question with a path has a reading and a screening, and is of no pool")
    if problems:
        return problems
    (anchor,) = locate_nodes(corpus, proof.proof.nodes[:1])
    page = corpus.page(anchor)
    if proof.domain != page.domain:
        problems.append(f"domain: {page.title} is of {page.domain}, the proof says {proof.domain}")
    problems += find_picture_problems(ground, anchor, proof)
    problems += _find_read_problems(ground, proof)
    problems += _find_wording_problems(ground, proof)
    return [*problems, *find_id_problems(proof), *standing]


def _find_standing_problems(row: ProofRow, covered: bool) -> Iterator[str]:
    """Yield the problem of a standing that does not follow from the attempts and from what proves the question."""
    solved = is_solved(row.difficulty)
    wanted = find_standing(row.proof, row.trace, solved, covered)
    if row.standing != wanted:
        tried = "yes" if solved else "no"
        yield f"standing: it is said to be {row.standing}, wanted is {wanted}; attempts solved it: {tried}"


def _find_read_problems(ground: Indexes, row: ProofRow) -> Iterator[str]:
    if row.reading is None or row.screening is None:
        return
    read = compare_reading(ground.corpus, row.text, row.reading, row.proof, row.answer)
    screened = judge_screening(ground, row.text, row.reading, row.screening, row.proof, row.answer)
    for what, result in (("reading", read), ("screening", screened)):
        if not result.passed:
            yield f"{what}: {result.detail}"


def find_id_problems(row: ProofRow) -> Iterator[str]:
    """Yield the problem of a question whose id does not follow from its text, picture, answer and path."""
    wanted = make_question_id(row.text, row.picture.sha256 if row.picture else "", row.answer, row.proof)
    if row.record_id != wanted:
        yield f"id: the question's id is {wanted}, the proof says {row.record_id}"


def find_outside_problems(row: ProofRow) -> Iterator[str]:
    """Yield what is wrong with a question that has no path, as far as it can be told without one.

    It says where it comes from, claims no proof and does not hold its answer.
    """
    if row.proof != NO_PROOF or row.reading is not None or row.screening is not None or row.depiction is not None:
        yield "proof: a question without a path has no part of a proof"
    if row.origin is None or not row.origin.pool:
        yield "proof: it has no path, and names no pool that it comes from"
    if row.picture is not None and row.origin is not None and row.picture.licence != row.origin.licence:
        yield f"picture: its licence is {row.picture.licence!r}, that of its pool {row.origin.licence!r}"
    if {row.fuzzy, row.canonical} != {row.text}:
        yield "text: a question from outside has no earlier wording"
    told = check_answer(row.text, row.answer)
    if not told.passed:
        yield f"text: {told.code}: {told.detail}"
    if type_reference(row.text, row.answer.surface, row.answer.aliases) != row.answer:
        yield f"answer: {shorten(row.answer.surface)} is typed otherwise"
    yield from _find_degradation_problems(row)
    yield from find_id_problems(row)


def _find_wording_problems(ground: Indexes, row: ProofRow) -> Iterator[str]:
    """Check the earlier wordings: the canonical one names the path, the fuzzy one only its anchor."""
    proof = row.proof
    if asks_name(proof):
        # Nothing is named from the start, so that no wording comes before the last.
        yield from (
            f"{name}: it is not the question" for name in ("canonical", "fuzzy") if getattr(row, name) != row.text
        )
        return
    # Injection starts with a question about its answer node alone, and hides it in the first round.
    grown = any(hop.backward for hop in proof.hops)
    named = proof.nodes[-1:] if grown or not proof.hops else proof.nodes[:-1]
    earlier: dict[str, tuple[Check, ...]] = {
        "canonical": tuple(partial(check_named, row.canonical, node.title) for node in named),
        "fuzzy": (
            partial(check_named, row.fuzzy, proof.nodes[0].title),
            # Without a hop the wording only names its anchor, whose own name may hold the answer.
            *(list_hidden_checks(ground.corpus, row.fuzzy, proof, row.answer) if proof.hops else ()),
            partial(check_spoken, row.fuzzy, list_descriptors(proof)),
        ),
    }
    if not proof.hops and row.fuzzy != row.canonical:
        yield "fuzzy: without a hop it is the canonical wording"
    for name, checks in earlier.items():
        if not getattr(row, name).rstrip().endswith("?"):
            yield f"{name}: it is not a question"
        for result in run_checks(checks, audit=True):
            yield f"{name}: {result.code}: {result.detail}"


def find_trace_problems(corpus: Corpus, row: ProofRow, trace: Trace) -> Iterator[str]:
    """Yield the problems of a question about the news: of its quotes, names, text, picture and id."""
    if (trace.corpus, trace.snapshot) != (corpus.digest, corpus.snapshot):
        yield f"trace: it is of corpus {trace.corpus[:12]}, this is {corpus.digest[:12]}"
        return
    checks = list_trace_checks(corpus, row.text, row.answer, trace)
    for result in run_checks(chain(checks, (partial(check_decision, row.text, trace),)), audit=True):
        yield f"trace: {result.code}: {result.detail}"
    for name, given, wanted in (
        ("proof", row.proof, NO_PROOF),
        ("domain", row.domain, trace.anchor_kind),
        ("fuzzy", row.fuzzy, row.text),
        ("canonical", row.canonical, row.text),
        ("depiction", row.depiction, None),
        ("reading", row.reading, None),
        ("screening", row.screening, None),
        ("origin", row.origin, None),
        ("scene", row.scene, None),
    ):
        if given != wanted:
            yield f"{name}: of a question about the news it is {shorten(wanted)}, the proof says {shorten(given)}"
    yield from _find_news_picture_problems(corpus, row, trace)
    yield from _find_degradation_problems(row)
    yield from find_id_problems(row)


def _find_news_picture_problems(corpus: Corpus, row: ProofRow, trace: Trace) -> Iterator[str]:
    """Compare a picture with the one of the article that the first link is quoted from."""
    node = corpus.find(trace.anchor_evidence.title)
    origin = None if node is None else corpus.origin(node)
    image = corpus.image(origin.image) if origin is not None and origin.image else None
    picture = row.original or row.picture
    if image is None or picture is None:
        yield "picture: the article that is quoted first shows none, or the question has none"
        return
    for name in ("file", *_SAID, *_MEASURED):
        given, wanted = getattr(picture, name), getattr(image, name)
        if given != wanted:
            yield f"picture: {name} of the article's picture is {wanted!r}, the proof says {given!r}"


def find_row_problems(proof: ProofRow, row: ReleaseRow, index: int) -> list[str]:
    """Return the problems of a row at a place in its split, given a proof that verifies."""
    images = _list_images(row)
    problems = list(_find_image_problems(proof.picture, images))
    if not problems and proof.scene is not None:
        problems += find_view_problems(proof, images[0].bytes)
    match row:
        case SftRow():
            told = {name: getattr(row, name) for name in TRANSCRIPT}
            made: ReleaseRow = make_sft_row(proof, told | ACCEPTED)
            problems += find_transcript_problems(proof, row)
        case RlRow():
            made = make_rl_row(proof, images, index, row.image_search)
            problems += _find_thumbnail_problems(row)
        case VqaRow():
            made = make_vqa_row(proof, images)
        case BridgeVqaRow():
            if proof.trace is None or len(images) != 1:
                return [*problems, "trace: the question has none, or not one picture"]
            made = make_bridgevqa_row(proof, images)
    for name in type(row).model_fields:
        given, right = getattr(row, name), getattr(made, name)
        if given != right:
            problems.append(f"{name}: the row says {shorten(given)}, its proof {shorten(right)}")
    return problems


def _list_images(row: ReleaseRow) -> tuple[EmbeddedImage, ...]:
    if isinstance(row, VqaRow | BridgeVqaRow):
        return () if row.image is None else (row.image,)
    return row.images


def _find_image_problems(picture: Picture | None, images: Sequence[EmbeddedImage]) -> Iterator[str]:
    """Hash and decode every embedded picture again; the first one must be the anchor's."""
    first = hashlib.sha256(images[0].bytes).hexdigest() if images else ""
    if first != (picture.sha256 if picture else ""):
        yield f"images: the first picture is {first or 'missing'}, not the anchor's"
    for number, image in enumerate(images):
        problems = list(_find_name_problems(image, f"images: picture {number}"))
        yield from problems
        if number or picture is None or problems:
            continue
        probe = probe_picture(image.bytes)
        seen = (probe.extension, probe.width, probe.height, probe.phash)
        if seen != (picture.extension, picture.width, picture.height, picture.phash):
            yield f"images: the first picture is {seen}, the proof says otherwise"


def _find_name_problems(image: EmbeddedImage, where: str) -> Iterator[str]:
    """Hash and decode a picture, and compare its name with both."""
    digest = hashlib.sha256(image.bytes).hexdigest()
    try:
        extension = probe_picture(image.bytes).extension
    except RecordFailed as error:
        yield f"{where}: {error}"
        return
    if image.path != f"{digest}.{extension}":
        yield f"{where}: it is named {image.path}, has sha256 {digest} and is {extension}"


def _find_thumbnail_problems(row: RlRow) -> Iterator[str]:
    """Check names of thumbnails and text of titles; whether the search finds these pages cannot be checked."""
    for number, found in enumerate(row.image_search):
        if strip_page_text(found.title) != found.title:
            yield f"image_search: title {number} holds a tag or token: {shorten(found.title)}"
    shown = [found.thumbnail for found in row.image_search if found.thumbnail is not None]
    for number, image in enumerate(shown):
        yield from _find_name_problems(image, f"image_search: thumbnail {number}")


@dataclass(frozen=True, slots=True)
class Problem:
    """What is wrong with a row or file, and which."""

    where: str
    what: str


@dataclass(frozen=True, slots=True)
class VerifyReport:
    """What verification found in one release."""

    dataset: str
    version: str
    rows: int
    """Those with a path or a trace: whatever verification derives again, and whose proof is missing."""
    verified: int
    problems: tuple[Problem, ...]
    claims: tuple[str, ...] = ()
    """What the proofs demanded, in words: a release made under weak thresholds verifies and says so."""
    unproved: int = 0
    """Rows from outside, of pools: neither a path nor a trace stands behind them."""
    held: int = 0
    """Those of them in which all holds that can be told without one."""

    @property
    def passed(self) -> bool:
        """Whether every row and every file holds, and there was at least one row."""
        whole = self.verified == self.rows and self.held == self.unproved
        return self.rows + self.unproved > 0 and whole and not self.problems

    def describe(self) -> str:
        """Return how many rows verify; those without a proof are told apart."""
        return describe_rows([self])


def describe_rows(reports: Sequence[VerifyReport]) -> str:
    """Return ``41/41``, and of rows without a proof how many there are: they are never counted as proved."""
    count = f"{sum(each.verified for each in reports)}/{sum(each.rows for each in reports)}"
    unproved, held = sum(each.unproved for each in reports), sum(each.held for each in reports)
    if not unproved:
        return count
    wrong = f", {unproved - held} of them with problems" if held < unproved else ""
    return f"{count} proved rows verify; {unproved} rows are from outside and have no proof{wrong}"


RawRow = tuple[str, int, Mapping[str, Any]]
"""A row as its file has it: split by the file's name, place in the split, values."""


@dataclass(slots=True)
class Ledger:
    """What the rows so far held, for claims about all rows together."""

    verdicts: dict[str, list[str]] = field(default_factory=dict)
    """Problems of each question, found once however many rows ask it."""
    ids: Counter[str] = field(default_factory=Counter)
    questions: set[str] = field(default_factory=set)
    settings: set[tuple[str, str, str]] = field(default_factory=set)
    """System message, tools and dialect of SFT rows: the same in all of them."""


def verify_release(folder: Path, ground: Indexes, advance: Callable[[int], None] = lambda done: None) -> VerifyReport:
    """Verify a release folder against a corpus.

    Args:
        folder: ``releases/<dataset>/<version>``.
        ground: the corpus the proofs refer to, built by anyone from the same dump.
        advance: called with the number of rows that are done.

    Raises:
        ConfigError: if the folder is no release.
        CorruptInput: if a Parquet file cannot be read.
    """
    manifest = read_release_manifest(folder)
    problems = [*_check_columns(folder, manifest.dataset)]
    try:
        check_release_files(folder)
    except GateNotMet as error:
        problems.insert(0, Problem("files", str(error)))
    rows, verified = Counter[bool](), Counter[bool]()
    ledger = Ledger()
    try:
        proofs, found = _read_proofs(folder)
        problems += found
        for raw in _read_rows(folder / "data"):
            whats = _check_row(manifest.dataset, raw, proofs, ledger, ground)
            problems += [Problem(str(raw[2].get("id")), what) for what in whats]
            proof = proofs.get(_name_question(manifest.dataset, raw))
            # A row whose proof is missing is none that is from outside: it counts as one that does not verify.
            proved = proof is None or bool(proof.proof.nodes) or proof.trace is not None
            rows[proved] += 1
            verified[proved] += not whats
            advance(rows.total())
    except (OSError, UnicodeDecodeError, pa.ArrowException) as error:
        raise CorruptInput(f"release {folder}: a Parquet file cannot be read as {manifest.dataset}: {error}") from error
    problems += _check_together(proofs, ledger)
    if rows.total() != manifest.rows:
        problems.append(Problem("manifest.json", f"it says {manifest.rows} rows, the files hold {rows.total()}"))
    claims = tuple(sorted({_describe_basis(row) for row in proofs.values()}))
    told, counts = tuple(problems), (rows[False], verified[False])
    return VerifyReport(manifest.dataset, manifest.version, rows[True], verified[True], told, claims, *counts)


async def read_anew(
    report: VerifyReport, folder: Path, evaluator: Evaluator, pages: ProseReader, most: int = 0
) -> VerifyReport:
    """Let a model read a release's questions again, and add what it reads otherwise than proved to the report.

    Where a proof's pages were read, they are read again too.

    Args:
        report: of the release.
        folder: the release, made from the evaluator's corpus.
        evaluator: need not be the one that read before.
        pages: the same as a reader of pages.
        most: questions to read, drawn by their ids; 0 for all.

    Raises:
        ServiceError: if the model is unavailable.
    """
    proofs, _ = _read_proofs(folder)
    drawn = sorted(
        (row for row in proofs.values() if row.proof.nodes), key=lambda row: draw_unit("read", row.record_id)
    )[: most or None]
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(_read_row(evaluator, pages, row)) for row in drawn]
    found = tuple(problem for task in tasks if (problem := task.result()))
    claim = f"{len(drawn) - len(found)} of {len(drawn)} questions read anew by {evaluator.asking.model.name} as proved"
    return replace(report, problems=(*report.problems, *found), claims=(*report.claims, claim))


async def _read_row(evaluator: Evaluator, pages: ProseReader, row: ProofRow) -> Problem | None:
    reading, result = await evaluator.check(row.text, row.proof, row.answer)
    if reading is not None and result.passed:
        _, result = await evaluator.screen(row.text, reading, row.proof, row.answer)
    if result.passed and row.proof.thresholds.read_pages:
        _, result = await pages.check(row.proof, row.answer)
    return None if result.passed else Problem(row.record_id, f"reading: {result.code}: {result.detail}")


def describe_origin(row: ProofRow) -> str:
    """Return in words what there is in place of a proof."""
    origin = row.origin
    return f"no proof: from the pool {origin.pool}, {origin.licence or 'licence unknown'}" if origin else "no proof"


def _describe_basis(row: ProofRow) -> str:
    return describe_claim(row) if row.proof.nodes or row.trace is not None else describe_origin(row)


def describe_claim(row: ProofRow) -> str:
    """Return in words what a proof's thresholds and switches demanded."""
    if row.trace is not None:
        return (
            "each fact is quoted from an article, byte for byte, with both its ends and its relation; no name is in "
            f"the question; that the words ask these facts was judged by {row.trace.decided_by}, not derived"
        )
    if row.reading is None or row.screening is None:
        return "nobody read the words back"
    return _describe_demands(row.proof, row.reading, row.screening)


def _describe_demands(proof: Proof, reading: Reading, screening: Screening) -> str:
    """Return in words what a walked question's proof demanded."""
    least = proof.thresholds
    agreement = {
        "required": "a sentence says the answer too",
        "uncontradicted": "no sentence says another answer",
        "off": "prose not compared with the answer",
    }
    dump = f"the same in the dump of {proof.compared_snapshot}" if proof.compared_snapshot else "no other dump compared"
    choices: tuple[tuple[object, str, str], ...] = (
        (least.answers, f"at least {least.answers} answers over other pictures", "need for the picture not counted"),
        (proof.shortcuts_checked, "no shorter path", "shorter paths not searched"),
        (
            least.near_misses,
            f"articles of up to {least.near_misses} near misses read, none left open",
            "near misses not checked",
        ),
        (True, agreement[least.agreement], ""),
        (
            least.answer_share < 1.0,
            f"no answer with more than {least.answer_share:.0%} of its relation",
            "frequency of the answer not checked",
        ),
        (not least.volatile, f"no fact that changes with time, {dump}", "facts that change with time allowed"),
        (least.read_pages, "pages read for other values", "pages not read for other values"),
        (
            least.retrieval_rank,
            f"not among the first {least.retrieval_rank} results of one search",
            "one search not tried",
        ),
    )
    return "; ".join(
        (
            "one entity fits every hidden node given the chain",
            f"at least {least.alone_first} the first and {least.alone} the others without it",
            *(demanded if holds else dropped for holds, demanded, dropped in choices),
            f"words read back by {_name_reader(reading.reader)}",
            f"what they give away, and what else a search finds for a step, by {_name_reader(screening.reader)}",
        )
    )


def _check_columns(folder: Path, dataset: Dataset) -> Iterator[Problem]:
    """Compare every file's columns and types with those of the dataset; rows are read leniently afterwards."""
    wanted = {"data": make_release_schema(ROW_TYPES[dataset]), "proofs": derive_schema(ProofRow)}
    for kind, schema in wanted.items():
        for path in sorted((folder / kind).glob("*.parquet")):
            try:
                found = pq.read_schema(path)
            except (OSError, pa.ArrowException) as error:
                raise CorruptInput(f"{path}: a Parquet file cannot be read as {dataset}: {error}") from error
            if not found.equals(schema):
                yield Problem(f"{kind}/{path.name}", f"columns: they are not those of {dataset}")


def _read_rows(folder: Path) -> Iterator[RawRow]:
    places: Counter[str] = Counter()
    for path in sorted(folder.glob("*.parquet")):
        split = path.name.partition("-")[0]
        for values in read_values(path):
            yield split, places[split], values
            places[split] += 1


def _read_proofs(folder: Path) -> tuple[dict[str, ProofRow], list[Problem]]:
    """Return the proof rows by id, and what keeps others from being one."""
    proofs: dict[str, ProofRow] = {}
    problems = []
    for split, _, values in _read_rows(folder / "proofs"):
        where = str(values.get("record_id"))
        try:
            proof = ProofRow.model_validate(values, strict=False)
        except ValidationError as error:
            problems.append(Problem(where, f"proof: {explain_misfit(error)}"))
            continue
        if where in proofs:
            problems.append(Problem(where, "proof: the question has two"))
        if proof.split != split:
            problems.append(Problem(where, f"proof: it is of split {proof.split}, its file of {split}"))
        proofs[where] = proof
    return proofs, problems


def _check_row(
    dataset: Dataset, raw: RawRow, proofs: Mapping[str, ProofRow], ledger: Ledger, ground: Indexes
) -> list[str]:
    split, index, values = raw
    ledger.ids[str(values.get("id"))] += 1
    question = _name_question(dataset, raw)
    ledger.questions.add(question)
    proof = proofs.get(question)
    if proof is None:
        return [f"no proof for question {question}"]
    try:
        row = ROW_TYPES[dataset].model_validate(values, strict=False)
    except ValidationError as error:
        return [f"row: {explain_misfit(error)}"]
    if isinstance(row, SftRow):
        ledger.settings.add((row.messages[0].content if row.messages else "", row.tools, row.dialect))
    if question not in ledger.verdicts:
        ledger.verdicts[question] = find_question_problems(ground, proof)
    problems = ledger.verdicts[question] or find_row_problems(proof, row, index)
    if split != proof.split:
        problems = [*problems, f"split: the row's file is of {split}, its proof of {proof.split}"]
    return problems


def _name_question(dataset: Dataset, raw: RawRow) -> str:
    return str(raw[2].get("question_id" if dataset == "sft" else "id"))


def _check_together(proofs: Mapping[str, ProofRow], ledger: Ledger) -> Iterator[Problem]:
    """Check the rows together: each row once, each proof used, one set of tools and thresholds, splits apart."""
    for row, times in ledger.ids.items():
        if times > 1:
            yield Problem(row, f"rows: {times} rows have this id")
    for question in sorted(proofs.keys() - ledger.questions):
        yield Problem(question, "proof: no row asks this question")
    if len(ledger.settings) > 1:
        yield Problem(
            "data", f"rows: {len(ledger.settings)} sets of system message, tools and dialect; there must be one"
        )
    rules = {
        (proof.thresholds, proof.shortcuts_checked, proof.hub_in_degree, proof.compared_snapshot)
        for proof in (row.proof for row in proofs.values() if row.proof.nodes)
    }
    if len(rules) > 1:
        yield Problem("proofs", f"thresholds: questions were accepted by {len(rules)} sets of them; there must be one")
    sizes = {row.scene.training_pixels for row in proofs.values() if row.scene is not None}
    if len(sizes) > 1:
        yield Problem("proofs", f"scene: {len(sizes)} sizes of what a student sees; there must be one")
    yield from _check_splits(proofs)


def _check_splits(proofs: Mapping[str, ProofRow]) -> Iterator[Problem]:
    """No anchor, answer node, answer key, hop or picture may be in two splits; no two questions may be the same."""
    splits: defaultdict[tuple[str, str], set[str]] = defaultdict(set)
    asked: defaultdict[tuple[str, str], list[str]] = defaultdict(list)
    for question, row in proofs.items():
        anchor = name_anchor(row)
        splits["anchor", anchor].add(row.split)
        if node := name_answer_node(row):
            splits["answer node", node].add(row.split)
        splits["answer key", row.answer.key].add(row.split)
        for edge in list_edges(row):
            splits["hop", " ".join(map(str, edge))].add(row.split)
        picture = row.original or row.picture
        for name in ("sha256", "phash") if picture else ():
            splits[f"picture {name}", getattr(picture, name)].add(row.split)
        for part in row.scene.parts if row.scene else ():
            splits["picture sha256", part.picture.sha256].add(row.split)
        asked[anchor, row.answer.key].append(question)
    for (name, value), found in splits.items():
        if len(found) > 1:
            yield Problem("splits", f"splits: {' and '.join(sorted(found))} share {name} {value}")
    for same in asked.values():
        if len(same) > 1:
            yield Problem(same[-1], f"rows: it asks the same of the same anchor as {same[0]}")


def _name_reader(identity: str) -> str:
    return identity.partition(":")[0]
