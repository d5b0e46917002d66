"""Re-deriving a proof: everything a released question claims, from the corpus and the proof alone, with no model."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from pipelines.checks.descriptors import check_spoken, check_told, find_constraint_problems
from pipelines.checks.leakage import check_answer, check_names, list_type_words
from pipelines.checks.shortcuts import check_earlier_pages, check_path_length
from pipelines.checks.uniqueness import count_fit
from pipelines.corpus.infobox import parse_value
from pipelines.corpus.store import Corpus
from pipelines.graph.clauses import make_clause
from pipelines.graph.proofs import flatten_names, list_names, make_query
from pipelines.graph.query import answer_query, count_anchor_answers, locate_nodes, matches
from pipelines.graph.relations import RelationIndex, read_relations
from pipelines.names import digest_aliases
from pipelines.scoring.answers import type_answer
from schemas.proofs import Answer, Count, Evidence, Hop, PathNode, Proof


@dataclass(frozen=True, slots=True)
class Claim:
    """What a released question claims of its answer."""

    text: str
    answer: Answer
    proof: Proof


def find_problems(corpus: Corpus, relations: RelationIndex, claim: Claim) -> list[str]:
    """Return what does not hold, in the order of the proof; an empty list means the question verifies.

    Later parts build on earlier ones, so the search stops at the first part with a problem.
    """
    proof = claim.proof
    if proof.corpus != corpus.digest:
        return [f"corpus: the proof is about {proof.corpus[:12]}, this corpus is {corpus.digest[:12]}"]
    for check in (_check_shape, _check_nodes, _check_evidence, _check_hops, _check_answer):
        problems = list(check(corpus, claim))
        if problems:
            return problems
    return [
        *_check_counts(corpus, relations, proof),
        *_check_shortcuts(corpus, claim),
        *_check_descriptors(corpus, claim),
        *_check_text(corpus, claim),
    ]


def _check_shape(corpus: Corpus, claim: Claim) -> Iterator[str]:
    """Look at what needs no corpus: later parts index by these numbers."""
    proof = claim.proof
    hops, limits = len(proof.hops), proof.thresholds
    if len(proof.nodes) != hops + 1 or not hops:
        yield f"nodes: {len(proof.nodes)} nodes for {hops} hops"
    if [node.role for node in proof.nodes] != ["anchor", *["bridge"] * (hops - 1), "answer"]:
        yield f"nodes: the roles are {[node.role for node in proof.nodes]}"
    if proof.snapshot != corpus.snapshot:
        yield f"corpus: the proof is of {proof.snapshot}, this corpus of {corpus.snapshot}"
    if min(limits.alone_first, limits.alone) < 1 or min(limits.answers, proof.hub_in_degree) < 0:
        yield f"thresholds: {limits!r}, hubs above {proof.hub_in_degree}; alone is 1 or more, the others 0 or more"
    if [bool(text.strip()) for text in proof.descriptors] != [True] * (hops - 1) + [False]:
        yield f"descriptor: {len(proof.descriptors)} for {hops} hops; every bridge has one, the answer node none"
    for what, found in (("count", proof.counts), ("constraint", proof.constraints)):
        last = hops if what == "count" else hops - 1
        for node in sorted({part.node for part in found if not (what == "constraint") <= part.node <= last}):
            yield f"{what}s: a {what} is about node {node}, of {hops + 1}"


def _check_nodes(corpus: Corpus, claim: Claim) -> Iterator[str]:
    nodes, hops = claim.proof.nodes, claim.proof.hops
    try:
        numbers = locate_nodes(corpus, nodes)
    except LookupError as error:
        yield f"nodes: {error}"
        return
    if len(set(numbers)) != len(numbers):
        yield "nodes: an entity occurs twice"
    for node, number in zip(nodes, numbers, strict=True):
        page = corpus.page(number)
        if (node.type, node.in_degree) != (page.type, page.in_degree):
            yield f"nodes: {node.title} is a {page.type} with {page.in_degree} incoming links"
    for index, hop in enumerate(hops):
        if (hop.subject_id, hop.object_id, hop.index) != (nodes[index].page_id, nodes[index + 1].page_id, index + 1):
            yield f"hop {hop.index}: it does not join node {index} to node {index + 1}"


def _check_evidence(corpus: Corpus, claim: Claim) -> Iterator[str]:
    proof = claim.proof
    for hop, node in zip(proof.hops, proof.nodes, strict=False):
        yield from _compare_span(corpus, node, hop.evidence, f"hop {hop.index}")
    yield from _compare_span(corpus, proof.nodes[-1], proof.answer_evidence, "answer")


def _compare_span(corpus: Corpus, node: PathNode, evidence: Evidence, where: str) -> Iterator[str]:
    (number,) = locate_nodes(corpus, [node])
    page, text = corpus.page(number), corpus.text(number)
    if (evidence.page_id, evidence.title) != (page.page_id, page.title):
        yield f"{where}: the evidence is from {evidence.title}, not from {page.title}"
    elif evidence.revision != page.revision:
        yield f"{where}: revision {evidence.revision}, the corpus has {page.revision}"
    elif not 0 <= evidence.start < evidence.end or text[evidence.start : evidence.end] != evidence.text:
        yield f"{where}: the span {evidence.start}-{evidence.end} of {page.title} reads otherwise"
    elif evidence.link_start != -1:
        inside = evidence.start <= evidence.link_start < evidence.end
        if not inside or not text.startswith("[[", evidence.link_start):
            yield f"{where}: no link at offset {evidence.link_start} of {page.title}"


def _check_hops(corpus: Corpus, claim: Claim) -> Iterator[str]:
    numbers = locate_nodes(corpus, claim.proof.nodes)
    names = flatten_names(list_names(corpus, claim.proof.nodes))
    for hop, source, target in zip(claim.proof.hops, numbers, numbers[1:], strict=False):
        if hop.evidence.kind == "infobox":
            yield from _check_relation(corpus, hop, source, target)
        else:
            yield from _check_clause(corpus, hop, source, target, names)


def _check_relation(corpus: Corpus, hop: Hop, source: int, target: int) -> Iterator[str]:
    facts = [fact for fact in read_relations(corpus, source) if fact.key == hop.relation == hop.evidence.key]
    if [(fact.target, fact.start, fact.end, fact.link_start) for fact in facts] != [
        (target, hop.evidence.start, hop.evidence.end, hop.evidence.link_start)
    ] or hop.clause:
        yield f"hop {hop.index}: the infobox has no single {hop.relation} at that place that leads to the next node"
        return
    values = parse_value(hop.evidence.text)
    if len(values) != 1 or values[0].link is None or _find_target(corpus, values[0].link) != target:
        yield f"hop {hop.index}: {hop.evidence.text!r} does not link to the next node"


def _find_target(corpus: Corpus, link: str) -> int | None:
    """Return the article a raw link target leads to: its fragment dropped, its first letter as titles have it."""
    title = link.partition("#")[0].strip()
    found = corpus.find(title)
    return corpus.find(title[:1].upper() + title[1:]) if found is None else found


def _check_clause(corpus: Corpus, hop: Hop, source: int, target: int, names: Sequence[str]) -> Iterator[str]:
    if (hop.relation, hop.evidence.key) != ("mentions", ""):
        yield f"hop {hop.index}: a sentence supports {hop.relation!r} {hop.evidence.key!r}; it may support mentions"
        return
    text = corpus.text(source)
    targets = dict(zip(*_read_links(corpus, source), strict=True))
    link = next((link for link in corpus.links(source) if link.start == hop.evidence.link_start), None)
    if link is None or targets.get(link.start) != target:
        yield f"hop {hop.index}: the link at offset {hop.evidence.link_start} does not lead to the next node"
        return
    clause = make_clause(text, link, names)
    if clause is None or (clause.start, clause.end, clause.text) != (hop.evidence.start, hop.evidence.end, hop.clause):
        yield f"hop {hop.index}: the clause is not the sentence around the link"


def _read_links(corpus: Corpus, node: int) -> tuple[list[int], list[int]]:
    """Return the offsets of a page's links and the nodes they lead to."""
    graph = corpus.graph
    start, end = int(graph.offsets[node]), int(graph.offsets[node + 1])
    return graph.positions[start:end].tolist(), graph.targets[start:end].tolist()


