"""What must hold of one round of injection: its descriptor, and the question as reworded."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial

from pipelines.checks.asking import check_asked
from pipelines.checks.descriptors import check_counted, check_facts, check_spoken
from pipelines.checks.examination import check_need
from pipelines.checks.leakage import check_answer, check_demonyms, check_names, list_type_words
from pipelines.checks.uniqueness import check_answer_unchanged, check_fit, count_fit
from pipelines.checks.verdicts import PASSED, Check, CheckResult
from pipelines.checks.volatility import check_timeless
from pipelines.checks.wording import check_kept, check_named
from pipelines.corpus.store import Corpus, Fact
from pipelines.graph.clauses import mask_names
from pipelines.graph.ground import Ground
from pipelines.graph.matching import TYPE
from pipelines.graph.proofs import list_names
from pipelines.graph.query import Query
from schemas.proofs import Answer, Constraint, Proof
from schemas.tasks import Descriptor, WriteQuestionInputs


@dataclass(frozen=True, slots=True)
class Round:
    """One round with its fact: the proof grown by it, and what the checks of its descriptors look at."""

    number: int
    fact: Fact
    answer: Answer
    proof: Proof
    numbers: tuple[int, ...]
    names: tuple[tuple[str, ...], ...]
    type_words: frozenset[str]
    view: WriteQuestionInputs
    threshold: int
    """Entities that the descriptor must fit without the chain."""
    min_answers: int
    """Distinct answers when the new entity is freed to any of its type; 0 is off."""


def list_descriptor_checks(
    ground: Ground, this: Round, descriptor: Descriptor, said: Sequence[Constraint], query: Query
) -> Iterator[Check]:
    """Yield the checks on a descriptor of the entity that a round hides, the cheap ones first.

    Args:
        ground: the corpus.
        this: the round.
        descriptor: the phrase with the facts that its writer declared.
        said: the constraints that it amounts to.
        query: the grown query with them.
    """
    yield partial(check_facts, descriptor)
    yield partial(_check_said, this, descriptor, said)
    yield partial(check_counted, ground.corpus, this.numbers[1], said, descriptor.text)
    yield partial(check_names, descriptor.text, this.names, this.type_words)
    yield partial(check_demonyms, descriptor.text, this.names, this.type_words)
    yield partial(check_answer, descriptor.text, this.answer, this.type_words)
    yield lambda: check_fit(count_fit(ground, query, 1, this.threshold), this.threshold)
    yield partial(check_answer_unchanged, ground, query, this.answer.key)
    yield partial(check_need, ground, query, this.view.anchor_type, this.min_answers)


def _check_said(this: Round, descriptor: Descriptor, said: Sequence[Constraint]) -> CheckResult:
    """FAIL when a descriptor does not tell what kind of entity it describes, or tells of the fact that is asked for.

    Against a backward hop the kind is what narrows most, and a coarser date (``the 1870s``) is no form of the answer
    that a search for it would find.
    """
    if all(constraint.relation != TYPE for constraint in said):
        return CheckResult("FAIL", "no-descriptor", f"{descriptor.text!r} does not say that it is a {_name_kind(this)}")
    if len(this.proof.hops) == 1 and any(c.relation == this.proof.answer_relation for c in said):
        return CheckResult("FAIL", "answer-leak", f"{descriptor.text!r} tells of {this.proof.answer_relation}")
    return PASSED


def _name_kind(this: Round) -> str:
    return this.proof.nodes[1].type


def list_rewording_checks(ground: Ground, this: Round, before: str, after: str, proof: Proof) -> Iterator[Check]:
    """Yield the checks on a question as reworded by a round.

    Args:
        ground: the corpus.
        this: the round.
        before: the question that names the entity.
        after: the question as reworded.
        proof: the grown one, with the new descriptor.
    """
    front = this.proof.nodes[0].title
    yield partial(check_named, after, front)
    yield lambda: check_names(mask_names(after, [front]), this.names[1:], this.type_words)
    yield partial(check_answer, after, this.answer, this.type_words)
    yield partial(check_spoken, after, proof.descriptors)
    yield partial(check_kept, before, after, this.proof.nodes[1].title)
    yield partial(check_asked, ground, after, proof)
    if not proof.thresholds.volatile:
        yield partial(check_timeless, after)


def list_hidden_checks(corpus: Corpus, text: str, proof: Proof, answer: Answer) -> Iterator[Check]:
    """Yield the checks that a question which still names its anchor tells neither another node nor the answer."""
    names, words = list_names(corpus, proof.nodes)[1:], list_type_words(proof.nodes)
    masked = mask_names(text, [proof.nodes[0].title])
    yield partial(check_names, masked, names, words)
    yield partial(check_demonyms, masked, names, words)
    yield partial(check_answer, text, answer, words)
