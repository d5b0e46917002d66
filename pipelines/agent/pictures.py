"""What is done to pictures: tools that repair them, degradations, the loop that tests both, and reading with OCR.

The tools are those of OpenSearch-VL, appendix F: sharpen, enlarge, correct the perspective. OpenCV is imported where it
is used: the core does without it.

Degradations are blur, downsampling and perspective (section 3.2). The paper gives no strengths: here one number from 0
to 1 says how strong, and the row records what it came to in pixels.

The repair loop holds where a degradation breaks what the tool restores: the picture's words are read, or a search by
picture finds the anchor, or its fine structure shows, before, degraded and repaired.

A reading joins every engine at every scale: what one of them can read, a reader of the picture can, too.
"""

import asyncio
import hashlib
import re
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from types import MappingProxyType
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageFilter

from pipelines.errors import RecordFailed
from pipelines.ids import draw_unit
from pipelines.names import fold_name
from pipelines.pictures import encode_picture, find_extension, list_scales, open_pixels
from pipelines.services.protocols import ImageSearch, Ocr, PictureFile, TextBlock
from schemas.datasets import Degradation, Parameter, Repair, RepairTest, Trial

Point = tuple[float, float]
Corners = tuple[Point, Point, Point, Point]
"""Upper left, upper right, lower right, lower left; pixels from the upper left."""


def list_frame(width: float, height: float) -> Corners:
    """Return the corners of a whole picture."""
    return (0.0, 0.0), (width, 0.0), (width, height), (0.0, height)


def warp_picture(
    shown: Image.Image, source: Corners, target: Corners, size: tuple[int, int], backdrop: tuple[int, int, int]
) -> Image.Image:
    """Return an RGB picture of ``size`` in which the corners ``source`` of ``shown`` lie at ``target``.

    What lies outside the picture is ``backdrop``. No three corners of either quadrilateral may be on a line.
    """
    # Pillow asks for the way back: from a pixel of the result to the place in the picture it is taken from.
    way_back = _solve_map(target, source)
    return shown.transform(size, Image.Transform.PERSPECTIVE, way_back, Image.Resampling.BICUBIC, fillcolor=backdrop)


def _solve_map(start: Sequence[Point], end: Sequence[Point]) -> tuple[float, ...]:
    rows, values = [], []
    for (x, y), (u, v) in zip(start, end, strict=True):
        rows += [[x, y, 1, 0, 0, 0, -u * x, -u * y], [0, 0, 0, x, y, 1, -v * x, -v * y]]
        values += [u, v]
    return tuple(map(float, np.linalg.solve(np.array(rows, dtype=np.float64), np.array(values, dtype=np.float64))))


VERSION = 1
"""Raised when a tool makes other pixels of the same picture."""
KEPT_RESULTS = 5
"""Results of a search by the picture that a row keeps, as many as MMSearch-R1's trainer replays."""
AMOUNT = 1.5
"""Published default of sharpening."""
SCALE = 4
"""Published default of super-resolution."""
SIGMA = 3.0
"""Standard deviation, in pixels, of the blur that sharpening subtracts. The paper leaves it open; with its amount, this
one makes blurred signs readable that 2 leaves unreadable, and from 4 on the halo eats the letters."""
MOST_PIXELS = 512 * 512
"""Of a picture that is to be enlarged: 16 times as many come out, and a network takes seconds for each such tile."""
SEARCH_SIDE = 800
"""Longest side, in pixels, of the picture in which quadrilaterals are searched."""
MIN_AREA = 0.15
"""Share of the picture that a quadrilateral must cover to be what the picture is about."""
MIN_DRAWN = 0.75
"""Share of a quadrilateral's outline that must lie on edges: four corners alone are found in any thicket."""
EDGE_SHARES = (1.0, 0.5, 0.25)
"""Of Otsu's threshold, what an edge must have: a strong edge elsewhere must not hide a weak side."""
FRAME = 0.015
"""A quadrilateral whose corners are all so near the picture's own, as a share of its sides, is the frame."""
MIN_SIDE = 32
MOST_OUTLINES = 64
REPAIRS: Mapping[Degradation, Repair] = MappingProxyType(
    {"blur": "sharpen", "downsample": "super_resolution", "perspective": "perspective_correct"}
)
"""The tool that each degradation is paired with."""


