"""Branches of a proof: facts that lead to entities beside the chain, so that a question is a tree (VSearcher, 2.1).

A fact of a page is often a sentence that names several entities. One of them leads to the picture; another may stay
named in the question, or be hidden in a later round behind facts of its own page.
"""

from collections.abc import Iterable, Iterator, Sequence

from pipelines.corpus.store import Corpus, Fact
from pipelines.graph.facts import read_relations, stem_key
from pipelines.graph.proofs import cite_fact, cite_sentence, flatten_names, list_names, make_node
from pipelines.graph.prose import Sentence, list_prose, mask_names
from pipelines.graph.query import Indexes
from pipelines.names import digest_aliases
from schemas.proofs import Branch, Evidence, Proof


def find_quote(ground: Indexes, fact: Fact) -> Sentence | None:
    """Return the first sentence of a page that states a relation and names its object; None without one."""
    names = ground.corpus.aliases(fact.target)
    for sentence in list_prose(ground.corpus, fact.node):
        if mask_names(sentence.text, names) != sentence.text and ground.cues.states(fact.key, sentence.text):
            return sentence
    return None


def cite_quote(ground: Indexes, fact: Fact) -> Evidence | None:
    """Return the sentence that states a relation as evidence; None without one."""
    found = find_quote(ground, fact)
    return cite_sentence(ground.corpus, fact.node, found.start, found.end) if found else None


def list_companions(ground: Indexes, fact: Fact, facts: Iterable[Fact]) -> Iterator[Fact]:
    """Yield facts beside another one: those stated in the same sentence, in another one, and in the infobox alone."""
    told = find_quote(ground, fact)
    others = [other for other in facts if other.target != fact.target and stem_key(other.key) != stem_key(fact.key)]
    quotes = {other: find_quote(ground, other) for other in others}
    yield from sorted(others, key=lambda other: (quotes[other] is None, told is None or quotes[other] != told))


def make_branch(ground: Indexes, host: int, fact: Fact) -> Branch:
    """Return a fact of an entity as a branch whose entity is named."""
    return Branch(
        host=host,
        relation=fact.key,
        node=make_node(ground.corpus, fact.target, "branch"),
        named=True,
        evidence=cite_fact(ground.corpus, fact),
        quote=cite_quote(ground, fact),
    )


def find_fact(corpus: Corpus, number: int, relation: str, name: str) -> Fact | None:
    """Return the relation of a page with a given field and object title, or None."""
    for fact in read_relations(corpus, number):
        if (fact.key, corpus.page(fact.target).title) == (relation, name):
            return fact
    return None


def add_branches(proof: Proof, branches: Sequence[Branch]) -> Proof:
    """Return a proof with further branches, whose entities are named."""
    return proof.model_copy(update={"branches": (*proof.branches, *branches)})


def hide_branch(corpus: Corpus, proof: Proof, number: int, descriptor: str, own: Sequence[Branch]) -> Proof:
    """Return a proof with the entity of a branch hidden behind branches of its own."""
    place = number - len(proof.nodes)
    hidden = proof.branches[place].model_copy(update={"named": False, "descriptor": descriptor})
    grown = add_branches(
        proof.model_copy(update={"branches": (*proof.branches[:place], hidden, *proof.branches[place + 1 :])}), own
    )
    return grown.model_copy(update={"alias_digest": digest_aliases(flatten_names(list_names(corpus, grown.hidden)))})


def list_named(proof: Proof) -> tuple[int, ...]:
    """Return the numbers of the entities that branches name."""
    first = len(proof.nodes)
    return tuple(number for number, branch in enumerate(proof.branches, first) if branch.named)


def find_tree_problems(proof: Proof) -> Iterator[str]:
    """Yield why a proof with branches is no tree that leads from its leaves, the anchor among them, to the answer.

    What each branch is about has a smaller number, so that all lead along the chain and nothing goes round.
    """
    hosts = {branch.host for branch in proof.branches}
    for number, branch in enumerate(proof.branches, len(proof.nodes)):
        if not 1 <= branch.host < number:
            yield f"branch {number}: it is about {branch.host}; it is about an entity with a smaller number, not 0"
            return
        if branch.named == bool(branch.descriptor) or branch.named == (number in hosts):
            yield f"branch {number}: an entity is named, or has a descriptor and branches of its own"
