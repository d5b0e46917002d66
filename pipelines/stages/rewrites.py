"""Rewrites: hide one entity at a time, from the farthest bridge toward the anchor (OpenSearch-VL, section 3.1).

A descriptor is accepted if the three invariants of equation 6 hold: the answer stays, exactly one entity fits, and no
name of a hidden node is in the text. They are counted in the corpus, not judged by a model: the evaluator reads the
last text alone, once it is asked about a picture. Beyond the paper, a descriptor must fit several entities without the
chain.
"""

import asyncio
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import ClassVar, cast, get_args

from pipelines.checks.descriptors import (
    check_counted,
    check_facts,
    check_slot,
    check_spoken,
    list_constraints,
    offer_facts,
)
from pipelines.checks.leakage import check_answer, check_demonyms, check_names, list_type_words
from pipelines.checks.shortcuts import check_earlier_pages, check_path_length
from pipelines.checks.uniqueness import Fit, check_answer_unchanged, check_fit, count_fit, find_redundant
from pipelines.checks.verdicts import TRIES, Check, CheckResult, explain_refusal, list_secrets, refuse, run_checks
from pipelines.config.settings import RewritesConfig
from pipelines.graph.proofs import CANDIDATES, NEAR_MISSES, list_names, make_query, make_rewrite, read_lead, view_proof
from pipelines.graph.prose import mask_names
from pipelines.graph.query import Indexes, Query, find_article, locate_nodes
from pipelines.ids import digest_value
from pipelines.names import list_writings
from pipelines.services.prompting import Prompted, RoleClient, ask_model, make_schema
from schemas.base import Record, Rejection
from schemas.datasets import Candidate, Certificate, Question, Rewrite
from schemas.manifest import ModelEntry
from schemas.reasons import RewriteReason
from schemas.tasks import (
    NOTHING,
    Descriptor,
    DescriptorsReply,
    ProposeDescriptorsInputs,
    QuestionReply,
    RewriteQuestionInputs,
    Tried,
    WriteQuestionInputs,
)

ACCEPTED = "accepted"
REASONS = frozenset(get_args(RewriteReason))


@dataclass(frozen=True, slots=True)
class Draft:
    """A question with what has been hidden so far."""

    text: str
    query: Query
    descriptors: tuple[str, ...]
    certificates: tuple[Certificate, ...]
    names: tuple[tuple[str, ...], ...]
    type_words: frozenset[str]
    view: WriteQuestionInputs


