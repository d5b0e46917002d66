"""RapidOCR: PP-OCR models on onnxruntime, in this process. The models lie in the package; nothing is ever fetched.

Large pictures in pieces, for engines that overlook small text in them, and their readings put together again.

RapidOCR's detector overlooks what is small beside the picture: of 40 signs with letters of 18 to 39 pixels in pictures
1280 to 1920 pixels wide it read 17 when given the whole, 7 when given it enlarged, and 40 in pieces.

Tesseract: the program itself, one process a picture, with an end to its time and its output.

A layout service as PaddleX serves it (``paddlex --serve --pipeline PP-StructureV3`` and its like), over HTTP.

One picture a request, as a PNG of the pixels that are to be read, so that boxes come back in them. PaddleX describes
blocks of the page; of lines that stand in no block (a sign in a photograph) it says only what they read.
"""

import asyncio
import base64
import hashlib
import io
import logging
import os
import re
import shutil
import signal
import subprocess
import threading
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from importlib import metadata
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from weakref import WeakKeyDictionary

import httpx
import numpy as np
import orjson
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFont, ImageStat

from pipelines.errors import ConfigError, RateLimited, RecordFailed, Unavailable
from pipelines.names import fold_name
from pipelines.pixels import ScaledPicture, open_scaled
from pipelines.services.image_metadata import read_wait
from pipelines.services.protocols import TextBlock

WHOLE_SIDE = 960
"""Longest side of a picture that is read in one piece, and of the overview in which large letters are found."""
TILE_SIDE = 736
"""Side of a piece; smaller ones are enlarged by the detector itself."""
OVERLAP = 224
"""Pixels that neighbours share: a word of letters that the overview is too small for."""
_MAX_ASPECT = 2
"""Detectors enlarge the short side of a strip, and without bounds the long one with it."""
_SAME_PLACE = 0.5
_ROW = 10.0


@dataclass(frozen=True, slots=True)
class Piece:
    """A part of a picture to be read."""

    image: Image.Image
    left: int
    top: int
    factor: float = 1.0
    """By which it is smaller than the part."""

    largest: int = 0
    """Height in pixels of the largest letters that are looked for in it; 0 is any."""

    def holds(self, corners: Sequence[tuple[float, float]]) -> bool:
        """Say whether a reading is small enough for the piece: tiles make letters of walls, lawns and clouds."""
        xs, ys = [x for x, _ in corners], [y for _, y in corners]
        return not self.largest or min(max(xs) - min(xs), max(ys) - min(ys)) <= self.largest

    def place_point(self, x: float, y: float) -> tuple[float, float]:
        """Return a point of the piece in pixels of the picture that it was cut from."""
        return self.left + x / self.factor, self.top + y / self.factor


def cut_pieces(image: Image.Image) -> Iterator[Piece]:
    """Yield a picture whole if it is small, else an overview and overlapping tiles of it; strips are filled up.

    Args:
        image: RGB. Of four million pixels and 16,384 a side there are 65 pieces at most.
    """
    factor = WHOLE_SIDE / max(image.size)
    if factor >= 1.0:
        yield Piece(_fill_up(image), 0, 0)
        return
    small = (max(1, round(image.width * factor)), max(1, round(image.height * factor)))
    yield Piece(_fill_up(image.resize(small, Image.Resampling.LANCZOS, reducing_gap=2.0)), 0, 0, factor)
    for top in _list_starts(image.height):
        for left in _list_starts(image.width):
            tile = image.crop((left, top, min(left + TILE_SIDE, image.width), min(top + TILE_SIDE, image.height)))
            yield Piece(_fill_up(tile), left, top, largest=OVERLAP)


