"""What an exporter is: it reads a release folder, fills an empty folder, and its rules read that folder back.

Rows of JSON-lines and Parquet files, a few in memory at a time.

Writing an export: into a folder beside its place, renamed when its rules found nothing, never over another one.

The pictures that a release holds in its rows; none is believed to be what it is called.

What picture files readers fail on, with the standard library alone: kind by magic bytes, size from the header.
"""

import errno
import hashlib
import json
import shutil
import struct
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Literal, TypeVar

import pyarrow as pa
import pyarrow.parquet as pq
from pydantic import BaseModel, ValidationError

from pipelines.errors import ConfigError, CorruptInput, RecordFailed
from pipelines.files import explain_os_error, make_temp_path, sync_files, sync_folder
from pipelines.pixels import find_extension, read_header
from pipelines.release.manifest import check_release_files
from pipelines.release.rows import EmbeddedImage, RlRow, SftRow, explain_misfit, make_release_schema, open_writer
from schemas.datasets import Dataset

CallForm = Literal["native", "text"]
DEFAULT_NAME = "synth"


@dataclass(frozen=True, slots=True)
class ExportOptions:
    """How rows are written."""

    dialect: str = ""
    """Protocol to write the conversations in; empty leaves them as they are."""
    name: str = ""
    """What the dataset is called where a reader asks for a name; empty is ``synth``."""
    calls: CallForm = "native"
    """Tool calls as the reader's own kind of message, or as the text that the teacher wrote. A dialect whose calls are
    no JSON in tool_call tags is always written as text."""

    @property
    def title(self) -> str:
        """The dataset's name."""
        return self.name or DEFAULT_NAME


@dataclass(frozen=True, slots=True)
class Written:
    """What an exporter made of a release."""

    rows_in: int
    rows_out: int
    notes: tuple[str, ...] = ()
    """What the reader cannot be told, with counts, and how to read the folder."""


@dataclass(frozen=True, slots=True)
class ExportReport:
    """An export that was published."""

    to: str
    rows_in: int
    rows_out: int
    files: int
    notes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Exporter:
    """One trainer's layout."""

    name: str
    dataset: Dataset
    """The dataset it is made from."""
    write: Callable[[Path, Path, ExportOptions], Written]
    """Release folder, empty folder to fill, options."""
    check: Callable[[Path], Iterable[str]]
    """Yields what its reader would drop, shift or fail on in a folder."""


RowT = TypeVar("RowT", SftRow, RlRow)
ROWS_AT_ONCE = 8
"""Rows of a table that are objects of Python at a time; each may hold its pictures."""


def read_lines(path: Path) -> Iterator[dict[str, Any]]:
    """Yield the rows of a JSON-lines file.

    Raises:
        CorruptInput: if a line is no JSON object.
    """
    with path.open("rb") as lines:
        for number, line in enumerate(lines, 1):
            row = _read_json(line, f"{path}: line {number}")
            if not isinstance(row, dict):
                raise CorruptInput(f"{path}: line {number} is no JSON object")
            yield row


def read_document(path: Path) -> object:
    """Return what a JSON file holds, all of it in memory.

    Raises:
        CorruptInput: if it is none.
    """
    return _read_json(path.read_bytes(), str(path))


def _read_json(source: bytes, where: str) -> object:
    """Return a value; of bytes that are no UTF-8 the decoder's error is a ValueError, too."""
    try:
        return json.loads(source.decode())
    except (ValueError, RecursionError) as error:
        raise CorruptInput(f"{where} is no JSON: {error}") from error


def read_table(path: Path) -> Iterator[dict[str, Any]]:
    """Yield the rows of a Parquet file, a few in memory at a time.

    Raises:
        CorruptInput: if it cannot be read.
    """
    try:
        with pq.ParquetFile(path) as source:
            for group in range(source.num_row_groups):
                # Asked for all at once, it would keep every group that it has read.
                for batch in source.iter_batches(batch_size=ROWS_AT_ONCE, row_groups=[group]):
                    yield from batch.to_pylist()
    except (pa.ArrowException, UnicodeDecodeError) as error:
        raise CorruptInput(f"{path}: a Parquet file cannot be read: {error}") from error


def read_release(release: Path, dataset: Dataset, model: type[RowT]) -> Iterator[tuple[str, RowT]]:
    """Yield the split and each row of a release, split by split, in the order of its files.

    Raises:
        ConfigError: if there is no readable manifest.
        CorruptInput: if it is a release of another dataset, or a row is not what such a release holds.
        GateNotMet: if a file is not the one that the manifest lists.
    """
    manifest = check_release_files(release)
    if manifest.dataset != dataset:
        raise CorruptInput(f"release {release}: its dataset is {manifest.dataset}; rows are read from {dataset}")
    for path in sorted((release / "data").glob("*.parquet")):
        for values in read_table(path):
            yield path.name.partition("-")[0], _read_row(values, model, path)


