"""``croissant.json``: the release in MLCommons Croissant 1.1, with the real sha256 of every data file."""

import re
from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from pipelines.release.features import is_image
from schemas.manifest import FileEntry

LICENCE = "https://creativecommons.org/licenses/by-sa/4.0/"
DATE = re.compile(r"\d{4}-\d{2}-\d{2}")
DATA_TYPES = {pa.string(): "sc:Text", pa.int64(): "sc:Integer", pa.float64(): "sc:Float", pa.bool_(): "sc:Boolean"}
CONTEXT: dict[str, Any] = {
    "@language": "en",
    "@vocab": "https://schema.org/",
    "citeAs": "cr:citeAs",
    "column": "cr:column",
    "conformsTo": "dct:conformsTo",
    "cr": "http://mlcommons.org/croissant/",
    "data": {"@id": "cr:data", "@type": "@json"},
    "dataType": {"@id": "cr:dataType", "@type": "@vocab"},
    "dct": "http://purl.org/dc/terms/",
    "equivalentProperty": "cr:equivalentProperty",
    "examples": {"@id": "cr:examples", "@type": "@json"},
    "extract": "cr:extract",
    "field": "cr:field",
    "fileObject": "cr:fileObject",
    "fileProperty": "cr:fileProperty",
    "fileSet": "cr:fileSet",
    "format": "cr:format",
    "includes": "cr:includes",
    "isLiveDataset": "cr:isLiveDataset",
    "jsonPath": "cr:jsonPath",
    "key": "cr:key",
    "md5": "cr:md5",
    "parentField": "cr:parentField",
    "path": "cr:path",
    "rai": "http://mlcommons.org/croissant/RAI/",
    "recordSet": "cr:recordSet",
    "references": "cr:references",
    "regex": "cr:regex",
    "repeated": "cr:repeated",
    "replace": "cr:replace",
    "samplingRate": "cr:samplingRate",
    "sc": "https://schema.org/",
    "separator": "cr:separator",
    "source": "cr:source",
    "subField": "cr:subField",
    "transform": "cr:transform",
}


def make_croissant(
    identity: dict[str, str], schema: pa.Schema, files: Sequence[FileEntry], limits: str
) -> dict[str, Any]:
    """Return the JSON-LD document.

    Args:
        identity: ``name``, ``description``, ``version``, ``snapshot`` and ``url`` of the release.
        schema: Arrow schema of the data files.
        files: the data files; each is one FileObject and one record set.
        limits: known limits, as one paragraph for the RAI vocabulary.
    """
    document = {
        "@context": CONTEXT,
        "@type": "sc:Dataset",
        "conformsTo": "http://mlcommons.org/croissant/1.1",
        "name": identity["name"],
        "description": identity["description"],
        "version": identity["version"],
        "license": LICENCE,
        "url": identity["url"],
        "creator": {"@type": "sc:Organization", "name": "synth"},
        "citeAs": f"{identity['name']}, version {identity['version']}",
        "isLiveDataset": False,
        "rai:dataCollection": f"Made by synth from the Wikipedia snapshot {identity['snapshot']}.",
        "rai:dataLimitations": limits,
        "rai:personalSensitiveInformation": "Facts and pictures of people, as Wikipedia and Commons show them.",
        "distribution": [_make_file(entry) for entry in files],
        "recordSet": [_make_records(entry, schema) for entry in files],
    }
    if DATE.fullmatch(identity["snapshot"]):
        document["datePublished"] = identity["snapshot"]
    return document


def _name_file(entry: FileEntry) -> str:
    return entry.name.rsplit("/", 1)[-1].removesuffix(".parquet")


def _make_file(entry: FileEntry) -> dict[str, Any]:
    return {
        "@type": "cr:FileObject",
        "@id": entry.name,
        "name": _name_file(entry),
        "contentUrl": entry.name,
        "contentSize": f"{entry.bytes} B",
        "encodingFormat": "application/x-parquet",
        "sha256": entry.sha256,
    }


def _make_records(entry: FileEntry, schema: pa.Schema) -> dict[str, Any]:
    name = _name_file(entry)
    fields = [made for field in schema if (made := _make_field(name, entry.name, field)) is not None]
    return {"@type": "cr:RecordSet", "@id": name, "name": name, "key": {"@id": f"{name}/id"}, "field": fields}


def _make_field(records: str, file: str, field: pa.Field) -> dict[str, Any] | None:
    """Return a column's field, or None: structs other than pictures have no form that loaders agree on."""
    repeated = pa.types.is_list(field.type)
    kind = field.type.value_type if repeated else field.type
    source: dict[str, Any] = {"fileObject": {"@id": file}, "extract": {"column": field.name}}
    if is_image(kind):
        source["transform"] = {"jsonPath": "[*].bytes" if repeated else "bytes"}
    elif kind not in DATA_TYPES:
        return None
    made: dict[str, Any] = {
        "@type": "cr:Field",
        "@id": f"{records}/{field.name}",
        "name": field.name,
        "dataType": "sc:ImageObject" if is_image(kind) else DATA_TYPES[kind],
        "source": source,
    }
    return made | ({"repeated": True} if repeated else {})
