"""The repair loop: a degraded picture must break what its repair restores.

What a picture is of use for is tested before, degraded and repaired: its words are read again, or a search by picture
finds the anchor.
"""

import asyncio
import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Protocol, cast

from pipelines.agent.degrading import degrade_picture
from pipelines.agent.enhancing import RepairTool
from pipelines.agent.reading import Reader
from pipelines.backends.protocols import ImageSearch, PictureFile
from pipelines.picturefiles.stripping import find_extension
from schemas.enhancements import Degradation, RepairTest, Trial

VERSION = 1
"""Raised when another picture would count as broken or restored."""
HITS = 5
"""Pages that one search by picture may find the anchor among: as many as the agent's tool shows."""
MIN_WORDS = 2
"""Distinct words that make reading a test: a single one is read, or is not, by chance."""
RESTORED, BROKEN = 0.8, 0.5
"""Share of the words that a repaired picture must show again, and that a broken one may show at most. An engine drops
or mistakes a word of a good picture now and then, and reads one of a bad picture; between the two the picture is
neither, so that noise of reading never counts as harm or as repair."""
HALVINGS = 5
"""Of the range between harmless and harmful: to a thirty-second of it."""
_WORD = re.compile(r"\w{2,}")
_TOLD = re.compile(
    r"(?P<degradation>blur|downsample|perspective) (?P<strength>\S+) \([^()]*\): "
    r"(?P<test>text|image-search) \S+, (?P<end>.+)"
)
_OF_USE = "still of use"


class Gauge(Protocol):
    """One test of what a picture is of use for."""

    test: ClassVar[RepairTest]

    async def measure(self, data: bytes) -> float:
        """Return how much of its use a picture has, 0 to 1; the original has 1."""


@dataclass(frozen=True, slots=True)
class TextGauge:
    """The share of the original's words that can be read."""

    reader: Reader
    words: frozenset[str]
    test: ClassVar[RepairTest] = "text"

    async def measure(self, data: bytes) -> float:
        """Return the share of the words that are read in a picture."""
        return len(self.words & list_words((await self.reader.read(data)).lines)) / len(self.words)


@dataclass(frozen=True, slots=True)
class SearchGauge:
    """Whether one search by picture finds the anchor."""

    search: ImageSearch
    title: str
    folder: Path
    """Where trial pictures lie while they are looked up; they are no pictures of the workspace."""
    test: ClassVar[RepairTest] = "image-search"

    async def measure(self, data: bytes) -> float:
        """Return 1.0 if the anchor's title is among the first hits, else 0.0."""
        sha256 = hashlib.sha256(data).hexdigest()
        path = self.folder / f"{sha256}.{find_extension(data)}"
        await asyncio.to_thread(path.write_bytes, data)
        hits = await self.search.search_image(PictureFile(sha256, path), HITS)
        return float(any(hit.title == self.title for hit in hits))


def list_words(lines: Sequence[str]) -> frozenset[str]:
    """Return the words of two letters or digits and more, in lower case."""
    return frozenset(_WORD.findall(" ".join(lines).casefold()))


async def find_gauge(data: bytes, reader: Reader | None, search: ImageSearch, title: str, folder: Path) -> Gauge | None:
    """Return the test that a picture passes: by its words where it has some, else by a search for it; None for neither.

    Args:
        data: the original picture's bytes.
        reader: None where nothing reads.
        search: a search by picture.
        title: the anchor's; empty where nothing names it.
        folder: for trial pictures.
    """
    if reader is not None:
        words = list_words((await reader.read(data)).lines)
        if len(words) >= MIN_WORDS:
            return TextGauge(reader, words)
    found = SearchGauge(search, title, folder)
    return found if title and await found.measure(data) else None