def _check_answer(corpus: Corpus, claim: Claim) -> Iterator[str]:
    proof, evidence = claim.proof, claim.proof.answer_evidence
    values = parse_value(evidence.text)
    typed = type_answer(values[0].text, values[0].iso, proof.answer_relation) if len(values) == 1 else None
    if (evidence.kind, evidence.link_start) != ("infobox", -1):
        yield f"answer: the evidence is a {evidence.kind} with a link at {evidence.link_start}; it must be a literal"
        return
    if evidence.key != proof.answer_relation or typed != claim.answer:
        given = "nothing" if typed is None else typed.surface
        yield f"answer: the evidence gives {given}, the question says {claim.answer.surface}"
        return
    query = make_query(corpus, proof)
    derived = answer_query(corpus, query)
    if sorted(derived) != [claim.answer.key]:
        yield f"answer: the query gives {sorted(derived)}, the question says {claim.answer.key}"
    elif (derived[claim.answer.key].fact.start, derived[claim.answer.key].fact.end) != (evidence.start, evidence.end):
        yield "answer: the query reads it at another place than the evidence"
    for constraint in proof.constraints:
        (number,) = locate_nodes(corpus, [proof.nodes[constraint.node]])
        if not matches(corpus, number, [constraint]):
            yield f"descriptor: node {constraint.node} has no {constraint.relation} {constraint.value!r}"


