"""The same world a year on: which facts have changed, and how."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from random import Random

from pipelines.world.knowledge import Entity, Fact
from pipelines.world.values import MONTHS, Value

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
