"""Two-sided uniqueness: a descriptor must fit one entity with the chain, and several without it.

One-sided uniqueness (OpenSearch-VL, equation 6) lets a descriptor name an entity for the whole world, which leaves the
picture out of the question; the second side closes that. What infoboxes do not show can only add entities, so it leaves
the second side safe and the first one not: there, entities that may fit are looked up in their articles.
"""

import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from pipelines.checks.verdicts import PASSED, CheckResult
from pipelines.corpus.store import Corpus
from pipelines.graph.clauses import mask_names
from pipelines.graph.ground import Ground
from pipelines.graph.matching import read_field
from pipelines.graph.mentions import fold_text
from pipelines.graph.prose import Sentence, list_prose
from pipelines.graph.query import MENTIONS, Query, answer_query, count_alone, follow_chain
from pipelines.graph.rivals import list_rivals, resolve_rival
from pipelines.graph.values import fold_names
from schemas.proofs import Constraint, Count, Hop, NearMiss


@dataclass(frozen=True, slots=True)
class Fit:
    """How many entities fit a node of the chain, with the chain and without."""

    node: int
    chain: int
    alone: int
    capped: bool
    """True when ``alone`` stopped at the threshold: it is a lower bound."""

    def as_counts(self) -> tuple[Count, Count]:
        """Return the fit as the proof's counts."""
        return (
            Count(name="chain", node=self.node, value=self.chain, capped=False),
            Count(name="alone", node=self.node, value=self.alone, capped=self.capped),
        )


@dataclass(frozen=True, slots=True)
class NearMissSearch:
    """The entities that may fit a node as well, and what their articles say."""

    node: int
    looked_up: tuple[NearMiss, ...]
    """Those looked up, ascending by node number; the search ends with the first that is not refuted."""
    capped: bool
    """True when there were more than may be looked up; then none was."""


def count_fit(ground: Ground, query: Query, node: int, threshold: int) -> Fit:
    """Count the entities at a node of the chain (1 is the first bridge), ``alone`` up to ``threshold``."""
    sets = follow_chain(ground, query, query.anchor)
    chain = len(sets[node]) if node < len(sets) else 0
    alone = count_alone(ground, query, node, threshold)
    return Fit(node, chain, alone, alone >= threshold)


def check_fit(fit: Fit, threshold: int) -> CheckResult:
    """FAIL unless the chain leads to exactly one entity and the descriptor alone fits ``threshold`` or more."""
    if fit.chain != 1:
        return CheckResult("FAIL", "not-unique", f"{fit.chain} entities fit node {fit.node}")
    if fit.alone < threshold:
        return CheckResult("FAIL", "stands-alone", f"{fit.alone} entities fit node {fit.node} without the chain")
    return PASSED


def check_answer_unchanged(ground: Ground, query: Query, key: str) -> CheckResult:
    """FAIL when the query no longer has exactly the answer it had."""
    derived = sorted(answer_query(ground, query))
    if derived != [key]:
        return CheckResult("FAIL", "answer-changed", f"{derived} instead of [{key}]")
    return PASSED


def find_near_misses(ground: Ground, query: Query, node: int, cap: int) -> NearMissSearch:
    """Look up the entities that would fit the end of a backward hop, were a fact true that their infobox leaves open.

    A forward hop has none: it leads to the one value that its page shows, see :func:`check_single_value`. What is sound
    and what is assumed stands in :mod:`pipelines.graph.rivals`; what counts as a mention in
    :mod:`pipelines.graph.mentions`.

    Args:
        ground: the corpus with its indexes.
        query: with the constraints of the node.
        node: index of the node, from 1.
        cap: articles that may be looked up.
    """
    rivals = list_rivals(ground, query, node, cap)
    if rivals is None:
        return NearMissSearch(node, (), capped=True)
    looked_up: list[NearMiss] = []
    for rival in rivals:
        page, resolution = ground.corpus.page(rival.number), resolve_rival(ground, rival)
        looked_up.append(
            NearMiss(node=node, page_id=page.page_id, title=page.title, unknown=rival.unknown, resolution=resolution)
        )
        if resolution != "absent":
            break
    return NearMissSearch(node, tuple(looked_up), capped=False)


def check_near_misses(search: NearMissSearch) -> CheckResult:
    """UNKNOWN when an article may say, and FAIL when it says, that another entity fits too; UNKNOWN above the cap."""
    if search.capped:
        return CheckResult("UNKNOWN", "too-many-near-misses", f"too many entities may fit node {search.node}")
    for miss in search.looked_up:
        if miss.resolution != "absent":
            detail = f"{miss.title} may fit node {miss.node}: {', '.join(miss.unknown)} {miss.resolution}"
            return CheckResult("FAIL" if miss.resolution == "stated" else "UNKNOWN", "near-miss", detail)
    return PASSED


