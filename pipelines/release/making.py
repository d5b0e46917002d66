"""Rows of the datasets and of ``proofs/``, made from questions and trajectories."""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

from pipelines.agent.scenes import TOOL
from pipelines.checks.benchmarks import Benchmarks, Overlap
from pipelines.checks.benchmarks import find_overlaps as find_benchmark_overlaps
from pipelines.checks.sets import Apart, mark_question
from pipelines.corpus.articles import show_text
from pipelines.errors import ConfigError, ConservationError, CorruptInput
from pipelines.pictures import PictureStore
from pipelines.release.rows import (
    ABILITY,
    DATA_SOURCE,
    BridgeVqaRow,
    ChainLink,
    EmbeddedImage,
    ExtraInfo,
    FoundPage,
    ProofRow,
    QuotedFact,
    ReleaseRow,
    RewardModel,
    RlRow,
    RowMessage,
    SftRow,
    VqaRow,
    find_text_dialect,
    list_shown,
    make_messages,
    read_values,
    show_pictures,
    strip_page_text,
)
from schemas.datasets import Enhancement, Picture, ReleaseEntry, SearchResult, Trajectory
from schemas.proofs import Proof, TraceLink

SHA256 = re.compile(r"[0-9a-f]{64}")
EXTENSION = re.compile(r"[a-z0-9]{1,8}")


def name_picture(picture: Picture) -> str:
    """Return ``<sha256>.<extension>``."""
    if not SHA256.fullmatch(picture.sha256) or not EXTENSION.fullmatch(picture.extension):
        raise CorruptInput(
            f"picture {picture.file!r}: {picture.sha256!r}.{picture.extension!r} is not a name in the image store; "
            "it takes 64 hex digits and a short extension"
        )
    return f"{picture.sha256}.{picture.extension}"


def read_picture(root: Path, picture: Picture) -> bytes:
    """Return the bytes of a picture in the workspace's image store, hashed again."""
    name_picture(picture)
    return PictureStore(root / "images").read(picture)


@dataclass(frozen=True, slots=True)
class Example:
    """A release entry with the question and the trajectory it points at."""

    entry: ReleaseEntry
    question: Enhancement
    trajectory: Trajectory | None

    @property
    def row_id(self) -> str:
        """The row's ``id`` column: the trajectory's id for an SFT row, else the question's."""
        return self.entry.trajectory_id or self.question.record_id

    def list_pictures(self) -> tuple[Picture, ...]:
        """Return the row's pictures in reading order."""
        if self.trajectory is not None:
            return list_shown(self.trajectory)
        return (self.question.picture,) if self.question.picture else ()

    def list_thumbnails(self) -> tuple[Picture, ...]:
        """Return the pictures that an RL row shows beside the question's: of what a search by it finds."""
        if self.entry.dataset != "rl":
            return ()
        return tuple(found.thumbnail for found in self.question.found if found.thumbnail)


COPIED = ("stop_reason", "verdict", "loss", "supports", "tokens", "snapshot", "day", "left_out")
TRANSCRIPT = ("id", "images", "messages", "tools", "dialect", *COPIED)
"""The columns of an SFT row that are the trajectory's; the rest follows from the proof."""


@dataclass(frozen=True, slots=True)
class RowMaker:
    """Makes rows of one dataset; pictures are read, hashed and embedded here and nowhere else."""

    root: Path
    tools: str
    system: str = ""
    """In place of the teacher's system message; empty: that one."""

    def make_row(self, example: Example, index: int) -> ReleaseRow:
        """Return an example's row, the ``index``-th of its split."""
        proof = make_proof_row(example)
        if example.entry.dataset == "sft":
            return make_sft_row(proof, self._make_transcript(example))
        images = tuple(map(self._embed, example.list_pictures()))
        if example.entry.dataset in ("vqa", "exam"):
            return make_vqa_row(proof, images)
        if example.entry.dataset == "bridgevqa":
            return make_bridgevqa_row(proof, images)
        return make_rl_row(proof, images, index, tuple(map(self._show_found, example.question.found)))

    def _embed(self, picture: Picture) -> EmbeddedImage:
        return EmbeddedImage(bytes=read_picture(self.root, picture), path=name_picture(picture))

    def _show_found(self, found: SearchResult) -> FoundPage:
        thumbnail = self._embed(found.thumbnail) if found.thumbnail else None
        return FoundPage(title=strip_page_text(found.title), url=found.url, thumbnail=thumbnail)

    def _make_transcript(self, example: Example) -> dict[str, Any]:
        trajectory = example.trajectory
        if trajectory is None:
            raise ConservationError(f"releases: sft entry {example.entry.record_id} has no trajectory")
        messages, pictures = make_messages(trajectory, self.system)
        return {name: getattr(trajectory, name) for name in COPIED} | {
            "id": trajectory.record_id,
            "images": tuple(map(self._embed, pictures)),
            "messages": messages,
            "tools": self.tools,
            "dialect": find_text_dialect(trajectory.dialect).name,
        }


