"""A toy world a year after its snapshot, for checks that compare two dumps."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from random import Random

from pipelines.toy.ontology import Entity, ToyFact, Value
from pipelines.toy.publishing import write_dump
from pipelines.toy.wikitext import compose_wiki
from pipelines.toy.world import WorldConfig, build_world, group_facts

COUNTED = ("population", "attendance", "visitors", "employees", "students", "circulation", "speakers")
"""Counts that change every year or so."""
OFFICES = ("leader", "head")
"""Relations whose objects change places: one loses the office and takes another's."""
COUNTED_SHARE, OFFICE_SHARE, CORRECTED_SHARE = 0.7, 0.4, 0.01


def age_facts(facts: Sequence[ToyFact], entities: Sequence[Entity], seed: int) -> tuple[ToyFact, ...]:
    """Return the facts of a year later, each in its place.

    Counts are taken anew, offices change hands, and one in a hundred of the other literals is corrected.
    """
    rng = Random(f"{seed}:later")
    aged = list(facts)
    for place, fact in enumerate(facts):
        if fact.value is not None:
            share = COUNTED_SHARE if fact.relation in COUNTED else CORRECTED_SHARE
            value = _change_value(fact.value, rng) if rng.random() < share else None
            aged[place] = fact if value is None else replace(fact, value=value)
    for place, number in _swap_offices(facts, entities, rng):
        aged[place] = replace(facts[place], object=number)
    return tuple(aged)


def _change_value(value: Value, rng: Random) -> Value | None:
    if value.kind == "count":
        number = int(value.number)
        step = max(1, int(number * rng.uniform(0.004, 0.05)))
        number += step if rng.random() < 0.7 or number <= step else -step
        return replace(value, text=f"{number:,}", number=float(number))
    if value.kind == "quantity":
        amount = value.number + rng.choice((1.0, 2.0))
        return replace(value, text=f"{amount:,g} {value.text.rpartition(' ')[2]}", number=amount)
    return None


def _swap_offices(facts: Sequence[ToyFact], entities: Sequence[Entity], rng: Random) -> Iterator[tuple[int, int]]:
    groups: dict[tuple[str, str], list[int]] = defaultdict(list)
    for place, fact in enumerate(facts):
        if fact.relation in OFFICES and rng.random() < OFFICE_SHARE:
            groups[fact.relation, entities[fact.subject].subtype.name].append(place)
    for places in groups.values():
        if len(places) > 1:
            for place, other in zip(places, (*places[1:], places[0]), strict=True):
                yield place, facts[other].object or 0


def write_later(folder: Path, config: WorldConfig) -> Path:
    """Write the dump of a world a year later and return its path."""
    world = build_world(config)
    facts = age_facts(world.facts, world.entities, config.seed)
    wiki = compose_wiki(replace(world, facts=facts, facts_of=group_facts(facts)), {})
    folder.mkdir(parents=True, exist_ok=True)
    dump = folder / f"toywiki-{int(config.snapshot[:4]) + 1}{config.snapshot[4:]}-pages-articles-multistream.xml.bz2"
    write_dump(wiki.pages, dump)
    return dump
