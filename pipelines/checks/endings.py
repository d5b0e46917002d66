"""The end of a question alone: what a solver or a search makes of it without the picture and the hops before.

An ending begins at a bridge, which is called by its type: ``an unnamed bridge``. It is built from the proof:
descriptors say the later bridges as the question does, and the last hop is said by its relation or by the sentence that
the writer saw, so that an ending tells no less than the question. Nor does it tell more where a reader put a relation
into words: ``an unnamed dam is named after X``. A search gets what the question says of one node.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from pipelines.checks.readings import state_relation
from pipelines.corpus.store import Corpus
from pipelines.graph.prose import generalise_clause
from pipelines.graph.query import MENTIONS
from schemas.proofs import Answer, Hop, PathNode, Proof
from schemas.tasks import SUBJECT

_ASKED = {"": "{}", "day": "exact {}", "month": "month and year of the {}", "year": "year of the {}"}
_WORD = re.compile(r"[^\W_]+")


def list_endings(corpus: Corpus, proof: Proof, answer: Answer) -> tuple[str, ...]:
    """Return the endings of a question as questions, the last bridge's first; empty without a bridge."""
    return tuple(_ask_from(corpus, proof, answer, node) for node in range(len(proof.hops) - 1, 0, -1))


def _ask_from(corpus: Corpus, proof: Proof, answer: Answer, node: int) -> str:
    phrase, known = f"an unnamed {proof.nodes[node].type or 'subject'}", ""
    for hop, reached in zip(proof.hops[node:], proof.nodes[node + 1 :], strict=True):
        said = _find_descriptor(proof, hop)
        if hop.gloss and not said:
            known, phrase = f"{phrase[:1].upper()}{phrase[1:]} {hop.gloss} X. ", "X"
            continue
        phrase = (said or _describe_hop(corpus, hop, reached)).replace(SUBJECT, phrase)
    if proof.answer_gloss:
        return f"{known}What fills the blank: {phrase} {proof.answer_gloss} ____?"
    asked = _ASKED[answer.precision].format(state_relation(proof.answer_relation))
    return f"{known}What is the {asked}{f' in {answer.unit}' if answer.unit else ''} of {phrase}?"


def _find_descriptor(proof: Proof, hop: Hop) -> str:
    said = proof.descriptors[hop.index - 1] if proof.descriptors else ""
    for branch in proof.branches:
        said = said if branch.named else said.replace(branch.node.title, f"an unnamed {branch.node.type}")
    return said


def _describe_hop(corpus: Corpus, hop: Hop, reached: PathNode) -> str:
    kind, relation = reached.type or "subject", state_relation(hop.relation)
    if hop.relation == MENTIONS:
        line = generalise_clause(corpus, hop)
        return f"the {kind} that fills the blank in the line “{line}” of the article on {SUBJECT}"
    return f"the {kind} whose {relation} is {SUBJECT}" if hop.backward else f"the {relation} of {SUBJECT}"


@dataclass(frozen=True, slots=True)
class Probe:
    """Words of a question that are searched for alone."""

    words: str
    pages: tuple[int, ...]
    """Pages that the search may not put first: each would make the hops before it unnecessary."""


def list_probes(numbers: Sequence[int], text: str, proof: Proof) -> Iterator[Probe]:
    """Yield what a question says of each hidden node, the answer node first, that with what is asked as well.

    A quoted sentence may not find the page it stands on either: there its blank is filled. A gloss is no quotation. Of
    the answer node, which has no descriptor, those words of its hop are searched for that stand in the text.
    """
    for hop in reversed(proof.hops):
        quoted = hop.relation == MENTIONS and not hop.gloss
        pages = (numbers[-1], numbers[hop.index - 1]) if quoted else numbers[-1:]
        descriptor = _find_descriptor(proof, hop)
        pieces = [piece.strip() for piece in descriptor.split(SUBJECT)] if descriptor else [_keep_said(hop, text)]
        for piece in filter(None, pieces):
            yield Probe(piece, tuple(pages))
        if hop.index == len(proof.hops):
            kind = "" if descriptor else proof.nodes[-1].type
            words = (*pieces, kind, state_relation(proof.answer_relation))
            yield Probe(" ".join(filter(None, words)), tuple(pages))


def _keep_said(hop: Hop, text: str) -> str:
    said = frozenset(_WORD.findall(text.casefold()))
    return " ".join(
        word
        for word in _WORD.findall(hop.gloss or hop.clause or state_relation(hop.relation))
        if word.casefold() in said
    )
