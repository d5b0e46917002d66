"""The finished world: entities, facts, redirects and who mentions whom, before anything is written.

The same world a year on: which facts have changed, and how.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from random import Random

from pipelines.toy.knowledge import (
    MONTHS,
    Entity,
    Fact,
    Value,
    WorldConfig,
    describe_entities,
    hide_facts,
    list_entities,
    relate_entities,
)
from pipelines.toy.names import fold_accents, name_entities

COUNTED = ("population", "attendance", "visitors", "employees", "students", "circulation", "speakers")
"""Counts that are taken anew every year or so."""
OFFICES = ("leader", "head")
"""Relations whose objects change places: one loses the office and takes another's."""
COUNTED_SHARE, OFFICE_SHARE, OWNER_SHARE, CORRECTED_SHARE = 0.7, 0.4, 0.06, 0.01


@dataclass(frozen=True, slots=True)
class Change:
    """A fact that is true at first and another one that took its place."""

    before: Fact
    after: Fact


def age_facts(
    facts: Sequence[Fact], entities: Sequence[Entity], seed: int
) -> tuple[tuple[Fact, ...], tuple[Change, ...]]:
    """Return the facts of a year later, each in its place, and those that changed.

    Counts are taken anew, offices and owners change, and one in a hundred of the other literals is corrected.
    """
    rng = Random(f"{seed}:later")
    aged = list(facts)
    for place, fact in enumerate(facts):
        if fact.value is not None:
            share = COUNTED_SHARE if fact.relation in COUNTED else CORRECTED_SHARE
            value = _change_value(fact.value, rng) if rng.random() < share else None
            aged[place] = fact if value is None else replace(fact, value=value)
    for place, number in (*_swap_offices(facts, entities, rng), *_sell(facts, rng)):
        aged[place] = replace(facts[place], object=number)
    changes = (Change(before, after) for before, after in zip(facts, aged, strict=True) if before != after)
    return tuple(aged), tuple(changes)


def _change_value(value: Value, rng: Random) -> Value | None:
    """Return a value near another one, None for words."""
    if value.kind == "count":
        number = int(value.number)
        step = max(1, int(number * rng.uniform(0.004, 0.05)))
        number += step if rng.random() < 0.7 or number <= step else -step
        return replace(value, text=f"{number:,}", number=float(number))
    if value.kind == "quantity":
        amount = value.number + rng.choice((1.0, 2.0))
        return replace(value, text=f"{amount:,g} {value.text.rpartition(' ')[2]}", number=amount)
    if value.kind == "date":
        year = int(value.number) - 1
        shown = f"{value.day} {MONTHS[value.month - 1]} {year}" if value.day else str(year)
        return replace(value, text=shown, number=float(year))
    return None


def _swap_offices(facts: Sequence[Fact], entities: Sequence[Entity], rng: Random) -> Iterator[tuple[int, int]]:
    """Yield (place, new object): those who change office pass theirs on in a circle, among subjects of one kind."""
    groups: dict[tuple[str, str], list[int]] = defaultdict(list)
    for place, fact in enumerate(facts):
        if fact.relation in OFFICES and rng.random() < OFFICE_SHARE:
            groups[fact.relation, entities[fact.subject].subtype.name].append(place)
    for places in groups.values():
        if len(places) > 1:
            for place, other in zip(places, (*places[1:], places[0]), strict=True):
                yield place, facts[other].object or 0


def _sell(facts: Sequence[Fact], rng: Random) -> Iterator[tuple[int, int]]:
    """Yield (place, new object) of what is sold to somebody who owns something else."""
    owners = sorted({fact.object for fact in facts if fact.relation == "owner" and fact.object is not None})
    for place, fact in enumerate(facts):
        if fact.relation == "owner" and rng.random() < OWNER_SHARE:
            others = [owner for owner in owners if owner not in (fact.object, fact.subject)]
            if others:
                yield place, rng.choice(others)


@dataclass(frozen=True, slots=True)
class Redirect:
    """A redirect page: ``title`` leads to ``target``, perhaps to a section of it."""

    title: str
    target: str
    fragment: str = ""


