"""Reads MediaWiki's SQL table dumps (``mysqldump`` output), streaming, columns by name, with every kind of value.

Layouts change: three of ``categorylinks`` are in circulation, and a reader by position takes one column for another
without a word. So columns are looked up in the file's own ``CREATE TABLE``.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
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
        self.data = b""
        self.position = 0
        self._stream = stream

    def grow(self) -> bool:
        """Read on, twice as far as the unread part is long, and forget what was read; False at the end of the file.

        Raises:
            CorruptInput: the file is truncated or not a gzip file.
        """
        unread = self.data[self.position :]
        try:
            more = self._stream.read(max(_BLOCK_BYTES, len(unread)))
        except (EOFError, OSError, _BAD_DEFLATE) as error:
            raise CorruptInput(
                f"{self.path} is truncated or not a gzip file ({error}); expected a whole .sql.gz"
            ) from error
        self.data = unread + more
        self.position = 0
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
        CorruptInput: the file is truncated, no gzip, or a statement has no end.
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
        CorruptInput: the file is truncated or not a gzip file.
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


SqlValue = int | float | str | bytes | None

_NUMBER = rb"[-+]?\d{1,99}+(?:\.\d{0,99}+)?(?:[eE][-+]?\d{1,9}+)?"
_VALUE = rb"(NULL|" + _NUMBER + rb"|(?:_binary )?'(?:[^'\\]++|\\.|'')*+'|0x(?:[0-9A-Fa-f]{2})++)"
_ROWS = 10_000
_SEPARATOR = re.compile(rb"\s*+([,;])")
_ESCAPE = re.compile(rb"\\(.)", re.DOTALL)
ESCAPED = {b"n": b"\n", b"r": b"\r", b"t": b"\t", b"0": b"\0", b"Z": b"\x1a", b"b": b"\b"}
"""What a letter behind a backslash stands for; any other stands for itself."""


def read_table(path: Path, table: str, columns: Sequence[str]) -> Iterator[tuple[SqlValue, ...]]:
    """Yield the rows of one table with the columns asked for, in that order, streaming.

    Text that is valid UTF-8 comes as str, other strings (binary sort keys) as bytes.

    Args:
        path: a ``.sql`` or ``.sql.gz`` file.
        table: name of the table in the file.
        columns: names as in ``CREATE TABLE``.

    Raises:
        ConfigError: there is no such file, table or column; the message names those present.
        CorruptInput: the file is truncated, no gzip, or a row does not fit the table.
    """
    for window, names in find_inserts(path, table, columns):
        parser = RowParser(names, columns)
        ended = False
        while not ended:
            rows, ended = parser.take_rows(window, _ROWS)
            yield from rows


class RowParser:
    """Takes rows from a window one by one, by a regular expression.

    Args:
        names: the columns of the statement.
        wanted: those to return, in this order.
    """

    def __init__(self, names: Sequence[str], wanted: Sequence[str]) -> None:
        values = rb"\s*,\s*".join([_VALUE] * len(names))
        self._row = re.compile(rb"\s*+\(\s*" + values + rb"\s*\)", re.DOTALL)
        self._groups = [names.index(column) + 1 for column in wanted]

    def take_rows(self, window: Window, limit: int) -> tuple[list[tuple[SqlValue, ...]], bool]:
        """Return the rows that the window holds, one to ``limit``, and whether the statement ends behind them.

        Raises:
            CorruptInput: what follows is no row of the table, or the file ends in it.
        """
        rows: list[tuple[SqlValue, ...]] = []
        while True:
            match = self._row.match(window.data, window.position)
            separator = match and _SEPARATOR.match(window.data, match.end())
            if match is None or separator is None:
                if rows:
                    return rows, False
                _read_on(window, match.end() if match else window.position)
                continue
            rows.append(tuple([_decode_value(match.group(group)) for group in self._groups]))
            window.position = separator.end()
            if len(rows) == limit or separator.group(1) == b";":
                return rows, separator.group(1) == b";"


def _read_on(window: Window, position: int) -> None:
    """Read more of the file when that can make a whole row of what is there."""
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


def _decode_string(body: bytes) -> str | bytes:
    body = body.replace(b"''", b"'")
    if b"\\" in body:
        body = _ESCAPE.sub(lambda match: ESCAPED.get(match.group(1), match.group(1)), body)
    try:
        return body.decode("utf-8")
    except UnicodeDecodeError:
        return body


@dataclass(frozen=True, slots=True)
class Block:
    """Consecutive rows of a table, at least one."""

    integers: tuple[NDArray[np.int64], ...]
    texts: tuple[pa.BinaryArray, ...]
    """Bytes as in the table, null where it says NULL."""


def read_columns(path: Path, table: str, integers: Sequence[str], texts: Sequence[str] = ()) -> Iterator[Block]:
    """Yield columns of a table by name as arrays, streaming, some ten thousand rows at a time.

    Args:
        path: a ``.sql`` or ``.sql.gz`` file.
        table: name of the table in the file.
        integers: columns of whole numbers of at most 64 bits with sign.
        texts: columns of strings.

    Raises:
        ConfigError: there is no such file, table or column; the message names those present.
        CorruptInput: the file is truncated, no gzip, a row does not fit the table, or a value is of another kind.
    """
    for window, names in find_inserts(path, table, [*integers, *texts]):
        parser = RowParser(names, [*integers, *texts])
        ended = False
        while not ended:
            rows, ended = parser.take_rows(window, _ROWS)
            columns = list(zip(*rows, strict=True))
            yield Block(
                tuple(_pack_integers(path, *named) for named in zip(integers, columns, strict=False)),
                tuple(_pack_texts(path, *named) for named in zip(texts, columns[len(integers) :], strict=True)),
            )


def _pack_integers(path: Path, column: str, values: Sequence[SqlValue]) -> NDArray[np.int64]:
    wrong = [value for value in values if not isinstance(value, int) or not -(1 << 63) <= value < 1 << 63]
    if wrong:
        raise CorruptInput(f"{path}: column {column} holds {wrong[0]!r}; expected whole numbers of at most 64 bits")
    return np.array(values, dtype=np.int64)


def _pack_texts(path: Path, column: str, values: Sequence[SqlValue]) -> pa.BinaryArray:
    wrong = [value for value in values if isinstance(value, int | float)]
    if wrong:
        raise CorruptInput(f"{path}: column {column} holds {wrong[0]!r}; expected strings")
    packed = [value.encode() if isinstance(value, str) else value for value in values]
    return pa.array(packed, type=pa.binary())


def require_titles(path: Path, column: str, titles: pa.BinaryArray) -> None:
    """Refuse targets without a title, as rows have them that were written when the number alone was still looked at.

    Raises:
        ConfigError: a title is empty or NULL.
    """
    lengths = pc.fill_null(pc.binary_length(titles), 0)
    if pc.any(pc.equal(lengths, 0)).as_py():
        raise ConfigError(
            f"{path} has rows without {column}, which name their target by number; "
            "expected titles in all rows, or numbers in all (NOT NULL) and a linktarget table beside it"
        )
