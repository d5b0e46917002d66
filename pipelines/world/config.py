"""What a toy Wikipedia is asked to be, and what came of it."""

import re
from dataclasses import dataclass

from pipelines.errors import ConfigError

MIN_ENTITIES = 60
MAX_ENTITIES = 200_000
MAX_MISSING = 0.9


@dataclass(frozen=True, slots=True)
class WorldConfig:
    """Everything that decides the bytes of a world.

    Attributes:
        entities: how many entities the world knows; pages are more (redirects, lists, disambiguation).
        seed: the one source of randomness.
        missing: probability that an infobox leaves a field out, 0.0 to 0.9.
        snapshot: the dump date ``YYYYMMDD`` in file names and timestamps.
    """

    entities: int = 2000
    seed: int = 7
    missing: float = 0.1
    snapshot: str = "20260101"


@dataclass(frozen=True, slots=True)
class WorldSummary:
    """Counts of a written world, the same as in its ``world.json``.

    Attributes:
        articles: pages in the main namespace that are no redirects.
        hidden_facts: facts that their infobox does not show.
        free_pictures: pictures with a free licence and at least 512 px on the short side.
    """

    pages: int
    articles: int
    redirects: int
    entities: int
    facts: int
    hidden_facts: int
    pictures: int
    free_pictures: int


def check_config(config: WorldConfig) -> None:
    """Refuse a configuration that no world can be made from.

    Raises:
        ConfigError: a value is out of its range; the message names the key and what is allowed.
    """
    if not MIN_ENTITIES <= config.entities <= MAX_ENTITIES:
        raise ConfigError(f"world.entities: got {config.entities}, allowed are {MIN_ENTITIES} to {MAX_ENTITIES}")
    if not 0.0 <= config.missing <= MAX_MISSING:
        raise ConfigError(f"world.missing: got {config.missing}, allowed is 0.0 to {MAX_MISSING}")
    if not re.fullmatch(r"(19|20)\d\d(0[1-9]|1[0-2])(0[1-9]|[12]\d)", config.snapshot):
        raise ConfigError(f"world.snapshot: got {config.snapshot!r}, allowed is a date like 20260101 (day 01 to 29)")
