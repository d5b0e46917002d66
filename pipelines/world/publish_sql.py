"""Writes SQL table dumps in today's layouts, as mysqldump does: gzip, long INSERT lines."""

import gzip
import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from pipelines.world.pages import Page, Wiki, list_links
from pipelines.world.pictures import Picture
from pipelines.world.wikidata import EntityRecord, qid_of
from pipelines.world.world import World

Cell = str | int | float | None
Row = tuple[Cell, ...]
_LINE_BYTES = 900_000
_ESCAPES = str.maketrans({"\\": "\\\\", "'": "\\'", '"': '\\"', "\n": "\\n", "\0": "\\0"})
_PAGE = """\
  `page_id` int(10) unsigned NOT NULL AUTO_INCREMENT,
  `page_namespace` int(11) NOT NULL,
  `page_title` varbinary(255) NOT NULL,
  `page_is_redirect` tinyint(3) unsigned NOT NULL DEFAULT 0,
  `page_is_new` tinyint(3) unsigned NOT NULL DEFAULT 0,
  `page_random` double unsigned NOT NULL,
  `page_touched` binary(14) NOT NULL,
  `page_links_updated` varbinary(14) DEFAULT NULL,
  `page_latest` int(10) unsigned NOT NULL,
  `page_len` int(10) unsigned NOT NULL,
  `page_content_model` varbinary(32) DEFAULT NULL,
  `page_lang` varbinary(35) DEFAULT NULL,
  PRIMARY KEY (`page_id`),
  UNIQUE KEY `page_name_title` (`page_namespace`,`page_title`)"""
_REDIRECT = """\
  `rd_from` int(8) unsigned NOT NULL DEFAULT 0,
  `rd_namespace` int(11) NOT NULL DEFAULT 0,
  `rd_title` varbinary(255) NOT NULL DEFAULT '',
  `rd_interwiki` varbinary(32) DEFAULT NULL,
  `rd_fragment` varbinary(255) DEFAULT NULL,
  PRIMARY KEY (`rd_from`),
  KEY `rd_ns_title` (`rd_namespace`,`rd_title`,`rd_from`)"""
_LINKTARGET = """\
  `lt_id` bigint(20) unsigned NOT NULL AUTO_INCREMENT,
  `lt_namespace` int(11) NOT NULL,
  `lt_title` varbinary(255) NOT NULL,
  PRIMARY KEY (`lt_id`),
  UNIQUE KEY `lt_namespace_title` (`lt_namespace`,`lt_title`)"""
_PAGELINKS = """\
  `pl_from` int(8) unsigned NOT NULL DEFAULT 0,
  `pl_from_namespace` int(11) NOT NULL DEFAULT 0,
  `pl_target_id` bigint(20) unsigned NOT NULL,
  PRIMARY KEY (`pl_from`,`pl_target_id`),
  KEY `pl_target_id` (`pl_target_id`,`pl_from`)"""
_PAGE_PROPS = """\
  `pp_page` int(10) unsigned NOT NULL,
  `pp_propname` varbinary(60) NOT NULL DEFAULT '',
  `pp_value` blob NOT NULL,
  `pp_sortkey` float DEFAULT NULL,
  PRIMARY KEY (`pp_page`,`pp_propname`),
  UNIQUE KEY `pp_propname_page` (`pp_propname`,`pp_page`)"""


def write_wiki_tables(world: World, wiki: Wiki, pictures: Mapping[int, Picture], prefix: Path) -> None:
    """Write page, redirect, linktarget, pagelinks and page_props to ``<prefix>-<table>.sql.gz``."""
    targets: dict[tuple[int, str], int] = {}
    links: list[Row] = []
    for page in wiki.pages:
        numbers = sorted(targets.setdefault(target, len(targets) + 1) for target in list_links(page))
        links += [(page.page_id, page.namespace, number) for number in numbers]
    redirects = [
        (page.page_id, 0, page.redirect.target.replace(" ", "_"), "", page.redirect.fragment)
        for page in wiki.pages
        if page.redirect
    ]
    _write_table(prefix, "page", _PAGE, [_list_page(page) for page in wiki.pages])
    _write_table(prefix, "redirect", _REDIRECT, redirects)
    _write_table(prefix, "linktarget", _LINKTARGET, [(lt_id, *target) for target, lt_id in targets.items()])
    _write_table(prefix, "pagelinks", _PAGELINKS, links)
    _write_table(prefix, "page_props", _PAGE_PROPS, list(_list_props(world, wiki, pictures)))