def _read_row(values: dict[str, Any], model: type[RowT], path: Path) -> RowT:
    try:
        return model.model_validate(values, strict=False)
    except ValidationError as error:
        what = f"{path}: row {values.get('id')!r} is no {model.__name__} of this version"
        raise CorruptInput(f"{what}: {explain_misfit(error)}; make the release anew") from error


@dataclass(frozen=True, slots=True)
class VerifiedPicture:
    """A picture whose bytes were hashed again."""

    content: bytes
    sha256: str
    extension: str
    """From the bytes, never from a name."""

    @property
    def name(self) -> str:
        """``<sha256>.<extension>``."""
        return f"{self.sha256}.{self.extension}"

    def measure(self) -> tuple[int, int]:
        """Return width and height in pixels as it is displayed, without decoding it.

        Raises:
            CorruptInput: if it is a broken file.
        """
        try:
            header = read_header(self.content)
        except RecordFailed as error:
            raise CorruptInput(f"picture {self.name}: {error}") from error
        return header.width, header.height


def check_picture(image: EmbeddedImage, where: str) -> VerifiedPicture:
    """Return a row's picture.

    Raises:
        CorruptInput: if it is none, or its name is not that of its content; ``where`` names the row.
    """
    extension = find_extension(image.bytes)
    if not extension:
        raise CorruptInput(f"{where}: {image.path!r} is no JPEG, PNG, GIF or WebP picture")
    picture = VerifiedPicture(image.bytes, hashlib.sha256(image.bytes).hexdigest(), extension)
    if picture.name != image.path:
        raise CorruptInput(f"{where}: a picture called {image.path!r} holds the bytes of {picture.name}")
    return picture


MAX_RATIO = 200
"""Of the longer to the shorter side; Qwen's picture loader raises beyond."""
START_OF_FRAME = frozenset(range(0xC0, 0xD0)) - {0xC4, 0xC8, 0xCC}


def find_picture_faults(data: object, where: str) -> Iterator[str]:
    """Yield what is wrong with a picture's bytes: no PNG, JPEG, GIF or WebP with a size, or one far too narrow."""
    if not isinstance(data, bytes) or not data:
        yield f"{where} has no bytes: a path alone is not opened"
        return
    size = measure_picture(data)
    if size is None or min(size) < 1:
        yield f"{where} is no PNG, JPEG, GIF or WebP file"
    elif max(size) > MAX_RATIO * min(size):
        yield f"{where} is {size[0]} x {size[1]}: sides may differ by a factor of {MAX_RATIO} at most"


def measure_picture(data: bytes) -> tuple[int, int] | None:
    """Return a picture's width and height in pixels from its header; None where it is no known picture."""
    try:
        if data[:8] == b"\x89PNG\r\n\x1a\n":
            return struct.unpack_from(">II", data, 16)
        if data[:6] in (b"GIF87a", b"GIF89a"):
            return struct.unpack_from("<HH", data, 6)
        if data[:2] == b"\xff\xd8":
            return _measure_jpeg(data)
        if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
            return _measure_webp(data)
    except (struct.error, IndexError):
        return None
    return None


def _measure_jpeg(data: bytes) -> tuple[int, int] | None:
    place = 2
    while place < len(data):
        if data[place] != 0xFF:
            return None
        marker = data[place + 1]
        if marker == 0xFF:
            place += 1
        elif marker in START_OF_FRAME:
            height, width = struct.unpack_from(">HH", data, place + 5)
            return width, height
        else:
            place += 2 + struct.unpack_from(">H", data, place + 2)[0]
    return None


