"""Measures the repair loop: how often a degraded picture is broken, and how often its tool restores it.

Two tests on drawn pictures: the words of a sign, read by a packaged OCR engine, and a search by perceptual hash over
the pictures of a toy world. EDSR has no weights here: interpolation stands in for it, as the worst network there is.
"""

import asyncio
import hashlib
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw

from pipelines.agent.pictures import (
    Reader,
    RepairLoop,
    Tried,
    degrade_picture,
    find_gauge,
    make_repairs,
)
from pipelines.errors import RecordFailed
from pipelines.pictures import compute_phash, measure_distance, open_pixels
from pipelines.services.clients.ocr import RapidOcr
from pipelines.services.protocols import ImageHit, PictureFile, TextBlock
from pipelines.toy.publishing import write_world
from pipelines.toy.world import WorldConfig
from schemas.datasets import Degradation
from tests.benchmarks.measured import Measured
from tests.pipelines.agent.signs import draw_scene, encode_scene

SIGNS = 8
ENTITIES = 250
LOOKED_UP = 60
"""Pictures of the world that are degraded."""
STRENGTHS = (0.25, 0.5, 0.75, 1.0)
DEGRADATIONS: tuple[Degradation, ...] = ("blur", "downsample", "perspective")
NEAR = 10
"""Bits of 64 within which the corpus's search by picture finds a page."""
SHEET = Path(__file__).with_name("enhancements.png")
TILE = 240
GAP = 6


@dataclass(frozen=True)
class Interpolation:
    """Enlarges without a network."""

    scale: int = 4
    identity: str = "bicubic"

    def enlarge(self, pixels: NDArray[np.uint8]) -> NDArray[np.uint8]:
        """Enlarge."""
        shown = Image.fromarray(pixels)
        return np.asarray(shown.resize((shown.width * self.scale, shown.height * self.scale), Image.Resampling.BICUBIC))


@dataclass
class RememberedOcr:
    """Reads each picture once."""

    engine: RapidOcr
    known: dict[str, tuple[TextBlock, ...]] = field(default_factory=dict)
    name: str = "rapidocr"
    identity: str = "rapidocr"

    async def read_text(self, data: bytes, scale: float = 1.0) -> tuple[TextBlock, ...]:
        """Read."""
        key = f"{hashlib.sha256(data).hexdigest()}:{scale}"
        if key not in self.known:
            self.known[key] = await self.engine.read_text(data, scale)
        return self.known[key]


@dataclass(frozen=True)
class HashSearch:
    """The corpus's search by picture over a list of hashes; a page is called after its picture."""

    hashes: dict[str, str]
    identity: str = "hashes"

    async def search_image(self, picture: PictureFile, count: int) -> tuple[ImageHit, ...]:
        """Search."""
        phash = compute_phash(picture.path)
        near = sorted((measure_distance(phash, known), name) for name, known in self.hashes.items())
        return tuple(ImageHit("", name, "", float(far)) for far, name in near[:count] if far <= NEAR)


@dataclass
class Record:
    """What became of the pictures under one test and one degradation."""

    broken: Counter[float] = field(default_factory=Counter)
    restored: Counter[float] = field(default_factory=Counter)
    pictures: int = 0
    held: list[tuple[bytes, Tried]] = field(default_factory=list)
    failed: Counter[str] = field(default_factory=Counter)


async def try_picture(record: Record, loop: RepairLoop) -> None:
    """Try each strength by itself, and then as the stage does."""
    record.pictures += 1
    for strength in STRENGTHS:
        tried = await loop.try_strength(strength)
        record.broken[strength] += not tried.trial.degraded
        record.restored[strength] += tried.holds
    course = await loop.find_strength(STRENGTHS)
    if course[-1].holds:
        record.held.append((loop.data, course[-1]))
    else:
        record.failed["unharmed" if all(each.trial.degraded for each in course) else "unrepaired"] += 1


async def run_loop(
    pictures: Iterable[tuple[str, bytes]], reader: Reader | None, search: HashSearch, folder: Path
) -> tuple[dict[Degradation, Record], int]:
    """Return what became of titled pictures under each degradation, and how many had a test at all."""
    repairs = make_repairs(Interpolation(), opencv=True)
    records: dict[Degradation, Record] = {degradation: Record() for degradation in DEGRADATIONS}
    tested = 0
    for title, data in pictures:
        gauge = await find_gauge(data, reader, search, title, folder)
        if gauge is None:
            continue
        tested += 1
        for degradation, record in records.items():
            try:
                loop = RepairLoop(data, gauge, degradation, repairs[degradation], (0, title))
                await try_picture(record, loop)
            except RecordFailed as error:
                record.failed[error.error] += 1
    return records, tested


