"""Entities that would fit a node too, were a fact true that their infobox does not show (research/quality.md, U2).

Which entities are looked at. A rival of the entity at the end of a backward hop has nothing against it and something
open. One whose infobox shows the relation is found by value. One whose infobox leaves the relation open is
found by what its article would have to do to state it: link to the previous entity, or name it in the text. All others
are refuted in bulk: their articles say nothing of the previous entity at all.

What is sound: no entity is passed over whose article links to the previous entity, or holds one of its names in a
passage of the search index (prose and infobox) or in an unlinked value of the same field. What is assumed: an article
that states a relation does one of these, so pronouns, descriptions, names under three letters, names cut by the end of
a passage and names only in other templates are not seen; a field that shows other values shows all of them, unless its
relation often has several; a type shown is right where :func:`matching.match_type` says no. Lists and disambiguation
pages are about no entity.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from pipelines.corpus.store import Corpus
from pipelines.graph.ground import Ground
from pipelines.graph.matching import TYPE, is_of_other_domain, match_constraint, match_relation
from pipelines.graph.mentions import find_literal, find_object, says_in_lead
from pipelines.graph.query import Query, follow_chain, list_constraints_of
from pipelines.graph.values import Match, fold_names
from pipelines.names import fold_name
from schemas.proofs import Constraint, Resolution

MAX_MENTIONS = 20_000
"""Passages that may name the previous entity, and articles that may link to it: with more nothing is looked up."""
KEPT_NAMES = 1 << 14


@dataclass(frozen=True, slots=True)
class Rival:
    """An entity with nothing against it and something open."""

    number: int
    relation: str
    """Relation of the hop when that is open, else empty."""
    previous: int
    """The entity that the hop leaves."""
    constraints: tuple[Constraint, ...]
    """Constraints that are open."""

    @property
    def unknown(self) -> tuple[str, ...]:
        """What is open, by relation, ``type`` among them."""
        return tuple(dict.fromkeys(filter(None, (self.relation, *(part.relation for part in self.constraints)))))


def list_rivals(ground: Ground, query: Query, node: int, limit: int) -> tuple[Rival, ...] | None:
    """Return the rivals at the end of a backward hop, ascending; none of a forward hop.

    Args:
        ground: the corpus with its indexes.
        query: whose chain leads to the node.
        node: index of the node, from 1.
        limit: rivals listed at most.

    Returns:
        None when there are more than ``limit``, or more articles than ``MAX_MENTIONS`` name the previous entity.
    """
    hop = query.hops[node - 1]
    if not hop.backward:
        return ()
    sets = follow_chain(ground, query, query.anchor)
    fitting = sets[node] if node < len(sets) else frozenset()
    here, found = list_constraints_of(query, node), dict[int, Rival]()
    for previous in sorted(sets[node - 1]) if node <= len(sets) else ():
        candidates = _list_candidates(ground, hop.relation, previous)
        if candidates is None:
            return None
        for number in sorted(candidates - fitting - found.keys()):
            rival = _judge(ground, hop.relation, previous, number, here)
            if rival is not None:
                found[number] = rival
            if len(found) > limit:
                return None
    return tuple(found[number] for number in sorted(found))


def resolve_rival(ground: Ground, rival: Rival) -> Resolution:
    """Return what a rival's article says of what is open: one open fact of which it says nothing refutes it.

    A type is never refuted so: an article need not use the noun of the question. With nothing open the rival fits, and
    all is stated.
    """
    results: set[Resolution] = set()
    for constraint in rival.constraints:
        if constraint.relation == TYPE:
            results.add("unclear")
        else:
            results.add(find_literal(ground, rival.number, constraint.relation, constraint.value))
        if "absent" in results:
            return "absent"
    if rival.relation:
        results.add(find_object(ground, rival.number, rival.relation, rival.previous))
    return "absent" if "absent" in results else "unclear" if "unclear" in results else "stated"


def _list_candidates(ground: Ground, relation: str, previous: int) -> set[int] | None:
    """Return the entities that show the relation to an entity, link to it or name it; None when too many name it."""
    named = _find_named(ground.corpus, previous)
    linking = ground.corpus.graph.sources_of(previous)
    if named is None or len(linking) > MAX_MENTIONS:
        return None
    shown = (*ground.facts.subjects_of(relation, previous), *ground.facts.naming(relation, previous))
    return {*linking.tolist(), *named, *shown} - {previous}


@lru_cache(maxsize=KEPT_NAMES)
def _find_named(corpus: Corpus, node: int) -> tuple[int, ...] | None:
    folded = fold_names(corpus, node)
    # As they are written, too: folding spells out letters that the search index keeps.
    written = [alias for alias in corpus.aliases(node) if fold_name(alias) in folded]
    return corpus.find_phrases([*written, *sorted(folded)], MAX_MENTIONS)


def _judge(
    ground: Ground, relation: str, previous: int, number: int, constraints: Sequence[Constraint]
) -> Rival | None:
    """Return an entity as a rival, or None when something speaks against it.

    One with nothing open fits and was not counted: the index and the page disagree, which is no reason to trust either.
    """
    page = ground.corpus.page(number)
    if page.is_list or page.is_disambiguation:
        return None
    match = match_relation(ground.corpus, number, relation, previous)
    if match is Match.NO and not _may_have_more(ground, relation, previous, number):
        return None
    unclear = []
    # The type last: telling whether an entity is of two types reads its article.
    for constraint in sorted(constraints, key=lambda constraint: constraint.relation == TYPE):
        fits = match_constraint(ground.corpus, number, constraint)
        if fits is Match.NO and not _may_be_too(ground.corpus, number, constraint):
            return None
        if fits is not Match.YES:
            unclear.append(constraint)
    ordered = tuple(constraint for constraint in constraints if constraint in unclear)
    return Rival(number, "" if match is Match.YES else relation, previous, ordered)


def _may_be_too(corpus: Corpus, number: int, constraint: Constraint) -> bool:
    """Say whether an entity of another type is of the wanted one too: its lead names both."""
    if constraint.relation != TYPE or is_of_other_domain(corpus.page(number), constraint.value):
        return False
    return says_in_lead(corpus, number, constraint.value)


def _may_have_more(ground: Ground, relation: str, previous: int, number: int) -> bool:
    """Say whether a field that shows others may have this value too: its relation often has several; prose says so."""
    return ground.facts.is_multiple(relation) and find_object(ground, number, relation, previous) == "stated"
