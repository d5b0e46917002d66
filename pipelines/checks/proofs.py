"""Verifies a proof: derives every claim of a released question again from corpus and proof, without a model."""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from pipelines.checks.agreement import check_volatility, find_corroboration
from pipelines.checks.answers import check_not_bridge
from pipelines.checks.descriptors import find_constraint_problems
from pipelines.checks.examination import (
    Claim,
    check_concept,
    list_answer_checks,
    list_branch_checks,
    list_naming_checks,
    list_text_checks,
    loosen,
)
from pipelines.checks.propositions import list_reading_problems
from pipelines.checks.shortcuts import check_earlier_pages, check_path_length
from pipelines.checks.uniqueness import (
    check_near_misses,
    check_single_value,
    count_fit,
    count_side,
    find_near_misses,
    find_redundant,
    find_side_misses,
)
from pipelines.checks.verdicts import CheckResult, run_checks
from pipelines.corpus.infobox import FieldValue, parse_value
from pipelines.corpus.store import Corpus
from pipelines.graph.answers import count_tokens, derive_answer, type_answer
from pipelines.graph.branches import cite_quote, find_tree_problems
from pipelines.graph.facts import fold_names, name_answer, read_askable, read_relations
from pipelines.graph.odds import count_odds, is_countable
from pipelines.graph.proofs import cite_fact, cite_sentence, flatten_names, list_names, make_query, state_branch
from pipelines.graph.propositions import find_field, name_gloss
from pipelines.graph.prose import BLANK, list_blanked, make_clause, quotes
from pipelines.graph.query import (
    MENTIONS,
    TYPE,
    Indexes,
    answer_query,
    find_article,
    locate_nodes,
    matches,
    name_relation,
    read_field,
)
from pipelines.graph.titles import asks_name, find_name
from pipelines.names import digest_aliases, fold_name
from schemas.proofs import Answer, Count, Evidence, Hop, NearMiss, PathNode, Proof


def find_shape_problems(corpus: Corpus, proof: Proof) -> Iterator[str]:
    """Yield faults of a proof's structure; later parts index by its node numbers."""
    hops = len(proof.hops)
    if len(proof.nodes) != hops + 1:
        yield f"nodes: {len(proof.nodes)} nodes for {hops} hops"
        return
    if [node.role for node in proof.nodes] != ["anchor", *["bridge"] * (hops - 1), *["answer"] * min(hops, 1)]:
        yield f"nodes: the roles are {[node.role for node in proof.nodes]}"
    if proof.snapshot != corpus.snapshot:
        yield f"corpus: the proof is of {proof.snapshot}, this corpus of {corpus.snapshot}"
    yield from _find_gloss_problems(proof)
    yield from _find_threshold_problems(proof)
    yield from find_tree_problems(proof) if proof.branches else ()
    described = [True] * (hops - 1) + [hop.backward for hop in proof.hops[-1:]]
    if [bool(text.strip()) for text in proof.descriptors] != described:
        yield f"descriptor: {len(proof.descriptors)} for {hops} hops; every hidden node has one, a named one none"
    for what, found in (("count", proof.counts), ("constraint", proof.constraints)):
        last = hops if what == "count" or described[-1:] == [True] else hops - 1
        hidden = {number for number, branch in enumerate(proof.branches, hops + 1) if not branch.named}
        for node in sorted({part.node for part in found if not (what == "constraint") <= part.node <= last} - hidden):
            yield f"{what}s: a {what} is about node {node}, of {hops + 1}"
    typed = {constraint.node for constraint in proof.constraints if constraint.relation == TYPE}
    hidden_beside = (number for number, branch in enumerate(proof.branches, hops + 1) if not branch.named)
    for node in (*(hop.index for hop in proof.hops if hop.backward), *hidden_beside):
        if node not in typed:
            yield f"descriptor: node {node} has no type; what a backward hop leads to has one"


def _find_gloss_problems(proof: Proof) -> Iterator[str]:
    if bool(proof.answer_gloss) != bool(proof.answer_clause):
        yield f"answer: {proof.answer_gloss!r} glosses {proof.answer_clause!r}"
    for hop in proof.hops:
        if (hop.gloss and not hop.clause) or (hop.field and not hop.gloss):
            yield f"hop {hop.index}: {hop.gloss!r} and {hop.field!r} are of no sentence"


