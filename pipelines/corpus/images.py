"""Look at the pictures beside a dump: what each one really is, and whether it can be used. Nothing is copied."""

import csv
import hashlib
import warnings
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from pipelines.corpus.records import CorpusImage
from pipelines.errors import ConfigError, CorruptInput, RecordFailed
from pipelines.pictures import inspect_picture

_THREADS = 2
_COLUMNS = ("file", "author", "licence", "licence_url", "source_url")


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


def read_images(table: Path, titles: dict[str, list[str]]) -> list[CorpusImage]:
    """Read ``images.tsv`` and look at every picture it names.

    Args:
        table: a TSV with at least file, author, licence, licence_url, source_url; ``path`` where the file's place in
            the folder differs from its name, ``sha256`` to be checked.
        titles: article titles by normalised file name.

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


def _join_row(file: str, row: dict[str, str], look: Look, titles: list[str]) -> CorpusImage:
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
        return Look(error="missing")
    data = path.read_bytes()
    sha256 = hashlib.sha256(data).hexdigest()
    try:
        seen = inspect_picture(data)
    except RecordFailed as error:
        return Look(sha256, error=error.error.removeprefix("picture-"))
    return Look(sha256, seen.width, seen.height, seen.extension, seen.phash)
