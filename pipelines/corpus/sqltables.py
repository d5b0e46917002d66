"""Read MediaWiki's SQL table dumps (``mysqldump`` output), streaming, columns by name.

Layouts change: three of ``categorylinks`` are in circulation, and a reader by position would take one column for
another. So columns are looked up in the file's own ``CREATE TABLE``.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, cast

import numpy as np
import pyarrow as pa
from isal import igzip, isal_zlib
from numpy.typing import NDArray

from pipelines.errors import ConfigError, CorruptInput

MAX_ROW_BYTES = 16 << 20

_BAD_DEFLATE = cast(type[Exception], isal_zlib.error)  # isal types it as an instance
_BLOCK_BYTES = 1 << 19
_HEAD_BYTES = 1 << 16
_NAME = rb"(?:`?\w+`?\.)?`?(\w+)`?"
_CREATE = re.compile(rb"\s*+CREATE TABLE (?:IF NOT EXISTS )?" + _NAME + rb"\s*\(", re.IGNORECASE)
_INSERT = re.compile(rb"\s*+(?:INSERT|REPLACE) (?:IGNORE )?INTO " + _NAME, re.IGNORECASE)
_VALUES = re.compile(rb"\s*+(?:\(([^()]*+)\)\s*+)?VALUES", re.IGNORECASE)
_COLUMN = re.compile(rb"\s*`(\w+)`\s")
_NUMBER = rb"[-+]?\d{1,99}+(?:\.\d{0,99}+)?(?:[eE][-+]?\d{1,9}+)?"
_VALUE = rb"(NULL|" + _NUMBER + rb"|(?:_binary )?'(?:[^'\\]++|\\.|'')*+'|0x(?:[0-9A-Fa-f]{2})++)"
_ROWS = 10_000
_SEPARATOR = re.compile(rb"\s*+([,;])")
_ESCAPE = re.compile(rb"\\(.)", re.DOTALL)
_ESCAPED = {b"n": b"\n", b"r": b"\r", b"t": b"\t", b"0": b"\0", b"Z": b"\x1a", b"b": b"\b"}
"""Meaning of a letter behind a backslash; any other stands for itself."""

SqlValue = int | float | bytes | None


class Window:
    """The part of a file that is in memory: ``data[position:]`` is unread."""

    __slots__ = ("_stream", "data", "path", "position")

    def __init__(self, path: Path, stream: BinaryIO) -> None:
        self.path = path
        self.data = b""
        self.position = 0
        self._stream = stream

    def grow(self) -> bool:
        """Read on, twice as far as the unread part is long, and forget what was read; False at the end of the file."""
        unread = self.data[self.position :]
        try:
            more = self._stream.read(max(_BLOCK_BYTES, len(unread)))
        except (EOFError, OSError, _BAD_DEFLATE) as error:
            raise CorruptInput(
                f"{self.path} is truncated or no gzip file ({error}); expected a whole .sql.gz"
            ) from error
        self.data = unread + more
        self.position = 0
        return bool(more)

    def hold(self, size: int) -> bool:
        """Read until this many bytes are unread, or to the end of the file; False when no byte is left."""
        while len(self.data) - self.position < size and self.grow():
            continue
        return len(self.data) > self.position

    def skip_line(self) -> None:
        """Skip to the next line, or to the end of the file."""
        while (found := self.data.find(b"\n", self.position)) < 0:
            self.position = len(self.data)
            if not self.grow():
                return
        self.position = found + 1


@dataclass(frozen=True, slots=True)
class Block:
    """Consecutive rows of a table, at least one."""

    integers: tuple[NDArray[np.int64], ...]
    texts: tuple[pa.BinaryArray, ...]
    """Bytes as in the table, null where it says NULL."""


def read_columns(path: Path, table: str, integers: Sequence[str], texts: Sequence[str] = ()) -> Iterator[Block]:
    """Yield columns of a table by name as arrays, streaming, some ten thousand rows at a time."""
    seen: dict[str, dict[str, bool]] = {}
    wanted = [*integers, *texts]
    with _open_sql(path) as window:
        for name, created in _find_statements(window):
            if created is not None:
                seen[name] = created
            if name != table:
                continue
            names = list(created if created is not None else _read_names(window) or seen.get(table, []))
            missing = [column for column in wanted if column not in names]
            if missing:
                raise ConfigError(
                    f"{path}: table {table} has no {', '.join(missing)}; it has {', '.join(names) or 'none'}"
                )
            for rows in _read_rows(window, names, wanted) if created is None else ():
                columns = list(zip(*rows, strict=True))
                yield Block(
                    tuple(_pack_integers(path, *named) for named in zip(integers, columns, strict=False)),
                    tuple(_pack_texts(path, *named) for named in zip(texts, columns[len(integers) :], strict=True)),
                )
    if table not in seen:
        raise _miss_table(path, table, seen)


def list_columns(path: Path, table: str) -> dict[str, bool]:
    """Return the names of a table's columns, each with whether its values may be NULL."""
    seen: list[str] = []
    with _open_sql(path) as window:
        for name, created in _find_statements(window):
            if created is not None and name == table:
                return created
            seen += [name] if created is not None else []
    raise _miss_table(path, table, seen)