def merge_blocks(blocks: Sequence[TextBlock]) -> tuple[TextBlock, ...]:
    """Return the blocks of overlapping pieces from top to bottom, without those that are part of another.

    A block goes when it lies in the place of another whose text holds its own: what was read differently stays.
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
    """Return the places of boxes that cover half of one."""
    across = np.minimum(boxes[:, 2], box[2]) - np.maximum(boxes[:, 0], box[0])
    down = np.minimum(boxes[:, 3], box[3]) - np.maximum(boxes[:, 1], box[1])
    shared = np.clip(across, 0.0, None) * np.clip(down, 0.0, None)
    return [int(place) for place in np.flatnonzero(shared >= _SAME_PLACE * (box[2] - box[0]) * (box[3] - box[1]))]


def _list_starts(length: int) -> list[int]:
    """Return where the tiles of a side begin, evenly, the last one at its end."""
    if length <= TILE_SIDE:
        return [0]
    last = -(-(length - TILE_SIDE) // (TILE_SIDE - OVERLAP))
    return [round(step * (length - TILE_SIDE) / last) for step in range(last + 1)]


def _fill_up(image: Image.Image) -> Image.Image:
    """Return a piece that is no strip, its mean colour beside or under it."""
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
"""The package's own models by the part that they play: finding text, turning it upright, reading it."""
MIN_CONFIDENCE = 0.5
_LONGEST_SIDE = 16_384
_MIN_SIDE = 8
"""Pixels of a picture that may hold a letter."""


@dataclass(frozen=True, slots=True)
class RapidOcr:
    """The engine, loaded when it is first asked, once for each of its threads.

    Attributes:
        threads: pictures read at once; 0 is one for each core, four at most. An engine takes 0.1 GB, and some
            0.3 more while it reads a piece of a picture.
        models: folder of the models; None is the package's own.

    Raises:
        ConfigError: if the extra ``vision`` is not installed, or a model is missing.
    """

    threads: int = 0
    models: Path | None = None
    _digests: tuple[str, ...] = field(init=False, repr=False)
    _pool: ThreadPoolExecutor = field(init=False, repr=False, compare=False)
    _loaded: threading.local = field(init=False, repr=False, compare=False, default_factory=threading.local)

    def __post_init__(self) -> None:
        _find_version()
        object.__setattr__(self, "_digests", tuple(_digest_model(path) for path in self._list_models().values()))
        count = self.threads or min(4, os.cpu_count() or 1)
        object.__setattr__(self, "_pool", ThreadPoolExecutor(count, "rapidocr"))

    @property
    def name(self) -> str:
        """``rapidocr``."""
        return "rapidocr"

    @property
    def identity(self) -> str:
        """Version of the package and the beginnings of its models' sha256."""
        return f"rapidocr@{VERSION}:{_find_version()}:{'+'.join(self._digests)}"

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
        engine = self._load()
        read = [_list_blocks(picture, piece, _ask(engine, piece)) for piece in cut_pieces(picture.image)]
        return read[0] if len(read) == 1 else merge_blocks([block for blocks in read for block in blocks])

    def _load(self) -> Any:  # noqa: ANN401 - the engine has no types
        """Return this thread's engine: it keeps state while it reads a picture."""
        engine = getattr(self._loaded, "engine", None)
        if engine is None:
            engine = self._loaded.engine = _make_engine(self._list_models())
        return engine

    def _list_models(self) -> dict[str, Path]:
        folder = self.models or _find_package() / "models"
        return {part: folder / file for part, file in MODELS.items()}


def _make_engine(models: dict[str, Path]) -> Any:  # noqa: ANN401 - the engine has no types
    logging.getLogger("RapidOCR").setLevel(logging.CRITICAL)
    try:
        from rapidocr import RapidOCR
    except ImportError as error:
        raise _explain_missing(error) from error
    settings = {
        "Global.log_level": "critical",
        "Global.text_score": MIN_CONFIDENCE,
        "Global.max_side_len": _LONGEST_SIDE,
        # One core a picture, so that the same picture is read the same on every machine.
        "EngineConfig.onnxruntime.intra_op_num_threads": 1,
        "EngineConfig.onnxruntime.inter_op_num_threads": 1,
    }
    # With a path, the engine opens the file; without one, it fetches what it does not find.
    settings |= {f"{part}.model_path": str(path) for part, path in models.items()}
    try:
        engine = RapidOCR(params=settings)
        # It loads a model when it first needs it: one that is broken must not be found out picture by picture.
        read = getattr(engine(_draw_proof()), "txts", None)
    except ImportError as error:
        raise _explain_missing(error) from error
    except Exception as error:
        raise ConfigError(f"rapidocr: its models cannot be loaded: {type(error).__name__}: {error}") from error
    if not read:
        raise ConfigError("rapidocr: its models read nothing on a plain sign; expected those of the package")
    return engine


