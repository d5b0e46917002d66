"""RapidOCR: PP-OCR models on onnxruntime, in this process. The package contains the models; nothing is fetched.

Large pictures are read in pieces, because the detector misses small text in large pictures. Of 40 signs with letters of
18 to 39 pixels in pictures 1280 to 1920 pixels wide it read 17 in the whole picture, 7 in an enlarged one, 40 in
pieces.
"""

import asyncio
import hashlib
import logging
import os
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFont, ImageStat

from pipelines.errors import ConfigError, RecordFailed
from pipelines.names import fold_name
from pipelines.pictures import ScaledPicture, open_scaled
from pipelines.services.protocols import TextBlock

WHOLE_SIDE = 960
"""Longest side of a picture that is read whole, and of the overview for large letters."""
TILE_SIDE = 736
"""Side of a tile; the detector enlarges smaller ones."""
OVERLAP = 224
"""Pixels that neighbouring tiles share: a word in letters too small for the overview."""
_MAX_ASPECT = 2
"""Detectors enlarge the short side of a strip, and the long one with it, without bounds."""
_SAME_PLACE = 0.5
_ROW = 10.0


@dataclass(frozen=True, slots=True)
class OcrPiece:
    """A part of a picture to be read, ``factor`` times its size; ``largest`` letters wanted in pixels, 0 for any."""

    image: Image.Image
    left: int
    top: int
    factor: float = 1.0
    largest: int = 0

    def holds(self, corners: Sequence[tuple[float, float]]) -> bool:
        """Return whether a reading is small enough for the piece; tiles show letters in walls, lawns and clouds."""
        xs, ys = [x for x, _ in corners], [y for _, y in corners]
        return not self.largest or min(max(xs) - min(xs), max(ys) - min(ys)) <= self.largest

    def place_point(self, x: float, y: float) -> tuple[float, float]:
        """Return a point of the piece in pixels of the picture that it was cut from."""
        return self.left + x / self.factor, self.top + y / self.factor


def cut_pieces(image: Image.Image) -> Iterator[OcrPiece]:
    """Yield a small RGB picture whole, a large one as an overview and overlapping tiles (65 pieces at most)."""
    factor = WHOLE_SIDE / max(image.size)
    if factor >= 1.0:
        yield OcrPiece(_fill_up(image), 0, 0)
        return
    small = (max(1, round(image.width * factor)), max(1, round(image.height * factor)))
    yield OcrPiece(_fill_up(image.resize(small, Image.Resampling.LANCZOS, reducing_gap=2.0)), 0, 0, factor)
    for top in _list_starts(image.height):
        for left in _list_starts(image.width):
            tile = image.crop((left, top, min(left + TILE_SIDE, image.width), min(top + TILE_SIDE, image.height)))
            yield OcrPiece(_fill_up(tile), left, top, largest=OVERLAP)


def merge_blocks(blocks: Sequence[TextBlock]) -> tuple[TextBlock, ...]:
    """Return the blocks of overlapping pieces from top to bottom, without those that repeat a part of another.

    A block is dropped if another one covers its place and contains its text; different readings stay.
    """
    order = sorted(range(len(blocks)), key=lambda place: (-len(blocks[place].text), -blocks[place].confidence))
    boxes = np.array([blocks[place].box for place in order], dtype=np.float64).reshape(-1, 4)
    texts = [fold_name(blocks[place].text).replace(" ", "") for place in order]
    kept: list[int] = []
    for number, text in enumerate(texts):
        near = _find_covering(boxes[kept], boxes[number])
        if not any(text in texts[kept[place]] for place in near):
            kept.append(number)
    found = [blocks[order[number]] for number in kept]
    return tuple(sorted(found, key=lambda block: (round(block.box[1] / _ROW), block.box[0])))


def _find_covering(boxes: NDArray[np.float64], box: NDArray[np.float64]) -> list[int]:
    """Return the indexes of boxes that cover half of a box."""
    across = np.minimum(boxes[:, 2], box[2]) - np.maximum(boxes[:, 0], box[0])
    down = np.minimum(boxes[:, 3], box[3]) - np.maximum(boxes[:, 1], box[1])
    shared = np.clip(across, 0.0, None) * np.clip(down, 0.0, None)
    return [int(place) for place in np.flatnonzero(shared >= _SAME_PLACE * (box[2] - box[0]) * (box[3] - box[1]))]


