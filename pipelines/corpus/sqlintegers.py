"""Whole numbers of SQL tables, many at once: where the rows of a table of numbers lie, and what their digits mean."""

import numpy as np
from numpy.typing import NDArray

from pipelines.corpus.sqlsource import PAD

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
