"""Bridges: questions A -R-> B -> C about pictures of the news, every fact quoted (BridgeVQA, section 3.3).

A model finds a fact that leads from the picture's A to B, then one of B in this article or in another, and asks for it.
Checks hold quotes, names and question against the articles. Another model says whether the reasoning is sound: the
first phase of the filter. What it leaves open is for people; see :mod:`pipelines.stages.reviews`.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, get_args

from pipelines.checks.readings import digest_text
from pipelines.checks.traces import (
    check_different,
    check_link,
    list_trace_checks,
    make_link,
    write_steps,
)
from pipelines.checks.verdicts import TRIES, CheckResult, explain_refusal, refuse, run_checks
from pipelines.corpus.articles import show_article, show_text
from pipelines.corpus.store import Corpus
from pipelines.errors import RecordFailed
from pipelines.graph.answers import count_tokens, type_answer
from pipelines.ids import digest_value, make_record_id
from pipelines.names import compile_phrase
from pipelines.services.prompting import Prompted, RoleClient, ask_model, make_schema
from schemas.base import Record, Rejection
from schemas.datasets import Anchor, Bridge
from schemas.manifest import ModelEntry
from schemas.proofs import Answer, Trace, TraceLink
from schemas.reasons import ChainReason
from schemas.tasks import (
    NOTHING,
    AskBridgeInputs,
    AskedBridgeReply,
    ChainReply,
    FindBridgeInputs,
    FoundBridgeReply,
    JudgeChainInputs,
    NewsPassage,
    QuotedLink,
    Tried,
)

REASONS = frozenset(get_args(ChainReason))
RANKED = 20
"""Passages among which further articles on the bridge are sought."""


@dataclass(frozen=True, slots=True)
class ChainedQuestion:
    """A question as it was written, with its chain."""

    text: str
    answer: Answer
    trace: Trace


@dataclass(frozen=True)
class Bridges(Prompted):
    """The stage: what pictures show in, questions with their chains and a model's verdict out."""

    corpus: Corpus
    finding: RoleClient
    asking: RoleClient
    judging: RoleClient
    """Never the model that wrote the chain."""
    words: int
    """Of an article that a model is shown."""
    others: int
    """Further articles that the second fact may come from."""
    max_tokens: int
    """Longest answer, white-space tokens."""
    name: str = "bridges"
    version: int = 2
    input: ClassVar[type[Record]] = Anchor
    output: ClassVar[type[Record]] = Bridge

    def fingerprint(self) -> str:
        asked = [asking.identity for asking in (self.finding, self.asking, self.judging)]
        schemas = [make_schema(reply) for reply in (FoundBridgeReply, AskedBridgeReply, ChainReply)]
        return digest_value([*asked, *schemas, self.words, self.others, self.max_tokens])

    def models(self) -> tuple[ModelEntry, ...]:
        return (self.finding.describe("writer"), self.judging.describe("evaluator"))

    async def __call__(self, record: Anchor) -> Sequence[Bridge] | Rejection:
        node = self.corpus.find(record.title)
        if node is None:
            raise RecordFailed("unknown-page", record.title)
        first = await self._find(record, node)
        if isinstance(first, CheckResult):
            return refuse(record.record_id, (first,), REASONS)
        asked = await self._ask(record, first, node)
        if not isinstance(asked, ChainedQuestion):
            return refuse(record.record_id, asked, REASONS)
        said = await ask_model(self.judging, self._show(asked), ChainReply)
        if said.verdict == "no":
            return Rejection(record_id=record.record_id, reason="chain-refused", detail=said.reason)
        return (
            Bridge(
                # With its steps: what a person said of one chain is not said of another that asks the same.
                record_id=make_record_id("bridge", [record.record_id, asked.text, asked.answer.key, asked.trace.steps]),
                parent_id=record.record_id,
                split=record.split,
                text=asked.text,
                picture=record.picture,
                answer=asked.answer,
                trace=asked.trace.model_copy(update={"judged": digest_text(asked.text), "verdict": said.verdict}),
                verdict=said.verdict,
                remark=said.reason,
            ),
        )

    async def _find(self, record: Anchor, node: int) -> TraceLink | CheckResult:
        text, tried = show_article(self.corpus.text(node), self.words), NOTHING
        problem = CheckResult("FAIL", "no-bridge", record.name)
        for _ in range(TRIES):
            inputs = FindBridgeInputs(
                anchor=record.name, kind=record.kind, title=record.title, text=text, tried=tried
            )  # fmt: skip
            reply = await ask_model(self.finding, inputs, FoundBridgeReply)
            if _is_none(reply.bridge):
                return problem
            link = make_link(self.corpus, node, (record.name, reply.relation, reply.bridge), reply.quote)
            problem = self._check_first(link, reply.quote)
            if link is not None and problem.passed:
                return link
            tried = (Tried(text=f"{reply.bridge}: {reply.quote}", problem=problem.detail),)
        return problem

    def _check_first(self, link: TraceLink | None, quote: str) -> CheckResult:
        if link is None:
            return CheckResult("FAIL", "quote-not-found", f"{quote!r} does not stand in the article")
        different = check_different(link.subject, link.object)
        return check_link(self.corpus, link) if different.passed else different

    async def _ask(self, record: Anchor, first: TraceLink, node: int) -> ChainedQuestion | Sequence[CheckResult]:
        nodes = await asyncio.to_thread(self._list_articles, first.object, node)
        passages = tuple(self._show_article(number, each) for number, each in enumerate(nodes, start=1))
        tried: tuple[Tried, ...] = NOTHING
        refused: Sequence[CheckResult] = (CheckResult("FAIL", "no-question", first.object),)
        for _ in range(TRIES):
            inputs = AskBridgeInputs(
                anchor=record.name, kind=record.kind, bridge=first.object, relation=first.relation,
                quote=show_text(first.evidence.text), articles=passages, tried=tried,
            )  # fmt: skip
            reply = await ask_model(self.asking, inputs, AskedBridgeReply)
            if _is_none(reply.article):
                return refused
            asked = self._assemble(record, first, nodes, reply)
            if isinstance(asked, CheckResult):
                refused = (asked,)
            else:
                checks = list_trace_checks(self.corpus, asked.text, asked.answer, asked.trace)
                refused = await asyncio.to_thread(run_checks, checks)
            if isinstance(asked, ChainedQuestion) and not refused:
                return asked
            tried = (explain_refusal(refused[0], reply.question, (), f"{record.name} {first.object} {reply.answer}"),)
        return refused

    def _list_articles(self, bridge: str, own: int) -> tuple[int, ...]:
        ranked = dict.fromkeys(self.corpus.rank_nodes(bridge, RANKED))
        phrase = compile_phrase(bridge)
        found = [node for node in ranked if node != own and phrase.search(show_text(self.corpus.text(node)))]
        return (own, *found[: self.others])

    def _show_article(self, number: int, node: int) -> NewsPassage:
        page, origin = self.corpus.page(node), self.corpus.origin(node)
        published = origin.published if origin else ""
        text = show_article(self.corpus.text(node), self.words)
        return NewsPassage(id=f"a{number}", title=page.title, published=published, text=text)

    def _assemble(
        self, record: Anchor, first: TraceLink, nodes: Sequence[int], reply: AskedBridgeReply
    ) -> ChainedQuestion | CheckResult:
        places = {f"a{number}": node for number, node in enumerate(nodes, start=1)}
        answer = type_answer(reply.answer, "", reply.relation)
        if answer is None:
            return CheckResult("FAIL", "answer-untyped", reply.answer)
        if count_tokens(answer.surface) > self.max_tokens:
            return CheckResult("FAIL", "answer-too-long", f"{answer.surface!r} has more than {self.max_tokens} words")
        words = (first.object, reply.relation, answer.surface)
        second = make_link(self.corpus, places[reply.article], words, reply.quote) if reply.article in places else None
        if second is None:
            return CheckResult("FAIL", "quote-not-found", f"{reply.quote!r} does not stand in {reply.article!r}")
        links = (first, second)
        trace = Trace(
            corpus=self.corpus.digest,
            snapshot=self.corpus.snapshot,
            anchor=record.name,
            anchor_kind=record.kind,
            anchor_evidence=record.evidence,
            links=links,
            steps=write_steps(record.kind, record.evidence, links),
            decided_by=self.judging.model.name,
        )
        return ChainedQuestion(reply.question, answer, trace)

    def _show(self, asked: ChainedQuestion) -> JudgeChainInputs:
        links = (
            QuotedLink(subject=each.subject, relation=each.relation, object=each.object,
                       quote=show_text(each.evidence.text))
            for each in asked.trace.links
        )  # fmt: skip
        trace = asked.trace
        return JudgeChainInputs(
            question=asked.text, anchor=trace.anchor, kind=trace.anchor_kind, links=tuple(links),
            answer=asked.answer.surface,
        )  # fmt: skip


def _is_none(text: str) -> bool:
    return text.strip(" .").casefold() in ("", "none")
