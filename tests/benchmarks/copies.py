"""Measures how well copies of pictures are told from other pictures, and how long that takes.

The pictures of a generated world are much alike: one painter draws them all, and some show one thing twice. With
``SYNTH_SHARED_DATA`` the licensed photographs there are measured too, whole and each quarter as a picture of its own.
"""

import os
import time
from collections.abc import Sequence
from itertools import combinations
from pathlib import Path
from random import Random

import numpy as np
from PIL import Image

from pipelines.checks.copies import SIDE, PictureDescription, PictureIndex, describe_picture
from pipelines.pictures import compute_phash, measure_distance
from pipelines.toy.publishing import write_world
from pipelines.toy.world import WorldConfig
from tests.benchmarks.measured import Measured
from tests.copying import WAYS, Way, save

PICTURES, EVERY = 500, 5
"""Pictures, and of which part of them copies are sought."""
ENTITIES, SEED = 700, 5
NEAR = 6
"""Bits of 64 up to which perceptual hashes were of one picture before."""
SIZES = (10_000, 100_000)
SEARCHES = 20


def open_drawings(folder: Path) -> list[Image.Image]:
    """Return the pictures of a generated world, drawn by chance."""
    write_world(folder, WorldConfig(entities=ENTITIES, seed=SEED))
    files = sorted(file for file in (folder / "images").iterdir() if file.suffix in (".jpg", ".png"))
    return [Image.open(file).convert("RGB") for file in Random(1).sample(files, PICTURES)]


def open_photographs(folder: Path) -> list[Image.Image]:
    """Return the licensed photographs and their quarters."""
    found = []
    for file in sorted((folder / "enwiki-slice" / "images").glob("*.png")):
        whole = Image.open(file).convert("RGB")
        whole.thumbnail((1600, 1600))
        across, down = whole.width // 2, whole.height // 2
        found += [whole.crop((x, y, x + across, y + down)) for x in (0, across) for y in (0, down)]
        whole.thumbnail((800, 800))
        found.append(whole)
    return found


def count_false(index: PictureIndex, described: Sequence[PictureDescription]) -> int:
    """Return how many pairs of different pictures are taken for copies; marks are places."""
    found = [index.find(each) for each in described]
    return sum(str(other) in found[one] for one, other in combinations(range(len(described)), 2))


def measure_way(
    index: PictureIndex, pictures: dict[int, Image.Image], hashes: Sequence[str], way: Way
) -> tuple[int, int, int]:
    """Return how many copies are found, how many other pictures with them, and how many the hash alone finds."""
    found = others = hashed = 0
    for place, picture in pictures.items():
        data = way(picture)
        marks = index.find(describe_picture(data))
        found += str(place) in marks
        others += len(set(marks) - {str(place)})
        hashed += measure_distance(compute_phash(data), hashes[place]) <= NEAR
    return found, others, hashed


def measure_pictures(name: str, pictures: Sequence[Image.Image], every: int) -> list[Measured]:
    """Return the false pairs of some pictures, and what is found of copies of a part of them."""
    saved = [save(picture, 95) for picture in pictures]
    described, hashes = [describe_picture(each) for each in saved], [compute_phash(each) for each in saved]
    index = PictureIndex()
    for place, description in enumerate(described):
        index.add(str(place), description)
    pairs = len(pictures) * (len(pictures) - 1) // 2
    false = count_false(index, described)
    rows = [Measured(f"{name}: false among {pairs:,} pairs", f"{false} ({false / pairs:.4%})", "0.5 %")]
    sought, wrong = dict(list(enumerate(pictures))[::every]), 0
    for words, way in WAYS.items():
        found, others, hashed = measure_way(index, sought, hashes, way)
        wrong += others
        told = f"{name}, {words}: found of {len(sought)} (by perceptual hash {hashed})"
        rows.append(Measured(told, f"{found} ({found / len(sought):.1%})", "95 %"))
    tried = len(WAYS) * len(sought) * (len(pictures) - 1)
    return [
        *rows,
        Measured(f"{name}: false among {tried:,} pairs of a copy and another picture", f"{wrong / tried:.4%}", "0.5 %"),
    ]


def mix_descriptions(described: Sequence[PictureDescription], count: int) -> list[PictureDescription]:
    """Return so many descriptions of pictures that there are not: of two pictures laid on one another."""
    rng = np.random.default_rng(1)
    levels = np.array([each.grey for each in described])
    mixed = []
    for one, other in rng.integers(0, len(described), (count, 2)):
        grey = 0.6 * levels[one] + 0.4 * np.roll(levels[other], rng.integers(SIDE), axis=1)
        mixed.append(PictureDescription(grey.astype(np.uint8).tobytes(), described[one].ratio))
    return mixed


def measure_times(pictures: Sequence[Image.Image]) -> list[Measured]:
    """Return what a description takes, and a search by the number of pictures; processor time."""
    data = [save(picture, 95) for picture in pictures[:100]]
    started = time.process_time()
    described = [describe_picture(each) for each in data]
    rows = [Measured("a description", f"{(time.process_time() - started) / len(data) * 1e3:.1f} ms")]
    mixed = mix_descriptions(described, max(SIZES))
    for size in SIZES:
        index = PictureIndex()
        started = time.process_time()
        for place, description in enumerate(mixed[:size]):
            index.add(str(place), description)
        adding = (time.process_time() - started) / size
        started, waited = time.process_time(), time.monotonic()
        for description in described[:SEARCHES]:
            index.find(description)
        taken, waited = (
            (each() - start) / SEARCHES for each, start in ((time.process_time, started), (time.monotonic, waited))
        )
        told = f"a search among {size:,} pictures (waited {waited * 1e3:.0f} ms; adding one {adding * 1e3:.2f} ms)"
        rows.append(Measured(told, f"{taken * 1e3:.0f} ms"))
    return rows


def measure(scratch: Path) -> list[Measured]:
    """Measure drawings, photographs where they are, and times."""
    drawings = open_drawings(scratch / "world")
    rows = measure_pictures("drawings", drawings, EVERY)
    if shared := os.environ.get("SYNTH_SHARED_DATA"):
        rows += measure_pictures("photographs and quarters", open_photographs(Path(shared)), 1)
    return [*rows, *measure_times(drawings)]
