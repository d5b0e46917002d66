"""A configuration as the text of a TOML file."""

from collections.abc import Mapping
from typing import Any

import tomli_w


def write_toml(tables: Mapping[str, Any]) -> str:
    """Return tables as TOML, which reads back equal; TOML knows no None, and a key that is None is left out.

    ``write_toml(config.model_dump(mode="json"))`` is a whole configuration: what may be None is so by default.
    """
    return tomli_w.dumps(_drop_none(tables))


def _drop_none(tables: Mapping[str, Any]) -> dict[str, Any]:
    kept = {key: value for key, value in tables.items() if value is not None}
    return {key: _drop_none(value) if isinstance(value, Mapping) else value for key, value in kept.items()}
