"""Entities as Wikidata's JSON dump has them: one line each, no spaces."""

import bz2
import gzip
import json
from pathlib import Path

OTHER_SITES = [f"{language}wiki" for language in "de fr cs pl it es nl sv pt ru ja zh ar fi da".split()]


def make_claim(property: str, value: object, rank: str = "normal", datatype: str = "wikibase-item") -> dict:
    snak = {
        "snaktype": "value",
        "property": property,
        "datavalue": {"value": value, "type": "any"},
        "datatype": datatype,
    }
    return {"mainsnak": snak, "type": "statement", "id": f"{property}-x", "rank": rank}


def make_instance(number: int | str, rank: str = "normal") -> dict:
    return make_claim("P31", {"entity-type": "item", "numeric-id": number, "id": f"Q{number}"}, rank)


def make_entity(
    number: int,
    sitelinks: int = 3,
    statements: int = 9,
    identifiers: int = 2,
    classes: tuple[int, ...] = (100,),
    title: str = "",
) -> dict:
    """An entity with just these counts: its classes, then identifiers, then plain statements; enwiki comes first."""
    plain = statements - identifiers - len(classes)
    assert plain >= 0, "the classes and identifiers are statements, too"
    groups = {
        "P31": [make_instance(number) for number in classes],
        "P214": [make_claim("P214", f"{n}", datatype="external-id") for n in range(identifiers)],
        "P1": [make_claim("P1", f"value {n}", datatype="string") for n in range(plain)],
    }
    title = title or f"Page {number}"
    sites = ["enwiki", *OTHER_SITES][:sitelinks]
    return {
        "type": "item",
        "id": f"Q{number}",
        "labels": {"en": {"language": "en", "value": f"Label {number}"}},
        "descriptions": {},
        "aliases": {},
        "claims": {name: group for name, group in groups.items() if group} or [],
        "sitelinks": {site: {"site": site, "title": title, "badges": []} for site in sites} or [],
        "lastrevid": 5,
    }


def render_line(entity: dict) -> bytes:
    return json.dumps(entity, separators=(",", ":")).encode()


def write_dump(path: Path, lines: list[bytes], end: bytes = b"\n]\n", streams: int = 1) -> Path:
    """Write lines as a dump, packed by the file's name; ``streams`` is the number of bz2 streams."""
    body = b"[\n" + b",\n".join(lines) + end
    size = -(-len(body) // streams)
    parts = [body[start : start + size] for start in range(0, len(body), size)]
    pack = {".bz2": bz2.compress, ".gz": gzip.compress}.get(path.suffix, bytes)
    path.write_bytes(b"".join(map(pack, parts)))
    return path