def _find_threshold_problems(proof: Proof) -> Iterator[str]:
    limits = proof.thresholds
    least = (limits.answers, limits.near_misses, limits.retrieval_rank, proof.hub_in_degree)
    if min(limits.alone_first, limits.alone) < 1 or min(least) < 0:
        yield f"thresholds: {limits!r}, hubs above {proof.hub_in_degree}; alone is 1 or more, the others 0 or more"
    if not 0.0 < limits.answer_share <= 1.0:
        yield f"thresholds: the largest share of an answer is {limits.answer_share}; it is above 0 and at most 1"


def find_node_problems(corpus: Corpus, proof: Proof) -> Iterator[str]:
    """Yield nodes that differ from the corpus, and hops that do not join them."""
    nodes = proof.nodes
    try:
        numbers = locate_nodes(corpus, proof.entities)
    except LookupError as error:
        yield f"nodes: {error}"
        return
    if len(set(numbers)) != len(numbers):
        yield "nodes: an entity occurs twice"
    for node, number in zip(proof.entities, numbers, strict=True):
        page = corpus.page(number)
        if (node.type, node.in_degree) != (page.type, page.in_degree):
            yield f"nodes: {node.title} is a {page.type} with {page.in_degree} incoming links"
    for index, hop in enumerate(proof.hops):
        ends = (nodes[index].page_id, nodes[index + 1].page_id)
        if (hop.subject_id, hop.object_id) != (ends[::-1] if hop.backward else ends) or hop.index != index + 1:
            yield f"hop {hop.index}: it does not join node {index} to node {index + 1}"


def find_span_problems(corpus: Corpus, proof: Proof) -> Iterator[str]:
    """Yield evidence that is not on the page it names, or not on the page that states the fact."""
    for hop, source, target in zip(proof.hops, proof.nodes, proof.nodes[1:], strict=False):
        yield from _compare_span(corpus, target if hop.backward else source, hop.evidence, f"hop {hop.index}")
    for number, branch in enumerate(proof.branches, len(proof.nodes)):
        host, where = proof.entities[branch.host], f"branch {number}"
        yield from _compare_span(corpus, host, branch.evidence, where)
        yield from _compare_span(corpus, host, branch.quote, where) if branch.quote else ()
    yield from _compare_span(corpus, proof.nodes[-1], proof.answer_evidence, "answer")


def _compare_span(corpus: Corpus, node: PathNode, evidence: Evidence, where: str) -> Iterator[str]:
    (number,) = locate_nodes(corpus, [node])
    page, text = corpus.page(number), corpus.text(number)
    if (evidence.page_id, evidence.title) != (page.page_id, page.title):
        yield f"{where}: the evidence is from {evidence.title}, not from {page.title}"
    elif evidence.revision != page.revision:
        yield f"{where}: revision {evidence.revision}, the corpus has {page.revision}"
    elif evidence.kind == "statement":
        if (evidence.start, evidence.end, evidence.link_start) != (-1, -1, -1):
            yield f"{where}: a statement of Wikidata has no span {evidence.start}-{evidence.end} of {page.title}"
    elif not 0 <= evidence.start < evidence.end or text[evidence.start : evidence.end] != evidence.text:
        yield f"{where}: the span {evidence.start}-{evidence.end} of {page.title} reads otherwise"
    elif evidence.link_start != -1:
        inside = evidence.start <= evidence.link_start < evidence.end
        if not inside or not text.startswith("[[", evidence.link_start):
            yield f"{where}: no link at offset {evidence.link_start} of {page.title}"


def find_hop_problems(corpus: Corpus, proof: Proof) -> Iterator[str]:
    """Yield hops whose evidence does not state the relation between the two entities."""
    numbers = locate_nodes(corpus, proof.nodes)
    names = flatten_names(list_names(corpus, proof.nodes))
    for hop, source, target in zip(proof.hops, numbers, numbers[1:], strict=False):
        if hop.backward:
            yield from _check_backward(corpus, hop, target, source)
        elif hop.evidence.kind != "sentence":
            yield from _check_relation(corpus, hop, source, target)
        else:
            yield from _check_clause(corpus, hop, (source, target), names)
    yield from _find_branch_problems(corpus, proof)


