"""Pictures: which entity has which, under which name and licence, and what is odd about them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import Literal

from pipelines.world import vocabulary as words
from pipelines.world.config import WorldConfig
from pipelines.world.emblems import SIMPLE, SimpleKind
from pipelines.world.knowledge import Entity
from pipelines.world.names import fold_accents
from pipelines.world.scenery import OUTDOORS

MIN_SIDE = 512
NO_PICTURE_SHARE = 0.1
SMALL_SHARE = 0.04
UNFREE_SHARE = 0.05
PALETTE_SHARE = 0.02
SECOND_SHARE = 0.3
"""Entities with a lead picture whose article has another one."""
UNSTATED_SHARE = 0.12
"""Pictures of which nobody says what they depict."""
MISSTATED_SHARE = 0.015
"""Pictures that are said to depict another entity."""
TELLING_SHARE = 0.5
"""Simple pictures whose file name says what they are."""
_UPRIGHT = ("person", "orchid", "beetle", "painting", "novel", "newspaper", "clock", "helmet")
_VIEWS = ("", " 2019", " (cropped)", " 02", " detail")
_OUTDOOR_VIEWS = (*_VIEWS, " from the north", " in spring", ", seen from the west")
_SECOND_VIEWS = (" 03", " another view", " (2)", " close up")
_CAPTIONS = ("{name}, another view", "Another picture of {name}", "{name} as visitors see it", "{name} up close")
_SIMPLE_NAMES: Mapping[SimpleKind, str] = {
    "flag": "Flag of {stem}",
    "emblem": "{stem} logo",
    "map": "{stem} location map",
    "card": "{stem} text",
}
_CC = "https://creativecommons.org/"
LICENCES: Mapping[str, str] = {
    "CC BY-SA 4.0": f"{_CC}licenses/by-sa/4.0/deed.en",
    "CC BY-SA 3.0": f"{_CC}licenses/by-sa/3.0/deed.en",
    "CC BY 4.0": f"{_CC}licenses/by/4.0/deed.en",
    "CC0 1.0": f"{_CC}publicdomain/zero/1.0/deed.en",
}
UNFREE_LICENCES: Mapping[str, str] = {
    "Fair use": "https://en.wikipedia.org/wiki/Wikipedia:Non-free_content",
    "CC BY-NC-ND 4.0": f"{_CC}licenses/by-nc-nd/4.0/deed.en",
}
View = Literal["lead", "second"]


@dataclass(frozen=True, slots=True)
class Picture:
    """A planned picture.

    Attributes:
        file: name with spaces, as an infobox has it; on disk and in tables spaces are underscores.
        size: width and height in pixels.
        free: whether the licence allows reuse and change.
        view: ``lead`` in the infobox, ``second`` in the article's body.
        sign: what a sign in it says; empty without one.
        simple: what it is where it is no picture of the entity at all; empty else.
        depicts: Qids it is said to depict (P180); mostly the entity's, now and then nothing or another's.
        caption: of a second picture.
    """

    entity: int
    file: str
    size: tuple[int, int]
    author: str
    licence: str
    licence_url: str
    free: bool
    view: View = "lead"
    sign: str = ""
    simple: SimpleKind | None = None
    depicts: tuple[str, ...] = ()
    caption: str = ""

    @property
    def stored_name(self) -> str:
        """File name with underscores."""
        return self.file.replace(" ", "_")

    @property
    def source_url(self) -> str:
        """Where the file page would be: Commons if free, else the local wiki."""
        host = "commons.wikimedia.org" if self.licence in LICENCES else "en.wikipedia.org"
        return f"https://{host}/wiki/File:{self.stored_name}"


def plan_pictures(entities: Sequence[Entity], config: WorldConfig) -> dict[int, Picture]:
    """Decide names, sizes, licences and oddities of lead pictures, by entity number; abstract things have none."""
    pictures: dict[int, Picture] = {}
    used: set[str] = set()
    for entity in entities:
        rng = Random(f"{config.seed}:picture-plan:{entity.number}")
        if entity.subtype.kind == "concept" or rng.random() < NO_PICTURE_SHARE:
            continue
        stem = entity.title if rng.random() < 0.3 else fold_accents(entity.title)
        suffix = ".png" if rng.random() < PALETTE_SHARE else ".jpg"
        view = rng.choice(_OUTDOOR_VIEWS if entity.subtype.name in OUTDOORS else _VIEWS)
        # Oddities have a stream of their own: without them the world stays the same.
        odd = Random(f"{config.seed}:picture-oddity:{entity.number}")
        simple, sign = _draw_oddity(entity, config, odd)
        file = _name_file(stem, view, suffix)
        if simple is not None and odd.random() < TELLING_SHARE:
            file = _name_file(_SIMPLE_NAMES[simple].format(stem=stem), "", ".png")
        file = _tell_apart(file, entity, used)
        free = rng.random() >= UNFREE_SHARE
        licence, address = rng.choice(tuple((LICENCES if free else UNFREE_LICENCES).items()))
        author = rng.choice(words.PHOTOGRAPHERS)
        pictures[entity.number] = Picture(
            entity.number, file, _draw_size(entity, rng), author, licence, address, free, sign=sign, simple=simple,
            depicts=_state_subject(entity, entities, odd),
        )  # fmt: skip
    return pictures


def plan_second_pictures(
    entities: Sequence[Entity], leads: Mapping[int, Picture], config: WorldConfig
) -> dict[int, Picture]:
    """Decide which entities have a further picture in the body of their article: the same thing seen otherwise."""
    pictures: dict[int, Picture] = {}
    used = {picture.file.casefold() for picture in leads.values()}
    for number in leads:
        rng, entity = Random(f"{config.seed}:second-picture-plan:{number}"), entities[number]
        if rng.random() >= SECOND_SHARE:
            continue
        file = _tell_apart(_name_file(fold_accents(entity.title), rng.choice(_SECOND_VIEWS), ".jpg"), entity, used)
        licence, address = rng.choice(tuple(LICENCES.items()))
        pictures[number] = Picture(
            number, file, _draw_size(entity, rng), rng.choice(words.PHOTOGRAPHERS), licence, address, True, "second",
            depicts=_state_subject(entity, entities, rng), caption=rng.choice(_CAPTIONS).format(name=entity.name),
        )  # fmt: skip
    return pictures


def _draw_oddity(entity: Entity, config: WorldConfig, rng: Random) -> tuple[SimpleKind | None, str]:
    """Return what a lead picture is in place of a picture, or what a sign in it says."""
    drawn, kind = rng.random(), rng.choice(SIMPLE)
    if drawn < config.simple:
        return kind, ""
    return None, fold_accents(entity.name) if drawn < config.simple + config.signs else ""


def _state_subject(entity: Entity, entities: Sequence[Entity], rng: Random) -> tuple[str, ...]:
    drawn, other = rng.random(), rng.choice(entities)
    if drawn < UNSTATED_SHARE:
        return ()
    return (other.qid if drawn < UNSTATED_SHARE + MISSTATED_SHARE else entity.qid,)


def _name_file(stem: str, view: str, suffix: str) -> str:
    file = "".join(letter for letter in stem if letter not in '/:|#<>[]{}"?*\\') + view + suffix
    return file[0].upper() + file[1:]


def _tell_apart(file: str, entity: Entity, used: set[str]) -> str:
    """Return a file name that no picture has yet, and note it."""
    if file.casefold() in used:
        file = f"{file[:-4]} {entity.number}{file[-4:]}"
    used.add(file.casefold())
    return file


def _draw_size(entity: Entity, rng: Random) -> tuple[int, int]:
    upright = entity.subtype.name in _UPRIGHT or entity.subtype.kind in _UPRIGHT
    if rng.random() < SMALL_SHARE:
        return (320, 400) if upright else (400, 320)
    long = rng.choice((640, 660, 680))
    return (MIN_SIDE, long) if upright else (long, MIN_SIDE)
