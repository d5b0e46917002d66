"""Read MediaWiki's SQL table dumps (``mysqldump`` output), columns by name.

Layouts change: three of ``pagelinks`` and three of ``categorylinks`` are in circulation, and a reader by position takes
one column for another without a word. So columns are looked up in the file's own ``CREATE TABLE``.
"""

import gzip
import re
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from pipelines.errors import ConfigError, CorruptInput

SqlValue = int | float | str | bytes | None

_VALUE = rb"(NULL|[-+]?\d[\d.eE+-]*|(?:_binary )?'(?:[^'\\]++|\\.|'')*+'|0x[0-9A-Fa-f]+)"
_CREATE = re.compile(rb"CREATE TABLE (?:IF NOT EXISTS )?`?(\w+)`?\s*\(", re.IGNORECASE)
_INSERT = re.compile(rb"INSERT (?:IGNORE )?INTO `?(\w+)`?\s*(?:\(([^)]*)\)\s*)?VALUES", re.IGNORECASE)
_COLUMN = re.compile(rb"\s*`(\w+)`\s")
_SEPARATOR = re.compile(rb"\s*+([,;])")
_ESCAPE = re.compile(rb"\\(.)", re.DOTALL)
_ESCAPED = {b"n": b"\n", b"r": b"\r", b"t": b"\t", b"0": b"\0", b"Z": b"\x1a", b"b": b"\b"}
_MAX_ROW_BYTES = 16 << 20


class _Lines:
    """Lines of a file, with a way to put bytes back."""

    def __init__(self, path: Path, stream: BinaryIO | gzip.GzipFile) -> None:
        self._path = path
        self._stream = stream
        self._held = b""

    def next_line(self) -> bytes:
        """Return the next line, or nothing at the end."""
        if self._held:
            line, newline, self._held = self._held.partition(b"\n")
            return line + newline if newline or not self._held else line
        try:
            return self._stream.readline()
        except (EOFError, zlib.error, OSError) as error:
            raise CorruptInput(
                f"{self._path} is cut short or no gzip file ({error}); expected a whole .sql.gz"
            ) from error

    def put_back(self, source: bytes) -> None:
        """Return bytes that the next call shall read first."""
        self._held = source + self._held

    def read_some(self, size: int) -> bytes:
        """Return whole lines of at least this many bytes, fewer at the end."""
        parts: list[bytes] = []
        while size > 0 and (line := self.next_line()):
            parts.append(line)
            size -= len(line)
        return b"".join(parts)


def read_table(path: Path, table: str, columns: Sequence[str]) -> Iterator[tuple[SqlValue, ...]]:
    """Yield the rows of one table with the columns asked for, in that order, streaming.

    Text that is valid UTF-8 comes as str, other strings (binary sort keys) as bytes.

    Args:
        path: a ``.sql`` or ``.sql.gz`` file.
        table: name of the table in the file.
        columns: names as in ``CREATE TABLE``.

    Raises:
        ConfigError: there is no such file, table or column; the message names those present.
        CorruptInput: the file is cut short, no gzip, or a row does not fit the table.
    """
    seen: dict[str, list[str]] = {}
    with _open_sql(path) as stream:
        lines = _Lines(path, stream)
        while line := lines.next_line():
            if match := _CREATE.match(line):
                seen[match.group(1).decode()] = _read_columns(lines)
                if match.group(1).decode() == table:
                    _require_columns(path, table, columns, seen[table])
            elif (match := _INSERT.match(line)) and match.group(1).decode() == table:
                names = re.findall(r"\w+", match.group(2).decode()) if match.group(2) else seen.get(table, [])
                _require_columns(path, table, columns, names)
                lines.put_back(line[match.end() :])
                yield from _read_rows(path, lines, len(names), [names.index(column) for column in columns])
    if table not in seen:
        raise ConfigError(f"{path} has no table {table}; it has {', '.join(sorted(seen)) or 'none'}")


@contextmanager
def _open_sql(path: Path) -> Iterator[BinaryIO | gzip.GzipFile]:
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
        with gzip.GzipFile(fileobj=raw) as stream:
            yield stream


def _read_columns(lines: _Lines) -> list[str]:
    names = []
    while (line := lines.next_line()) and not line.lstrip().startswith(b")"):
        if match := _COLUMN.match(line):
            names.append(match.group(1).decode())
    return names


def _require_columns(path: Path, table: str, wanted: Sequence[str], present: Sequence[str]) -> None:
    missing = [column for column in wanted if column not in present]
    if missing:
        raise ConfigError(f"{path}: table {table} has no {', '.join(missing)}; it has {', '.join(present) or 'none'}")


def _read_rows(path: Path, lines: _Lines, width: int, wanted: list[int]) -> Iterator[tuple[SqlValue, ...]]:
    row = re.compile(rb"\s*+\(\s*" + rb"\s*,\s*".join([_VALUE] * width) + rb"\s*\)", re.DOTALL)
    buffer, position, mark = b"", 0, b","
    while mark == b",":
        match = row.match(buffer, position)
        if match is None:
            buffer, position = _read_more(path, lines, buffer[position:]), 0
            continue
        yield tuple([_decode_value(match.group(index + 1)) for index in wanted])
        position = match.end()
        while (separator := _SEPARATOR.match(buffer, position)) is None:
            if buffer[position:].strip():
                raise CorruptInput(f"{path}: {buffer[position:][:80]!r} after a row; expected a comma or a semicolon")
            buffer, position = _read_more(path, lines, b""), 0
        mark, position = separator.group(1), separator.end()
    lines.put_back(buffer[position:])


def _read_more(path: Path, lines: _Lines, rest: bytes) -> bytes:
    more = lines.read_some(max(len(rest), 1 << 16))
    if not more or len(rest) > _MAX_ROW_BYTES:
        raise CorruptInput(f"{path}: no row of this table, or cut short: {rest[:80]!r}; expected a whole table")
    return rest + more


def _decode_value(source: bytes) -> SqlValue:
    first = source[:1]
    if first in b"'_":
        body = source[source.index(b"'") + 1 : -1].replace(b"''", b"'")
        if b"\\" in body:
            body = _ESCAPE.sub(lambda match: _ESCAPED.get(match.group(1), match.group(1)), body)
        try:
            return body.decode("utf-8")
        except UnicodeDecodeError:
            return body
    if source == b"NULL":
        return None
    if source[:2] == b"0x":
        return bytes.fromhex(source[2:].decode())
    return float(source) if any(mark in source for mark in b".eE") else int(source)
