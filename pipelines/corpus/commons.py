"""Read the structured-data dump of Wikimedia Commons for the files that a corpus needs; write the table of pictures.

The dump describes over 100 M files and a corpus shows a few million of them. So it is cut into entities by their first
bytes, an entity's file name is found without parsing, and only wanted entities are parsed, by a Turtle parser. Memory
holds one hash per wanted file and one chunk.

Licences (P275, P6216) become the short names that Wikimedia Commons shows; one that is not in ``data/licences.toml``
stays a Qid. :mod:`pipelines.checks.pictures` decides whether a short name is free.
"""

import bz2
import gzip
import re
import zlib
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache, partial
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote, unquote_to_bytes, urlsplit

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import xxhash
from numpy.typing import NDArray
from pyoxigraph import BlankNode, Literal, NamedNode, RdfFormat, Triple, parse

from pipelines.corpus.data import read_data
from pipelines.corpus.images import QID, find_showing, merge_images, read_images
from pipelines.corpus.manifest import SideFiles
from pipelines.corpus.properties import make_once
from pipelines.corpus.tables import IMAGES, TableWriter
from pipelines.errors import ConfigError, CorruptInput
from pipelines.names import normalise_file

PUBLIC_DOMAIN = "Public domain"
_IN_PUBLIC_DOMAIN = "Q19652"
_FAMILIES = ("CC0", PUBLIC_DOMAIN, "CC BY", "CC BY-SA", "FAL", "OGL", "GFDL")
"""From the fewest conditions to the most: what a file under several licences is best used under."""
_PARTS = re.compile(r"(?P<family>CC BY-SA|CC BY|GFDL|OGL) (?P<version>\d(?:\.\d)?)\+?(?: (?P<port>[a-z]+))?")


@cache
def _read_table() -> tuple[dict[str, str], dict[str, str]]:
    """Return the short names by Qid, and the addresses by short name."""
    table = read_data("licences")
    names = {qid: name for name, qids in table["names"].items() for qid in qids}
    for version, row in table["ported"].items():
        for entry in row.split():
            port, _, qid = entry.rpartition(":")
            names[qid] = f"{version} {port}" if port else version
    return names, table["urls"]


def name_licence(qid: str) -> str:
    """Return a licence's short name such as ``CC BY-SA 3.0 de``, or the Qid itself when the table has none."""
    return _read_table()[0].get(qid, qid)


def find_licence_url(name: str) -> str:
    """Return the address of a licence's text by its short name, empty when there is no one address."""
    family, version, port = _split_name(name)
    if not version or not family.startswith("CC BY"):
        return _read_table()[1].get(name, "")
    return f"https://creativecommons.org/licenses/{family[3:].lower()}/{version}/" + (f"{port}/" if port else "")


def choose_licence(licences: Iterable[str], statuses: Iterable[str], in_parts: bool) -> str:
    """Return the one short name a file goes under.

    Of several licences the taker may choose any: the one with the fewest conditions is taken, its newest version, the
    international text before a port. Where they hold for parts of the file (a photograph of a sculpture), all of them
    bind: they are joined, and the joined name is on no list of free licences. Without a licence, a file whose only
    copyright status is the public domain goes under that; one that is protected somewhere goes under nothing.

    Args:
        licences: Qids of P275.
        statuses: Qids of P6216.
        in_parts: whether a licence or a status is said to hold for a part of the file only (P518).

    Returns:
        A short name, Qids where the table has none, or an empty string when nothing is stated.
    """
    names = sorted({name_licence(qid) for qid in licences}, key=_rank_name)
    if in_parts:
        return "; ".join([*names, "in parts"])
    if names:
        return names[0]
    return PUBLIC_DOMAIN if set(statuses) == {_IN_PUBLIC_DOMAIN} else ""


def _rank_name(name: str) -> tuple[int, float, str, str]:
    family, version, port = _split_name(name)
    rank = _FAMILIES.index(family) if family in _FAMILIES else len(_FAMILIES)
    return rank, -float(version or 0), port, name


def _split_name(name: str) -> tuple[str, str, str]:
    match = _PARTS.fullmatch(name)
    return (match["family"], match["version"], match["port"] or "") if match else (name, "", "")


