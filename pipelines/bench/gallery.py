"""Drawn pictures that plants start from: entities of the toy world's kinds, each seen in several views.

The gallery stands for a corpus: every entity leads an article of its own with its first view. No further view does.
"""

import io
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from random import Random

from PIL import Image

from pipelines.pictures import compute_phash
from pipelines.textlayer import WrittenText
from pipelines.world.drawing import encode_scene, paint_scene
from pipelines.world.knowledge import Entity
from pipelines.world.portraits import INDOORS
from pipelines.world.scenery import OUTDOORS
from pipelines.world.subtypes import SUBTYPES

SEED = 4711
ENTITIES = 120
"""Entities of a gallery: three or four of each kind."""
SIZES = ((640, 512), (680, 512), (512, 640), (512, 660))
_PAINTED = tuple(each for each in SUBTYPES if each.name in OUTDOORS or each.name in INDOORS or each.kind == "person")


@dataclass(frozen=True)
class Exhibit:
    """An entity with its lead picture."""

    entity: Entity
    title: str
    qid: str

    @property
    def file(self) -> str:
        """Name of its lead picture, which tells nothing."""
        return f"IMG {self.entity.number:04d}.jpg"

    @cached_property
    def lead(self) -> bytes:
        """The lead picture."""
        return encode(self.paint("lead"), self.file)

    @cached_property
    def phash(self) -> str:
        """Perceptual hash of the lead picture."""
        return compute_phash(self.lead)

    @property
    def size(self) -> tuple[int, int]:
        """Width and height of its pictures."""
        return SIZES[self.entity.number % len(SIZES)]

    def paint(self, view: str, factor: float = 1.0) -> Image.Image:
        """Return a view, ``factor`` times as large as the lead picture."""
        width, height = self.size
        return paint_scene(self.entity, (round(width * factor), round(height * factor)), SEED, view)


@lru_cache(maxsize=1)
def open_gallery() -> tuple[Exhibit, ...]:
    """Return all exhibits; pictures are drawn when they are first looked at."""
    made = []
    for number in range(ENTITIES):
        kind = _PAINTED[number % len(_PAINTED)]
        entity = Entity(number, kind, kind.nouns[0], 0.0, 1900, title=f"Exhibit {number}")
        made.append(Exhibit(entity, entity.title, entity.qid))
    return tuple(made)


def draw_exhibits(count: int, rng: Random) -> list[Exhibit]:
    """Return different exhibits."""
    return rng.sample(open_gallery(), count)


def list_kin(exhibit: Exhibit) -> list[Exhibit]:
    """Return the other exhibits of its type."""
    kind = exhibit.entity.subtype
    return [each for each in open_gallery() if each.entity.subtype == kind and each is not exhibit]


def encode(scene: Image.Image, file: str = "x.jpg", written: Sequence[WrittenText] = ()) -> bytes:
    """Return a picture file as the toy world encodes it, with its text layer."""
    return encode_scene(scene, file, written)


def copy_picture(data: bytes, rng: Random) -> tuple[str, bytes]:
    """Return what was done to a picture, and the copy: the same bytes, other quality, size, format, or a thin crop."""
    with Image.open(io.BytesIO(data)) as opened:
        scene = opened.convert("RGB")
    way, buffer = rng.choice(("as it is", "quality", "smaller", "larger", "png", "crop")), io.BytesIO()
    if way == "as it is":
        return way, data
    if way == "png":
        scene.save(buffer, "PNG")
        return way, buffer.getvalue()
    if way in ("smaller", "larger"):
        factor = rng.uniform(0.4, 0.9) if way == "smaller" else rng.uniform(1.1, 1.6)
        scene = scene.resize((round(scene.width * factor), round(scene.height * factor)), Image.Resampling.BICUBIC)
    if way == "crop":
        edge = rng.uniform(0.005, 0.015)
        wide, high = round(scene.width * edge), round(scene.height * edge)
        scene = scene.crop((wide, high, scene.width - wide, scene.height - high))
    scene.save(buffer, "JPEG", quality=rng.randint(35, 95))
    return way, buffer.getvalue()