@dataclass(frozen=True, slots=True)
class World:
    """Everything true about a world and everything its pages will say.

    Attributes:
        facts_of: facts by subject, in the order in which the infobox lists them.
        redirects: all redirects, chains included, sorted by title.
        shortcuts: redirect titles of an entity that links may use instead of its title.
        mentions: entities that a page names in passing, without a fact between them.
        changes: facts that took the place of others since the first snapshot; none in that one.
    """

    config: WorldConfig
    entities: tuple[Entity, ...]
    facts: tuple[Fact, ...]
    facts_of: Mapping[int, tuple[Fact, ...]]
    redirects: tuple[Redirect, ...]
    shortcuts: Mapping[int, tuple[str, ...]]
    mentions: Mapping[int, tuple[int, ...]]
    changes: tuple[Change, ...] = ()

    def object_of(self, subject: int, relation: str) -> Entity | None:
        """The first object of a relation, or None."""
        for fact in self.facts_of.get(subject, ()):
            if fact.relation == relation and fact.object is not None:
                return self.entities[fact.object]
        return None

    def country_of(self, entity: Entity) -> Entity | None:
        """The country an entity lies in, through at most three relations."""
        for _ in range(3):
            if entity.subtype.name == "country":
                return entity
            steps = (
                self.object_of(entity.number, name)
                for name in (
                    "country",
                    "location",
                    "headquarters",
                    "birth_place",
                    "range",
                    "held_at",
                    "creator",
                    "builder",
                )
            )
            following = next((step for step in steps if step is not None), None)
            if following is None:
                return None
            entity = following
        return entity if entity.subtype.name == "country" else None


def build_world(config: WorldConfig, later: bool = False) -> World:
    """Make the whole world in memory, or the same world a year later; the same configuration makes the same world."""
    entities, related = relate_entities(list_entities(config), config.seed)
    entities = name_entities(entities, related, config.seed)
    facts = hide_facts((*related, *describe_entities(entities, config.seed)), config)
    changes: tuple[Change, ...] = ()
    if later:
        facts, changes = age_facts(facts, entities, config.seed)
    facts_of: dict[int, list[Fact]] = defaultdict(list)
    for fact in facts:
        facts_of[fact.subject].append(fact)
    redirects, shortcuts = _plan_redirects(entities, Random(f"{config.seed}:redirects"))
    return World(
        config=config,
        entities=entities,
        facts=facts,
        facts_of={number: tuple(group) for number, group in facts_of.items()},
        redirects=redirects,
        shortcuts=shortcuts,
        mentions=_draw_mentions(entities, Random(f"{config.seed}:mentions")),
        changes=changes,
    )


def _plan_redirects(
    entities: tuple[Entity, ...], rng: Random
) -> tuple[tuple[Redirect, ...], dict[int, tuple[str, ...]]]:
    """Aliases that only one entity claims become redirects; some get a redirect to the redirect, or to a section."""
    claims: dict[str, int] = defaultdict(int)
    for entity in entities:
        for alias, _ in entity.aliases:
            claims[alias.casefold()] += 1
    reserved = {entity.title.casefold() for entity in entities} | {entity.name.casefold() for entity in entities}
    redirects: dict[str, Redirect] = {}
    shortcuts: dict[int, tuple[str, ...]] = {}
    for entity in entities:
        own = [
            alias for alias, _ in entity.aliases if claims[alias.casefold()] == 1 and alias.casefold() not in reserved
        ]
        for alias in own:
            redirects[alias] = Redirect(alias, entity.title)
        if own:
            shortcuts[entity.number] = tuple(own)
        for extra in _plan_odd_redirects(entity, own, rng):
            if extra.title.casefold() not in reserved and claims[extra.title.casefold()] == 0:
                redirects.setdefault(extra.title, extra)
    return tuple(redirects[title] for title in sorted(redirects)), shortcuts


def _plan_odd_redirects(entity: Entity, own: list[str], rng: Random) -> list[Redirect]:
    """Chains (``X, the bridge`` to ``X ascii`` to ``X``) and redirects to a section, one entity in thirty each."""
    odd = []
    if own and rng.random() < 0.03:
        odd.append(Redirect(f"{fold_accents(entity.name)}, the {entity.subtype.name}", own[0]))
    if entity.subtype.kind != "concept" and (entity.number % 40 == 3 or rng.random() < 0.01):
        odd.append(Redirect(f"History of {entity.title}", entity.title, "History"))
    return odd


def _draw_mentions(entities: tuple[Entity, ...], rng: Random) -> dict[int, tuple[int, ...]]:
    """Two to seven entities each, drawn by fame: this gives in-degrees their Zipf tail."""
    sums, total = [], 0.0
    for entity in entities:
        total += entity.fame
        sums.append(total)
    mentions = {}
    for entity in entities:
        drawn = rng.choices(entities, cum_weights=sums, k=rng.randint(2, 7))
        mentions[entity.number] = tuple(dict.fromkeys(each.number for each in drawn if each.number != entity.number))
    return mentions