_FILE_PAGES = "https://commons.wikimedia.org/wiki/File:"
_SCHEMA = "http://schema.org/"
_PROPERTIES = ("http://www.wikidata.org/prop/", "https://commons.wikimedia.org/prop/")
_ITEMS = "http://www.wikidata.org/entity/"
_MEDIA = "https://commons.wikimedia.org/entity/M"
_LICENCE, _STATUS, _CREATOR, _DEPICTS = "P275", "P6216", "P170", "P180"
_NAME, _USER, _PART = "P2093", "P4174", "P518"
_UNQUOTED = "/:;@$!*(),~"
"""What MediaWiki leaves as it is in the addresses of pages (wfUrlencode)."""
_MOST_PIXELS = (1 << 31) - 1
_MOST_BYTES = 1 << 50
_MAX_AUTHOR = 1_000


class Malformed(ValueError):
    """An entity does not have the form that the dump promises; the argument is one word for counting."""


MEDIA = pa.schema(
    [
        ("file", pa.string()),  # as pages use it: spaces, first letter upper case
        ("url", pa.string()),  # of the original
        ("width", pa.int32()),  # in pixels as displayed; 0 when not known
        ("height", pa.int32()),
        ("mime", pa.string()),
        ("bytes", pa.int64()),
        ("licence", pa.string()),  # short name, a Qid without one, or empty when nothing is stated
        ("licence_url", pa.string()),
        ("copyright_status", pa.string()),  # Qids of P6216, separated by spaces
        ("author", pa.string()),  # names of the creators, else user names or Qids
        ("source_url", pa.string()),  # the file's page
        ("depicts", pa.list_(pa.string())),  # Qids of the best statements of what it shows (P180)
    ]
)
"""Columns of ``media.parquet``: a row is a file of Wikimedia Commons."""


def read_rdf(source: bytes) -> dict[str, Any]:
    """Return a row of :data:`MEDIA` from one entity in Turtle or N-Triples, with its statements and the prefixes.

    Raises:
        Malformed: ``syntax``, ``url`` (not one https address), ``number`` (an invalid size).
    """
    try:
        triples = list(parse(source, format=RdfFormat.TURTLE, lenient=True))
    except (SyntaxError, ValueError) as error:
        raise Malformed("syntax") from error
    said: dict[str, list[Any]] = defaultdict(list)
    qualifiers: dict[str, dict[str, list[Any]]] = defaultdict(lambda: defaultdict(list))
    for triple in triples:
        if not isinstance(triple.subject, NamedNode) or isinstance(triple.object, Triple):
            continue
        predicate = _shorten_predicate(triple.predicate.value)
        if predicate.startswith(("qualifier/", "statement/")):
            qualifiers[triple.subject.value][predicate].append(triple.object)
        elif triple.subject.value.startswith(_MEDIA):
            said[predicate].append(triple.object)
    urls = [node.value for node in said["contentUrl"] if isinstance(node, NamedNode)]
    if len(set(urls)) != 1:
        raise Malformed("url")
    try:
        address = urlsplit(urls[0])
    except ValueError as error:
        raise Malformed("url") from error
    file = normalise_file(unquote(address.path.rpartition("/")[2]))
    if not file or address.scheme != "https":
        raise Malformed("url")
    statuses = _list_items(said[f"direct/{_STATUS}"])
    in_parts = any(qualifiers[node.value][f"qualifier/{_PART}"] for node in (*said[_LICENCE], *said[_STATUS]))
    licence = choose_licence(_list_items(said[f"direct/{_LICENCE}"]), statuses, in_parts)
    creators = dict.fromkeys(" ".join(label.split()) for label in _list_creators(said, qualifiers) if label)
    return {
        "file": file,
        "url": urls[0],
        "width": _read_number(said["width"], _MOST_PIXELS),
        "height": _read_number(said["height"], _MOST_PIXELS),
        "mime": _read_literal(said["encodingFormat"]),
        "bytes": _read_number(said["contentSize"], _MOST_BYTES),
        "licence": licence,
        "licence_url": find_licence_url(licence),
        "copyright_status": " ".join(dict.fromkeys(statuses)),
        "author": "; ".join(creators)[:_MAX_AUTHOR],
        "source_url": make_source_url(file),
        "depicts": [qid for qid in dict.fromkeys(_list_items(said[f"direct/{_DEPICTS}"])) if QID.fullmatch(qid)],
    }


def make_source_url(file: str) -> str:
    """Return the address of a file's page on Wikimedia Commons."""
    return _FILE_PAGES + quote(file.replace(" ", "_"), safe=_UNQUOTED)


def _read_number(nodes: Sequence[object], most: int) -> int:
    """Return a count, 0 for an absent one."""
    text = _read_literal(nodes)
    if not text:
        return 0
    if not (text.isascii() and text.isdecimal()) or len(text) > 18 or int(text) > most:
        raise Malformed("number")
    return int(text)


