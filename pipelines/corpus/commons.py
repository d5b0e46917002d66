"""Read the structured-data dump of Wikimedia Commons for the files that a corpus needs.

It describes over 100 M files and a corpus shows a few million of them. So a dump is cut into entities by their first
bytes, an entity's file name is found without parsing, and only what is wanted is parsed. Memory holds a hash a wanted
file, and one chunk.
"""

import bz2
import gzip
import re
import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import BinaryIO
from urllib.parse import unquote_to_bytes

import numpy as np
import orjson
import pyarrow as pa
import xxhash
from numpy.typing import NDArray

from pipelines.corpus.images import normalise_file
from pipelines.corpus.mediainfo import Malformed, Media, read_json, read_rdf
from pipelines.corpus.tables import TableWriter
from pipelines.errors import ConfigError, CorruptInput

MEDIA = pa.schema(
    [
        ("file", pa.string()),
        ("url", pa.string()),
        ("width", pa.int32()),
        ("height", pa.int32()),
        ("mime", pa.string()),
        ("bytes", pa.int64()),
        ("licence", pa.string()),
        ("licence_url", pa.string()),
        ("copyright_status", pa.string()),
        ("author", pa.string()),
        ("source_url", pa.string()),
        ("depicts", pa.list_(pa.string())),
    ]
)
CHUNK = 4 << 20
"""Bytes read at a time."""
_MAX_CHUNKS = 16
"""Chunks that one entity may be long."""
_ROWS = 8_192

# Each entity begins with the triples of its data page; Turtle names it once, N-Triples in each of its lines.
_ENTITY = re.compile(rb"\n(?:sdcdata:|<https://commons\.wikimedia\.org/wiki/Special:EntityData/)M(\d{1,18})[ >]")
_ENTITY_BYTES = 96
"""No shorter than what the expression above matches, so that a match cut by the end of a chunk is found again."""
_CONTENT = re.compile(rb"(?:schema:contentUrl|<http://schema\.org/contentUrl>)\s+<([^<>\s]*)>")
_PREFIXES = re.compile(rb"^@prefix [^\n]*\n", re.MULTILINE)
_TITLE = re.compile(rb'"title":"File:((?:[^"\\]|\\.)*+)"')

Candidate = tuple[str, bytes, bytes]
"""A file name, empty when none is found; the prefixes in force; the entity's source."""


@dataclass(frozen=True, slots=True)
class MediaCounts:
    """Where the entities of a dump ended: each is kept, not wanted, unnamed, repeated or malformed."""

    entities: int
    kept: int
    without_licence: int
    """Among those kept."""
    not_wanted: int
    unnamed: int
    """Without a file name, so that nobody can want them."""
    repeated: int
    """Wanted, but kept before."""
    malformed: dict[str, int]
    """Wanted, but not of the dump's form, by reason: see :func:`pipelines.corpus.mediainfo.read_json`."""

    def summarise(self) -> dict[str, int]:
        """Return the counts by name, the malformed ones by ``malformed: <reason>``."""
        names = ("entities", "kept", "without_licence", "not_wanted", "unnamed", "repeated")
        counts = {name: getattr(self, name) for name in names}
        return counts | {f"malformed: {reason}": count for reason, count in self.malformed.items()}


@dataclass(frozen=True, slots=True)
class _Dump:
    path: Path
    chunk: int

    @property
    def most_bytes(self) -> int:
        """Bytes that one entity may be long."""
        return _MAX_CHUNKS * self.chunk


def hash_files(names: Iterable[str]) -> NDArray[np.uint64]:
    """Return the sorted distinct 64-bit hashes of file names, in any form that pages use; empty names do not count."""
    hashes = (_hash_file(normalise_file(name)) for name in names if name)
    return np.unique(np.fromiter(hashes, dtype=np.uint64))