class Upscaler(Protocol):
    """A network that enlarges pictures."""

    @property
    def identity(self) -> str:
        """All that decides its pixels: architecture and weights."""

    @property
    def scale(self) -> int:
        """Factor its weights were trained for."""

    def enlarge(self, pixels: NDArray[np.uint8]) -> NDArray[np.uint8]:
        """Return RGB pixels of shape (h * scale, w * scale, 3) for such of shape (h, w, 3); safe from any thread."""


@dataclass(frozen=True, slots=True)
class RepairTool:
    """A visual tool called with a picture alone."""

    name: Repair
    identity: str
    mend: Callable[[bytes], bytes | None]
    """A picture's bytes to those of the repaired one; None when the tool gives the original back.

    Raises ``RecordFailed`` if the picture cannot be processed.
    """


def has_opencv() -> bool:
    """Return whether OpenCV is installed, without loading it."""
    return find_spec("cv2") is not None


def make_repairs(upscaler: Upscaler | None, opencv: bool) -> dict[Degradation, RepairTool]:
    """Return the tool that repairs each degradation; a degradation whose tool cannot work here is missing."""
    mends: dict[Degradation, tuple[Callable[[bytes], bytes | None], str]] = {"blur": (sharpen_picture, "")}
    if upscaler is not None:
        mends["downsample"] = (partial(enlarge_picture, upscaler=upscaler), f":{upscaler.identity}")
    if opencv:
        mends["perspective"] = (correct_perspective, "")
    return {
        degradation: RepairTool(REPAIRS[degradation], f"{REPAIRS[degradation]}@{VERSION}{means}", mend)
        for degradation, (mend, means) in mends.items()
    }


def sharpen_picture(data: bytes, amount: float = AMOUNT) -> bytes:
    """Return a picture with its fine structure raised: ``(1 + amount) * picture - amount * blurred picture``."""
    mask = ImageFilter.UnsharpMask(radius=SIGMA, percent=round(amount * 100), threshold=0)
    return encode_picture(open_pixels(data).filter(mask), find_extension(data))


def enlarge_picture(data: bytes, upscaler: Upscaler, scale: int = SCALE) -> bytes:
    """Return a picture ``scale`` times as wide and high.

    The network enlarges by the factor of its weights; the rest of another scale is interpolated.
    """
    shown = open_pixels(data)
    if shown.width * shown.height > MOST_PIXELS:
        raise RecordFailed(
            "picture-too-large",
            f"{shown.width} x {shown.height} pixels, super-resolution takes at most {MOST_PIXELS} in all",
        )
    made = Image.fromarray(upscaler.enlarge(np.asarray(shown)))
    size = (shown.width * scale, shown.height * scale)
    if made.size != size:
        made = made.resize(size, Image.Resampling.LANCZOS)
    return encode_picture(made, find_extension(data))


def correct_perspective(data: bytes) -> bytes | None:
    """Return the largest quadrilateral of a picture as seen straight on, None when there is no reliable one."""
    shown = open_pixels(data)
    corners = find_quadrilateral(shown)
    if corners is None:
        return None
    upper_left, upper_right, lower_right, lower_left = (np.array(corner) for corner in corners)
    width = max(_measure(upper_left, upper_right), _measure(lower_left, lower_right))
    height = max(_measure(upper_left, lower_left), _measure(upper_right, lower_right))
    if min(width, height) < MIN_SIDE:
        return None
    straight = warp_picture(shown, corners, list_frame(width, height), (width, height), (255, 255, 255))
    return encode_picture(straight, find_extension(data))


