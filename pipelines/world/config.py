"""What a toy Wikipedia is asked to be, and what came of it."""

import re
from dataclasses import dataclass

from pipelines.errors import ConfigError

MIN_ENTITIES = 60
MAX_ENTITIES = 200_000
MAX_MISSING = 0.9
MAX_ODD = 0.5
"""Most that the share of signs, and that of simple pictures, may be."""


@dataclass(frozen=True, slots=True)
class WorldConfig:
    """Everything that decides the bytes of a world.

    Attributes:
        entities: how many entities the world knows; pages are more (redirects, lists, disambiguation).
        seed: the one source of randomness.
        missing: probability that an infobox leaves a field out, 0.0 to 0.9.
        snapshot: the dump date ``YYYYMMDD`` in file names and timestamps.
        signs: share of lead pictures with a sign that shows the entity's name, 0.0 to 0.5.
        simple: share of lead pictures that are a flag, an emblem, a map or a card of text, 0.0 to 0.5.
    """

    entities: int = 2000
    seed: int = 7
    missing: float = 0.1
    snapshot: str = "20260101"
    signs: float = 0.03
    simple: float = 0.02


@dataclass(frozen=True, slots=True)
class WorldSummary:
    """Counts of a written world, the same as in its ``world.json``.

    Attributes:
        articles: pages in the main namespace that are no redirects.
        hidden_facts: facts that their infobox does not show.
        pictures: all pictures, those in the body of articles included.
        lead_pictures: those in infoboxes.
        free_pictures: lead pictures with a free licence and at least 512 px on the short side.
        signs: lead pictures in which a sign names the entity.
        simple_pictures: lead pictures that are a flag, an emblem, a map or a card of text.
    """

    pages: int
    articles: int
    redirects: int
    entities: int
    facts: int
    hidden_facts: int
    pictures: int
    lead_pictures: int
    free_pictures: int
    signs: int
    simple_pictures: int


def check_config(config: WorldConfig) -> None:
    """Refuse a configuration that no world can be made from.

    Raises:
        ConfigError: a value is out of its range; the message names the key and what is allowed.
    """
    if not MIN_ENTITIES <= config.entities <= MAX_ENTITIES:
        raise ConfigError(f"world.entities: got {config.entities}, allowed are {MIN_ENTITIES} to {MAX_ENTITIES}")
    if not 0.0 <= config.missing <= MAX_MISSING:
        raise ConfigError(f"world.missing: got {config.missing}, allowed is 0.0 to {MAX_MISSING}")
    for name, share in (("signs", config.signs), ("simple", config.simple)):
        if not 0.0 <= share <= MAX_ODD:
            raise ConfigError(f"world.{name}: got {share}, allowed is 0.0 to {MAX_ODD}")
    if not re.fullmatch(r"(19|20)\d\d(0[1-9]|1[0-2])(0[1-9]|[12]\d)", config.snapshot):
        raise ConfigError(f"world.snapshot: got {config.snapshot!r}, allowed is a date like 20260101 (day 01 to 29)")