def _shorten_predicate(iri: str) -> str:
    """Return ``width``, ``direct/P275``, ``P170`` or ``qualifier/P2093``; other predicates stay as they are."""
    return next((iri.removeprefix(base) for base in (_SCHEMA, *_PROPERTIES) if iri.startswith(base)), iri)


def _read_literal(nodes: Sequence[object]) -> str:
    return next((node.value for node in nodes if isinstance(node, Literal)), "")


def _list_items(nodes: Iterable[object]) -> list[str]:
    iris = [node.value for node in nodes if isinstance(node, NamedNode)]
    return [iri.removeprefix(_ITEMS) for iri in iris if iri.startswith(_ITEMS)]


def _list_creators(said: Mapping[str, list[Any]], qualifiers: Mapping[str, Mapping[str, list[Any]]]) -> Iterator[str]:
    """Yield names, else user names, else Qids of the creators that the truthy triples name; the dump's order."""
    truthy = said[f"direct/{_CREATOR}"]
    for node in said[_CREATOR]:
        stated = qualifiers[node.value]
        values = stated[f"statement/{_CREATOR}"]
        if truthy and values and not _share_value(values, truthy):
            continue  # a statement of lower rank
        user = _read_literal(stated[f"qualifier/{_USER}"])
        item = next(iter(_list_items(values)), "")
        yield _read_literal(stated[f"qualifier/{_NAME}"]) or (f"User:{user}" if user else item)
    if not said[_CREATOR]:
        yield from _list_items(truthy)


def _share_value(values: Sequence[object], others: Sequence[object]) -> bool:
    """Return whether two lists have a value in common; unknown values (blank nodes) count as one."""
    if any(isinstance(value, BlankNode) for value in values):
        return any(isinstance(other, BlankNode) for other in others)
    return any(value in others for value in values)


CHUNK = 4 << 20
"""Bytes read at a time."""
_MAX_CHUNKS = 16
"""Chunks that one entity may be long."""

# Each entity begins with the triples of its data page; Turtle names it once, N-Triples in each of its lines.
_ENTITY = re.compile(rb"\n(?:sdcdata:|<https://commons\.wikimedia\.org/wiki/Special:EntityData/)M(\d{1,18})[ >]")
_ENTITY_BYTES = 96
"""No shorter than what the expression above matches, so that a match cut by the end of a chunk is found again."""
_CONTENT = re.compile(rb"(?:schema:contentUrl|<http://schema\.org/contentUrl>)\s+<([^<>\s]*)>")
_PREFIXES = re.compile(rb"^@prefix [^\n]*\n", re.MULTILINE)

CommonsEntity = tuple[str, bytes, bytes]
"""A file name, empty when none is found; the prefixes in force; the entity's source."""
COUNTS = ("entities", "kept", "without_licence", "not_wanted", "unnamed", "repeated")
"""Where the entities of a dump ended; ``repeated`` were wanted, but kept before. The others are malformed."""


def hash_files(names: Iterable[str]) -> NDArray[np.uint64]:
    """Return the sorted distinct 64-bit hashes of file names, in any form that pages use; empty names do not count."""
    hashes = (_hash_file(normalise_file(name)) for name in names if name)
    return np.unique(np.fromiter(hashes, dtype=np.uint64))


def collect_media(dump: Path, wanted: NDArray[np.uint64], place: Path, chunk: int = CHUNK) -> dict[str, int]:
    """Write ``media.parquet``: what Commons says of the wanted files, in the order of the dump.

    Args:
        dump: a MediaInfo dump or a part of one: ``.ttl`` or ``.nt``, plain, ``.gz`` or ``.bz2``.
        wanted: as :func:`hash_files` returns; what has one of these hashes is kept.
        place: folder of the table, which has the columns :data:`MEDIA`.
        chunk: bytes read at a time; an entity may be 16 of them long.

    Returns:
        The counts of :data:`COUNTS`, and of wanted entities that cannot be read as ``malformed: <reason>``.

    Raises:
        ConfigError: the path does not end in one of these, or there is no such file.
        CorruptInput: the dump is truncated, holds no entity of Commons, or names no file.
    """
    if not dump.name.removesuffix(".bz2").removesuffix(".gz").endswith((".ttl", ".nt")) or not dump.is_file():
        raise ConfigError(f"no Commons dump at {dump}; expected a .ttl or .nt file, plain, .gz or .bz2")
    counts = Counter(dict.fromkeys(COUNTS, 0))
    seen = np.zeros(len(wanted), dtype=np.bool_)
    with TableWriter(place, "media", MEDIA) as writer:
        for batch in _cut_entities(dump, chunk):
            counts["entities"] += len(batch)
            found = _read_wanted(_pick_wanted(batch, wanted, counts), wanted, seen, counts)
            writer.write_rows([tuple(row[name] for name in MEDIA.names) for row in found])
    if counts["entities"] == counts["unnamed"]:
        raise CorruptInput(
            f"{dump} names no file of Wikimedia Commons; expected a MediaInfo dump with sdcdata: entities and "
            "schema:contentUrl"
        )
    return dict(counts)


