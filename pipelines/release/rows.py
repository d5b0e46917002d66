"""Row types of the three datasets, their Parquet schemas and files, and trajectories as chat messages.

The Hub's features are written in the plain-list form, which datasets 3.6 and 5 both read; ``{"_type": "List"}`` breaks
3.6. Files have small row groups, a page index and content-defined chunks, and the same bytes every time.

Messages follow the rules of LLaMA-Factory 0.9.5, veRL 0.9.1, TRL 1.16 and ms-swift 4.6: one ``<image>`` for each
picture, in reading order; user and assistant alternate after the system message, and the assistant ends; text from
pages and tools holds no placeholder and no control token.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, Literal

import pyarrow as pa
import pyarrow.parquet as pq
from pydantic import BaseModel, ValidationError

from pipelines.agent.dialects import SYNTH, Dialect, find_dialect
from pipelines.agent.transcript import TOKEN, neutralise_markup, render_observation
from pipelines.errors import GateNotMet
from pipelines.ids import digest_file
from schemas.base import Nested, derive_schema
from schemas.datasets import (
    Cell,
    Dataset,
    Depiction,
    Ease,
    Knowledge,
    Origin,
    Picture,
    Scene,
    SearchNeed,
    Standing,
    Support,
    Trajectory,
    Trial,
)
from schemas.manifest import FileEntry
from schemas.proofs import Answer, Proof, Reading, Screening, Trace

PLACEHOLDER = "<image>"


class RowMessage(Nested):
    """One chat message as trainers read it."""

    role: Literal["system", "user", "assistant"]
    content: str


def strip_tokens(text: str) -> str:
    """Remove media placeholders and control tokens until none is left: a removal can join the halves of another."""
    while (stripped := TOKEN.sub("", text)) != text:
        text = stripped
    return text


strip_page_text = neutralise_markup
"""Removes tokens, and the tags that only the assistant may write; for text from pages and tools."""


def find_text_dialect(name: str) -> Dialect:
    """Return the dialect that a rollout's messages are written in; native calls are written in synth's own dialect."""
    dialect = find_dialect(name)
    return SYNTH if dialect.native else dialect


def show_pictures(count: int, text: str) -> str:
    """Return a text after one placeholder for each picture."""
    return f"{PLACEHOLDER * count}\n{text}" if count else text


def list_shown(trajectory: Trajectory) -> tuple[Picture, ...]:
    """Return the pictures that a trajectory's messages show, in reading order."""
    pictures = {image.id: image.picture for image in trajectory.images}
    shown = [image.picture for image in trajectory.images[:1]]
    for step in trajectory.steps[:-1]:
        names = step.observation.images if step.observation is not None else ()
        if missing := [name for name in names if name not in pictures]:
            where = f"{trajectory.record_id}: an observation"
            raise GateNotMet(f"{where} shows {missing}; the rollout has {sorted(pictures)}")
        shown += [pictures[name] for name in names]
    return tuple(shown)


def make_messages(trajectory: Trajectory, system: str = "") -> tuple[tuple[RowMessage, ...], tuple[Picture, ...]]:
    """Return a trajectory's messages and its pictures in reading order.

    Args:
        trajectory: whose replies are text, native calls written down.
        system: in place of the teacher's own system message; empty: that one.
    """
    shown = list_shown(trajectory)
    dialect = find_text_dialect(trajectory.dialect)
    system = system or trajectory.system
    messages = [RowMessage(role="system", content=strip_tokens(system))] if system else []
    question = show_pictures(len(trajectory.images[:1]), strip_page_text(trajectory.question))
    messages.append(RowMessage(role="user", content=question))
    for number, step in enumerate(trajectory.steps, 1):
        messages.append(RowMessage(role="assistant", content=strip_tokens(step.reply)))
        if step.observation is not None and number < len(trajectory.steps):
            clean = step.observation.model_copy(update={"text": strip_page_text(step.observation.text)})
            content = show_pictures(len(clean.images), render_observation(clean, dialect))
            messages.append(RowMessage(role="user", content=content))
    check_messages(messages, len(shown), trajectory.record_id)
    return tuple(messages), shown


