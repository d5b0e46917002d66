"""Find the parts of a dump, cut them into byte ranges that workers read on their own, and unpack one range.

A multistream dump is a row of bz2 streams: the header, streams of a hundred pages each, and the footer. A range starts
where a stream of pages starts, so that it can be unpacked without what comes before it. Every cut is proved by
unpacking its first bytes: ten bytes that look like the start of a stream may stand anywhere in compressed data, and an
index may belong to another dump.
"""

import bz2
import re
from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice, pairwise
from pathlib import Path
from typing import BinaryIO

from pipelines.errors import ConfigError, CorruptInput

_READ_BYTES = 1 << 17  # half a MB of XML at a time stays in a core's own cache
_BLOCK_BYTES = 4 << 20
_WINDOW_BYTES = 8 << 20  # a stream of a hundred pages is below 2 MB; beyond the window the cut is given up
_STEP_BYTES = 1 << 18  # a stream of a hundred pages takes about 100 KB, so a cut mostly shows in the first step
_MAX_PROOFS = 8
_MAX_INDEX_BYTES = 32 << 20  # the index of English Wikipedia takes a minute to unpack, a search takes milliseconds
_PROOF_BYTES = 2 << 20  # holds the first block of any stream
_PROOF_OUTPUT_BYTES = 1 << 10
_MAX_GAP = 1000  # ids of deleted pages may lie between two parts; a part holds far more
_STREAM_START, _STREAM_START_BYTES = re.compile(rb"BZh[1-9]1AY&SY"), 10
_PAGE_START = b"<page>"
_INDEX_OFFSET = re.compile(rb"^(\d{1,18}):", re.MULTILINE)
_PART = re.compile(r"(?P<stem>.+?)(?P<number>\d+)\.xml-p(?P<first>\d+)p(?P<last>\d+)(?P<ending>\.bz2|)")
EXPECTED = "expected a MediaWiki export (.xml, or .xml.bz2 in one or many streams)"


@dataclass(frozen=True, slots=True)
class ByteRange:
    """A run of bytes of a dump that holds whole pages."""

    number: int
    """Its place in the dump, from 0."""
    start: int
    """Offset of its first byte in the file: compressed bytes of a .bz2, plain ones of an .xml."""
    end: int
    """Offset after its last byte."""


def plan_ranges(dump: Path, range_bytes: int) -> tuple[ByteRange, ...]:
    """Cut a dump into ranges of about ``range_bytes``, in file order, that cover the file without gap or overlap.

    The header belongs to the first range and the footer to the last. A bz2 file of one stream, and one whose streams do
    not start with pages, is a single range. About half a MB is read a cut, a few MB at most.

    Raises:
        ConfigError: there is no such file, or ``range_bytes`` is no positive number.
        CorruptInput: the file is not what its name says.
    """
    if range_bytes < 1:
        raise ConfigError(f"{range_bytes} bytes a range; expected at least 1")
    with open_dump(dump) as file:
        size = file.seek(0, 2)
        cuts = _find_cuts(file, size, range_bytes, _read_index(dump) if is_packed(file) else ())
    edges = [0, *cuts, size]
    return tuple(ByteRange(number, *pair) for number, pair in enumerate(pairwise(edges)))


