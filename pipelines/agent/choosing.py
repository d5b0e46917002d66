"""Choose the anchor's picture: rank the candidates and take the first that passes every check.

OpenSearch-VL, section 3.1 (anchor-aware grounding), with the checks I3 to I8 of research/quality.md.
"""

import asyncio
import hashlib
import math
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from weakref import WeakKeyDictionary

from pipelines.agent.depicting import CandidateLister, PictureCandidate, Ranked, Ranker, check_depiction
from pipelines.agent.picture_search import LocalImageSearch
from pipelines.agent.pictures import Reader, Reading
from pipelines.checks.legibility import check_readable
from pipelines.checks.pictures import (
    check_copies,
    check_parts,
    check_picture,
    check_simple,
    check_use,
    rate_ease,
)
from pipelines.checks.verdicts import Check, CheckResult, run_checks
from pipelines.config.settings import GroundingsConfig
from pipelines.errors import RecordFailed, Unavailable
from pipelines.ids import digest_value
from pipelines.pictures import MAX_BYTES, PictureSource, PictureStore, Probe, encode_picture, open_pixels, probe_picture
from pipelines.services.protocols import ImageSearch, PictureFile
from schemas.datasets import Depiction, Ease, Picture
from schemas.proofs import Answer

VERSION = 1
"""Version of the order of the checks and of their inputs; part of the choice's identity."""
HITS = 5
"""Results of the search by picture that says how easily the anchor is found."""
OPEN = 16
"""Pictures examined in one event loop at once: files of many megabytes wait for OCR in memory."""


@dataclass(frozen=True, slots=True)
class Anchor:
    """What a picture has to show, and what may not be read in it."""

    node: int
    path: tuple[int, ...]
    """The other nodes of the question."""
    title: str
    qid: str
    lead: str
    """File name of the article's lead picture, empty without one."""
    names: Sequence[Sequence[str]]
    """Of every node, the anchor's first."""
    answer: Answer
    words: frozenset[str]
    """That tell nothing: the types of the nodes."""


@dataclass(frozen=True, slots=True)
class Choice:
    """The chosen picture with its depiction, or the faults of the best candidate."""

    picture: Picture | None = None
    depiction: Depiction | None = None
    refused: tuple[CheckResult, ...] = ()


@dataclass(frozen=True, slots=True)
class _Look:
    """A candidate that was opened."""

    ranked: Ranked
    data: bytes
    probe: Probe
    reading: Reading | None = None
    small: tuple[str, ...] = ()
    """Lines that can be read at training resolution."""


