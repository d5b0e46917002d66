"""Scenes: pictures of high resolution in which what a question asks about is a small part (SenseNova-MARS, 3.4).

The paper's pictures are photographs of 2025, chosen by people. Here a question's own picture is set among pictures of
others, so that the box is known and not guessed, and a search by picture shows what it must: the whole at the size that
a student sees tells nothing, the part that ``crop`` cuts out finds the anchor.

A question's own picture that is of high resolution stays as it is where a model can say in which small part of it the
thing lies, and the same search shows the same. Else it is set in a scene like any other.

The others are of another domain than the anchor, so that "the bridge in the image" is one thing; of the same split, so
that no picture of held-out entities is shown; and under the same licence, so that the scene has one.
"""

import asyncio
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory

from PIL import Image

from pipelines.agent.pictures import Gauge, find_gauge
from pipelines.agent.tools import cut_picture, place_box
from pipelines.corpus.images import describe_image
from pipelines.corpus.store import Corpus
from pipelines.errors import RecordFailed
from pipelines.ids import digest_value, draw_unit
from pipelines.pictures import (
    TRAINING_PIXELS,
    PictureStore,
    compute_phash,
    encode_picture,
    measure_distance,
    open_pixels,
    read_header,
)
from pipelines.services.prompting import Prompted, RoleClient, ask_model
from pipelines.services.protocols import ImageSearch
from pipelines.splits import SplitRule
from schemas.datasets import Difficulty, Picture, Scene, ScenePart, Split
from schemas.tasks import BoxReply, LocateObjectInputs

VERSION = 3
"""Raised when another scene would be made of the same picture."""
TOOL = "crop"
"""What undoes a scene."""
LONG_SIDE = 3840
"""Width of a scene, pixels; it is 16 to 9: 4K, as the paper's pictures are."""
MOST_SHARE = 0.05
"""Share of the picture's area that the asked-for part stays under (the paper's bound)."""
PARTS = 12
"""Most pictures of others around it."""
NO_SCENE = "no-scene"
"""Begins the reason of a picture that was to be set in a scene and is left as it is."""
NEAR = 10
"""Bits of 64 in which perceptual hashes of a picture and of its copy in a scene may differ; a search by hash finds a
picture up to that distance."""
LEAST_PARTS = 3
SIDES = 4
"""Numbers of a box."""
FILLED = (0.65, 0.95)
"""Share of its cell's width or height that a picture takes, least and most."""
MOST_DRAWS = 4000
"""Articles that are drawn to find the others."""
THOUSANDTHS = 1000
Box = tuple[int, int, int, int]
Other = tuple[str, Picture, Image.Image]
"""Title, picture and pixels of what may stand beside a question's picture."""


@dataclass(frozen=True, slots=True)
class SceneView:
    """What a scene shows of a box."""

    share: float
    """Of the area."""
    crop: bytes
    """The part, as the tool cuts it out."""
    whole: bytes
    """The whole, scaled to training."""


def view_scene(data: bytes, box: tuple[int, ...], training_pixels: int) -> SceneView:
    """Cut and scale a scene."""
    if len(box) != 4 or min(box) < 0:
        raise RecordFailed("crop-outside", f"{list(box)} is no box")
    header = read_header(data)
    left, top, right, bottom = place_box(box, (header.width, header.height))
    area = header.width * header.height
    longest = max(1, int(max(header.width, header.height) * min(1.0, math.sqrt(training_pixels / area))))
    whole = encode_picture(open_pixels(data, longest), "jpg")
    return SceneView((right - left) * (bottom - top) / area, cut_picture(data, box), whole)


@dataclass(frozen=True, slots=True)
class Composed:
    """A scene's bytes, JPEG, what is in it, and how it is seen."""

    data: bytes
    scene: Scene
    view: SceneView


async def _tells(gauge: Gauge, view: SceneView) -> tuple[bool, bool]:
    return bool(await gauge.measure(view.whole)), bool(await gauge.measure(view.crop))


