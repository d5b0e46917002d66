"""Rewrites: hide one entity at a time, from the farthest bridge toward the anchor (OpenSearch-VL, section 3.1).

A descriptor is accepted when the three invariants of equation 6 hold, counted in the corpus and not asked of a model:
the answer stays, exactly one entity fits, and no name of a hidden node is in the text. Beyond the paper, the descriptor
must fit several entities without the chain.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, cast, get_args

from pipelines.checks.descriptors import check_facts, check_spoken, list_constraints
from pipelines.checks.leakage import check_answer, check_names, list_type_words
from pipelines.checks.shortcuts import check_earlier_pages, check_path_length
from pipelines.checks.uniqueness import check_answer_unchanged, check_fit, count_fit
from pipelines.checks.verdicts import CheckResult
from pipelines.corpus.store import Corpus
from pipelines.errors import RecordFailed
from pipelines.graph.clauses import mask_names
from pipelines.graph.proofs import list_names, make_query, view_proof
from pipelines.graph.query import Query, locate_nodes
from pipelines.graph.relations import RelationIndex, read_attributes
from pipelines.ids import digest_value, make_record_id
from pipelines.prompting import Asking, ask_model, make_schema
from schemas.base import Record, Rejection
from schemas.manifest import ModelEntry
from schemas.proofs import Count, Thresholds
from schemas.questions import Question
from schemas.reasons import RewriteReason
from schemas.rewrites import Candidate, Certificate, Rewrite
from schemas.tasks import (
    Descriptor,
    DescriptorsReply,
    FactView,
    ProposeDescriptorsInputs,
    QuestionReply,
    RewriteQuestionInputs,
    WriteQuestionInputs,
)

ACCEPTED = "accepted"
REASONS = frozenset(get_args(RewriteReason))


@dataclass(frozen=True, slots=True)
class RewriteRules:
    """Thresholds of the rewriting checks."""

    candidates: int
    min_alone_first: int
    min_alone: int
    forbid_shortcuts: bool
    hub_in_degree: int
    max_answer_tokens: int

    def threshold(self, node: int) -> int:
        """Return how many entities a node's descriptor must fit without the chain."""
        return self.min_alone_first if node == 1 else self.min_alone


@dataclass(frozen=True, slots=True)
class Draft:
    """A question on its way: what has been hidden so far."""

    text: str
    query: Query
    descriptors: tuple[str, ...]
    certificates: tuple[Certificate, ...]
    names: tuple[tuple[str, ...], ...]
    type_words: frozenset[str]
    view: WriteQuestionInputs