def _find_branch_problems(corpus: Corpus, proof: Proof) -> Iterator[str]:
    entities = locate_nodes(corpus, proof.entities)
    for number, branch in enumerate(proof.branches, len(proof.nodes)):
        if branch.node.role != "branch":
            yield f"branch {number}: its entity has the role {branch.node.role}"
        stated = state_branch(proof, number)
        for problem in _check_backward(corpus, stated, entities[branch.host], entities[number]):
            yield problem.replace("hop", "branch", 1)


def _check_branches(ground: Indexes, claim: Claim) -> Iterator[str]:
    proof = claim.proof
    entities = locate_nodes(ground.corpus, proof.entities)
    for number, branch in enumerate(proof.branches, len(proof.nodes)):
        stated = read_field(ground.corpus, entities[branch.host], branch.relation).facts
        fact = next(fact for fact in stated if cite_fact(ground.corpus, fact) == branch.evidence)
        found = cite_quote(ground, replace(fact, target=entities[number]))
        if branch.quote != found:
            given = "none" if branch.quote is None else repr(branch.quote.text)
            right = "none" if found is None else repr(found.text)
            yield f"branch {number}: the sentence that states it is {right}, the proof says {given}"


def _check_relation(corpus: Corpus, hop: Hop, source: int, target: int) -> Iterator[str]:
    facts = [fact for fact in read_relations(corpus, source) if fact.key == hop.relation]
    if [(fact.target, cite_fact(corpus, fact)) for fact in facts] != [(target, hop.evidence)] or hop.clause:
        where = _name_source(hop.evidence)
        yield f"hop {hop.index}: {where} has no single {hop.relation} at that place that leads to the next node"
    elif hop.evidence.kind == "infobox":
        yield from _check_value(corpus, hop, target)


def _check_backward(corpus: Corpus, hop: Hop, subject: int, value: int) -> Iterator[str]:
    facts = [fact for fact in read_field(corpus, subject, hop.relation).facts if fact.key == hop.relation]
    cited = next((fact for fact in facts if cite_fact(corpus, fact) == hop.evidence), None)
    if cited is None or not name_relation(hop.relation) or hop.clause:
        yield f"hop {hop.index}: {_name_source(hop.evidence)} has no {hop.relation} at that place"
    elif hop.evidence.kind == "infobox":
        yield from _check_value(corpus, hop, value)
    elif cited.target != value:
        yield f"hop {hop.index}: {cited.statement} does not lead to the previous node"


def _name_source(evidence: Evidence) -> str:
    return "Wikidata" if evidence.kind == "statement" else "the infobox"


def _check_value(corpus: Corpus, hop: Hop, value: int) -> Iterator[str]:
    values = parse_value(hop.evidence.text)
    linked = len(values) == 1 and values[0].link is not None and _find_target(corpus, values[0].link) == value
    named = len(values) == 1 and values[0].link is None and fold_name(values[0].text) in fold_names(corpus, value)
    if not linked and not (hop.backward and named):
        end = "previous" if hop.backward else "next"
        yield f"hop {hop.index}: {hop.evidence.text!r} does not link to the {end} node"


def _find_target(corpus: Corpus, link: str) -> int | None:
    title = link.partition("#")[0].strip()
    found = corpus.find(title)
    return corpus.find(title[:1].upper() + title[1:]) if found is None else found


