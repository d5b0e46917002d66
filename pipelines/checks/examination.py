"""The checks of questions in their order, for the stages that make them and for verification."""

import hashlib
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from importlib import resources
from typing import Protocol

from pipelines.checks.agreement import (
    check_agreement,
    check_timeless,
    check_volatility,
    find_corroboration,
)
from pipelines.checks.answers import check_form, check_kept, check_named, check_precision
from pipelines.checks.descriptors import (
    check_counted,
    check_facts,
    check_reference,
    check_spoken,
    check_told,
    list_descriptors,
)
from pipelines.checks.endings import list_probes
from pipelines.checks.leakage import check_answer, check_demonyms, check_names, list_type_words
from pipelines.checks.shortcuts import check_earlier_pages, check_guessable, check_path_length, check_retrieval
from pipelines.checks.uniqueness import (
    check_answer_unchanged,
    check_fit,
    check_near_misses,
    check_side,
    check_single_answer,
    check_single_value,
    count_fit,
    count_side,
    find_side_misses,
)
from pipelines.checks.verdicts import PASSED, Check, CheckResult, run_checks
from pipelines.corpus.dump import strip_qualifier
from pipelines.corpus.store import Corpus, Fact
from pipelines.errors import ConfigError, SynthError
from pipelines.graph.facts import Attribute, holds_phrase
from pipelines.graph.odds import count_odds, is_countable
from pipelines.graph.proofs import flatten_names, list_names
from pipelines.graph.prose import mask_names
from pipelines.graph.query import TYPE, Indexes, Query, count_anchor_answers, find_article, locate_nodes
from pipelines.names import fold_name, list_writings
from pipelines.plugins import Plugin
from schemas.datasets import Path, Split
from schemas.proofs import Answer, Constraint, Proof, Thresholds
from schemas.tasks import Descriptor, WriteQuestionInputs


def digest_word_lists() -> str:
    """Return the sha256 of the checks' word lists: part of the key of every stage that runs checks."""
    folder = resources.files("pipelines.checks") / "data"
    digest = hashlib.sha256()
    for entry in sorted(folder.iterdir(), key=lambda entry: entry.name):
        digest.update(entry.name.encode() + b"\0" + entry.read_bytes() + b"\0")
    return digest.hexdigest()


@dataclass(frozen=True, slots=True)
class Claim:
    """What a question claims: its text, its answer, and the proof that leads from one to the other."""

    text: str
    answer: Answer
    proof: Proof


def list_answer_checks(
    ground: Indexes, number: int, relation: str, answer: Answer, limits: Thresholds, max_tokens: int
) -> Iterator[Check]:
    """Yield the checks on an answer alone: form, frequency, volatility, and agreement with prose."""
    yield partial(_refuse_own_name, ground, number, answer)
    yield partial(check_form, answer.surface, answer, max_tokens)
    yield partial(check_volatility, relation, limits.volatile)
    yield partial(check_guessable, ground, relation, answer, limits.answer_share)
    yield partial(check_single_answer, ground, number, relation, answer)
    yield lambda: check_agreement(
        find_corroboration(ground, number, relation, answer), limits.agreement, limits.read_pages
    )


def loosen(limits: Thresholds, clause: str) -> Thresholds:
    """Return thresholds for the key of an answer that a sentence gives: a reader said that it lasts."""
    return limits.model_copy(update={"agreement": "off", "volatile": True}) if clause else limits


