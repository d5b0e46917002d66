"""Writing an export: into a folder beside its place, renamed when its rules found nothing, never over another one."""

import errno
import json
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import IO, Any

import pyarrow as pa
import pyarrow.parquet as pq
from pydantic import BaseModel

from pipelines.errors import ConfigError, CorruptInput
from pipelines.files import explain_os_error, make_temp_path, sync_files, sync_folder
from pipelines.release.exporters.embedded import ShownPicture
from pipelines.release.exporters.picture_rules import find_picture_faults
from pipelines.release.exporters.reading import read_table
from pipelines.release.features import make_release_schema
from pipelines.release.tables import open_writer

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


def save_picture(folder: Path, picture: ShownPicture) -> str:
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
