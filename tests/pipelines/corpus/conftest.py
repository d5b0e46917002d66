import bz2
import gzip
from collections.abc import Callable
from pathlib import Path
from xml.sax.saxutils import escape, quoteattr

import pytest

from pipelines.corpus.build import build_corpus
from pipelines.corpus.store import Corpus
from tests.toy import keep_parser

HEADER = """<mediawiki xmlns="http://www.mediawiki.org/xml/export-0.11/" version="0.11" xml:lang="en">
  <siteinfo>
    <dbname>enwiki</dbname>
    <base>https://en.wikipedia.org/wiki/Main_Page</base>
    <case>first-letter</case>
    <namespaces>
      <namespace key="0" case="first-letter" />
      <namespace key="4" case="first-letter">Wikipedia</namespace>
      <namespace key="6" case="first-letter">File</namespace>
      <namespace key="14" case="first-letter">Category</namespace>
    </namespaces>
  </siteinfo>
"""


def render_page(number: int, title: str, text: str, namespace: int, redirect: str | None) -> str:
    tag = f"<redirect title={quoteattr(redirect)} />" if redirect else ""
    return f"""  <page>
    <title>{escape(title)}</title><ns>{namespace}</ns><id>{number}</id>{tag}
    <revision>
      <id>{number + 1000}</id><parentid>7</parentid><timestamp>2025-01-{number % 28 + 1:02d}T00:00:00Z</timestamp>
      <contributor><username>A</username><id>1</id></contributor><origin>5</origin>
      <text bytes="1" xml:space="preserve">{escape(text)}</text>
    </revision>
  </page>
"""


@pytest.fixture
def write_dump(tmp_path) -> Callable[..., Path]:
    """Write a dump of (title, text), (title, text, namespace) or (title, text, 0, redirect) pages, ids from 1."""

    def write(*pages: tuple, name="toywiki-20250131-pages-articles-multistream.xml.bz2", header=HEADER) -> Path:
        rendered = [
            render_page(number, page[0], page[1], page[2] if len(page) > 2 else 0, page[3] if len(page) > 3 else None)
            for number, page in enumerate(pages, start=1)
        ]
        streams = [header, *rendered, "</mediawiki>\n"]
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        is_bz2 = name.endswith(".bz2")
        path.write_bytes(b"".join(bz2.compress(part.encode()) if is_bz2 else part.encode() for part in streams))
        return path

    return write


@pytest.fixture
def make_corpus(write_dump, tmp_path) -> Callable[..., Corpus]:
    """Build a corpus of pages as for write_dump and open it."""

    def make(*pages: tuple) -> Corpus:
        out = tmp_path / f"corpus-{len(list(tmp_path.iterdir()))}"
        with keep_parser():
            build_corpus(write_dump(*pages), out)
        return Corpus.open(out)

    return make


@pytest.fixture
def write_sql(tmp_path) -> Callable[..., Path]:
    """Write a table dump: columns as one line each, rows as given."""

    def write(name: str, table: str, columns: list[str], rows: str) -> Path:
        lines = ",\n".join(f"  `{column}` varbinary(255) NOT NULL" for column in columns)
        body = f"-- dump\nCREATE TABLE `{table}` (\n{lines},\n  PRIMARY KEY (`{columns[0]}`)\n) ENGINE=InnoDB;\n"
        body += f"INSERT INTO `{table}` VALUES {rows};\n-- Dump completed\n"
        path = tmp_path / name
        path.write_bytes(gzip.compress(body.encode()) if name.endswith(".gz") else body.encode())
        return path

    return write
