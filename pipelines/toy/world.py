"""The world before anything is written: entities, facts, redirects and mentions."""

import math
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from random import Random

from pydantic import Field

from pipelines.config.settings import GeneratedWorld
from pipelines.graph.values import MONTHS
from pipelines.toy.names import fold_accents, name_entities
from pipelines.toy.ontology import (
    ATTRIBUTES,
    RELATIONS,
    SUBTYPES,
    Entity,
    Relation,
    Subtype,
    ToyAttribute,
    ToyFact,
    Value,
)


class WorldConfig(GeneratedWorld):
    """Everything that decides the bytes of a world; the keys that a configuration has not are for tests."""

    missing: float = Field(0.1, ge=0.0, le=0.9, description="share of infobox fields left to the prose")
    snapshot: str = Field("20260101", pattern=r"^(19|20)\d\d(0[1-9]|1[0-2])(0[1-9]|[12]\d)$", description="dump date")
    signs: float = Field(0.03, ge=0.0, le=0.5, description="share of lead pictures with a sign that names the entity")
    simple: float = Field(
        0.02, ge=0.0, le=0.5, description="share of lead pictures that are a flag, an emblem, a map or a card of text"
    )


LAST_YEAR = 2020


def draw_value(attribute: ToyAttribute, year: int, rng: Random) -> Value | None:
    """Draw a value of ``attribute`` for an entity whose principal year is ``year``."""
    if attribute.kind == "date":
        return _draw_date(attribute, year, rng)
    if attribute.kind == "text":
        return Value("text", rng.choice(attribute.words))
    amount = _draw_amount(attribute.low, attribute.high, rng)
    if attribute.kind == "count":
        return Value("count", f"{int(amount):,}", float(int(amount)))
    unit = {"km2": "km²"}.get(attribute.unit, attribute.unit)
    return Value("quantity", f"{amount:,g} {unit}", amount, unit=attribute.unit)


def _draw_date(attribute: ToyAttribute, year: int, rng: Random) -> Value | None:
    when = year + rng.randint(int(attribute.low), int(attribute.high))
    if when > LAST_YEAR:
        return None
    if rng.random() >= attribute.day_share:
        return Value("date", str(when), float(when))
    month, day = rng.randint(1, 12), rng.randint(1, 28)
    return Value("date", f"{day} {MONTHS[month - 1]} {when}", float(when), month, day)


def _draw_amount(low: float, high: float, rng: Random) -> float:
    amount = math.exp(rng.uniform(math.log(low), math.log(high + 1)))
    if high < 1000 and amount < 100:
        return round(amount, 1) if rng.random() < 0.5 else float(round(amount))
    return float(round(amount))


ZIPF_EXPONENT = 0.85
LAST_CERTAIN_DEATH = 1929
UNLINKED_SHARE = 0.06
_TRIES = 12


def list_entities(config: WorldConfig) -> tuple[Entity, ...]:
    """Create the entities without names, ordered by subtype, with a Zipf law over a random order of fame."""
    rng = Random(f"{config.seed}:entities")
    subtypes = [subtype for subtype, count in _allot(config.entities) for _ in range(count)]
    boost = {"language": 0.0, "country": 0.0, "city": 0.35, "university": 0.5, "museum": 0.6}
    order = sorted(range(len(subtypes)), key=lambda n: rng.random() * boost.get(subtypes[n].name, 1.0))
    fame = dict.fromkeys(order, 0.0)
    for rank, number in enumerate(order):
        fame[number] = (rank + 2.0) ** -ZIPF_EXPONENT
    return tuple(
        Entity(number, subtype, rng.choice(subtype.nouns), fame[number], rng.randint(*subtype.years))
        for number, subtype in enumerate(subtypes)
    )


def relate_entities(entities: Sequence[Entity], seed: int) -> tuple[tuple[Entity, ...], tuple[ToyFact, ...]]:
    """Draw every relation; years of subjects that a maker or founder dates are moved to fit."""
    weaver = _Weaver(list(entities))
    facts: list[ToyFact] = []
    for place, relation in enumerate(RELATIONS):
        rng = Random(f"{seed}:relation:{place}")
        made = weaver.invert(relation, facts, rng) if relation.inverse_of else weaver.draw(relation, rng)
        facts.extend(made)
    return tuple(weaver.entities), tuple(facts)


