"""Writes Wikidata as Turtle in the shape of the raw RDF dump: counts on the ``data:`` node, not on the entity."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from urllib.parse import quote

from pipelines.world.knowledge import Fact
from pipelines.world.wikidata import EntityRecord
from pipelines.world.world import World

_PREFIXES = {
    "rdf": "http://www.w3.org/1999/02/22-rdf-syntax-ns#",
    "xsd": "http://www.w3.org/2001/XMLSchema#",
    "rdfs": "http://www.w3.org/2000/01/rdf-schema#",
    "owl": "http://www.w3.org/2002/07/owl#",
    "wikibase": "http://wikiba.se/ontology#",
    "skos": "http://www.w3.org/2004/02/skos/core#",
    "schema": "http://schema.org/",
    "cc": "http://creativecommons.org/ns#",
    "wd": "http://www.wikidata.org/entity/",
    "data": "https://www.wikidata.org/wiki/Special:EntityData/",
    "wdt": "http://www.wikidata.org/prop/direct/",
}
_LICENCE = "<http://creativecommons.org/publicdomain/zero/1.0/>"
_OTHER_WIKIS = ("cs", "de", "fr")


def write_turtle(world: World, records: Sequence[EntityRecord], path: Path) -> None:
    """Write all entities.

    Each has its counts, labels, aliases, simple statements (``wdt:``) and article nodes. The enwiki article comes
    first; of the other sitelinks at most three are written, whatever ``wikibase:sitelinks`` says.
    """
    modified = f"{world.config.snapshot[:4]}-01-01T00:00:00Z"
    with path.open("w", encoding="utf-8", newline="\n") as file:
        file.writelines(f"@prefix {name}: <{address}> .\n" for name, address in _PREFIXES.items())
        file.write(
            f"\nwikibase:Dump a schema:Dataset,\n\t\towl:Ontology ;\n\tcc:license {_LICENCE} ;\n"
            f'\tschema:softwareVersion "1.0.0" ;\n\tschema:dateModified "{modified}"^^xsd:dateTime .\n'
        )
        for record in records:
            file.writelines(_render_entity(world, record))


def _render_entity(world: World, record: EntityRecord) -> Iterator[str]:
    yield (
        f"\ndata:{record.qid} a schema:Dataset ;\n\tschema:about wd:{record.qid} ;\n\tcc:license {_LICENCE} ;\n"
        f'\tschema:version "{record.page.revision}"^^xsd:integer ;\n'
        f'\tschema:dateModified "{record.page.timestamp}"^^xsd:dateTime ;\n'
        f'\twikibase:statements "{record.statements}"^^xsd:integer ;\n'
        f'\twikibase:sitelinks "{record.sitelinks}"^^xsd:integer ;\n'
        f'\twikibase:identifiers "{record.identifiers}"^^xsd:integer .\n\nwd:{record.qid} a wikibase:Item .\n'
    )
    for language in ("en", *_OTHER_WIKIS[: record.sitelinks - 1]):
        yield _render_sitelink(record, language)
    label = f"{_quote(record.label)}@en"
    lines = [f"rdfs:label {label}", f"skos:prefLabel {label}", f"schema:name {label}"]
    lines.append(f"schema:description {_quote(record.description)}@en")
    lines += [f"skos:altLabel {_quote(alias)}@en" for alias in record.aliases]
    lines.append(f"wdt:P31 wd:{record.instance_of}")
    if record.occupation:
        lines.append(f"wdt:P106 wd:{record.occupation}")
    if record.picture:
        lines.append(f"wdt:P18 <http://commons.wikimedia.org/wiki/Special:FilePath/{quote(record.picture)}>")
    lines += [f"wdt:{fact.prop} {_render_object(world, fact)}" for fact in record.facts]
    yield f"wd:{record.qid} " + " ;\n\t".join(lines) + " .\n"


def _render_sitelink(record: EntityRecord, language: str) -> str:
    site = f"https://{language}.wikipedia.org/"
    address = f"{site}wiki/{quote(record.page.title.replace(' ', '_'), safe='/:@!$(),;*')}"
    return (
        f'\n<{address}> a schema:Article ;\n\tschema:about wd:{record.qid} ;\n\tschema:inLanguage "{language}" ;\n'
        f"\tschema:isPartOf <{site}> ;\n\tschema:name {_quote(record.page.title)}@{language} .\n\n"
        f'<{site}> wikibase:wikiGroup "wikipedia" .\n\n'
    )


def _render_object(world: World, fact: Fact) -> str:
    if fact.value is None:
        return f"wd:{world.entities[fact.object or 0].qid}"
    if fact.value.kind == "date":
        return f'"{fact.value.iso}T00:00:00Z"^^xsd:dateTime'
    return f'"+{fact.value.number:.10g}"^^xsd:decimal'


def _quote(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'