def sample_ranges(dump: Path, count: int, range_bytes: int) -> tuple[ByteRange, ...]:
    """Return ranges of about ``range_bytes`` spread evenly over a dump: enough to judge what reading all of it takes.

    A file too small for that many, or one that cannot be cut, is given as :func:`plan_ranges` cuts it.

    Raises:
        ConfigError, CorruptInput: as for :func:`plan_ranges`.
    """
    spread = plan_ranges(dump, max(range_bytes, cover_file(dump).end // count))
    if len(spread) == 1 or spread[0].end <= 2 * range_bytes:
        return spread
    with open_dump(dump) as file:
        search = _search_stream if is_packed(file) else _search_page
        ends = [(piece, search(file, piece.start + range_bytes)) for piece in spread[:count]]
    return tuple(ByteRange(piece.number, piece.start, end or piece.end) for piece, end in ends)


def cover_file(dump: Path) -> ByteRange:
    """Return the range that is the whole file."""
    with open_dump(dump) as file:
        return ByteRange(0, 0, file.seek(0, 2))


def list_parts(path: Path) -> tuple[Path, ...]:
    """Return every part of the dump that ``path`` is a part of, by first page; a whole file is its own only part.

    Parts are named ``...-multistream<N>.xml-p<first>p<last>.bz2``; one N may have several files. Names do not say how
    many parts there are: that the last ones are missing cannot be seen here.

    Raises:
        ConfigError: there is no such file, or a part of the dump is missing beside it (a number, or over 1,000 page ids
            before or between the parts), or two parts share pages.
    """
    if not path.is_file():
        raise ConfigError(f"no dump at {path}; {EXPECTED}")
    own = _PART.fullmatch(path.name)
    if own is None:
        return (path,)
    found = ((_PART.fullmatch(other.name), other) for other in path.parent.iterdir())
    parts = sorted(
        (int(match["first"]), int(match["last"]), int(match["number"]), other)
        for match, other in found
        if match is not None and match["stem"] == own["stem"] and match["ending"] == own["ending"]
    )
    numbers = {number for _, _, number, _ in parts}
    missing = next((number for number in range(1, parts[-1][2]) if number not in numbers), None)
    if missing is not None:
        raise ConfigError(f"{path.parent} lacks part {missing} of {own['stem']}; expected parts 1 to {parts[-1][2]}")
    _check_gaps([(first, last, part) for first, last, _, part in parts])
    return tuple(other for _, _, _, other in parts)


def _check_gaps(parts: list[tuple[int, int, Path]]) -> None:
    """Refuse parts, as (first page, last page, file) in order, between or before which a part must be missing."""
    end, before = -1, ""
    for first, last, part in parts:
        if first <= end:
            raise ConfigError(f"{part.name} begins at page {first}, which {before} holds; expected one")
        if first - end - 1 > _MAX_GAP:
            lacking = f"pages {max(end + 1, 1)} to {first - 1}"
            raise ConfigError(f"{part.parent} lacks the part with {lacking}, before {part.name}; expected every part")
        end, before = last, part.name


def open_dump(path: Path) -> BinaryIO:
    """Open a dump for reading its bytes as they are.

    Raises:
        ConfigError: there is no such file.
        CorruptInput: the file is named .bz2 and is none.
    """
    if not path.is_file():
        raise ConfigError(f"no dump at {path}; {EXPECTED}")
    file = path.open("rb")
    if path.suffix == ".bz2" and not is_packed(file):
        file.close()
        raise CorruptInput(f"{path} is not a bz2 file: it does not start with BZh; {EXPECTED}")
    return file


def is_packed(file: BinaryIO) -> bool:
    """Say whether an open file is bz2, by its first bytes."""
    file.seek(0)
    return file.read(3) == b"BZh"


def read_blocks(path: Path, byte_range: ByteRange) -> Iterator[bytes]:
    """Yield the unpacked bytes of a range in order, a few MB at a time.

    Raises:
        ConfigError: there is no such file.
        CorruptInput: the range is cut short, is damaged, or does not end where a stream ends.
    """
    with open_dump(path) as file:
        packed = is_packed(file)
        file.seek(byte_range.start)
        pieces = _read_pieces(path, file, byte_range.end - byte_range.start)
        yield from _unpack(path, pieces) if packed else pieces


def _read_pieces(path: Path, file: BinaryIO, left: int) -> Iterator[bytes]:
    while left:
        piece = file.read(min(_READ_BYTES, left))
        if not piece:
            raise CorruptInput(f"{path} is cut short: {left} bytes of a range are missing; {EXPECTED} that is whole")
        left -= len(piece)
        yield piece


def _unpack(path: Path, pieces: Iterator[bytes]) -> Iterator[bytes]:
    stream, is_open = bz2.BZ2Decompressor(), False
    for piece in pieces:
        data = piece
        while data or not stream.needs_input:
            try:
                block = stream.decompress(data, _BLOCK_BYTES)
            except (OSError, ValueError) as error:
                raise CorruptInput(f"{path} cannot be decompressed ({error}); {EXPECTED}") from error
            data, is_open = b"", True
            if stream.eof:
                data, stream, is_open = stream.unused_data, bz2.BZ2Decompressor(), False
            if block:
                yield block
    if is_open:
        raise CorruptInput(f"{path} is cut short inside a bz2 stream; {EXPECTED} that is whole")


def _find_cuts(file: BinaryIO, size: int, range_bytes: int, index: tuple[int, ...]) -> list[int]:
    """Return the offsets where ranges but the first start, each the first usable one after its place."""
    cuts: list[int] = []
    packed = is_packed(file)
    first = _search_stream(file, 1) if packed else _search_page(file, 1)
    aim = max(range_bytes, first + 1) if first is not None else size  # the header is no range of its own
    while aim < size:
        found = _choose_offset(file, index, aim) if packed else _search_page(file, aim)
        if found is None and packed:
            found = _search_stream(file, aim)
        if found is not None:
            cuts.append(found)
        aim = max(aim, found or 0) + range_bytes
    return cuts


def _choose_offset(file: BinaryIO, index: tuple[int, ...], aim: int) -> int | None:
    place = bisect_left(index, aim)
    if place == len(index) or not _starts_pages(file, index[place]):
        return None
    return index[place]


def _search_stream(file: BinaryIO, aim: int) -> int | None:
    places = islice(_find_places(file, aim, _STREAM_START, _STREAM_START_BYTES), _MAX_PROOFS)
    return next((place for place in places if _starts_pages(file, place)), None)


def _search_page(file: BinaryIO, aim: int) -> int | None:
    return next(_find_places(file, aim, re.compile(_PAGE_START), len(_PAGE_START)), None)


def _find_places(file: BinaryIO, aim: int, start: re.Pattern[bytes], length: int) -> Iterator[int]:
    """Yield where a pattern of ``length`` bytes stands in the window after an offset, ascending, read step by step."""
    tail = b""
    for place in range(aim, aim + _WINDOW_BYTES, _STEP_BYTES):
        file.seek(place)  # whoever takes the places reads in between
        step = file.read(_STEP_BYTES)
        piece = tail + step
        for match in start.finditer(piece):
            yield place - len(tail) + match.start()
        if len(step) < _STEP_BYTES:
            return
        tail = piece[1 - length :]


def _starts_pages(file: BinaryIO, offset: int) -> bool:
    """Say whether a bz2 stream that holds pages starts at an offset; the footer's stream holds none."""
    file.seek(offset)
    piece = file.read(_STEP_BYTES)
    if not _STREAM_START.match(piece):
        return False
    stream, start, left = bz2.BZ2Decompressor(), b"", _PROOF_BYTES
    try:
        while piece and not start and not stream.eof and left > 0:  # a block is unpacked when all of it is there
            start = stream.decompress(piece, _PROOF_OUTPUT_BYTES)
            left -= len(piece)
            piece = file.read(_STEP_BYTES) if not start else b""
    except (OSError, ValueError):
        return False
    return start.lstrip().startswith(_PAGE_START)


def _find_index(dump: Path) -> Path:
    """Return where the index of a multistream dump, or of a part of one, would lie."""
    name = re.sub(r"multistream(\d*)\.xml(-p\d+p\d+)?\.bz2$", r"multistream-index\1.txt\2.bz2", dump.name)
    return dump.with_name(name)


def _read_index(dump: Path) -> tuple[int, ...]:
    """Return the offsets that the index beside a dump names, ascending; none when it is absent, large or no index."""
    path = _find_index(dump)
    if path == dump or not path.is_file() or path.stat().st_size > _MAX_INDEX_BYTES:
        return ()
    offsets: dict[int, None] = {}
    tail, left = b"", _MAX_INDEX_BYTES << 5
    try:
        for block in read_blocks(path, cover_file(path)):
            lines, _, tail = (tail + block).rpartition(b"\n")
            offsets.update(dict.fromkeys(map(int, _INDEX_OFFSET.findall(lines))))
            left -= len(block)
            if left < 0 or len(tail) > _BLOCK_BYTES:
                return ()
    except CorruptInput:
        return ()
    return tuple(sorted(offsets))