def find_quadrilateral(shown: Image.Image) -> Corners | None:
    """Return the corners of the largest convex quadrilateral that is drawn by edges, None without one.

    The picture's own frame does not count, nor an outline that covers less than 15% of it or is mostly open.
    """
    import cv2

    factor = min(1.0, SEARCH_SIDE / max(shown.size))
    size = (max(1, round(shown.width * factor)), max(1, round(shown.height * factor)))
    gray = np.asarray(shown.resize(size, Image.Resampling.BOX).convert("L"))
    smooth = cv2.GaussianBlur(gray, (5, 5), 0)
    otsu, _ = cv2.threshold(smooth, 0, 255, cv2.THRESH_BINARY + cv2.THRESH_OTSU)
    found: list[tuple[float, NDArray[np.float64]]] = []
    for share in EDGE_SHARES:
        edges = cv2.dilate(cv2.Canny(smooth, otsu * share / 2, otsu * share), np.ones((3, 3), np.uint8))
        outlines, _ = cv2.findContours(edges, cv2.RETR_LIST, cv2.CHAIN_APPROX_SIMPLE)
        quadrilaterals = _list_quadrilaterals(outlines, size)
        found += [(area, corners) for area, corners in quadrilaterals if _measure_drawn(corners, edges) >= MIN_DRAWN]
    if not found:
        return None
    _, largest = max(found, key=lambda pair: pair[0])
    points = [(x * shown.width / size[0], y * shown.height / size[1]) for x, y in largest.tolist()]
    return points[0], points[1], points[2], points[3]


def _list_quadrilaterals(outlines: Iterable[Any], size: tuple[int, int]) -> list[tuple[float, NDArray[np.float64]]]:
    import cv2

    least = MIN_AREA * size[0] * size[1]
    # The box around an outline bounds its hull and costs less: a thicket has many thousand outlines.
    boxes = [(cv2.boundingRect(outline), outline) for outline in outlines]
    large = [(box[2] * box[3], outline) for box, outline in boxes if box[2] * box[3] >= least]
    large.sort(key=lambda pair: -pair[0])
    found = []
    for _, outline in large[:MOST_OUTLINES]:
        hull = cv2.convexHull(outline)
        corners = cv2.approxPolyDP(hull, 0.02 * cv2.arcLength(hull, True), True)
        area = float(cv2.contourArea(corners))
        if len(corners) == 4 and area >= least:
            ordered = _order_corners(corners.reshape(4, 2).astype(np.float64))
            if not _is_frame(ordered, size):
                found.append((area, ordered))
    return found


def _order_corners(corners: NDArray[np.float64]) -> NDArray[np.float64]:
    from_middle = corners - corners.mean(axis=0)
    around = corners[np.argsort(np.arctan2(from_middle[:, 1], from_middle[:, 0]))]
    return np.roll(around, -int(around.sum(axis=1).argmin()), axis=0)


def _is_frame(corners: NDArray[np.float64], size: tuple[int, int]) -> bool:
    frame = np.array(list_frame(*size))
    return bool((np.abs(corners - frame) <= FRAME * np.array(size) + 2).all())


def _measure_drawn(corners: NDArray[np.float64], edges: NDArray[Any]) -> float:
    import cv2

    near = cv2.dilate(edges, np.ones((3, 3), np.uint8))
    steps = np.linspace(0.0, 1.0, 200)[:, None]
    sides = [start + steps * (end - start) for start, end in zip(corners, np.roll(corners, -1, axis=0), strict=True)]
    points = np.concatenate(sides).round().astype(int)
    rows = points[:, 1].clip(0, edges.shape[0] - 1)
    columns = points[:, 0].clip(0, edges.shape[1] - 1)
    return float((near[rows, columns] > 0).mean())


def _measure(one: NDArray[np.float64], other: NDArray[np.float64]) -> int:
    return round(float(np.linalg.norm(one - other)))


DEGRADING_VERSION = 1
"""Raised when a degradation makes other pixels of the same picture."""
MOST_SIGMA = 0.02
"""Standard deviation of the strongest blur, as a share of the picture's shorter side."""
MOST_FACTOR = 10.0
"""By which the strongest downsampling divides width and height."""
MOST_SHIFT = 0.3
"""Farthest that perspective moves a corner, as a share of the picture's width and height."""
LEAST_DRAW = 0.4
"""Each corner moves by at least this share of what the strength allows, so that no picture stays as it is."""
MARGIN = 0.04
"""Backdrop left on each side, as a share of the side, so that every edge of the picture is in view."""
DEGRADING_MIN_SIDE = 32
BACKDROPS = ((24, 24, 28), (236, 236, 232), (128, 128, 132))
_ROUNDED = 0.006
"""Pixels by which a corner's place may be off, as it is rounded to a hundredth."""
_CORNERS = tuple(
    f"{corner}_{axis}" for corner in ("upper_left", "upper_right", "lower_right", "lower_left") for axis in "xy"
)