def _ask(engine: Any, piece: Piece) -> Any:  # noqa: ANN401 - the engine has no types
    try:
        # Blue comes first with OpenCV.
        return engine(np.ascontiguousarray(np.asarray(piece.image)[:, :, ::-1]))
    except Exception as error:
        # The engine documents no errors of its own, and one picture must not end a run.
        raise RecordFailed("ocr-failed", f"rapidocr: {type(error).__name__}: {str(error)[-300:]}") from error


def _draw_proof() -> NDArray[np.uint8]:
    """Return a picture on which every engine can read something."""
    picture = Image.new("RGB", (200, 80), "white")
    ImageDraw.Draw(picture).text((20, 15), "Bridge", font=ImageFont.load_default(40), fill="black")
    return np.asarray(picture)


def _list_blocks(picture: ScaledPicture, piece: Piece, output: Any) -> tuple[TextBlock, ...]:  # noqa: ANN401
    boxes: Sequence[Any] | None = getattr(output, "boxes", None)
    texts: Sequence[str] | None = getattr(output, "txts", None)
    if boxes is None:
        return ()
    if texts is None:
        # The engine swallows an error of its reader and returns what it had: text was found and not read.
        raise RecordFailed("ocr-failed", f"rapidocr found text in {len(boxes)} places and read none")
    corners = [[(float(x), float(y)) for x, y in box] for box in boxes]
    return tuple(
        TextBlock(text, "text", picture.restore_box([piece.place_point(x, y) for x, y in points]), float(score))
        for points, text, score in zip(corners, texts, output.scores, strict=True)
        if text.strip() and piece.holds(points)
    )


def _find_version() -> str:
    try:
        return metadata.version("rapidocr")
    except metadata.PackageNotFoundError as error:
        raise _explain_missing(error) from error


def _find_package() -> Path:
    try:
        import rapidocr
    except ImportError as error:
        raise _explain_missing(error) from error
    return Path(str(rapidocr.__file__)).parent


def _digest_model(path: Path) -> str:
    try:
        return hashlib.sha256(path.read_bytes()).hexdigest()[:12]
    except OSError as error:
        raise ConfigError(
            f"rapidocr: model {path.name}: {error.strerror}; it comes with the package, and nothing is fetched: "
            "pip install --force-reinstall rapidocr"
        ) from error


def _explain_missing(error: ImportError) -> ConfigError:
    return ConfigError(f"OCR engine rapidocr: {error}; pip install 'synth[vision]'")


OCR_TESSERACT_VERSION = 1
PROGRAM = "tesseract"
MODE = "11"
"""Page segmentation: sparse text, as much of it as there is in no particular order; photographs are no pages."""
OCR_TESSERACT_MIN_CONFIDENCE = 0.3
"""A word's; below it stands what Tesseract makes of leaves and bricks."""
_OCR_TESSERACT_MIN_SIDE = 8
_MAX_OUTPUT = 8 << 20
_KEPT_ERROR = 4096
_CHUNK = 1 << 16
_ASK_SECONDS = 30.0
_WORD_LEVEL = "5"
_FOLDER = re.compile(r'List of available languages in "(.*)"')
_COLUMNS = 12


