"""The pictures of a corpus: those beside a dump are looked at, of the others it is kept what Commons says of them.

Nothing is copied, and nothing is fetched.
"""

import csv
import errno
import glob
import hashlib
import heapq
import re
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import asdict, dataclass, replace
from functools import partial
from itertools import groupby, islice
from operator import itemgetter
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pyarrow as pa

from pipelines.corpus.records import CorpusImage
from pipelines.corpus.spill import MEMORY_MEGABYTES, open_spill, stream_tables
from pipelines.corpus.tables import IMAGES
from pipelines.errors import ConfigError, CorruptInput, RecordFailed
from pipelines.files import TEMP_PREFIX, explain_os_error
from pipelines.picturefiles.limits import MAX_BYTES
from pipelines.pictures import probe_picture

FORMATS = {"image/jpeg": "jpg", "image/png": "png", "image/gif": "gif", "image/webp": "webp"}
"""Formats that :mod:`pipelines.pictures` reads, by MIME type."""
WRONG_FORMAT = "format"
"""The error of a picture of any other format."""
_THREADS = 2
_COLUMNS = ("file", "author", "licence", "licence_url", "source_url")
_MISSING = "missing"
_MERGE_ROWS = 8_192
_KEPT = ("file", "width", "height", *_COLUMNS[1:], "url", "bytes", "depicts")
QID = re.compile("Q[1-9][0-9]{0,17}")

_Row = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Look:
    """What a picture turned out to be."""

    sha256: str = ""
    width: int = 0
    height: int = 0
    format: str = ""
    phash: str = ""
    error: str = ""


def normalise_file(name: str) -> str:
    """Return a file name as titles have it: no ``File:``, spaces, first letter upper case."""
    plain = " ".join(name.replace("_", " ").split())
    for prefix in ("file:", "image:"):
        if plain.lower().startswith(prefix):
            plain = plain[len(prefix) :].strip()
    return plain[:1].upper() + plain[1:]


def read_images(table: Path, titles: Mapping[str, Sequence[str]]) -> list[CorpusImage]:
    """Read ``images.tsv`` and look at every picture it names.

    Args:
        table: a TSV with at least file, author, licence, licence_url, source_url; ``path`` where the file's place in
            the folder differs from its name, ``sha256`` to be checked, ``depicts`` with the Qids of what is to be seen,
            parted by spaces.
        titles: article titles by normalised file name; :func:`merge_images` finds them by itself.

    Returns:
        One row a file, sorted by name.

    Raises:
        CorruptInput: the table is not UTF-8, or what a file depicts is no list of Qids.
        ConfigError: a column is missing, or a picture may not be read.
        Unavailable: the disk cannot be read now.
    """
    try:
        lines = table.read_text(encoding="utf-8").split("\n")
    except UnicodeDecodeError as error:
        raise CorruptInput(f"{table} is not UTF-8: {error}; expected a TSV with {', '.join(_COLUMNS)}") from error
    rows = csv.DictReader(lines, delimiter="\t", quoting=csv.QUOTE_NONE)
    missing = [column for column in _COLUMNS if column not in (rows.fieldnames or [])]
    if missing:
        raise ConfigError(f"{table} has no column {', '.join(missing)}; it has {', '.join(rows.fieldnames or [])}")
    by_file = {normalise_file(row["file"]): row for row in rows if row["file"]}
    depicts = {file: _read_depicts(table, row) for file, row in by_file.items()}
    paths = [row.get("path") or row["file"] for row in by_file.values()]
    with ThreadPoolExecutor(_THREADS) as pool:
        looks = pool.map(partial(look_at, table.parent), paths)
        images = [
            replace(_join_row(file, row, look, titles.get(file, [])), depicts=depicts[file])
            for (file, row), look in zip(by_file.items(), looks, strict=True)
        ]
    return sorted(images, key=lambda image: image.file)


def _read_depicts(table: Path, row: Mapping[str, str | None]) -> tuple[str, ...]:
    qids = (row.get("depicts") or "").split()
    strange = next((qid for qid in qids if not QID.fullmatch(qid)), None)
    if strange is not None:
        raise CorruptInput(f"{table}: {row['file']} depicts {strange[:40]!r}; expected Qids parted by spaces, as Q42")
    return tuple(dict.fromkeys(qids))


def _join_row(file: str, row: dict[str, str], look: Look, titles: Sequence[str]) -> CorpusImage:
    if not look.error and row.get("sha256") and row["sha256"] != look.sha256:
        look = Look(look.sha256, look.width, look.height, look.format, look.phash, "sha256-mismatch")
    return CorpusImage(
        file=file,
        title=tuple(sorted(titles)),
        path=row.get("path") or row["file"],
        sha256=look.sha256,
        width=look.width,
        height=look.height,
        format=look.format,
        author=row["author"] or "",
        licence=row["licence"] or "",
        licence_url=row["licence_url"] or "",
        source_url=row["source_url"] or "",
        phash=look.phash,
        error=look.error,
    )


