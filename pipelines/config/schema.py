"""JSON Schema of configuration files, for editors, and what it says of one key in words; made from the settings."""

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from pydantic import BaseModel

from pipelines.config.settings import RunConfig

EXTENDS = {
    "type": "string",
    "description": "what the file lies over: a recipe, or a file by its path from this file's folder; empty: nothing",
}
"""A key of files alone: it is gone once they are read."""


def make_schema() -> dict[str, Any]:
    """Return the JSON Schema (draft 2020-12) of a configuration file, which may leave out what lies below it.

    Rules that concern several keys are not in it: they are checked when the file is read.
    """
    schema = RunConfig.model_json_schema()
    # Each table of an array is whole; of any other table keys may come from what lies below.
    whole = set(re.findall(r'"items": {"\$ref": "#/\$defs/(\w+)"', json.dumps(schema)))
    tables = {name: _tidy(table, required=name in whole) for name, table in schema.pop("$defs").items()}
    tidied = _tidy(schema)
    properties = {"extends": EXTENDS, **tidied.pop("properties")}
    dialect = "https://json-schema.org/draft/2020-12/schema"
    return {"$schema": dialect, "title": "configuration of synth", **tidied, "properties": properties, "$defs": tables}


def _tidy(node: Any, required: bool = False) -> Any:  # noqa: ANN401 - any JSON value
    """Leave out what TOML has no words for (null), defaults of whole tables and titles that repeat a key's name."""
    if isinstance(node, list):
        return [_tidy(entry) for entry in node if entry != {"type": "null"}]
    if not isinstance(node, dict):
        return node
    tidied = {}
    for key, value in node.items():
        if key in ("properties", "$defs", "patternProperties"):
            tidied[key] = {name: _tidy(entry) for name, entry in value.items()}
        elif key == "default":
            tidied |= {} if value is None or isinstance(value, dict) else {key: value}
        elif key != "title" and (key != "required" or required):
            tidied[key] = _tidy(value)
    if len(tidied.get("anyOf", ())) == 1:
        tidied |= tidied.pop("anyOf")[0]
    return tidied


def describe_values(section: type[BaseModel]) -> dict[str, tuple[str, str]]:
    """Return for each key of a section the type of its values, in TOML's words, and which of them are allowed.

    The second is empty where every value of the type is.
    """
    schema = _tidy(section.model_json_schema())
    return {name: (_name_type(entry), "; ".join(_list_limits(entry))) for name, entry in schema["properties"].items()}


def _name_type(entry: Mapping[str, Any]) -> str:
    if "anyOf" in entry:
        return " or ".join(dict.fromkeys(_name_type(each) for each in entry["anyOf"]))
    if "prefixItems" in entry:
        return f"array of {len(entry['prefixItems'])} {_name_type(entry['prefixItems'][0])}s"
    if entry.get("type") == "array":
        return f"array of {_name_type(entry['items'])}s"
    named = str(entry.get("type", "table"))
    return {"object": "table", "number": "float"}.get(named, named)


def _list_limits(entry: Mapping[str, Any]) -> Iterator[str]:
    """Yield what the values of a key are held to."""
    parts = [*entry.get("anyOf", ()), *entry.get("prefixItems", ())[:1]]
    nested = [
        entry[key] for key in ("items", "additionalProperties", "propertyNames") if isinstance(entry.get(key), dict)
    ]
    for part in [*parts, *nested, *entry.get("patternProperties", {}).values()]:
        yield from _list_limits(part)
    words = entry.get("enum", [entry["const"]] if "const" in entry else [])
    if words:
        yield ", ".join(str(word) or '""' for word in words)
    signs = {"minimum": ">=", "exclusiveMinimum": ">", "maximum": "<=", "exclusiveMaximum": "<"}
    if bounds := [f"{sign} {entry[key]:g}" for key, sign in signs.items() if key in entry]:
        yield " and ".join(bounds)
    if "pattern" in entry:
        yield f"matches {entry['pattern']}"
