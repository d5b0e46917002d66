"""The name of what a picture shows as the answer to a question about it (MMSearch-R1, section 3: visual knowledge).

Such a proof has one node, the anchor, no hop, and points at the place of the anchor's page that says its name.
"""

from functools import lru_cache
from itertools import islice

from pipelines.corpus.store import Corpus, Fact
from pipelines.graph.facts import Attribute, name_answer
from pipelines.graph.prose import list_prose
from pipelines.names import compile_phrase
from schemas.proofs import Proof

TITLE = "title"
"""What a proof of a name has for the relation of its answer."""
STATEMENT = "own name"
"""The relation as a reader is offered it: a box may have a field ``title``, which says something else."""
LED = 3
"""First sentences of a page in which its name must stand."""
KEPT = 1 << 14


def asks_name(proof: Proof) -> bool:
    """Say whether a proof is of a question that asks for the name of what its picture shows."""
    stated = proof.answer_evidence.kind == "sentence" and not proof.answer_clause
    return not proof.hops and proof.answer_relation == TITLE and stated


@lru_cache(maxsize=KEPT)
def find_name(corpus: Corpus, node: int) -> Attribute | None:
    """Return a page's own name as an answer, with the first place where its prose says it; None if it does not.

    The place is a span of the wikitext: of the title without its bracket, or else of another name.
    """
    answer, page = name_answer(corpus, node), corpus.text(node)
    for form in (answer.surface, *answer.aliases):
        words = compile_phrase(form)
        for sentence in islice(list_prose(corpus, node), LED):
            found = words.search(page, sentence.start, sentence.end)
            if found is not None:
                fact = Fact(node, TITLE, *found.span(), 0, 1, answer.surface, "", *found.span(), -1, -1)
                return Attribute(fact, answer)
    return None
