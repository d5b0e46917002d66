"""The Hub's features of a Parquet schema: as ``huggingface`` key-value metadata and as ``dataset_info`` YAML.

Lists are written in the plain-list form, which datasets 3.6 and 5 both read; ``{"_type": "List"}`` breaks 3.6.
"""

import json
from typing import Any

import pyarrow as pa
from pydantic import BaseModel

from schemas.arrow import derive_schema

DTYPES = {pa.string(): "string", pa.int64(): "int64", pa.float64(): "float64", pa.bool_(): "bool"}


def is_image(kind: pa.DataType) -> bool:
    """Say whether a type is the Image feature's storage, ``struct<bytes, path>``."""
    return pa.types.is_struct(kind) and {field.name for field in kind} == {"bytes", "path"}


def relax_type(kind: pa.DataType) -> pa.DataType:
    """Return the type with every field nullable, as the datasets library writes and casts to."""
    if pa.types.is_list(kind):
        return pa.list_(relax_type(kind.value_type))
    if pa.types.is_struct(kind):
        return pa.struct([pa.field(field.name, relax_type(field.type)) for field in kind])
    return kind


def make_release_schema(model: type[BaseModel]) -> pa.Schema:
    """Return the Arrow schema of a release's data files, with the ``huggingface`` metadata."""
    schema = pa.schema([pa.field(field.name, relax_type(field.type)) for field in derive_schema(model)])
    features = {field.name: describe_feature(field.type) for field in schema}
    return schema.with_metadata({"huggingface": json.dumps({"info": {"features": features}}, sort_keys=True)})


def describe_feature(kind: pa.DataType) -> Any:  # noqa: ANN401 - a JSON value
    """Return a type as the datasets library's JSON form of a feature."""
    if is_image(kind):
        return {"_type": "Image"}
    if pa.types.is_list(kind):
        return [describe_feature(kind.value_type)]
    if pa.types.is_struct(kind):
        return {field.name: describe_feature(field.type) for field in kind}
    return {"dtype": DTYPES[kind], "_type": "Value"}


def describe_columns(schema: pa.Schema) -> list[dict[str, Any]]:
    """Return the columns as the ``features`` list of a README's ``dataset_info``."""
    return [_describe_column(field) for field in schema]


def _describe_column(field: pa.Field) -> dict[str, Any]:
    if pa.types.is_list(field.type):
        return {"name": field.name, "list": _describe_element(field.type.value_type)}
    if pa.types.is_struct(field.type) and not is_image(field.type):
        return {"name": field.name, "struct": _describe_element(field.type)}
    return {"name": field.name, "dtype": _describe_element(field.type)}


def _describe_element(kind: pa.DataType) -> Any:  # noqa: ANN401 - a JSON value
    if is_image(kind):
        return "image"
    if pa.types.is_struct(kind):
        return [_describe_column(field) for field in kind]
    return DTYPES[kind]