def merge_images(
    local: Sequence[CorpusImage], media: Path | None, pages: Path, megabytes: int = MEMORY_MEGABYTES
) -> Iterator[pa.Table]:
    """Yield the rows of ``images.parquet``, sorted by file: the pictures at hand, then those that Commons describes.

    A picture that an article leads with and that is not at hand gets a row with its size, licence and author but no
    path, sha256 or hash: enough to judge it, not to show it. Of one at hand Commons says what it depicts, where its own
    row does not. Both tables are sorted out of core and read side by side:
    to join millions of rows as wide as these takes far more memory. Memory holds the titles of a few pictures at a
    time.

    Args:
        local: as :func:`read_images` returns, titles not needed; few enough for memory.
        media: as :func:`pipelines.corpus.commons.collect_media` writes, or None.
        pages: ``pages.parquet``, of which ``title`` and ``image`` are read.
        megabytes: what each of the two sorts may hold; 256 are enough for 5 M pictures.

    Returns:
        Tables of some thousand rows with the columns of ``tables.IMAGES``; what is not known is empty or 0.

    Raises:
        ConfigError, Unavailable: as :func:`pipelines.corpus.spill.open_spill`.
    """
    at_hand = {image.file: image for image in local}
    with closing(_read_shown(pages, megabytes)) as shown, closing(_read_media(media, megabytes)) as described:
        names = heapq.merge(shown, ((file, None) for file in sorted(at_hand)), key=itemgetter(0))
        rows = _make_rows(names, described, at_hand)
        while batch := list(islice(rows, _MERGE_ROWS)):
            yield pa.Table.from_pylist(batch, schema=IMAGES)


def _read_shown(pages: Path, megabytes: int) -> Generator[tuple[str, str]]:
    """Yield (file, title) of every article with a picture, sorted."""
    for table in _sort_rows(pages, "image AS file, title", "WHERE image <> '' ORDER BY file, title", megabytes):
        yield from zip(table["file"].to_pylist(), table["title"].to_pylist(), strict=True)


def _read_media(media: Path | None, megabytes: int) -> Generator[_Row]:
    """Yield what Commons says of files, sorted by file."""
    if media is not None:
        for table in _sort_rows(media, ", ".join([*_KEPT, "mime"]), "ORDER BY file", megabytes):
            yield from table.to_pylist()


def _sort_rows(path: Path, columns: str, order: str, megabytes: int) -> Iterator[pa.Table]:
    folder = TemporaryDirectory(prefix=TEMP_PREFIX, dir=path.parent)
    with folder as name, open_spill(Path(name), megabytes) as database:
        database.read_parquet(glob.escape(str(path))).create_view("rows")
        yield from stream_tables(database, f"SELECT {columns} FROM rows {order}", _MERGE_ROWS)


def _make_rows(
    names: Iterable[tuple[str, str | None]], described: Iterator[_Row], at_hand: Mapping[str, CorpusImage]
) -> Iterator[_Row]:
    """Yield a row of ``IMAGES`` for each file; all is sorted by file, and a name without title is of one at hand."""
    media = next(described, None)
    for file, group in groupby(names, key=itemgetter(0)):
        titles = [title for _, title in group if title is not None]
        while media is not None and media["file"] < file:
            media = next(described, None)
        found = media if titles and media is not None and media["file"] == file else None
        image = at_hand.get(file)
        if image is not None and (image.error != _MISSING or found is None):
            said = image.depicts or (found or {}).get("depicts") or ()
            yield asdict(image) | {"title": titles, "depicts": said}
        elif found is not None:
            yield _describe(found) | {"title": titles}


def _describe(media: _Row) -> _Row:
    """Return the row of a file that Commons describes, without its titles."""
    name = FORMATS.get(media["mime"], "")
    kept = {"url": media["url"] or "", "bytes": media["bytes"] or 0, "depicts": media["depicts"] or []}
    row = {column: media[column] for column in _KEPT} | kept
    return row | {"path": "", "sha256": "", "phash": "", "format": name, "error": "" if name else WRONG_FORMAT}


def place_inside(folder: Path, relative: str) -> Path | None:
    """Return a file's path in a folder, or None if it leads outside, links followed."""
    try:
        path = folder / relative
        return path if path.resolve().is_relative_to(folder.resolve()) else None
    except (ValueError, RuntimeError):  # a null character, which no path can hold, or links that go round
        return None


def look_at(folder: Path, relative: str) -> Look:
    """Measure one picture, without decoding one that is too large; never raises for what the file holds.

    The hash is the one that the image store computes, so a picture is found again at distance 0.

    Raises:
        ConfigError, Unavailable: the file cannot be read, see :func:`pipelines.files.explain_os_error`.
    """
    path = place_inside(folder, relative)
    if path is None:
        return Look(error="path-outside")
    try:
        if not path.is_file():
            return Look(error=_MISSING)
        if path.stat().st_size > MAX_BYTES:
            return Look(error="too-large")
        data = path.read_bytes()
    except OSError as error:
        if error.errno == errno.ENAMETOOLONG:
            return Look(error=_MISSING)
        raise explain_os_error(error, f"picture {path}") from error
    sha256 = hashlib.sha256(data).hexdigest()
    try:
        seen = probe_picture(data)
    except RecordFailed as error:
        return Look(sha256, error=error.error.removeprefix("picture-"))
    return Look(sha256, seen.width, seen.height, seen.extension, seen.phash)