def make_proof_row(example: Example) -> ProofRow:
    """Return an example's question with its proof, as rows are made from it and compared with it."""
    given: dict[str, Any] = {"split": example.entry.split, "difficulty": example.question.cells}
    columns = (name for name in ProofRow.model_fields if name not in given)
    return ProofRow(**given, **{name: getattr(example.question, name) for name in columns})


def make_sft_row(proof: ProofRow, transcript: Mapping[str, Any]) -> SftRow:
    """Return the SFT row of a question and one transcript, columns by name."""
    return SftRow(
        **transcript,
        question_id=proof.record_id,
        question=strip_page_text(proof.text),
        answer=proof.answer.surface,
        answer_aliases=proof.answer.aliases,
        hops=proof.hops,
        n_turns=sum(message.role == "assistant" for message in transcript["messages"]),
    )


def make_rl_row(
    proof: ProofRow, images: tuple[EmbeddedImage, ...], index: int, found: tuple[FoundPage, ...] = ()
) -> RlRow:
    """Return the RL row of a question at a place in its split, with what a search by its picture finds."""
    text, answer = strip_page_text(proof.text), proof.answer.surface
    accepted = tuple(dict.fromkeys((answer, *proof.answer.aliases)))
    return RlRow(
        id=proof.record_id,
        data_source=DATA_SOURCE,
        prompt=(RowMessage(role="user", content=show_pictures(len(images), text)),),
        images=images,
        ability=ABILITY,
        reward_model=RewardModel(style="rule", ground_truth=answer, candidate_answers=accepted),
        extra_info=ExtraInfo(
            index=index,
            split=proof.split,
            question=text,
            answer=answer,
            answer_type=proof.answer.type,
            question_id=proof.record_id,
            need_tools_kwargs=False,
        ),
        image_search=found,
    )


def make_vqa_row(proof: ProofRow, images: tuple[EmbeddedImage, ...]) -> VqaRow:
    """Return the row of a question with at most one picture, for training or for the exam."""
    return VqaRow(
        id=proof.record_id,
        image=images[0] if images else None,
        question=strip_page_text(proof.text),
        answer=proof.answer.surface,
        answer_type=proof.answer.type,
        answer_aliases=proof.answer.aliases,
        hops=len(proof.proof.hops),
        anchor_type=proof.proof.nodes[0].type if proof.proof.nodes else "",
        domain=proof.domain,
        chain=make_chain(proof),
        r_chain=list_counts(proof.proof, "chain"),
        r_alone=list_counts(proof.proof, "alone"),
        n_img=next(iter(list_counts(proof.proof, "answers")), None),
        difficulty=proof.difficulty,
        search_need=proof.search_need,
        standing=proof.standing,
        pool=proof.origin.pool if proof.origin else "",
        ease=proof.depiction.ease if proof.depiction else "",
        degradation=proof.trial.degradation if proof.trial else "",
        repair=proof.trial.repair if proof.trial else TOOL if proof.scene else "",
        object_share=proof.scene.share if proof.scene else 0.0,
        knowledge=proof.knowledge,
        rounds=proof.proof.rounds,
    )


