"""The pictures of a corpus, and those of an article's wikitext.

Picture files beside a dump are opened and measured. Nothing is copied or fetched.

In wikitext, without expanding templates, pictures occur in ``[[File:...]]``, in ``<gallery>``, and by their bare names
in parameters of infoboxes and of templates that show pictures. A parameter named for a flag, arms, logo, map or
signature, and a picture of the size of a letter, do not show the article's subject. Formats are checked later. Each
scan is linear in the text, and its result is bounded.
"""

import csv
import errno
import hashlib
import html
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, replace
from functools import cache, lru_cache, partial
from pathlib import Path
from threading import Lock
from urllib.parse import unquote, urlsplit

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from pipelines.corpus.data import read_data
from pipelines.corpus.tables import IMAGES, TableWriter
from pipelines.corpus.texts import PageStore
from pipelines.corpus.wikitext import blank_spans, find_braces, find_ignored, match_template
from pipelines.errors import ConfigError, CorruptInput, RecordFailed
from pipelines.files import explain_os_error
from pipelines.names import normalise_file
from pipelines.pictures import MAX_BYTES, probe_picture
from schemas.corpus import CorpusImage
from schemas.datasets import Picture

_THREADS = 2
_COLUMNS = ("file", "author", "licence", "licence_url", "source_url")
_MISSING = "missing"
QID = re.compile("Q[1-9][0-9]{0,17}")

_reading = Lock()


def read_images(table: Path) -> list[CorpusImage]:
    """Read ``images.tsv`` and open every picture it names; titles stay empty."""
    try:
        lines = table.read_text(encoding="utf-8").split("\n")
    except UnicodeDecodeError as error:
        raise CorruptInput(f"{table} is not UTF-8: {error}; expected a TSV with {', '.join(_COLUMNS)}") from error
    rows = csv.DictReader(lines, delimiter="\t", quoting=csv.QUOTE_NONE)
    missing = [column for column in _COLUMNS if column not in (rows.fieldnames or [])]
    if missing:
        raise ConfigError(f"{table} has no column {', '.join(missing)}; it has {', '.join(rows.fieldnames or [])}")
    by_file = {normalise_file(row["file"]): row for row in rows if row["file"]}
    listed = [_read_row(table, file, row) for file, row in sorted(by_file.items())]
    with ThreadPoolExecutor(_THREADS) as pool:
        return list(pool.map(partial(_open_listed, table.parent), listed))


def _read_row(table: Path, file: str, row: Mapping[str, str | None]) -> CorpusImage:
    qids = (row.get("depicts") or "").split()
    strange = next((qid for qid in qids if not QID.fullmatch(qid)), None)
    if strange is not None:
        raise CorruptInput(
            f"{table}: {row['file']} depicts {strange[:40]!r}; expected Qids separated by spaces, as Q42"
        )
    for column in ("licence_url", "source_url"):
        if urlsplit((row[column] or "").strip()).scheme not in ("", "http", "https"):
            raise CorruptInput(f"{table}: {column} of {row['file']} is {(row[column] or '')[:80]!r}; expected http(s)")
    return CorpusImage(
        file=file,
        title=(),
        path=row.get("path") or row["file"] or "",
        sha256=row.get("sha256") or "",
        width=0,
        height=0,
        format="",
        author=row["author"] or "",
        licence=row["licence"] or "",
        licence_url=row["licence_url"] or "",
        source_url=row["source_url"] or "",
        phash="",
        error="",
        depicts=tuple(dict.fromkeys(qids)),
    )


def _open_listed(folder: Path, listed: CorpusImage) -> CorpusImage:
    path = place_inside(folder, listed.path)
    if path is None:
        return replace(listed, sha256="", error="path-outside")
    try:
        if not path.is_file():
            return replace(listed, sha256="", error=_MISSING)
        if path.stat().st_size > MAX_BYTES:
            return replace(listed, sha256="", error="too-large")
        data = path.read_bytes()
    except OSError as error:
        if error.errno == errno.ENAMETOOLONG:
            return replace(listed, sha256="", error=_MISSING)
        raise explain_os_error(error, f"picture {path}") from error
    sha256 = hashlib.sha256(data).hexdigest()
    try:
        seen = probe_picture(data)
    except RecordFailed as error:
        return replace(listed, sha256=sha256, error=error.error.removeprefix("picture-"))
    return replace(
        listed,
        sha256=sha256,
        width=seen.width,
        height=seen.height,
        format=seen.extension,
        phash=seen.phash,
        error="sha256-mismatch" if listed.sha256 not in ("", sha256) else "",
    )


def describe_image(image: CorpusImage) -> Picture:
    """Return a picture of the corpus, whose file is there, as rows of stages have it."""
    same = ("sha256", "file", "width", "height", "phash", "author", "licence", "licence_url", "source_url")
    return Picture(extension=image.format, **{name: getattr(image, name) for name in same})


