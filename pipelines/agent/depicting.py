"""Which of several pictures shows an entity best (OpenSearch-VL, section 3.1; research/quality.md I6)."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from pipelines.agent import file_evidence
from pipelines.agent.candidates import Candidate
from pipelines.agent.file_evidence import explain_evidence, gather_evidence, weigh_evidence
from pipelines.backends.protocols import ImageEncoder, PictureFile
from pipelines.corpus import descriptions
from pipelines.corpus.descriptions import describe_entity
from pipelines.corpus.store import Corpus
from pipelines.errors import RecordFailed
from pipelines.graph.distractors import Draw, choose_distractors, find_lead_picture

VERSION = 1
_DIGITS = 4
"""Similarities are rounded so: another batch size moves the digits after."""
Vectors = NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Ranked:
    """A candidate and how well it fits."""

    candidate: Candidate
    score: float
    """Cosine similarity to the anchor's description, or points (0..1) from metadata."""
    margin: float | None
    """Score less the best of all others; None with the metadata ranker, and where nobody was there to compare."""
    distractors: int
    """Entities it was held against, those of the path not counted."""
    over_threshold: bool | None
    """Whether the score exceeds the absolute threshold; None with the metadata ranker."""
    note: str = ""
    """Who came nearest, or what speaks for and against it; for a reader."""


class Ranker(Protocol):
    """Orders an anchor's candidates."""

    @property
    def name(self) -> str:
        """``metadata`` or the encoder's name, as rows and cards show it."""

    @property
    def identity(self) -> str:
        """All that decides the order and the numbers, beside the corpus."""

    async def rank(self, node: int, path: Sequence[int], candidates: Sequence[Candidate]) -> tuple[Ranked, ...]:
        """Return the candidates best first, equals in the order given; those that cannot be decoded are left out.

        Args:
            node: the anchor.
            path: all nodes of the path; the anchor may be among them.
            candidates: pictures to compare.

        Raises:
            ServiceError: if the encoder is away, or a picture's file: a folder that is not mounted says nothing
                against a picture.
        """


@dataclass(frozen=True, slots=True)
class MetadataRanker:
    """Orders by what is known without looking: the table of :mod:`pipelines.agent.file_evidence`."""

    corpus: Corpus

    @property
    def name(self) -> str:
        """As rows show it."""
        return "metadata"

    @property
    def identity(self) -> str:
        """Name and version of the table."""
        return f"metadata@{file_evidence.VERSION}"

    async def rank(self, node: int, path: Sequence[int], candidates: Sequence[Candidate]) -> tuple[Ranked, ...]:
        """Order by points; see :class:`Ranker`."""
        ranked = []
        for candidate in candidates:
            evidence = gather_evidence(self.corpus, node, candidate.image, candidate.source)
            points = weigh_evidence(evidence)
            ranked.append(Ranked(candidate, points, None, 0, None, explain_evidence(evidence)))
        return _sort_best_first(ranked)


@dataclass(frozen=True, slots=True)
class ClipRules:
    """What similarities are compared with."""

    threshold: float
    """Absolute similarity; exceeding it is noted, and decides nothing here."""
    distractors: int
    """Entities of the anchor's type that it is held against."""
    seed: int
    """Decides who is drawn."""
    reach: int = 10
    """Times as many are drawn, and those described most like the anchor are taken; with 1 whoever is drawn. Against
    twenty drawn at will, one wrong set of eight in eight gets through; against the nearest of many hardly one."""


@dataclass(frozen=True, slots=True)
class _Others:
    """Whom an anchor is held against, beside the anchor's own description."""

    text: Vectors
    """The anchor's, of shape (d,)."""
    titles: tuple[str, ...]
    texts: Vectors
    """One row a title, of shape (n, d)."""
    pictures: tuple[tuple[str, PictureFile], ...]
    """Lead pictures at hand, with the titles of whose they are."""
    distractors: int