def describe_records(test: str, records: dict[Degradation, Record]) -> list[Measured]:
    """Return the table's rows."""
    rows = []
    for degradation, record in records.items():
        tool = {"downsample": "interpolation for EDSR"}.get(degradation, "its tool")
        for strength in STRENGTHS:
            broken, restored = record.broken[strength], record.restored[strength]
            what = f"{test}: {degradation} {strength:g}, broken; restored by {tool}"
            rows.append(Measured(what, f"{broken}/{record.pictures}; {restored}/{broken}"))
        why = "".join(f", {reason} {count}" for reason, count in sorted(record.failed.items()))
        what = f"{test}: {degradation}, rows that hold once the strength is looked for"
        rows.append(Measured(what, f"{len(record.held)}/{record.pictures}{why}"))
    return rows


def list_sheet(records: Sequence[dict[Degradation, Record]]) -> list[tuple[bytes, bytes, bytes, str]]:
    """Return one example of each test and degradation that has one: original, degraded, repaired, caption."""
    repairs = make_repairs(Interpolation(), opencv=True)
    examples = []
    for found in records:
        for degradation, record in found.items():
            if record.held:
                data, tried = record.held[0]
                caption = f"{tried.trial.test}: {degradation} {tried.trial.strength:g}, {tried.trial.repair}"
                examples.append((data, tried.data, repairs[degradation].mend(tried.data) or tried.data, caption))
    return examples


def draw_sheet(examples: Sequence[tuple[bytes, bytes, bytes, str]], target: Path) -> None:
    """Write the examples as rows of three pictures."""
    height = TILE * 3 // 4
    sheet = Image.new("RGB", (3 * (TILE + GAP) + GAP, len(examples) * (height + 18 + GAP) + GAP), (255, 255, 255))
    draw = ImageDraw.Draw(sheet)
    for row, (*pictures, caption) in enumerate(examples):
        top = GAP + row * (height + 18 + GAP)
        draw.text((GAP, top), caption, fill=(0, 0, 0))
        for column, data in enumerate(pictures):
            shown = open_pixels(data)
            shown.thumbnail((TILE, height))
            sheet.paste(shown, (GAP + column * (TILE + GAP), top + 16))
    sheet.quantize(128).save(target, optimize=True)


def list_pictures(folder: Path) -> list[tuple[str, bytes]]:
    """Return a world's pictures that can be decoded and found by their hash, in the order of their names."""
    found = []
    for path in sorted(folder.rglob("*")):
        if path.suffix.lower() in (".jpg", ".jpeg", ".png"):
            data = path.read_bytes()
            try:
                degrade_picture(data, "blur", 0.1)
            except RecordFailed:
                continue
            found.append((path.name, data))
    return found


def measure(scratch: Path) -> list[Measured]:
    """Return the section's rows and write the contact sheet."""
    signs = [(f"sign {seed}", encode_scene(draw_scene(seed))) for seed in range(SIGNS)]
    reader = Reader((RememberedOcr(RapidOcr(threads=1)),), scales=(1.0,))
    read, read_tested = asyncio.run(run_loop(signs, reader, HashSearch({}), scratch))
    write_world(scratch / "world", WorldConfig(entities=ENTITIES))
    pictures = list_pictures(scratch / "world" / "images")
    hashes = {name: compute_phash(data) for name, data in pictures}
    chosen = pictures[:: max(1, len(pictures) // LOOKED_UP)][:LOOKED_UP]
    found, found_tested = asyncio.run(run_loop(chosen, None, HashSearch(hashes), scratch))
    draw_sheet(list_sheet([read, found]), SHEET)
    return [
        Measured("drawn signs whose words are read before", f"{read_tested}/{len(signs)}"),
        *describe_records("text", read),
        Measured(f"pictures of a toy world that are found among {len(pictures)}", f"{found_tested}/{len(chosen)}"),
        *describe_records("image search", found),
    ]
