"""The pictures of an article's wikitext, without expanding templates.

Pictures stand in ``[[File:...]]``, in ``<gallery>``, and by their bare names in the parameters of infoboxes and of
templates that show pictures. What such a parameter holds by the name of flag, arms, logo, map or signature, and what is
shown at the size of a letter, is no picture of the article's subject. Which formats can be shown is judged later.

Each scan is linear in the text, and what is returned is bounded.
"""

import html
import re
from collections.abc import Iterator
from functools import cache
from urllib.parse import unquote

from pipelines.corpus.images import normalise_file
from pipelines.corpus.languages import NAMESPACE_ALIASES
from pipelines.corpus.markup import blank_spans, find_braces, find_ignored

MOST_FILES = 1_000
"""Pictures returned of one page; the longest gallery pages have a few hundred."""
_SMALLEST = 60
"""Width or height in pixels below which a picture is an icon."""
_MAX_NAME_BYTES = 240
_OPTIONS = 300
"""Characters after a file's name among which its size is looked for."""
_FILE = 6
_LOCAL_NAMES: dict[str, tuple[str, ...]] = {
    "ar": ("ملف",),
    "cs": ("soubor",),
    "da": ("fil",),
    "de": ("datei",),
    "es": ("archivo",),
    "fa": ("پرونده",),
    "fi": ("tiedosto",),
    "fr": ("fichier",),
    "he": ("קובץ",),
    "hu": ("fájl", "kép"),
    "it": ("immagine",),
    "ja": ("ファイル", "画像"),
    "ko": ("파일", "그림"),
    "nl": ("bestand",),
    "no": ("fil",),
    "pl": ("plik",),
    "pt": ("ficheiro", "arquivo"),
    "ru": ("файл",),
    "sv": ("fil",),
    "tr": ("dosya",),
    "uk": ("файл",),
    "zh": ("文件", "档案", "檔案", "图像", "圖像"),
}
"""Names of the file namespace by language code, as the dump's header of that wiki gives them (lower case)."""

_NO_PICTURE = re.compile(r"\.(?:ogg|oga|ogv|opus|webm|mp3|mp4|wav|flac|midi?|mpe?g|stl|pdf|djvu?)$", re.IGNORECASE)
_SIZE = re.compile(r"\|\s*+(?:(\d{1,5})?+x)?+(\d{1,5})\s*+px\s*+(?=[|\]])", re.IGNORECASE)
_OPTIONS_END = re.compile(r"\]\]|\[\[")
_INFOBOX = re.compile(r"infobox|taxobox|speciesbox|automatic[ _]taxobox", re.IGNORECASE)
_OPENING = re.compile(
    rf"\{{\{{[\s_]*+(?P<name>{_INFOBOX.pattern}|(?:multiple|double|triple|wide|tall|annotated)[ _]image(?=[\s_|])"
    r"|(?:panorama|css[ _]image[ _]crop|gallery|photo[ _]montage)(?=[\s_|]))",
    re.IGNORECASE,
)
_BRACES = re.compile(r"\{\{|\}\}")
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

    Args:
        text: wikitext of a page, of any length and form.
        language: code of the wiki's language, which says what its file namespace is called.
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
    """Yield the spans between the tags of ``<gallery>``."""
    for start, end in find_ignored(text) if "<" in text else ():
        if text[start : start + 8].lower() == "<gallery":
            yield range(text.index(">", start, end) + 1, text.rindex("</", start, end))


def _find_templates(text: str) -> Iterator[tuple[str, range]]:
    """Yield name and span of infoboxes and templates that show pictures, none inside another."""
    for start, end in find_braces(text):
        position = start
        while opening := _OPENING.search(text, position, end):
            position = _close_template(text, opening.start(), end)
            yield opening["name"], range(opening.start(), position)


def _close_template(text: str, start: int, end: int) -> int:
    """Return the offset after the braces that close a template, ``end`` when nothing closes it before."""
    depth = 0
    for match in _BRACES.finditer(text, start, end):
        depth += 1 if match.group() == "{{" else -1
        if not depth:
            return match.end()
    return end


def _read_links(text: str, language: str) -> Iterator[tuple[int, str]]:
    """Yield where and what ``[[File:...]]`` shows, icons left out."""
    for match in _compile_link(language).finditer(text):
        if not _is_icon(text, match.end()):
            yield match.start(), match["name"]


def _is_icon(text: str, start: int) -> bool:
    """Say whether the options of a picture ask for the size of a letter."""
    stop = start + _OPTIONS
    closing = _OPTIONS_END.search(text, start, stop)
    size = _SIZE.search(text, start, closing.end() if closing else stop)
    if size is None:
        return False
    sides = [int(side) for side in size.groups() if side]
    return min(sides) < _SMALLEST


def _read_parameters(text: str, span: range, is_infobox: bool) -> Iterator[tuple[int, str]]:
    """Yield where and what the parameters of a template show by a bare name.

    In an infobox, what has no key belongs to a template inside it, such as one that draws a flag.
    """
    for match in _PARAMETER.finditer(text, span.start, span.stop):
        key = match["key"] or ""
        if _PICTURE_NAME.search(match["name"].rstrip()) and not _EMBLEM.search(key) and (key or not is_infobox):
            yield match.start(), match["name"]


def _read_gallery(text: str, position: int, language: str) -> Iterator[tuple[int, str]]:
    """Yield where and what the lines of a gallery show, which begins at a position; the namespace may be left out."""
    for line in blank_spans(text, find_ignored(text)).split("\n"):
        name = line.partition("|")[0].strip()
        prefix, colon, rest = name.partition(":")
        if colon and prefix.strip(" _").lower() in _list_namespaces(language):
            name = rest
        if _PICTURE_NAME.search(name):
            yield position, name
        position += len(line) + 1


def _clean_name(raw: str) -> str:
    """Return a file name as titles have it, empty for what is no picture's name."""
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
    aliases = (name for name, number in NAMESPACE_ALIASES.get(language, {}).items() if number == _FILE)
    return frozenset(("file", "image", *aliases, *_LOCAL_NAMES.get(language, ())))


@cache
def _compile_link(language: str) -> re.Pattern[str]:
    names = "|".join(sorted(map(re.escape, _list_namespaces(language)), reverse=True))
    return re.compile(
        rf"\[\[[\s_]*+(?:{names})[\s_]*+:[\s_]*+(?P<name>[^\[\]{{}}|<>#\n]{{1,240}}+)(?=\||\]\])", re.IGNORECASE
    )