def make_bridgevqa_row(proof: ProofRow, images: tuple[EmbeddedImage, ...]) -> BridgeVqaRow:
    """Return the row of a question about the news."""
    trace = proof.trace
    if trace is None or len(images) != 1:
        raise ConservationError(f"releases: bridgevqa entry {proof.record_id} has no trace, or not one picture")
    return BridgeVqaRow(
        id=proof.record_id,
        image=images[0],
        question=strip_page_text(proof.text),
        answer=proof.answer.surface,
        answer_type=proof.answer.type,
        answer_aliases=proof.answer.aliases,
        hops=proof.hops,
        anchor=trace.anchor,
        anchor_kind=trace.anchor_kind,
        bridge=trace.bridge,
        trace=tuple(map(strip_page_text, trace.steps)),
        evidence=tuple(map(_quote, trace.links)),
        decided_by=trace.decided_by,
        decided_on=trace.decided_on,
        difficulty=proof.difficulty,
        search_need=proof.search_need,
        standing=proof.standing,
        degradation=proof.trial.degradation if proof.trial else "",
        repair=proof.trial.repair if proof.trial else "",
    )


def _quote(link: TraceLink) -> QuotedFact:
    return QuotedFact(
        subject=link.subject,
        relation=link.relation,
        object=link.object,
        quote=strip_page_text(show_text(link.evidence.text)),
        title=strip_page_text(link.evidence.title),
        url=link.url,
        source=link.source,
        published=link.published,
    )


def list_counts(proof: Proof, name: str) -> tuple[int, ...]:
    """Return the proof's counts of one name in node order."""
    return tuple(count.value for count in sorted(proof.counts, key=lambda count: count.node) if count.name == name)


def make_chain(question: Enhancement | ProofRow) -> tuple[ChainLink, ...]:
    """Return the path's hops by title, then its branches; the last link is the attribute that the question asks for."""
    if question.trace is not None:
        names = question.trace.links
        return tuple(ChainLink(relation=link.relation, subject=link.subject, object=link.object) for link in names)
    proof = question.proof
    if not proof.nodes:
        return ()
    titles = {node.page_id: node.title for node in proof.nodes}
    links = [(hop.relation, titles[hop.subject_id], titles[hop.object_id]) for hop in proof.hops]
    links += [(branch.relation, proof.entities[branch.host].title, branch.node.title) for branch in proof.branches]
    links.append((proof.answer_relation, proof.nodes[-1].title, question.answer.surface))
    return tuple(ChainLink(relation=name, subject=subject, object=target) for name, subject, target in links)


def read_apart(folders: Iterable[Path]) -> Apart:
    """Return what releases hold that a question of another one may not share."""
    given = list(folders)
    for folder in given:
        if not (folder / "proofs").is_dir():
            raise ConfigError(f"releases.apart_from: {folder} is no release; name a folder releases/DATASET/VERSION")
    return frozenset().union(*(_mark(row) for folder in given for row in read_proofs(folder)))


def find_overlaps(folder: Path, apart: Apart) -> Iterator[tuple[str, str]]:
    """Yield the questions of a release that share something with other releases, and what."""
    for row in read_proofs(folder):
        yield from ((row.record_id, shared) for shared in sorted(_mark(row) & apart))


def find_benchmarked(folder: Path, benchmarks: Benchmarks) -> Iterator[tuple[str, str]]:
    """Yield the questions of a release that overlap with files of benchmarks, and how; a question may come again.

    Of a row's pictures the first is compared, as it is embedded: what the question shows.
    """
    for overlap in chain(
        find_benchmark_overlaps(read_proofs(folder), benchmarks, None), _find_shown(folder, benchmarks)
    ):
        yield overlap.record_id, f"{overlap.kind} of {overlap.benchmark} {overlap.row}"


def _find_shown(folder: Path, benchmarks: Benchmarks) -> Iterator[Overlap]:
    shown: set[str] = set()
    for path in sorted((folder / "data").glob("*.parquet")) if benchmarks.settings else ():
        for row in read_values(path):
            image = next(iter(row.get("images") or [row.get("image")]), None)
            if image and image["path"] not in shown:
                shown.add(image["path"])
                yield from benchmarks.index.find_shown(row["id"], image["bytes"])


def _mark(row: ProofRow) -> Apart:
    pictures = [picture for picture in (row.picture, row.original) if picture]
    pictures += [part.picture for part in row.scene.parts] if row.scene is not None else []
    return mark_question(row.proof, row.answer, pictures, row.trace, row.origin)


def read_proofs(folder: Path) -> Iterator[ProofRow]:
    """Yield a release's proof rows, file by file."""
    for path in sorted((folder / "proofs").glob("*.parquet")):
        yield from (ProofRow.model_validate(row, strict=False) for row in read_values(path))