def check_single_value(ground: Ground, numbers: Sequence[int], hop: Hop) -> CheckResult:
    """FAIL (``multi-valued``) when a forward hop's field has several values, UNKNOWN when prose may say another one.

    Prose may say another value where a sentence states the relation and names, by a link or otherwise, another linked
    article of the same type as the value. A backward hop counts all entities with any value, and a quoted sentence has
    one blank, so they pass.

    Args:
        ground: the corpus with its indexes.
        numbers: the nodes of the path in the corpus, the anchor first.
        hop: one hop of the path.
    """
    if hop.backward or hop.relation == MENTIONS:
        return PASSED
    corpus, subject, value = ground.corpus, numbers[hop.index - 1], numbers[hop.index]
    field = read_field(corpus, subject, hop.relation)
    if len(field.facts) != 1 or not field.complete:
        shown = max(len(field.facts), *(fact.value_count for fact in field.facts), 0)
        return CheckResult("FAIL", "multi-valued", f"{corpus.page(subject).title} has {shown} of {hop.relation}")
    for other, sentence in _list_other_values(ground, subject, value, hop.relation):
        title = corpus.page(other).title
        return CheckResult("UNKNOWN", "multi-valued", f"{title} may be another {hop.relation}: {sentence.text!r}")
    return PASSED


def _list_other_values(ground: Ground, subject: int, value: int, relation: str) -> Iterator[tuple[int, Sentence]]:
    """Yield other articles like a value that sentences which state the relation link to or name."""
    corpus = ground.corpus
    others = _list_alike(corpus, subject, value)
    if not others:
        return
    places, named = sorted((place, other) for other, place in others.items()), _NamesOf.read(corpus, others)
    own = _compile_own(fold_names(corpus, value))
    names = (*corpus.aliases(subject), *corpus.aliases(value))
    for sentence in list_prose(corpus, subject):
        # Masking can only take cues away, so a sentence without one needs no more looking at.
        if not ground.cues.states(relation, sentence.text):
            continue
        first, last = (bisect_left(places, (offset, 0)) for offset in (sentence.start, sentence.end))
        found = {other for _, other in places[first:last]} | named.find(own.sub(" ", fold_text(sentence.text)))
        for other in sorted(found, key=others.__getitem__):
            # "River" in the name of a river is no word that states where it flows.
            bare = mask_names(sentence.text, [*names, *corpus.aliases(other)])
            if ground.cues.states(relation, bare):
                yield other, sentence


@dataclass(frozen=True, slots=True)
class _NamesOf:
    """Some articles by their folded names, to be found among the words of a sentence."""

    articles: dict[str, list[int]]
    lengths: dict[str, frozenset[int]]
    """How many words the names have that begin with a word."""

    @classmethod
    def read(cls, corpus: Corpus, nodes: Iterable[int]) -> "_NamesOf":
        articles: dict[str, list[int]] = {}
        lengths: dict[str, set[int]] = {}
        for node in nodes:
            for name in fold_names(corpus, node):
                articles.setdefault(name, []).append(node)
                lengths.setdefault(name.partition(" ")[0], set()).add(name.count(" ") + 1)
        return cls(articles, {word: frozenset(found) for word, found in lengths.items()})

    def find(self, folded: str) -> set[int]:
        """Return the articles that a folded sentence names, by whole words."""
        # Split at each space: where a name was cut out, the words beside it stay apart.
        words = folded.split(" ")
        return {
            node
            for place, word in enumerate(words)
            for length in self.lengths.get(word, ())
            for node in self.articles.get(" ".join(words[place : place + length]), ())
        }


def _list_alike(corpus: Corpus, subject: int, value: int) -> dict[int, int]:
    """Return the articles of a value's type that a page links to, by number, with the place of the first link."""
    wanted, graph = corpus.page(value), corpus.graph
    found = {}
    for other, place in zip(graph.targets_of(subject).tolist(), graph.positions_of(subject).tolist(), strict=True):
        page = corpus.page(other)
        alike = page.type == wanted.type if wanted.type else page.domain == wanted.domain
        if alike and other not in (subject, value):
            found[other] = place
    return found


def _compile_own(names: frozenset[str]) -> re.Pattern[str]:
    """Return a pattern of a value's own names, longest first: what stands inside one is no other value."""
    ordered = sorted(names, key=lambda name: (-len(name), name))
    return re.compile(rf"(?<!\w)(?:{'|'.join(map(re.escape, ordered))})(?!\w)")


def find_redundant(ground: Ground, query: Query, key: str) -> tuple[Constraint, ...]:
    """Return the constraints without which the query still has its one answer: they narrow nothing.

    Each is left out alone: of two that say the same, both are returned.
    """
    return tuple(
        constraint
        for place, constraint in enumerate(query.constraints)
        if list(answer_query(ground, _drop_constraint(query, place))) == [key]
    )


def _drop_constraint(query: Query, place: int) -> Query:
    return replace(query, constraints=(*query.constraints[:place], *query.constraints[place + 1 :]))
