"""Articles of the news as a corpus: read from a folder, JSON lines or feeds, and written as an export with pictures.

Each article becomes a page whose text is its paragraphs, every character of markup written as an entity, so that no
text of an article is ever read as wikitext. The one piece of markup is ours: the link that shows its picture. What is
known of an article beside its text (address, source, day, caption) lies in a table of its own.

Articles and feeds are hostile input: XML that declares a document type is refused, lengths and numbers are bounded,
pictures are read from the source's own folder alone.
"""

import hashlib
import html
import json
import re
import shutil
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from datetime import date
from html.parser import HTMLParser
from importlib.util import find_spec
from pathlib import Path
from types import MappingProxyType
from typing import Any
from urllib.parse import urlsplit
from xml.sax.saxutils import escape

import pyarrow as pa
import pyarrow.parquet as pq

from pipelines.corpus.images import is_file, place_inside
from pipelines.errors import ConfigError, CorruptInput
from pipelines.files import drafting_folder
from pipelines.ids import digest_file, digest_value
from pipelines.names import normalise_file
from pipelines.pictures import MAX_BYTES, find_extension

VERSION = 1
"""Raised when the same source would give other pages."""
DUMP = "news-pages-articles.xml"
TABLE = "news-articles.jsonl"
"""Beside the dump: a line for each page, in its order."""
MAX_FILE_BYTES = 64 << 20
"""Of a feed, and of an article's own file."""
MAX_LINE_BYTES = 8 << 20
MAX_ARTICLES = 2_000_000
MAX_TEXT = 400_000
"""Characters of an article; what is longer is cut at the end of a paragraph."""
MAX_TITLE = 160
MAX_FIELD = 2000
NOTHING_FETCHED: Mapping[str, Path] = MappingProxyType({})
JSON_ENDING, FEED_ENDINGS = ".jsonl", (".rss", ".atom", ".xml")
_FORMAT = "utf-8"


@dataclass(frozen=True, slots=True)
class NewsArticle:
    """An article as a source gives it, all text plain."""

    url: str
    """Empty where a feed gives none of the web: its page fails when the corpus is built."""
    title: str
    text: str
    """Paragraphs apart by empty lines."""
    source: str
    """Who published it; the host of its address where it does not say."""
    published: str
    """Day as ``2026-11-22``; empty where it gives none that can be read."""
    caption: str
    picture: Path | None
    """The picture's file, or None if it is not at hand."""
    picture_url: str = ""
    """Its address, where the source gives one in place of a file."""
    author: str = ""
    """Of the picture."""
    licence: str = ""
    """Of the picture; empty: what the operator says of all."""
    licence_url: str = ""


@dataclass(frozen=True, slots=True)
class PageOrigin:
    """A row of ``articles.parquet``: what is known of the page of an article beside its text."""

    title: str
    url: str
    source: str
    published: str
    caption: str
    image: str
    """File name of its picture; empty without one."""
    words: int
    """Of its paragraphs."""
    text_digest: str
    """Of its words, case and marks aside: copies of an article have the same."""


ORIGINS = pa.schema([
    (column.name, pa.int64() if column.name == "words" else pa.string()) for column in fields(PageOrigin)
])  # fmt: skip


# Reading.


def read_articles(source: Path, fetched: Mapping[str, Path] = NOTHING_FETCHED) -> Iterator[NewsArticle]:
    """Yield the articles of a source in a fixed order."""
    count = 0
    for path in list_source_files(source):
        for article in _read_file(path):
            count += 1
            found = article.picture or fetched.get(article.picture_url)
            yield article if found is article.picture else replace(article, picture=found)
            if count > MAX_ARTICLES:
                raise CorruptInput(f"{source} holds more than {MAX_ARTICLES:,} articles; divide it")


def list_source_files(source: Path) -> list[Path]:
    """Return the files of a source, sorted."""
    endings = (JSON_ENDING, ".json", *FEED_ENDINGS)
    files = [source] if source.is_file() else sorted(path for path in source.rglob("*") if path.suffix in endings)
    files = [path for path in files if path.is_file()]
    if not files:
        raise ConfigError(f"news.source {source}: no articles; name a .jsonl file, a feed, or a folder of such files")
    return files


def _read_file(path: Path) -> Iterator[NewsArticle]:
    if path.suffix == JSON_ENDING:
        yield from _read_lines(path)
    elif path.suffix == ".json":
        yield _read_object(_load(path, _read_bounded(path)), path)
    else:
        yield from _read_feed(path)