def collect_media(paths: Sequence[Path], wanted: NDArray[np.uint64], out: Path, chunk: int = CHUNK) -> MediaCounts:
    """Write ``media.parquet``: what Commons says of the wanted files, in the order of the dump.

    Args:
        paths: MediaInfo dumps or parts of one: ``.ttl``, ``.nt`` or ``.json``, plain, ``.gz`` or ``.bz2``. What an
            earlier one says of a file stands.
        wanted: as :func:`hash_files` returns; what has one of these hashes is kept.
        out: the Parquet file to write, columns :data:`MEDIA`.
        chunk: bytes read at a time; an entity may be 16 of them long.

    Raises:
        ConfigError: a path does not end in one of these, or there is no such file.
        CorruptInput: a dump is cut short, holds no entity of Commons, or names no file (JSON dumps before 2022 have no
            titles).
    """
    counts: Counter[str] = Counter()
    seen = np.zeros(len(wanted), dtype=np.bool_)
    with TableWriter(out.parent, out.name.removesuffix(".parquet"), MEDIA) as writer:
        rows: list[tuple[object, ...]] = []
        for path in paths:
            for media in _collect(_Dump(path, chunk), wanted, seen, counts):
                rows.append(tuple(getattr(media, field.name) for field in fields(Media)))
                if len(rows) == _ROWS:
                    writer.write_rows(rows)
                    rows.clear()
        writer.write_rows(rows)
    return MediaCounts(
        entities=counts["entities"],
        kept=counts["kept"],
        without_licence=counts["without_licence"],
        not_wanted=counts["not_wanted"],
        unnamed=counts["unnamed"],
        repeated=counts["repeated"],
        malformed={key[10:]: count for key, count in sorted(counts.items()) if key.startswith("malformed:")},
    )


def _collect(dump: _Dump, wanted: NDArray[np.uint64], seen: NDArray[np.bool_], counts: Counter[str]) -> Iterator[Media]:
    read, candidates = _open_candidates(dump)
    before = counts["entities"] - counts["unnamed"]
    for batch in candidates:
        counts["entities"] += len(batch)
        for place, source in _pick_wanted(batch, wanted, counts):
            if seen[place]:
                counts["repeated"] += 1
                continue
            try:
                media = read(source)
                if _hash_file(media.file) != wanted[place]:
                    raise Malformed("title")
            except Malformed as error:
                counts[f"malformed:{error}"] += 1
                continue
            seen[place] = True
            counts["kept"] += 1
            counts["without_licence"] += not media.licence
            yield media
    if counts["entities"] - counts["unnamed"] == before:
        raise CorruptInput(
            f"{dump.path} names no file of Wikimedia Commons; expected a MediaInfo dump with sdcdata: entities and "
            "schema:contentUrl (RDF), or with titles (JSON, from 2022 on)"
        )


def _pick_wanted(
    batch: list[Candidate], wanted: NDArray[np.uint64], counts: Counter[str]
) -> Iterator[tuple[int, bytes]]:
    named = [candidate for candidate in batch if candidate[0]]
    counts["unnamed"] += len(batch) - len(named)
    hashes = np.fromiter((_hash_file(candidate[0]) for candidate in named), dtype=np.uint64, count=len(named))
    places = np.searchsorted(wanted, hashes)
    hits = np.flatnonzero(np.take(wanted, places, mode="clip") == hashes) if len(wanted) else ()
    counts["not_wanted"] += len(named) - len(hits)
    for hit in hits:
        _, prefixes, source = named[hit]
        yield int(places[hit]), prefixes + source


def _hash_file(name: str) -> int:
    return xxhash.xxh3_64_intdigest(name.encode("utf-8", "surrogatepass"))


def _open_candidates(dump: _Dump) -> tuple[Callable[[bytes], Media], Iterator[list[Candidate]]]:
    path = dump.path
    plain = path.name.removesuffix(".bz2").removesuffix(".gz")
    if not path.is_file():
        raise ConfigError(f"no Commons dump at {path}; expected a .ttl, .nt or .json file, plain, .gz or .bz2")
    if plain.endswith(".json"):
        return read_json, _cut_lines(dump)
    if plain.endswith((".ttl", ".nt")):
        return read_rdf, _cut_rdf(dump)
    raise ConfigError(f"{path.name} is no Commons dump; expected .ttl, .nt or .json, plain, .gz or .bz2")


