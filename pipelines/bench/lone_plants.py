"""D09: a descriptor that finds its entity without the chain, so that earlier hops, and the picture, may be skipped."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from random import Random

from pipelines.bench.scenes import MANY, Case, Scene, Twins, find_facts, note_page, set_field
from pipelines.bench.vocabulary import Vocabulary
from pipelines.checks.descriptors import offer_facts, stands_in
from pipelines.corpus.store import Fact
from pipelines.graph.proofs import make_query
from pipelines.graph.query import TYPE, count_anchor_answers
from pipelines.graph.relations import read_relations
from schemas.proofs import Constraint, Hop
from schemas.tasks import SUBJECT


def plant_lone_descriptor(case: Case, words: Vocabulary, rng: Random) -> Twins | None:
    """D09: a descriptor that fits one entity of the whole wiki, by a fact added to it or by what the others say."""
    proof = case.question.proof
    nodes = [node for node in range(1, len(case.numbers)) if proof.descriptors[node - 1].strip()]
    if not nodes:
        return None
    node = rng.choice(nodes)
    return (_add_telling_fact if rng.random() < 0.6 else _change_others)(case, node, rng)


def _add_telling_fact(case: Case, node: int, rng: Random) -> Twins | None:
    """Return twins whose descriptor has a fact more: one that only this entity has, or one that several have."""
    proof, limits = case.question.proof, case.question.proof.thresholds
    least = limits.alone_first if node == 1 else limits.alone
    answer = case.question.answer
    telling, common = [], []
    for offered in offer_facts(case.corpus, case.numbers[node], 4):
        constraint = Constraint(node=node, relation=offered.relation, value=offered.text)
        asked = node == len(case.numbers) - 1 and offered.relation == proof.answer_relation
        said = constraint in proof.constraints or stands_in(offered.text, case.question.text)
        if asked or said or _may_mean_other(case, constraint):
            continue
        count = _count_holders(case, (*proof.constraints, constraint), node, proof.hops[node - 1])
        if count == 1:
            telling.append(constraint)
        elif count >= least and offered.text.casefold() not in answer.surface.casefold():
            common.append(constraint)
    common = [constraint for constraint in common if _needs_picture(case, constraint)]
    if not telling or not common or least < 2:
        return None
    first, second = rng.choice(telling), rng.choice(common)
    clean, defective = _say_more(case, second), _say_more(case, first)
    if clean is None or defective is None or not case.pool.is_hidden(case.question, clean.claim.text):
        return None
    return Twins(f"node {node}: {first.relation} {first.value}", clean, defective, ("stands-alone",))


def _may_mean_other(case: Case, constraint: Constraint) -> bool:
    """Say whether a bare value may be read as one of another field of the entity, such as its other date."""
    facts = case.corpus.facts(case.numbers[constraint.node])
    return any(fact.key != constraint.relation and _says(fact, constraint.value) for fact in facts)


def _needs_picture(case: Case, constraint: Constraint) -> bool:
    """Say whether a question with one constraint more still has several answers over all anchors."""
    proof = case.question.proof
    query = replace(make_query(case.corpus, proof), constraints=(*proof.constraints, constraint))
    least = proof.thresholds.answers
    return count_anchor_answers(case.pool.ground, query, proof.nodes[0].type, least)[1] >= least


def _count_holders(case: Case, constraints: Sequence[Constraint], node: int, hop: Hop) -> int:
    """Count by looking at every page what fits a descriptor without the chain: slow, and none of the checks' code."""
    corpus = case.corpus
    here = [constraint for constraint in constraints if constraint.node == node]
    targets = {fact.target for other in corpus.article_nodes() for fact in read_relations(corpus, other)
               if fact.key == hop.relation}  # fmt: skip
    count = 0
    for other in corpus.article_nodes():
        facts = corpus.facts(other)
        fits = any(fact.key == hop.relation for fact in facts) if hop.backward else other in targets
        count += fits and all(
            corpus.page(other).type == each.value
            if each.relation == TYPE
            else any(fact.key == each.relation and _says(fact, each.value) for fact in facts)
            for each in here
        )
    return count


def _says(fact: Fact, value: str) -> bool:
    """Say whether a fact's value is another one, or a date of the year, decade or century that it names."""
    if fact.text == value:
        return True
    digits = "".join(character for character in value if character.isdigit())
    year = fact.iso[:4] if fact.iso else fact.text if fact.text.isdigit() and len(fact.text) == 4 else ""
    if not year or not digits:
        return False
    if value.endswith("0s"):
        return year[:3] == digits[:3]
    if value.endswith("century"):
        return (int(year) - 1) // 100 + 1 == int(digits)
    return value == year


def _say_more(case: Case, constraint: Constraint) -> Scene | None:
    """Return the question with a fact more in one descriptor, in its text, its descriptor and its proof."""
    proof = case.question.proof
    descriptor = proof.descriptors[constraint.node - 1]
    head = descriptor.split(SUBJECT)[0]
    place = case.question.text.casefold().find(head.casefold())
    if not head.casefold().startswith("the ") or place < 0:
        return None
    longer = f"{head[:3]} ({constraint.value}) {head[4:]}"
    text = case.question.text[:place] + longer + case.question.text[place + len(head) :]
    descriptors = list(proof.descriptors)
    descriptors[constraint.node - 1] = longer + descriptor[len(head) :]
    changed = {"descriptors": tuple(descriptors), "constraints": (*proof.constraints, constraint)}
    return Scene(replace(case.claim, text=text, proof=proof.model_copy(update=changed)))


def _change_others(case: Case, node: int, rng: Random) -> Twins | None:
    """Return twins in whose wikis the others that fit a descriptor no longer show its relation, or almost none."""
    proof, limits = case.question.proof, case.question.proof.thresholds
    least = limits.alone_first if node == 1 else limits.alone
    hop = proof.hops[node - 1]
    if hop.relation == "mentions" or least < 2:
        return None
    kept = {case.numbers[node]}
    pages = list(_list_rivals(case, hop, kept))
    # The same relation may be another hop of this path, which must stay.
    if not pages or len(pages) > MANY or any(page in case.numbers for page, _ in pages):
        return None
    edits = {page: set_field(case.corpus.text(page), fact, "") for page, fact in pages}
    noted = {page: note_page(case.corpus.text(page)) for page, _ in pages[:3]}
    return Twins(
        f"only {proof.nodes[node].title} has {hop.relation}",
        Scene(case.claim, noted),
        Scene(case.claim, edits),
        ("stands-alone",),
    )


def _list_rivals(case: Case, hop: Hop, kept: set[int]) -> Iterator[tuple[int, Fact]]:
    """Yield the fields, one a page, by which another entity than the kept one may be what the relation leads to."""
    for page in case.corpus.article_nodes():
        facts = find_facts(case.corpus, page, hop.relation)
        if not facts or page == case.find_subject(hop):
            continue
        if (page not in kept) if hop.backward else any(fact.target not in kept for fact in facts):
            yield page, facts[0]
