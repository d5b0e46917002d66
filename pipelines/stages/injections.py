"""Injections: rounds that hide the entity a question names behind a fact of its page (VSearcher, section 2.1).

A round makes three requests: extract a fact that leads to another article, propose descriptors, and reword the
question, which then names the other article. The paper trusts the model; here every step is checked: the entity stands
in the question, the fact is on the page and was offered, exactly one entity fits, no near miss is left open, the answer
still follows, and nothing else of the question is lost. A refused reply is requested once more with the reason.

The paper lets a model select the entity to hide; here a hash does. Some rounds grow the chain from the picture to the
answer; the article named after the last of them is the anchor, whose picture takes the place of its name in the next
stage. The other rounds hide what the chain names beside it (:mod:`pipelines.agent.injecting`), so that the question is
a tree. How many of each a question has is drawn, and what cannot be done is tried with other numbers.
"""

import asyncio
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import ClassVar, cast

from pipelines.agent.injecting import (
    ACCEPTED,
    Askings,
    BranchRounds,
    Setback,
    extract_fact,
    split_told,
    view_entity,
)
from pipelines.checks.agreement import is_volatile
from pipelines.checks.answers import check_named
from pipelines.checks.descriptors import list_constraints, offer_facts
from pipelines.checks.examination import Round, list_descriptor_checks, list_hidden_checks, list_rewording_checks
from pipelines.checks.leakage import check_answer, list_type_words
from pipelines.checks.readings import Evaluator
from pipelines.checks.sets import Apart, mark_question
from pipelines.checks.shortcuts import check_earlier_pages, check_path_length
from pipelines.checks.uniqueness import (
    Fit,
    check_fit,
    check_near_misses,
    check_side,
    count_fit,
    count_side,
    find_near_misses,
    find_redundant,
)
from pipelines.checks.verdicts import TRIES, Check, CheckResult, explain_refusal, list_secrets, run_checks
from pipelines.corpus.store import Corpus, Fact
from pipelines.graph.branches import add_branches, make_branch
from pipelines.graph.proofs import (
    CANDIDATES,
    NEAR_MISSES,
    OPEN,
    PAGE_WORDS,
    AnchorRules,
    ChainSearch,
    InjectionRules,
    Level,
    ProofDraft,
    grow_proof,
    list_names,
    make_query,
    make_rewrite,
    read_lead,
    retreat,
    view_proof,
)
from pipelines.graph.query import TYPE, Indexes, count_alone, find_article, locate_nodes
from pipelines.ids import digest_value
from pipelines.services.prompting import Prompted, RoleClient, ask_model, make_schema
from schemas.base import Record, Rejection
from schemas.datasets import Candidate, Certificate, Question, Rewrite
from schemas.manifest import ModelEntry
from schemas.proofs import Answer, Constraint
from schemas.reasons import RewriteReason
from schemas.tasks import (
    NOTHING,
    Descriptor,
    DescriptorsReply,
    ExtractedFactReply,
    FactView,
    ProposeDescriptorsInputs,
    QuestionReply,
    RewriteQuestionInputs,
    Tried,
)

REPLIES = (ExtractedFactReply, DescriptorsReply, QuestionReply)


async def propose_descriptors(
    askings: Askings,
    corpus: Corpus,
    this: Round,
    rules: InjectionRules,
    tried: tuple[Tried, ...],
    entities: tuple[FactView, ...] = (),
) -> tuple[Descriptor, ...]:
    """Return descriptors of the entity that a round hides; the model is offered all its facts but the answer."""
    view = this.view
    facts = offer_facts(corpus, this.numbers[1], rules.max_answer_tokens)
    if len(view.hops) == 1:
        facts = tuple(fact for fact in facts if fact.relation != this.proof.answer_relation)
    lead = read_lead(corpus, this.numbers[1])
    inputs = ProposeDescriptorsInputs(
        anchor_type=view.anchor_type,
        subject_type=view.anchor_type,
        hop=view.hops[0],
        facts=facts,
        count=CANDIDATES,
        variety=view.variety,
        lead=lead if check_answer(lead or "-", this.answer).passed else "",
        entities=entities,
        tried=tried,
    )
    return (await ask_model(askings.proposing, inputs, DescriptorsReply)).descriptors[:CANDIDATES]