def _read_bounded(path: Path) -> bytes:
    if path.stat().st_size > MAX_FILE_BYTES:
        raise CorruptInput(f"{path} has more than {MAX_FILE_BYTES >> 20} MiB; divide it")
    return path.read_bytes()


def _read_lines(path: Path) -> Iterator[NewsArticle]:
    with path.open("rb") as lines:
        number = 0
        while line := lines.readline(MAX_LINE_BYTES + 1):
            number += 1
            if len(line) > MAX_LINE_BYTES:
                raise CorruptInput(f"{path}: line {number} has more than {MAX_LINE_BYTES >> 20} MiB")
            if line.strip():
                yield _read_object(_load(path, line, number), path)


def _load(path: Path, data: bytes, line: int = 1) -> Mapping[str, Any]:
    try:
        value = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise CorruptInput(f"{path}: line {line} is no JSON: {error}") from error
    if not isinstance(value, dict) or not all(isinstance(value.get(name), str) for name in ("url", "title", "text")):
        raise CorruptInput(f"{path}: line {line} is no article; it takes an object with url, title and text")
    return value


def _read_object(value: Mapping[str, Any], path: Path) -> NewsArticle:
    def take(name: str) -> str:
        found = value.get(name)
        return clean_line(found)[:MAX_FIELD] if isinstance(found, str) else ""

    url = check_url(take("url"), path)
    return NewsArticle(
        url=url,
        title=take("title") or url,
        text=clean_paragraphs(value["text"]),
        source=take("source") or urlsplit(url).netloc,
        published=read_day(take("published")),
        caption=take("caption"),
        picture=_find_picture(path.parent, take("picture")),
        picture_url=_find_address(take("picture")),
        author=take("author"),
        licence=take("licence"),
        licence_url=take("licence_url"),
    )


def check_url(url: str, path: Path) -> str:
    """Return an article's address."""
    try:
        parts = urlsplit(url)
    except ValueError as error:
        raise CorruptInput(f"{path}: {url[:80]!r} is no address: {error}") from error
    if parts.scheme not in ("http", "https") or not parts.hostname or re.search(r"[\s<>\"]", url):
        raise CorruptInput(f"{path}: {url[:80]!r} is no address of an article; expected http(s)")
    return url


def _find_picture(folder: Path, name: str) -> Path | None:
    path = place_inside(folder, name) if name else None
    return path if path is not None and is_file(path) else None


def _find_address(name: str) -> str:
    return name if name.startswith(("http://", "https://")) else ""


def read_day(text: str) -> str:
    """Return the day that a date in ISO 8601 begins with; empty for any other text."""
    found = re.match(r"(\d{4})-(\d\d)-(\d\d)(?=$|[T ])", text)
    try:
        return date(*map(int, found.groups())).isoformat() if found else ""
    except ValueError:
        return ""


_DOCTYPE = re.compile(rb"<!\s*(?:DOCTYPE|ENTITY)", re.IGNORECASE)


def _read_feed(path: Path) -> Iterator[NewsArticle]:
    if find_spec("feedparser") is None:
        raise ConfigError(f"news.source {path}: a feed needs the extra `news`: pip install 'synth[news]'")
    import feedparser

    data = _read_bounded(path)
    # In any of the encodings that a parser takes: what is not ASCII in them has zero bytes between the letters.
    if _DOCTYPE.search(data.replace(b"\x00", b"")):
        raise CorruptInput(f"{path}: the feed declares a document type or entities, which no feed needs; it is refused")
    parsed = feedparser.parse(data, sanitize_html=True, resolve_relative_uris=False)
    if not parsed.get("version"):
        raise CorruptInput(f"{path}: it is neither RSS nor Atom: {parsed.get('bozo_exception', 'no feed')}")
    named = clean_line(str(parsed.feed.get("title", "")))[:MAX_FIELD]
    for entry in parsed.entries:
        yield _read_entry(entry, named, path)