def _miss_table(path: Path, table: str, seen: Iterable[str]) -> ConfigError:
    return ConfigError(f"{path} has no table {table}; it has {', '.join(sorted(seen)) or 'none'}")


def _find_statements(window: Window) -> Iterator[tuple[str, dict[str, bool] | None]]:
    while window.hold(_HEAD_BYTES):
        if match := _CREATE.match(window.data, window.position):
            window.position = match.end()
            yield match.group(1).decode(), _read_created(window)
        elif match := _INSERT.match(window.data, window.position):
            window.position = match.end()
            yield match.group(1).decode(), None
        else:
            window.skip_line()


def _read_created(window: Window) -> dict[str, bool]:
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
            columns[match.group(1).decode()] = b"NOT NULL" not in line.upper()


def _read_names(window: Window) -> list[str]:
    match = _VALUES.match(window.data, window.position)
    if match is None:
        found = window.data[window.position : window.position + 80]
        raise CorruptInput(f"{window.path}: {found!r} after INSERT INTO; expected column names or none, then VALUES")
    window.position = match.end()
    return re.findall(r"\w+", match.group(1).decode()) if match.group(1) else []


def _read_rows(window: Window, names: Sequence[str], wanted: Sequence[str]) -> Iterator[list[tuple[SqlValue, ...]]]:
    values = rb"\s*,\s*".join([_VALUE] * len(names))
    row = re.compile(rb"\s*+\(\s*" + values + rb"\s*\)", re.DOTALL)
    groups = [names.index(column) + 1 for column in wanted]
    rows: list[tuple[SqlValue, ...]] = []
    is_end, held = False, 0
    while not is_end:
        match = row.match(window.data, window.position)
        separator = match and _SEPARATOR.match(window.data, match.end())
        if match is None or separator is None:
            _read_on(window, match.end() if match else window.position)
            continue
        rows.append(tuple([_decode_value(match.group(group)) for group in groups]))
        window.position = separator.end()
        is_end = separator.group(1) == b";"
        held += match.end() - match.start()
        if is_end or len(rows) == _ROWS or held > MAX_ROW_BYTES:
            yield rows
            rows, held = [], 0


def _read_on(window: Window, position: int) -> None:
    if position > window.position and (rest := window.data[position:].strip()):
        raise CorruptInput(f"{window.path}: {rest[:80]!r} after a row; expected a comma or a semicolon")
    rest = window.data[window.position : window.position + 80]
    if len(window.data) - window.position > MAX_ROW_BYTES or not window.grow():
        raise CorruptInput(f"{window.path}: not a row of this table, or truncated: {rest!r}; expected a whole table")


def _decode_value(source: bytes) -> SqlValue:
    if source.isdigit():
        return int(source)
    if source[:1] in b"'_":
        return _decode_string(source[source.index(b"'") + 1 : -1])
    if source == b"NULL":
        return None
    if source[:2] == b"0x":
        return bytes.fromhex(source[2:].decode())
    return float(source) if any(mark in source for mark in b".eE") else int(source)


def _decode_string(body: bytes) -> bytes:
    body = body.replace(b"''", b"'")
    return _ESCAPE.sub(lambda match: _ESCAPED.get(match.group(1), match.group(1)), body) if b"\\" in body else body


def _pack_integers(path: Path, column: str, values: Sequence[SqlValue]) -> NDArray[np.int64]:
    wrong = [value for value in values if not isinstance(value, int) or not -(1 << 63) <= value < 1 << 63]
    if wrong:
        raise CorruptInput(f"{path}: column {column} holds {wrong[0]!r}; expected whole numbers of at most 64 bits")
    return np.array(values, dtype=np.int64)


def _pack_texts(path: Path, column: str, values: Sequence[SqlValue]) -> pa.BinaryArray:
    wrong = [value for value in values if isinstance(value, int | float)]
    if wrong:
        raise CorruptInput(f"{path}: column {column} holds {wrong[0]!r}; expected strings")
    return pa.array(values, type=pa.binary())


@contextmanager
def _open_sql(path: Path) -> Iterator[Window]:
    if not path.is_file():
        raise ConfigError(f"no SQL table at {path}; expected a .sql or .sql.gz file")
    with path.open("rb") as raw:
        is_gzip = raw.read(2) == b"\x1f\x8b"
        raw.seek(0)
        if path.suffix == ".gz" and not is_gzip:
            raise CorruptInput(f"{path} is not a gzip file; expected a whole .sql.gz")
        if not is_gzip:
            yield Window(path, raw)
            return
        with igzip.GzipFile(fileobj=raw, mode="rb") as stream:  # type: ignore[no-untyped-call]
            yield Window(path, cast(BinaryIO, stream))
