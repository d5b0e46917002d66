"""Questions: the canonical question, its typed answer and its proof (OpenSearch-VL, section 3.1)."""

import asyncio
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import ClassVar, get_args

from pipelines.checks.agreement import check_volatility, find_corroboration
from pipelines.checks.answers import check_named, check_not_bridge
from pipelines.checks.examination import list_answer_checks, loosen
from pipelines.checks.propositions import ProseReader
from pipelines.checks.readings import Evaluator
from pipelines.checks.uniqueness import check_derivable, check_single_value
from pipelines.checks.verdicts import PASSED, TRIES, Check, CheckResult, explain_refusal, refuse, run_checks
from pipelines.errors import RecordFailed
from pipelines.graph.answers import derive_answer, type_answer
from pipelines.graph.facts import read_askable
from pipelines.graph.proofs import flatten_names, list_names, start_proof, view_proof
from pipelines.graph.propositions import read_clause
from pipelines.graph.query import Indexes, locate_nodes
from pipelines.ids import digest_value, draw_unit, make_record_id
from pipelines.services.prompting import Prompted, RoleClient, ask_model, make_schema
from pipelines.splits import SplitRule
from schemas.base import Record, Rejection
from schemas.datasets import Path, Question
from schemas.manifest import ModelEntry
from schemas.proofs import Answer, Derivation, Proof, Thresholds
from schemas.reasons import QuestionReason
from schemas.tasks import NOTHING, WrittenQuestionReply

REASONS = frozenset(get_args(QuestionReason))
COARSER: dict[str, tuple[Derivation, ...]] = {"day": ("month", "year"), "month": ("year",)}
"""Parts of a date that may be asked for, by its precision."""


