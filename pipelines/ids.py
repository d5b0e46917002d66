"""Content-derived ids: the same content has the same id in every run and on every host."""

import hashlib
import json
from collections.abc import Sequence
from pathlib import Path

from pydantic import BaseModel

CHUNK = 1 << 20


def canonical_json(value: object) -> str:
    """Return JSON with sorted keys and no spaces; models are dumped first.

    Raises:
        TypeError: if a value has no JSON form.
    """
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, default=_dump_model)


def _dump_model(value: object) -> object:
    if isinstance(value, BaseModel):
        return value.model_dump(mode="json")
    raise TypeError(f"no JSON form for {type(value).__name__}")


def digest_value(value: object) -> str:
    """Return the sha256 (64 hex digits) of a value's canonical JSON."""
    return hashlib.sha256(canonical_json(value).encode()).hexdigest()


def digest_file(path: Path) -> str:
    """Return the sha256 (64 hex digits) of a file's bytes, read in 1 MiB chunks."""
    digest = hashlib.sha256()
    with path.open("rb") as source:
        while chunk := source.read(CHUNK):
            digest.update(chunk)
    return digest.hexdigest()


def make_record_id(prefix: str, value: object) -> str:
    """Return ``<prefix>-<16 hex digits>`` over the value's canonical JSON."""
    return f"{prefix}-{digest_value(value)[:16]}"


def make_stage_key(name: str, version: int, fingerprint: str, input_keys: Sequence[str]) -> str:
    """Return the 16 hex digits that name a stage's output: a new key whenever anything that decides it changes."""
    return digest_value([f"{name}@{version}", fingerprint, list(input_keys)])[:16]


def choose_weighted(options: Sequence[int], weights: Sequence[float], unit: float) -> int:
    """Return the option that a number in [0, 1) falls on, each being as wide as its weight."""
    left = unit * sum(weights)
    for option, weight in zip(options, weights, strict=True):
        left -= weight
        if left < 0:
            return option
    return options[-1]


def draw_unit(*parts: object) -> float:
    """Return a number in [0, 1) decided by the parts alone: a seeded choice with no generator to carry around."""
    return int(digest_value(list(parts))[:13], 16) / float(1 << 52)
