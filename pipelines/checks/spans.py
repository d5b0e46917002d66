"""What a proof points at: its entities, and the places on their pages that state its hops and its answer."""

import re
from collections.abc import Iterator, Sequence

from pipelines.corpus.infobox import parse_value
from pipelines.corpus.store import Corpus, Fact
from pipelines.graph.clauses import make_clause
from pipelines.graph.matching import TYPE, name_relation, read_field
from pipelines.graph.proofs import flatten_names, list_names
from pipelines.graph.query import MENTIONS, locate_nodes
from pipelines.graph.relations import read_relations
from pipelines.graph.values import fold_names
from pipelines.names import fold_name
from schemas.proofs import Evidence, Hop, PathNode, Proof

SNAPSHOT = re.compile(r"\d{4}-\d{2}-\d{2}")


def find_shape_problems(corpus: Corpus, proof: Proof) -> Iterator[str]:
    """Yield what is wrong with a proof that needs no page: later parts index by these numbers."""
    hops = len(proof.hops)
    if len(proof.nodes) != hops + 1 or not hops:
        yield f"nodes: {len(proof.nodes)} nodes for {hops} hops"
        return
    if [node.role for node in proof.nodes] != ["anchor", *["bridge"] * (hops - 1), "answer"]:
        yield f"nodes: the roles are {[node.role for node in proof.nodes]}"
    if proof.snapshot != corpus.snapshot:
        yield f"corpus: the proof is of {proof.snapshot}, this corpus of {corpus.snapshot}"
    if proof.compared_snapshot and not SNAPSHOT.fullmatch(proof.compared_snapshot):
        yield f"corpus: the other dump is of {proof.compared_snapshot!r}, which is no date"
    yield from _find_threshold_problems(proof)
    described = [True] * (hops - 1) + [proof.hops[-1].backward]
    if [bool(text.strip()) for text in proof.descriptors] != described:
        yield f"descriptor: {len(proof.descriptors)} for {hops} hops; every hidden node has one, a named one none"
    for what, found in (("count", proof.counts), ("constraint", proof.constraints)):
        last = hops if what == "count" or described[-1] else hops - 1
        for node in sorted({part.node for part in found if not (what == "constraint") <= part.node <= last}):
            yield f"{what}s: a {what} is about node {node}, of {hops + 1}"
    for hop in proof.hops:
        if hop.backward and not any(c.node == hop.index and c.relation == TYPE for c in proof.constraints):
            yield f"descriptor: node {hop.index} has no type; what a backward hop leads to has one"


def _find_threshold_problems(proof: Proof) -> Iterator[str]:
    limits = proof.thresholds
    least = (limits.answers, limits.near_misses, limits.retrieval_rank, proof.hub_in_degree)
    if min(limits.alone_first, limits.alone) < 1 or min(least) < 0:
        yield f"thresholds: {limits!r}, hubs above {proof.hub_in_degree}; alone is 1 or more, the others 0 or more"
    if not 0.0 < limits.answer_share <= 1.0:
        yield f"thresholds: the largest share of an answer is {limits.answer_share}; it is above 0 and at most 1"


def find_node_problems(corpus: Corpus, proof: Proof) -> Iterator[str]:
    """Yield where the entities are not those of the corpus, or the hops do not join them."""
    nodes = proof.nodes
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
    for index, hop in enumerate(proof.hops):
        ends = (nodes[index].page_id, nodes[index + 1].page_id)
        if (hop.subject_id, hop.object_id) != (ends[::-1] if hop.backward else ends) or hop.index != index + 1:
            yield f"hop {hop.index}: it does not join node {index} to node {index + 1}"


def find_span_problems(corpus: Corpus, proof: Proof) -> Iterator[str]:
    """Yield where a piece of evidence is not on the page that it names, or not on the page that states it."""
    for hop, source, target in zip(proof.hops, proof.nodes, proof.nodes[1:], strict=False):
        yield from _compare_span(corpus, target if hop.backward else source, hop.evidence, f"hop {hop.index}")
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


