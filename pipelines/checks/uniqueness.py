"""Two-sided uniqueness: a descriptor must fit one entity with the chain, and several without it.

One-sided uniqueness (OpenSearch-VL, equation 6) lets a descriptor name an entity without the picture. What infoboxes do
not show can only add entities, which leaves the second side safe; for the first side, entities that may fit are looked
up in their articles. There every value of a field counts, and whatever is open counts as possible.
"""

import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from pipelines.checks.verdicts import PASSED, CheckResult
from pipelines.corpus.store import Corpus
from pipelines.graph.facts import fold_names
from pipelines.graph.proofs import make_query
from pipelines.graph.prose import Sentence, list_prose, mask_names
from pipelines.graph.query import (
    MENTIONS,
    Indexes,
    Query,
    answer_query,
    count_alone,
    find_article,
    follow_chain,
    isolate_side,
    list_at_side,
    read_field,
)
from pipelines.graph.statements import fold_text, list_rivals, resolve_rival
from schemas.proofs import Answer, Constraint, Count, Hop, NearMiss, Proof


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


def count_fit(ground: Indexes, query: Query, node: int, threshold: int) -> Fit:
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


def check_answer_unchanged(ground: Indexes, query: Query, key: str) -> CheckResult:
    """FAIL when the query no longer has exactly the answer it had."""
    derived = sorted(answer_query(ground, query))
    if derived != [key]:
        return CheckResult("FAIL", "answer-changed", f"{derived} instead of [{key}]")
    return PASSED


def check_derivable(ground: Indexes, proof: Proof, answer: Answer) -> CheckResult:
    """FAIL (``not-derivable``) unless the query of a proof gives the answer and nothing else."""
    derived = sorted(answer_query(ground, make_query(ground.corpus, proof)))
    if derived == [answer.key]:
        return PASSED
    return CheckResult("FAIL", "not-derivable", f"the query gives {derived}, the page says {answer.key}")


def count_side(ground: Indexes, query: Query, number: int) -> Count:
    """Count the entities that fit the end of a branch, by the number of its entity."""
    return Count(name="chain", node=number, value=len(list_at_side(ground, query, number)), capped=False)


def check_side(count: Count) -> CheckResult:
    """FAIL (``not-unique``) unless exactly one entity fits the end of a branch."""
    if count.value != 1:
        return CheckResult("FAIL", "not-unique", f"{count.value} entities fit branch {count.node}")
    return PASSED


def find_side_misses(ground: Indexes, query: Query, number: int, cap: int) -> NearMissSearch:
    """Look up the entities that would fit the end of a branch if a fact held that their infobox leaves open."""
    search = find_near_misses(ground, isolate_side(query, number), 1, cap)
    looked_up = tuple(miss.model_copy(update={"node": number}) for miss in search.looked_up)
    return NearMissSearch(number, looked_up, search.capped)


def find_near_misses(ground: Indexes, query: Query, node: int, cap: int) -> NearMissSearch:
    """Look up the entities that would fit the end of a backward hop if a fact held that their infobox leaves open.

    A forward hop has none: it leads to the one value that its page shows, see :func:`check_single_value`.
    :mod:`pipelines.graph.statements` says which conclusions are sound, which are assumed, and what counts as a mention.
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


def check_single_value(ground: Indexes, numbers: Sequence[int], hop: Hop) -> CheckResult:
    """FAIL (``multi-valued``) when a forward hop's field has several values, UNKNOWN when prose may state another one.

    Prose may state another value if a sentence states the relation and names, by a link or otherwise, another linked
    article of the same type as the value. A backward hop counts all entities with any value, and a quoted sentence has
    one blank, so they pass.
    """
    if hop.backward or hop.relation == MENTIONS:
        return PASSED
    return _check_single(ground, numbers[hop.index - 1], numbers[hop.index], hop.relation)


def check_single_answer(ground: Indexes, subject: int, relation: str, answer: Answer) -> CheckResult:
    """Check an answer that is an article as :func:`check_single_value` does the end of a hop; others pass."""
    article = find_article(ground.corpus, subject, relation, answer)
    return PASSED if article < 0 else _check_single(ground, subject, article, relation)


def _check_single(ground: Indexes, subject: int, value: int, relation: str) -> CheckResult:
    corpus = ground.corpus
    field = read_field(corpus, subject, relation)
    if len(field.facts) != 1 or not field.complete:
        shown = max(len(field.facts), *(fact.value_count for fact in field.facts), 0)
        return CheckResult("FAIL", "multi-valued", f"{corpus.page(subject).title} has {shown} of {relation}")
    for other, sentence in _list_other_values(ground, subject, value, relation):
        title = corpus.page(other).title
        return CheckResult("UNKNOWN", "multi-valued", f"{title} may be another {relation}: {sentence.text!r}")
    return PASSED


def _list_other_values(ground: Indexes, subject: int, value: int, relation: str) -> Iterator[tuple[int, Sentence]]:
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
        # Split at each space: where a name was cut out, the words beside it stay apart.
        words = folded.split(" ")
        return {
            node
            for place, word in enumerate(words)
            for length in self.lengths.get(word, ())
            for node in self.articles.get(" ".join(words[place : place + length]), ())
        }


def _list_alike(corpus: Corpus, subject: int, value: int) -> dict[int, int]:
    wanted, graph = corpus.page(value), corpus.graph
    found = {}
    for other, place in zip(graph.targets_of(subject).tolist(), graph.positions_of(subject).tolist(), strict=True):
        page = corpus.page(other)
        alike = page.type == wanted.type if wanted.type else page.domain == wanted.domain
        if alike and other not in (subject, value):
            found[other] = place
    return found


def _compile_own(names: frozenset[str]) -> re.Pattern[str]:
    ordered = sorted(names, key=lambda name: (-len(name), name))
    return re.compile(rf"(?<!\w)(?:{'|'.join(map(re.escape, ordered))})(?!\w)")


def find_redundant(ground: Indexes, query: Query, key: str) -> tuple[Constraint, ...]:
    """Return the constraints without which the query still has its one answer: they narrow nothing.

    Each is left out alone: of two that say the same, both are returned.
    """
    return tuple(
        constraint
        for place, constraint in enumerate(query.constraints)
        if list(
            answer_query(
                ground, replace(query, constraints=(*query.constraints[:place], *query.constraints[place + 1 :]))
            )
        )
        == [key]
    )
