"""The bytes of a MediaWiki table dump (``mysqldump`` output), a window at a time, and where its rows begin.

Layouts change: three of ``pagelinks`` and three of ``categorylinks`` are in circulation, and a reader by position takes
one column for another without a word. So columns are looked up in the file's own ``CREATE TABLE``.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, cast

from isal import igzip, isal_zlib

from pipelines.errors import ConfigError, CorruptInput

PAD = 24
"""Bytes before a window's first that belong to no row, so that eight bytes can be loaded at the end of any number."""
MAX_ROW_BYTES = 16 << 20

_BAD_DEFLATE = cast(type[Exception], isal_zlib.error)  # isal types it as an instance
_BLOCK_BYTES = 1 << 19
_HEAD_BYTES = 1 << 16
_NAME = rb"(?:`?\w+`?\.)?`?(\w+)`?"
_CREATE = re.compile(rb"\s*+CREATE TABLE (?:IF NOT EXISTS )?" + _NAME + rb"\s*\(", re.IGNORECASE)
_INSERT = re.compile(rb"\s*+(?:INSERT|REPLACE) (?:IGNORE )?INTO " + _NAME, re.IGNORECASE)
_VALUES = re.compile(rb"\s*+(?:\(([^()]*+)\)\s*+)?VALUES", re.IGNORECASE)
_COLUMN = re.compile(rb"\s*`(\w+)`\s")
_STRING = re.compile(rb"'(?:[^'\\]|\\.)*+'")
_REQUIRED = re.compile(rb"\bNOT\s++NULL\b", re.IGNORECASE)


class Window:
    """The part of a file that is in memory: ``data[position:]`` is what nobody has read yet.

    Args:
        path: the file, for messages.
        stream: its bytes, unpacked.
    """

    __slots__ = ("_stream", "data", "path", "position")

    def __init__(self, path: Path, stream: BinaryIO) -> None:
        self.path = path
        self.data = bytes(PAD)
        self.position = PAD
        self._stream = stream

    def grow(self) -> bool:
        """Read on, twice as far as the unread part is long, and forget what was read; False at the end of the file.

        Raises:
            CorruptInput: the file is cut short or no gzip file.
        """
        unread = self.data[self.position :]
        try:
            more = self._stream.read(max(_BLOCK_BYTES, len(unread)))
        except (EOFError, OSError, _BAD_DEFLATE) as error:
            raise CorruptInput(
                f"{self.path} is cut short or no gzip file ({error}); expected a whole .sql.gz"
            ) from error
        self.data = bytes(PAD) + unread + more
        self.position = PAD
        return bool(more)

    def hold(self, size: int) -> bool:
        """Have at least this many unread bytes, or all that the file has left; False when nothing is left."""
        while len(self.data) - self.position < size and self.grow():
            continue
        return len(self.data) > self.position

    def skip_line(self) -> None:
        """Go on behind the next line break, or to the end of the file."""
        while (found := self.data.find(b"\n", self.position)) < 0:
            self.position = len(self.data)
            if not self.grow():
                return
        self.position = found + 1


def find_inserts(path: Path, table: str, columns: Sequence[str]) -> Iterator[tuple[Window, list[str]]]:
    """Yield a window placed behind the word ``VALUES`` of each INSERT of a table, and the statement's column names.

    Whoever takes the window must read it up to the statement's semicolon before asking for the next.

    Args:
        path: a ``.sql`` or ``.sql.gz`` file.
        table: name of the table in the file.
        columns: names that must be present.

    Raises:
        ConfigError: there is no such file, table or column; the message names those present.
        CorruptInput: the file is cut short, no gzip, or a statement has no end.
    """
    seen: dict[str, list[str]] = {}
    with _open_sql(path) as stream:
        window = Window(path, stream)
        while window.hold(_HEAD_BYTES):
            if match := _CREATE.match(window.data, window.position):
                name, window.position = match.group(1).decode(), match.end()
                seen[name] = list(_read_columns(window))
                if name == table:
                    _require_columns(path, table, columns, seen[table])
            elif (match := _INSERT.match(window.data, window.position)) and match.group(1).decode() == table:
                window.position = match.end()
                names = _read_names(window) or seen.get(table, [])
                _require_columns(path, table, columns, names)
                yield window, names
            else:
                window.skip_line()
    if table not in seen:
        raise ConfigError(f"{path} has no table {table}; it has {', '.join(sorted(seen)) or 'none'}")