def _list_starts(length: int) -> list[int]:
    """Return where the tiles of a side begin, evenly spaced."""
    if length <= TILE_SIDE:
        return [0]
    last = -(-(length - TILE_SIDE) // (TILE_SIDE - OVERLAP))
    return [round(step * (length - TILE_SIDE) / last) for step in range(last + 1)]


def _fill_up(image: Image.Image) -> Image.Image:
    """Return a strip padded with its mean colour, other pieces as they are."""
    least = -(-max(image.size) // _MAX_ASPECT)
    if min(image.size) >= least:
        return image
    ground = tuple(round(level) for level in ImageStat.Stat(image).mean)
    filled = Image.new("RGB", (max(image.width, least), max(image.height, least)), ground)
    filled.paste(image)
    return filled


VERSION = 2
"""2: large pictures in pieces."""
MODELS = {
    "Det": "PP-OCRv6_det_small.onnx",
    "Cls": "ch_ppocr_mobile_v2.0_cls_mobile.onnx",
    "Rec": "PP-OCRv6_rec_small.onnx",
}
"""The package's models for finding text, turning it upright and reading it."""
MIN_CONFIDENCE = 0.5
_LONGEST_SIDE = 16_384
_MIN_SIDE = 8
"""Least pixels of a picture with a letter."""


class RapidOcr:
    """The engine, loaded at its first use, once a thread, because it keeps state while it reads.

    Args:
        threads: pictures read at once; 0 is one a core, four at most. An engine takes 0.1 GB, and 0.3 more for a piece.
        models: folder of the models; None is the package's own.

    Raises:
        ConfigError: if the extra ``vision`` is not installed, or a model is missing.
    """

    name = "rapidocr"

    def __init__(self, threads: int = 0, models: Path | None = None) -> None:
        package = find_spec("rapidocr")
        if package is None or package.origin is None:
            raise ConfigError("OCR engine rapidocr: it is not installed; pip install 'synth[vision]'")
        folder = models or Path(package.origin).with_name("models")
        self._models = {part: folder / file for part, file in MODELS.items()}
        digests = "+".join(map(_digest_model, self._models.values()))
        self.identity = f"rapidocr@{VERSION}:{metadata.version('rapidocr')}:{digests}"
        self._pool = ThreadPoolExecutor(threads or min(4, os.cpu_count() or 1), "rapidocr")
        self._loaded = threading.local()

    async def read_text(self, data: bytes, scale: float = 1.0) -> tuple[TextBlock, ...]:
        """Return the lines that can be read, from top to bottom.

        Raises:
            RecordFailed: if the picture cannot be decoded; ``ocr-failed`` if the engine breaks on it.
            ConfigError: if onnxruntime is not installed, or cannot load the models.
        """
        return await asyncio.get_running_loop().run_in_executor(self._pool, self._read, data, scale)

    def _read(self, data: bytes, scale: float) -> tuple[TextBlock, ...]:
        picture = open_scaled(data, scale)
        if min(picture.image.size) < _MIN_SIDE:
            return ()
        engine = getattr(self._loaded, "engine", None)
        if engine is None:
            engine = self._loaded.engine = _load_engine(self._models)
        read = [_read_piece(engine, picture, piece) for piece in cut_pieces(picture.image)]
        return read[0] if len(read) == 1 else merge_blocks([block for blocks in read for block in blocks])


def _load_engine(models: dict[str, Path]) -> Any:  # noqa: ANN401 - the engine has no types
    logging.getLogger("RapidOCR").setLevel(logging.CRITICAL)
    settings = {
        "Global.log_level": "critical",
        "Global.text_score": MIN_CONFIDENCE,
        "Global.max_side_len": _LONGEST_SIDE,
        # One core a picture, for the same result on every machine.
        "EngineConfig.onnxruntime.intra_op_num_threads": 1,
        "EngineConfig.onnxruntime.inter_op_num_threads": 1,
    }
    # Without a path, the engine would fetch missing models.
    settings |= {f"{part}.model_path": str(path) for part, path in models.items()}
    # The engine loads models when it first needs them, so a plain sign shows here whether they work.
    sign = Image.new("RGB", (200, 80), "white")
    ImageDraw.Draw(sign).text((20, 15), "Bridge", font=ImageFont.load_default(40), fill="black")
    try:
        from rapidocr import RapidOCR

        engine = RapidOCR(params=settings)
        read = getattr(engine(np.asarray(sign)), "txts", None)
    except ImportError as error:
        raise ConfigError(f"OCR engine rapidocr: {error}; pip install 'synth[vision]'") from error
    except Exception as error:
        raise ConfigError(f"rapidocr: its models cannot be loaded: {type(error).__name__}: {error}") from error
    if not read:
        raise ConfigError("rapidocr: its models read nothing on a plain sign; expected those of the package")
    return engine


def _read_piece(engine: Any, picture: ScaledPicture, piece: OcrPiece) -> tuple[TextBlock, ...]:  # noqa: ANN401
    try:
        # BGR, as OpenCV.
        output = engine(np.ascontiguousarray(np.asarray(piece.image)[:, :, ::-1]))
    except Exception as error:
        # The engine documents no errors, and one picture must not end a run.
        raise RecordFailed("ocr-failed", f"rapidocr: {type(error).__name__}: {str(error)[-300:]}") from error
    boxes, texts = getattr(output, "boxes", None), getattr(output, "txts", None)
    if boxes is None:
        return ()
    if texts is None:
        # The engine hides errors of its reader.
        raise RecordFailed("ocr-failed", f"rapidocr found text in {len(boxes)} places and read none")
    corners = [[(float(x), float(y)) for x, y in box] for box in boxes]
    return tuple(
        TextBlock(text, "text", picture.restore_box([piece.place_point(x, y) for x, y in points]), float(score))
        for points, text, score in zip(corners, texts, output.scores, strict=True)
        if text.strip() and piece.holds(points)
    )


def _digest_model(path: Path) -> str:
    try:
        return hashlib.sha256(path.read_bytes()).hexdigest()[:12]
    except OSError as error:
        raise ConfigError(
            f"rapidocr: model {path.name}: {error.strerror}; it comes with the package, and nothing is fetched: "
            "pip install --force-reinstall rapidocr"
        ) from error
