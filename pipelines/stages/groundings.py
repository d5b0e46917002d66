"""Groundings: the anchor's picture and the final question (OpenSearch-VL, section 3.1, anchor-aware grounding)."""

import asyncio
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import ClassVar, get_args

from pipelines.agent.choosing import Anchor, Choice, DistractorFetcher, PictureChooser
from pipelines.agent.depicting import CandidateList
from pipelines.checks.descriptors import check_reference
from pipelines.checks.examination import Claim, PluggedCheck, list_text_checks
from pipelines.checks.leakage import list_type_words
from pipelines.checks.readings import Evaluator
from pipelines.checks.verdicts import (
    PASSED,
    TRIES,
    Check,
    CheckResult,
    explain_refusal,
    list_secrets,
    refuse,
    run_checks,
)
from pipelines.config.settings import GroundingsConfig
from pipelines.graph.odds import count_odds, is_countable
from pipelines.graph.proofs import list_names, make_query, make_question_id, view_proof
from pipelines.graph.query import Indexes, locate_nodes
from pipelines.graph.titles import asks_name
from pipelines.ids import digest_value
from pipelines.services.prompting import Prompted, RoleClient, ask_model, make_schema
from schemas.base import Record, Rejection
from schemas.datasets import Grounding, Rewrite
from schemas.manifest import ModelEntry
from schemas.proofs import Count, Proof, Reading, Screening
from schemas.reasons import GroundingReason
from schemas.tasks import NOTHING, QuestionReply, ReferToAnchorInputs, Tried

REASONS = frozenset(get_args(GroundingReason))
UNMENDABLE = frozenset(["one-retrieval", "second-entity", "several-answers", "no-names"])
"""Reasons that another reference to the picture cannot remove."""


@dataclass(frozen=True, slots=True)
class Wording:
    """A final text, what was read in it, and what refuses it."""

    text: str
    reading: Reading | None
    screening: Screening | None
    refused: tuple[CheckResult, ...]


