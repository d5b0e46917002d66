"""Publishes a toy Wikipedia as the real one is: XML dump, SQL tables, Wikidata, pictures, and the truth for tests."""

import bz2
import gzip
import hashlib
import itertools
import json
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources
from pathlib import Path
from random import Random
from typing import Any
from xml.sax.saxutils import escape

from pipelines.errors import ConfigError
from pipelines.files import drafting_folder
from pipelines.pools import open_pool
from pipelines.stopping import holding_signals
from pipelines.toy.newsroom import write_news
from pipelines.toy.ontology import Entity, ToyFact
from pipelines.toy.pictures import MIN_SIDE, PlannedPicture, draw_picture, plan_pictures, plan_second_pictures
from pipelines.toy.wikitext import MAIN, ToyPage, Wiki, compose_wiki, key_of, list_links
from pipelines.toy.world import World, WorldConfig, build_world

WORLD_FORMAT = 4
_PICTURES_A_WORKER = 500
"""A process takes half a second to start, in which it would draw some 200 pictures."""
_COLUMNS = (
    "file", "sha256", "width", "height", "author", "licence", "licence_url", "source_url", "depicts_title", "depicts",
)  # fmt: skip


def write_world(out: Path, config: WorldConfig) -> dict[str, int]:
    """Write a whole world to ``out``, or nothing; what a killed run of the same ``out`` left is removed.

    Files: the multistream dump, two SQL tables, two tables of Wikidata, ``images/`` with
    ``images.tsv``, ``news/`` with articles about the same facts, ``world.json``, and ``truth/`` for tests. The same
    configuration gives the same bytes (with the same versions of Pillow, zlib and bzip2).
    """
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise ConfigError(f"world output {out}: exists and is not an empty folder; name a new folder")
    with drafting_folder(out) as draft:
        return _publish(draft, config)


def _publish(folder: Path, config: WorldConfig) -> dict[str, int]:
    world = build_world(config)
    leads = plan_pictures(world.entities, config)
    seconds = plan_second_pictures(world.entities, leads, config)
    pictures = (*leads.values(), *seconds.values())
    files = {number: picture.file for number, picture in leads.items()}
    wiki = compose_wiki(world, files, seconds)
    records = record_entities(world, wiki, files)
    prefix = folder / f"toywiki-{config.snapshot}"
    write_dump(wiki.pages, folder / f"{prefix.name}-pages-articles-multistream.xml.bz2")
    write_wiki_tables(world, wiki, leads, prefix)
    write_wikidata_tables(records, folder / f"wikidatawiki-{config.snapshot}")
    _write_pictures(world, pictures, folder / "images")
    write_news(world, leads, folder / "images", folder / "news")
    write_truth(world, wiki, leads, folder / "truth")
    write_picture_truth(world, pictures, folder / "truth")
    summary = _count(world, wiki, leads, len(pictures))
    document = {"format": WORLD_FORMAT, "config": config.model_dump(), "counts": summary}
    (folder / "world.json").write_text(json.dumps(document, indent=2) + "\n", encoding="utf-8")
    return summary


def _write_pictures(world: World, pictures: Sequence[PlannedPicture], folder: Path) -> None:
    folder.mkdir()
    lines = ["\t".join(_COLUMNS)]
    ordered = sorted(pictures, key=lambda each: each.stored_name)
    entities = [world.entities[picture.entity] for picture in ordered]
    for entity, picture, data in zip(entities, ordered, _draw_all(entities, ordered, world.config.seed), strict=True):
        (folder / picture.stored_name).write_bytes(data)
        width, height = picture.size
        lines.append("\t".join((
            picture.stored_name, hashlib.sha256(data).hexdigest(), str(width), str(height), picture.author,
            picture.licence, picture.licence_url, picture.source_url, entity.title, " ".join(picture.depicts),
        )))  # fmt: skip
    (folder / "images.tsv").write_text("\n".join(lines) + "\n", encoding="utf-8")


