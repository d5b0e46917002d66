"""Initial questions: one fact of a seed's page, asked for by name (VSearcher, section 2.1: initial QA generation).

In the paper a model reads the page and invents question and answer. Here the model picks one of the typed facts that
have passed every check on an answer, and words the question. The seed is the answer node; the anchor is found later,
when rounds of injection grow the question outwards. Of a concept the seed is the anchor already, and its own name may
be asked for instead of a fact (MMSearch-R1).
"""

import asyncio
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import ClassVar, get_args

from pipelines.agent.naming import ConceptAsker
from pipelines.checks.agreement import check_timeless, find_corroboration
from pipelines.checks.answers import check_named, check_precision
from pipelines.checks.descriptors import check_told
from pipelines.checks.examination import list_answer_checks
from pipelines.checks.leakage import check_answer, list_type_words
from pipelines.checks.propositions import ProseReader
from pipelines.checks.readings import Evaluator
from pipelines.checks.uniqueness import check_derivable
from pipelines.checks.verdicts import PASSED, TRIES, Check, CheckResult, explain_refusal, refuse, run_checks
from pipelines.corpus.store import Corpus
from pipelines.errors import RecordFailed
from pipelines.graph.facts import Attribute, read_askable
from pipelines.graph.proofs import cite_fact, make_node, read_opening, start_proof
from pipelines.graph.prose import mask_names
from pipelines.graph.query import Indexes
from pipelines.ids import digest_value, make_record_id
from pipelines.names import list_writings
from pipelines.services.prompting import Prompted, RoleClient, ask_model, make_schema
from pipelines.splits import SplitRule
from schemas.base import Record, Rejection
from schemas.datasets import Question, Seed
from schemas.manifest import ModelEntry
from schemas.proofs import Proof, Thresholds
from schemas.reasons import QuestionReason
from schemas.tasks import NOTHING, AskedFactReply, AskFactInputs, FactView

REASONS = frozenset(get_args(QuestionReason))
_SENTENCE_END = re.compile(r"[.!?]+[\"'”’)]*(?=\s)|\?.*\?", re.DOTALL)


@dataclass(frozen=True, slots=True)
class _Candidate:
    attribute: Attribute
    proof: Proof