@dataclass(frozen=True, slots=True)
class Tesseract:
    """The program behind one path.

    Attributes:
        languages: as Tesseract takes them: ``eng+deu``.
        seconds: longest that one picture may take; then the process is killed.
        program: name or path.
        processes: at once; 0 is one for each core, four at most.

    Raises:
        ConfigError: if the program or a language is missing.
    """

    languages: str = "eng"
    seconds: float = 60.0
    program: str = PROGRAM
    processes: int = 0
    identity: str = field(init=False)
    """Version, languages with the beginnings of their models' sha256, and settings."""
    _path: str = field(init=False, repr=False)
    _slots: WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Semaphore] = field(
        init=False, repr=False, compare=False, default_factory=WeakKeyDictionary
    )

    def __post_init__(self) -> None:
        path = shutil.which(self.program)
        if path is None:
            raise ConfigError(f"OCR engine tesseract: no program {self.program}; apt-get install tesseract-ocr")
        object.__setattr__(self, "_path", path)
        version = _ask_ocr_tesseract(path, "--version").partition("\n")[0].removeprefix("tesseract").strip()
        models = "+".join(_digest_languages(_ask_ocr_tesseract(path, "--list-langs"), self.languages))
        object.__setattr__(
            self,
            "identity",
            f"tesseract@{OCR_TESSERACT_VERSION}:{version}:{models}:psm{MODE}:{OCR_TESSERACT_MIN_CONFIDENCE}",
        )

    @property
    def name(self) -> str:
        """``tesseract``."""
        return "tesseract"

    async def read_text(self, data: bytes, scale: float = 1.0) -> tuple[TextBlock, ...]:
        """Return the lines that can be read, with the mean confidence of their words.

        Raises:
            RecordFailed: if the picture cannot be decoded; ``ocr-timeout`` if it takes too long, ``ocr-failed`` if the
                program breaks on it.
        """
        picture = await asyncio.to_thread(open_scaled, data, scale)
        if min(picture.image.size) < _OCR_TESSERACT_MIN_SIDE:
            return ()
        async with self._find_slots():
            encoded = await asyncio.to_thread(_encode, picture)
            output = await self._run(encoded)
        return _read_table(output, picture)

    def _find_slots(self) -> asyncio.Semaphore:
        """Return the running loop's semaphore; one belongs to a single loop."""
        loop = asyncio.get_running_loop()
        if loop not in self._slots:
            self._slots[loop] = asyncio.Semaphore(self.processes or min(4, os.cpu_count() or 1))
        return self._slots[loop]

    async def _run(self, encoded: bytes) -> str:
        arguments = ("stdin", "stdout", "--psm", MODE, "-l", self.languages, "tsv")
        process = await asyncio.create_subprocess_exec(
            self._path,
            *arguments,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            env=_make_environment(),
            start_new_session=True,
        )
        try:
            async with asyncio.timeout(self.seconds):
                _, output, said = await asyncio.gather(
                    _feed(process, encoded), _read_bounded(process.stdout), _read_opening(process.stderr)
                )
                code = await process.wait()
        except TimeoutError as error:
            raise RecordFailed("ocr-timeout", f"tesseract: no end in {self.seconds:g} s") from error
        finally:
            await _end(process)
        if code:
            raise RecordFailed("ocr-failed", f"tesseract ended with {code}: {said[-300:]!r}")
        return output


async def _feed(process: asyncio.subprocess.Process, encoded: bytes) -> None:
    assert process.stdin is not None
    # A program that ends before it has read everything says why in its exit status.
    with suppress(BrokenPipeError, ConnectionResetError):
        process.stdin.write(encoded)
        await process.stdin.drain()
    process.stdin.close()
    with suppress(BrokenPipeError, ConnectionResetError):
        await process.stdin.wait_closed()


async def _read_bounded(stream: asyncio.StreamReader | None) -> str:
    assert stream is not None
    output = bytearray()
    while chunk := await stream.read(_CHUNK):
        output += chunk
        if len(output) > _MAX_OUTPUT:
            raise RecordFailed("ocr-failed", f"tesseract: more than {_MAX_OUTPUT:,} bytes of output")
    return output.decode("utf-8", "replace")


