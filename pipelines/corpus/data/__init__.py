"""Word lists and tables about wikis, as TOML files beside this module; read when first asked for."""

import tomllib
from functools import cache
from importlib import resources
from typing import Any


@cache
def read_data(name: str) -> dict[str, Any]:
    """Return the content of ``<name>.toml``; callers must not change it."""
    return tomllib.loads(resources.files(__name__).joinpath(f"{name}.toml").read_text("utf-8"))


@cache
def read_names(name: str, key: str) -> frozenset[str]:
    """Return the names of a comma-separated list in ``<name>.toml``, each with single spaces."""
    return frozenset(split_names(read_data(name)[key]))


def split_names(names: str) -> list[str]:
    """Split a comma-separated list."""
    return [" ".join(name.split()) for name in names.split(",")]
