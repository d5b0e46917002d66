"""News of a toy world: articles with pictures, captions, days and addresses, of invented papers.

An article shows one entity, tells one fact that leads from it to another, and introduces that one; what else is known
of the other stands there too, or in an article of its own. Some articles are old, short, without a picture, printed
again elsewhere, or have a caption that speaks of something else. :mod:`pipelines.toy.reporter` reads them.
"""

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from pathlib import Path
from random import Random
from shutil import copyfile

from pipelines.graph.answers import count_tokens, type_answer
from pipelines.toy.ontology import Entity, ToyFact
from pipelines.toy.pictures import MIN_SIDE, PlannedPicture
from pipelines.toy.world import World

PICTURED = 5
"""One entity in so many is in the news with a picture."""
SOURCES = tuple(
    (
        "Harbour Herald, Morning Lantern, Evening Ledger, Upland Courier, Riverside Post, Meadow Gazette, Northern "
        "Observer, The Weekly Plumb, Quayside Times, Kettle and Bell"
    ).split(", ")
)
HOST = "toywiki.example"
OLD, BARE, MISTOLD, SHORT, REPRINTED = 0.1, 0.06, 0.05, 0.03, 0.04
"""Shares of articles with a picture that are old, lack it, have another's caption, are short, or are printed again."""
FRESH_DAYS, OLD_DAYS = 150, (400, 900)
"""Days before the snapshot."""
TOGETHER = 0.4
"""Share of articles that tell all of one story."""
_TITLES = ("Crowds come back to {s}", "{s} in the news again", "What is next for {s}", "A busy week around {s}",
           "{s}: an old quarrel ends", "Neighbours speak up for {s}")  # fmt: skip
_OTHER_TITLES = ("{s} remembered", "Who knows {s} today?", "The story of {s}, told once more", "{s} in old papers")
_CAPTIONS = ("{s}, {noun}, on Tuesday.", "{s}, {noun}, in the picture last week.", "{s}, {noun}, as visitors saw it.",
             "{s}, {noun}, in a picture of our paper.")  # fmt: skip
_VAGUE = "A picture that our photographer took last week."
_OPENINGS = ("{s}, {noun}, was the talk of the week.", "Once more {s}, {noun}, drew a crowd.",
             "A meeting about {s}, {noun}, ended late at night.")  # fmt: skip
_INTRODUCED = ("The name of {s}, {noun}, was heard more than once.", "Many spoke of {s}, {noun}, as well.",
               "Nobody forgot {s}, {noun}, this time.")  # fmt: skip