@dataclass(frozen=True)
class Groundings(Prompted):
    """The stage: fuzzy questions in, questions with a picture in place of the anchor's name out."""

    ground: Indexes
    chooser: PictureChooser
    asking: RoleClient
    settings: GroundingsConfig
    reader: Evaluator
    """Reads the final text back; what it did not read is refused."""
    distractors: DistractorFetcher | None = None
    """None where no picture is fetched."""
    plugged: tuple[PluggedCheck, ...] = ()
    """Checks by plugins."""
    name: str = "groundings"
    version: int = 14
    input: ClassVar[type[Record]] = Rewrite
    output: ClassVar[type[Record]] = Grounding

    def fingerprint(self) -> str:
        rules = [
            self.settings.min_answers,
            self.settings.require_image,
            self.settings.retrieval_rank,
            self.chooser.identity,
            self.distractors.identity if self.distractors else "",
            *([[each.plugin.identity for each in self.plugged]] if self.plugged else []),
        ]
        return digest_value([*rules, self.asking.identity, make_schema(QuestionReply), self.reader.identity])

    @property
    def reasons(self) -> tuple[str, ...]:
        """What plugins may refuse rows for, beside our own reasons."""
        return tuple(reason for each in self.plugged for reason in each.plugin.entry.list_reasons())

    def models(self) -> tuple[ModelEntry, ...]:
        return (self.asking.describe("rewriter"), self.reader.describe())

    async def __call__(self, record: Rewrite) -> Sequence[Grounding] | Rejection:
        # Counting comes between finding pictures and opening them: it costs less and refuses more.
        anchor = self._describe_anchor(record)
        listed = await self.chooser.lister.list_candidates(anchor.node, anchor.lead)
        missing = self._refuse_missing(listed, record)
        counts: tuple[Count, ...] = ()
        needed = PASSED
        if missing.passed:
            # In a thread: the first look at a relation reads the facts of the whole corpus.
            counts, needed = await asyncio.to_thread(self._count_need, record)
        refused = [result for result in (missing, needed) if not result.passed]
        choice = Choice()
        if listed.found and not refused:
            choice = await self.chooser.choose(anchor, listed.found)
            refused += choice.refused
        if refused:
            return refuse(record.record_id, refused, self._allowed)
        demanded = {"answers": self.settings.min_answers, "retrieval_rank": self.settings.retrieval_rank}
        thresholds = record.proof.thresholds.model_copy(update=demanded)
        counted = {"counts": (*record.proof.counts, *counts), "thresholds": thresholds}
        proof = record.proof.model_copy(update=counted)
        wording = await self._word(record, proof)
        if wording.refused:
            return refuse(record.record_id, wording.refused, self._allowed)
        sha256 = choice.picture.sha256 if choice.picture else ""
        others = await self.distractors.fetch(anchor.node, anchor.path) if self.distractors else ()
        return (
            Grounding(
                record_id=make_question_id(wording.text, sha256, record.answer, proof),
                parent_id=record.record_id,
                split=record.split,
                domain=record.domain,
                text=wording.text,
                fuzzy=record.text,
                canonical=record.canonical,
                picture=choice.picture,
                answer=record.answer,
                proof=proof,
                depiction=choice.depiction,
                reading=wording.reading,
                screening=wording.screening,
                fetched=(*choice.fetched, *others),
                knowledge=record.knowledge,
            ),
        )

    @property
    def _allowed(self) -> frozenset[str]:
        return REASONS.union(self.reasons)

    async def _word(self, record: Rewrite, proof: Proof) -> Wording:
        tried, secrets = NOTHING, list_secrets(list_names(self.ground.corpus, proof.hidden), record.answer)
        # What asks for a name refers to its picture from the start.
        named = asks_name(record.proof)
        for _ in range(1 if named else TRIES):
            text = record.text if named else await self._refer(record, tried)
            wording = await self._check_text(record, text, proof)
            if not wording.refused or wording.refused[0].code in UNMENDABLE:
                break
            shown = f"{record.text} {proof.nodes[0].title}"
            tried = (explain_refusal(wording.refused[0], text, secrets, shown),)
        return wording

    async def _check_text(self, record: Rewrite, text: str, proof: Proof) -> Wording:
        checks = self._list_checks(record, text, proof)
        refused = await asyncio.to_thread(run_checks, checks)  # they search
        reading = screening = None
        if not refused:
            reading, read = await self.reader.check(text, proof, record.answer)
            refused = () if read.passed else (read,)
        if reading is not None and not refused:
            screening, screened = await self.reader.screen(text, reading, proof, record.answer)
            refused = () if screened.passed else (screened,)
        return Wording(text, reading, screening, refused)

    def _list_checks(self, record: Rewrite, text: str, proof: Proof) -> Iterator[Check]:
        corpus = self.ground.corpus
        yield from list_text_checks(self.ground, locate_nodes(corpus, proof.nodes), text, record.answer, proof)
        yield partial(check_reference, text, proof.nodes[0].type, corpus.types)
        claim = Claim(text, record.answer, proof)
        yield from (each.make_check(self.ground, claim) for each in self.plugged)

    def _describe_anchor(self, record: Rewrite) -> Anchor:
        corpus, proof = self.ground.corpus, record.proof
        node, *path = locate_nodes(corpus, proof.nodes)
        return Anchor(
            node=node,
            path=tuple(path),
            title=proof.nodes[0].title,
            qid=corpus.page(node).qid,
            lead=record.image,
            names=list_names(corpus, proof.hidden),
            answer=record.answer,
            words=list_type_words(proof.entities),
        )

    def _refuse_missing(self, listed: CandidateList, record: Rewrite) -> CheckResult:
        if listed.found or not self.settings.require_image:
            return PASSED
        if not listed.dropped:
            detail = f"{record.image} is not at hand" if record.image else "the article has no free picture"
            return CheckResult("FAIL", "no-picture", detail)
        reasons = "; ".join(f"{each.file}: {each.detail or each.reason}" for each in listed.dropped)
        return CheckResult("FAIL", listed.dropped[0].reason, reasons)

    def _count_need(self, record: Rewrite) -> tuple[tuple[Count, ...], CheckResult]:
        threshold = self.settings.min_answers
        if not threshold:
            return (), PASSED
        query = make_query(self.ground.corpus, record.proof)
        kind = record.proof.nodes[0].type
        odds = count_odds(self.ground, query, kind, record.answer.key, threshold)
        counts = odds.as_counts(is_countable(query))
        if odds.answers < threshold:
            detail = f"{odds.answers} answers over {odds.anchors} anchors of type {kind}"
            return counts, CheckResult("FAIL", "picture-not-needed", detail)
        return counts, PASSED

    async def _refer(self, record: Rewrite, tried: tuple[Tried, ...]) -> str:
        hidden = {certificate.node: certificate.descriptor for certificate in record.certificates}
        inputs = ReferToAnchorInputs(
            question=record.text,
            name=record.proof.nodes[0].title,
            anchor_type=record.proof.nodes[0].type,
            path=view_proof(self.ground.corpus, record.proof, record.answer),
            descriptors=tuple(hidden.get(node, "") for node in range(1, len(record.proof.nodes))),
            tried=tried,
        )
        return (await ask_model(self.asking, inputs, QuestionReply)).question
