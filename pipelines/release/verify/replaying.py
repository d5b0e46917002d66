"""Rows made again as the examples they were published from, for what publishing measures and credits.

A transcript's messages are read as steps. Its calls, and searches by an RL question's picture, are made again with
tools that the corpus alone decides; the manifest's settings say which tools a run had. What asked a live service, a
model or an encoder cannot be made again; it is counted, never passed over in silence.
"""

import asyncio
from collections import Counter
from collections.abc import Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import takewhile
from types import TracebackType

import numpy as np

from pipelines.agent.contamination import Watched
from pipelines.agent.dialects import Dialect, find_dialect, list_specs
from pipelines.agent.observations import Thumbnails, ToolOutcome, credit_picture, keep_results
from pipelines.agent.picture_search import LocalImageSearch
from pipelines.agent.pictures import KEPT_RESULTS, has_opencv
from pipelines.agent.tools import ToolBox, call_tool
from pipelines.agent.transcript import Turn, parse_turn, render_observation
from pipelines.checks.rollouts import find_fatal
from pipelines.config.disclosure import read_sections
from pipelines.config.settings import ToolsConfig
from pipelines.corpus.search import LocalPages, LocalTextSearch
from pipelines.corpus.store import Corpus
from pipelines.errors import RecordFailed
from pipelines.ids import digest_value
from pipelines.pictures import PictureSource, PictureStore, open_pixels
from pipelines.release.card import Credit
from pipelines.release.making import Example
from pipelines.release.manifest import ReleaseManifest
from pipelines.release.rows import (
    PLACEHOLDER,
    EmbeddedImage,
    ProofRow,
    ReleaseRow,
    RlRow,
    SftRow,
    shorten,
    show_pictures,
    strip_page_text,
)
from pipelines.release.verify.transcripts import FAILED, PICTURES, WARNING, read_shown, read_tool_names
from pipelines.services.protocols import PictureFile, TextBlock
from schemas.datasets import (
    Dataset,
    Enhancement,
    Observation,
    Picture,
    ReleaseEntry,
    RolloutImage,
    SearchResult,
    Split,
    Step,
    Trajectory,
)

NOBODY = PictureSource("", "", "", "", "")
LOOK_ALIKE, BLOCK = 12.0, 16
"""Mean difference of two pictures' channels, of 255, up to which any square of so many pixels a side is one picture's,
saved by two versions of a library."""
_VISION = frozenset({"super_resolution", "perspective_correct"})
_PLAIN = frozenset({"crop", "sharpen"})
_BLOCKED = digest_value(list(ToolsConfig().blocked_hosts))
"""Digest of the hosts that are blocked unless a run says otherwise; a release does not name the others."""


class _NoEngine:
    """Stands for the engine of a run, so that its tool is offered; calls of it are not made again."""

    name = identity = "none"

    async def read_text(self, data: bytes, scale: float = 1.0) -> tuple[TextBlock, ...]:
        """Read nothing."""
        raise RecordFailed("tool-failed", f"nothing reads {len(data)} bytes, enlarged by {scale:g}")


def find_reach(manifest: ReleaseManifest, dialect: Dialect) -> frozenset[str]:
    """Return our tools whose calls can be made again, as the settings that a manifest tells say."""
    told, untold = manifest.told, manifest.untold
    if told.get("tools.family") != "local":
        return frozenset()
    # A model may have summed up a page that was visited, and in some dialects what a search found.
    summarised = told.get("tools.summarise") is not False
    tools = {*_PLAIN, *([] if summarised else ["visit"])}
    tools |= (
        {"image_search"} if told.get("tools.image_search") == "hash" and told.get("commons.fetch") is False else set()
    )
    tools |= set() if summarised and dialect.reads_pages(True) else {"text_search"}
    tools |= {"layout_parsing"} if told.get("tools.layout") == "" else set()
    tools |= {"perspective_correct"} if has_opencv() else set()
    tools |= {"super_resolution"} if untold.get("tools.edsr") == digest_value("") else set()
    if untold.get("tools.blocked_hosts") != _BLOCKED:
        tools -= {"visit", "text_search", "image_search"}
    return frozenset(tools)


