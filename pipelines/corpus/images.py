"""The pictures of a corpus: those beside a dump are looked at, of the others it is kept what Commons says of them.

Nothing is copied, and nothing is fetched.
"""

import csv
import glob
import hashlib
import warnings
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

import pyarrow as pa

from pipelines.corpus.records import CorpusImage
from pipelines.corpus.spill import open_spill, stream_tables
from pipelines.corpus.tables import IMAGES
from pipelines.errors import ConfigError, CorruptInput, RecordFailed
from pipelines.files import TEMP_PREFIX
from pipelines.pictures import inspect_picture

FORMATS = {"image/jpeg": "jpg", "image/png": "png", "image/gif": "gif", "image/webp": "webp"}
"""Formats that :mod:`pipelines.pictures` reads, by MIME type."""
WRONG_FORMAT = "format"
"""The error of a picture of any other format."""
_THREADS = 2
_COLUMNS = ("file", "author", "licence", "licence_url", "source_url")
_MISSING = "missing"
_MERGE_ROWS = 8_192
_NO_MEDIA = pa.table(
    {name: pa.array([], pa.string()) for name in ("file", "mime", *_COLUMNS[1:], "url")}
    | {name: pa.array([], pa.int64()) for name in ("width", "height", "bytes")}
)
_FORMAT_CASES = " ".join(f"WHEN '{mime}' THEN '{name}'" for mime, name in FORMATS.items())
_FINE_CASES = " ".join(f"WHEN '{mime}' THEN ''" for mime in FORMATS)
_MERGE = f"""
WITH shown AS (
    SELECT image AS file, list(title ORDER BY title) AS title FROM pages WHERE image <> '' GROUP BY image
), described AS (
    SELECT * FROM media SEMI JOIN shown USING (file)
), at_hand AS (
    SELECT * EXCLUDE (title) FROM local WHERE error <> '{_MISSING}' OR file NOT IN (SELECT file FROM described)
), images AS (
    SELECT at_hand.*, coalesce(shown.title, []) AS title FROM at_hand LEFT JOIN shown USING (file)
    UNION ALL BY NAME
    SELECT
        described.*, shown.title, '' AS path, '' AS sha256, '' AS phash,
        CASE mime {_FORMAT_CASES} ELSE '' END AS format, CASE mime {_FINE_CASES} ELSE '{WRONG_FORMAT}' END AS error
    FROM described JOIN shown USING (file) ANTI JOIN at_hand USING (file)
)
SELECT {", ".join(IMAGES.names)} FROM images ORDER BY file
"""


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
            the folder differs from its name, ``sha256`` to be checked.
        titles: article titles by normalised file name; :func:`merge_images` finds them by itself.

    Returns:
        One row a file, sorted by name.

    Raises:
        CorruptInput: the table is not UTF-8.
        ConfigError: a column is missing.
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
    paths = [row.get("path") or row["file"] for row in by_file.values()]
    with ThreadPoolExecutor(_THREADS) as pool, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        looks = pool.map(partial(look_at, table.parent), paths)
        images = [
            _join_row(file, row, look, titles.get(file, []))
            for (file, row), look in zip(by_file.items(), looks, strict=True)
        ]
    return sorted(images, key=lambda image: image.file)


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


def merge_images(local: Sequence[CorpusImage], media: Path | None, pages: Path) -> Iterator[pa.Table]:
    """Yield the rows of ``images.parquet``, sorted by file: the pictures at hand, then those that Commons describes.

    A picture that an article leads with and that is not at hand gets a row with its size, licence and author but no
    path, sha256 or hash: enough to judge it, not to show it. Sorting and joining are out of core.

    Args:
        local: as :func:`read_images` returns, titles not needed; few enough for memory.
        media: as :func:`pipelines.corpus.commons.collect_media` writes, or None.
        pages: ``pages.parquet``, of which ``title`` and ``image`` are read.

    Returns:
        Tables with the columns of ``tables.IMAGES``.
    """
    with TemporaryDirectory(prefix=TEMP_PREFIX, dir=pages.parent) as folder, open_spill(Path(folder)) as database:
        database.register("local", pa.Table.from_pylist([asdict(image) for image in local], schema=IMAGES))
        database.read_parquet(glob.escape(str(pages))).create_view("pages")
        if media is None:
            database.register("media", _NO_MEDIA)
        else:
            database.read_parquet(glob.escape(str(media))).create_view("media")
        yield from stream_tables(database, _MERGE, _MERGE_ROWS)


def place_inside(folder: Path, relative: str) -> Path | None:
    """Return a file's path in a folder, or None if it leads outside, links followed."""
    try:
        path = folder / relative
        return path if path.resolve().is_relative_to(folder.resolve()) else None
    except ValueError:  # a null character, which no path can hold
        return None


def look_at(folder: Path, relative: str) -> Look:
    """Measure one picture, without decoding one that is too large; never raises for what the file holds.

    The hash is the one that the image store computes, so a picture is found again at distance 0.
    """
    path = place_inside(folder, relative)
    if path is None:
        return Look(error="path-outside")
    if not path.is_file():
        return Look(error=_MISSING)
    data = path.read_bytes()
    sha256 = hashlib.sha256(data).hexdigest()
    try:
        seen = inspect_picture(data)
    except RecordFailed as error:
        return Look(sha256, error=error.error.removeprefix("picture-"))
    return Look(sha256, seen.width, seen.height, seen.extension, seen.phash)
