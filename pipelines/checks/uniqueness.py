"""Two-sided uniqueness: a descriptor must fit one entity with the chain, and several without it.

One-sided uniqueness (OpenSearch-VL, equation 6) lets a descriptor name an entity for the whole world, which leaves the
picture out of the question; the second side closes that.
"""

from dataclasses import dataclass

from pipelines.checks.verdicts import CheckResult
from pipelines.corpus.store import Corpus
from pipelines.graph.query import Query, answer_query, count_alone, follow_chain
from pipelines.graph.relations import RelationIndex
from schemas.proofs import Count


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


def count_fit(corpus: Corpus, relations: RelationIndex, query: Query, node: int, threshold: int) -> Fit:
    """Count the entities at a node of the chain (1 is the first bridge), ``alone`` up to ``threshold``."""
    sets = follow_chain(corpus, query, query.anchor)
    chain = len(sets[node]) if node < len(sets) else 0
    alone = count_alone(corpus, relations, query.hops[node - 1], query.constraints, threshold)
    return Fit(node, chain, alone, alone >= threshold)


def check_fit(fit: Fit, threshold: int) -> CheckResult:
    """FAIL unless the chain leads to exactly one entity and the descriptor alone fits ``threshold`` or more."""
    if fit.chain != 1:
        return CheckResult("FAIL", "not-unique", f"{fit.chain} entities fit node {fit.node}")
    if fit.alone < threshold:
        return CheckResult("FAIL", "stands-alone", f"{fit.alone} entities fit node {fit.node} without the chain")
    return CheckResult("PASS", "not-unique", "")


def check_answer_unchanged(corpus: Corpus, query: Query, key: str) -> CheckResult:
    """FAIL when the query no longer has exactly the answer it had."""
    derived = sorted(answer_query(corpus, query))
    if derived != [key]:
        return CheckResult("FAIL", "answer-changed", f"{derived} instead of [{key}]")
    return CheckResult("PASS", "answer-changed", "")
