"""Read MediaWiki's SQL table dumps row by row, columns by name, with every kind of value.

``sqlcolumns`` reads whole numbers and text many times as fast, and comes here for what it does not know.
"""

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from pipelines.corpus.sqlsource import MAX_ROW_BYTES, Window, find_inserts
from pipelines.errors import CorruptInput

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
        CorruptInput: the file is cut short, no gzip, or a row does not fit the table.
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
        raise CorruptInput(f"{window.path}: no row of this table, or cut short: {rest!r}; expected a whole table")


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