def _read_wanted(
    picked: Iterable[tuple[int, bytes]], wanted: NDArray[np.uint64], seen: NDArray[np.bool_], counts: Counter[str]
) -> Iterator[dict[str, Any]]:
    for place, source in picked:
        if seen[place]:
            counts["repeated"] += 1
            continue
        try:
            row = read_rdf(source)
            if _hash_file(row["file"]) != wanted[place]:
                raise Malformed("title")
        except Malformed as error:
            counts[f"malformed: {error}"] += 1
            continue
        seen[place] = True
        counts["kept"] += 1
        counts["without_licence"] += not row["licence"]
        yield row


def _pick_wanted(
    batch: list[CommonsEntity], wanted: NDArray[np.uint64], counts: Counter[str]
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


def _read_chunks(dump: Path, size: int) -> Iterator[bytes]:
    opener: Callable[..., Any] = {".bz2": bz2.open, ".gz": gzip.open}.get(dump.suffix, open)
    try:
        with opener(dump, "rb") as stream:
            while chunk := stream.read(size):
                yield chunk
    except (EOFError, OSError, zlib.error) as error:
        raise CorruptInput(f"{dump} is truncated or not compressed as its name says: {error}") from error


def _cut_entities(dump: Path, size: int) -> Iterator[list[CommonsEntity]]:
    """Yield the entities of each chunk, the prefixes in force before each; an entity is all from its first bytes on."""
    prefixes, buffer, number, searched = b"", b"\n", b"", 0
    for chunk in _read_chunks(dump, size):
        buffer += chunk
        start, batch = 0, list[CommonsEntity]()
        for match in _ENTITY.finditer(buffer, searched):
            if match.group(1) == number:
                continue
            prefixes = _end_entity(batch, buffer[start : match.start() + 1], number, prefixes)
            number, start = match.group(1), match.start() + 1
        yield batch
        buffer = buffer[start:]
        searched = max(0, len(buffer) - _ENTITY_BYTES)
        if len(buffer) > _MAX_CHUNKS * size:
            raise CorruptInput(f"{dump}: over {_MAX_CHUNKS * size} bytes without an entity of Wikimedia Commons")
    if not buffer.rstrip().endswith(b".") or not buffer.endswith(b"\n"):
        raise CorruptInput(f"{dump} is truncated: it ends with {buffer[-40:]!r}; expected a statement's full stop")
    batch = []
    _end_entity(batch, buffer, number, prefixes)
    yield batch


def _end_entity(batch: list[CommonsEntity], source: bytes, number: bytes, prefixes: bytes) -> bytes:
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


def write_images(
    folder: Path, side: SideFiles, kept: Path, language: str
) -> tuple[int, list[tuple[str, str]], dict[str, int]]:
    """Write the table of pictures of a corpus whose pages and texts are written.

    Args:
        folder: of the corpus.
        side: the files beside the dump.
        kept: folder for what a repeated build can reuse.
        language: code of the wiki's language.

    Returns:
        The number of rows, (file, sha256) of every local picture, and the counts of :func:`collect_media`, empty
        without a dump of Commons.
    """
    pages = folder / "pages.parquet"
    media, counts = None, dict[str, int]()
    if side.media is not None:
        # The dump and all its side files decide which pictures are wanted.
        files = [path for _, path in side.list_files()]
        with pq.ParquetFile(pages) as source:
            batches = source.iter_batches(columns=["image"])
            wanted = hash_files(name for batch in batches for name in batch.column(0).to_pylist())
        media, counts = make_once(kept, "media", files, partial(collect_media, side.media, wanted))
    local = read_images(side.images) if side.images is not None else []
    if local:
        shown = find_showing(folder, language, {image.file for image in local})
        local = [replace(image, shown=shown.get(image.file, ())) for image in local]
    with TableWriter(folder, "images", IMAGES, mapped=True) as writer:
        for rows in merge_images(local, media, pages):
            writer.write_table(rows)
    return writer.rows, [(image.file, image.sha256) for image in local], counts
