"""A hand-made wiki small enough to count in: bridges, their architects, the towns these were born in."""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache, cached_property
from pathlib import Path
from xml.sax.saxutils import escape, quoteattr

import pytest
from pebble import ProcessPool

from pipelines.corpus import scan
from pipelines.corpus.build import build_corpus
from pipelines.corpus.store import Corpus
from pipelines.services.clients.sandbox import ParserPool, T

HEADER = """<mediawiki xmlns="http://www.mediawiki.org/xml/export-0.11/" version="0.11" xml:lang="en">
  <siteinfo>
    <dbname>toywiki</dbname>
    <base>https://toy.example/wiki/Main_Page</base>
    <case>first-letter</case>
    <namespaces><namespace key="0" case="first-letter" /></namespaces>
  </siteinfo>
"""


def box(template: str, lead: str, *fields: str) -> str:
    lines = "".join(f"\n| {field}" for field in fields)
    return f"{{{{Infobox {template}{lines}\n}}}}\n{lead}"


PAGES = {
    "Kelm Bridge": box(
        "bridge",
        "'''Kelm Bridge''' is a [[bridge]]. The money for it came from the banker [[Hans Oder]] of the old town.",
        "architect = [[Mira Tolland]]",
        "length = 320 m",
        "image_alt = [[Lumby]]",
    ),
    "Orsa Bridge": box("bridge", "'''Orsa Bridge''' is a bridge.", "architect = [[Jon Vask]]", "length = 410 m"),
    "Pell Bridge": box("bridge", "'''Pell Bridge''' is a bridge.", "architect = [[Mira Tolland]]", "length = 95 m"),
    "Dunn Bridge": box("bridge", "'''Dunn Bridge''' is a bridge.", "architect = [[Ines Farrow]]", "length = 95 m"),
    "Mira Tolland": box(
        "architect",
        "'''Mira Tolland''' was an architect.",
        "birth_place = [[Ostrel]]",
        "birth_date = {{birth date|1880|4|2}}",
        "nationality = Valdonian",
        "signature = [[Kelm Bridge]]",
    ),
    "Jon Vask": box(
        "architect",
        "'''Jon Vask''' was an architect.",
        "birth_place = [[Lumby]]",
        "nationality = Valdonian",
        "works = {{ubl|[[Orsa Bridge]]|[[Dunn Bridge]]}}",
    ),
    "Ines Farrow": box(
        "architect",
        "'''Ines Farrow''' was an architect. She liked [[Kelm Bridge]].",
        "birth_place = [[Marn]]",
        "teacher = [[Mira Tolland]]",
    ),
    "Hans Oder": box("person", "'''Hans Oder''' was a banker.", "birth_place = [[Lumby]]"),
    "Ostrel": box(
        "settlement",
        "'''Ostrel''' is a town.",
        "settlement_type = Town",
        "established_date = 1204",
        "leader_name1 = [[Jon Vask]]",
        "leader_name2 = [[Hans Oder]]",
        "twin1 = [[Lumby]]",
        "country = [[Valdonia]]",
    ),
    "Lumby": box(
        "settlement",
        "'''Lumby''' is a town.",
        "settlement_type = Town",
        "established_date = 1310",
        "country = [[Valdonia]]",
    ),
    "Marn": box(
        "settlement",
        "'''Marn''' is a town.",
        "settlement_type = Town",
        "established_date = 1204",
        "country = [[Valdonia]]",
    ),
    "Valdonia": box("country", "'''Valdonia''' is a country. [[Ostrel]]", "established_date = 1700"),
    "List of bridges": "'''List of bridges''': [[Kelm Bridge]], [[Orsa Bridge]].",
    "Kelm (disambiguation)": "'''Kelm''' may mean: [[Kelm Bridge]]. {{disambiguation}}",
}
REDIRECTS = {"Tolland": "Mira Tolland"}


class KeptParser(ParserPool[T]):
    """Reads the infoboxes of all small corpora in one child, whose start takes longer than such a corpus."""

    @cached_property
    def _pool(self) -> ProcessPool:
        return start_parser()

    def close(self) -> None:
        """Leave the child to the next corpus; it ends with this process."""


@cache
def start_parser() -> ProcessPool:
    return ParserPool(str, memory=scan.PARSE_MEGABYTES << 20)._pool


@contextmanager
def keep_parser() -> Iterator[None]:
    """Let corpora that are built in here share the child that reads infoboxes."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(scan, "ParserPool", KeptParser)
        yield


def build_toy_corpus(folder: Path, pages: dict[str, str] = PAGES, redirects: dict[str, str] = REDIRECTS) -> Corpus:
    """Write a dump of the pages, ids from 1, build its corpus under ``folder`` and open it."""
    rendered = [HEADER]
    targets = {**dict.fromkeys(pages, ""), **redirects}
    for number, (title, target) in enumerate(targets.items(), start=1):
        text = pages.get(title, f"#REDIRECT [[{target}]]")
        tag = f"<redirect title={quoteattr(target)} />" if target else ""
        rendered.append(
            f"<page><title>{escape(title)}</title><ns>0</ns><id>{number}</id>{tag}<revision><id>{number + 1000}</id>"
            f"<timestamp>2026-01-01T00:00:00Z</timestamp><text>{escape(text)}</text></revision></page>\n"
        )
    folder.mkdir(parents=True, exist_ok=True)
    dump = folder / "toywiki-20260101-pages-articles.xml"
    dump.write_text("".join([*rendered, "</mediawiki>\n"]), encoding="utf-8")
    with keep_parser():
        build_corpus(dump, folder / "corpus")
    return Corpus.open(folder / "corpus")