@dataclass(frozen=True, slots=True)
class Tried:
    """One degradation of one picture with the picture it made."""

    trial: Trial
    data: bytes
    shares: tuple[float, float]
    """What the test measured on the degraded and on the repaired picture."""

    @property
    def holds(self) -> bool:
        """Whether the degradation broke what the repair restored."""
        return self.trial.before and not self.trial.degraded and self.trial.repaired

    def describe(self) -> str:
        """Return the trial in words, for a rejection's detail."""
        trial = self.trial
        numbers = ", ".join(f"{parameter.name} {parameter.value:g}" for parameter in trial.parameters)
        degraded, repaired = self.shares
        outcome = _OF_USE if trial.degraded else f"{repaired:.2f} after {trial.repair}"
        return f"{trial.degradation} {trial.strength:g} ({numbers}): {trial.test} {degraded:.2f}, {outcome}"


@dataclass(frozen=True, slots=True)
class Loss:
    """The last trial of a refused picture that broke what its repair did not restore."""

    degradation: Degradation
    strength: float
    test: RepairTest


def read_loss(detail: str) -> Loss | None:
    """Return what a rejection's detail tells of it; None where nothing was broken, or nothing tried."""
    told = (_TOLD.fullmatch(part) for part in reversed(detail.split("; ")))
    lost = next((each for each in told if each is not None and each["end"] != _OF_USE), None)
    if lost is None:
        return None
    degradation, test = cast(Degradation, lost["degradation"]), cast(RepairTest, lost["test"])
    return Loss(degradation, float(lost["strength"]), test)


@dataclass(frozen=True, slots=True)
class Patient:
    """A picture with its test, and what is to be done to it.

    Attributes:
        data: the original's bytes; the gauge holds for it.
        gauge: the test.
        degradation: which.
        repair: the tool paired with it.
        seed: decides what the degradation draws.
    """

    data: bytes
    gauge: Gauge
    degradation: Degradation
    repair: RepairTool
    seed: tuple[object, ...]


async def find_strength(patient: Patient, strengths: Sequence[float]) -> list[Tried]:
    """Try strengths until a trial holds, which is then the last one.

    The first strength that breaks the picture may break it beyond repair. Between it and the strongest that did no
    harm, the range that the tool makes good is looked for by halving: for a blur it is a few per cent wide.

    Args:
        patient: the picture and what is done to it.
        strengths: ascending, each over 0 and up to 1; not empty.

    Raises:
        RecordFailed: if a picture cannot be processed.
        ServiceError: if a reader or search is away.
    """
    tried: list[Tried] = []
    harmless, harmful = 0.0, 0.0
    for strength in strengths:
        tried.append(await try_repair(patient, strength))
        if not tried[-1].trial.degraded:
            harmful = strength
            break
        harmless = strength
    if not harmful:
        return tried
    for _ in range(HALVINGS):
        if tried[-1].holds:
            break
        strength = round((harmless + harmful) / 2, 4)
        tried.append(await try_repair(patient, strength))
        if tried[-1].trial.degraded:
            harmless = strength
        else:
            harmful = strength
    return tried


async def try_repair(patient: Patient, strength: float) -> Tried:
    """Degrade a picture, repair it and test both. A picture that is still of use is not repaired.

    Raises:
        RecordFailed: if a picture cannot be processed.
        ServiceError: if a reader or search is away.
    """
    made = await asyncio.to_thread(degrade_picture, patient.data, patient.degradation, strength, *patient.seed)
    degraded = await patient.gauge.measure(made.data)
    repaired = 0.0
    if degraded <= BROKEN:
        mended = await asyncio.to_thread(patient.repair.mend, made.data)
        repaired = degraded if mended is None else await patient.gauge.measure(mended)
    trial = Trial(
        degradation=patient.degradation,
        repair=patient.repair.name,
        strength=strength,
        parameters=made.parameters,
        test=patient.gauge.test,
        before=True,
        degraded=degraded > BROKEN,
        repaired=repaired >= RESTORED,
    )
    return Tried(trial, made.data, (degraded, repaired))
