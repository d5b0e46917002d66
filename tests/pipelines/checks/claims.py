"""Honest claims over small wikis, proved by the functions that the stages use."""

from itertools import pairwise

from pipelines.checks.agreement import find_corroboration
from pipelines.checks.descriptors import list_constraints
from pipelines.checks.examination import Claim
from pipelines.checks.uniqueness import count_fit, find_near_misses, find_redundant
from pipelines.graph.answers import derive_answer
from pipelines.graph.facts import read_askable
from pipelines.graph.odds import count_odds, is_countable
from pipelines.graph.proofs import cite_fact, cite_sentence, flatten_names, list_names, make_node, make_query
from pipelines.graph.prose import make_clause
from pipelines.names import digest_aliases
from schemas.proofs import Hop, Proof, Thresholds
from schemas.tasks import Descriptor

LIMITS = Thresholds(alone_first=2, alone=1, answers=0)


def prove(ground, titles, relations, attribute, descriptors, asking, limits=LIMITS, derivation=""):
    """Return a claim whose counts, look-ups and spans are those of the corpus.

    Args:
        ground: the corpus.
        titles: of the path, the anchor first.
        relations: of the hops; ``<birth_place`` leads backward, ``mentions`` is the sentence around the link.
        attribute: the infobox key that is asked for.
        descriptors: of the nodes after the anchor, empty for one that is asked for.
        asking: what the question says beside the descriptors.
        limits: what the proof claims to hold.
        derivation: what is asked of the attribute.
    """
    corpus = ground.corpus
    numbers = [corpus.find(title) for title in titles]
    roles = ["anchor", *["bridge"] * (len(titles) - 2), "answer"]
    nodes = tuple(make_node(corpus, number, role) for number, role in zip(numbers, roles, strict=True))
    names = flatten_names(list_names(corpus, nodes))
    hops = tuple(
        make_hop(corpus, index, ends, relation, names)
        for index, (ends, relation) in enumerate(zip(pairwise(numbers), relations, strict=True), 1)
    )
    found = next(part for part in read_askable(corpus, numbers[-1]) if part.fact.key == attribute)
    answer = derive_answer(found.answer, derivation)
    said = [
        constraint
        for index, text in enumerate(descriptors, 1)
        for constraint in (list_constraints(corpus, numbers[index], index, Descriptor(text=text)) if text else ())
    ]
    proof = Proof(
        corpus=corpus.digest,
        snapshot=corpus.snapshot,
        nodes=nodes,
        hops=hops,
        answer_relation=attribute,
        answer_evidence=cite_fact(corpus, found.fact),
        constraints=tuple(said),
        counts=(),
        alias_digest=digest_aliases(names),
        descriptors=descriptors,
        thresholds=limits,
        derivation=derivation,
    )
    text = "; ".join((asking, *filter(None, descriptors)))
    return Claim(text, answer, complete(ground, proof, answer))


def complete(ground, proof, answer):
    """Return a proof with all that is counted and looked up for it."""
    query, limits = make_query(ground.corpus, proof), proof.thresholds
    counts, misses = [], []
    for hop in proof.hops:
        least = limits.alone_first if hop.index == 1 else limits.alone
        counts += count_fit(ground, query, hop.index, least).as_counts()
        if limits.near_misses:
            misses += find_near_misses(ground, query, hop.index, limits.near_misses).looked_up
    if limits.answers:
        odds = count_odds(ground, query, proof.nodes[0].type, answer.key, limits.answers)
        counts += odds.as_counts(is_countable(query))
    number = ground.corpus.find(proof.nodes[-1].title)
    said = find_corroboration(ground, number, proof.answer_relation, answer)
    found = {
        "counts": tuple(counts),
        "near_misses": tuple(misses),
        "corroboration": said.evidence if said.outcome == "agrees" else None,
        "redundant": find_redundant(ground, query, answer.key),
    }
    return proof.model_copy(update=found)


def make_hop(corpus, index, ends, relation, names):
    source, target = ends
    if relation == "mentions":
        place = corpus.graph.find_link(source, target)
        link = next(link for link in corpus.links(source) if link.start == place)
        clause = make_clause(corpus.text(source), link, names)
        evidence = cite_sentence(corpus, source, clause.start, clause.end, place)
        subject_id, object_id = (corpus.page(end).page_id for end in ends)
        return Hop(index=index, relation=relation, subject_id=subject_id, object_id=object_id, clause=clause.text,
                   evidence=evidence)  # fmt: skip
    backward = relation.startswith("<")
    subject, value = (target, source) if backward else (source, target)
    key = relation.removeprefix("<")
    facts = [fact for fact in corpus.facts(subject) if fact.key == key]
    fact = next(fact for fact in facts if fact.target == value or fact.text in corpus.aliases(value))
    return Hop(
        index=index,
        relation=key,
        subject_id=corpus.page(subject).page_id,
        object_id=corpus.page(value).page_id,
        clause="",
        evidence=cite_fact(corpus, fact),
        backward=backward,
    )