@dataclass(frozen=True)
class Rewrites:
    """Turns canonical questions into fuzzy ones with a certificate for each step."""

    corpus: Corpus
    relations: RelationIndex
    proposing: Asking
    rewriting: Asking
    rules: RewriteRules
    name: str = "rewrites"
    version: int = 2
    input: ClassVar[type[Record]] = Question
    output: ClassVar[type[Record]] = Rewrite

    def fingerprint(self) -> str:
        """Digest of the thresholds, the prompts and the rewriter."""
        asked = [self.proposing.identity, self.rewriting.identity]
        return digest_value([repr(self.rules), asked, make_schema(DescriptorsReply), make_schema(QuestionReply)])

    def prompts(self) -> dict[str, str]:
        """The proposing and the rewriting prompt."""
        return {asking.prompt.label: asking.prompt.digest for asking in (self.proposing, self.rewriting)}

    def models(self) -> tuple[ModelEntry, ...]:
        """The rewriter."""
        return (self.rewriting.describe("rewriter"),)

    async def __call__(self, record: Question) -> Sequence[Rewrite] | Rejection:
        """Hide every bridge; refuse the question when a check of the whole or every descriptor of a bridge fails."""
        nodes = locate_nodes(self.corpus, record.proof.nodes)
        refusal = self._check_shortcuts(record, nodes)
        if refusal is not None:
            return refusal
        draft = self._start(record)
        for node in range(len(record.proof.hops) - 1, 0, -1):
            step = await self._hide(record, draft, node, nodes[node])
            if isinstance(step, Rejection):
                return step
            draft = step
        return self._finish(record, draft)

    def _check_shortcuts(self, record: Question, nodes: Sequence[int]) -> Rejection | None:
        if not self.rules.forbid_shortcuts:
            return None
        for result in (
            check_path_length(self.corpus, nodes, self.rules.hub_in_degree),
            check_earlier_pages(self.corpus, nodes, record.answer),
        ):
            if result.outcome != "PASS":
                return _refuse(record, result)
        return None

    def _start(self, record: Question) -> Draft:
        return Draft(
            text=record.text,
            query=make_query(self.corpus, record.proof),
            descriptors=("",) * len(record.proof.hops),
            certificates=(),
            names=list_names(self.corpus, record.proof.nodes),
            type_words=list_type_words(record.proof.nodes),
            view=view_proof(record.proof, record.answer),
        )

    async def _hide(self, record: Question, draft: Draft, node: int, number: int) -> Draft | Rejection:
        """Hide one bridge behind the first descriptor that passes everything."""
        tried: list[Candidate] = []
        for descriptor in await self._propose(record, draft, node, number):
            step = await self._try(record, draft, (node, number), descriptor)
            if isinstance(step, Draft):
                return self._certify(
                    draft, step, node, (*tried, Candidate(descriptor=descriptor.text, verdict=ACCEPTED))
                )
            tried.append(Candidate(descriptor=descriptor.text, verdict=step.code))
        verdicts = {candidate.verdict for candidate in tried}
        only = verdicts.pop() if len(verdicts) == 1 else ""
        reason = cast(RewriteReason, only) if only in REASONS else "no-descriptor"
        detail = "; ".join(f"{candidate.descriptor}: {candidate.verdict}" for candidate in tried)
        return Rejection(record_id=record.record_id, reason=reason, detail=f"node {node}: {detail}")

    async def _propose(self, record: Question, draft: Draft, node: int, number: int) -> tuple[Descriptor, ...]:
        attributes = read_attributes(self.corpus, number, self.rules.max_answer_tokens)
        inputs = ProposeDescriptorsInputs(
            anchor_type=draft.view.anchor_type,
            subject_type=record.proof.nodes[node - 1].type,
            hop=draft.view.hops[node - 1],
            facts=tuple(FactView(relation=a.fact.key, text=a.fact.text) for a in attributes),
            count=self.rules.candidates,
            variety=draft.view.variety,
        )
        reply = await ask_model(self.proposing, inputs, DescriptorsReply)
        return reply.descriptors[: self.rules.candidates]

    async def _try(
        self, record: Question, draft: Draft, bridge: tuple[int, int], descriptor: Descriptor
    ) -> Draft | CheckResult:
        """Return the draft with a bridge (index and number) hidden behind a descriptor, or the first failed check."""
        node, number = bridge
        said = list_constraints(self.corpus, number, node, descriptor)
        query = replace(draft.query, constraints=(*draft.query.constraints, *said))
        threshold = self.rules.threshold(node)
        for result in (
            check_names(descriptor.text, draft.names, draft.type_words),
            check_answer(descriptor.text, record.answer, draft.type_words),
            check_fit(count_fit(self.corpus, self.relations, query, node, threshold), threshold),
            check_answer_unchanged(self.corpus, query, record.answer.key),
            check_facts(descriptor),
        ):
            if result.outcome != "PASS":
                return result
        text = await self._rewrite(record, draft, node, descriptor)
        descriptors = (*draft.descriptors[: node - 1], descriptor.text, *draft.descriptors[node:])
        for result in (
            check_names(hide_titles(text, record, node), draft.names[node:], draft.type_words),
            check_spoken(text, descriptors),
        ):
            if result.outcome != "PASS":
                return result
        return replace(draft, text=text, query=query, descriptors=descriptors)

    async def _rewrite(self, record: Question, draft: Draft, node: int, descriptor: Descriptor) -> str:
        inputs = RewriteQuestionInputs(
            question=draft.text,
            name=record.proof.nodes[node].title,
            node=node,
            descriptor=descriptor.text,
            path=draft.view,
            descriptors=draft.descriptors,
        )
        return (await ask_model(self.rewriting, inputs, QuestionReply)).question

    def _certify(self, before: Draft, after: Draft, node: int, tried: tuple[Candidate, ...]) -> Draft:
        fit = count_fit(self.corpus, self.relations, after.query, node, self.rules.threshold(node))
        certificate = Certificate(
            node=node,
            name=after.view.hops[node - 1].object_name,
            candidates=tried,
            descriptor=tried[-1].descriptor,
            text_after=after.text,
            chain_count=fit.chain,
            alone_count=fit.alone,
            answer_after=after.view.answer.key,
        )
        return replace(after, certificates=(*before.certificates, certificate))

    def _finish(self, record: Question, draft: Draft) -> Sequence[Rewrite] | Rejection:
        """Check the whole text once more and count every node for the proof."""
        counts: list[Count] = []
        for node in range(1, len(record.proof.nodes)):
            threshold = self.rules.threshold(node)
            fit = count_fit(self.corpus, self.relations, draft.query, node, threshold)
            result = check_fit(fit, threshold)
            if result.outcome != "PASS":
                return _refuse(record, result)
            counts.extend(fit.as_counts())
        for result in (
            check_names(hide_titles(draft.text, record, 1), draft.names[1:], draft.type_words),
            check_answer(draft.text, record.answer, draft.type_words),
        ):
            if result.outcome != "PASS":
                return _refuse(record, result)
        rules = self.rules
        found = {
            "constraints": draft.query.constraints,
            "counts": tuple(counts),
            "descriptors": draft.descriptors,
            "thresholds": Thresholds(alone_first=rules.min_alone_first, alone=rules.min_alone, answers=0),
            "shortcuts_checked": rules.forbid_shortcuts,
            "hub_in_degree": rules.hub_in_degree,
        }
        return (
            Rewrite(
                record_id=make_record_id("rewrite", [record.record_id, draft.text]),
                parent_id=record.record_id,
                split=record.split,
                domain=record.domain,
                image=record.image,
                canonical=record.text,
                text=draft.text,
                answer=record.answer,
                proof=record.proof.model_copy(update=found),
                certificates=draft.certificates,
            ),
        )


def hide_titles(text: str, record: Question, node: int) -> str:
    """Blank the titles of nodes that are still to be hidden: ``Hrum Bridge`` is no leak of ``Hrum`` once it is gone."""
    return mask_names(text, [earlier.title for earlier in record.proof.nodes[:node]])


def _refuse(record: Question, result: CheckResult) -> Rejection:
    """Return a failed check of the whole question as its rejection.

    Raises:
        RecordFailed: if there was nothing to check, such as an empty text: no reason against the question.
    """
    if result.code not in REASONS:
        raise RecordFailed(result.code, result.detail)
    return Rejection(record_id=record.record_id, reason=cast(RewriteReason, result.code), detail=result.detail)