def _draw_all(entities: Sequence[Entity], pictures: Sequence[PlannedPicture], seed: int) -> Iterator[bytes]:
    workers = min(os.cpu_count() or 1, len(pictures) // _PICTURES_A_WORKER)
    if workers < 2:
        yield from map(draw_picture, entities, pictures, itertools.repeat(seed))
        return
    with open_pool(workers) as pool:
        with holding_signals():
            drawn = pool.map(draw_picture, entities, pictures, itertools.repeat(seed), chunksize=32)
        yield from drawn


def _count(world: World, wiki: Wiki, leads: Mapping[int, PlannedPicture], pictures: int) -> dict[str, int]:
    redirects = sum(page.redirect is not None for page in wiki.pages)
    return {
        "pages": len(wiki.pages),
        "articles": sum(page.namespace == MAIN for page in wiki.pages) - redirects,
        "redirects": redirects,
        "entities": len(world.entities),
        "facts": len(world.facts),
        "hidden_facts": sum(not fact.shown for fact in world.facts),
        "pictures": pictures,
        "lead_pictures": len(leads),
        "free_pictures": sum(picture.free and min(picture.size) >= MIN_SIDE for picture in leads.values()),
        "signs": sum(bool(picture.sign) for picture in leads.values()),
        "simple_pictures": sum(picture.simple is not None for picture in leads.values()),
    }


@cache
def _read_template(name: str) -> str:
    return resources.files(__package__).joinpath("templates", name).read_text("utf-8")


_MOST_SITELINKS = 150


@dataclass(frozen=True, slots=True)
class EntityRecord:
    """One Wikidata entity.

    ``facts`` are the literal and entity facts it holds; text attributes are entities on Wikidata and left out.
    ``statements`` counts those, its classes and picture, and the identifiers.
    """

    qid: str
    page: ToyPage
    facts: tuple[ToyFact, ...]
    statements: int
    sitelinks: int
    identifiers: int


def qid_of(page: ToyPage, world: World) -> str:
    """Wikidata entity of a page; empty for redirects, surname pages and all that Wikidata would not know."""
    if page.entity >= 0:
        return world.entities[page.entity].qid
    known = page.disambiguation or (page.namespace == MAIN and page.title.startswith("List of ") and not page.redirect)
    return f"Q{950_000_000 + page.page_id}" if known else ""


def record_entities(world: World, wiki: Wiki, pictures: Mapping[int, str]) -> tuple[EntityRecord, ...]:
    """All Wikidata entities in the order of their ids.

    Each fact is held with probability ``1 - missing``, drawn apart from what the infobox shows.
    """
    records = []
    for page in wiki.pages:
        if page.entity >= 0:
            records.append(_record(world, world.entities[page.entity], page, page.entity in pictures))
        elif qid := qid_of(page, world):
            records.append(EntityRecord(qid, page, (), 1, 1, 0))
    return tuple(sorted(records, key=lambda record: int(record.qid[1:])))


def _record(world: World, entity: Entity, page: ToyPage, pictured: bool) -> EntityRecord:
    rng = Random(f"{world.config.seed}:wikidata:{entity.number}")
    held = [
        fact
        for fact in world.facts_of.get(entity.number, ())
        if rng.random() >= world.config.missing and fact.prop and (fact.value is None or fact.value.kind != "text")
    ]
    identifiers = rng.randint(0, 24)
    statements = len(held) + 1 + (entity.subtype.kind == "person") + pictured + identifiers
    sitelinks = 1 + int(_MOST_SITELINKS * (entity.fame / 0.56) ** 0.6)
    return EntityRecord(entity.qid, page, tuple(held), statements, sitelinks, identifiers)


PAGES_PER_STREAM = 100
_DIGITS = "0123456789abcdefghijklmnopqrstuvwxyz"


def write_dump(pages: Sequence[ToyPage], dump: Path) -> None:
    """Write the multistream file: a bz2 stream with the header, one for each 100 pages, and one with the footer."""
    with dump.open("wb") as file:
        file.write(bz2.compress(_read_template("header.xml").encode()))
        for start in range(0, len(pages), PAGES_PER_STREAM):
            chunk = pages[start : start + PAGES_PER_STREAM]
            file.write(bz2.compress("".join(map(_render_page, chunk)).encode()))
        file.write(bz2.compress(b"</mediawiki>\n"))


def encode_sha1(text: str) -> str:
    """SHA-1 of the UTF-8 text in base 36, 31 digits, as MediaWiki exports it."""
    number = int(hashlib.sha1(text.encode(), usedforsecurity=False).hexdigest(), 16)
    digits = ""
    while number:
        number, rest = divmod(number, 36)
        digits = _DIGITS[rest] + digits
    return digits.rjust(31, "0")


def _escape(text: str) -> str:
    return escape(text, {'"': "&quot;"})


def _render_page(page: ToyPage) -> str:
    redirect = f'    <redirect title="{_escape(page.redirect.target)}" />\n' if page.redirect else ""
    return _read_template("page.xml").format(
        title=_escape(page.full_title),
        namespace=page.namespace,
        page_id=page.page_id,
        redirect=redirect,
        revision=page.revision,
        parent=page.revision - 3,
        timestamp=page.timestamp,
        editor=_escape(page.editor),
        user=sum(itertools.accumulate(page.editor.encode())) + 1000,
        length=len(page.text.encode()),
        sha1=encode_sha1(page.text),
        text=_escape(page.text),
    )


Cell = str | int | float | None
Row = tuple[Cell, ...]
_LINE_BYTES = 900_000
_ESCAPES = str.maketrans({"\\": "\\\\", "'": "\\'", '"': '\\"', "\n": "\\n", "\0": "\\0"})


def write_wiki_tables(world: World, wiki: Wiki, pictures: Mapping[int, PlannedPicture], prefix: Path) -> None:
    """Write linktarget and page_props to ``<prefix>-<table>.sql.gz``."""
    targets: dict[tuple[int, str], int] = {}
    for page in wiki.pages:
        for target in list_links(page):
            targets.setdefault(target, len(targets) + 1)
    _write_table(prefix, "linktarget", [(lt_id, *target) for target, lt_id in targets.items()])
    _write_table(prefix, "page_props", list(_list_props(world, wiki, pictures)))


def write_wikidata_tables(records: Sequence[EntityRecord], prefix: Path) -> None:
    """Write wikidatawiki's page and page_props (``wb-claims``, ``wb-identifiers``, ``wb-sitelinks``)."""
    pages: list[Row] = []
    props: list[Row] = []
    for place, record in enumerate(records):
        page_id = 200 + place
        stamp = re.sub(r"\D", "", record.page.timestamp)
        length = 900 + 210 * record.statements
        pages.append((page_id, 0, record.qid, 0, 0, _draw_fraction(record.qid), stamp, stamp,
                      2_100_000_000 + place, length, "wikibase-item", None))  # fmt: skip
        counts = {"claims": record.statements, "identifiers": record.identifiers, "sitelinks": record.sitelinks}
        props += [(page_id, f"wb-{name}", str(count), count) for name, count in counts.items()]
    _write_table(prefix, "page", pages)
    _write_table(prefix, "page_props", props)


def _list_props(world: World, wiki: Wiki, pictures: Mapping[int, PlannedPicture]) -> Iterator[Row]:
    for page in wiki.pages:
        if page.disambiguation:
            yield page.page_id, "disambiguation", "", None
        picture = pictures.get(page.entity)
        if picture is not None:
            yield page.page_id, "page_image_free" if picture.free else "page_image", picture.stored_name, None
        qid = qid_of(page, world)
        if qid:
            yield page.page_id, "wikibase_item", qid, None


def _draw_fraction(name: str) -> float:
    return int(hashlib.sha256(name.encode()).hexdigest()[:10], 16) % 10**12 / 10**12


def _write_table(prefix: Path, table: str, rows: Sequence[Row]) -> None:
    path = prefix.with_name(f"{prefix.name}-{table}.sql.gz")
    columns = dict(re.findall(r"CREATE TABLE `(\w+)` \(\n(.*?)\n\);", _read_template("tables.sql"), re.DOTALL))[table]
    head = _read_template("table.sql").format(table=table, columns=columns)
    with path.open("wb") as raw, gzip.GzipFile(filename="", mode="wb", fileobj=raw, mtime=0) as file:
        file.write(head.encode())
        for values in _join_rows(rows):
            file.write(f"INSERT INTO `{table}` VALUES {values};\n".encode())
        file.write(f"/*!40000 ALTER TABLE `{table}` ENABLE KEYS */;\n\n-- Dump completed\n".encode())


def _join_rows(rows: Iterable[Row]) -> Iterator[str]:
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


def write_truth(world: World, wiki: Wiki, pictures: Mapping[int, PlannedPicture], folder: Path) -> None:
    """Write ``entities.jsonl``, ``facts.jsonl`` and ``aliases.jsonl``."""
    folder.mkdir()
    page_ids = {page.entity: page.page_id for page in wiki.pages if page.entity >= 0}
    ranks = sorted(world.entities, key=lambda entity: (-entity.fame, entity.number))
    rank_of = {entity.number: rank for rank, entity in enumerate(ranks)}
    _write_lines(folder / "entities.jsonl", (
        {
            "qid": entity.qid, "title": entity.title, "name": entity.name, "page_id": page_ids[entity.number],
            "kind": entity.subtype.kind, "subtype": entity.subtype.name, "noun": entity.noun, "year": entity.year,
            "fame_rank": rank_of[entity.number], "template": entity.subtype.template,
            "picture": pictures[entity.number].stored_name if entity.number in pictures else None,
            "picture_free": pictures[entity.number].free if entity.number in pictures else None,
        }
        for entity in world.entities
    ))  # fmt: skip
    _write_lines(folder / "facts.jsonl", (_list_fact(world, wiki, fact) for fact in world.facts))
    _write_lines(folder / "aliases.jsonl", (
        {"qid": entity.qid, "title": entity.title, "alias": alias, "kind": kind}
        for entity in world.entities
        for alias, kind in entity.aliases
    ))  # fmt: skip


def write_picture_truth(world: World, pictures: Iterable[PlannedPicture], folder: Path) -> None:
    """Write ``pictures.jsonl``: what each picture shows, the text in it, and what it is declared to depict."""
    _write_lines(folder / "pictures.jsonl", (
        {
            "file": picture.stored_name, "qid": world.entities[picture.entity].qid,
            "title": world.entities[picture.entity].title, "view": picture.view, "sign": picture.sign or None,
            "simple": picture.simple, "depicts": list(picture.depicts), "free": picture.free,
        }
        for picture in sorted(pictures, key=lambda each: each.stored_name)
    ))  # fmt: skip


def _list_fact(world: World, wiki: Wiki, fact: ToyFact) -> dict[str, Any]:
    subject, value = world.entities[fact.subject], fact.value
    target = None if fact.object is None else world.entities[fact.object]
    return {
        "subject": subject.title, "subject_qid": subject.qid,
        "relation": fact.relation, "key": fact.key, "cardinality": fact.cardinality,
        "object": target.title if target else None, "object_qid": target.qid if target else None,
        "value": value.text if value else None, "value_kind": value.kind if value else None,
        "value_iso": value.iso if value and value.kind == "date" else None,
        "value_number": value.number if value and value.kind != "text" else None,
        "value_unit": value.unit if value else None,
        "shown": fact.shown, "linked": fact.shown and fact.linked and target is not None,
        "sentence": wiki.sentences.get(key_of(fact)),
    }  # fmt: skip


def _write_lines(path: Path, rows: Iterable[Mapping[str, Any]]) -> None:
    with path.open("w", encoding="utf-8", newline="\n") as file:
        file.writelines(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