@dataclass(frozen=True)
class PictureChooser:
    """Everything that decides which picture stands for an anchor.

    Attributes:
        search: by picture, as the agent will search; it says how easily the anchor is found.
        copies: finds pictures of the corpus by perceptual hash.
        reader: OCR; without one, readable names are not checked.
        near: distance up to which the search by picture found the very picture, in the search's own measure.
    """

    pictures: PictureStore
    lister: CandidateLister
    ranker: Ranker
    search: ImageSearch
    copies: LocalImageSearch
    reader: Reader | None
    settings: GroundingsConfig
    near: float = 4.0
    _slots: WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Semaphore] = field(
        init=False, repr=False, compare=False, default_factory=WeakKeyDictionary
    )
    """By event loop: a semaphore belongs to one."""

    @property
    def identity(self) -> str:
        """Digest of everything that decides a choice."""
        parts = [self.lister.identity, self.ranker.identity, self.search.identity, self.copies.identity]
        parts.append("" if self.reader is None else self.reader.identity)
        # The keys that other parts do not cover.
        keys = {"min_side", "decides", "threshold", "min_margin", "distractors", "avoid_lead", "refuse_simple"}
        rules = self.settings.model_dump(include=keys | {"training_pixels"})
        return digest_value([VERSION, HITS, self.near, rules, *parts])

    async def choose(self, anchor: Anchor, candidates: Sequence[PictureCandidate], audit: bool = False) -> Choice:
        """Return the best candidate that passes every check, or the faults of the best one if none passes.

        Args:
            anchor: what the picture must show.
            candidates: at least one.
            audit: run all checks on the best candidate, even after one fails.

        Raises:
            ServiceError: if a search, a fetch or an engine is unavailable, or a picture's file is missing.
        """
        refused: tuple[CheckResult, ...] = ()
        ranking = await self.ranker.rank(anchor.node, anchor.path, candidates)
        for ranked in sorted(ranking, key=lambda each: self.settings.avoid_lead and each.candidate.source == "infobox"):
            async with self._slots.setdefault(asyncio.get_running_loop(), asyncio.Semaphore(OPEN)):
                look, found = await self._examine(ranked, anchor, audit and not refused)
                if look is not None and not found:
                    return await self._take(look, anchor, len(candidates))
            refused = refused or found
        return Choice(refused=refused or (CheckResult("FAIL", "picture-unusable", "no candidate can be opened"),))

    async def _examine(
        self, ranked: Ranked, anchor: Anchor, audit: bool
    ) -> tuple[_Look | None, tuple[CheckResult, ...]]:
        opened = await asyncio.to_thread(_open_candidate, ranked.candidate)
        if isinstance(opened, CheckResult):
            return None, (opened,)
        look = _Look(ranked, *opened)
        # Decoding and counting take milliseconds that all other records would wait for.
        found = await asyncio.to_thread(run_checks, self._list_checks(look, anchor), audit)
        if self.reader is None or (found and not audit):
            return look, found
        try:
            look = replace(look, reading=await self.reader.read(look.data))
            found += await asyncio.to_thread(run_checks, self._list_late_checks(look, anchor), audit)
            return (look, found) if found else (await self._read_small(look), found)
        except RecordFailed as error:
            # What stands in it is not known; another candidate may be read.
            detail = f"{ranked.candidate.image.file}: {error}"
            return look, (*found, CheckResult("UNKNOWN", "picture-readable", detail))

    async def _read_small(self, look: _Look) -> _Look:
        lines, shrink = look.reading.lines if look.reading else (), self._find_shrink(look.probe)
        if self.reader is not None and lines and shrink < 1.0:
            lines = (await replace(self.reader, scales=(shrink,)).read(look.data)).lines
        return replace(look, small=lines)

    def _find_shrink(self, probe: Probe) -> float:
        """Return the factor by which a picture is shrunk for training; 1 or more where it is small enough."""
        return math.sqrt(self.settings.training_pixels / (probe.width * probe.height))

    def _list_checks(self, look: _Look, anchor: Anchor) -> Iterator[Check]:
        """Yield the checks that cost little, those that need metadata alone before those that decode."""
        image, probe = look.ranked.candidate.image, look.probe
        yield partial(_check_file, look, self.settings.min_side)
        yield partial(check_use, image.title, anchor.title, image.depicts, anchor.qid)
        yield partial(check_depiction, look.ranked, self.settings)
        yield partial(check_copies, probe.phash, image.file, anchor.title, self.copies.find_copies)
        if self.settings.refuse_simple:
            yield partial(check_simple, look.data, (image.file, image.source_url))
        yield partial(check_parts, look.data, anchor.title, self.copies.find_copies)

    def _list_late_checks(self, look: _Look, anchor: Anchor) -> Iterator[Check]:
        if look.reading is None:
            return
        image = look.ranked.candidate.image
        yield partial(check_readable, look.reading.lines, anchor.names, anchor.answer, anchor.words)
        if self.settings.refuse_simple and look.reading.area:
            yield partial(check_simple, look.data, (image.file, image.source_url), look.reading.area)

    async def _take(self, look: _Look, anchor: Anchor, candidates: int) -> Choice:
        ranked, image = look.ranked, look.ranked.candidate.image
        source = PictureSource(image.file, image.author, image.licence, image.licence_url, image.source_url)
        picture = await asyncio.to_thread(self.pictures.add_bytes, look.data, source)
        file = PictureFile(picture.sha256, self.pictures.path(picture.sha256, picture.extension))
        ease = await self._rate(file, anchor)
        shrink = self._find_shrink(look.probe)
        reading = look.reading
        depiction = Depiction(
            source=ranked.candidate.source,
            ranker=self.ranker.name,
            candidates=candidates,
            score=ranked.score,
            margin=ranked.margin,
            distractors=ranked.distractors,
            over_threshold=ranked.over_threshold,
            articles=len(image.title),
            depicts=anchor.qid in image.depicts if image.depicts and anchor.qid else None,
            engines=reading.engines if reading else (),
            text=reading.lines if reading else (),
            text_at_training=look.small,
            ease=ease,
            ease_at_training=ease if shrink >= 1.0 else await self._rate_small(look.data, shrink, anchor),
        )
        return Choice(picture, depiction)

    async def _rate(self, file: PictureFile, anchor: Anchor) -> Ease:
        hits = await self.search.search_image(file, HITS)
        return rate_ease(hits, anchor.title, self.near)[0]

    async def _rate_small(self, data: bytes, shrink: float, anchor: Anchor) -> Ease:
        """Rate the picture as a student sees it; the small copy lives only as long as the search."""
        small = await asyncio.to_thread(_shrink_picture, data, shrink)
        with tempfile.TemporaryDirectory(prefix="synth-") as folder:
            file = PictureFile(hashlib.sha256(small).hexdigest(), Path(folder) / "small.jpg")
            await asyncio.to_thread(file.path.write_bytes, small)
            return await self._rate(file, anchor)


def _open_candidate(candidate: PictureCandidate) -> tuple[bytes, Probe] | CheckResult:
    image = candidate.image
    try:
        if candidate.file.path.stat().st_size > MAX_BYTES:
            return CheckResult("FAIL", "picture-unusable", f"{image.file}: over {MAX_BYTES} bytes")
        data = candidate.file.path.read_bytes()
    except OSError as error:
        # The corpus had it: a folder that was moved or is not mounted is no property of the row.
        detail = f"picture {image.file}: {candidate.file.path}: {error.strerror}"
        raise Unavailable(f"{detail}; restore it and run again") from error
    if hashlib.sha256(data).hexdigest() != candidate.file.sha256:
        return CheckResult("FAIL", "picture-unusable", f"{image.file}: other bytes than when the corpus was built")
    try:
        return data, probe_picture(data)
    except RecordFailed as error:
        return CheckResult("FAIL", "picture-unusable", f"{image.file}: {error}")


def _check_file(look: _Look, min_side: int) -> CheckResult:
    image = look.ranked.candidate.image
    result = check_picture(look.probe.width, look.probe.height, image.licence, min_side)
    return result if result.passed else replace(result, detail=f"{image.file}: {result.detail}")


def _shrink_picture(data: bytes, shrink: float) -> bytes:
    shown = open_pixels(data)
    size = (max(1, round(shown.width * shrink)), max(1, round(shown.height * shrink)))
    return encode_picture(shown.resize(size), "jpg")