def _measure_webp(data: bytes) -> tuple[int, int] | None:
    kind = data[12:16]
    if kind == b"VP8X":
        return int.from_bytes(data[24:27], "little") + 1, int.from_bytes(data[27:30], "little") + 1
    if kind == b"VP8L":
        bits = struct.unpack_from("<I", data, 21)[0]
        return (bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1
    if kind == b"VP8 ":
        width, height = struct.unpack_from("<HH", data, 26)
        return width & 0x3FFF, height & 0x3FFF
    return None


IMAGES = "images"
CREDITS = "ATTRIBUTION.tsv"
EXPORT = "export.json"
ROWS_IN_GROUP = 32
TAKEN = (errno.EEXIST, errno.ENOTEMPTY)


@contextmanager
def publishing(out: Path) -> Iterator[Path]:
    """Give an empty folder to fill; on a clean exit it becomes ``out``, else it is removed.

    Raises:
        ConfigError: if there is something at ``out``, or its path cannot be written to.
        Unavailable: if the disk is full.
    """
    if out.is_symlink() or out.is_file() or (out.is_dir() and any(out.iterdir())):
        raise _refuse(out)
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        staging = make_temp_path(out)
        staging.mkdir()
        try:
            yield staging
            sync_files(staging)
            _move(staging, out)
        finally:
            shutil.rmtree(staging, ignore_errors=True)
    except OSError as error:
        raise explain_os_error(error, f"export {out}") from error


def _move(staging: Path, out: Path) -> None:
    try:
        staging.rename(out)
    except OSError as error:
        if error.errno in TAKEN:
            raise _refuse(out) from error
        raise
    sync_folder(out.parent)


def _refuse(out: Path) -> ConfigError:
    return ConfigError(f"export {out}: there is something already; name a folder that does not exist")


def save_picture(folder: Path, picture: VerifiedPicture) -> str:
    """Write a picture under the name its content gives it, once, and return its path relative to ``folder``."""
    name = f"{IMAGES}/{picture.sha256[:2]}/{picture.name}"
    path = folder / name
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(picture.content)
    return name


class LineFiles:
    """JSON-lines files of an export, one a split."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.rows: dict[str, int] = {}
        self._open: dict[str, IO[str]] = {}
        self._stack = ExitStack()

    def __enter__(self) -> "LineFiles":
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def write(self, split: str, row: Mapping[str, Any]) -> None:
        """Append a row to the split's file."""
        if split not in self._open:
            opened = (self.folder / f"{split}.jsonl").open("w", encoding="utf-8", newline="\n")
            self._open[split] = self._stack.enter_context(opened)
        self._open[split].write(json.dumps(row, ensure_ascii=False) + "\n")
        self.rows[split] = self.rows.get(split, 0) + 1


class TableFiles:
    """Parquet files of an export, one a split, written a few rows at a time."""

    def __init__(self, folder: Path, model: type[BaseModel]) -> None:
        self.folder = folder
        self.schema = make_release_schema(model)
        self.rows: dict[str, int] = {}
        self._waiting: dict[str, list[dict[str, Any]]] = {}
        self._writers: dict[str, pq.ParquetWriter] = {}
        self._stack = ExitStack()

    def __enter__(self) -> "TableFiles":
        return self

    def __exit__(self, *_: object) -> None:
        with self._stack:
            for split in self._waiting:
                self._flush(split)

    def write(self, split: str, row: BaseModel) -> None:
        """Append a row to the split's file."""
        waiting = self._waiting.setdefault(split, [])
        waiting.append(row.model_dump())
        self.rows[split] = self.rows.get(split, 0) + 1
        if len(waiting) == ROWS_IN_GROUP:
            self._flush(split)

    def _flush(self, split: str) -> None:
        if split not in self._writers:
            writer = open_writer(self.folder / f"{split}.parquet", self.schema)
            self._writers[split] = self._stack.enter_context(writer)
        rows, self._waiting[split] = self._waiting[split], []
        if rows:
            self._writers[split].write_table(pa.Table.from_pylist(rows, schema=self.schema))


class PictureFiles:
    """The picture files of a folder that is held to rules; each is opened once, however many rows show it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._opened: set[str] = set()

    def exists(self, name: str) -> bool:
        """Whether there is such a file."""
        return (self.folder / name).is_file()

    def find_faults(self, names: object) -> Iterator[str]:
        """Yield which of a row's files are no pictures; names that are none of a file here are left to the rules."""
        for name in names if isinstance(names, list) else ():
            if not isinstance(name, str) or name in self._opened or name.startswith("/") or ".." in name.split("/"):
                continue
            self._opened.add(name)
            if self.exists(name):
                yield from find_picture_faults((self.folder / name).read_bytes(), f"images: {name}")


def check_tables(folder: Path, find_faults: Callable[[dict[str, Any]], Iterable[str]]) -> Iterator[str]:
    """Yield what a rule finds in the rows of every Parquet file of a folder."""
    paths = sorted(folder.glob("*.parquet"))
    if not paths:
        yield "there is no .parquet file"
    for path in paths:
        yield from _check_table(path, find_faults)


def _check_table(path: Path, find_faults: Callable[[dict[str, Any]], Iterable[str]]) -> Iterator[str]:
    number = 0
    try:
        for number, row in enumerate(read_table(path), 1):
            yield from (f"{path.name} row {number}: {fault}" for fault in find_faults(row))
    except CorruptInput as error:
        yield str(error)
        return
    if not number:
        yield f"{path.name}: holds no row"


def copy_credits(release: Path, folder: Path) -> None:
    """Copy who made the pictures, which their licences want beside them."""
    source = release / CREDITS
    if source.is_file():
        shutil.copyfile(source, folder / CREDITS)
