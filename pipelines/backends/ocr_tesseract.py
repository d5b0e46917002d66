"""Tesseract: the program itself, one process a picture, with an end to its time and its output."""

import asyncio
import hashlib
import io
import os
import re
import shutil
import signal
import subprocess
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from weakref import WeakKeyDictionary

from pipelines.backends.ocr_scaling import ScaledPicture, open_scaled
from pipelines.backends.protocols import TextBlock
from pipelines.errors import ConfigError, RecordFailed

VERSION = 1
PROGRAM = "tesseract"
MODE = "11"
"""Page segmentation: sparse text, as much of it as there is in no particular order; photographs are no pages."""
MIN_CONFIDENCE = 0.3
"""A word's; below it stands what Tesseract makes of leaves and bricks."""
_MIN_SIDE = 8
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
        version = _ask(path, "--version").partition("\n")[0].removeprefix("tesseract").strip()
        models = "+".join(_digest_languages(_ask(path, "--list-langs"), self.languages))
        object.__setattr__(self, "identity", f"tesseract@{VERSION}:{version}:{models}:psm{MODE}:{MIN_CONFIDENCE}")

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
        if min(picture.image.size) < _MIN_SIDE:
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


def _ask(path: str, question: str) -> str:
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
        if word.text and word.confidence >= MIN_CONFIDENCE:
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