@dataclass(frozen=True)
class Initials(Prompted):
    """The stage: seeds in, one question about one fact of each out."""

    ground: Indexes
    asking: RoleClient
    reader: Evaluator
    pages: ProseReader | None
    """Reads prose for the answer; without one cue words alone decide."""
    limits: Thresholds
    """Thresholds that answers must meet."""
    max_tokens: int
    """Longest answer, white-space tokens."""
    splits: SplitRule
    page_words: int
    """Words of the article that the model is shown."""
    concepts: ConceptAsker | None = None
    """Asks for names and classifies questions, where seeds are concepts."""
    name: str = "questions"
    version: int = 6
    input: ClassVar[type[Record]] = Seed
    output: ClassVar[type[Record]] = Question

    def fingerprint(self) -> str:
        rules = [repr(self.limits), self.max_tokens, repr(self.splits), self.page_words]
        pages = self.pages.identity if self.pages else ""
        rules += [self.concepts.identity] if self.concepts else []
        return digest_value(
            ["initials", self.asking.identity, self.reader.identity, pages, make_schema(AskedFactReply), *rules]
        )

    def models(self) -> tuple[ModelEntry, ...]:
        return (self.asking.describe("writer"), self.reader.describe())

    async def __call__(self, record: Seed) -> Sequence[Question] | Rejection:
        number = self.ground.corpus.find(record.title)
        if number is None:
            raise RecordFailed("seed-missing", f"the corpus has no article {record.title!r}")
        if self.concepts is None:
            return await self._ask_fact(record, number)
        visual = record.asks == "visual"
        made = await (self.concepts.ask(record, number) if visual else self._ask_fact(record, number))
        return made if isinstance(made, Rejection) else await self.concepts.classify(record, made)

    async def _ask_fact(self, record: Seed, number: int) -> Sequence[Question] | Rejection:
        candidates, refused = await asyncio.to_thread(self._list_candidates, record, number)
        while candidates:
            asked = await self._ask(record, number, candidates)
            if isinstance(asked, CheckResult):
                return refuse(record.record_id, (asked,), REASONS)
            chosen, text = asked
            proof, result = await self._read_page(number, chosen)
            if result.passed:
                question = Question(
                    record_id=make_record_id("question", [record.record_id, chosen.attribute.fact.key, text]),
                    parent_id=record.record_id,
                    split=record.split,
                    domain=record.domain,
                    image=record.image,
                    text=text,
                    answer=chosen.attribute.answer,
                    proof=proof,
                )
                return (question,)
            candidates.remove(chosen)
            refused.append(result)
        return _refuse(record, refused)

    def _list_candidates(self, record: Seed, number: int) -> tuple[list[_Candidate], list[CheckResult]]:
        corpus, candidates, refused = self.ground.corpus, [], []
        node = make_node(corpus, number, "anchor" if self.concepts else "answer")
        for attribute in read_askable(corpus, number):
            fact = attribute.fact
            if self.splits.place("answer", attribute.answer.key) != record.split:
                refused.append(CheckResult("FAIL", "other-split", fact.key))
                continue
            proof = start_proof(corpus, [node], (), fact.key, cite_fact(corpus, fact), self.limits)
            found = run_checks(self._list_checks(number, proof, attribute))
            refused.extend(found)
            if not found:
                candidates.append(_Candidate(attribute, proof))
        return candidates, refused

    def _list_checks(self, number: int, proof: Proof, attribute: Attribute) -> Iterator[Check]:
        yield from list_answer_checks(
            self.ground, number, attribute.fact.key, attribute.answer, self.limits, self.max_tokens
        )
        yield partial(check_derivable, self.ground, proof, attribute.answer)

    async def _ask(
        self, record: Seed, number: int, candidates: Sequence[_Candidate]
    ) -> tuple[_Candidate, str] | CheckResult:
        inputs = AskFactInputs(
            name=record.title,
            type=record.type,
            facts=tuple(_view_fact(self.ground.corpus, candidate.attribute) for candidate in candidates),
            page=read_opening(self.ground.corpus, number, self.page_words),
            variety=digest_value(["ask", record.page_id])[:16],
        )
        offered = {candidate.attribute.fact.key: candidate for candidate in candidates}
        tried, misread = NOTHING, PASSED
        for sample in range(TRIES):
            asked = inputs.model_copy(update={"tried": tried})
            reply = await ask_model(self.asking, asked, AskedFactReply, sample=sample)
            chosen = offered.get(reply.relation)
            refused: tuple[CheckResult, ...]
            if chosen is None:
                refused = (CheckResult("FAIL", "no-injection", f"{reply.relation!r} was not offered"),)
            else:
                refused = run_checks(self._list_text_checks(number, reply.question, chosen))
            if chosen is not None and not refused:
                _, read = await self.reader.check(reply.question, chosen.proof, chosen.attribute.answer)
                if read.passed:
                    return chosen, reply.question
                refused, misread = (read,), replace(read, detail=f"{reply.question!r}: {read.detail}")
            tried = (explain_refusal(refused[0], reply.question),)
        if not misread.passed:
            return misread
        raise RecordFailed("unusable-question", f"{reply.question!r}: {refused[0].code} {refused[0].detail}")

    def _list_text_checks(self, number: int, text: str, chosen: _Candidate) -> Iterator[Check]:
        node, answer = chosen.proof.nodes[0], chosen.attribute.answer
        # A title may hold the answer (``Fair of 1884``), another fact or a full stop: it will be hidden.
        masked = mask_names(text, list_writings(node.title))
        yield partial(check_named, text, node.title)
        yield partial(_check_sentence, masked)
        yield lambda: check_answer(masked, answer, list_type_words([node]))
        yield partial(check_precision, text, answer)
        yield partial(check_told, self.ground.corpus, [number], masked, chosen.proof)
        if not chosen.proof.thresholds.volatile:
            yield partial(check_timeless, masked)

    async def _read_page(self, number: int, chosen: _Candidate) -> tuple[Proof, CheckResult]:
        fact, answer, proof, result = chosen.attribute.fact, chosen.attribute.answer, chosen.proof, PASSED
        said = find_corroboration(self.ground, number, fact.key, answer)
        found: dict[str, object] = {"corroboration": said.evidence if said.outcome == "agrees" else None}
        if self.pages:
            found["page_readings"], result = await self.pages.check(proof, answer)
        return proof.model_copy(update=found), result


def _view_fact(corpus: Corpus, attribute: Attribute) -> FactView:
    fact = attribute.fact
    if fact.target < 0:
        return FactView(relation=fact.key, text=fact.text)
    return FactView(relation=fact.key, text=attribute.answer.surface, type=corpus.page(fact.target).type)


def _check_sentence(text: str) -> CheckResult:
    asked = text.strip()
    if asked.endswith("?") and not _SENTENCE_END.search(asked):
        return PASSED
    return CheckResult("FAIL", "descriptor-lost", f"{text!r} is not one question")


def _refuse(record: Seed, refused: Sequence[CheckResult]) -> Rejection:
    met = Counter(result.code for result in refused)
    codes = ("no-fact", *(code for code in met if code in REASONS))
    detail = ", ".join(f"{code} {count}" for code, count in met.most_common()) or "the page has no typed fact"
    return Rejection(record_id=record.record_id, reason="no-fact", detail=detail, codes=codes)