def _read_entry(entry: Any, named: str, path: Path) -> NewsArticle:  # noqa: ANN401 - a parser's own dictionary
    try:
        url = check_url(str(entry.get("link", "")), path)
    except CorruptInput:  # what one entry of many says is a page that fails, not the end of the feed
        url = ""
    # The parser does not tell a picture's description from the item's: the longest text is the article's.
    told = [str(entry.get("summary", "")), *(str(part.get("value", "")) for part in entry.get("content", ()))]
    texts = sorted((clean_paragraphs(strip_html(each)) for each in told), key=len, reverse=True)
    pictures = [*entry.get("media_content", ()), *entry.get("enclosures", ()), *entry.get("media_thumbnail", ())]
    names = [str(each.get("url") or each.get("href") or "") for each in pictures]
    found = [file for name in names if (file := _find_picture(path.parent, name)) is not None]
    return NewsArticle(
        url=url,
        title=clean_line(strip_html(str(entry.get("title", "")))) or url,
        text=texts[0],
        source=named or urlsplit(url).netloc,
        published=_read_entry_day(entry),
        caption=clean_line(texts[1])[:MAX_FIELD] if len(texts) > 1 else "",
        picture=found[0] if found else None,
        picture_url=next(filter(None, map(_find_address, names)), ""),
        author=clean_line(" ".join(str(each.get("content", "")) for each in entry.get("media_credit", ())))[:MAX_FIELD],
        licence=clean_line(str(entry.get("license", "")))[:MAX_FIELD],
    )


def _read_entry_day(entry: Any) -> str:  # noqa: ANN401 - a parser's own dictionary
    # Membership first: of a date that an entry lacks the parser gives another one of it.
    names = [each for each in ("published", "updated") if f"{each}_parsed" in entry]
    name = next((each for each in names if entry[f"{each}_parsed"]), "")
    when, said = entry.get(f"{name}_parsed"), str(entry.get(name, "")).strip()
    # Of a day such as 2026-13-45 the parser makes another one, and of a year 0 a negative one.
    if not when or (re.match(r"\d{4}-\d\d-\d\d", said) and not read_day(said[:10])):
        return ""
    try:
        return date(*when[:3]).isoformat()
    except ValueError:
        return ""


class _TextOfHtml(HTMLParser):
    BLOCKS = frozenset("p div br li ul ol h1 h2 h3 h4 h5 h6 blockquote figure figcaption table tr section".split())
    HIDDEN = frozenset("script style template noscript iframe".split())

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.parts: list[str] = []
        self.hidden = 0

    def handle_starttag(self, tag: str, attrs: object) -> None:
        self.hidden += tag in self.HIDDEN
        if tag in self.BLOCKS:
            self.parts.append("\n\n")

    def handle_endtag(self, tag: str) -> None:
        self.hidden -= tag in self.HIDDEN and self.hidden > 0
        if tag in self.BLOCKS:
            self.parts.append("\n\n")

    def handle_data(self, data: str) -> None:
        if not self.hidden:
            self.parts.append(data)


_COMMENT = re.compile(r"<!--.*?(?:-->|\Z)", re.DOTALL)
_NO_TAG = re.compile(r"<(?!/?[a-zA-Z][^<>]*>)")
"""A bracket that begins no tag: the parser takes quadratic time for those, and raises at some of them."""


def strip_html(text: str) -> str:
    """Return the text of HTML, blocks as paragraphs; comments, scripts and styles go.

    At most four times as many characters are read as an article may have.
    """
    parser = _TextOfHtml()
    parser.feed(_NO_TAG.sub("&lt;", _COMMENT.sub("", text[: 4 * MAX_TEXT])))
    parser.close()
    return "".join(parser.parts)


def clean_line(text: str) -> str:
    """Return a text on one line, without control characters and what cannot be seen or written."""
    kept = (char if unicodedata.category(char) not in ("Cc", "Cf", "Cs", "Co", "Cn") else " " for char in text)
    return unicodedata.normalize("NFC", " ".join("".join(kept).split()))


def clean_paragraphs(text: str) -> str:
    """Return a text as paragraphs of one line each, apart by empty lines, cut at ``MAX_TEXT`` characters."""
    kept, length = [], 0
    for paragraph in re.split(r"\n\s*\n|\r\n\s*\r\n", text[: 2 * MAX_TEXT]):
        line = clean_line(paragraph)
        length += len(line) + 2
        if length > MAX_TEXT:
            break
        if line:
            kept.append(line)
    return "\n\n".join(kept)


# Text of a page.

_ENTITIES = {ord(char): f"&#{ord(char)};" for char in "&<>[]{}|"}
_PAIRS = re.compile(r"'(?=')|(?<=')'|_(?=_)|(?<=_)_")
_OPENERS = re.compile(r"^[*#:;=!+-]", re.MULTILINE)
_ENTITY = re.compile(r"&#\d+;")