@dataclass(frozen=True, slots=True)
class PathDemands:
    """Checks of a path before a word is written: answer, sentences, ways around it, need for its picture."""

    limits: Thresholds
    max_tokens: int
    """Longest answer, white-space tokens."""
    hub_in_degree: int | None = None
    """Entities with more incoming links make no shorter path; None lets all shortcuts pass."""
    gold_shares: Mapping[Split, float] = field(default_factory=dict)
    """Largest share of the answer among those of all anchors of the type; of a split that is not named any may be."""

    def find_answer_fault(self, ground: Indexes, attribute: Attribute) -> CheckResult | None:
        """Return the first check that an attribute fails as an answer, None if it may be asked for."""
        fact = attribute.fact
        limits = loosen(self.limits, attribute.clause)
        refused = run_checks(list_answer_checks(ground, fact.node, fact.key, attribute.answer, limits, self.max_tokens))
        return refused[0] if refused else None

    def find_path_fault(self, ground: Indexes, path: Path, answer: Answer) -> CheckResult | None:
        """Return the first check that a path to an answer fails, None if it may become a question."""
        numbers = locate_nodes(ground.corpus, path.nodes)
        names = list_names(ground.corpus, path.nodes)
        query = Query(
            numbers[0], path.hops, (), path.answer_relation, flatten_names(names), answer_clause=path.answer_clause
        )
        refused = run_checks((
            *(partial(check_volatility, hop.relation, self.limits.volatile) for hop in path.hops),
            *(partial(check_single_value, ground, numbers, hop) for hop in path.hops),
            *self._list_clause_checks(path, names, answer),
            partial(check_answer_unchanged, ground, query, answer.key),
            *self._list_shortcut_checks(ground, numbers, path.answer_relation, answer),
            partial(check_need, ground, query, path.nodes[0].type, self.limits.answers),
            partial(self._refuse_gold, ground, query, path, answer),
        ))  # fmt: skip
        return refused[0] if refused else None

    def _refuse_gold(self, ground: Indexes, query: Query, path: Path, answer: Answer) -> CheckResult:
        most = self.gold_shares.get(path.split, 1.0)
        if most >= 1.0 or not self.limits.answers or not is_countable(query):
            return PASSED
        odds = count_odds(ground, query, path.nodes[0].type, answer.key, self.limits.answers)
        if odds.share > most:
            detail = f"{odds.gold} of {odds.anchors} anchors of type {path.nodes[0].type} lead to {answer.surface!r}"
            return CheckResult("FAIL", "guessed-without-picture", detail)
        return PASSED

    def _list_clause_checks(self, path: Path, names: Sequence[Sequence[str]], answer: Answer) -> Iterator[Check]:
        words = list_type_words(path.nodes)
        # Of a sentence whose relation was read, the gloss is said, which names nobody.
        for clause in (hop.clause for hop in path.hops if hop.clause and not hop.gloss):
            yield partial(check_names, clause, names, words)
            yield partial(check_demonyms, clause, names, words)
            yield partial(check_answer, clause, answer, words)

    def _list_shortcut_checks(
        self, ground: Indexes, numbers: Sequence[int], relation: str, answer: Answer
    ) -> Iterator[Check]:
        if self.hub_in_degree is not None:
            article = find_article(ground.corpus, numbers[-1], relation, answer)
            yield partial(check_path_length, ground.corpus, numbers, self.hub_in_degree)
            yield partial(check_earlier_pages, ground.corpus, numbers, answer, article)


def list_branch_checks(ground: Indexes, query: Query, proof: Proof) -> Iterator[Check]:
    """Yield the checks of each hidden entity of a branch: one fits, and its descriptor says what is counted."""
    for number, branch in enumerate(proof.branches, len(proof.nodes)):
        if branch.named:
            continue
        yield partial(check_side, count_side(ground, query, number))
        if cap := proof.thresholds.near_misses:
            yield partial(check_near_misses, find_side_misses(ground, query, number, cap))
        said = [constraint for constraint in proof.constraints if constraint.node == number]
        titles = [other.node.title for other in proof.branches if other.host == number]
        (entity,) = locate_nodes(ground.corpus, [branch.node])
        yield partial(check_counted, ground.corpus, entity, said, branch.descriptor, titles=titles)