@dataclass(frozen=True)
class Questions(Prompted):
    """The stage: paths in, one canonical question with its proof for each out."""

    ground: Indexes
    asking: RoleClient
    reader: Evaluator
    pages: ProseReader | None
    """Reads prose for the answer and for second values of the hops; without one cue words alone decide."""
    limits: Thresholds
    """Thresholds that answers must meet."""
    max_tokens: int
    """Longest answer, white-space tokens."""
    splits: SplitRule
    obfuscated: float = 0.0
    """Share of fuller dates of which only a part is asked (OpenSearch-VL, 3.1: occasional answer obfuscation)."""
    name: str = "questions"
    version: int = 12
    input: ClassVar[type[Record]] = Path
    output: ClassVar[type[Record]] = Question

    def fingerprint(self) -> str:
        pages = self.pages.identity if self.pages else ""
        rules = [repr(self.limits), self.max_tokens, repr(self.splits), self.obfuscated]
        return digest_value(
            [self.asking.identity, self.reader.identity, pages, make_schema(WrittenQuestionReply), *rules]
        )

    def models(self) -> tuple[ModelEntry, ...]:
        return (self.asking.describe("writer"), self.reader.describe())

    async def __call__(self, record: Path) -> Sequence[Question] | Rejection:
        whole = self._type_answer(record)
        if whole is None:
            return Rejection(record_id=record.record_id, reason="answer-untyped", detail=record.answer_text)
        derivation = self._draw_derivation(record, whole)
        answer = derive_answer(whole, derivation)
        if answer is None:
            raise AssertionError(f"a {whole.precision} date has no {derivation}: {whole.value}")
        proof = self._make_proof(record, derivation)
        refused = await asyncio.to_thread(run_checks, self._list_checks(record, proof, answer))
        if refused:
            return refuse(record.record_id, refused, REASONS)
        if self.pages:
            readings, result = await self.pages.check(proof, answer)
            if not result.passed:
                return refuse(record.record_id, (result,), REASONS)
            proof = proof.model_copy(update={"page_readings": readings})
        number = locate_nodes(self.ground.corpus, record.nodes)[-1]
        if not record.answer_clause:
            said = find_corroboration(self.ground, number, record.answer_relation, answer)
            proof = proof.model_copy(update={"corroboration": said.evidence if said.outcome == "agrees" else None})
        text = await self._write(record, proof, answer)
        if isinstance(text, CheckResult):
            return refuse(record.record_id, (text,), REASONS)
        return (
            Question(
                record_id=make_record_id("question", [record.record_id, text]),
                parent_id=record.record_id,
                split=record.split,
                domain=record.domain,
                image=record.image,
                text=text,
                answer=answer,
                proof=proof,
            ),
        )

    def _type_answer(self, record: Path) -> Answer | None:
        corpus = self.ground.corpus
        number = locate_nodes(corpus, record.nodes)[-1]
        if not record.answer_clause:
            linked = (a.answer for a in read_askable(corpus, number)
                      if a.fact.key == record.answer_relation and a.fact.target >= 0)  # fmt: skip
            return next(linked, type_answer(record.answer_text, record.answer_iso, record.answer_relation))
        names = flatten_names(list_names(corpus, record.nodes))
        found = read_clause(corpus, number, record.answer_clause, record.answer_relation, names)
        return found[0].answer if len(found) == 1 else None

    async def _write(self, record: Path, proof: Proof, answer: Answer) -> str | CheckResult:
        view, tried, misread = view_proof(self.ground.corpus, proof, answer), NOTHING, PASSED
        titles = [node.title for node in record.nodes[:-1]]
        hidden = flatten_names(list_names(self.ground.corpus, record.nodes[-1:]))
        for sample in range(TRIES):
            inputs = view.model_copy(update={"tried": tried})
            reply = await ask_model(self.asking, inputs, WrittenQuestionReply, sample=sample)
            if reply.declined.strip(" .").casefold() != "none":
                return CheckResult("FAIL", "writer-declined", reply.declined)
            text = reply.question
            result = _check_wording(text, titles)
            if result.passed:
                _, result = await self.reader.check(text, proof, answer)
                if result.passed:
                    return text
                misread = replace(result, detail=f"{text!r}: {result.detail}")
            tried = (explain_refusal(result, text, hidden, " ".join(titles)),)
        if not misread.passed:
            return misread
        raise RecordFailed("unusable-question", result.detail)

    def _draw_derivation(self, record: Path, answer: Answer) -> Derivation:
        # The coarser answer has a place in the splits too; elsewhere it would be in two of them.
        options = [
            part
            for part in (COARSER.get(answer.precision, ()) if answer.type == "date" else ())
            if (coarser := derive_answer(answer, part)) and self.splits.place("answer", coarser.key) == record.split
        ]
        if not options or draw_unit("obfuscate", record.record_id) >= self.obfuscated:
            return ""
        return options[int(draw_unit("coarser", record.record_id) * len(options))]

    def _list_checks(self, record: Path, proof: Proof, answer: Answer) -> Iterator[Check]:
        numbers = locate_nodes(self.ground.corpus, record.nodes)
        yield partial(check_not_bridge, answer, [node.title for node in record.nodes])
        yield from list_answer_checks(
            self.ground, numbers[-1], proof.answer_relation, answer, loosen(proof.thresholds, proof.answer_clause),
            self.max_tokens,
        )  # fmt: skip
        for hop in record.hops:
            yield partial(check_volatility, hop.relation, proof.thresholds.volatile)
            yield partial(check_single_value, self.ground, numbers, hop)
        yield partial(check_derivable, self.ground, proof, answer)

    def _make_proof(self, record: Path, derivation: Derivation) -> Proof:
        corpus = self.ground.corpus
        # A sentence that gives the answer is its evidence: nothing else has to confirm it but the evaluator.
        limits = self.limits.model_copy(update={"agreement": "off"}) if record.answer_clause else self.limits
        proof = start_proof(corpus, record.nodes, record.hops, record.answer_relation, record.answer_evidence, limits)
        asked = {"answer_gloss": record.answer_gloss, "answer_clause": record.answer_clause, "derivation": derivation}
        return proof.model_copy(update=asked)


def _check_wording(text: str, titles: Sequence[str]) -> CheckResult:
    refused = run_checks(partial(check_named, text, title) for title in titles)
    if refused or text.rstrip().endswith("?"):
        return refused[0] if refused else PASSED
    return CheckResult("FAIL", "descriptor-lost", f"{text!r} is no question")