def write_images(folder: Path, table: Path | None, language: str) -> list[CorpusImage]:
    """Write the table of the pictures at hand of a corpus whose pages and texts are written, and return its rows."""
    local = read_images(table) if table is not None else []
    leading, showing = defaultdict[str, set[str]](set), defaultdict[str, set[str]](set)
    files, texts = {image.file for image in local}, PageStore.open(folder / "store")
    with pq.ParquetFile(folder / "pages.parquet") as pages:
        for batch in pages.iter_batches(columns=["node", "title", "image"]) if files else ():
            for node, title, lead in zip(*(column.to_pylist() for column in batch.columns), strict=True):
                leading[lead].add(title)
                for file in files.intersection(find_page_images(texts.text(node), language)):
                    showing[file].add(title)
    rows = []
    for image in local:
        leads, shows = leading[image.file], showing[image.file] - leading[image.file]
        rows.append(replace(image, title=tuple(sorted(leads)), shown=tuple(sorted(shows))))
    with TableWriter(folder, "images", IMAGES, mapped=True) as writer:
        writer.write_table(pa.Table.from_pylist(list(map(asdict, rows)), schema=IMAGES))
    return rows


def find_shared_leads(pages: Path, digest: str) -> Mapping[str, tuple[str, ...]]:
    """Return the files with which several articles lead, with the titles of these, sorted. Safe from any thread.

    The first call for a corpus reads two columns of all its pages.
    """
    with _reading:
        return _read_shared_leads(pages, digest)


@lru_cache(maxsize=4)
def _read_shared_leads(pages: Path, digest: str) -> Mapping[str, tuple[str, ...]]:
    rows = pq.read_table(pages, columns=["image", "title"], filters=[("image", "!=", "")])
    counts = pc.value_counts(rows["image"].combine_chunks())
    shared = counts.field("values").filter(pc.greater(counts.field("counts"), 1))
    titles = defaultdict[str, list[str]](list)
    for row in rows.filter(pc.is_in(rows["image"], value_set=shared)).to_pylist():
        titles[row["image"]].append(row["title"])
    return {file: tuple(sorted(each)) for file, each in titles.items()}


def place_inside(folder: Path, relative: str) -> Path | None:
    """Return a file's path in a folder, or None if it leads outside, links followed."""
    try:
        path = folder / relative
        return path if path.resolve().is_relative_to(folder.resolve()) else None
    except (ValueError, RuntimeError):  # a null character, which no path can hold, or links that go round
        return None


def is_file(path: Path) -> bool:
    """Say whether a file lies there; of a name that is longer than a file system takes, none does."""
    try:
        return path.is_file()
    except OSError as error:
        if error.errno == errno.ENAMETOOLONG:
            return False
        raise


MOST_FILES = 1_000
"""Pictures returned of one page; the longest gallery pages have a few hundred."""
_SMALLEST = 60
"""Width or height in pixels below which a picture is an icon."""
_MAX_NAME_BYTES = 240
_OPTIONS = 300
"""Characters after a file's name that are searched for its size."""
_FILE = 6
_NO_PICTURE = re.compile(r"\.(?:ogg|oga|ogv|opus|webm|mp3|mp4|wav|flac|midi?|mpe?g|stl|pdf|djvu?)$", re.IGNORECASE)
_SIZE = re.compile(r"\|\s*+(?:(\d{1,5})?+x)?+(\d{1,5})\s*+px\s*+(?=[|\]])", re.IGNORECASE)
_OPTIONS_END = re.compile(r"\]\]|\[\[")
_INFOBOX = re.compile(r"infobox|taxobox|speciesbox|automatic[ _]taxobox", re.IGNORECASE)
_OPENING = re.compile(
    rf"\{{\{{[\s_]*+(?P<name>{_INFOBOX.pattern}|(?:multiple|double|triple|wide|tall|annotated)[ _]image(?=[\s_|])"
    r"|(?:panorama|css[ _]image[ _]crop|gallery|photo[ _]montage)(?=[\s_|]))",
    re.IGNORECASE,
)
# A parameter that holds a bare file name, or a position that does; what stands in [[...]] is found as a link.
_PARAMETER = re.compile(
    r"\|\s*+(?:(?P<key>[^\s|{}\[\]=<>][^|{}\[\]=<>\n]{0,60}+)=\s*+)?+"
    r"(?P<name>[^\s|{}\[\]<>=#][^|{}\[\]<>=#\n]{0,240}+)(?=\s*+(?:\||\}\}))"
)
_ENDING = re.compile(r".\.[a-z0-9]{2,5}$", re.IGNORECASE)
_PICTURE_NAME = re.compile(r".\.(?:jpe?g|png|svg|gif|tiff?|webp)$", re.IGNORECASE | re.DOTALL)
_EMBLEM = re.compile(
    r"flag|coat|arms|seal|crest|emblem|shield|logo|icon|map|locator|signature|blank|symbol|wappen|flagge|blason|drapeau"
    r"|escudo|bandera|stemma|bandiera|karte|carte|mapa|mappa|герб|флаг|карта",
    re.IGNORECASE,
)