def describe_entities(entities: Sequence[Entity], seed: int) -> tuple[ToyFact, ...]:
    """Draw the literal attributes of every entity from its year and its own random stream."""
    facts = []
    for entity in entities:
        rng = Random(f"{seed}:attributes:{entity.number}")
        for attribute in ATTRIBUTES:
            if entity.subtype.name not in attribute.subjects or rng.random() >= attribute.chance:
                continue
            value = draw_value(attribute, entity.year, rng)
            if value is not None:
                key = attribute.key_for(entity.subtype.name)
                facts.append(
                    ToyFact(entity.number, attribute.name, key, "n:1", attribute.prop, attribute.wordings, value=value)
                )
    return tuple(facts)


def hide_facts(facts: Sequence[ToyFact], config: WorldConfig) -> tuple[ToyFact, ...]:
    """Drop whole infobox fields with probability ``config.missing``, and unlink a few of the others."""
    fields: dict[tuple[int, str], tuple[bool, bool]] = {}
    rng = Random(f"{config.seed}:missing")
    for fact in facts:
        field = (fact.subject, fact.key)
        if field not in fields:
            hidden, unlinked = rng.random() < config.missing, rng.random() < UNLINKED_SHARE
            fields[field] = (not hidden, not unlinked)
    return tuple(
        replace(fact, shown=fields[fact.subject, fact.key][0], linked=fields[fact.subject, fact.key][1])
        for fact in facts
    )


