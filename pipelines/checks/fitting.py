"""The entities that a question's chain may lead to, looked at as generously as the corpus allows.

The query itself (:mod:`pipelines.graph.query`) follows what infoboxes show, one value a field. Here every value of a
field counts, whatever is open counts as possible, and articles are looked up as for near misses.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from pipelines.graph.ground import Ground
from pipelines.graph.matching import match_constraint, read_field
from pipelines.graph.mentions import find_object
from pipelines.graph.query import MENTIONS, Query, follow_hop, list_constraints_of
from pipelines.graph.rivals import list_rivals, resolve_rival
from pipelines.graph.values import Match
from schemas.proofs import Constraint, Hop

MAX_FITTING = 64
"""Entities at one node of the chain that are followed further."""
MAX_RIVALS = 100
"""Articles that may be looked up for one entity at the end of a backward hop."""
MAX_LINKED = 200
"""Articles that a page links to of which its prose may say that they are another value."""


@dataclass(frozen=True, slots=True)
class Ends:
    """Entities at the end of a chain."""

    certain: frozenset[int]
    """Those that the corpus says fit."""
    possible: frozenset[int]
    """Those that nothing speaks against."""
    capped: bool
    """Whether there may be more: a bound was reached."""


@dataclass(frozen=True, slots=True)
class _Step:
    """Where one hop leads from one entity."""

    certain: set[int]
    possible: set[int]
    capped: bool = False


def list_fitting_ends(ground: Ground, query: Query) -> Ends:
    """Return the entities that fit or may fit the end of a query's chain.

    At most ``MAX_FITTING`` are followed at each node, those that fit first.
    """
    certain, possible, capped = {query.anchor}, set[int](), False
    for hop in query.hops:
        sure, maybe = set[int](), set[int]()
        for node in (*sorted(certain), *sorted(possible)):
            step = _follow(ground, query, node, hop)
            (sure if node in certain else maybe).update(step.certain)
            maybe |= step.possible
            capped |= step.capped
        capped |= len(sure | maybe) > MAX_FITTING
        certain = set(sorted(sure)[:MAX_FITTING])
        possible = set(sorted(maybe - sure)[: MAX_FITTING - len(certain)])
    return Ends(frozenset(certain), frozenset(possible), capped)


def _follow(ground: Ground, query: Query, node: int, hop: Hop) -> _Step:
    here = list_constraints_of(query, hop.index)
    if hop.backward:
        return _follow_backward(ground, query, node, hop)
    found = follow_hop(ground, node, hop, query.names)
    if hop.relation == MENTIONS:
        return _sort_out(ground, found, (), here)
    field = read_field(ground.corpus, node, hop.relation)
    shown = {fact.target for fact in field.facts if fact.target >= 0 and fact.target != node}
    named = {ground.corpus.find(fact.text) for fact in field.facts if fact.target < 0} - {None, node}
    linked = ground.corpus.graph.targets_of(node).tolist()
    told = _list_told(ground, node, hop.relation, linked[:MAX_LINKED], shown)
    step = _sort_out(ground, shown, (*sorted(number for number in named if number is not None), *told), here)
    # What a field holds beside the values that could be read may be anything.
    return replace(step, capped=len(linked) > MAX_LINKED or bool(field.facts and not field.complete))


def _list_told(ground: Ground, node: int, relation: str, linked: Sequence[int], shown: set[int]) -> Iterator[int]:
    """Yield linked articles like the values shown of which the prose states the relation."""
    corpus = ground.corpus
    kinds = {corpus.page(number).type for number in shown} - {""}
    for number in linked:
        if number in shown or number == node or (kinds and corpus.page(number).type not in kinds):
            continue
        if find_object(ground, node, relation, number) == "stated":
            yield number


def _follow_backward(ground: Ground, query: Query, node: int, hop: Hop) -> _Step:
    """Follow a backward hop by index, and look up who else may be at its end."""
    here = list_constraints_of(query, hop.index)
    single = replace(
        query,
        anchor=node,
        hops=(hop.model_copy(update={"index": 1}),),
        constraints=tuple(constraint.model_copy(update={"node": 1}) for constraint in here),
    )
    step = _sort_out(ground, follow_hop(ground, node, hop, query.names), (), here)
    rivals = list_rivals(ground, single, 1, MAX_RIVALS)
    if rivals is None:
        return replace(step, capped=True)
    for rival in rivals:
        resolution = resolve_rival(ground, rival)
        if resolution == "stated":
            step.certain.add(rival.number)
        elif resolution == "unclear":
            step.possible.add(rival.number)
    return step


def _sort_out(
    ground: Ground, sure: frozenset[int] | set[int], maybe: Sequence[int], constraints: Sequence[Constraint]
) -> _Step:
    """Return which of some entities fit all constraints and which may; what speaks against one leaves it out."""
    step = _Step(set(), set())
    for number in sorted({*sure, *maybe}):
        matches = [match_constraint(ground.corpus, number, constraint) for constraint in constraints]
        if Match.NO in matches:
            continue
        fits = number in sure and all(match is Match.YES for match in matches)
        (step.certain if fits else step.possible).add(number)
    return step