async def _read_opening(stream: asyncio.StreamReader | None) -> str:
    """Return the beginning of what a program says, and let the rest go by so that it is never kept waiting."""
    assert stream is not None
    said = bytearray()
    while chunk := await stream.read(_CHUNK):
        said += chunk[: _KEPT_ERROR - len(said)]
    return said.decode("utf-8", "replace")


async def _end(process: asyncio.subprocess.Process) -> None:
    if process.returncode is None:
        # With its children: one that lived on would keep the pipes open, and us waiting.
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        # asyncio sees no end of a process whose output nobody takes.
        while process.stdout is not None and await process.stdout.read(_CHUNK):
            continue
        await process.wait()


def _make_environment() -> Mapping[str, str]:
    # One thread a process: several pictures are read at once, and more threads slow each other down.
    return os.environ | {"OMP_THREAD_LIMIT": "1", "LC_ALL": "C"}


def _ask_ocr_tesseract(path: str, question: str) -> str:
    try:
        answer = subprocess.run(
            [path, question],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=_ASK_SECONDS,
            check=True,
            env=_make_environment(),
        )
    except (OSError, subprocess.SubprocessError) as error:
        raise ConfigError(f"OCR engine tesseract: {path} {question} fails: {error}") from error
    return answer.stdout.decode("utf-8", "replace")


def _digest_languages(listed: str, languages: str) -> list[str]:
    """Return each language with a digest of its model.

    Raises:
        ConfigError: if there is no such language.
    """
    found = _FOLDER.search(listed)
    known = listed.split()
    digests = []
    for language in languages.split("+"):
        path = Path(found.group(1) if found else "", f"{language}.traineddata")
        if language not in known or not path.is_file():
            package = language.replace("_", "-")
            raise ConfigError(
                f"OCR engine tesseract: no language {language!r}; apt-get install tesseract-ocr-{package}"
            )
        digests.append(f"{language}-{hashlib.sha256(path.read_bytes()).hexdigest()[:12]}")
    return digests


def _encode(picture: ScaledPicture) -> bytes:
    target = io.BytesIO()
    picture.image.save(target, "PNG", compress_level=1)
    return target.getvalue()


@dataclass(frozen=True, slots=True)
class _Word:
    text: str
    confidence: float
    left: float
    top: float
    right: float
    bottom: float


def _read_table(table: str, picture: ScaledPicture) -> tuple[TextBlock, ...]:
    """Return the lines of a TSV output.

    Raises:
        RecordFailed: ``ocr-failed`` if it has another form.
    """
    lines: dict[tuple[str, ...], list[_Word]] = {}
    for row in table.split("\n")[1:]:
        cells = row.rstrip("\r").split("\t")
        if len(cells) != _COLUMNS or cells[0] != _WORD_LEVEL:
            continue
        word = _read_word(cells)
        if word.text and word.confidence >= OCR_TESSERACT_MIN_CONFIDENCE:
            lines.setdefault(tuple(cells[1:5]), []).append(word)
    return tuple(_join_words(words, picture) for words in lines.values())


def _read_word(cells: list[str]) -> _Word:
    try:
        left, top, width, height, confidence = map(float, cells[6:11])
    except ValueError as error:
        raise RecordFailed("ocr-failed", f"tesseract: a row of another form: {cells[6:11]}") from error
    return _Word(cells[11].strip(), min(max(confidence / 100, 0.0), 1.0), left, top, left + width, top + height)


def _join_words(words: list[_Word], picture: ScaledPicture) -> TextBlock:
    corners = [corner for word in words for corner in ((word.left, word.top), (word.right, word.bottom))]
    confidence = sum(word.confidence for word in words) / len(words)
    return TextBlock(" ".join(word.text for word in words), "text", picture.restore_box(corners), confidence)


OCR_PADDLEX_VERSION = 1
_PATH = "/layout-parsing"
_HEALTH = "/health"
_MAX_REPLY = 32 << 20
_HEALTH_SECONDS = 10.0
_QUOTED = 200
_PICTURES_FAULT = (400, 413, 415, 422)


