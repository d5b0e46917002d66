"""Read MediaWiki's SQL table dumps (``mysqldump`` output), streaming, columns by name.

Layouts change: three of ``categorylinks`` are in circulation, and a reader by position would take one column for
another. So columns are looked up in the file's own ``CREATE TABLE``. No string of a dump holds a raw line break, so
files are read line by line: a statement has its rows in its own line, or one or more in each line after it.
"""

import bz2
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from io import BufferedReader
from pathlib import Path
from typing import IO, Any, cast

import numpy as np
import pyarrow as pa
from isal import igzip, isal_zlib
from numpy.typing import NDArray

from pipelines.errors import ConfigError, CorruptInput

LONGEST_LINE = 1 << 26
BAD_PACKING = (EOFError, OSError, cast(type[Exception], isal_zlib.error))  # isal types its error as an instance
_BUFFER = 1 << 20
_NAME = rb"(?:`?\w+`?\.)?`?(\w+)`?"
_CREATE = re.compile(rb"\s*CREATE TABLE (?:IF NOT EXISTS )?" + _NAME + rb"\s*\(", re.IGNORECASE)
_INSERT = re.compile(
    rb"\s*(?:INSERT|REPLACE) (?:IGNORE )?INTO " + _NAME + rb"\s*(?:\(([^()]*)\)\s*)?VALUES\s*", re.IGNORECASE
)
_COLUMN = re.compile(rb"\s*`(\w+)`\s")
_NUMBER = rb"[-+]?\d{1,99}+(?:\.\d{0,99}+)?(?:[eE][-+]?\d{1,9}+)?"
_VALUE = rb"(NULL|" + _NUMBER + rb"|(?:_binary )?'(?:[^'\\]++|\\.|'')*+'|0x(?:[0-9A-Fa-f]{2})++)"
_ROWS = 10_000
_HELD_BYTES = 16 << 20
_ESCAPE = re.compile(rb"\\(.)", re.DOTALL)
_ESCAPED = {b"n": b"\n", b"r": b"\r", b"t": b"\t", b"0": b"\0", b"Z": b"\x1a", b"b": b"\b"}
"""Meaning of a letter behind a backslash; any other stands for itself."""

SqlValue = int | float | bytes | None


@dataclass(frozen=True, slots=True)
class Block:
    """Consecutive rows of a table, at least one."""

    integers: tuple[NDArray[np.int64], ...]
    texts: tuple[pa.BinaryArray, ...]
    """Bytes as in the table, null where it says NULL."""


def open_packed(path: Path) -> IO[bytes]:
    """Open a file that may be packed, by its ending; it raises ``BAD_PACKING`` where it is damaged."""
    if path.suffix == ".bz2":
        return cast(IO[bytes], BufferedReader(cast(Any, bz2.BZ2File(path)), _BUFFER))
    if path.suffix == ".gz":
        return cast(IO[bytes], BufferedReader(cast(Any, igzip).IGzipFile(path), _BUFFER))
    return path.open("rb", buffering=_BUFFER)


def read_columns(path: Path, table: str, integers: Sequence[str], texts: Sequence[str] = ()) -> Iterator[Block]:
    """Yield columns of a table by name as arrays, streaming, some ten thousand rows at a time."""
    wanted = [*integers, *texts]
    for rows in _read_rows(path, table, wanted):
        columns = list(zip(*rows, strict=True))
        yield Block(
            tuple(_pack_integers(path, *named) for named in zip(integers, columns, strict=False)),
            tuple(_pack_texts(path, *named) for named in zip(texts, columns[len(integers) :], strict=True)),
        )


def list_columns(path: Path, table: str) -> dict[str, bool]:
    """Return the names of a table's columns, each with whether its values may be NULL."""
    seen: dict[str, dict[str, bool]] = {}
    columns: dict[str, bool] = {}
    for line in _read_lines(path):
        if table in seen and line.lstrip().startswith(b")"):
            return columns
        if match := _CREATE.match(line):
            columns = seen[match[1].decode()] = {}
        elif match := _COLUMN.match(line):
            columns[match[1].decode()] = b"NOT NULL" not in line.upper()
    raise ConfigError(f"{path} has no table {table}; it has {', '.join(sorted(seen)) or 'none'}")


def _read_lines(path: Path) -> Iterator[bytes]:
    if not path.is_file():
        raise ConfigError(f"no SQL table at {path}; expected a .sql or .sql.gz file")
    try:
        with open_packed(path) as stream:
            while line := stream.readline(LONGEST_LINE):
                if len(line) == LONGEST_LINE:
                    raise CorruptInput(f"{path}: a line has over {LONGEST_LINE:,} bytes; expected a table of mysqldump")
                yield line
    except BAD_PACKING as error:
        raise CorruptInput(f"{path} is truncated or no gzip file ({error}); expected a whole .sql.gz") from error


def _read_rows(path: Path, table: str, wanted: Sequence[str]) -> Iterator[list[tuple[SqlValue, ...]]]:
    columns = tuple(list_columns(path, table))
    rows: list[tuple[SqlValue, ...]] = []
    held, row, groups = 0, None, list[int]()
    for line in _read_lines(path):
        position = 0
        if row is None:
            head = _INSERT.match(line)
            if head is None or head[1].decode() != table:
                continue
            names = tuple(re.findall(r"\w+", head[2].decode())) if head[2] else columns
            missing = [column for column in wanted if column not in names]
            if missing:
                raise ConfigError(f"{path}: table {table} has no {', '.join(missing)}; it has {', '.join(names)}")
            row, groups, position = _compile_row(len(names)), [names.index(name) + 1 for name in wanted], head.end()
        while row is not None and (match := row.match(line, position)):
            rows.append(tuple([_decode_value(match[group]) for group in groups]))
            position = match.end()
            row = None if match[match.re.groups] == b";" else row
        if rest := line[position:].strip():
            raise CorruptInput(f"{path}: not a row of this table, or truncated: {rest[:80]!r}; expected a whole table")
        held += len(line)
        if len(rows) >= _ROWS or held > _HELD_BYTES:
            yield rows
            rows, held = [], 0
    if row is not None:
        raise CorruptInput(f"{path} ends inside a statement: truncated; expected a whole table")
    if rows:
        yield rows


@lru_cache(maxsize=8)
def _compile_row(columns: int) -> re.Pattern[bytes]:
    values = rb"\s*,\s*".join([_VALUE] * columns)
    return re.compile(rb"\s*+\(\s*" + values + rb"\s*\)\s*+([,;])\s*+", re.DOTALL)


def _decode_value(source: bytes) -> SqlValue:
    if source.isdigit():
        return int(source)
    if source[:1] in b"'_":
        body = source[source.index(b"'") + 1 : -1].replace(b"''", b"'")
        return _ESCAPE.sub(lambda match: _ESCAPED.get(match[1], match[1]), body) if b"\\" in body else body
    if source == b"NULL":
        return None
    if source[:2] == b"0x":
        return bytes.fromhex(source[2:].decode())
    return float(source) if any(mark in source for mark in b".eE") else int(source)


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
