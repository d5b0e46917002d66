"""The knowledge base: who exists, when, how famous, and every fact that holds between them."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from random import Random

from pipelines.world.attributes import ATTRIBUTES
from pipelines.world.config import WorldConfig
from pipelines.world.ontology import Cardinality, Relation, Subtype
from pipelines.world.relations import RELATIONS
from pipelines.world.subtypes import SUBTYPES
from pipelines.world.values import Value, draw_value

ZIPF_EXPONENT = 0.85
LAST_CERTAIN_DEATH = 1929
UNLINKED_SHARE = 0.06
_TRIES = 12


@dataclass(frozen=True, slots=True)
class Entity:
    """One thing of the world.

    Attributes:
        number: position in the world's tuple of entities.
        noun: the noun phrase of its lead sentence.
        fame: Zipf weight; how readily others link to it.
        year: principal year (birth, opening, publication, discovery).
        name: bare name; ``title`` adds a qualifier where names clash.
        aliases: pairs of (alias, kind), kinds ``ascii``, ``surname``, ``acronym``, ``demonym``, ``variant``.
    """

    number: int
    subtype: Subtype
    noun: str
    fame: float
    year: int
    name: str = ""
    title: str = ""
    aliases: tuple[tuple[str, str], ...] = ()

    @property
    def qid(self) -> str:
        """Wikidata item, from a block no real item uses."""
        return f"Q{900_000_001 + self.number}"


@dataclass(frozen=True, slots=True)
class Fact:
    """One true statement.

    Attributes:
        key: infobox parameter that holds it, or would.
        object: number of the object entity, or None for a literal ``value``.
        shown: whether the infobox holds it; all objects of one relation share this.
        linked: whether the infobox links the object rather than only naming it.
    """

    subject: int
    relation: str
    key: str
    cardinality: Cardinality
    prop: str
    wordings: tuple[str, ...]
    object: int | None = None
    value: Value | None = None
    shown: bool = True
    linked: bool = True


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


def relate_entities(entities: Sequence[Entity], seed: int) -> tuple[tuple[Entity, ...], tuple[Fact, ...]]:
    """Draw every relation; years of subjects that a maker or founder dates are moved to fit.

    Returns:
        The entities with their final years, and the facts in the order of the relation table.
    """
    weaver = _Weaver(list(entities))
    facts: list[Fact] = []
    for place, relation in enumerate(RELATIONS):
        rng = Random(f"{seed}:relation:{place}")
        made = weaver.invert(relation, facts, rng) if relation.inverse_of else weaver.draw(relation, rng)
        facts.extend(made)
    return tuple(weaver.entities), tuple(facts)


def describe_entities(entities: Sequence[Entity], seed: int) -> tuple[Fact, ...]:
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
                    Fact(entity.number, attribute.name, key, "n:1", attribute.prop, attribute.wordings, value=value)
                )
    return tuple(facts)


def hide_facts(facts: Sequence[Fact], config: WorldConfig) -> tuple[Fact, ...]:
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
    """Share ``total`` out by weight, at least one each; countries and languages are counted, not weighted."""
    fixed = {"country": min(10, 3 + total // 800), "language": 2 if total < 500 else 4}
    weighted = [subtype for subtype in SUBTYPES if subtype.name not in fixed]
    free = total - sum(fixed.values()) - len(weighted)
    whole = sum(subtype.weight for subtype in weighted)
    counts = {subtype.name: 1 + int(free * subtype.weight / whole) for subtype in weighted} | fixed
    for subtype in sorted(weighted, key=lambda each: -each.weight)[: total - sum(counts.values())]:
        counts[subtype.name] += 1
    return [(subtype, counts[subtype.name]) for subtype in SUBTYPES]


class _Weaver:
    """Draws relations over one list of entities, remembering which objects are taken."""

    def __init__(self, entities: list[Entity]) -> None:
        self.entities = entities
        self._members: dict[str, list[int]] = defaultdict(list)
        for entity in entities:
            self._members[entity.subtype.name].append(entity.number)
        self._taken: dict[str, set[int]] = defaultdict(set)
        self._dated: set[int] = set()

    def draw(self, relation: Relation, rng: Random) -> Iterator[Fact]:
        """Facts of one relation over all its subjects."""
        pool = [number for name in relation.objects for number in self._members[name]]
        weights = _accumulate([self.entities[number].fame for number in pool])
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

    def invert(self, relation: Relation, facts: Sequence[Fact], rng: Random) -> Iterator[Fact]:
        """Facts of an inverse relation: for each object of the other one, its most famous subjects."""
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
        """A fitting object: by fame in a few tries, else the first that fits from a random place on, else None."""
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

    def _state(self, relation: Relation, subject: int, found: int, rng: Random) -> Iterator[Fact]:
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

    def _fact(self, relation: Relation, subject: int, found: int) -> Fact:
        key = relation.key_for(self.entities[subject].subtype.name)
        return Fact(subject, relation.name, key, relation.cardinality, relation.prop, relation.wordings, object=found)


def _accumulate(weights: Sequence[float]) -> list[float]:
    total, sums = 0.0, []
    for weight in weights:
        total += weight
        sums.append(total)
    return sums