@dataclass
class Replayer:
    """Makes calls again. A context; pictures lie in a folder of their own."""

    corpus: Corpus
    manifest: ReleaseManifest
    store: PictureStore
    sources: Mapping[str, Credit] = field(default_factory=dict)
    """Lines of the release's attribution about pictures, by sha256: for pictures that cannot be made again."""
    skipped: Counter[str] = field(default_factory=Counter)
    """Calls that cannot be made again, by tool."""
    alike: int = 0
    """Pictures that look as they should and have other bytes."""
    calls: int = 0
    _runner: asyncio.Runner = field(default_factory=asyncio.Runner)
    _made: dict[str, ToolOutcome] = field(default_factory=dict)
    _boxes: dict[tuple[frozenset[str], str], ToolBox] = field(default_factory=dict)
    _search: LocalImageSearch = field(init=False)

    def __post_init__(self) -> None:
        self._search = LocalImageSearch(self.corpus, thumbnails=Thumbnails(self.store))

    def __enter__(self) -> "Replayer":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._runner.close()

    def can_replay(self, turn: Turn, dialect: Dialect) -> bool:
        """Say whether the call of a turn is decided by corpus and pictures alone."""
        reach, known = find_reach(self.manifest, dialect), {spec.name for spec in list_specs(opencv=True, layout=True)}
        return turn.tool in reach or (bool(reach) and turn.tool not in known)

    def replay(
        self, turn: Turn, dialect: Dialect, offered: frozenset[str], images: Sequence[RolloutImage]
    ) -> ToolOutcome:
        """Return the outcome of a call, which can be made again, among a rollout's stored pictures so far."""
        shown = [image.picture.sha256 for image in images]
        pictures = shown if turn.tool in _VISION | _PLAIN | {"image_search", "layout_parsing"} else []
        key = digest_value([dialect.name, turn.tool, turn.arguments, sorted(offered), pictures])
        if key not in self._made:
            tools, about = self._open_tools(offered, dialect), Watched("")
            self._made[key] = self._runner.run(call_tool(tools, dialect, turn, images, about))
        self.calls += 1
        return self._made[key]

    def search(self, picture: Picture, count: int) -> tuple[SearchResult, ...] | None:
        """Return what a search by a stored picture finds; None where that cannot be made again."""
        if "image_search" not in find_reach(self.manifest, find_dialect("synth")):
            return None
        file = PictureFile(picture.sha256, self.store.path(picture.sha256, picture.extension))
        try:
            return keep_results(self._runner.run(self._search.search_image(file, count))) if count else ()
        except RecordFailed:
            return ()

    def keep(self, image: EmbeddedImage) -> Picture:
        """Store a row's picture, with the credit that the attribution gives it."""
        line = self.sources.get(image.path.partition(".")[0])
        told = line and PictureSource(line.title, line.author, line.licence, line.licence_url, line.url)
        return self.store.add_bytes(image.bytes, told or NOBODY)

    def judge(self, made: Picture, image: EmbeddedImage) -> Picture | None:
        """Return a row's picture with the credit of the one that was made again; None if it is another picture."""
        given = self.store.add_bytes(image.bytes, credit_picture(made))
        if given.sha256 == made.sha256:
            return given
        alike = look_alike(self.store.read(made), image.bytes)
        self.alike += alike
        return given if alike else None

    def _open_tools(self, offered: frozenset[str], dialect: Dialect) -> ToolBox:
        if (offered, dialect.name) not in self._boxes:
            settings = ToolsConfig.model_validate(read_sections(self.manifest.told).get("tools", {}), strict=False)
            self._boxes[offered, dialect.name] = ToolBox(
                text_search=LocalTextSearch(self.corpus),
                image_search=self._search,
                pages=LocalPages(self.corpus),
                store=self.store,
                settings=settings,
                ocr=_NoEngine() if "layout_parsing" in offered else None,
                opencv=bool(offered & _VISION),
                reads=dialect.reads_pages(summarised=False),
                snapshot=self.corpus.snapshot,
            )
        return self._boxes[offered, dialect.name]


def look_alike(made: bytes, given: bytes) -> bool:
    """Say whether two picture files show the same pixels, but for what another version of a codec changes."""
    one, other = (open_pixels(data).convert("RGB") for data in (made, given))
    if one.size != other.size:
        return False
    apart = np.abs(np.asarray(one, dtype=np.int16) - np.asarray(other, dtype=np.int16)).mean(axis=2)
    rows, columns = (np.arange(0, side, BLOCK) for side in apart.shape)
    sums = np.add.reduceat(np.add.reduceat(apart, rows, axis=0), columns, axis=1)
    sizes = np.outer(np.diff([*rows, apart.shape[0]]), np.diff([*columns, apart.shape[1]]))
    return float((sums / sizes).max()) <= LOOK_ALIKE


