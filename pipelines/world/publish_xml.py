"""Writes pages as a multistream XML dump (export schema 0.11) with its index."""

import bz2
import hashlib
import itertools
from collections.abc import Iterator, Sequence
from pathlib import Path
from xml.sax.saxutils import escape

from pipelines.world.pages import Page

PAGES_PER_STREAM = 100
_DIGITS = "0123456789abcdefghijklmnopqrstuvwxyz"
_SCHEMA = "http://www.mediawiki.org/xml/export-0.11"
_NAMESPACES = {
    -2: "Media", -1: "Special", 0: "", 1: "Talk", 2: "User", 3: "User talk", 4: "Wikipedia", 5: "Wikipedia talk",
    6: "File", 7: "File talk", 8: "MediaWiki", 9: "MediaWiki talk", 10: "Template", 11: "Template talk", 12: "Help",
    13: "Help talk", 14: "Category", 15: "Category talk", 100: "Portal", 101: "Portal talk", 118: "Draft",
    119: "Draft talk", 710: "TimedText", 711: "TimedText talk", 828: "Module", 829: "Module talk",
}  # fmt: skip


def write_dump(pages: Sequence[Page], dump: Path, index: Path) -> None:
    """Write the multistream file and its index.

    The dump is a bz2 stream with the header, one stream for each 100 pages, and one with the footer. The index has
    ``offset:page_id:title`` lines, titles escaped as in the XML.
    """
    lines: list[str] = []
    with dump.open("wb") as file:
        offset = file.write(bz2.compress(_render_header().encode()))
        for chunk in _split(pages):
            lines += [f"{offset}:{page.page_id}:{_escape(page.full_title)}\n" for page in chunk]
            offset += file.write(bz2.compress("".join(map(_render_page, chunk)).encode()))
        file.write(bz2.compress(b"</mediawiki>\n"))
    index.write_bytes(bz2.compress("".join(lines).encode()))


def encode_sha1(text: str) -> str:
    """SHA-1 of the UTF-8 text in base 36, 31 digits, as MediaWiki exports it."""
    number = int(hashlib.sha1(text.encode(), usedforsecurity=False).hexdigest(), 16)
    digits = ""
    while number:
        number, rest = divmod(number, 36)
        digits = _DIGITS[rest] + digits
    return digits.rjust(31, "0")


def _split(pages: Sequence[Page]) -> Iterator[Sequence[Page]]:
    return (pages[start : start + PAGES_PER_STREAM] for start in range(0, len(pages), PAGES_PER_STREAM))


def _escape(text: str) -> str:
    return escape(text, {'"': "&quot;"})


def _render_header() -> str:
    names = "\n".join(
        f'      <namespace key="{key}" case="first-letter"' + (f">{name}</namespace>" if name else " />")
        for key, name in _NAMESPACES.items()
    )
    return (
        f'<mediawiki xmlns="{_SCHEMA}/" xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance" '
        f'xsi:schemaLocation="{_SCHEMA}/ {_SCHEMA}.xsd" version="0.11" xml:lang="en">\n'
        "  <siteinfo>\n    <sitename>Wikipedia</sitename>\n    <dbname>enwiki</dbname>\n"
        "    <base>https://toywiki.example/wiki/Main_Page</base>\n"
        "    <generator>synth toy world, not MediaWiki</generator>\n    <case>first-letter</case>\n"
        f"    <namespaces>\n{names}\n    </namespaces>\n  </siteinfo>\n"
    )


def _render_page(page: Page) -> str:
    redirect = f'    <redirect title="{_escape(page.redirect.target)}" />\n' if page.redirect else ""
    sha1 = encode_sha1(page.text)
    user = sum(itertools.accumulate(page.editor.encode())) + 1000
    return (
        f"  <page>\n    <title>{_escape(page.full_title)}</title>\n    <ns>{page.namespace}</ns>\n"
        f"    <id>{page.page_id}</id>\n{redirect}    <revision>\n      <id>{page.revision}</id>\n"
        f"      <parentid>{page.revision - 3}</parentid>\n      <timestamp>{page.timestamp}</timestamp>\n"
        f"      <contributor>\n        <username>{_escape(page.editor)}</username>\n        <id>{user}</id>\n"
        f"      </contributor>\n      <comment>tidied</comment>\n      <origin>{page.revision}</origin>\n"
        "      <model>wikitext</model>\n      <format>text/x-wiki</format>\n"
        f'      <text bytes="{len(page.text.encode())}" sha1="{sha1}" xml:space="preserve">'
        f"{_escape(page.text)}</text>\n"
        f"      <sha1>{sha1}</sha1>\n    </revision>\n  </page>\n"
    )