def _open_dump(path: Path) -> BinaryIO | bz2.BZ2File | gzip.GzipFile:
    if path.suffix == ".bz2":
        return bz2.BZ2File(path)
    return gzip.GzipFile(path) if path.suffix == ".gz" else path.open("rb")


def _read_chunks(dump: _Dump) -> Iterator[bytes]:
    try:
        with _open_dump(dump.path) as stream:
            while chunk := stream.read(dump.chunk):
                yield chunk
    except (EOFError, OSError, zlib.error) as error:
        raise CorruptInput(f"{dump.path} is cut short or not compressed as its name says: {error}") from error


def _cut_rdf(dump: _Dump) -> Iterator[list[Candidate]]:
    """Yield the entities of each chunk, the prefixes in force before each; an entity is all from its first bytes on."""
    prefixes, buffer, number, searched = b"", b"\n", b"", 0
    for chunk in _read_chunks(dump):
        buffer += chunk
        start, batch = 0, list[Candidate]()
        for match in _ENTITY.finditer(buffer, searched):
            if match.group(1) == number:
                continue
            prefixes = _end_entity(batch, buffer[start : match.start() + 1], number, prefixes)
            number, start = match.group(1), match.start() + 1
        yield batch
        buffer = buffer[start:]
        searched = max(0, len(buffer) - _ENTITY_BYTES)
        if len(buffer) > dump.most_bytes:
            raise CorruptInput(f"{dump.path}: over {dump.most_bytes} bytes without an entity of Wikimedia Commons")
    if not buffer.rstrip().endswith(b".") or not buffer.endswith(b"\n"):
        raise CorruptInput(f"{dump.path} is cut short: it ends with {buffer[-40:]!r}; expected a statement's full stop")
    batch = []
    _end_entity(batch, buffer, number, prefixes)
    yield batch


def _end_entity(batch: list[Candidate], source: bytes, number: bytes, prefixes: bytes) -> bytes:
    """Add an entity to a batch and return the prefixes that hold after it."""
    cut = source.find(b"\n@prefix ") + 1 if number else 0
    entity = source[:cut] if cut else source
    if number:
        match = _CONTENT.search(entity)
        file = unquote_to_bytes(match.group(1).rpartition(b"/")[2]).decode("utf-8", "replace") if match else ""
        batch.append((normalise_file(file), prefixes, entity))
    if number and not cut:
        return prefixes
    found = b"".join(_PREFIXES.findall(source[cut:]))
    return found or prefixes


def _cut_lines(dump: _Dump) -> Iterator[list[Candidate]]:
    """Yield the entities of each chunk of a JSON dump: one a line, a comma after each but the last."""
    rest, last = b"", b""
    for chunk in _read_chunks(dump):
        *lines, rest = (rest + chunk).split(b"\n")
        if len(rest) > dump.most_bytes:
            raise CorruptInput(f"{dump.path}: a line of over {dump.most_bytes} bytes; expected one entity a line")
        batch = [line for line in (line.strip() for line in lines) if line]
        last = batch[-1] if batch else last
        yield [_name_line(line) for line in batch if line not in (b"[", b"]")]
    if rest.strip():
        last = rest.strip()
        yield [_name_line(last)] if last != b"]" else []
    if last != b"]":
        raise CorruptInput(f"{dump.path} is cut short: its last line is {last[-40:]!r}; expected a closing bracket")


def _name_line(line: bytes) -> Candidate:
    match = _TITLE.search(line)
    if match is None:
        return "", b"", line
    title = match.group(1)
    try:
        name = str(orjson.loads(b'"' + title + b'"')) if b"\\" in title else title.decode()
    except ValueError:  # not UTF-8, or an escape that is none: counted as unnamed
        return "", b"", line
    return normalise_file(name), b"", line.removesuffix(b",")