SPLITS: Mapping[tuple[Dataset, str], tuple[Split, ...]] = {
    ("sft", "train"): ("sft",),
    ("rl", "train"): ("rl",),
    ("vqa", "train"): ("sft", "rl"),
    ("vqa", "test"): ("eval",),
    ("bridgevqa", "train"): ("sft", "rl"),
    ("bridgevqa", "test"): ("eval",),
    ("exam", "test"): ("eval",),
}
"""By dataset and split of a release, the splits of entities that its rows may be of."""


@dataclass(slots=True)
class Remade:
    """A row as it was before it was published, and what speaks against that."""

    example: Example
    problems: list[str] = field(default_factory=list)
    replayed: bool = True
    """Whether every call was made again."""


def remake_row(dataset: Dataset, proof: ProofRow, row: ReleaseRow, replayer: Replayer) -> Remade:
    """Return a row as an example, for a row that is made from its proof as it should be."""
    question = _remake_question(dataset, proof)
    entry = ReleaseEntry(record_id="", parent_id=proof.record_id, dataset=dataset, split=proof.split, trajectory_id="")
    match row:
        case SftRow():
            course = _Course(row, proof, replayer)
            problems = list(course.replay())
            entry = entry.model_copy(update={"trajectory_id": row.id})
            return Remade(Example(entry, question, course.make_trajectory()), problems, course.whole)
        case RlRow():
            found, problems, whole = _remake_search(row, proof, replayer)
            return Remade(Example(entry, question.model_copy(update={"found": found}), None), problems, whole)
    return Remade(Example(entry, question, None))


def _remake_question(dataset: Dataset, proof: ProofRow) -> Enhancement:
    values = {name: getattr(proof, name) for name in ProofRow.model_fields if name in Enhancement.model_fields}
    split = SPLITS.get((dataset, proof.split), ("sft",))[0]
    return Enhancement(**values | {"parent_id": "", "split": split, "cells": proof.difficulty})


def _remake_search(row: RlRow, proof: ProofRow, replayer: Replayer) -> tuple[tuple[SearchResult, ...], list[str], bool]:
    made = None
    if row.images and proof.picture is not None:
        made = replayer.search(replayer.keep(row.images[0]), KEPT_RESULTS)
    if made is None:
        replayer.skipped["image_search"] += bool(row.image_search)
        kept = [(page, replayer.keep(page.thumbnail) if page.thumbnail else None) for page in row.image_search]
        taken = (SearchResult(url=page.url, title=page.title, thumbnail=thumbnail) for page, thumbnail in kept)
        return tuple(taken), [], not row.image_search
    problems = []
    told = [(strip_page_text(each.title), each.url) for each in made]
    if told != [(page.title, page.url) for page in row.image_search]:
        problems.append(f"image_search: a search by the picture finds {shorten(told)}")
        return made, problems, True
    shown = []
    for number, (each, page) in enumerate(zip(made, row.image_search, strict=True)):
        thumbnail = replayer.judge(each.thumbnail, page.thumbnail) if each.thumbnail and page.thumbnail else None
        if thumbnail is None and (each.thumbnail or page.thumbnail):
            problems.append(f"image_search: thumbnail {number} is not the picture that a search finds")
        shown.append(each.model_copy(update={"thumbnail": thumbnail or each.thumbnail}))
    return tuple(shown), problems, True