async def reword_question(
    asking: RoleClient, question: str, this: Round, descriptor: Descriptor, tried: tuple[Tried, ...]
) -> str:
    """Return the question with the entity that a round hides behind its descriptor."""
    inputs = RewriteQuestionInputs(
        question=question,
        name=this.proof.nodes[1].title,
        node=1,
        descriptor=descriptor.text,
        path=this.view,
        descriptors=this.proof.descriptors,
        tried=tried,
    )
    return (await ask_model(asking, inputs, QuestionReply)).question


BESIDE = 3
"""Facts of an entity of the chain that are tried as a branch of it."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where a round of the chain stands."""

    round: int
    chain: int
    """Rounds of the chain."""
    rounds: int
    """Of the whole question."""
    wasted: int
    """Unusable replies so far."""


@dataclass(frozen=True)
class Injections(Prompted):
    """The stage: initial questions in, questions grown by rounds of injection out, with a certificate a round."""

    ground: Indexes
    askings: Askings
    reader: Evaluator
    anchors: AnchorRules
    rules: InjectionRules
    apart: Apart = frozenset()
    """What no question may share with other releases."""
    name: str = "rewrites"
    version: int = 5
    input: ClassVar[type[Record]] = Question
    output: ClassVar[type[Record]] = Rewrite

    def fingerprint(self) -> str:
        asked = [self.reader.identity, *(asking.identity for asking in self.askings.list_all())]
        rules = [repr(self.rules), repr(self.anchors), digest_value(sorted(self.apart))]
        return digest_value(["injections", *rules, asked, *map(make_schema, REPLIES)])

    def models(self) -> tuple[ModelEntry, ...]:
        return (self.askings.rewriting.describe("rewriter"), self.reader.describe())

    async def __call__(self, record: Question) -> Sequence[Rewrite] | Rejection:
        refused: Rejection | None = None
        shared = sorted(mark_question(record.proof, record.answer) & self.apart)
        if shared:
            return Rejection(record_id=record.record_id, reason="in-other-release", detail="; ".join(shared))
        for rounds in self.rules.order_rounds(record.record_id):
            for chain in self.rules.order_chains(record.record_id, rounds):
                made = await self._grow(record, chain, rounds)
                if isinstance(made, Rewrite):
                    return (made,)
                refused = refused or made
        assert refused is not None
        return refused

    async def _grow(self, record: Question, chain: int, rounds: int) -> Rewrite | Rejection:
        search, beside = self._look_ahead(record, chain), self._look_beside(record)
        numbers = tuple(locate_nodes(self.ground.corpus, record.proof.nodes))
        start = ProofDraft(record.text, record.proof, (), numbers)
        # In threads: what is ahead is searched for, too.
        levels = [await asyncio.to_thread(search.open_level, start, chain)]
        setbacks: list[Setback] = []
        while levels and len(setbacks) < self.rules.settings.tries:
            wasted = sum(setback.fact is None for setback in setbacks)
            step = await self._inject(record, levels[-1], Place(len(levels), chain, rounds, wasted), beside)
            made: ProofDraft | Rewrite | Setback = step
            if isinstance(step, ProofDraft) and len(levels) == chain:
                made = await self._end(record, step, rounds - chain, beside)
            if isinstance(made, Rewrite):
                return made
            if isinstance(made, ProofDraft):
                levels.append(await asyncio.to_thread(search.open_level, made, chain - len(levels)))
            else:
                setbacks.append(made)
                retreat(levels, made.fact)
        return self._refuse(record, setbacks, rounds, search)

    async def _end(self, record: Question, draft: ProofDraft, rounds: int, beside: BranchRounds) -> Rewrite | Setback:
        grown = await beside.grow(draft, rounds)
        if isinstance(grown, Setback):
            return grown
        return await asyncio.to_thread(self._finish, record, grown)

    def _look_beside(self, record: Question) -> BranchRounds:
        corpus = self.ground.corpus
        (seed,) = locate_nodes(corpus, record.proof.nodes)
        article = find_article(corpus, seed, record.proof.answer_relation, record.answer)
        search = ChainSearch(
            corpus,
            None,
            partial(self._judge_beside, record, seed, article),
            lambda node: OPEN,
            record.record_id,
            partial(self._keep_fact, record),
        )
        return BranchRounds(self.ground, self.askings, self.reader, self.rules, search, record.answer)

    def _judge_page(self, record: Question, seed: int, article: int, node: int) -> str:
        if f"page {self.ground.corpus.page(node).page_id}" in self.apart:
            return "in-other-release"
        return self._judge_beside(record, seed, article, node)

    def _judge_beside(self, record: Question, seed: int, article: int, node: int) -> str:
        result = check_earlier_pages(self.ground.corpus, (node, seed), record.answer, article)
        return OPEN if result.passed else result.code

    def _keep_fact(self, record: Question, fact: Fact) -> bool:
        return record.proof.thresholds.volatile or not is_volatile(fact.key)

    def _look_ahead(self, record: Question, rounds: int) -> ChainSearch:
        corpus, rules = self.ground.corpus, self.rules
        (seed,) = locate_nodes(corpus, record.proof.nodes)

        def judge_end(node: int) -> str:
            found = self.anchors.explain(corpus, node, record.split)
            if found:
                return found
            result = check_path_length(corpus, (*[node] * rounds, seed), rules.hub_in_degree)
            return OPEN if result.passed else result.code

        article = find_article(corpus, seed, record.proof.answer_relation, record.answer)
        judge_page = partial(self._judge_page, record, seed, article)
        keep_fact = partial(self._keep_fact, record)
        return ChainSearch(corpus, rules.hub_in_degree, judge_page, judge_end, record.record_id, keep_fact)

    async def _inject(self, record: Question, level: Level, place: Place, beside: BranchRounds) -> ProofDraft | Setback:
        number, draft = place.round, level.draft
        if not level.facts:
            return Setback(number, (CheckResult("FAIL", "no-injection", "no fact leads on"),))
        node = draft.proof.nodes[0]
        if not check_named(draft.text, node.title).passed:
            missing = f"{node.title!r} does not stand in {draft.text!r}"
            return Setback(number, (CheckResult("FAIL", "entity-not-in-question", missing),))
        fact = await extract_fact(self.askings.extracting, self.ground, node, level.facts, PAGE_WORDS, place.wasted)
        if isinstance(fact, CheckResult):
            return Setback(number, (fact,))
        # Only the last round makes a first hidden node.
        threshold = self.rules.descriptors.require_alone(place.chain - number + 1)
        this = self._make_round(record, draft, fact, (number, threshold))
        if place.chain == place.rounds or draft.proof.branches:
            return await self._hide(draft, this)
        # With rounds beside the chain, one of the entities hidden is told by a further article as well.
        named = await asyncio.to_thread(self._list_beside, draft, this, beside, place.rounds - place.chain)
        step: ProofDraft | Setback = Setback(number, (CheckResult("FAIL", "no-injection", "no branch leads on"),), fact)
        for told in named:
            step = await self._hide(draft, this, (told,))
            if isinstance(step, ProofDraft):
                return step
        return step if number == place.chain else await self._hide(draft, this)

    def _list_beside(self, draft: ProofDraft, this: Round, beside: BranchRounds, rounds: int) -> tuple[FactView, ...]:
        number, corpus = this.numbers[1], self.ground.corpus
        numbers = (*draft.aside, this.numbers[0], *draft.taken)
        found = []
        for fact in beside.list_companions(numbers, this.fact, rounds):
            kind = Constraint(node=1, relation=TYPE, value=corpus.page(number).type)
            branch = make_branch(self.ground, 1, fact)
            proof = add_branches(this.proof.model_copy(update={"constraints": (kind,)}), (branch,))
            if count_alone(self.ground, make_query(corpus, proof), 1, this.threshold) >= this.threshold:
                found.append(view_entity(corpus, fact))
        return tuple(found[:BESIDE])

    def _make_round(self, record: Question, draft: ProofDraft, fact: Fact, place: tuple[int, int]) -> Round:
        proof = grow_proof(self.ground.corpus, draft.proof, fact)
        return Round(
            number=place[0],
            fact=fact,
            answer=record.answer,
            proof=proof,
            numbers=(fact.target, *reversed(draft.taken)),
            names=list_names(self.ground.corpus, proof.nodes),
            type_words=list_type_words(proof.nodes),
            view=view_proof(self.ground.corpus, proof, record.answer),
            threshold=place[1],
            min_answers=self.rules.min_answers,
        )

    async def _hide(self, draft: ProofDraft, this: Round, entities: tuple[FactView, ...] = ()) -> ProofDraft | Setback:
        results: list[CheckResult] = []
        tried: list[Candidate] = []
        told: dict[str, Tried] = {}
        secrets, shown = list_secrets(this.names, this.answer), f"{draft.text} {this.proof.nodes[1].title}"
        for _ in range(TRIES):
            found = await propose_descriptors(
                self.askings, self.ground.corpus, this, self.rules, tuple(told.values()), entities
            )
            for descriptor in (each for each in found if each.text not in told):
                step = await self._try(draft, this, descriptor)
                if isinstance(step, ProofDraft):
                    tried.append(Candidate(descriptor=descriptor.text, verdict=ACCEPTED))
                    return await asyncio.to_thread(self._certify, step, this, tuple(tried))
                results.extend(step)
                tried.append(Candidate(descriptor=descriptor.text, verdict=step[0].code))
                told[descriptor.text] = explain_refusal(step[0], descriptor.text, secrets, shown)
            if not told:
                break
        nothing = CheckResult("FAIL", "no-descriptor", "none was proposed")
        return Setback(this.number, tuple(results) or (nothing,), this.fact)

    async def _try(
        self, draft: ProofDraft, this: Round, descriptor: Descriptor
    ) -> ProofDraft | tuple[CheckResult, ...]:
        corpus, grown = self.ground.corpus, this.proof
        literal, linked = split_told(corpus, this.numbers[1], descriptor)
        said = list_constraints(corpus, this.numbers[1], 1, literal)
        proof = grown.model_copy(
            update={
                "constraints": (*said, *grown.constraints),
                "descriptors": (descriptor.text, *grown.descriptors[1:]),
            }
        )
        proof = add_branches(proof, [make_branch(self.ground, 1, fact) for fact in linked])
        query = make_query(corpus, proof)
        checks = list_descriptor_checks(self.ground, this, literal, said, query)
        if refused := await asyncio.to_thread(run_checks, checks):
            return refused
        search = await asyncio.to_thread(find_near_misses, self.ground, query, 1, NEAR_MISSES)
        if refused := run_checks([partial(check_near_misses, search)]):
            return refused
        proof = proof.model_copy(update={"near_misses": (*search.looked_up, *proof.near_misses)})
        tried = NOTHING
        for _ in range(TRIES):
            text = await reword_question(self.askings.rewriting, draft.text, this, descriptor, tried)
            refused = run_checks(list_rewording_checks(self.ground, this, draft.text, text, proof))
            if not refused:
                _, read = await self.reader.check(text, proof, this.answer)
                refused = () if read.passed else (read,)
            if not refused:
                taken = (*draft.taken, this.fact.target)
                aside = (*draft.aside, *(fact.target for fact in linked))
                return replace(draft, text=text, proof=proof, taken=taken, fact=this.fact, aside=aside)
            given = f"{draft.text} {descriptor.text} {this.proof.nodes[0].title} {this.proof.nodes[1].title}"
            tried = (explain_refusal(refused[0], text, list_secrets(this.names, this.answer), given),)
        return refused

    def _certify(self, draft: ProofDraft, this: Round, tried: tuple[Candidate, ...]) -> ProofDraft:
        fit = count_fit(self.ground, make_query(self.ground.corpus, draft.proof), 1, this.threshold)
        certificate = Certificate(
            node=1,
            name=this.proof.nodes[1].title,
            candidates=tried,
            descriptor=tried[-1].descriptor,
            text_after=draft.text,
            chain_count=fit.chain,
            alone_count=fit.alone,
            answer_after=this.answer.key,
            near_misses=sum(miss.node == 1 for miss in draft.proof.near_misses),
            round=this.number,
        )
        earlier = (old.model_copy(update={"node": old.node + 1}) for old in draft.certificates)
        return replace(draft, certificates=(*earlier, certificate))

    def _finish(self, record: Question, draft: ProofDraft) -> Rewrite | Setback:
        query = make_query(self.ground.corpus, draft.proof)
        numbers = tuple(reversed(draft.taken))
        nodes = range(1, len(numbers))
        fits = [count_fit(self.ground, query, node, self.rules.descriptors.require_alone(node)) for node in nodes]
        refused = run_checks(self._list_last_checks(draft, record.answer, numbers, fits))
        if refused:
            return Setback(len(numbers) - 1, refused, draft.fact)
        rules, page = self.rules, self.ground.corpus.page(numbers[0])
        limits = {
            "alone_first": rules.descriptors.min_alone_first,
            "alone": rules.descriptors.min_alone,
            "near_misses": NEAR_MISSES,
        }
        sides = [count_side(self.ground, query, side.number) for side in query.sides if not side.named]
        if refused := run_checks([partial(check_side, count) for count in sides]):
            return Setback(len(numbers) - 1, refused, draft.fact)
        found = {
            "counts": (*(count for fit in fits for count in fit.as_counts()), *sides),
            "near_misses": tuple(sorted(draft.proof.near_misses, key=lambda miss: miss.node)),
            "thresholds": record.proof.thresholds.model_copy(update=limits),
            "shortcuts_checked": True,
            "hub_in_degree": rules.hub_in_degree,
            "redundant": find_redundant(self.ground, query, record.answer.key),
        }
        changes = {"domain": page.domain, "image": page.image, "certificates": draft.certificates}
        return make_rewrite(record, draft.text, draft.proof.model_copy(update=found), **changes)

    def _list_last_checks(
        self, draft: ProofDraft, answer: Answer, numbers: Sequence[int], fits: Sequence[Fit]
    ) -> Iterator[Check]:
        corpus, rules = self.ground.corpus, self.rules
        for fit in fits:
            yield partial(check_fit, fit, rules.descriptors.require_alone(fit.node))
        yield partial(check_path_length, corpus, numbers, rules.hub_in_degree)
        article = find_article(corpus, numbers[-1], draft.proof.answer_relation, answer)
        yield partial(check_earlier_pages, corpus, numbers, answer, article)
        beside = (*locate_nodes(corpus, [branch.node for branch in draft.proof.branches]), numbers[-1])
        yield partial(check_earlier_pages, corpus, beside, answer, article)
        yield from list_hidden_checks(corpus, draft.text, draft.proof, answer)

    def _refuse(self, record: Question, setbacks: Sequence[Setback], rounds: int, search: ChainSearch) -> Rejection:
        last = setbacks[-1]
        said = "; ".join(dict.fromkeys(f"{result.code} {result.detail}".strip() for result in last.results))
        if search.refused and last.fact is None:
            said += "; refused on the way: " + ", ".join(f"{why} {n}" for why, n in search.refused.most_common())
        return Rejection(
            record_id=record.record_id,
            reason=cast(RewriteReason, last.code),
            detail=f"round {last.round} of {rounds}: {said}",
            codes=(last.code,),
        )
