"""Re-deriving a proof: everything a released question claims, from the corpus and the proof alone, with no model.

What a proof's thresholds do not claim is not looked at; ``release.verify.describe_claim`` says in words what they do.
"""

from collections import Counter
from collections.abc import Callable, Iterator

from pipelines.checks.agreement import find_corroboration
from pipelines.checks.claims import Claim as Claim
from pipelines.checks.descriptors import find_constraint_problems
from pipelines.checks.examination import AnswerRules, list_answer_checks, list_text_checks
from pipelines.checks.shortcuts import check_earlier_pages, check_path_length
from pipelines.checks.spans import (
    find_hop_problems,
    find_node_problems,
    find_shape_problems,
    find_span_problems,
)
from pipelines.checks.uniqueness import (
    check_near_misses,
    check_single_value,
    count_fit,
    find_near_misses,
    find_redundant,
)
from pipelines.checks.verdicts import CheckResult, run_checks
from pipelines.checks.volatility import check_lasting_hop
from pipelines.checks.wording import check_not_bridge
from pipelines.corpus.infobox import parse_value
from pipelines.graph.ground import Ground
from pipelines.graph.proofs import flatten_names, list_names, make_query
from pipelines.graph.query import answer_query, count_anchor_answers, locate_nodes, matches
from pipelines.names import digest_aliases
from pipelines.scoring.answers import count_tokens, derive_answer, type_answer
from schemas.proofs import Count, NearMiss, Proof


def find_problems(ground: Ground, claim: Claim) -> list[str]:
    """Return what does not hold, in the order of the proof; an empty list means the question verifies.

    Later parts build on earlier ones, so the search stops at the first part with a problem.
    """
    corpus, proof = ground.corpus, claim.proof
    if proof.corpus != corpus.digest:
        return [f"corpus: the proof is about {proof.corpus[:12]}, this corpus is {corpus.digest[:12]}"]
    for look in (find_shape_problems, find_node_problems, find_span_problems, find_hop_problems):
        problems = list(look(corpus, proof))
        if problems:
            return problems
    parts: tuple[Callable[[Ground, Claim], Iterator[str]], ...]
    parts = (_check_counts, _check_near_misses, _check_fact, _check_shortcuts, _check_descriptors, _check_text)
    return list(_check_answer(ground, claim)) or [problem for part in parts for problem in part(ground, claim)]


def _report(subject: str, *results: CheckResult) -> Iterator[str]:
    for result in results:
        if result.outcome != "PASS":
            yield f"{subject}: {result.code}: {result.detail}"


def _check_answer(ground: Ground, claim: Claim) -> Iterator[str]:
    proof, evidence = claim.proof, claim.proof.answer_evidence
    values = parse_value(evidence.text)
    typed = type_answer(values[0].text, values[0].iso, proof.answer_relation) if len(values) == 1 else None
    if (evidence.kind, evidence.link_start) != ("infobox", -1):
        yield f"answer: the evidence is a {evidence.kind} with a link at {evidence.link_start}; it must be a literal"
        return
    asked = None if typed is None else derive_answer(typed, proof.derivation)
    if evidence.key != proof.answer_relation or asked != claim.answer:
        given = "nothing" if asked is None else asked.surface
        yield f"answer: the evidence gives {given}, the question says {claim.answer.surface}"
        return
    derived = answer_query(ground, make_query(ground.corpus, proof))
    if sorted(derived) != [claim.answer.key]:
        yield f"answer: the query gives {sorted(derived)}, the question says {claim.answer.key}"
    elif (derived[claim.answer.key].fact.start, derived[claim.answer.key].fact.end) != (evidence.start, evidence.end):
        yield "answer: the query reads it at another place than the evidence"
    for constraint in proof.constraints:
        (number,) = locate_nodes(ground.corpus, [proof.nodes[constraint.node]])
        if not matches(ground.corpus, number, [constraint]):
            yield f"descriptor: node {constraint.node} has no {constraint.relation} {constraint.value!r}"


def _check_counts(ground: Ground, claim: Claim) -> Iterator[str]:
    """Count everything again up to its threshold; a count that nothing asked for, or given twice, is a problem too."""
    proof = claim.proof
    found = {(count.name, count.node): count for count in _recount(ground, proof)}
    given = Counter((count.name, count.node) for count in proof.counts)
    for name, node in found:
        if (name, node) not in given:
            yield f"counts: {name} of node {node} was not counted"
    for (name, node), times in given.items():
        if (name, node) not in found or times > 1:
            yield f"counts: {name} of node {node} is given {times} times, wanted is {int((name, node) in found)}"
    for count in proof.counts:
        right = found.get((count.name, count.node), count)
        if right != count:
            yield f"counts: {count.name} of node {count.node} is {right.value}, the proof says {count.value}"
    for count in found.values():
        least = _find_threshold(proof, count)
        if count.value < least or (count.name == "chain" and count.value != least):
            yield f"counts: {count.name} of node {count.node} is {count.value}, the threshold is {least}"