def find_page_images(text: str, language: str = "en") -> tuple[str, ...]:
    """Return the file names of a page's pictures, each once: those of its infobox first, then in the order of the page.

    Names are normalised as ``images.normalise_file`` does. Sound, film and documents are left out by their ending;
    links to a file's page (``[[:File:...]]``) show nothing.
    """
    galleries = list(_find_galleries(text))
    shown = blank_spans(text, find_ignored(text)) if "<" in text else text
    found = list(_read_links(shown, language))
    infobox = range(0)
    for name, span in _find_templates(shown):
        is_infobox = _INFOBOX.fullmatch(name) is not None
        infobox = span if is_infobox and not infobox else infobox
        found += _read_parameters(shown, span, is_infobox)
    for span in galleries:
        found += _read_gallery(text[span.start : span.stop], span.start, language)
    found.sort(key=lambda one: (one[0] not in infobox, one[0]))
    names = dict.fromkeys(name for _, raw in found if (name := _clean_name(raw)))
    return tuple(names)[:MOST_FILES]


def _find_galleries(text: str) -> Iterator[range]:
    for start, end in find_ignored(text) if "<" in text else ():
        if text[start : start + 8].lower() == "<gallery":
            yield range(text.index(">", start, end) + 1, text.rindex("</", start, end))


def _find_templates(text: str) -> Iterator[tuple[str, range]]:
    for start, end in find_braces(text):
        position = start
        while opening := _OPENING.search(text, position, end):
            position = match_template(text, opening.start(), end)
            position = end if position < 0 else position
            yield opening["name"], range(opening.start(), position)


def _read_links(text: str, language: str) -> Iterator[tuple[int, str]]:
    for match in _compile_link(language).finditer(text):
        if not _is_icon(text, match.end()):
            yield match.start(), match["name"]


def _is_icon(text: str, start: int) -> bool:
    stop = start + _OPTIONS
    closing = _OPTIONS_END.search(text, start, stop)
    size = _SIZE.search(text, start, closing.end() if closing else stop)
    if size is None:
        return False
    sides = [int(side) for side in size.groups() if side]
    return min(sides) < _SMALLEST


def _read_parameters(text: str, span: range, is_infobox: bool) -> Iterator[tuple[int, str]]:
    for match in _PARAMETER.finditer(text, span.start, span.stop):
        key = match["key"] or ""
        if _PICTURE_NAME.search(match["name"].rstrip()) and not _EMBLEM.search(key) and (key or not is_infobox):
            yield match.start(), match["name"]


def _read_gallery(text: str, position: int, language: str) -> Iterator[tuple[int, str]]:
    for line in blank_spans(text, find_ignored(text)).split("\n"):
        name = line.partition("|")[0].strip()
        prefix, colon, rest = name.partition(":")
        if colon and prefix.strip(" _").lower() in _list_namespaces(language):
            name = rest
        if _PICTURE_NAME.search(name):
            yield position, name
        position += len(line) + 1


def _clean_name(raw: str) -> str:
    name = raw[: _MAX_NAME_BYTES * 3]
    if "%" in name:
        name = unquote(name, errors="replace")
    if "&" in name:
        name = html.unescape(name)
    name = normalise_file(name)
    is_name = name.isprintable() and not any(char in "#<>[]{}|:/\\\ufffd" for char in name)
    if not is_name or not _ENDING.search(name) or len(name.encode("utf-8", "replace")) > _MAX_NAME_BYTES:
        return ""
    return "" if _NO_PICTURE.search(name) else name


@cache
def _list_namespaces(language: str) -> frozenset[str]:
    wikis = read_data("wikis")
    aliases = (name for name, number in wikis["namespace_aliases"].get(language, {}).items() if number == _FILE)
    return frozenset(("file", "image", *aliases, *wikis["file_namespaces"].get(language, ())))


@cache
def _compile_link(language: str) -> re.Pattern[str]:
    names = "|".join(sorted(map(re.escape, _list_namespaces(language)), reverse=True))
    return re.compile(
        rf"\[\[[\s_]*+(?:{names})[\s_]*+:[\s_]*+(?P<name>[^\[\]{{}}|<>#\n]{{1,240}}+)(?=\||\]\])", re.IGNORECASE
    )