def escape_text(text: str) -> str:
    """Return plain text as wikitext that shows it: every character that could be markup as an entity.

    ``plain_text`` of it is the text again, if that is as :func:`clean_paragraphs` leaves it.
    """
    written = text.translate(_ENTITIES)
    return _OPENERS.sub(_write_entity, _PAIRS.sub(_write_entity, written))


def _write_entity(found: re.Match[str]) -> str:
    return f"&#{ord(found[0])};"


def find_quote(page: str, quote: str) -> tuple[int, int] | None:
    """Return the first span of a quote, plain text, in the wikitext of an article; None if it does not stand there.

    Spaces at its ends and their number do not matter; everything else is letter by letter.
    """
    plain: list[str] = []
    places: list[int] = []
    position = 0
    for found in _ENTITY.finditer(page):
        plain.append(page[position : found.start()])
        places += range(position, found.start())
        plain.append(html.unescape(found[0]))
        places.append(found.start())
        position = found.end()
    plain.append(page[position:])
    places += range(position, len(page) + 1)
    wanted = " ".join(quote.split())
    start = "".join(plain).find(wanted)
    return (places[start], places[start + len(wanted)]) if wanted and start >= 0 else None


def show_text(span: str) -> str:
    """Return what a span of an article's wikitext shows."""
    return html.unescape(span)


def show_article(wikitext: str, words: int = 0) -> str:
    """Return an article's text for a reader, its picture left out, at most so many words of whole paragraphs.

    The first paragraph is always there; 0 is no limit.
    """
    paragraphs = show_text(wikitext).split("\n\n")
    shown = [each for each in paragraphs if not each.startswith("[[File:")]
    kept, count = shown[:1], len(shown[0].split()) if shown else 0
    for paragraph in shown[1:]:
        count += len(paragraph.split())
        if words and count > words:
            break
        kept.append(paragraph)
    return "\n\n".join(kept)


# Writing.


_PICTURE_COLUMNS = ("file", "path", "sha256", "author", "licence", "licence_url", "source_url")


def write_news(
    source: Path, out: Path, licence: str, licence_url: str, fetched: Mapping[str, Path] = NOTHING_FETCHED
) -> Path:
    """Write a source as an export with its pictures and the table of its articles; return the export's file."""
    with drafting_folder(out) as folder:
        images = folder / "images"
        images.mkdir()
        # The head stands before the pages, so the source is read once more for what it says.
        hosts = sorted({urlsplit(article.url).netloc for article in read_articles(source)} - {""})
        pictures: dict[str, tuple[str, ...]] = {}
        titles: dict[str, str] = {}
        taken: set[str] = set()
        with (folder / DUMP).open("w", encoding=_FORMAT) as dump, (folder / TABLE).open("w", encoding=_FORMAT) as table:
            dump.write(_render_head(hosts))
            for article in read_articles(source, fetched):
                # An address that comes again is a page that comes again, which the builder of the corpus counts.
                known = titles.get(article.url)
                is_new = bool(article.url) and known is None
                name = _store_picture(article, images, pictures, (licence, licence_url)) if is_new else ""
                origin = _make_origin(article, known or _choose_title(article, taken), name)
                if is_new:
                    titles[article.url] = origin.title
                    table.write(json.dumps(asdict(origin), ensure_ascii=False) + "\n")
                dump.write(_render_page(article, origin))
            dump.write("</mediawiki>\n")
        lines = ["\t".join(_PICTURE_COLUMNS), *("\t".join(pictures[name]) for name in sorted(pictures))]
        (images / "images.tsv").write_text("\n".join(lines) + "\n", encoding=_FORMAT)
    return out / DUMP


def name_source(source: Path, licence: str, licence_url: str, fetched: Mapping[str, Path] = NOTHING_FETCHED) -> str:
    """Return a digest of all that decides what is written of a source."""
    folder = source.parent if source.is_file() else source
    files = sorted(path for path in (folder.rglob("*") if source.is_dir() else _list_near(source)) if path.is_file())
    named = [[str(path.relative_to(folder)), digest_file(path)] for path in files]
    named += [[url, digest_file(fetched[url])] for url in sorted(fetched)]
    return digest_value([VERSION, named, licence, licence_url])[:16]


def _list_near(file: Path) -> Iterator[Path]:
    yield file
    for path in file.parent.rglob("*"):
        if path.suffix.lower() in (".jpg", ".jpeg", ".png", ".gif", ".webp", ".tif", ".tiff"):
            yield path


