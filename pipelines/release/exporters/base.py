"""What exporters share: options, reading releases and foreign files, one writer for all formats, checks of whole files.

An exporter reads a release folder and fills an empty folder; its check reads that folder by the trainer's rules. Rows
are read and written a few at a time, and every picture is hashed again.
"""

import errno
import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeVar

import pyarrow as pa
from pydantic import ValidationError

from pipelines.errors import ConfigError, CorruptInput, RecordFailed
from pipelines.files import drafting_folder, explain_os_error
from pipelines.pictures import find_extension, read_header
from pipelines.release.exporters.rules import describe_picture_fault
from pipelines.release.manifest import check_release_files
from pipelines.release.rows import ROWS_AT_ONCE, EmbeddedImage, RlRow, SftRow, explain_misfit, open_writer, read_values
from schemas.datasets import Dataset

Row = Mapping[str, Any]
RowT = TypeVar("RowT", SftRow, RlRow)
EXPORT = "export.json"


@dataclass(frozen=True, slots=True)
class ExportOptions:
    """How rows are written."""

    dialect: str = ""
    """Dialect to rewrite the conversations in; empty leaves them as they are."""
    name: str = "synth"
    """Name of the dataset for readers that need one; it also names files and folders."""
    calls: Literal["native", "text"] = "native"
    """Tool calls as the reader's own kind of message, or as the teacher's text; calls of a dialect that are not JSON in
    tool_call tags are always text."""


@dataclass(frozen=True, slots=True)
class Written:
    """What an exporter made of a release."""

    rows_in: int
    rows_out: int
    notes: tuple[str, ...] = ()
    """What the export cannot express, with counts, and how to read the folder."""


@dataclass(frozen=True, slots=True)
class Exporter:
    """One trainer's layout."""

    name: str
    dataset: Dataset
    write: Callable[[Path, Path, ExportOptions], Written]
    """Takes the release folder, an empty folder to fill, and the options."""
    check: Callable[[Path], Iterable[str]]
    """Yields what the trainer's reader would drop, shift or fail on in a folder."""


def read_lines(path: Path) -> Iterator[dict[str, Any]]:
    """Yield the rows of a JSON-lines file.

    Raises:
        CorruptInput: if a line is not a JSON object.
    """
    with path.open("rb") as lines:
        for number, line in enumerate(lines, 1):
            row = _read_json(line, f"{path}: line {number}")
            if not isinstance(row, dict):
                raise CorruptInput(f"{path}: line {number} is not a JSON object")
            yield row


def read_document(path: Path) -> object:
    """Return the value of a JSON file.

    Raises:
        CorruptInput: if it is not JSON.
    """
    return _read_json(path.read_bytes(), str(path))


def _read_json(source: bytes, where: str) -> object:
    try:
        return json.loads(source.decode())
    except (ValueError, RecursionError) as error:
        raise CorruptInput(f"{where} is not JSON: {error}") from error


def read_table(path: Path) -> Iterator[dict[str, Any]]:
    """Yield the rows of a Parquet file, a few in memory at a time.

    Raises:
        CorruptInput: if it cannot be read.
    """
    try:
        yield from read_values(path)
    except (pa.ArrowException, UnicodeDecodeError) as error:
        raise CorruptInput(f"{path}: a Parquet file cannot be read: {error}") from error


def read_release(release: Path, dataset: Dataset, model: type[RowT]) -> Iterator[tuple[str, RowT]]:
    """Yield the split and each row of a release, split by split, in the order of its files.

    Raises:
        ConfigError: if there is no readable manifest.
        CorruptInput: if the release is of another dataset, or a row is not of this version.
        GateNotMet: if a file differs from the manifest.
    """
    manifest = check_release_files(release, linked=True)
    if manifest.dataset != dataset:
        raise CorruptInput(f"release {release}: its dataset is {manifest.dataset}; rows are read from {dataset}")
    for path in sorted((release / "data").glob("*.parquet")):
        for values in read_table(path):
            try:
                row = model.model_validate(values, strict=False)
            except ValidationError as error:
                what = f"{path}: row {values.get('id')!r} is no {model.__name__} of this version"
                raise CorruptInput(f"{what}: {explain_misfit(error)}; make the release again") from error
            yield path.name.partition("-")[0], row


@dataclass(frozen=True, slots=True)
class ExportedPicture:
    """A picture whose bytes were hashed again."""

    content: bytes
    sha256: str
    extension: str
    """From the bytes, not from a name."""

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

    def save(self, folder: Path) -> str:
        """Write the picture below ``folder``, once, under a name from its hash; return the relative path."""
        name = f"images/{self.sha256[:2]}/{self.name}"
        path = folder / name
        if not path.exists():
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(self.content)
        return name


def check_picture(image: EmbeddedImage, where: str) -> ExportedPicture:
    """Return a row's picture.

    Raises:
        CorruptInput: if it is no picture, or its name does not match its content; ``where`` names the row.
    """
    extension = find_extension(image.bytes)
    if not extension:
        raise CorruptInput(f"{where}: {image.path!r} is not a JPEG, PNG, GIF or WebP picture")
    picture = ExportedPicture(image.bytes, hashlib.sha256(image.bytes).hexdigest(), extension)
    if picture.name != image.path:
        raise CorruptInput(f"{where}: a picture called {image.path!r} holds the bytes of {picture.name}")
    return picture