@dataclass(frozen=True, slots=True)
class _Reply:
    status: int
    headers: httpx.Headers
    body: bytes

    @property
    def said(self) -> str:
        """Status and beginning of the body on one line, for messages."""
        text = self.body[:_QUOTED].decode("utf-8", "replace")
        return f"HTTP {self.status}: {' '.join(''.join(char if char.isprintable() else ' ' for char in text).split())}"


class _Broken(Exception):
    """No whole reply to this picture; whether the service is to blame is not yet known."""


@dataclass(frozen=True, slots=True)
class PaddleX:
    """The service at one address.

    Attributes:
        url: address of the service, with or without ``/layout-parsing``; no user, password or parameters.
        seconds: longest that one picture may take.
        revision: what tells two services apart that were known by the same address.

    Raises:
        ConfigError: if the address is none.
    """

    url: str
    seconds: float = 60.0
    revision: str = ""

    def __post_init__(self) -> None:
        _check_address(self.url)

    @property
    def name(self) -> str:
        """``paddlex``."""
        return "paddlex"

    @property
    def identity(self) -> str:
        """Revision, or the address where there is none: the service does not tell its models."""
        return f"paddlex@{OCR_PADDLEX_VERSION}:{self.revision or self._base}"

    @property
    def _base(self) -> str:
        return self.url.rstrip("/").removesuffix(_PATH)

    async def read_text(self, data: bytes, scale: float = 1.0) -> tuple[TextBlock, ...]:
        """Return the blocks of the page in reading order, then the lines that stand in none.

        Raises:
            RecordFailed: if the picture cannot be decoded; ``ocr-refused`` if the service does not take it, and
                ``ocr-failed`` or ``ocr-timeout`` if it breaks on it and is healthy otherwise.
            RateLimited: if the service asks to slow down.
            Unavailable: if it is away.
            ConfigError: if the address is no such service.
        """
        picture = await asyncio.to_thread(open_scaled, data, scale)
        body = await asyncio.to_thread(_make_body, picture)
        # A client for each picture: connections belong to a loop, and a reply takes seconds.
        async with httpx.AsyncClient(trust_env=False, timeout=None, headers={"User-Agent": "synth"}) as client:
            try:
                async with asyncio.timeout(self.seconds):
                    reply = await _post(client, f"{self._base}{_PATH}", body)
            except TimeoutError as error:
                await self._blame(client, f"no whole reply in {self.seconds:g} s")
                raise RecordFailed("ocr-timeout", f"{self._base}: no whole reply in {self.seconds:g} s") from error
            except _Broken as error:
                await self._blame(client, str(error))
                raise RecordFailed("ocr-failed", f"{self._base}: {error}") from error
            if reply.status >= 500 and reply.status != 503:
                await self._blame(client, reply.said)
                raise RecordFailed("ocr-failed", f"{self._base}: {reply.said}")
        return _read_blocks(self._base, _read_result(self._base, reply), picture)

    async def _blame(self, client: httpx.AsyncClient, said: str) -> None:
        """Return if the service is healthy: then it is the picture's fault.

        Raises:
            Unavailable: if it is not.
        """
        try:
            async with asyncio.timeout(_HEALTH_SECONDS):
                health = await client.get(f"{self._base}{_HEALTH}")
        except (TimeoutError, httpx.HTTPError) as error:
            raise Unavailable(f"{self._base}: {said}; and no answer to {_HEALTH} ({type(error).__name__})") from error
        if health.status_code != 200:
            raise Unavailable(f"{self._base}: {said}; and HTTP {health.status_code} to {_HEALTH}")


async def _post(client: httpx.AsyncClient, url: str, body: bytes) -> _Reply:
    try:
        async with client.stream("POST", url, content=body, headers={"Content-Type": "application/json"}) as response:
            received = bytearray()
            async for chunk in response.aiter_bytes():
                received += chunk
                if len(received) > _MAX_REPLY:
                    raise _Broken(f"a reply of over {_MAX_REPLY:,} bytes")
            return _Reply(response.status_code, response.headers, bytes(received))
    except httpx.HTTPError as error:
        raise _Broken(f"no whole reply ({type(error).__name__}: {error})") from error


