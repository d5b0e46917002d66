"""What Wikidata's query service knows of a generated world: class, counts and English article of each entity."""

import json
from pathlib import Path

from pipelines.corpus.sqltables import read_columns
from pipelines.toy.ontology import SUBTYPES

PREFIXES = """@prefix wd: <http://www.wikidata.org/entity/> .
@prefix wdt: <http://www.wikidata.org/prop/direct/> .
@prefix wikibase: <http://wikiba.se/ontology#> .
@prefix schema: <http://schema.org/> .
"""
ENTITY = """wd:{qid} wdt:P31 wd:{kind} ; wikibase:statements {claims} ; wikibase:sitelinks {sitelinks} ;
  wikibase:identifiers {identifiers} .
[] schema:about wd:{qid} ; schema:isPartOf <https://toywiki.example/> ; schema:name {title}@en .
"""


def make_turtle(world: Path) -> str:
    """Return the entities of a world's folder as Turtle."""
    tables = {name: next(world.glob(f"wikidatawiki-*-{name}.sql.gz")) for name in ("page", "page_props")}
    qids, counts = {}, {}
    for block in read_columns(tables["page"], "page", ["page_id"], ["page_title"]):
        qids |= dict(zip(block.integers[0].tolist(), block.texts[0].to_pylist(), strict=True))
    for block in read_columns(tables["page_props"], "page_props", ["pp_page"], ["pp_propname", "pp_value"]):
        texts = (text.to_pylist() for text in block.texts)
        for page, name, value in zip(block.integers[0].tolist(), *texts, strict=True):
            counts.setdefault(qids[page].decode(), {})[name.decode().removeprefix("wb-")] = int(value)
    kinds = {subtype.name: "Q5" if subtype.kind == "person" else subtype.class_id for subtype in SUBTYPES}
    entities = map(json.loads, (world / "truth" / "entities.jsonl").read_text("utf-8").splitlines())
    rows = ((each["qid"], kinds[each["subtype"]], json.dumps(each["title"])) for each in entities)
    return PREFIXES + "".join(
        ENTITY.format(qid=qid, kind=kind, title=title, **counts[qid]) for qid, kind, title in rows
    )