def check_messages(messages: Sequence[RowMessage], images: int, where: str) -> None:
    """Refuse messages that a trainer would drop, shift or fail on."""
    count = sum(message.content.count(PLACEHOLDER) for message in messages)
    if count != images:
        raise GateNotMet(f"{where}: {count} placeholders for {images} pictures; there must be one each")
    turns = [message.role for message in messages if message.role != "system"]
    expected = ["user", "assistant"] * (len(turns) // 2)
    if not turns or turns != expected:
        raise GateNotMet(f"{where}: turns are {turns}; user and assistant alternate and the assistant ends")
    empty = [number for number, message in enumerate(messages) if not message.content.strip()]
    if any(messages[number].role == "assistant" for number in empty):
        raise GateNotMet(f"{where}: the assistant says nothing in message {empty[0]}")


DATA_SOURCE = "synth"
SHOWN_ERRORS = 3
QUOTED = 80
"""Characters of a value that a message quotes."""
ABILITY = "multi-hop visual question answering"


class EmbeddedImage(Nested):
    """The Hub's Image feature; ``path`` is a bare name, since a reader opens it when there are no bytes."""

    bytes: bytes
    path: str


class SftRow(Nested):
    """One accepted trajectory. ``messages`` hold one ``<image>`` for each of ``images``, in reading order."""

    id: str
    question_id: str
    images: tuple[EmbeddedImage, ...]
    messages: tuple[RowMessage, ...]
    tools: str
    """JSON array of the tools' schemas."""
    question: str
    answer: str
    answer_aliases: tuple[str, ...]
    hops: int
    n_turns: int
    stop_reason: str
    verdict: str
    dialect: str
    """Protocol of the assistant's messages and of the system message."""
    loss: tuple[bool, ...]
    """Whether to train on each of the assistant's messages, in order: not on calls that failed."""
    supports: tuple[Support, ...]
    """Where the bridges and the answer were seen: the assistant's message from 0, whose observation shows it, and a
    span of that observation's text."""
    tokens: int
    """Length when trained on, pictures included, as the run's rule counts it."""
    snapshot: str
    """Date of the corpus that the tools searched; empty for live tools."""
    day: str
    """Latest day of a reply of a model or a live tool; empty where all replies are scripted or local."""
    left_out: tuple[str, ...] = ()
    """Checks that were not made, as the question has no path whose names they need."""


class RewardModel(Nested):
    """veRL's rule reward; any of ``candidate_answers`` is right, the ground truth is the first of them."""

    style: str
    ground_truth: str
    candidate_answers: tuple[str, ...]


class ExtraInfo(Nested):
    """What veRL hands to reward functions and agent loops."""

    index: int
    split: str
    question: str
    answer: str
    answer_type: str
    """``date``, ``number``, ``name`` or ``string``."""
    question_id: str
    need_tools_kwargs: bool


class FoundPage(Nested):
    """One page that a search by the question's picture finds."""

    title: str
    url: str
    thumbnail: EmbeddedImage | None


class RlRow(Nested):
    """One question in veRL's layout."""

    id: str
    data_source: str
    prompt: tuple[RowMessage, ...]
    images: tuple[EmbeddedImage, ...]
    ability: str
    reward_model: RewardModel
    extra_info: ExtraInfo
    image_search: tuple[FoundPage, ...]
    """What a search by the picture finds, best first, for trainers that replay it."""


class ChainLink(Nested):
    """One hop by names."""

    relation: str
    subject: str
    object: str


class VqaRow(Nested):
    """One question with its chain, its certificate counts and its difficulty."""

    id: str
    image: EmbeddedImage | None
    question: str
    answer: str
    answer_type: str
    answer_aliases: tuple[str, ...]
    hops: int
    anchor_type: str
    domain: str
    chain: tuple[ChainLink, ...]
    """Hops in order; the last link asks for the answer attribute of the last node."""
    r_chain: tuple[int, ...]
    """Entities that fit each hidden node given the chain; 1 is unique."""
    r_alone: tuple[int, ...]
    """Entities that fit each hidden node's descriptor without the chain."""
    n_img: int | None
    """Distinct answers over all anchors of the type: how much the picture decides."""
    difficulty: tuple[Cell, ...]
    search_need: SearchNeed = ""
    standing: Standing = "proved"
    ease: Ease = ""
    """How easily a search by picture finds the anchor."""
    degradation: str = ""
    """How the picture was degraded; empty where it was not."""
    repair: str = ""
    """The tool that repairs it, or that cuts what is asked about out of a scene."""
    object_share: float = 0.0
    """Share of a scene's area that what is asked about covers; 0 where the picture is no scene."""
    pool: str = ""
    """The set from outside that the question is of; empty where it was made here."""
    knowledge: Knowledge = ""
    """What knowledge the question takes, of a closed list; empty where that was not asked."""
    rounds: int = 0
    """Entities that rounds of injection have hidden; 0 for a question that walks led to."""


class QuotedFact(Nested):
    """One fact of a question about the news, with the words of an article that state it."""

    subject: str
    relation: str
    object: str
    quote: str
    """Plain text; ``proofs/`` has the span."""
    title: str
    """Of the article."""
    url: str
    source: str
    published: str


class BridgeVqaRow(Nested):
    """One question about a picture of the news, with its reasoning: picture -> A -R-> B -> C."""

    id: str
    image: EmbeddedImage
    question: str
    answer: str
    answer_type: str
    answer_aliases: tuple[str, ...]
    hops: int
    """From the picture to A is the first."""
    anchor: str
    """A, what the picture shows."""
    anchor_kind: str
    """``event``, ``person`` or ``object``."""
    bridge: str
    """B, between picture and answer."""
    trace: tuple[str, ...]
    """The reasoning in numbered steps: the picture, a search for each fact, the conclusion."""
    evidence: tuple[QuotedFact, ...]
    decided_by: str
    """Who found the reasoning sound: a model's name, or a person's."""
    decided_on: str
    """Day of a person's decision; empty for a model's."""
    difficulty: tuple[Cell, ...]
    search_need: SearchNeed = ""
    standing: Standing = "proved"
    degradation: str = ""
    """How the picture was degraded; empty where it was not."""
    repair: str = ""
    """The tool that repairs it."""


class ProofRow(Nested):
    """A question, its answer and its whole proof; every column of a row but the transcript follows from it."""

    record_id: str
    """The question's id."""
    split: str
    """Split inside the release."""
    domain: str
    text: str
    fuzzy: str
    canonical: str
    picture: Picture | None
    answer: Answer
    proof: Proof
    difficulty: tuple[Cell, ...]
    search_need: SearchNeed = ""
    standing: Standing = "proved"
    depiction: Depiction | None = None
    """How the picture was chosen for the anchor."""
    original: Picture | None = None
    """The picture before it was degraded or set in a scene, where it was."""
    trial: Trial | None = None
    """How it was degraded, and what showed that the repair restores it."""
    scene: Scene | None = None
    """Where it lies in a scene, and what showed that it must be cut out."""
    reading: Reading | None
    """What an independent reader understood the text to ask; None for a question from outside."""
    screening: Screening | None
    """What it found that the text gives away: nothing; None for a question from outside."""
    origin: Origin | None = None
    """Where a question from outside comes from; one with a proof has none."""
    knowledge: Knowledge = ""
    trace: Trace | None = None
    """What proves a question about the news."""

    @property
    def hops(self) -> int:
        """Facts between picture and answer as the question's own paper counts them."""
        return len(self.proof.hops) if self.trace is None else self.trace.hops

    @property
    def hops_named(self) -> str:
        """Number of hops of what proves it, or ``none``."""
        return str(self.hops) if self.trace is not None or self.proof.nodes else "none"


ReleaseRow = SftRow | RlRow | VqaRow | BridgeVqaRow
ROW_TYPES: Mapping[Dataset, type[ReleaseRow]] = {
    "sft": SftRow,
    "rl": RlRow,
    "vqa": VqaRow,
    "bridgevqa": BridgeVqaRow,
    "exam": VqaRow,
}


def shorten(value: object) -> str:
    """Return a value as a message quotes it."""
    text = repr(value)
    return text if len(text) <= QUOTED else f"{text[:QUOTED]}..."


def list_misfits(error: ValidationError) -> list[str]:
    """Return what does not fit a model, one text for each place in the value."""
    parts = error.errors(include_url=False, include_context=False, include_input=False)
    return [
        f"{'.'.join(map(str, part['loc'])) or 'row'}: {part['msg'].removeprefix('Value error, ')}" for part in parts
    ]


def explain_misfit(error: ValidationError) -> str:
    """Return the first few places in which values do not fit a row."""
    return "; ".join(list_misfits(error)[:SHOWN_ERRORS])


DTYPES = {pa.string(): "string", pa.int64(): "int64", pa.float64(): "float64", pa.bool_(): "bool"}


def is_image(kind: pa.DataType) -> bool:
    """Say whether a type is the Image feature's storage, ``struct<bytes, path>``."""
    return pa.types.is_struct(kind) and {field.name for field in kind} == {"bytes", "path"}


def relax_type(kind: pa.DataType) -> pa.DataType:
    """Return the type with every field nullable, as the datasets library writes and casts to."""
    if pa.types.is_list(kind):
        return pa.list_(relax_type(kind.value_type))
    if pa.types.is_struct(kind):
        return pa.struct([pa.field(field.name, relax_type(field.type)) for field in kind])
    return kind


def make_release_schema(model: type[BaseModel]) -> pa.Schema:
    """Return the Arrow schema of a release's data files, with the ``huggingface`` metadata."""
    schema = pa.schema([pa.field(field.name, relax_type(field.type)) for field in derive_schema(model)])
    features = {field.name: describe_feature(field.type) for field in schema}
    return schema.with_metadata({"huggingface": json.dumps({"info": {"features": features}}, sort_keys=True)})


def describe_feature(kind: pa.DataType) -> Any:  # noqa: ANN401 - a JSON value
    """Return a type as the datasets library's JSON form of a feature."""
    if is_image(kind):
        return {"_type": "Image"}
    if pa.types.is_list(kind):
        return [describe_feature(kind.value_type)]
    if pa.types.is_struct(kind):
        return {field.name: describe_feature(field.type) for field in kind}
    return {"dtype": DTYPES[kind], "_type": "Value"}


GROUP_ROWS = 100
ROWS_AT_ONCE = 8
LEVEL = 3


def name_shard(split: str, number: int, of: int) -> str:
    """Return the file name that the Hub finds a split by."""
    return f"{split}-{number:05d}-of-{of:05d}.parquet"


def plan_shards(split: str, weights: Sequence[int], limit: int) -> list[tuple[str, range]]:
    """Return file names and rows of a split's shards, each of at most ``limit`` bytes or of one heavier row."""
    starts, total = [0], 0
    for index, weight in enumerate(weights):
        if total and total + weight > limit:
            starts.append(index)
            total = 0
        total += weight
    stops = [*starts[1:], len(weights)]
    places = map(range, starts, stops)
    return [(name_shard(split, number, len(starts)), rows) for number, rows in enumerate(places)]


def write_shard_file(path: Path, schema: pa.Schema, rows: Iterable[BaseModel]) -> tuple[FileEntry, int]:
    """Write a file, a row group in memory at a time; return its entry and its rows' size in Arrow memory in bytes."""
    path.parent.mkdir(parents=True, exist_ok=True)
    count = memory = 0
    with open_writer(path, schema) as writer:
        waiting = iter(rows)
        while group := [row.model_dump() for row in islice(waiting, GROUP_ROWS)]:
            table = pa.Table.from_pylist(group, schema=schema)
            count += len(group)
            memory += table.nbytes
            writer.write_table(table)
    return describe_file(path, path.parent.parent, count), memory


def open_writer(path: Path, schema: pa.Schema) -> pq.ParquetWriter:
    """Open a Parquet writer with the settings of every release file."""
    return pq.ParquetWriter(
        path,
        schema,
        compression="zstd",
        compression_level=LEVEL,
        write_page_index=True,
        use_content_defined_chunking=True,
    )


def read_values(path: Path) -> Iterator[dict[str, Any]]:
    """Yield the rows of a Parquet file, a few in memory at a time: each may hold its pictures."""
    with pq.ParquetFile(path) as source:
        for group in range(source.num_row_groups):
            # One call for all groups would keep every group in memory.
            for batch in source.iter_batches(batch_size=ROWS_AT_ONCE, row_groups=[group]):
                yield from batch.to_pylist()


def describe_file(path: Path, root: Path, rows: int) -> FileEntry:
    """Return a file's entry for the manifest; the name is relative to ``root``."""
    return FileEntry(
        name=path.relative_to(root).as_posix(), rows=rows, bytes=path.stat().st_size, sha256=digest_file(path)
    )


def list_files(folder: Path) -> Iterator[Path]:
    """Yield every file of a folder tree in a fixed order."""
    yield from sorted(path for path in folder.rglob("*") if path.is_file())
