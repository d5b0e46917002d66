"""Read columns of MediaWiki's SQL tables as arrays, a block of rows at a time: the fast way into a large table.

The punctuation between the values is found with numpy, strings left out, and must be that of whole rows of the table.
What has another form (a doubled quote, a number with an exponent) is read by ``sqltables``, which says what is wrong
when it is no row at all.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from pipelines.corpus.sqlintegers import (
    Positions,
    decode_digits,
    decode_integers,
    find_number_marks,
    gather,
    shape_rows,
)
from pipelines.corpus.sqlsource import MAX_ROW_BYTES, Window, find_inserts
from pipelines.corpus.sqltables import ESCAPED, RowParser
from pipelines.errors import ConfigError, CorruptInput

_SMALL_BYTES = 2000
_SMALL_ROWS = 64
_WINDOW_ROWS = 1 << 20
_QUOTE, _STAR, _PLUS, _SEMICOLON, _BACKSLASH, _NULL = b"'*+;\\N"
_FROM_QUOTE_TO_COMMA = 6
_MEANING = np.arange(256, dtype=np.uint8)
for _letter, _byte in ESCAPED.items():
    _MEANING[_letter[0]] = _byte[0]
_CAN_BEGIN = np.isin(np.arange(256), list(b"0123456789-N"))
_CAN_END = np.isin(np.arange(256), list(b"0123456789L"))


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
        CorruptInput: the file is cut short, no gzip, a row does not fit the table, or a value is of another kind.
    """
    for window, names in find_inserts(path, table, [*integers, *texts]):
        reader = _BlockReader(names, integers, texts)
        ended = False
        while not ended:
            block, ended = reader.take(window)
            yield block


def read_integers(path: Path, table: str, columns: Sequence[str]) -> Iterator[tuple[NDArray[np.int64], ...]]:
    """Yield columns of whole numbers, in the order asked for; arguments and errors as for ``read_columns``."""
    for block in read_columns(path, table, columns):
        yield block.integers


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


@dataclass(frozen=True, slots=True)
class _Marks:
    """The punctuation of a window's rows."""

    positions: Positions
    quotes: NDArray[np.int32] | None
    """Number of quotes before each mark; None when the rows hold no strings."""
    escapes: Positions
    """Where the backslash of each escape is."""
    ended: bool
    """Whether the last mark is the statement's semicolon."""


class _BlockReader:
    """Takes blocks of rows from a window.

    Args:
        names: the columns of the statement.
        integers: the columns of numbers to return.
        texts: the columns of strings to return.
    """

    def __init__(self, names: Sequence[str], integers: Sequence[str], texts: Sequence[str]) -> None:
        self._width = len(names)
        self._integers = [names.index(column) for column in integers]
        self._texts = [names.index(column) for column in texts]
        self._others = [index for index in range(len(names)) if index not in self._integers]
        self._columns = (*integers, *texts)
        self._parser = RowParser(names, self._columns)
        self._saw_semicolon = False

    def take(self, window: Window) -> tuple[Block, bool]:
        """Return the rows that the window holds, reading on for the first, and whether the statement ends there."""
        while True:
            semicolon = window.data.find(b";", window.position)
            self._saw_semicolon = not self._saw_semicolon and 0 <= semicolon - window.position < _SMALL_BYTES
            if self._saw_semicolon:
                # Short statements would cost a search of the whole window each; or it is a semicolon in a string.
                return self._take_slowly(window, _SMALL_ROWS)
            end = window.data.find(b";\n", window.position) + 1 or len(window.data)
            marks = _find_marks(window.data, window.position, end)
            count = len(marks.positions) // (self._width + 2)
            if not count and not marks.ended and end == len(window.data) < MAX_ROW_BYTES and window.grow():
                continue
            block = self._read_block(window, marks, count) if count else None
            if block is None:
                return self._take_slowly(window)
            window.position = int(marks.positions[count * (self._width + 2) - 1]) + 1
            return block, marks.ended

    def _read_block(self, window: Window, marks: _Marks, count: int) -> Block | None:
        used = len(marks.positions) if marks.ended else count * (self._width + 2)
        rows = shape_rows(window.data, window.position, marks.positions[:used], self._width)
        if rows is None:
            return None
        if marks.quotes is None:
            decode = decode_digits
            fit = all([bool((rows[column + 1] - rows[column] > 1).all()) for column in self._others])
        else:
            decode = decode_integers
            quotes = np.ascontiguousarray(marks.quotes[:used].reshape(count, -1).T)
            fit = _are_values(window.data, rows, quotes[1:-1] - quotes[:-2])
        if not fit:
            return None
        integers = [decode(window.data, rows[column] + 1, rows[column + 1]) for column in self._integers]
        if any(values is None for values in integers):
            return None
        texts = [_read_text(window.data, marks, rows[column] + 1, rows[column + 1]) for column in self._texts]
        if any(values is None for values in texts):
            return None
        return Block(tuple([v for v in integers if v is not None]), tuple([v for v in texts if v is not None]))

    def _take_slowly(self, window: Window, limit: int = _WINDOW_ROWS) -> tuple[Block, bool]:
        rows, ended = self._parser.take_rows(window, limit)
        columns = list(zip(*rows, strict=True))
        count = len(self._integers)
        for name, values in zip(self._columns[:count], columns[:count], strict=True):
            _require(all(_is_whole(value) for value in values), window, name, "whole numbers of at most 64 bits")
        for name, values in zip(self._columns[count:], columns[count:], strict=True):
            _require(all(isinstance(value, str | bytes | None) for value in values), window, name, "strings")
        integers = tuple([np.array(values, dtype=np.int64) for values in columns[:count]])
        texts = [[text.encode() if isinstance(text, str) else text for text in values] for values in columns[count:]]
        return Block(integers, tuple([pa.array(values, type=pa.binary()) for values in texts])), ended


