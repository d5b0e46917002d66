"""Look at the pictures beside a dump: what each one really is, and whether it can be used. Nothing is copied."""

import csv
import hashlib
import warnings
from dataclasses import dataclass
from pathlib import Path

import imagehash
from PIL import Image, UnidentifiedImageError

from pipelines.corpus.records import CorpusImage
from pipelines.errors import ConfigError, CorruptInput

MAX_PIXELS = 100_000_000
_FORMATS = ("JPEG", "PNG", "GIF", "WEBP", "TIFF", "BMP")
_HASH_SIDE = 256
_COLUMNS = ("file", "author", "licence", "licence_url", "source_url")


@dataclass(frozen=True, slots=True)
class _Look:
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
        lines = table.read_text(encoding="utf-8").splitlines()
    except UnicodeDecodeError as error:
        raise CorruptInput(f"{table} is not UTF-8: {error}; expected a TSV with {', '.join(_COLUMNS)}") from error
    rows = csv.DictReader(lines, delimiter="\t", quoting=csv.QUOTE_NONE)
    missing = [column for column in _COLUMNS if column not in (rows.fieldnames or [])]
    if missing:
        raise ConfigError(f"{table} has no column {', '.join(missing)}; it has {', '.join(rows.fieldnames or [])}")
    images = {row["file"]: _read_row(table.parent, row, titles) for row in rows if row["file"]}
    return sorted(images.values(), key=lambda image: image.file)


def _read_row(folder: Path, row: dict[str, str], titles: dict[str, list[str]]) -> CorpusImage:
    file = normalise_file(row["file"])
    relative = row.get("path") or row["file"]
    look = look_at(folder, relative)
    if not look.error and row.get("sha256") and row["sha256"] != look.sha256:
        look = _Look(look.sha256, look.width, look.height, look.format, look.phash, "sha256-mismatch")
    return CorpusImage(
        file=file,
        title=tuple(sorted(titles.get(file, []))),
        path=relative,
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


def look_at(folder: Path, relative: str) -> _Look:
    """Measure one picture, without decoding one that is too large."""
    path = folder / relative
    if not path.resolve().is_relative_to(folder.resolve()):
        return _Look(error="path-outside")
    if not path.is_file():
        return _Look(error="missing")
    sha256 = hashlib.sha256(path.read_bytes()).hexdigest()
    try:
        with warnings.catch_warnings():
            # Our own limit on pixels comes before any decoding.
            warnings.simplefilter("ignore", Image.DecompressionBombWarning)
            return _decode(path, sha256)
    except Image.DecompressionBombError:
        return _Look(sha256, error="pixel-bomb")
    except UnidentifiedImageError:
        return _Look(sha256, error="undecodable")
    except (OSError, SyntaxError, ValueError) as error:
        # Pillow has no class of its own for a file that ends early.
        return _Look(sha256, error="truncated" if "truncated" in str(error) else "undecodable")


def _decode(path: Path, sha256: str) -> _Look:
    with Image.open(path, formats=_FORMATS) as picture:
        width, height = picture.size
        kind = picture.format or ""
        if width * height > MAX_PIXELS:
            return _Look(sha256, width, height, kind, error="pixel-bomb")
        picture.draft("L", (_HASH_SIDE, _HASH_SIDE))
        picture.load()
        return _Look(sha256, width, height, kind, str(imagehash.phash(picture)))