@dataclass(frozen=True)
class Rewrites(Prompted):
    """The stage: canonical questions in, fuzzy questions with a certificate for each step out."""

    ground: Indexes
    proposing: RoleClient
    rewriting: RoleClient
    settings: RewritesConfig
    hub_in_degree: int
    max_answer_tokens: int
    name: str = "rewrites"
    version: int = 8
    input: ClassVar[type[Record]] = Question
    output: ClassVar[type[Record]] = Rewrite

    def fingerprint(self) -> str:
        asked = [self.proposing.identity, self.rewriting.identity]
        return digest_value(
            [
                repr(self.settings),
                self.hub_in_degree,
                self.max_answer_tokens,
                asked,
                make_schema(DescriptorsReply),
                make_schema(QuestionReply),
            ]
        )

    def models(self) -> tuple[ModelEntry, ...]:
        return (self.rewriting.describe("rewriter"),)

    async def __call__(self, record: Question) -> Sequence[Rewrite] | Rejection:
        nodes = locate_nodes(self.ground.corpus, record.proof.nodes)
        refused = await asyncio.to_thread(run_checks, self._list_shortcut_checks(record, nodes))
        if refused:
            return refuse(record.record_id, refused, REASONS)
        draft = Draft(
            text=record.text,
            query=make_query(self.ground.corpus, record.proof),
            descriptors=("",) * len(record.proof.hops),
            certificates=(),
            names=list_names(self.ground.corpus, record.proof.nodes),
            type_words=list_type_words(record.proof.nodes),
            view=view_proof(self.ground.corpus, record.proof, record.answer),
        )
        for node in range(len(record.proof.hops) - 1, 0, -1):
            step = await self._hide(record, draft, node, nodes[node])
            if isinstance(step, Rejection):
                return step
            draft = step
        return await asyncio.to_thread(self._finish, record, draft)

    def _list_shortcut_checks(self, record: Question, nodes: Sequence[int]) -> Iterator[Check]:
        yield partial(check_path_length, self.ground.corpus, nodes, self.hub_in_degree)
        article = find_article(self.ground.corpus, nodes[-1], record.proof.answer_relation, record.answer)
        yield partial(check_earlier_pages, self.ground.corpus, nodes, record.answer, article)

    async def _hide(self, record: Question, draft: Draft, node: int, number: int) -> Draft | Rejection:
        tried: list[Candidate] = []
        found: list[CheckResult] = []
        told: dict[str, Tried] = {}
        for _ in range(TRIES):
            proposed = await self._propose(record, draft, (node, number), tuple(told.values()))
            for descriptor in (each for each in proposed if each.text not in told):
                step = await self._try(record, draft, (node, number), descriptor)
                if isinstance(step, Draft):
                    accepted = Candidate(descriptor=descriptor.text, verdict=ACCEPTED)
                    return await asyncio.to_thread(self._certify, draft, step, node, (*tried, accepted))
                found.extend(step)
                tried.append(Candidate(descriptor=descriptor.text, verdict=step[0].code))
                told[descriptor.text] = self._explain(draft, step[0], descriptor.text)
            if not told:
                break
        return self._refuse_bridge(record, node, tried, found)

    def _refuse_bridge(
        self, record: Question, node: int, tried: Sequence[Candidate], found: Sequence[CheckResult]
    ) -> Rejection:
        verdicts = {candidate.verdict for candidate in tried}
        only = verdicts.pop() if len(verdicts) == 1 else ""
        reason = cast(RewriteReason, only) if only in REASONS else "no-descriptor"
        why = dict.fromkeys(f"{result.code}: {result.detail}".strip(": ") for result in found)
        detail = "; ".join((*why, *(candidate.descriptor for candidate in tried))) or "none was proposed"
        return Rejection(record_id=record.record_id, reason=reason, detail=f"node {node}: {detail}", codes=(reason,))

    def _explain(self, draft: Draft, refused: CheckResult, text: str, shown: str = "") -> Tried:
        return explain_refusal(refused, text, list_secrets(draft.names, draft.view.answer), f"{draft.text} {shown}")

    async def _propose(
        self, record: Question, draft: Draft, bridge: tuple[int, int], tried: tuple[Tried, ...]
    ) -> tuple[Descriptor, ...]:
        node, number = bridge
        lead = read_lead(self.ground.corpus, number)
        inputs = ProposeDescriptorsInputs(
            anchor_type=draft.view.anchor_type,
            subject_type=record.proof.nodes[node - 1].type,
            hop=draft.view.hops[node - 1],
            facts=offer_facts(self.ground.corpus, number, self.max_answer_tokens),
            count=CANDIDATES,
            variety=draft.view.variety,
            lead=lead if check_answer(lead or "-", record.answer).passed else "",
            tried=tried,
        )
        reply = await ask_model(self.proposing, inputs, DescriptorsReply)
        return reply.descriptors[:CANDIDATES]

    async def _try(
        self, record: Question, draft: Draft, bridge: tuple[int, int], descriptor: Descriptor
    ) -> Draft | tuple[CheckResult, ...]:
        node, number = bridge
        said = list_constraints(self.ground.corpus, number, node, descriptor)
        query = replace(draft.query, constraints=(*draft.query.constraints, *said))
        counted = partial(
            check_counted, self.ground.corpus, number, said, descriptor.text, record.proof.hops[node - 1].clause
        )
        checks: tuple[Check, ...] = (*self._list_step_checks(record, draft, query, node, descriptor), counted)
        refused = await asyncio.to_thread(run_checks, checks)
        if refused:
            return refused
        descriptors = (*draft.descriptors[: node - 1], descriptor.text, *draft.descriptors[node:])
        tried = NOTHING
        for _ in range(TRIES):
            text = await self._rewrite(record, draft, node, (descriptor, tried))
            refused = run_checks((
                partial(check_names, hide_titles(text, record, node), draft.names[node:], draft.type_words),
                partial(check_spoken, text, descriptors),
            ))  # fmt: skip
            if not refused:
                return replace(draft, text=text, query=query, descriptors=descriptors)
            shown = f"{record.proof.nodes[node].title} {descriptor.text}"
            tried = (self._explain(draft, refused[0], text, shown),)
        return refused

    def _list_step_checks(
        self, record: Question, draft: Draft, query: Query, node: int, descriptor: Descriptor
    ) -> Iterator[Check]:
        threshold = self.settings.require_alone(node)
        yield partial(check_names, descriptor.text, draft.names, draft.type_words)
        yield partial(check_demonyms, descriptor.text, draft.names, draft.type_words)
        yield partial(check_answer, descriptor.text, record.answer, draft.type_words)
        yield lambda: check_fit(count_fit(self.ground, query, node, threshold), threshold)
        yield partial(check_answer_unchanged, self.ground, query, record.answer.key)
        yield partial(check_facts, descriptor)
        yield partial(check_slot, descriptor)

    async def _rewrite(
        self, record: Question, draft: Draft, node: int, wanted: tuple[Descriptor, tuple[Tried, ...]]
    ) -> str:
        descriptor, tried = wanted
        inputs = RewriteQuestionInputs(
            question=draft.text,
            name=record.proof.nodes[node].title,
            node=node,
            descriptor=descriptor.text,
            path=draft.view,
            descriptors=draft.descriptors,
            tried=tried,
        )
        return (await ask_model(self.rewriting, inputs, QuestionReply)).question

    def _certify(self, before: Draft, after: Draft, node: int, tried: tuple[Candidate, ...]) -> Draft:
        fit = count_fit(self.ground, after.query, node, self.settings.require_alone(node))
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
        fits = [
            count_fit(self.ground, draft.query, node, self.settings.require_alone(node))
            for node in range(1, len(record.proof.nodes))
        ]
        refused = run_checks(self._list_last_checks(record, draft, fits))
        if refused:
            return refuse(record.record_id, refused, REASONS)
        limits = {
            "alone_first": self.settings.min_alone_first,
            "alone": self.settings.min_alone,
            "near_misses": NEAR_MISSES,
        }
        found = {
            "constraints": draft.query.constraints,
            "counts": tuple(count for fit in fits for count in fit.as_counts()),
            "descriptors": draft.descriptors,
            "thresholds": record.proof.thresholds.model_copy(update=limits),
            "shortcuts_checked": True,
            "hub_in_degree": self.hub_in_degree,
            "redundant": find_redundant(self.ground, draft.query, record.answer.key),
        }
        proof = record.proof.model_copy(update=found)
        return (make_rewrite(record, draft.text, proof, certificates=draft.certificates),)

    def _list_last_checks(self, record: Question, draft: Draft, fits: Sequence[Fit]) -> Iterator[Check]:
        for fit in fits:
            yield partial(check_fit, fit, self.settings.require_alone(fit.node))
        yield lambda: check_names(hide_titles(draft.text, record, 1), draft.names[1:], draft.type_words)
        yield lambda: check_demonyms(hide_titles(draft.text, record, 1), draft.names[1:], draft.type_words)
        yield partial(check_answer, draft.text, record.answer, draft.type_words)


def hide_titles(text: str, record: Question, node: int) -> str:
    """Blank the titles of nodes that later steps hide: ``Hrum Bridge`` does not leak ``Hrum`` once it is hidden."""
    return mask_names(text, [form for earlier in record.proof.nodes[:node] for form in list_writings(earlier.title)])
