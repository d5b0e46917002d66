"""The bytes of a MediaWiki table dump (``mysqldump`` output), a window at a time, and where its rows begin.

Layouts change: three of ``pagelinks`` and three of ``categorylinks`` are in circulation, and a reader by position takes
one column for another without a word. So columns are looked up in the file's own ``CREATE TABLE``.

Read MediaWiki's SQL table dumps row by row, columns by name, with every kind of value.

``sqlcolumns`` reads whole numbers and text many times as fast, and comes here for what it does not know.

Read columns of MediaWiki's SQL tables as arrays, a block of rows at a time: the fast way into a large table.

The punctuation between the values is found with numpy, strings left out, and must be that of whole rows of the table.
What has another form (a doubled quote, a number with an exponent) is read by ``sqltables``, which says what is wrong
when it is no row at all.

Whole numbers of SQL tables, many at once: where the rows of a table of numbers lie, and what their digits mean.
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


Positions = NDArray[np.int64]

_COMMA, _MINUS, _ZERO, _SPACE = b",-0 "
_MAX_DIGITS = 19
_LARGEST = np.uint64(np.iinfo(np.int64).max)
_EIGHT_ZEROS = np.uint64(0x3030303030303030)
_TO_HIGH_BIT = np.uint64(0x7676767676767676)
_HIGH_BITS = np.uint64(0x8080808080808080)
# Bytes of a word that hold the last 0 to 8 digits of a number that ends with the word, which is little-endian.
_LAST_DIGITS = np.array([0, *((1 << 64) - (1 << (64 - 8 * count)) for count in range(1, 9))], dtype=np.uint64)
# Joins two neighbours each: digits to pairs, pairs to fours, fours to eight.
_JOINS = tuple(
    (np.uint64(1 + (base << size)), np.uint64(size), np.uint64(mask))
    for base, size, mask in ((10, 8, 0x00FF00FF00FF00FF), (100, 16, 0x0000FFFF0000FFFF), (10_000, 32, 0xFFFFFFFF))
)


def find_number_marks(data: bytes, start: int, end: int) -> Positions:
    """Return where the punctuation is in rows of numbers: where there is no digit, nor white space behind a comma."""
    found = np.frombuffer(data, dtype=np.uint8, count=end - start, offset=start)
    marks = np.flatnonzero(found - np.uint8(_ZERO) > 9)
    if data.find(b"\n", start, end) >= 0 or data.find(b" ", start, end) >= 0:
        before = found[np.maximum(marks - 1, 0)]
        is_free = (marks == 0) | (before == _COMMA) | (before <= _SPACE)
        marks = marks[~is_free | (found[marks] > _SPACE)]
    marks += start
    return marks


def shape_rows(data: bytes, start: int, marks: Positions, width: int) -> Positions | None:
    """Arrange marks in rows, where they are exactly the punctuation of rows and nothing lies between rows.

    Args:
        data: the window's bytes.
        start: where the first row begins.
        marks: positions of all punctuation outside strings, ending with a comma or semicolon behind a row.
        width: number of columns.

    Returns:
        Shape (width + 2, rows): the opening parentheses, the commas, the closing ones, the marks behind them; None
        when the bytes are not of this form.
    """
    count, rest = divmod(len(marks), width + 2)
    view = np.frombuffer(data, dtype=np.uint8)
    punctuation = b"(" + b"," * (width - 1) + b"),"
    if rest or view[marks[:-1]].tobytes() != (punctuation * count)[:-1] or view[marks[-1]] not in b",;":
        return None
    rows = np.ascontiguousarray(marks.reshape(count, width + 2).T)
    gaps = rows[0].copy()
    gaps[0] -= start
    gaps[1:] -= rows[-1, :-1] + 1
    if gaps.any() and not (gather(view, rows[0] - gaps, gaps) <= _SPACE).all():
        return None
    return rows if (rows[-1] - rows[-2] == 1).all() else None


def gather(view: NDArray[np.uint8], starts: Positions, lengths: Positions) -> NDArray[np.uint8]:
    """Return the bytes of many spans, one span behind the other."""
    ends = np.cumsum(lengths)
    index: Positions = np.repeat(starts - (ends - lengths), lengths)
    index += np.arange(len(index))
    return view[index]


def decode_integers(data: bytes, starts: Positions, ends: Positions) -> NDArray[np.int64] | None:
    """Read many whole numbers that may have a minus sign; arguments and result as for ``decode_digits``."""
    negative = np.frombuffer(data, dtype=np.uint8)[starts] == _MINUS
    if not negative.any():
        return decode_digits(data, starts, ends)
    values = decode_digits(data, starts + negative, ends)
    return None if values is None else np.where(negative, -values, values)


def decode_digits(data: bytes, starts: Positions, ends: Positions) -> NDArray[np.int64] | None:
    """Read many whole numbers at once, eight digits in one word.

    Args:
        data: bytes with at least ``PAD`` before the first number.
        starts: where each number begins.
        ends: where each number ends.

    Returns:
        One value a span, or None when a span is no whole number of at most 64 bits with sign.
    """
    lengths = ends - starts
    longest = int(lengths.max(initial=0))
    if int(lengths.min(initial=1)) < 1 or longest > _MAX_DIGITS or int(starts.min(initial=PAD)) < PAD:
        return None
    values, is_whole = _decode_words(data, ends, lengths)
    for skipped in range(8, longest, 8):
        rows = np.flatnonzero(lengths > skipped)
        more, are_digits = _decode_words(data, ends[rows] - skipped, lengths[rows] - skipped)
        values[rows] += more * np.uint64(10**skipped)
        is_whole &= are_digits
    if not is_whole or (longest == _MAX_DIGITS and bool((values > _LARGEST).any())):
        return None
    return values.view(np.int64)


def _decode_words(data: bytes, ends: Positions, lengths: Positions) -> tuple[NDArray[np.uint64], bool]:
    """Read the last eight digits of each number; the flag says whether they are digits."""
    words: NDArray[np.uint64] = np.ndarray((len(data) - 7,), dtype="<u8", buffer=data, strides=(1,))
    values = words[ends - 8]
    values ^= _EIGHT_ZEROS
    values &= _LAST_DIGITS[np.minimum(lengths, 8)]
    is_whole = not bool((((values + _TO_HIGH_BIT) | values) & _HIGH_BITS).any())
    for factor, shift, mask in _JOINS:
        values *= factor
        values >>= shift
        values &= mask
    return values, is_whole


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