def _find_threshold(proof: Proof, count: Count) -> int:
    limits = proof.thresholds
    alone = limits.alone_first if count.node == 1 else limits.alone
    return {"chain": 1, "alone": alone, "anchors": 0, "answers": limits.answers}[count.name]


def _recount(ground: Ground, proof: Proof) -> Iterator[Count]:
    """Yield every count that a proof must have, made again."""
    query, limits = make_query(ground.corpus, proof), proof.thresholds
    for node in range(1, len(proof.nodes)):
        threshold = limits.alone_first if node == 1 else limits.alone
        yield from count_fit(ground, query, node, threshold).as_counts()
    if limits.answers:
        anchors, answers = count_anchor_answers(ground, query, proof.nodes[0].type, limits.answers)
        yield Count(name="anchors", node=0, value=anchors, capped=True)
        yield Count(name="answers", node=0, value=answers, capped=True)


def _check_near_misses(ground: Ground, claim: Claim) -> Iterator[str]:
    """Look for other values of forward hops and other entities at backward ones, and compare with those looked up."""
    proof, cap = claim.proof, claim.proof.thresholds.near_misses
    query, numbers = make_query(ground.corpus, proof), locate_nodes(ground.corpus, proof.nodes)
    for hop in proof.hops:
        yield from _report(f"hop {hop.index}", check_single_value(ground, numbers, hop))
    looked_up: list[NearMiss] = []
    for hop in proof.hops if cap else ():
        search = find_near_misses(ground, query, hop.index, cap)
        looked_up += search.looked_up
        yield from _report(f"near misses: node {hop.index}", check_near_misses(search))
    if tuple(looked_up) != proof.near_misses:
        right, given = ([miss.title for miss in misses] for misses in (looked_up, proof.near_misses))
        yield f"near misses: to be looked up are {right}, the proof has {given} or resolves them otherwise"
    redundant = find_redundant(ground, query, claim.answer.key)
    if redundant != proof.redundant:
        right, given = ([part.value for part in parts] for parts in (redundant, proof.redundant))
        yield f"redundant: {right} narrow nothing, the proof says {given}"


def _check_fact(ground: Ground, claim: Claim) -> Iterator[str]:
    """Hold the fact that is asked for to what was demanded of it: confirmed, lasting, and not to be guessed."""
    proof, limits = claim.proof, claim.proof.thresholds
    (number,) = locate_nodes(ground.corpus, proof.nodes[-1:])
    if limits.agreement != "off" or proof.corroboration is not None:
        found = find_corroboration(ground, number, proof.answer_relation, claim.answer)
        if proof.corroboration != (found.evidence if found.outcome == "agrees" else None):
            yield f"answer: the sentence that confirms it is another or none: {found.detail}"
    later = ground.later.snapshot if ground.later else ""
    if later and proof.compared_snapshot != later:
        yield f"answer: compared with the dump of {proof.compared_snapshot or 'no other date'}, here with {later}"
    # No proof says how long its answer might be.
    rules = AnswerRules(count_tokens(claim.answer.surface), limits.agreement, limits.volatile, limits.answer_share)
    checks = list_answer_checks(ground, number, proof.answer_relation, claim.answer, rules)
    yield from _report(
        "answer",
        *run_checks(checks, audit=True),
        *(check_lasting_hop(ground, hop, limits.volatile) for hop in proof.hops),
        check_not_bridge(claim.answer, [node.title for node in proof.nodes]),
    )


def _check_shortcuts(ground: Ground, claim: Claim) -> Iterator[str]:
    if not claim.proof.shortcuts_checked:
        return
    numbers = locate_nodes(ground.corpus, claim.proof.nodes)
    yield from _report(
        "shortcut",
        check_path_length(ground.corpus, numbers, claim.proof.hub_in_degree),
        check_earlier_pages(ground.corpus, numbers, claim.answer),
    )


def _check_descriptors(ground: Ground, claim: Claim) -> Iterator[str]:
    """Compare each hidden node's constraints with its descriptor."""
    proof = claim.proof
    numbers = locate_nodes(ground.corpus, proof.nodes)
    for node, descriptor in enumerate(proof.descriptors, 1):
        constraints = [constraint for constraint in proof.constraints if constraint.node == node]
        # The answer node of a path is asked for and not described: find_shape_problems has seen that it has none.
        clause = proof.hops[node - 1].clause
        found = (
            find_constraint_problems(ground.corpus, numbers[node], constraints, descriptor, clause)
            if descriptor
            else ()
        )
        yield from (f"descriptor: node {node}: {problem}" for problem in found)


def _check_text(ground: Ground, claim: Claim) -> Iterator[str]:
    names = list_names(ground.corpus, claim.proof.nodes)
    if digest_aliases(flatten_names(names)) != claim.proof.alias_digest:
        yield "names: the corpus knows other names than the leak check looked for"
    numbers = locate_nodes(ground.corpus, claim.proof.nodes)
    checks = list_text_checks(ground, numbers, claim.text, claim.answer, claim.proof)
    yield from _report("text", *run_checks(checks, audit=True))