def _make_body(picture: ScaledPicture) -> bytes:
    target = io.BytesIO()
    picture.image.save(target, "PNG", compress_level=1)
    return orjson.dumps(
        {
            "file": base64.b64encode(target.getvalue()).decode("ascii"),
            "fileType": 1,
            # Boxes must stay those of the pixels that were sent.
            "useDocOrientationClassify": False,
            "useDocUnwarping": False,
            "visualize": False,
        }
    )


def _read_result(place: str, reply: _Reply) -> Mapping[str, Any]:
    """Return the description of the picture.

    Raises:
        RateLimited, RecordFailed, ConfigError: see :meth:`PaddleX.read_text`.
    """
    wait = read_wait(reply.headers)
    if reply.status in (429, 503):
        raise RateLimited(f"{place}: HTTP {reply.status}", wait)
    if reply.status in _PICTURES_FAULT:
        raise RecordFailed("ocr-refused", f"{place}: {reply.said}")
    if reply.status != 200:
        raise ConfigError(f"ocr.url {place}: {reply.said}; expected a layout service of PaddleX")
    try:
        read = orjson.loads(reply.body)
        pages = read["result"]["layoutParsingResults"]
        (page,) = pages
        pruned = page["prunedResult"]
    except (orjson.JSONDecodeError, KeyError, TypeError, ValueError) as error:
        raise ConfigError(f"ocr.url {place}: {reply.said}; expected one layoutParsingResults ({error!r})") from error
    if not isinstance(pruned, dict) or not isinstance(pruned.get("parsing_res_list"), list):
        raise ConfigError(f"ocr.url {place}: no parsing_res_list in its reply; expected a layout service of PaddleX")
    return pruned


def _read_blocks(place: str, pruned: Mapping[str, Any], picture: ScaledPicture) -> tuple[TextBlock, ...]:
    try:
        blocks = [_read_block(given, picture) for given in pruned["parsing_res_list"]]
        blocks = [block for block in blocks if block.text]
        return (*blocks, *_list_stray_lines(pruned.get("overall_ocr_res") or {}, blocks, picture))
    except (KeyError, TypeError, ValueError, AttributeError, IndexError) as error:
        raise RecordFailed("ocr-failed", f"{place}: a block of another form ({error!r})") from error


def _read_block(given: Mapping[str, Any], picture: ScaledPicture) -> TextBlock:
    # Blocks come without a confidence: the service leaves out what it is not sure of.
    text = str(given["block_content"] or "").strip()
    return TextBlock(text, str(given["block_label"]), _read_box(given["block_bbox"], picture), 1.0)


def _list_stray_lines(read: Mapping[str, Any], blocks: Sequence[TextBlock], picture: ScaledPicture) -> list[TextBlock]:
    """Return the lines of the whole picture whose text stands in none of its blocks."""
    known = "\n".join(fold_name(block.text) for block in blocks)
    lines = []
    texts = [str(text) for text in read.get("rec_texts", ())]
    for text, box, score in zip(texts, read.get("rec_boxes", ()), read.get("rec_scores", ()), strict=True):
        if text.strip() and fold_name(text) not in known:
            confidence = min(max(float(score), 0.0), 1.0)
            lines.append(TextBlock(text.strip(), "text", _read_box(box, picture), confidence))
    return lines


def _read_box(given: Sequence[Any], picture: ScaledPicture) -> tuple[float, float, float, float]:
    left, top, right, bottom = map(float, given)
    return picture.restore_box([(left, top), (right, bottom)])


def _check_address(url: str) -> None:
    try:
        address = urlsplit(url)
        served = address.scheme in ("http", "https") and bool(address.hostname) and address.port != 0
    except ValueError:
        served = False
    if "@" in url or "?" in url or "#" in url:
        raise ConfigError("ocr.url has a user, password or parameters; give the address alone")
    if not served:
        raise ConfigError(f"ocr.url {url!r}; expected such as http://127.0.0.1:8080")