class _Course:
    def __init__(self, row: SftRow, proof: ProofRow, replayer: Replayer) -> None:
        self.row, self.proof, self.replayer = row, proof, replayer
        self.dialect: Dialect = find_dialect(row.dialect)
        named = read_tool_names(row.tools)
        ours = (spec.name for spec in list_specs(opencv=True, layout=True))
        self.offered = frozenset(name for name in ours if self.dialect.name_tool(name) in named)
        self.images: list[RolloutImage] = []
        self.steps: list[Step] = []
        self.whole = True
        if proof.picture is not None:
            replayer.keep(row.images[0])
            self.images.append(RolloutImage(id="img_1", picture=proof.picture))

    def replay(self) -> Iterator[str]:
        """Yield what an observation says otherwise than its tool; the steps and pictures are kept."""
        said = [message.content for message in self.row.messages if message.role == "assistant"]
        told = [message.content for message in self.row.messages if message.role == "user"][1:]
        for number, (reply, content) in enumerate(zip(said, [*told, None], strict=True), 1):
            turn = parse_turn(reply, self.dialect)
            if content is None or not turn.tool:
                self.steps.append(_make_step(turn, reply, None))
                continue
            observation = yield from self._observe(number, turn, content)
            self.steps.append(_make_step(turn, reply, observation))

    def _observe(self, number: int, turn: Turn, content: str) -> Generator[str, None, Observation]:
        lead = PICTURES.match(content)
        shown = lead[0].count(PLACEHOLDER) if lead else 0
        given = self.row.images[len(self.images) : len(self.images) + shown]
        if not self.replayer.can_replay(turn, self.dialect):
            self.replayer.skipped[turn.tool] += 1
            self.whole = False
            return self._take(turn, content, given, None)
        outcome = self.replayer.replay(turn, self.dialect, self.offered, self.images)
        wanted = _render(outcome.observation, self.dialect)
        if wanted != content:
            told = _part(content, wanted)
            yield f"messages: the observation after turn {number} is not what {turn.tool} finds: {told}"
            self.whole = False
            return self._take(turn, content, given, None)
        for place, (made, image) in enumerate(zip(outcome.images, given, strict=False)):
            if self.replayer.judge(made.picture, image) is None:
                yield f"images: picture {len(self.images) + place} is not what {turn.tool} makes in turn {number}"
        return self._take(turn, content, given, outcome)

    def _take(
        self, turn: Turn, content: str, given: Sequence[EmbeddedImage], outcome: ToolOutcome | None
    ) -> Observation:
        names = [f"img_{len(self.images) + place}" for place in range(1, len(given) + 1)]
        credited = [each.picture for each in outcome.images] if outcome else []
        for place, (name, image) in enumerate(zip(names, given, strict=True)):
            picture = self.replayer.judge(credited[place], image) if place < len(credited) else None
            self.images.append(RolloutImage(id=name, picture=picture or self.replayer.keep(image)))
        return outcome.observation if outcome else _read_observation(content, names, self.dialect)

    def make_trajectory(self) -> Trajectory:
        """Return the transcript as an accepted rollout; what a row does not tell is left empty."""
        row, proof, nodes = self.row, self.proof, self.proof.proof.nodes
        path = tuple(node.title for node in nodes)
        bridges = tuple(node.title for node in nodes if node.role == "bridge")
        if proof.trace is not None:
            path, bridges = (proof.trace.anchor, proof.trace.bridge), (proof.trace.bridge,)
        fatal = find_fatal(self.steps)
        return Trajectory(
            record_id=row.id,
            parent_id=row.question_id,
            split="sft",
            attempt=0,
            teacher="",
            prompt="",
            system=next((message.content for message in row.messages if message.role == "system"), ""),
            question=strip_page_text(proof.text),
            images=tuple(self.images),
            steps=tuple(self.steps),
            answer=parse_turn(row.messages[-1].content, self.dialect).answer,
            stop_reason="answered",
            reference=proof.answer,
            bridges=bridges,
            path=path,
            dialect=row.dialect,
            fatal_begins=fatal[0] if fatal else None,
            fatal_reached=fatal[1] if fatal else None,
            day=row.day,
            snapshot=row.snapshot,
            verdict="correct",
            decided_by="",
            supports=row.supports,
            loss=row.loss,
            tokens=row.tokens,
            left_out=(),
        )


def _make_step(turn: Turn, reply: str, observation: Observation | None) -> Step:
    return Step(thought=turn.thought, tool=turn.tool, arguments=turn.arguments, reply=reply, observation=observation)


def _render(observation: Observation, dialect: Dialect) -> str:
    clean = observation.model_copy(update={"text": strip_page_text(observation.text)})
    return show_pictures(len(clean.images), render_observation(clean, dialect))


def _read_observation(content: str, names: Sequence[str], dialect: Dialect) -> Observation:
    text = read_shown(content, dialect) or ""
    error = FAILED.match(text)
    warning = WARNING.match(text)
    lead = error or warning
    named = lead[0].partition(": ")[2].strip() if lead else ""
    return Observation(
        ok=error is None,
        error=named if error else "",
        warning=named if warning else "",
        text=text[lead.end() :] if lead else text,
        images=tuple(names),
    )


def _part(given: str, wanted: str) -> str:
    place = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(given, wanted, strict=False)))
    start = max(0, place - 10)
    return f"{shorten(given[start:])} instead of {shorten(wanted[start:])}"