def _allot(total: int) -> list[tuple[Subtype, int]]:
    fixed = {"country": min(10, 3 + total // 800), "language": 2 if total < 500 else 4}
    weighted = [subtype for subtype in SUBTYPES if subtype.name not in fixed]
    free = total - sum(fixed.values()) - len(weighted)
    whole = sum(subtype.weight for subtype in weighted)
    counts = {subtype.name: 1 + int(free * subtype.weight / whole) for subtype in weighted} | fixed
    for subtype in sorted(weighted, key=lambda each: -each.weight)[: total - sum(counts.values())]:
        counts[subtype.name] += 1
    return [(subtype, counts[subtype.name]) for subtype in SUBTYPES]


class _Weaver:
    def __init__(self, entities: list[Entity]) -> None:
        self.entities = entities
        self._members: dict[str, list[int]] = defaultdict(list)
        for entity in entities:
            self._members[entity.subtype.name].append(entity.number)
        self._taken: dict[str, set[int]] = defaultdict(set)
        self._dated: set[int] = set()

    def draw(self, relation: Relation, rng: Random) -> Iterator[ToyFact]:
        pool = [number for name in relation.objects for number in self._members[name]]
        weights = list(accumulate(self.entities[number].fame for number in pool))
        taken = self._taken[relation.name]
        for subject in [number for name in relation.subjects for number in self._members[name]]:
            if rng.random() >= relation.chance or not pool or (relation.symmetric and subject in taken):
                continue
            if relation.name == "death_place" and self.entities[subject].year > LAST_CERTAIN_DEATH:
                continue
            wanted = 1 if relation.most == 1 or rng.random() < 0.5 else rng.randint(2, relation.most)
            chosen: list[int] = []
            for _ in range(wanted):
                found = self._choose(relation, subject, (pool, weights), chosen, rng)
                if found is not None:
                    chosen.append(found)
                    yield from self._state(relation, subject, found, rng)

    def invert(self, relation: Relation, facts: Sequence[ToyFact], rng: Random) -> Iterator[ToyFact]:
        subjects: dict[int, list[int]] = defaultdict(list)
        for fact in facts:
            if fact.relation == relation.inverse_of and fact.object is not None:
                subjects[fact.object].append(fact.subject)
        for maker in sorted(subjects):
            if rng.random() < relation.chance:
                works = sorted(subjects[maker], key=lambda number: (-self.entities[number].fame, number))
                for work in works[: relation.most]:
                    yield self._fact(relation, maker, work)

    def _choose(
        self, relation: Relation, subject: int, pool: tuple[list[int], list[float]], chosen: list[int], rng: Random
    ) -> int | None:
        numbers, weights = pool
        for _ in range(_TRIES):
            number = rng.choices(numbers, cum_weights=weights)[0]
            if self._fits(relation, subject, number, chosen):
                return number
        start = rng.randrange(len(numbers))
        for number in (numbers[start:] + numbers[:start])[:400]:
            if self._fits(relation, subject, number, chosen):
                return number
        return None

    def _fits(self, relation: Relation, subject: int, number: int, chosen: list[int]) -> bool:
        candidate = self.entities[number]
        if number == subject or number in chosen:
            return False
        if relation.cardinality != "n:1" and number in self._taken[relation.name]:
            return False
        if relation.since is not None and candidate.year < relation.since:
            return False
        if relation.dates and subject not in self._dated:
            return relation.gap is None or candidate.year + relation.gap[0] <= 2010
        if relation.gap is None:
            return True
        return relation.gap[0] <= self.entities[subject].year - candidate.year <= relation.gap[1]

    def _state(self, relation: Relation, subject: int, found: int, rng: Random) -> Iterator[ToyFact]:
        if relation.dates and relation.gap is not None and subject not in self._dated:
            made = self.entities[found].year + rng.randint(*relation.gap)
            self.entities[subject] = replace(self.entities[subject], year=min(made, 2012))
            self._dated.add(subject)
        if relation.cardinality != "n:1":
            self._taken[relation.name].add(found)
        yield self._fact(relation, subject, found)
        if relation.symmetric:
            self._taken[relation.name].add(subject)
            yield self._fact(relation, found, subject)

    def _fact(self, relation: Relation, subject: int, found: int) -> ToyFact:
        key = relation.key_for(self.entities[subject].subtype.name)
        return ToyFact(
            subject, relation.name, key, relation.cardinality, relation.prop, relation.wordings, object=found
        )


_LEADING_HOME = ("country", "location", "headquarters", "birth_place", "range", "held_at", "creator", "builder")
"""Relations by which the country of an entity is found, the first first."""


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
    """

    config: WorldConfig
    entities: tuple[Entity, ...]
    facts: tuple[ToyFact, ...]
    facts_of: Mapping[int, tuple[ToyFact, ...]]
    redirects: tuple[Redirect, ...]
    shortcuts: Mapping[int, tuple[str, ...]]
    mentions: Mapping[int, tuple[int, ...]]

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
            steps = (self.object_of(entity.number, name) for name in _LEADING_HOME)
            following = next((step for step in steps if step is not None), None)
            if following is None:
                return None
            entity = following
        return entity if entity.subtype.name == "country" else None


def build_world(config: WorldConfig) -> World:
    """Make the whole world in memory; the same configuration makes the same world."""
    entities, related = relate_entities(list_entities(config), config.seed)
    entities = name_entities(entities, related, config.seed)
    facts = hide_facts((*related, *describe_entities(entities, config.seed)), config)
    redirects, shortcuts = _plan_redirects(entities, Random(f"{config.seed}:redirects"))
    return World(
        config=config,
        entities=entities,
        facts=facts,
        facts_of=group_facts(facts),
        redirects=redirects,
        shortcuts=shortcuts,
        mentions=_draw_mentions(entities, Random(f"{config.seed}:mentions")),
    )


def group_facts(facts: Sequence[ToyFact]) -> Mapping[int, tuple[ToyFact, ...]]:
    """Return the facts of each subject, in their order."""
    groups: dict[int, list[ToyFact]] = defaultdict(list)
    for fact in facts:
        groups[fact.subject].append(fact)
    return {number: tuple(group) for number, group in groups.items()}


def _plan_redirects(
    entities: tuple[Entity, ...], rng: Random
) -> tuple[tuple[Redirect, ...], dict[int, tuple[str, ...]]]:
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
    odd = []
    if own and rng.random() < 0.03:
        odd.append(Redirect(f"{fold_accents(entity.name)}, the {entity.subtype.name}", own[0]))
    if entity.subtype.kind != "concept" and (entity.number % 40 == 3 or rng.random() < 0.01):
        odd.append(Redirect(f"History of {entity.title}", entity.title, "History"))
    return odd


def _draw_mentions(entities: tuple[Entity, ...], rng: Random) -> dict[int, tuple[int, ...]]:
    sums, mentions = list(accumulate(entity.fame for entity in entities)), {}
    for entity in entities:
        drawn = rng.choices(entities, cum_weights=sums, k=rng.randint(2, 7))
        mentions[entity.number] = tuple(dict.fromkeys(each.number for each in drawn if each.number != entity.number))
    return mentions