def find_hop_problems(corpus: Corpus, proof: Proof) -> Iterator[str]:
    """Yield where the evidence of a hop does not state its relation between its two entities."""
    numbers = locate_nodes(corpus, proof.nodes)
    names = flatten_names(list_names(corpus, proof.nodes))
    for hop, source, target in zip(proof.hops, numbers, numbers[1:], strict=False):
        if hop.backward:
            yield from _check_backward(corpus, hop, target, source)
        elif hop.evidence.kind == "infobox":
            yield from _check_relation(corpus, hop, source, target)
        else:
            yield from _check_clause(corpus, hop, (source, target), names)


def _check_relation(corpus: Corpus, hop: Hop, source: int, target: int) -> Iterator[str]:
    facts = [fact for fact in read_relations(corpus, source) if fact.key == hop.relation == hop.evidence.key]
    if [(fact.target, *_place(fact)) for fact in facts] != [(target, *_place(hop.evidence))] or hop.clause:
        yield f"hop {hop.index}: the infobox has no single {hop.relation} at that place that leads to the next node"
        return
    yield from _check_value(corpus, hop, target)


def _check_backward(corpus: Corpus, hop: Hop, subject: int, value: int) -> Iterator[str]:
    """Compare a backward hop with the page of the entity it leads to: any value of the field may be the one."""
    stated = hop.evidence.kind == "infobox" and bool(name_relation(hop.relation)) and not hop.clause
    places = [_place(fact) for fact in read_field(corpus, subject, hop.relation).facts if fact.key == hop.relation]
    if not stated or hop.evidence.key != hop.relation or _place(hop.evidence) not in places:
        yield f"hop {hop.index}: the infobox has no {hop.relation} at that place"
        return
    yield from _check_value(corpus, hop, value)


def _place(part: Fact | Evidence) -> tuple[int, int, int]:
    return part.start, part.end, part.link_start


def _check_value(corpus: Corpus, hop: Hop, value: int) -> Iterator[str]:
    """Read the evidence of an infobox hop by itself; what a backward hop rests on may be a name without a link."""
    values = parse_value(hop.evidence.text)
    linked = len(values) == 1 and values[0].link is not None and _find_target(corpus, values[0].link) == value
    named = len(values) == 1 and values[0].link is None and fold_name(values[0].text) in fold_names(corpus, value)
    if not linked and not (hop.backward and named):
        end = "previous" if hop.backward else "next"
        yield f"hop {hop.index}: {hop.evidence.text!r} does not link to the {end} node"


def _find_target(corpus: Corpus, link: str) -> int | None:
    """Return the article a raw link target leads to: its fragment dropped, its first letter as titles have it."""
    title = link.partition("#")[0].strip()
    found = corpus.find(title)
    return corpus.find(title[:1].upper() + title[1:]) if found is None else found


def _check_clause(corpus: Corpus, hop: Hop, ends: tuple[int, int], names: Sequence[str]) -> Iterator[str]:
    if (hop.relation, hop.evidence.key) != (MENTIONS, ""):
        yield f"hop {hop.index}: a sentence supports {hop.relation!r} {hop.evidence.key!r}; it may support mentions"
        return
    source, target = ends
    graph, place = corpus.graph, hop.evidence.link_start
    link = next((link for link in corpus.links(source) if link.start == place), None)
    leads = dict(zip(graph.positions_of(source).tolist(), graph.targets_of(source).tolist(), strict=True))
    if link is None or leads.get(link.start) != target:
        yield f"hop {hop.index}: the link at offset {place} does not lead to the next node"
        return
    clause = make_clause(corpus.text(source), link, names)
    if clause is None or (clause.start, clause.end, clause.text) != (hop.evidence.start, hop.evidence.end, hop.clause):
        yield f"hop {hop.index}: the clause is not the sentence around the link"