def _require(fits: bool, window: Window, column: str, kind: str) -> None:
    if not fits:
        raise CorruptInput(f"{window.path}: column {column} holds a value of another kind; expected {kind}")


def _read_text(data: bytes, marks: _Marks, starts: Positions, ends: Positions) -> pa.BinaryArray | None:
    """Return the strings of a column; None when there is something else."""
    view = np.frombuffer(data, dtype=np.uint8)
    given = view[starts] == _QUOTE
    if not (given | ((view[starts] == _NULL) & (ends - starts == len("NULL")))).all():
        return None
    lengths = np.where(given, ends - starts - 2, 0)
    offsets = np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(lengths)])
    found = gather(view, starts + 1, lengths)
    escapes = _find_escapes(marks, starts + 1, lengths, offsets)
    if len(escapes):
        found[escapes + 1] = _MEANING[found[escapes + 1]]
        found = np.delete(found, escapes)
        offsets -= np.searchsorted(escapes, offsets)
    present = None if given.all() else pa.py_buffer(np.packbits(given, bitorder="little"))
    buffers = [present, pa.py_buffer(offsets.astype(np.int32)), pa.py_buffer(found)]
    return pa.Array.from_buffers(pa.binary(), len(given), buffers)


def _find_escapes(marks: _Marks, starts: Positions, lengths: Positions, offsets: Positions) -> Positions:
    """Return where the backslashes of escapes are when the spans are put one behind the other."""
    spans = np.searchsorted(starts, marks.escapes, side="right") - 1
    inside = (spans >= 0) & (marks.escapes < (starts + lengths)[spans])
    spans = spans[inside]
    return marks.escapes[inside] - starts[spans] + offsets[spans]


def _is_whole(value: object) -> bool:
    return isinstance(value, int) and -(1 << 63) <= value < 1 << 63


def _find_marks(data: bytes, start: int, end: int) -> _Marks:
    """Find the punctuation outside strings in ``data[start:end]``, up to the first semicolon."""
    if data.find(b"'", start, end) < 0:
        semicolon = data.find(b";", start, end)
        positions = find_number_marks(data, start, semicolon + 1 if semicolon >= 0 else end)
        return _Marks(positions, None, np.empty(0, dtype=np.int64), semicolon >= 0)
    masked, escapes = data[start:end], np.empty(0, dtype=np.int64)
    if b"\\" in masked:
        # From the left, so that of a run of backslashes each pair is one escape; no quote is left that ends no string.
        masked = masked.replace(b"\\\\", b"\\\0").replace(b"\\'", b"\\\0")
        escapes = np.flatnonzero(np.frombuffer(masked, dtype=np.uint8) == _BACKSLASH) + start
    found = np.frombuffer(masked, dtype=np.uint8)
    places = np.flatnonzero((found - np.uint8(_QUOTE) < _FROM_QUOTE_TO_COMMA) | (found == _SEMICOLON))
    is_quote = found[places] == _QUOTE
    quotes = np.cumsum(is_quote, dtype=np.int32)
    outside = np.flatnonzero(((quotes & 1) == 0) & ~is_quote)
    places, quotes = places[outside], quotes[outside]
    semicolons = np.flatnonzero(found[places] == _SEMICOLON)
    if len(semicolons):
        places, quotes = places[: semicolons[0] + 1], quotes[: semicolons[0] + 1]
    return _Marks(places + start, quotes, escapes, len(semicolons) > 0)


def _are_values(data: bytes, rows: Positions, quotes: NDArray[np.int32]) -> bool:
    """Say whether each value is one string, or begins and ends like a number or NULL.

    Args:
        data: the window's bytes.
        rows: from ``shape_rows``.
        quotes: number of quotes in each value, shape (columns, rows).
    """
    view = np.frombuffer(data, dtype=np.uint8)
    first, last = view[rows[:-2] + 1], view[rows[1:-1] - 1]
    is_string = (quotes == 2) & (first == _QUOTE) & (last == _QUOTE)
    is_other = (quotes == 0) & _CAN_BEGIN[first] & _CAN_END[last]
    return bool((is_string | is_other).all())