def _check_clause(corpus: Corpus, hop: Hop, ends: tuple[int, int], names: Sequence[str]) -> Iterator[str]:
    if (hop.relation, hop.evidence.key) != (MENTIONS, ""):
        yield f"hop {hop.index}: a sentence supports {hop.relation!r} {hop.evidence.key!r}; it may support mentions"
        return
    if hop.field != find_field(hop.gloss, name_answer(corpus, ends[1])):
        yield f"hop {hop.index}: {hop.gloss!r} does not mean {hop.field!r}"
    source, target = ends
    graph, place = corpus.graph, hop.evidence.link_start
    link = next((link for link in corpus.links(source) if link.start == place), None)
    leads = dict(zip(graph.positions_of(source).tolist(), graph.targets_of(source).tolist(), strict=True))
    if link is None or leads.get(link.start) != target:
        yield f"hop {hop.index}: the link at offset {place} does not lead to the next node"
        return
    if hop.gloss:
        yield from _check_quotation(corpus, hop, source, names)
        return
    clause = make_clause(corpus.text(source), link, names)
    if clause is None or (clause.start, clause.end, clause.text) != (hop.evidence.start, hop.evidence.end, hop.clause):
        yield f"hop {hop.index}: the clause is not the sentence around the link"


def _check_quotation(corpus: Corpus, hop: Hop, source: int, names: Sequence[str]) -> Iterator[str]:
    blanked = [
        clause.text
        for _, link, clause in list_blanked(corpus, source)
        if link.start == hop.evidence.link_start
        and (clause.start, clause.end) == (hop.evidence.start, hop.evidence.end)
    ]
    if hop.clause.count(BLANK) != 1 or not any(quotes(hop.clause, text, names) for text in blanked):
        yield f"hop {hop.index}: {hop.clause!r} is no quotation of the sentence around the link"


def find_problems(ground: Indexes, claim: Claim) -> list[str]:
    """Return the problems of a proof in its order; an empty list means that the question verifies.

    Later parts build on earlier ones, so verification stops after the first part with a problem.
    """
    corpus, proof = ground.corpus, claim.proof
    if proof.corpus != corpus.digest:
        return [f"corpus: the proof is about {proof.corpus[:12]}, this corpus is {corpus.digest[:12]}"]
    for look in (find_shape_problems, find_node_problems, find_span_problems, find_hop_problems):
        problems = list(look(corpus, proof))
        if problems:
            return problems
    parts: tuple[Callable[[Indexes, Claim], Iterator[str]], ...]
    parts = (
        _check_branches, _check_counts, _check_near_misses, _check_fact, _check_shortcuts, _check_descriptors,
        _check_text,
    )  # fmt: skip
    problems = list(_check_answer(ground, claim)) or [problem for part in parts for problem in part(ground, claim)]
    return [*problems, *list_reading_problems(ground, proof, claim.answer)]


def _report(subject: str, *results: CheckResult) -> Iterator[str]:
    for result in results:
        if result.outcome != "PASS":
            yield f"{subject}: {result.code}: {result.detail}"


def _check_answer(ground: Indexes, claim: Claim) -> Iterator[str]:
    proof, evidence = claim.proof, claim.proof.answer_evidence
    if asks_name(proof):
        yield from _check_own_name(ground.corpus, claim)
        return
    if proof.answer_clause:
        yield from _check_stated_answer(ground, claim)
        return
    if evidence.kind == "sentence":
        yield f"answer: the evidence is a {evidence.kind} with a link at {evidence.link_start}; it must be a field"
        return
    asked = _read_answer(ground.corpus, proof)
    if asked != claim.answer:
        given = "nothing" if asked is None else asked.surface
        yield f"answer: the evidence gives {given}, the question says {claim.answer.surface}"
        return
    derived = answer_query(ground, make_query(ground.corpus, proof))
    if sorted(derived) != [claim.answer.key]:
        yield f"answer: the query gives {sorted(derived)}, the question says {claim.answer.key}"
    elif cite_fact(ground.corpus, derived[claim.answer.key].fact) != evidence:
        yield "answer: the query reads it at another place than the evidence"
    for constraint in proof.constraints:
        (number,) = locate_nodes(ground.corpus, [proof.entities[constraint.node]])
        if not matches(ground.corpus, number, [constraint]):
            yield f"descriptor: node {constraint.node} has no {constraint.relation} {constraint.value!r}"


def _check_own_name(corpus: Corpus, claim: Claim) -> Iterator[str]:
    (number,) = locate_nodes(corpus, claim.proof.nodes)
    own = find_name(corpus, number)
    if own is None:
        yield f"answer: the lead of {claim.proof.nodes[0].title} does not name it"
    elif own.answer != claim.answer:
        yield f"answer: the page's name is {own.answer.surface}, the question says {claim.answer.surface}"
    elif cite_sentence(corpus, number, own.fact.start, own.fact.end) != claim.proof.answer_evidence:
        yield "answer: the page is named at another place first than the evidence says"