@dataclass(frozen=True, slots=True)
class Degraded:
    """A degraded picture's bytes and what decided them."""

    data: bytes
    parameters: tuple[Parameter, ...]


def degrade_picture(data: bytes, degradation: Degradation, strength: float, *seed: object) -> Degraded:
    """Return a picture, degraded."""
    shown = open_pixels(data)
    if degradation == "blur":
        parameters = _plan_blur(shown.size, strength)
        made = shown.filter(ImageFilter.GaussianBlur(parameters[0].value))
    elif degradation == "downsample":
        parameters = _plan_downsample(shown.size, strength)
        made = shown.resize(measure_degraded("downsample", parameters, shown.size), Image.Resampling.BOX)
    else:
        target = place_corners(shown.size, strength, seed)
        values = [value for point in target for value in point]
        parameters = tuple(Parameter(name=name, value=value) for name, value in zip(_CORNERS, values, strict=True))
        made = warp_picture(shown, list_frame(*shown.size), target, shown.size, _choose_backdrop(shown))
    return Degraded(encode_picture(made, find_extension(data)), parameters)


def _plan_blur(size: tuple[int, int], strength: float) -> tuple[Parameter, ...]:
    return (Parameter(name="sigma", value=round(strength * MOST_SIGMA * min(size), 3)),)


def _plan_downsample(size: tuple[int, int], strength: float) -> tuple[Parameter, ...]:
    wanted = 1.0 + strength * (MOST_FACTOR - 1.0)
    factor = max(1.0, min(wanted, min(size) / DEGRADING_MIN_SIDE))
    width, height = (max(1, round(side / factor)) for side in size)
    return (
        Parameter(name="factor", value=round(factor, 3)),
        Parameter(name="width", value=float(width)),
        Parameter(name="height", value=float(height)),
    )


def place_corners(size: tuple[int, int], strength: float, seed: Sequence[object]) -> Corners:
    """Return the new corners of a picture of ``size`` (width, height): each moves inwards by its own draw.

    Convex at every strength: no corner moves as far as the middle.
    """
    places = []
    for name, edge, side in zip(
        _CORNERS, [edge for corner in list_frame(*size) for edge in corner], size * 4, strict=True
    ):
        drawn = LEAST_DRAW + (1 - LEAST_DRAW) * draw_unit(*seed, *name.rsplit("_", 1))
        inwards = (MARGIN + strength * MOST_SHIFT * drawn) * side
        places.append(round(edge + (inwards if edge == 0 else -inwards), 2))
    return (places[0], places[1]), (places[2], places[3]), (places[4], places[5]), (places[6], places[7])


def measure_degraded(
    degradation: Degradation, parameters: Sequence[Parameter], size: tuple[int, int]
) -> tuple[int, int]:
    """Return width and height of what a degradation makes of a picture of ``size``."""
    if degradation != "downsample":
        return size
    values = {parameter.name: round(parameter.value) for parameter in parameters}
    return values["width"], values["height"]


def fits_strength(
    degradation: Degradation, strength: float, parameters: Sequence[Parameter], size: tuple[int, int]
) -> bool:
    """Return whether a degradation of a picture of ``size`` (width, height) can have these parameters at a strength.

    The corners of perspective are drawn: each may move as far as the strength allows.
    """
    if not 0 < strength <= 1:
        return False
    if degradation != "perspective":
        plan = _plan_blur if degradation == "blur" else _plan_downsample
        return tuple(parameters) == plan(size, strength)
    if tuple(parameter.name for parameter in parameters) != _CORNERS:
        return False
    edges = [edge for corner in list_frame(*size) for edge in corner]
    least, most = (MARGIN + strength * MOST_SHIFT * drawn for drawn in (LEAST_DRAW, 1.0))
    return all(
        least * side - _ROUNDED <= (parameter.value if edge == 0 else edge - parameter.value) <= most * side + _ROUNDED
        for parameter, edge, side in zip(parameters, edges, size * 4, strict=True)
    )