_FILLERS = (
    "More people came than the organisers had chairs for.", "The rain held off until the last speech was over.",
    "A collection was taken for the repair of the hall.", "Nobody could say when the next meeting will be held.",
    "Several readers wrote to us about it afterwards.", "The council has put the matter on its list for the spring.",
    "Schoolchildren sang, and a band played until dusk.", "Old photographs were shown in the room next door.",
    "The mood was better than at the last meeting.", "Tea was served, and the cakes were gone within minutes.",
    "A spokeswoman thanked everybody who had lent a hand.", "Some stayed outside and listened through the windows.",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Story:
    """What an article with a picture tells: an entity, the fact that leads from it, and facts of where it leads."""

    entity: Entity
    link: ToyFact
    target: Entity
    facts: tuple[ToyFact, ...]


def write_news(world: World, leads: Mapping[int, PlannedPicture], images: Path, folder: Path) -> int:
    """Write ``articles.jsonl`` and ``pictures/`` into a folder; return how many articles there are."""
    (folder / "pictures").mkdir(parents=True)
    rng = Random(f"{world.config.seed}:news")
    rows = list(_write_rows(world, leads, rng))
    for row in rows:
        stored = row.pop("stored", "")
        if row["picture"]:
            copyfile(images / stored, folder / row["picture"])
    rows.sort(key=lambda row: row["url"])
    lines = [json.dumps(row, ensure_ascii=False, sort_keys=True) for row in rows]
    (folder / "articles.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return len(rows)


def _write_rows(world: World, leads: Mapping[int, PlannedPicture], rng: Random) -> Iterator[dict[str, str]]:
    told: dict[int, Story] = {}
    stories = list(_plan_stories(world, leads, rng))
    for number, story in enumerate(stories):
        row = _tell(story, leads[story.entity.number], stories[number - 1].entity, rng)
        yield row
        if rng.random() < REPRINTED:
            yield _date(row | {"source": rng.choice(SOURCES)}, rng, old=False)
        told.setdefault(story.target.number, story)
    for story in told.values():
        yield _tell_other(story, rng)


def _plan_stories(world: World, leads: Mapping[int, PlannedPicture], rng: Random) -> Iterator[Story]:
    fit = [number for number, lead in leads.items() if lead.free and lead.simple is None and min(lead.size) >= MIN_SIDE]
    rng.shuffle(fit)
    used: Counter[int] = Counter()
    left = len(world.entities) // PICTURED
    for number in fit:
        options = [fact for fact in world.facts_of.get(number, ()) if fact.cardinality in ("n:1", "1:1")]
        stories = [story for fact in options if (story := _make_story(world, number, fact)) is not None]
        if left and stories:
            story = min(stories, key=lambda each: (used[each.target.number], rng.random()))
            used[story.target.number] += 1
            left -= 1
            yield story


def _make_story(world: World, number: int, fact: ToyFact) -> Story | None:
    if fact.object is None:
        return None
    entity, target = world.entities[number], world.entities[fact.object]
    facts = [each for each in world.facts_of.get(target.number, ()) if _can_ask(each)]
    if not facts or entity.name in target.name or target.name in entity.name:
        return None
    return Story(entity, fact, target, tuple(facts[:3]))


def _can_ask(fact: ToyFact) -> bool:
    if fact.value is None:
        return False
    answer = type_answer(fact.value.text, "", fact.key)
    return answer is not None and count_tokens(answer.surface) <= 5


def _tell(story: Story, picture: PlannedPicture, other: Entity, rng: Random) -> dict[str, str]:
    luck = rng.random()
    faults = (BARE, BARE + MISTOLD, BARE + MISTOLD + SHORT)
    shown = story.entity if not faults[0] <= luck < faults[1] else other
    body = [_open(story.entity, _OPENINGS, rng), _state(story.entity.name, story.link, story.target.name, rng)]
    if not faults[1] <= luck < faults[2]:
        body += [_open(story.target, _INTRODUCED, rng), *rng.sample(_FILLERS, 5)]
        body += _state_all(story, rng) if rng.random() < TOGETHER else []
    caption = _VAGUE if rng.random() < 0.1 else _open(shown, _CAPTIONS, rng)
    stem = f"{rng.getrandbits(48):012x}"
    told = {
        "title": rng.choice(_TITLES).format(s=story.entity.name),
        "text": _cut(body, rng),
        "caption": caption,
        "source": rng.choice(SOURCES),
        "picture": "" if luck < faults[0] else f"pictures/{stem}{Path(picture.stored_name).suffix}",
        "stored": picture.stored_name,
        "author": picture.author,
        "licence": picture.licence,
        "licence_url": picture.licence_url,
    }
    return _date(told, rng, old=rng.random() < OLD)


def _tell_other(story: Story, rng: Random) -> dict[str, str]:
    body = [_open(story.target, _OPENINGS, rng), *rng.sample(_FILLERS, 5), *_state_all(story, rng)]
    title = rng.choice(_OTHER_TITLES).format(s=story.target.name)
    told = {"title": title, "text": _cut(body, rng), "caption": "", "source": rng.choice(SOURCES), "picture": ""}
    return _date(told, rng, old=rng.random() < OLD)


def _date(row: dict[str, str], rng: Random, *, old: bool) -> dict[str, str]:
    days = rng.randint(*OLD_DAYS) if old else rng.randint(1, FRESH_DAYS)
    day = date(2026, 1, 1) - timedelta(days=days)
    host = row["source"].lower().removeprefix("the ").replace(" ", "-")
    url = f"https://{host}.{HOST}/{day:%Y/%m/%d}/{rng.getrandbits(40):010x}"
    return row | {"published": day.isoformat(), "url": url}


def _open(entity: Entity, wordings: Sequence[str], rng: Random) -> str:
    noun = f"{'an' if entity.noun[0] in 'aeiou' else 'a'} {entity.noun}"
    return _begin(rng.choice(wordings).format(s=entity.name, noun=noun))


def _state(subject: str, fact: ToyFact, shown: str, rng: Random, when: str = "") -> str:
    return _begin(rng.choice(fact.wordings).format(s=subject, s_low=subject, o=shown, when=when))


def _state_all(story: Story, rng: Random) -> list[str]:
    sentences = []
    for fact in story.facts:
        value = fact.value
        if value is not None:
            when = f"{'on' if value.day else 'in'} {value.text}"
            sentences.append(_state(story.target.name, fact, value.text, rng, when))
    return sentences


def _begin(sentence: str) -> str:
    return sentence[0].upper() + sentence[1:]


def _cut(sentences: Sequence[str], rng: Random) -> str:
    paragraphs: list[list[str]] = [[]]
    for sentence in sentences:
        if len(paragraphs[-1]) >= rng.randint(2, 4):
            paragraphs.append([])
        paragraphs[-1].append(sentence)
    return "\n\n".join(map(" ".join, paragraphs))
