"""Every check on one finished question, by the thresholds of its own proof: what planted defects are held to."""

from functools import partial

from pipelines.checks.agreement import check_volatility
from pipelines.checks.answers import check_not_bridge
from pipelines.checks.descriptors import check_counted
from pipelines.checks.examination import (
    check_need,
    list_answer_checks,
    list_branch_checks,
    list_text_checks,
    loosen,
)
from pipelines.checks.shortcuts import check_earlier_pages, check_path_length
from pipelines.checks.uniqueness import (
    check_answer_unchanged,
    check_fit,
    check_near_misses,
    check_single_value,
    count_fit,
    find_near_misses,
)
from pipelines.checks.verdicts import CheckResult, run_checks
from pipelines.graph.proofs import make_query
from pipelines.graph.query import find_article, locate_nodes
from pipelines.graph.titles import asks_name


def examine(ground, claim, max_tokens, audit=False):
    """Return the failed checks of a question: the first, or in audit mode all; empty for a sound question.

    The thresholds are the proof's own; checks that they switch off do not run. Pictures, which need their bytes, and
    spans of evidence (``checks.proofs``) are not checked here.
    """
    try:
        numbers = locate_nodes(ground.corpus, claim.proof.nodes)
    except LookupError as error:
        return (CheckResult("FAIL", "not-derivable", str(error)),)
    return run_checks(_list_checks(ground, claim, numbers, max_tokens), audit)


def _list_checks(ground, claim, numbers, max_tokens):
    limits = claim.proof.thresholds
    query = make_query(ground.corpus, claim.proof)
    # A name is no fact of its page, and is asked for of the anchor itself.
    if not asks_name(claim.proof):
        relation = claim.proof.answer_relation
        yield partial(check_not_bridge, claim.answer, [node.title for node in claim.proof.nodes])
        own = loosen(limits, claim.proof.answer_clause)
        yield from list_answer_checks(ground, numbers[-1], relation, claim.answer, own, max_tokens)
    yield from list_uniqueness_checks(ground, query, numbers, limits)
    yield partial(check_answer_unchanged, ground, query, claim.answer.key)
    if claim.proof.shortcuts_checked:
        yield partial(check_path_length, ground.corpus, numbers, claim.proof.hub_in_degree)
        article = find_article(ground.corpus, numbers[-1], claim.proof.answer_relation, claim.answer)
        yield partial(check_earlier_pages, ground.corpus, numbers, claim.answer, article)
    yield partial(check_need, ground, query, claim.proof.nodes[0].type, limits.answers)
    for hop, descriptor in zip(claim.proof.hops, claim.proof.descriptors, strict=False):
        said = [constraint for constraint in claim.proof.constraints if constraint.node == hop.index]
        titles = [branch.node.title for branch in claim.proof.branches if branch.host == hop.index]
        if descriptor:
            yield partial(check_counted, ground.corpus, numbers[hop.index], said, descriptor, hop.clause, titles)
    yield from list_branch_checks(ground, query, claim.proof)
    yield from list_text_checks(ground, numbers, claim.text, claim.answer, claim.proof)


def list_uniqueness_checks(ground, query, numbers, limits):
    """Yield the checks of each hop (one value, not volatile) and node (one entity with the chain, several without)."""
    for hop in query.hops:
        yield partial(check_single_value, ground, numbers, hop)
        yield partial(check_volatility, hop.relation, limits.volatile)
    for node in range(1, len(numbers)):
        alone = limits.require_alone(node)
        yield lambda node=node, alone=alone: check_fit(count_fit(ground, query, node, alone), alone)
        if limits.near_misses:
            yield lambda node=node: check_near_misses(find_near_misses(ground, query, node, limits.near_misses))
