"""Pools: questions that others asked, from files, in the shape of grounded ones. They have no proof.

Every question of a file is kept or refused with a reason. Pictures are decoded whole and kept in the image store;
answers are typed as those of walked questions, so that one comparer reads both.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from pathlib import Path
from typing import ClassVar

from pipelines.checks.leakage import check_answer
from pipelines.config.settings import PoolConfig
from pipelines.corpus.layouts import (
    ForeignQuestion,
    PictureFolder,
    UnreadRow,
    read_entities,
    read_questions,
)
from pipelines.errors import ConfigError, RecordFailed
from pipelines.graph.answers import count_tokens, is_no_answer, type_reference
from pipelines.graph.proofs import NO_PROOF, make_question_id
from pipelines.ids import digest_value
from pipelines.pictures import PictureSource, PictureStore
from pipelines.plugins import Plugin
from pipelines.services.prompting import WithoutModels
from pipelines.splits import SplitRule
from schemas.base import Failure, Record, Rejection
from schemas.datasets import Grounding, Origin, Picture, Split
from schemas.proofs import Answer
from schemas.reasons import PoolReason

LONGEST_QUESTION = 2000
"""Characters."""
SHOWN = 80
UNKNOWN = "unknown"
"""Licence of a pool that says none: its rows are released only where unknown licences may be."""


class Refused(Exception):
    """A question that is not taken."""

    def __init__(self, reason: PoolReason, detail: str = "") -> None:
        super().__init__(detail)
        self.reason: PoolReason = reason
        self.detail = detail[:SHOWN]


def check_files(pools: Sequence[PoolConfig]) -> None:
    """Look for the files of pools, before anything is built for them."""
    for pool in pools:
        for key in ("path", "images", "entities"):
            named = getattr(pool, key)
            if named and not Path(named).exists():
                raise ConfigError(f"configuration: pools {pool.name}: {key} {named}: no such file")
        if pool.images:
            PictureFolder(Path(pool.images)).probe()


@dataclass(frozen=True)
class OpenPool:
    """A pool with its files."""

    settings: PoolConfig
    digest: Callable[[Path], str]
    """Of the contents of a file, or of all files of a folder with their names."""
    source: Plugin | None = None
    """Reads the file in place of a layout."""

    @cached_property
    def identity(self) -> str:
        said = self.settings.model_dump(mode="json", exclude={"path", "images", "entities", "share", "plugin"})
        said |= {"plugin": self.source.identity} if self.source else {}
        named = (self.settings.path, self.settings.entities, self.settings.images)
        return digest_value([said, *(self.digest(Path(each)) if each else "" for each in named)])

    @cached_property
    def pictures(self) -> PictureFolder | None:
        """Where its pictures lie; None for those that are in its file."""
        return PictureFolder(Path(self.settings.images)) if self.settings.images else None

    @cached_property
    def entities(self) -> Mapping[str, str]:
        """What each question's picture shows, by the question's id, where a file says."""
        return read_entities(Path(self.settings.entities)) if self.settings.entities else {}

    def read(self) -> Iterator[tuple[str, ForeignQuestion | UnreadRow]]:
        """Yield its questions and the rows without one, each with an id that no other candidate of the run has."""
        own = self.settings
        read = self.source.made if self.source else partial(read_questions, layout=own.layout, columns=own.columns)
        for number, asked in enumerate(read(Path(own.path))):
            yield f"pool:{own.name}:{number}", asked


@dataclass(frozen=True)
class Pools(WithoutModels):
    """The stage: files in, questions without a proof out, with every candidate either kept or refused."""

    pools: tuple[PoolConfig, ...]
    pictures: PictureStore
    splits: SplitRule
    max_answer_tokens: int
    digest: Callable[[Path], str]
    """Of the contents of a file, or of all files of a folder with their names."""
    sources: Mapping[str, Plugin] = field(default_factory=dict)
    """What reads a pool's file, by the pool's name, where no layout does."""
    name: str = "pools"
    version: int = 2
    output: ClassVar[type[Record]] = Grounding
    _seen: dict[str, str] = field(default_factory=dict)

    @cached_property
    def opened(self) -> tuple[OpenPool, ...]:
        """The pools with their files."""
        return tuple(OpenPool(pool, self.digest, self.sources.get(pool.name)) for pool in self.pools)

    def fingerprint(self) -> str:
        """Digest of the pools' files and settings, the splits and the longest answer."""
        check_files(self.pools)
        identities = [pool.identity for pool in self.opened]
        return digest_value([identities, repr(self.splits), self.max_answer_tokens])

    def count_candidates(self) -> int:
        return sum(1 for pool in self.opened for _ in pool.read())

    def __call__(self) -> Iterator[Grounding | Rejection | Failure]:
        self._seen.clear()
        for pool in self.opened:
            for candidate, asked in pool.read():
                try:
                    yield self._take(pool, candidate, asked)
                except Refused as refused:
                    yield Rejection(record_id=candidate, reason=refused.reason, detail=refused.detail)

    def _take(self, pool: OpenPool, candidate: str, asked: ForeignQuestion | UnreadRow) -> Grounding:
        if isinstance(asked, UnreadRow):
            raise Refused("no-question", asked.why)
        settings, text = pool.settings, " ".join(asked.question.split())
        entity = (asked.entity or pool.entities.get(asked.id, "")).strip()
        answer = self._read_answer(text, asked)
        split = self._choose_split(settings, answer, entity)
        picture = self._store_picture(pool, asked)
        record_id = make_question_id(text, picture.sha256, answer, NO_PROOF)
        if record_id in self._seen:
            raise Refused("duplicate-question", f"same as {self._seen[record_id]}")
        self._seen[record_id] = candidate
        origin = Origin(
            pool=settings.name, row=asked.id, entity=entity, licence=settings.licence or UNKNOWN, source=settings.source
        )
        return Grounding(
            record_id=record_id,
            parent_id=candidate,
            split=split,
            domain=f"pool/{settings.name}",
            text=text,
            fuzzy=text,
            canonical=text,
            picture=picture,
            answer=answer,
            proof=NO_PROOF,
            origin=origin,
        )

    def _read_answer(self, text: str, asked: ForeignQuestion) -> Answer:
        if not text or len(text) > LONGEST_QUESTION:
            raise Refused("no-question", f"{len(text)} characters, {LONGEST_QUESTION} are read" if text else "")
        given = [form for form in asked.answers if form.strip()]
        if not given:
            raise Refused("no-answer")
        if is_no_answer(given[0]):
            raise Refused("placeholder-answer", given[0])
        answer = type_reference(text, given[0], given[1:])
        if answer is None:
            raise Refused("answer-untyped", given[0])
        if count_tokens(answer.surface) > self.max_answer_tokens:
            raise Refused("answer-too-long", given[0])
        told = check_answer(text, answer)
        if not told.passed:
            raise Refused("answer-leak", told.detail)
        return answer

    def _choose_split(self, settings: PoolConfig, answer: Answer, entity: str) -> Split:
        if settings.split:
            return settings.split
        split = self.splits.place("answer", answer.key)
        if entity and self.splits.place("entity", entity) != split:
            raise Refused("other-split", f"answer {split}, entity {self.splits.place('entity', entity)}")
        return split

    def _store_picture(self, pool: OpenPool, asked: ForeignQuestion) -> Picture:
        pictures = asked.pictures
        if not pictures:
            raise Refused("no-picture", "none is named")
        if len(pictures) > 1:
            raise Refused("several-pictures", f"{len(pictures)} pictures")
        (named,) = pictures
        data = named.content or (pool.pictures.read(named) if pool.pictures else None)
        if not data:
            raise Refused("no-picture", f"{named.name!r} is not among the pool's pictures")
        settings = pool.settings
        file = Path(named.name).name or f"{settings.name} {asked.id}"
        source = PictureSource(file, settings.name, settings.licence or UNKNOWN, "", settings.source)
        try:
            return self.pictures.add_bytes(data, source)
        except RecordFailed as error:
            raise Refused("picture-unusable", str(error)) from error