def _make_origin(article: NewsArticle, title: str, image: str) -> PageOrigin:
    words = re.findall(r"\w+", article.text.casefold())
    told = (article.url, article.source, article.published, article.caption)
    return PageOrigin(title, *told, image, len(words), digest_value(words))


def _choose_title(article: NewsArticle, titles: set[str]) -> str:
    plain = article.title.translate(str.maketrans("<>[]{}|_#", "()()()/ №"))
    base = clean_line(plain)[:MAX_TITLE].strip(": ") or "Untitled"
    base = base[0].upper() + base[1:]
    options = [base, f"{base} ({article.source[:60]})", f"{base} ({article.published})"]
    number = 2
    while options[0] in titles:
        options.pop(0)
        if not options:
            options.append(f"{base} ({number})")
            number += 1
    titles.add(options[0])
    return options[0]


def _store_picture(
    article: NewsArticle, images: Path, pictures: dict[str, tuple[str, ...]], licence: tuple[str, str]
) -> str:
    path = article.picture
    if path is None or path.stat().st_size > MAX_BYTES:
        return ""
    data = path.read_bytes()
    extension = find_extension(data)
    if not extension:
        return ""
    sha256 = hashlib.sha256(data).hexdigest()
    name = normalise_file(f"News {sha256[:16]}.{extension}")
    if name not in pictures:
        target = images / f"{sha256[:16]}.{extension}"
        shutil.copyfile(path, target)
        rights = (article.licence, article.licence_url) if article.licence else (licence[0] or "unknown", licence[1])
        told = (article.author or article.source, *rights, article.url)
        pictures[name] = (name, target.name, sha256, *(part.replace("\t", " ") for part in told))
    return name


def _render_head(hosts: Sequence[str]) -> str:
    base = f"https://{_find_common(hosts)}/"
    site = (f"<sitename>News</sitename><dbname>news</dbname><base>{escape(base)}Main_Page</base>"
            "<case>case-sensitive</case><namespaces><namespace key=\"0\" case=\"case-sensitive\" />"
            "<namespace key=\"6\" case=\"first-letter\">File</namespace></namespaces>")  # fmt: skip
    return f'<mediawiki xml:lang="en">\n<siteinfo>{site}</siteinfo>\n'


def _find_common(hosts: Sequence[str]) -> str:
    ends = [host.split(".")[::-1] for host in hosts]
    shared = []
    for parts in zip(*ends, strict=False):
        if len(set(parts)) > 1:
            break
        shared.append(parts[0])
    return ".".join(shared[::-1]) if shared else "news"


def _render_page(article: NewsArticle, origin: PageOrigin) -> str:
    page_id = str(int(digest_value(article.url)[:12], 16) + 1) if article.url else ""
    shown = f"[[File:{origin.image}]]\n\n" if origin.image else ""
    told = [article.text, article.caption, f"{article.source}, {article.published or 'without a date'}."]
    text = shown + "\n\n".join(escape_text(part) for part in told if part)
    revision = int(digest_value([VERSION, text])[:12], 16) + 1
    day = article.published or "1970-01-01"
    return (
        f"<page><title>{escape(origin.title)}</title><ns>0</ns><id>{page_id}</id><revision><id>{revision}</id>"
        f"<timestamp>{day}T00:00:00Z</timestamp><model>wikitext</model><format>text/x-wiki</format>"
        f'<text xml:space="preserve">{escape(text)}</text></revision></page>\n'
    )


# The table in a corpus.


def write_origins(folder: Path, table: Path) -> None:
    """Write ``articles.parquet`` into a corpus, in the order of its pages."""
    with table.open(encoding=_FORMAT) as lines:
        rows = {row["title"]: row for row in map(json.loads, lines)}
    titles = pq.read_table(folder / "pages.parquet", columns=["title"])["title"].to_pylist()
    if missing := [title for title in titles if title not in rows]:
        raise CorruptInput(f"{table} has no article {missing[0]!r}, and the export beside it has")
    pq.write_table(pa.Table.from_pylist([rows[title] for title in titles], schema=ORIGINS), folder / "articles.parquet")


def read_origins(path: Path) -> tuple[PageOrigin, ...]:
    """Return the rows of ``articles.parquet``, one a node."""
    return tuple(PageOrigin(**row) for row in pq.read_table(path).to_pylist())
