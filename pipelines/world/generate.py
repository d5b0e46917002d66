"""Generates a toy Wikipedia and publishes it the way the real one is published."""

import glob
import json
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path

from pipelines.errors import ConfigError
from pipelines.files import TEMP_PREFIX, make_temp_path, sync_files, sync_folder
from pipelines.world.config import WorldConfig, WorldSummary, check_config
from pipelines.world.drawing import draw_picture
from pipelines.world.pages import MAIN, Wiki, compose_wiki, date_changes
from pipelines.world.pictures import MIN_SIDE, Picture, plan_pictures, plan_second_pictures
from pipelines.world.publish_rdf import write_turtle
from pipelines.world.publish_sql import write_wiki_tables, write_wikidata_tables
from pipelines.world.publish_truth import write_picture_truth, write_truth
from pipelines.world.publish_xml import write_dump
from pipelines.world.wikidata import record_entities
from pipelines.world.world import World, build_world

__all__ = ["WorldConfig", "WorldSummary", "write_world"]

WORLD_FORMAT = 3
_COLUMNS = (
    "file", "sha256", "width", "height", "author", "licence", "licence_url", "source_url", "depicts_title", "depicts",
)  # fmt: skip


def write_world(out: Path, config: WorldConfig, later: bool = False) -> WorldSummary:
    """Write a whole world to ``out``, or nothing; what a killed run of the same ``out`` left is removed.

    Files: the multistream dump and index, five SQL tables, two tables and the Turtle of Wikidata, ``images/`` with
    ``images.tsv``, ``world.json``, and ``truth/`` for tests. The same configuration gives the same bytes (with the
    same versions of Pillow, zlib and bzip2).

    Args:
        out: folder to make; it may exist if it is empty.
        config: what to make.
        later: make the same world as it is a year after the snapshot of ``config``: some facts have changed
            (``truth/changes.jsonl``), and the pages that say so; everything else is the same.

    Raises:
        ConfigError: ``config`` is out of range, or ``out`` exists and is a file or not empty.
    """
    check_config(config)
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise ConfigError(f"world output {out}: exists and is not an empty folder; name a new folder")
    with _drafting(out) as draft:
        return _publish(draft, config, later)


@contextmanager
def _drafting(out: Path) -> Iterator[Path]:
    """Give a sibling folder to write to; on a clean exit it is synced and becomes ``out``, else it is removed."""
    out.parent.mkdir(parents=True, exist_ok=True)
    for left in out.parent.glob(f"{TEMP_PREFIX}{glob.escape(out.name)}-*"):
        shutil.rmtree(left)
    draft = make_temp_path(out)
    draft.mkdir()
    try:
        yield draft
        sync_files(draft)
        draft.replace(out)
        sync_folder(out.parent)
    finally:
        shutil.rmtree(draft, ignore_errors=True)


def _publish(folder: Path, config: WorldConfig, later: bool) -> WorldSummary:
    world = build_world(config, later)
    published = f"{int(config.snapshot[:4]) + later}{config.snapshot[4:]}"
    leads = plan_pictures(world.entities, config)
    seconds = plan_second_pictures(world.entities, leads, config)
    pictures = (*leads.values(), *seconds.values())
    files = {number: picture.file for number, picture in leads.items()}
    wiki = compose_wiki(world, files, seconds)
    if later:
        wiki = date_changes(wiki, compose_wiki(build_world(config), files, seconds), published)
    records = record_entities(world, wiki, files)
    prefix = folder / f"toywiki-{published}"
    articles = f"{prefix.name}-pages-articles-multistream"
    write_dump(wiki.pages, folder / f"{articles}.xml.bz2", folder / f"{articles}-index.txt.bz2")
    write_wiki_tables(world, wiki, leads, prefix)
    write_wikidata_tables(records, folder / f"wikidatawiki-{published}")
    write_turtle(world, records, folder / f"wikidata-{published}.ttl")
    _write_pictures(world, pictures, folder / "images")
    write_truth(world, wiki, leads, folder / "truth")
    write_picture_truth(world, pictures, folder / "truth")
    summary = _count(world, wiki, leads, len(pictures))
    document = {"format": WORLD_FORMAT, "config": asdict(config), "counts": asdict(summary)}
    if later:
        document["later"] = published
    (folder / "world.json").write_text(json.dumps(document, indent=2) + "\n", encoding="utf-8")
    return summary


def _write_pictures(world: World, pictures: Sequence[Picture], folder: Path) -> None:
    folder.mkdir()
    lines = ["\t".join(_COLUMNS)]
    for picture in sorted(pictures, key=lambda each: each.stored_name):
        entity = world.entities[picture.entity]
        drawn = draw_picture(entity, picture, world.config.seed)
        (folder / picture.stored_name).write_bytes(drawn.data)
        width, height = picture.size
        lines.append("\t".join((
            picture.stored_name, drawn.sha256, str(width), str(height), picture.author, picture.licence,
            picture.licence_url, picture.source_url, entity.title, " ".join(picture.depicts),
        )))  # fmt: skip
    (folder / "images.tsv").write_text("\n".join(lines) + "\n", encoding="utf-8")


def _count(world: World, wiki: Wiki, leads: Mapping[int, Picture], pictures: int) -> WorldSummary:
    redirects = sum(page.redirect is not None for page in wiki.pages)
    return WorldSummary(
        pages=len(wiki.pages),
        articles=sum(page.namespace == MAIN for page in wiki.pages) - redirects,
        redirects=redirects,
        entities=len(world.entities),
        facts=len(world.facts),
        hidden_facts=sum(not fact.shown for fact in world.facts),
        pictures=pictures,
        lead_pictures=len(leads),
        free_pictures=sum(picture.free and min(picture.size) >= MIN_SIDE for picture in leads.values()),
        signs=sum(bool(picture.sign) for picture in leads.values()),
        simple_pictures=sum(picture.simple is not None for picture in leads.values()),
    )
