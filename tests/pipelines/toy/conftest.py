import bz2
import gzip
import json
import re
from dataclasses import dataclass
from pathlib import Path

import pytest
from lxml import etree

from pipelines.toy.publishing import write_world
from pipelines.toy.world import WorldConfig

EXPORT = "{http://www.mediawiki.org/xml/export-0.11/}"


@dataclass(frozen=True)
class Published:
    """A world on disk, read back by independent readers."""

    root: Path
    config: WorldConfig

    @property
    def dump(self):
        return self.root / f"toywiki-{self.config.snapshot}-pages-articles-multistream.xml.bz2"

    def pages(self):
        """The page elements of the whole dump."""
        return list(etree.fromstring(bz2.decompress(self.dump.read_bytes())).iter(f"{EXPORT}page"))

    def texts(self):
        """Wikitext of ns 0 pages by title."""
        return {
            page.findtext(f"{EXPORT}title"): page.findtext(f"{EXPORT}revision/{EXPORT}text")
            for page in self.pages()
            if page.findtext(f"{EXPORT}ns") == "0"
        }

    def redirects(self):
        """Target of each redirect page."""
        found = ((page.findtext(f"{EXPORT}title"), page.find(f"{EXPORT}redirect")) for page in self.pages())
        return {title: tag.get("title") for title, tag in found if tag is not None}

    def table(self, name, wiki="toywiki"):
        """Rows of an SQL table as dicts of strings by column name."""
        path = self.root / f"{wiki}-{self.config.snapshot}-{name}.sql.gz"
        return list(read_sql(gzip.decompress(path.read_bytes()).decode()))

    def truth(self, name):
        return [json.loads(line) for line in (self.root / "truth" / f"{name}.jsonl").read_text("utf-8").splitlines()]

    def image_rows(self):
        head, *rows = [line.split("\t") for line in (self.root / "images/images.tsv").read_text("utf-8").splitlines()]
        return [dict(zip(head, row, strict=True)) for row in rows]


def read_sql(text):
    columns = re.findall(r"^  `(\w+)`", text, re.M)
    cell = r"'((?:[^'\\]|\\.)*)'|(NULL|-?[\d.e+-]+)"
    for line in text.splitlines():
        if line.startswith("INSERT INTO"):
            for row in re.findall(rf"\(((?:{cell})(?:,(?:{cell}))*)\)", line):
                cells = [
                    re.sub(r"\\(.)", r"\1", quoted) if bare == "" else bare for quoted, bare in re.findall(cell, row[0])
                ]
                yield dict(zip(columns, cells, strict=True))


@pytest.fixture(scope="session")
def world_200(tmp_path_factory):
    config = WorldConfig(entities=200)
    root = tmp_path_factory.mktemp("world") / "w"
    write_world(root, config)
    return Published(root, config)


@pytest.fixture(scope="session")
def world_full(tmp_path_factory):
    """A small world in which nothing is missing."""
    config = WorldConfig(entities=60, missing=0.0, seed=3)
    root = tmp_path_factory.mktemp("world") / "full"
    write_world(root, config)
    return Published(root, config)