@dataclass(frozen=True, slots=True)
class SceneMaker(Prompted):
    """Everything that decides which pictures are set in a scene, and what it shows.

    Attributes:
        pictures: where the questions' pictures lie.
        search: as the agent will search.
        share: of the questions.
        locator: says where in a picture of high resolution the asked-for thing lies; None looks in none.
    """

    corpus: Corpus
    pictures: PictureStore
    search: ImageSearch
    splits: SplitRule
    share: float
    seed: int
    locator: RoleClient | None = None

    @property
    def identity(self) -> str:
        rules = [self.share, LONG_SIDE, MOST_SHARE, PARTS, TRAINING_PIXELS, self.seed]
        shares = [dict(self.splits.shares), self.splits.seed]
        located = "" if self.locator is None else self.locator.identity
        return digest_value([VERSION, *rules, *shares, self.corpus.digest, self.search.identity, located])

    def is_chosen(self, record: Difficulty) -> bool:
        """Say whether a question's picture is to be set in a scene."""
        return draw_unit(self.seed, record.record_id, "scene") < self.share

    async def compose(self, record: Difficulty, picture: Picture) -> Composed | Scene | str:
        """Return a scene with a question's picture in it, where in that picture the thing lies, or why neither."""
        if not record.proof.nodes:
            return f"{NO_SCENE}: the question has no anchor to search for"
        title = record.proof.nodes[0].title
        data = await asyncio.to_thread(self.pictures.read, picture)
        with TemporaryDirectory(prefix="synth-scene-") as folder:
            gauge = await find_gauge(data, None, self.search, title, Path(folder))
            if gauge is None:
                return f"{NO_SCENE}: a search by the original picture does not find {title}"
            located = await self._locate(record, picture, data, gauge)
            if located is not None:
                return located
            made = await asyncio.to_thread(self._paint, record, picture, data)
            if isinstance(made, str):
                return made
            whole, cropped = await _tells(gauge, made.view)
        if whole or not cropped:
            return f"{NO_SCENE}: the search finds {title} by {'the whole' if whole else 'neither whole nor part'}"
        return made

    async def _locate(self, record: Difficulty, picture: Picture, data: bytes, gauge: Gauge) -> Scene | None:
        if self.locator is None or max(picture.width, picture.height) < LONG_SIDE:
            return None
        try:
            given = await ask_model(self.locator, LocateObjectInputs(question=record.text), BoxReply, [picture.sha256])
            view = await asyncio.to_thread(view_scene, data, given.box, TRAINING_PIXELS) if given.found else None
        except RecordFailed:
            # A reply that is no box of this picture: the picture can be set in a scene all the same.
            return None
        if view is None or not 0 < view.share < MOST_SHARE:
            return None
        whole, cropped = await _tells(gauge, view)
        return None if whole or not cropped else self._describe(given.box, view, ())

    def _describe(self, box: tuple[int, ...], view: SceneView, parts: tuple[ScenePart, ...]) -> Scene:
        return Scene(
            box=box,
            share=view.share,
            training_pixels=TRAINING_PIXELS,
            whole=False,
            cropped=True,
            crop_phash=compute_phash(view.crop),
            parts=parts,
        )

    def _paint(self, record: Difficulty, picture: Picture, data: bytes) -> Composed | str:
        parts = tuple(islice(self._list_parts(record, picture), PARTS))
        if len(parts) < LEAST_PARTS:
            return f"{NO_SCENE}: {len(parts)} pictures of others can stand beside it, {LEAST_PARTS} must"
        key = (self.seed, record.record_id)
        first, *others = _draw_cells(MOST_SHARE, key)
        placed = list(zip(parts, others, strict=False))
        while len(placed) >= LEAST_PARTS:
            scene = _paint_backdrop((LONG_SIDE, LONG_SIDE * 9 // 16), key)
            box = _place_picture(scene, open_pixels(data), first, (*key, "anchor"))
            shown = tuple(
                ScenePart(title=title, picture=other, box=_place_picture(scene, pixels, cell, (*key, title)))
                for (title, other, pixels), cell in placed
            )
            made = encode_picture(scene, "jpg")
            lost = {part.title for part in find_missing_parts(shown, made)}
            if not lost:
                view = view_scene(made, box, TRAINING_PIXELS)
                return Composed(made, self._describe(box, view, shown), view)
            # What is not recognised in the scene could not be credited by it: its place stays empty.
            placed = [each for each in placed if each[0][0] not in lost]
        return f"{NO_SCENE}: {len(placed)} pictures of others are recognised beside it, {LEAST_PARTS} must be"

    def _list_parts(self, record: Difficulty, picture: Picture) -> Iterator[Other]:
        nodes, seen = self.corpus.article_nodes(), {node.page_id for node in record.proof.entities}
        for number in range(MOST_DRAWS):
            luck = draw_unit(self.seed, record.record_id, "part", number)
            part = self._find_part(nodes[int(luck * len(nodes))], record.split, record.domain, picture.licence)
            if part is None or part[0] in seen:
                continue
            seen.add(part[0])
            yield part[1]

    def _find_part(self, node: int, split: Split, domain: str, licence: str) -> tuple[int, Other] | None:
        page = self.corpus.page(node)
        if not (page.image and page.image_free) or page.domain == domain:
            return None
        image = self.corpus.image(page.image)
        if image is None or not image.path or not image.phash or image.licence != licence:
            return None
        if self.splits.place("entity", page.title) != split:
            return None
        try:
            pixels = open_pixels(self.corpus.image_path(image.file).read_bytes())
        except (OSError, RecordFailed):
            # Any other picture will do.
            return None
        return page.page_id, (page.title, describe_image(image), pixels)


def find_missing_parts(parts: Sequence[ScenePart], data: bytes) -> list[ScenePart]:
    """Return the parts whose picture is not what a scene shows at their box."""
    scene = open_pixels(data)
    return [part for part in parts if not _is_shown(part, scene)]


def _is_shown(part: ScenePart, scene: Image.Image) -> bool:
    if len(part.box) != SIDES:
        return False
    try:
        seen = compute_phash(encode_picture(scene.crop(place_box(part.box, scene.size)), "png"))
    except RecordFailed:
        return False
    return measure_distance(seen, part.picture.phash) <= NEAR


def count_columns(most_share: float) -> int:
    """Return the columns, and rows, of a grid of which no cell covers more than a share of the picture."""
    return math.ceil(1 / math.sqrt(most_share))


def _draw_cells(most_share: float, key: tuple[object, ...]) -> Iterator[tuple[int, int, int]]:
    count = count_columns(most_share)
    cells = [(column, row, count) for column in range(count) for row in range(count)]
    yield from sorted(cells, key=lambda cell: draw_unit(*key, "cell", *cell))


def plan_box(
    picture: tuple[int, int], scene: tuple[int, int], cell: tuple[int, int, int], luck: tuple[float, float, float]
) -> Box:
    """Return where a picture lies in a scene: inside its cell, in its own proportions, never enlarged."""
    column, row, count = cell
    side = THOUSANDTHS // count
    least, most = FILLED
    room = (least + (most - least) * luck[0]) * side / THOUSANDTHS
    scale = min(1.0, room * scene[0] / picture[0], room * scene[1] / picture[1])
    wide, high = (max(1, round(picture[i] * scale / scene[i] * THOUSANDTHS)) for i in (0, 1))
    left = column * side + int(luck[1] * (side - wide + 1))
    top = row * side + int(luck[2] * (side - high + 1))
    return left, top, left + wide, top + high


def _place_picture(scene: Image.Image, pixels: Image.Image, cell: tuple[int, int, int], key: tuple[object, ...]) -> Box:
    luck = (draw_unit(*key, "size"), draw_unit(*key, "across"), draw_unit(*key, "down"))
    box = plan_box(pixels.size, scene.size, cell, luck)
    left, top, right, bottom = place_box(box, scene.size)
    scene.paste(pixels.resize((right - left, bottom - top), Image.Resampling.LANCZOS, reducing_gap=2.0), (left, top))
    return box


def _paint_backdrop(size: tuple[int, int], key: tuple[object, ...]) -> Image.Image:
    base = [90 + int(100 * draw_unit(*key, "wall", channel)) for channel in "rgb"]
    lights = [0.8 + 0.4 * draw_unit(*key, "light", number) for number in range(12)]
    small = Image.new("RGB", (4, 3))
    small.putdata([tuple(min(255, round(part * light)) for part in base) for light in lights])
    # Straight to full size takes three times as long, and no eye sees steps of a few pixels in a soft gradient.
    soft = small.resize((size[0] // 4, size[1] // 4), Image.Resampling.BILINEAR)
    return soft.resize(size, Image.Resampling.NEAREST)