@contextmanager
def publishing(out: Path) -> Iterator[Path]:
    """Give an empty folder to fill; on a clean exit it becomes ``out``, else it is removed.

    Raises:
        ConfigError: if there is something at ``out``, or its path cannot be written to.
        Unavailable: if the disk is full.
    """
    taken = ConfigError(f"export {out}: there is something already; name a folder that does not exist")
    if out.is_symlink() or out.is_file() or (out.is_dir() and any(out.iterdir())):
        raise taken
    try:
        with drafting_folder(out) as staging:
            yield staging
    except OSError as error:
        if error.errno in (errno.EEXIST, errno.ENOTEMPTY) and out.exists():
            raise taken from error
        raise explain_os_error(error, f"export {out}") from error


WriteRows = Callable[[list[Row]], object]
OpenFile = Callable[[Path], AbstractContextManager[WriteRows]]


@contextmanager
def open_lines(path: Path) -> Iterator[WriteRows]:
    """Open a JSON-lines file to write rows to."""
    with path.open("w", encoding="utf-8", newline="\n") as sink:
        yield lambda rows: sink.writelines(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)


def open_table(schema: pa.Schema) -> OpenFile:
    """Return what opens a Parquet file of a schema to write row groups to."""

    @contextmanager
    def opening(path: Path) -> Iterator[WriteRows]:
        with open_writer(path, schema) as writer:
            yield lambda rows: writer.write_table(pa.Table.from_pylist(rows, schema=schema))

    return opening


def open_arrow(schema: pa.Schema) -> OpenFile:
    """Return what opens an Arrow file of a schema to write record batches to."""

    @contextmanager
    def opening(path: Path) -> Iterator[WriteRows]:
        with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_file(sink, schema) as writer:
            yield lambda rows: writer.write_batch(pa.RecordBatch.from_pylist(rows, schema=schema))

    return opening


class SplitFiles:
    """Files of an export, one a split, written ``batch`` rows at a time."""

    def __init__(self, folder: Path, suffix: str, opening: OpenFile, batch: int = ROWS_AT_ONCE) -> None:
        self.folder = folder
        self.rows: dict[str, int] = {}
        """Rows by split."""
        self._suffix, self._opening, self._batch = suffix, opening, batch
        self._waiting: dict[str, list[Row]] = {}
        self._writers: dict[str, WriteRows] = {}
        self._stack = ExitStack()

    def __enter__(self) -> "SplitFiles":
        return self

    def __exit__(self, *_: object) -> None:
        with self._stack:
            for split in self._waiting:
                self._flush(split)

    @property
    def total(self) -> int:
        """Rows of all splits."""
        return sum(self.rows.values())

    def write(self, split: str, row: Row) -> None:
        """Append a row to the split's file."""
        waiting = self._waiting.setdefault(split, [])
        waiting.append(row)
        self.rows[split] = self.rows.get(split, 0) + 1
        if len(waiting) == self._batch:
            self._flush(split)

    def _flush(self, split: str) -> None:
        if split not in self._writers:
            opened = self._opening(self.folder / f"{split}{self._suffix}")
            self._writers[split] = self._stack.enter_context(opened)
        rows, self._waiting[split] = self._waiting[split], []
        if rows:
            self._writers[split](rows)


def write_document(path: Path, value: object, **form: Any) -> None:  # noqa: ANN401 - arguments of json.dumps
    """Write a JSON file that ends with a newline."""
    path.write_text(json.dumps(value, **form) + "\n", encoding="utf-8")


def check_rows(name: str, unit: str, rows: Iterable[Row], find_faults: Callable[[Row], Iterable[str]]) -> Iterator[str]:
    """Yield what a rule finds in a file's rows; also that the file cannot be read or has no row."""
    number = 0
    try:
        for number, row in enumerate(rows, 1):
            yield from (f"{name} {unit} {number}: {fault}" for fault in find_faults(row))
    except CorruptInput as error:
        yield str(error)
        return
    if not number:
        yield f"{name}: holds no row"


def check_tables(folder: Path, find_faults: Callable[[Row], Iterable[str]]) -> Iterator[str]:
    """Yield what a rule finds in the rows of every Parquet file of a folder; also that there is no such file."""
    paths = sorted(folder.glob("*.parquet"))
    if not paths:
        yield "there is no .parquet file"
    for path in paths:
        yield from check_rows(path.name, "row", read_table(path), find_faults)


class PictureFiles:
    """The picture files of a folder that is checked; each is opened once, however many rows show it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._opened: set[str] = set()

    def exists(self, name: str) -> bool:
        """Whether there is such a file."""
        return (self.folder / name).is_file()

    def find_faults(self, names: object) -> Iterator[str]:
        """Yield which of a row's files are not pictures; names that lead to no file of the folder are passed over."""
        for name in names if isinstance(names, list) else ():
            if not isinstance(name, str) or name in self._opened or name.startswith("/") or ".." in name.split("/"):
                continue
            self._opened.add(name)
            if self.exists(name) and (fault := describe_picture_fault((self.folder / name).read_bytes())):
                yield f"images: {name} {fault}"