def write_wikidata_tables(records: Sequence[EntityRecord], prefix: Path) -> None:
    """Write wikidatawiki's page and page_props (``wb-claims``, ``wb-identifiers``, ``wb-sitelinks``)."""
    pages: list[Row] = []
    props: list[Row] = []
    for place, record in enumerate(records):
        page_id = 200 + place
        stamp = _compact(record.page.timestamp)
        length = 900 + 210 * record.statements
        pages.append((page_id, 0, record.qid, 0, 0, _draw_fraction(record.qid), stamp, stamp,
                      2_100_000_000 + place, length, "wikibase-item", None))  # fmt: skip
        counts = (
            ("wb-claims", record.statements),
            ("wb-identifiers", record.identifiers),
            ("wb-sitelinks", record.sitelinks),
        )
        props += [(page_id, name, str(count), count) for name, count in counts]
    _write_table(prefix, "page", _PAGE, pages)
    _write_table(prefix, "page_props", _PAGE_PROPS, props)


def _list_page(page: Page) -> Row:
    stamp, fraction = _compact(page.timestamp), _draw_fraction(str(page.page_id))
    title, is_redirect = page.title.replace(" ", "_"), int(page.redirect is not None)
    return (page.page_id, page.namespace, title, is_redirect, 0, fraction, stamp, stamp, page.revision,
            len(page.text.encode()), "wikitext", None)  # fmt: skip


def _list_props(world: World, wiki: Wiki, pictures: Mapping[int, Picture]) -> Iterator[Row]:
    for page in wiki.pages:
        if page.disambiguation:
            yield page.page_id, "disambiguation", "", None
        picture = pictures.get(page.entity)
        if picture is not None:
            yield page.page_id, "page_image_free" if picture.free else "page_image", picture.stored_name, None
        qid = qid_of(page, world)
        if qid:
            yield page.page_id, "wikibase_item", qid, None


def _compact(timestamp: str) -> str:
    """``2025-01-12T13:23:25Z`` as ``20250112132325``."""
    return "".join(letter for letter in timestamp if letter.isdigit())


def _draw_fraction(name: str) -> float:
    """A stable pseudo-random number in 0.0 to 1.0 with twelve digits, as in ``page_random``."""
    return int(hashlib.sha256(name.encode()).hexdigest()[:10], 16) % 10**12 / 10**12


def _write_table(prefix: Path, table: str, columns: str, rows: Sequence[Row]) -> None:
    path = prefix.with_name(f"{prefix.name}-{table}.sql.gz")
    head = (
        "-- Layout of a MediaWiki table dump; a generated toy world\n--\n"
        "-- Host: none    Database: toywiki\n"
        "-- ------------------------------------------------------\n\n"
        "/*!40101 SET NAMES utf8mb4 */;\n/*!40103 SET TIME_ZONE='+00:00' */;\n\n"
        f"--\n-- Table structure for table `{table}`\n--\n\nDROP TABLE IF EXISTS `{table}`;\n"
        f"CREATE TABLE `{table}` (\n{columns}\n) ENGINE=InnoDB DEFAULT CHARSET=binary;\n\n"
        f"--\n-- Dumping data for table `{table}`\n--\n\n/*!40000 ALTER TABLE `{table}` DISABLE KEYS */;\n"
    )
    with path.open("wb") as raw, gzip.GzipFile(filename="", mode="wb", fileobj=raw, mtime=0) as file:
        file.write(head.encode())
        for values in _join_rows(rows):
            file.write(f"INSERT INTO `{table}` VALUES {values};\n".encode())
        file.write(f"/*!40000 ALTER TABLE `{table}` ENABLE KEYS */;\n\n-- Dump completed\n".encode())


def _join_rows(rows: Iterable[Row]) -> Iterator[str]:
    """Rows as ``(…),(…)``, in lines of about 0.9 MB."""
    parts: list[str] = []
    size = 0
    for row in rows:
        part = "(" + ",".join(map(_render_cell, row)) + ")"
        parts.append(part)
        size += len(part)
        if size >= _LINE_BYTES:
            yield ",".join(parts)
            parts, size = [], 0
    if parts:
        yield ",".join(parts)


def _render_cell(cell: Cell) -> str:
    if cell is None:
        return "NULL"
    return f"'{cell.translate(_ESCAPES)}'" if isinstance(cell, str) else str(cell)