def _choose_backdrop(shown: Image.Image) -> tuple[int, int, int]:
    gray = np.asarray(shown.convert("L"), dtype=np.float64)
    border = np.concatenate([gray[0], gray[-1], gray[:, 0], gray[:, -1]])
    return max(BACKDROPS, key=lambda colour: float(np.quantile(np.abs(border - colour[0]), 0.05)))


SCALES = (1.0, 2.0)
_MIN_LETTERS = 3
"""Letters and digits of a block that counts as text: engines see a 1 or a dot in many a pole, cloud and lawn."""
_GRID = 1024
"""Cells across and down on which the text's share of a picture is counted."""


@dataclass(frozen=True, slots=True)
class Reading:
    """What stands in a picture."""

    lines: tuple[str, ...]
    """Each line once, however its letters were written; in reading order of the first engine that read it."""
    area: float
    """Share of the picture that text covers, 0..1; single letters and signs are left out."""
    engines: tuple[str, ...]
    """Names of those that looked."""


@dataclass(frozen=True, slots=True)
class Reader:
    """Several engines as one. A reading needs all of them: a picture that one engine failed on may hold text.

    Attributes:
        engines: at least one; each reads the picture at every scale.
        scales: factors by which the picture is enlarged; those that a large one cannot be enlarged by are left out.
    """

    engines: tuple[Ocr, ...]
    scales: tuple[float, ...] = SCALES

    @property
    def identity(self) -> str:
        read = "+".join(engine.identity for engine in self.engines)
        return f"{read}@{','.join(f'{scale:g}' for scale in self.scales)}"

    async def read(self, data: bytes) -> Reading:
        """Return what all engines read at all scales."""
        blocks: list[TextBlock] = []
        scales = list_scales(data, self.scales)
        for engine in self.engines:
            for scale in scales:
                blocks += await engine.read_text(data, scale)
        written = [block for block in blocks if sum(map(str.isalnum, block.text)) >= _MIN_LETTERS]
        area = measure_area(written, open_pixels(data).size) if written else 0.0
        return Reading(_list_lines(blocks), area, tuple(engine.name for engine in self.engines))


def measure_area(blocks: Sequence[TextBlock], size: tuple[int, int]) -> float:
    """Return the share of a picture under the union of the blocks' boxes, to a thousandth of its sides."""
    across, down = _GRID / size[0], _GRID / size[1]
    covered = np.zeros((_GRID, _GRID), dtype=np.bool_)
    for block in blocks:
        left, top, right, bottom = block.box
        rows = slice(max(0, round(top * down)), max(0, round(bottom * down)))
        covered[rows, max(0, round(left * across)) : max(0, round(right * across))] = True
    return float(covered.mean())


def _list_lines(blocks: Sequence[TextBlock]) -> tuple[str, ...]:
    lines: dict[str, str] = {}
    for block in blocks:
        for line in block.text.splitlines():
            if line.strip():
                lines.setdefault(fold_name(line), line.strip())
    return tuple(lines.values())


REPAIRING_VERSION = 2
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


@dataclass(frozen=True, slots=True)
class Gauge:
    """One test of what a picture still shows."""

    test: RepairTest
    measure: Callable[[bytes], Awaitable[float]]
    """Returns how much of its use a picture has, 0 to 1; the original has 1."""


def list_words(lines: Sequence[str]) -> frozenset[str]:
    """Return the words of two letters or digits and more, in lower case."""
    return frozenset(_WORD.findall(" ".join(lines).casefold()))


async def find_gauge(data: bytes, reader: Reader | None, search: ImageSearch, title: str, folder: Path) -> Gauge | None:
    """Return the test that a picture passes: by its words, else by a search for it; None for neither."""

    async def count_words(picture: bytes) -> float:
        return len(words & list_words((await reader.read(picture)).lines)) / len(words) if reader else 0.0

    async def look_up(picture: bytes) -> float:
        sha256 = hashlib.sha256(picture).hexdigest()
        path = folder / f"{sha256}.{find_extension(picture)}"
        await asyncio.to_thread(path.write_bytes, picture)
        hits = await search.search_image(PictureFile(sha256, path), HITS)
        return float(any(hit.title == title for hit in hits))

    words = list_words((await reader.read(data)).lines) if reader else frozenset()
    if len(words) >= MIN_WORDS:
        return Gauge("text", count_words)
    return Gauge("image-search", look_up) if title and await look_up(data) else None