@dataclass(frozen=True, slots=True)
class ClipRanker:
    """Orders by similarity to a short description of the anchor, and measures how far others stay behind.

    The margin is the similarity of description and picture, less the best of: this picture with the description of any
    other, and any other's lead picture with this description. Others are entities of the anchor's type, those described
    most like it, and the rest of the path.
    """

    corpus: Corpus
    encoder: ImageEncoder
    rules: ClipRules

    @property
    def name(self) -> str:
        """The encoder's."""
        return self.encoder.name

    @property
    def identity(self) -> str:
        """Encoder, rules, and versions of the ranker and of the descriptions."""
        return f"clip@{VERSION}.{descriptions.VERSION}:{self.rules!r}:{self.encoder.identity}"

    async def rank(self, node: int, path: Sequence[int], candidates: Sequence[Candidate]) -> tuple[Ranked, ...]:
        """Order by similarity; see :class:`Ranker`."""
        if not candidates:
            return ()
        others = await self._find_others(node, path)
        files = [*(candidate.file for candidate in candidates), *(file for _, file in others.pictures)]
        pictures = await _encode_readable(self.encoder, files)
        best, note = _find_best_picture(others, pictures[len(candidates) :])
        ranked = []
        for candidate, picture in zip(candidates, pictures, strict=False):
            if picture is not None:
                ranked.append(self._measure(candidate, picture, others, best, note))
        return _sort_best_first(ranked)

    async def _find_others(self, node: int, path: Sequence[int]) -> _Others:
        rest = [other for other in dict.fromkeys(path) if other != node]
        # The first anchor of a type has hundreds of articles read, for which no other record should wait.
        drawn, described = await asyncio.to_thread(self._describe_others, node, rest)
        texts = await self.encoder.encode_texts(described)
        likeness = np.round(texts[1 : len(drawn) + 1] @ texts[0], _DIGITS)
        nearest = np.sort(np.argsort(-likeness, kind="stable")[: self.rules.distractors])
        rows = [*nearest.tolist(), *range(len(drawn), len(drawn) + len(rest))]
        nodes = [(*drawn, *rest)[row] for row in rows]
        titles = tuple(self.corpus.page(other).title for other in nodes)
        shown = ((title, find_lead_picture(self.corpus, other)) for title, other in zip(titles, nodes, strict=True))
        pictures = tuple((title, file) for title, file in shown if file is not None)
        return _Others(texts[0], titles, texts[[row + 1 for row in rows]], pictures, len(nearest))

    def _describe_others(self, node: int, rest: Sequence[int]) -> tuple[tuple[int, ...], list[str]]:
        """Return who is drawn, and the descriptions of the anchor, of those drawn and of the rest of the path."""
        rules = self.rules
        draw = Draw(rules.distractors, rules.distractors * rules.reach, rules.seed)
        drawn = choose_distractors(self.corpus, node, draw, rest)
        return drawn, [describe_entity(self.corpus, other) for other in (node, *drawn, *rest)]

    def _measure(self, candidate: Candidate, picture: Vectors, others: _Others, best: float, note: str) -> Ranked:
        """Compare a picture with all descriptions; ``best`` is the most that another's picture has, ``note`` whose."""
        score = round(float(others.text @ picture), _DIGITS)
        likeness = others.texts @ picture
        if len(likeness) and not float(likeness.max()) < best:
            best, note = float(likeness.max()), f"this picture with {others.titles[int(np.argmax(likeness))]!r}"
        margin = None if best == -np.inf else round(score - round(best, _DIGITS), _DIGITS)
        over = score > self.rules.threshold
        return Ranked(candidate, score, margin, others.distractors, over, f"{note}: {best:.3f}")


def _find_best_picture(others: _Others, pictures: Sequence[Vectors | None]) -> tuple[float, str]:
    """Return the highest similarity of the anchor's description to another's picture, and whose; -inf for none."""
    found = [
        (float(others.text @ picture), f"lead picture of {title!r}")
        for (title, _), picture in zip(others.pictures, pictures, strict=True)
        if picture is not None
    ]
    return max(found, key=lambda pair: pair[0], default=(-np.inf, "nobody"))


async def _encode_readable(encoder: ImageEncoder, files: Sequence[PictureFile]) -> list[Vectors | None]:
    """Return a vector a picture, None for one that cannot be decoded. One call, unless one cannot."""
    try:
        return list(await encoder.encode_pictures(files))
    except RecordFailed:
        return list(await asyncio.gather(*(_encode_alone(encoder, file) for file in files)))


async def _encode_alone(encoder: ImageEncoder, file: PictureFile) -> Vectors | None:
    """Return a picture's vector, None for one that cannot be decoded.

    Raises:
        ServiceError: if the encoder is away, or the picture's file.
    """
    try:
        (row,) = await encoder.encode_pictures([file])
    except RecordFailed:
        return None
    vector: Vectors = row
    return vector


def _sort_best_first(ranked: Sequence[Ranked]) -> tuple[Ranked, ...]:
    return tuple(sorted(ranked, key=lambda each: -each.score))
