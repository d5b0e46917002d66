"""Questions for the name of what a picture shows, and the knowledge that a question takes (MMSearch-R1, section 3.1).

A writer reads a concept's article and asks for the concept; code holds the question to the paper's first three rules
and a reader reads it back. The evaluator then says which knowledge of a closed list a question takes, and how likely a
curious person is to ask it: the fourth rule.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass

from pipelines.checks.examination import check_concept, list_naming_checks
from pipelines.checks.readings import Evaluator
from pipelines.checks.verdicts import TRIES, CheckResult, explain_refusal, run_checks
from pipelines.graph.answers import count_tokens
from pipelines.graph.facts import Attribute
from pipelines.graph.proofs import cite_sentence, make_node, read_opening, start_proof
from pipelines.graph.query import Indexes
from pipelines.graph.titles import TITLE, find_name
from pipelines.ids import digest_value, make_record_id
from pipelines.services.prompting import Prompted, RoleClient, ask_model, make_schema
from schemas.base import Rejection
from schemas.datasets import Question, Seed
from schemas.proofs import Proof, Thresholds
from schemas.reasons import QuestionReason
from schemas.tasks import NOTHING, AskConceptInputs, ClassifiedReply, ClassifyQuestionInputs, QuestionReply


@dataclass(frozen=True)
class ConceptAsker(Prompted):
    """Asks for names, and classifies questions about concepts."""

    ground: Indexes
    asking: RoleClient
    classifying: RoleClient
    reader: Evaluator
    limits: Thresholds
    """Of every proof."""
    max_tokens: int
    """Longest name, white-space tokens."""
    page_words: int
    """Words of the article that the writer is shown."""
    least_mark: int
    """Least mark for what a curious person would ask."""

    @property
    def identity(self) -> str:
        asked = [self.asking.identity, self.classifying.identity, self.reader.identity, make_schema(ClassifiedReply)]
        return digest_value([*asked, repr(self.limits), self.max_tokens, self.page_words, self.least_mark])

    async def ask(self, record: Seed, number: int) -> Sequence[Question] | Rejection:
        """Return a question for the name of a concept; a refused one is requested once more with the reason."""
        named = await asyncio.to_thread(find_name, self.ground.corpus, number)
        if named is None:
            return _refuse(record, "unnamed", CheckResult("FAIL", detail=f"{record.title} is not named in its lead"))
        if count_tokens(named.answer.surface) > self.max_tokens:
            detail = f"{named.answer.surface!r} has more than {self.max_tokens} words"
            return _refuse(record, "answer-too-long", CheckResult("FAIL", detail=detail))
        ruled = check_concept(named.answer, record.concept)
        if not ruled.passed:
            return _refuse(record, "concept-not-in-answer", ruled)
        proof = self._make_proof(number, named)
        inputs = AskConceptInputs(
            concept=record.concept,
            type=record.type,
            page=read_opening(self.ground.corpus, number, self.page_words),
            variety=digest_value(["ask", record.page_id])[:16],
        )
        tried, refused = NOTHING, ruled
        for sample in range(TRIES):
            asked = inputs.model_copy(update={"tried": tried})
            text = (await ask_model(self.asking, asked, QuestionReply, sample=sample)).question
            refused = await self._check(number, text, proof, named)
            if refused.passed:
                return (self._make_question(record, text, named, proof),)
            tried = (explain_refusal(refused, text),)
        return _refuse(record, "rules-broken", refused)

    async def _check(self, number: int, text: str, proof: Proof, named: Attribute) -> CheckResult:
        checks = list_naming_checks(self.ground, [number], text, named.answer, proof)
        found = await asyncio.to_thread(run_checks, checks)
        if found:
            return found[0]
        _, read = await self.reader.check(text, proof, named.answer)
        return read

    async def classify(self, record: Seed, questions: Sequence[Question]) -> Sequence[Question] | Rejection:
        """Return the questions with the knowledge that each takes, or refuse what no curious person would ask."""
        classified = []
        for question in questions:
            inputs = ClassifyQuestionInputs(question=question.text, type=record.type)
            reply = await ask_model(self.classifying, inputs, ClassifiedReply)
            if reply.curious < self.least_mark:
                detail = f"{question.text!r} has the mark {reply.curious}; the least is {self.least_mark}"
                return _refuse(record, "not-curious", CheckResult("FAIL", detail=detail))
            classified.append(question.model_copy(update={"knowledge": reply.knowledge}))
        return tuple(classified)

    def _make_question(self, record: Seed, text: str, named: Attribute, proof: Proof) -> Question:
        return Question(
            record_id=make_record_id("question", [record.record_id, TITLE, text]),
            parent_id=record.record_id,
            split=record.split,
            domain=record.domain,
            image=record.image,
            text=text,
            answer=named.answer,
            proof=proof,
        )

    def _make_proof(self, number: int, named: Attribute) -> Proof:
        corpus, fact = self.ground.corpus, named.fact
        node = make_node(corpus, number, "anchor")
        evidence = cite_sentence(corpus, number, fact.start, fact.end)
        return start_proof(corpus, [node], (), TITLE, evidence, self.limits)


def _refuse(record: Seed, reason: QuestionReason, result: CheckResult) -> Rejection:
    codes = tuple(dict.fromkeys((reason, result.code or reason)))
    return Rejection(record_id=record.record_id, reason=reason, detail=result.detail, codes=codes)