def _check_stated_answer(ground: Indexes, claim: Claim) -> Iterator[str]:
    proof, evidence = claim.proof, claim.proof.answer_evidence
    if (evidence.kind, evidence.key) != ("sentence", ""):
        yield f"answer: the evidence is a {evidence.kind} {evidence.key}; a quoted answer stands in a sentence"
        return
    derived = answer_query(ground, make_query(ground.corpus, proof))
    if derived.get(claim.answer.key) is None or len(derived) != 1:
        yield f"answer: the sentence gives {sorted(derived)}, the question says {claim.answer.key}"
        return
    found = derived[claim.answer.key]
    places = (found.fact.start, found.fact.end, found.fact.link_start)
    if places != (evidence.start, evidence.end, evidence.link_start) or found.answer != claim.answer:
        yield "answer: the query reads it otherwise or at another place than the evidence"
    if proof.answer_relation != name_gloss(proof.answer_gloss, claim.answer):
        yield f"answer: {proof.answer_gloss!r} is not {proof.answer_relation}"


def _read_answer(corpus: Corpus, proof: Proof) -> Answer | None:
    evidence, typed = proof.answer_evidence, None
    if evidence.kind == "statement":
        (number,) = locate_nodes(corpus, proof.nodes[-1:])
        stated = (a for a in read_askable(corpus, number) if a.fact.key == proof.answer_relation)
        typed = next((a.answer for a in stated if cite_fact(corpus, a.fact) == evidence), None)
    elif evidence.key == proof.answer_relation:
        values = parse_value(evidence.text)
        typed = _type_shown(corpus, values[0], evidence) if len(values) == 1 else None
    return None if typed is None else derive_answer(typed, proof.derivation)


def _type_shown(corpus: Corpus, value: FieldValue, evidence: Evidence) -> Answer | None:
    if evidence.link_start == -1:
        return type_answer(value.text, value.iso, evidence.key)
    target = None if value.link is None else _find_target(corpus, value.link)
    return None if target is None else name_answer(corpus, target)


def _check_counts(ground: Indexes, claim: Claim) -> Iterator[str]:
    proof = claim.proof
    found = {(count.name, count.node): count for count in _recount(ground, claim)}
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
    limits = proof.thresholds
    for count in found.values():
        alone = limits.require_alone(count.node)
        least = {"chain": 1, "alone": alone, "anchors": 0, "answers": limits.answers, "gold": 0}[count.name]
        if count.value < least or (count.name == "chain" and count.value != least):
            yield f"counts: {count.name} of node {count.node} is {count.value}, the threshold is {least}"


def _recount(ground: Indexes, claim: Claim) -> Iterator[Count]:
    proof, limits = claim.proof, claim.proof.thresholds
    query = make_query(ground.corpus, proof)
    for node in range(1, len(proof.nodes)):
        yield from count_fit(ground, query, node, limits.require_alone(node)).as_counts()
    yield from (count_side(ground, query, side.number) for side in query.sides if not side.named)
    if limits.answers:
        odds = count_odds(ground, query, proof.nodes[0].type, claim.answer.key, limits.answers)
        yield from odds.as_counts(is_countable(query))


def _check_near_misses(ground: Indexes, claim: Claim) -> Iterator[str]:
    proof, cap = claim.proof, claim.proof.thresholds.near_misses
    query, numbers = make_query(ground.corpus, proof), locate_nodes(ground.corpus, proof.nodes)
    for hop in proof.hops:
        yield from _report(f"hop {hop.index}", check_single_value(ground, numbers, hop))
    looked_up: list[NearMiss] = []
    for hop in proof.hops if cap else ():
        search = find_near_misses(ground, query, hop.index, cap)
        looked_up += search.looked_up
        yield from _report(f"near misses: node {hop.index}", check_near_misses(search))
    for side in query.sides if cap else ():
        if not side.named:
            search = find_side_misses(ground, query, side.number, cap)
            looked_up += search.looked_up
            yield from _report(f"near misses: branch {side.number}", check_near_misses(search))
    if tuple(looked_up) != proof.near_misses:
        right, given = ([miss.title for miss in misses] for misses in (looked_up, proof.near_misses))
        yield f"near misses: to be looked up are {right}, the proof has {given} or resolves them otherwise"
    redundant = find_redundant(ground, query, claim.answer.key)
    if redundant != proof.redundant:
        right, given = ([part.value for part in parts] for parts in (redundant, proof.redundant))
        yield f"redundant: {right} narrow nothing, the proof says {given}"


