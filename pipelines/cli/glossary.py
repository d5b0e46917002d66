"""What each reason for a refusal means, in the words of ``data_cards/docs/reasons.toml``."""

import tomllib
from functools import cache

from pipelines.release.card import find_cards


@cache
def read_glossary() -> dict[str, str]:
    """Return a sentence for each reason."""
    told = tomllib.loads((find_cards() / "docs" / "reasons.toml").read_text(encoding="utf-8"))
    return {reason: entry["means"] for reason, entry in told.items()}


def explain_reason(reason: str) -> str:
    """Return what a reason means; empty for what is none, such as the name of an error."""
    return read_glossary().get(reason, "")