FINE = frozenset[Degradation](["blur", "downsample"])
"""What takes fine structure away and leaves everything in its place."""


def make_detail_gauge(data: bytes) -> Gauge:
    """Return the test of how much of a picture's fine structure another picture of the same scene shows.

    For pictures without words that a search finds however blurred they are. The structure is the Laplacian of
    brightness, smoothed by one pixel against noise of the file; the share is its projection on the original's.
    """
    shown = open_pixels(data)
    size, structure = shown.size, _find_structure(shown)
    whole = float((structure * structure).sum()) or 1.0

    async def compare(picture: bytes) -> float:
        return await asyncio.to_thread(lambda: _project(open_pixels(picture)))

    def _project(other: Image.Image) -> float:
        same = other if other.size == size else other.resize(size, Image.Resampling.BICUBIC)
        return max(0.0, min(1.0, float((_find_structure(same) * structure).sum()) / whole))

    return Gauge("detail", compare)


def _find_structure(shown: Image.Image) -> NDArray[np.float32]:
    grey = np.asarray(shown.convert("L").filter(ImageFilter.GaussianBlur(1.0)), dtype=np.float32)
    around = grey[:-2, 1:-1] + grey[2:, 1:-1] + grey[1:-1, :-2] + grey[1:-1, 2:]
    return 4 * grey[1:-1, 1:-1] - around


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
        """Return the trial in words."""
        trial = self.trial
        numbers = ", ".join(f"{parameter.name} {parameter.value:g}" for parameter in trial.parameters)
        degraded, repaired = self.shares
        outcome = "still of use" if trial.degraded else f"{repaired:.2f} after {trial.repair}"
        return f"{trial.degradation} {trial.strength:g} ({numbers}): {trial.test} {degraded:.2f}, {outcome}"


@dataclass(frozen=True, slots=True)
class RepairLoop:
    """A picture with its test, a degradation and the tool paired with it.

    Attributes:
        data: the original's bytes, which pass the test.
        gauge: the test.
        seed: decides what the degradation draws.
    """

    data: bytes
    gauge: Gauge
    degradation: Degradation
    repair: RepairTool
    seed: tuple[object, ...]

    async def find_strength(self, strengths: Sequence[float]) -> list[Tried]:
        """Try strengths until a trial holds, which is then the last one.

        The first strength that breaks the picture may break it beyond repair. Between it and the strongest that did no
        harm, the range that the tool makes good is found by halving: for a blur it is a few per cent wide.
        """
        tried: list[Tried] = []
        harmless, harmful = 0.0, 0.0
        for strength in strengths:
            tried.append(await self.try_strength(strength))
            if not tried[-1].trial.degraded:
                harmful = strength
                break
            harmless = strength
        for _ in range(HALVINGS if harmful else 0):
            if tried[-1].holds:
                break
            strength = round((harmless + harmful) / 2, 4)
            tried.append(await self.try_strength(strength))
            if tried[-1].trial.degraded:
                harmless = strength
            else:
                harmful = strength
        return tried

    async def try_strength(self, strength: float) -> Tried:
        """Degrade the picture, repair it and test both; a picture that is still of use is not repaired."""
        made = await asyncio.to_thread(degrade_picture, self.data, self.degradation, strength, *self.seed)
        degraded = await self.gauge.measure(made.data)
        repaired = 0.0
        if degraded <= BROKEN:
            mended = await asyncio.to_thread(self.repair.mend, made.data)
            repaired = degraded if mended is None else await self.gauge.measure(mended)
        trial = Trial(
            degradation=self.degradation,
            repair=self.repair.name,
            strength=strength,
            parameters=made.parameters,
            test=self.gauge.test,
            before=True,
            degraded=degraded > BROKEN,
            repaired=repaired >= RESTORED,
        )
        return Tried(trial, made.data, (degraded, repaired))