def _check_fact(ground: Indexes, claim: Claim) -> Iterator[str]:
    proof, limits = claim.proof, claim.proof.thresholds
    (number,) = locate_nodes(ground.corpus, proof.nodes[-1:])
    if asks_name(proof):
        # A name is no fact of the page: prose need not confirm it, and it is asked of every other page as well.
        yield from _report("answer", check_concept(claim.answer, proof.nodes[0].title))
        if proof.corroboration is not None:
            yield "answer: a name is no fact that a sentence confirms, and the proof names one"
        return
    if limits.agreement != "off" or proof.corroboration is not None:
        found = find_corroboration(ground, number, proof.answer_relation, claim.answer)
        if proof.corroboration != (found.evidence if found.outcome == "agrees" else None):
            yield f"answer: the sentence that confirms it is another or none: {found.detail}"
    # No proof says how long its answer might be.
    longest = count_tokens(claim.answer.surface)
    own = loosen(limits, proof.answer_clause)
    checks = list_answer_checks(ground, number, proof.answer_relation, claim.answer, own, longest)
    yield from _report(
        "answer",
        *run_checks(checks, audit=True),
        *(check_volatility(hop.relation, limits.volatile) for hop in proof.hops),
        check_not_bridge(claim.answer, [node.title for node in proof.nodes]),
    )


def _check_shortcuts(ground: Indexes, claim: Claim) -> Iterator[str]:
    if not claim.proof.shortcuts_checked:
        return
    numbers = locate_nodes(ground.corpus, claim.proof.nodes)
    beside = locate_nodes(ground.corpus, [branch.node for branch in claim.proof.branches])
    article = find_article(ground.corpus, numbers[-1], claim.proof.answer_relation, claim.answer)
    yield from _report(
        "shortcut",
        check_path_length(ground.corpus, numbers, claim.proof.hub_in_degree),
        check_earlier_pages(ground.corpus, numbers, claim.answer, article),
        check_earlier_pages(ground.corpus, (*beside, numbers[-1]), claim.answer, article),
    )


def _check_descriptors(ground: Indexes, claim: Claim) -> Iterator[str]:
    proof = claim.proof
    numbers = locate_nodes(ground.corpus, proof.nodes)
    for node, descriptor in enumerate(proof.descriptors, 1):
        constraints = [constraint for constraint in proof.constraints if constraint.node == node]
        # The answer node of a path is asked for and not described: find_shape_problems has seen that it has none.
        clause = proof.hops[node - 1].clause
        titles = [branch.node.title for branch in proof.branches if branch.host == node]
        found = (
            find_constraint_problems(ground.corpus, numbers[node], constraints, descriptor, clause, titles)
            if descriptor
            else ()
        )
        yield from (f"descriptor: node {node}: {problem}" for problem in found)
    yield from _report("branch", *run_checks(list_branch_checks(ground, make_query(ground.corpus, proof), proof), True))


def _check_text(ground: Indexes, claim: Claim) -> Iterator[str]:
    names = list_names(ground.corpus, claim.proof.hidden)
    if digest_aliases(flatten_names(names)) != claim.proof.alias_digest:
        yield "names: the corpus knows other names than the leak check looked for"
    numbers = locate_nodes(ground.corpus, claim.proof.nodes)
    list_checks = list_naming_checks if asks_name(claim.proof) else list_text_checks
    checks = list_checks(ground, numbers, claim.text, claim.answer, claim.proof)
    yield from _report("text", *run_checks(checks, audit=True))