def list_text_checks(
    ground: Indexes, numbers: Sequence[int], text: str, answer: Answer, proof: Proof
) -> Iterator[Check]:
    """Yield the checks on the final wording: no leak, nothing lost or added, and the right question."""
    names, words = list_names(ground.corpus, proof.hidden), list_type_words(proof.entities)
    yield partial(check_names, text, names, words)
    yield partial(check_answer, text, answer, words)
    yield partial(check_demonyms, text, names, words)
    yield partial(check_precision, text, answer)
    if not proof.thresholds.volatile:
        yield partial(check_timeless, text)
    yield partial(check_spoken, text, list_descriptors(proof))
    yield partial(check_told, ground.corpus, locate_nodes(ground.corpus, proof.hidden), text, proof)
    probes = list_probes(numbers, text, proof)
    yield partial(check_retrieval, ground.corpus, text, numbers[-1], proof.thresholds.retrieval_rank, probes)


def check_need(ground: Indexes, query: Query, anchor_type: str, least: int) -> CheckResult:
    """FAIL (``picture-not-needed``) if all anchors of the type give fewer than ``least`` answers (N_img); 0 passes."""
    if not least:
        return PASSED
    anchors, answers = count_anchor_answers(ground, query, anchor_type, least)
    if answers < least:
        return CheckResult(
            "FAIL", "picture-not-needed", f"{answers} answers over {anchors} anchors of type {anchor_type}"
        )
    return PASSED


def _refuse_own_name(ground: Indexes, number: int, answer: Answer) -> CheckResult:
    if fold_name(answer.surface) in {fold_name(name) for name in ground.corpus.aliases(number)}:
        return CheckResult("FAIL", "answer-is-bridge", f"{answer.surface!r} is the name of the page")
    return PASSED


@dataclass(frozen=True, slots=True)
class Round:
    """One round of injection: its fact, the proof grown by it, and the inputs of its checks."""

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
    """Fewest distinct answers over all entities of the new entity's type; 0 is off."""


def list_descriptor_checks(
    ground: Indexes, this: Round, descriptor: Descriptor, said: Sequence[Constraint], query: Query
) -> Iterator[Check]:
    """Yield the checks on a descriptor of the entity that a round hides, cheapest first."""
    yield partial(check_facts, descriptor)
    yield partial(_check_said, this, descriptor, said)
    corpus = ground.corpus
    titles = [corpus.page(side.entity).title for side in query.sides if side.host == 1]
    yield partial(check_counted, corpus, this.numbers[1], said, descriptor.text, titles=titles)
    yield partial(check_names, descriptor.text, this.names, this.type_words)
    yield partial(check_demonyms, descriptor.text, this.names, this.type_words)
    yield partial(check_answer, descriptor.text, this.answer, this.type_words)
    yield lambda: check_fit(count_fit(ground, query, 1, this.threshold), this.threshold)
    yield partial(check_answer_unchanged, ground, query, this.answer.key)
    yield partial(check_need, ground, query, this.view.anchor_type, this.min_answers)


def _check_said(this: Round, descriptor: Descriptor, said: Sequence[Constraint]) -> CheckResult:
    if all(constraint.relation != TYPE for constraint in said):
        return CheckResult(
            "FAIL", "no-descriptor", f"{descriptor.text!r} does not say that it is a {this.proof.nodes[1].type}"
        )
    if len(this.proof.hops) == 1 and any(c.relation == this.proof.answer_relation for c in said):
        return CheckResult("FAIL", "answer-leak", f"{descriptor.text!r} tells of {this.proof.answer_relation}")
    return PASSED


def list_rewording_checks(ground: Indexes, this: Round, before: str, after: str, proof: Proof) -> Iterator[Check]:
    """Yield the checks on a question as reworded by a round."""
    front = this.proof.nodes[0].title
    yield partial(check_named, after, front)
    yield lambda: check_names(mask_names(after, list_writings(front)), this.names[1:], this.type_words)
    yield partial(check_answer, after, this.answer, this.type_words)
    yield partial(check_spoken, after, list_descriptors(proof))
    yield partial(check_kept, before, after, this.proof.nodes[1].title)
    if not proof.thresholds.volatile:
        yield partial(check_timeless, after)