def _check_counts(corpus: Corpus, relations: RelationIndex, proof: Proof) -> Iterator[str]:
    """Count everything again up to its threshold; a count that nothing asked for, or given twice, is a problem too."""
    found = {(count.name, count.node): count for count in _recount(corpus, relations, proof)}
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


def _recount(corpus: Corpus, relations: RelationIndex, proof: Proof) -> Iterator[Count]:
    """Yield every count that a proof must have, made again."""
    query, limits = make_query(corpus, proof), proof.thresholds
    for node in range(1, len(proof.nodes)):
        threshold = limits.alone_first if node == 1 else limits.alone
        yield from count_fit(corpus, relations, query, node, threshold).as_counts()
    if limits.answers:
        anchors, answers = count_anchor_answers(corpus, query, proof.nodes[0].type, limits.answers)
        yield Count(name="anchors", node=0, value=anchors, capped=True)
        yield Count(name="answers", node=0, value=answers, capped=True)


def _check_shortcuts(corpus: Corpus, claim: Claim) -> Iterator[str]:
    if not claim.proof.shortcuts_checked:
        return
    numbers = locate_nodes(corpus, claim.proof.nodes)
    for result in (
        check_path_length(corpus, numbers, claim.proof.hub_in_degree),
        check_earlier_pages(corpus, numbers, claim.answer),
    ):
        if result.outcome != "PASS":
            yield f"shortcut: {result.code}: {result.detail}"


def _check_descriptors(corpus: Corpus, claim: Claim) -> Iterator[str]:
    """Compare each bridge's constraints with its descriptor, and the descriptors with the question."""
    proof = claim.proof
    numbers = locate_nodes(corpus, proof.nodes)
    for node, descriptor in enumerate(proof.descriptors[:-1], 1):
        constraints = [constraint for constraint in proof.constraints if constraint.node == node]
        for problem in find_constraint_problems(corpus, numbers[node], constraints, descriptor):
            yield f"descriptor: node {node}: {problem}"
    for result in (
        check_spoken(claim.text, proof.descriptors),
        check_told(corpus, numbers, claim.text, proof),
    ):
        if result.outcome != "PASS":
            yield f"text: {result.code}: {result.detail}"


def _check_text(corpus: Corpus, claim: Claim) -> Iterator[str]:
    names = list_names(corpus, claim.proof.nodes)
    if digest_aliases(flatten_names(names)) != claim.proof.alias_digest:
        yield "names: the corpus knows other names than the leak check looked for"
    words = list_type_words(claim.proof.nodes)
    for result in (check_names(claim.text, names, words), check_answer(claim.text, claim.answer, words)):
        if result.outcome != "PASS":
            yield f"text: {result.code}: {result.detail}"