def list_columns(path: Path, table: str) -> dict[str, bool]:
    """Return the names of a table's columns, in the file's order, and whether each may be NULL.

    Raises:
        ConfigError: there is no such file or table.
        CorruptInput: the file is cut short or no gzip file.
    """
    seen: list[str] = []
    with _open_sql(path) as stream:
        window = Window(path, stream)
        while window.hold(_HEAD_BYTES):
            if match := _CREATE.match(window.data, window.position):
                window.position = match.end()
                columns = _read_columns(window)
                if match.group(1).decode() == table:
                    return columns
                seen.append(match.group(1).decode())
            else:
                window.skip_line()
    raise ConfigError(f"{path} has no table {table}; it has {', '.join(sorted(seen)) or 'none'}")


def is_by_number(columns: Mapping[str, bool], title: str, number: str, has_targets: bool) -> bool:
    """Say whether a table's targets are to be read by their number in ``linktarget``, not by title.

    Between the layouts a table had both: at first a number in some rows, in which case it may be NULL; at last a title
    in some rows, while the number was required and the title left at its default, which is empty.

    Args:
        columns: as :func:`list_columns` returns.
        title: the column of titles.
        number: the column of numbers.
        has_targets: whether there is a ``linktarget``.
    """
    return title not in columns or (has_targets and not columns.get(number, True))


@contextmanager
def _open_sql(path: Path) -> Iterator[BinaryIO]:
    if not path.is_file():
        raise ConfigError(f"no SQL table at {path}; expected a .sql or .sql.gz file")
    with path.open("rb") as raw:
        is_gzip = raw.read(2) == b"\x1f\x8b"
        raw.seek(0)
        if path.suffix == ".gz" and not is_gzip:
            raise CorruptInput(f"{path} is not a gzip file; expected a whole .sql.gz")
        if not is_gzip:
            yield raw
            return
        with igzip.GzipFile(fileobj=raw, mode="rb") as stream:  # type: ignore[no-untyped-call]
            yield cast(BinaryIO, stream)


def _read_columns(window: Window) -> dict[str, bool]:
    """Return whether each column may be NULL."""
    columns: dict[str, bool] = {}
    while True:
        end = window.data.find(b"\n", window.position)
        if end < 0:
            if len(window.data) - window.position > MAX_ROW_BYTES or not window.grow():
                raise CorruptInput(f"{window.path}: a CREATE TABLE has no end; expected one column a line, then )")
            continue
        line = window.data[window.position : end + 1]
        window.position = end + 1
        if line.lstrip().startswith(b")"):
            return columns
        if match := _COLUMN.match(line):
            columns[match.group(1).decode()] = not _REQUIRED.search(_STRING.sub(b"", line))


def _read_names(window: Window) -> list[str]:
    match = _VALUES.match(window.data, window.position)
    if match is None:
        found = window.data[window.position : window.position + 80]
        raise CorruptInput(f"{window.path}: {found!r} after INSERT INTO; expected column names or none, then VALUES")
    window.position = match.end()
    return re.findall(r"\w+", match.group(1).decode()) if match.group(1) else []


def _require_columns(path: Path, table: str, wanted: Sequence[str], present: Sequence[str]) -> None:
    missing = [column for column in wanted if column not in present]
    if missing:
        raise ConfigError(f"{path}: table {table} has no {', '.join(missing)}; it has {', '.join(present) or 'none'}")
