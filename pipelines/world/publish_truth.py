"""Writes what is true, for tests and benchmarks only; the pipeline never reads it."""

import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from pipelines.world.knowledge import Fact
from pipelines.world.pages import Wiki, key_of
from pipelines.world.pictures import Picture
from pipelines.world.world import World


def write_truth(world: World, wiki: Wiki, pictures: Mapping[int, Picture], folder: Path) -> None:
    """Write ``entities.jsonl``, ``facts.jsonl`` and ``aliases.jsonl``, of a later snapshot ``changes.jsonl`` too."""
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
    _write_lines(folder / "aliases.jsonl", _list_aliases(world))
    if world.changes:
        _write_lines(folder / "changes.jsonl", (
            {"before": _list_fact(world, wiki, change.before) | {"sentence": None},
             "after": _list_fact(world, wiki, change.after)}
            for change in world.changes
        ))  # fmt: skip


def write_picture_truth(world: World, pictures: Iterable[Picture], folder: Path) -> None:
    """Write ``pictures.jsonl``: of each picture what it shows, what can be read in it and what it is said to depict."""
    _write_lines(folder / "pictures.jsonl", (
        {
            "file": picture.stored_name, "qid": world.entities[picture.entity].qid,
            "title": world.entities[picture.entity].title, "view": picture.view, "sign": picture.sign or None,
            "simple": picture.simple, "depicts": list(picture.depicts), "free": picture.free,
        }
        for picture in sorted(pictures, key=lambda each: each.stored_name)
    ))  # fmt: skip


def _list_aliases(world: World) -> Iterator[dict[str, Any]]:
    for entity in world.entities:
        for alias, kind in entity.aliases:
            yield {"qid": entity.qid, "title": entity.title, "alias": alias, "kind": kind}


def _list_fact(world: World, wiki: Wiki, fact: Fact) -> dict[str, Any]:
    """One row; ``sentence`` is the wikitext of the sentence that states the fact, null if none does."""
    target = None if fact.object is None else world.entities[fact.object]
    value = fact.value
    return {
        "subject": world.entities[fact.subject].title,
        "subject_qid": world.entities[fact.subject].qid,
        "relation": fact.relation,
        "key": fact.key,
        "cardinality": fact.cardinality,
        "object": target.title if target else None,
        "object_qid": target.qid if target else None,
        "value": value.text if value else None,
        "value_kind": value.kind if value else None,
        "value_iso": value.iso if value and value.kind == "date" else None,
        "value_number": value.number if value and value.kind != "text" else None,
        "value_unit": value.unit if value else None,
        "shown": fact.shown,
        "linked": fact.shown and fact.linked and target is not None,
        "sentence": wiki.sentences.get(key_of(fact)),
    }


def _write_lines(path: Path, rows: Iterable[Mapping[str, Any]]) -> None:
    with path.open("w", encoding="utf-8", newline="\n") as file:
        file.writelines(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