def list_hidden_checks(corpus: Corpus, text: str, proof: Proof, answer: Answer) -> Iterator[Check]:
    """Yield the checks that a question, its anchor still named, reveals no other node and no answer."""
    names, words = list_names(corpus, proof.hidden)[1:], list_type_words(proof.entities)
    masked = mask_names(text, list_writings(proof.nodes[0].title))
    if names:
        yield partial(check_names, masked, names, words)
        yield partial(check_demonyms, masked, names, words)
    yield partial(check_answer, text, answer, words)


OPENING = re.compile(r"(?:who|what|where)\b", re.IGNORECASE)


def check_concept(answer: Answer, concept: str) -> CheckResult:
    """FAIL (``concept-not-in-answer``) unless an accepted form of the answer holds the concept, its bracket aside."""
    wanted = fold_name(strip_qualifier(concept))
    if wanted and any(holds_phrase(fold_name(form), wanted) for form in (answer.surface, *answer.aliases)):
        return PASSED
    return CheckResult("FAIL", "concept-not-in-answer", f"{concept!r} is in no form of {answer.surface!r}")


def check_opening(text: str) -> CheckResult:
    """FAIL (``other-opening``) unless a question begins with Who, What or Where."""
    if OPENING.match(text.strip()):
        return PASSED
    return CheckResult("FAIL", "other-opening", f"{text!r} begins with none of Who, What and Where")


def list_naming_checks(
    ground: Indexes, numbers: Sequence[int], text: str, answer: Answer, proof: Proof
) -> Iterator[Check]:
    """Yield the checks on the text of a question for the name of what its picture shows (MMSearch-R1, table 2).

    Rules 2 and 3 of the paper: the question begins with Who, What or Where, and holds neither the concept nor its
    background, which is what the page says of the concept beside its type, and any word for it narrower than the type.
    :func:`check_concept` holds rule 1; rule 4, whether a curious person would ask it, is a mark of the evaluator.
    """
    yield partial(check_opening, text)
    yield from list_text_checks(ground, numbers, text, answer, proof)
    yield partial(check_reference, text, proof.nodes[0].type, ground.corpus.types)


class QuestionCheck(Protocol):
    """What a plugin of the group ``synth.checks`` makes.

    It is called with the corpus and what a question claims, and decides by these alone: ``synth verify`` asks it again.
    It does no input or output, and the same claim has the same result each time.
    """

    @property
    def reasons(self) -> dict[str, str]:
        """What it refuses questions for, with what each means; a refused row has it as ``plugin:reason``."""

    def __call__(self, ground: Indexes, claim: Claim) -> CheckResult:
        """Return PASS, or FAIL or UNKNOWN with one of its reasons as the code."""


@dataclass(frozen=True)
class PluggedCheck:
    """A plugin's check of questions."""

    plugin: Plugin

    def make_check(self, ground: Indexes, claim: Claim) -> Check:
        """Return the check of one question."""
        return partial(self._ask, ground, claim)

    def _ask(self, ground: Indexes, claim: Claim) -> CheckResult:
        entry = self.plugin.entry
        where = f"plugin {entry.describe()}"
        try:
            result = self.plugin.made(ground, claim)
        except SynthError:
            raise
        except Exception as error:
            raise ConfigError(f"{where} failed at {claim.text!r}: {type(error).__name__}: {error}") from error
        if not isinstance(result, CheckResult) or not (result.passed or result.code in entry.reasons):
            raise ConfigError(f"{where} returned {result!r}; its reasons are {', '.join(entry.reasons) or 'none'}")
        return result if result.passed else replace(result, code=f"{entry.name}:{result.code}")
