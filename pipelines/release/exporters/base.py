"""What exporters share: options, reading releases, checked pictures, one writer for all formats.

An exporter reads a release folder and fills an empty folder, a few rows at a time. A picture that a trainer's loader
would drop without an error is refused here.
"""

import errno
import hashlib
import json
from collections import Counter, defaultdict
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
from pipelines.release.manifest import check_release_files
from pipelines.release.rows import (
    ROWS_AT_ONCE,
    EmbeddedImage,
    RlRow,
    SftRow,
    explain_misfit,
    open_writer,
    read_values,
)
from schemas.datasets import Dataset

Row = Mapping[str, Any]
RowT = TypeVar("RowT", SftRow, RlRow)
MAX_RATIO = 200
"""Of the longer to the shorter side of a picture; Qwen's loader fails beyond, and veRL then drops the row."""


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

    rows: int
    notes: tuple[str, ...] = ()
    """What the export cannot express, with counts, and how to read the folder."""


@dataclass(frozen=True, slots=True)
class Exporter:
    """One trainer's layout."""

    name: str
    dataset: Dataset
    write: Callable[[Path, Path, ExportOptions], Written]
    """Takes the release folder, an empty folder to fill, and the options."""


def read_release(release: Path, dataset: Dataset, model: type[RowT]) -> Iterator[tuple[str, RowT]]:
    """Yield the split and each row of a release, split by split, in the order of its files."""
    manifest = check_release_files(release)
    if manifest.dataset != dataset:
        raise CorruptInput(f"release {release}: its dataset is {manifest.dataset}; rows are read from {dataset}")
    for path in sorted((release / "data").glob("*.parquet")):
        for values in read_values(path):
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
    size: tuple[int, int]
    """Width and height in pixels as it is displayed."""

    @property
    def name(self) -> str:
        """``<sha256>.<extension>``."""
        return f"{self.sha256}.{self.extension}"

    def save(self, folder: Path) -> str:
        """Write the picture below ``folder``, once, under a name from its hash; return the relative path."""
        name = f"images/{self.sha256[:2]}/{self.name}"
        path = folder / name
        if not path.exists():
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(self.content)
        return name


def check_picture(image: EmbeddedImage, where: str) -> ExportedPicture:
    """Return a row's picture; ``where`` names the row."""
    extension = find_extension(image.bytes)
    if not extension:
        raise CorruptInput(f"{where}: {image.path!r} is not a JPEG, PNG, GIF or WebP picture")
    try:
        header = read_header(image.bytes)
    except RecordFailed as error:
        raise CorruptInput(f"{where}: picture {image.path}: {error}") from error
    size = header.width, header.height
    if max(size) > MAX_RATIO * min(size):
        raise CorruptInput(f"{where}: picture {image.path} is {size[0]} x {size[1]}; loaders take 1 to {MAX_RATIO}")
    picture = ExportedPicture(image.bytes, hashlib.sha256(image.bytes).hexdigest(), extension, size)
    if picture.name != image.path:
        raise CorruptInput(f"{where}: a picture called {image.path!r} holds the bytes of {picture.name}")
    return picture


@contextmanager
def publishing(out: Path) -> Iterator[Path]:
    """Give an empty folder to fill; on a clean exit it becomes ``out``, else it is removed."""
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


def write_files(folder: Path, opening: OpenFile, rows: Iterable[tuple[str, Row]]) -> Counter[str]:
    """Write each row into the file that it names, a few at a time; return the rows of each file."""
    counts, waiting = Counter[str](), defaultdict[str, list[Row]](list)
    with ExitStack() as stack:
        writers: dict[str, WriteRows] = {}
        for name, row in rows:
            if name not in writers:
                writers[name] = stack.enter_context(opening(folder / name))
            waiting[name].append(row)
            counts[name] += 1
            if len(waiting[name]) == ROWS_AT_ONCE:
                writers[name](waiting.pop(name))
        for name, rest in waiting.items():
            writers[name](rest)
    return counts


def write_document(path: Path, value: object, **form: Any) -> None:  # noqa: ANN401 - arguments of json.dumps
    """Write a JSON file that ends with a newline."""
    path.write_text(json.dumps(value, **form) + "\n", encoding="utf-8")
