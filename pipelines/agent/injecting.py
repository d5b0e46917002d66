"""Rounds that hide an entity which a branch of the question names (VSearcher, section 2.1).

The paper hides any entity of the question. The chain from the picture to the answer grows first; then each further
round hides one of the entities that the question still names beside the picture's, drawn by hash, behind a fact of its
own page, and may name several in its place. What hides it must fit it alone. The checks are those of the chain.
"""

import asyncio
from collections.abc import AsyncIterator, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import get_args

from pipelines.checks.agreement import check_timeless
from pipelines.checks.answers import check_kept, check_named
from pipelines.checks.descriptors import (
    check_counted,
    check_facts,
    check_spoken,
    list_constraints,
    list_descriptors,
    offer_facts,
)
from pipelines.checks.leakage import check_answer, check_demonyms, check_names, list_type_words
from pipelines.checks.readings import Evaluator
from pipelines.checks.uniqueness import (
    check_answer_unchanged,
    check_near_misses,
    check_side,
    count_side,
    find_side_misses,
)
from pipelines.checks.verdicts import PASSED, TRIES, Check, CheckResult, explain_refusal, list_secrets, run_checks
from pipelines.corpus.store import Corpus, Fact
from pipelines.graph.branches import find_fact, hide_branch, list_companions, list_named, make_branch
from pipelines.graph.proofs import (
    CANDIDATES,
    NEAR_MISSES,
    PAGE_WORDS,
    ChainSearch,
    InjectionRules,
    ProofDraft,
    list_names,
    make_query,
    offer_relation,
    read_opening,
)
from pipelines.graph.query import TYPE, Indexes, locate_nodes
from pipelines.ids import digest_value, draw_unit
from pipelines.names import fold_name
from pipelines.services.prompting import Prompted, RoleClient, ask_model
from schemas.datasets import Candidate, Certificate
from schemas.proofs import Answer, Branch, PathNode, Proof
from schemas.reasons import RewriteReason
from schemas.tasks import (
    NOTHING,
    Descriptor,
    DescriptorsReply,
    ExtractedFactReply,
    ExtractFactInputs,
    FactView,
    HopView,
    ProposeDescriptorsInputs,
    QuestionReply,
    RewriteQuestionInputs,
    Tried,
    WriteQuestionInputs,
)

TELLING = 4
"""Letters of a word of a name that gives it away in another name."""
AHEAD = 2
"""Rounds that must be possible below an entity for it to be named. Those left may be done below several entities, so
that no single one must lead as far; where all end too early, the search goes back."""
FACTS_TRIED = 2
"""Facts of one entity that it may be hidden behind, before another entity is tried."""


@dataclass(frozen=True, slots=True)
class Askings(Prompted):
    """The requests of a round, in their order."""

    extracting: RoleClient
    proposing: RoleClient
    rewriting: RoleClient

    def list_all(self) -> tuple[RoleClient, ...]:
        """Return them in the order of a round."""
        return (self.extracting, self.proposing, self.rewriting)


async def extract_fact(
    asking: RoleClient, ground: Indexes, node: PathNode, facts: Sequence[Fact], page_words: int, sample: int
) -> Fact | CheckResult:
    """Let the model extract a fact of an entity's page; FAIL (``no-injection``) if it was not offered."""
    offered = {fact: offer_relation(ground, fact) for fact in facts}
    inputs = ExtractFactInputs(
        name=node.title,
        type=node.type,
        page=read_opening(ground.corpus, facts[0].node, page_words),
        facts=tuple(offered.values()),
        variety=digest_value(["extract", node.page_id])[:16],
    )
    tried = NOTHING
    for _ in range(TRIES):
        said = await ask_model(asking, inputs.model_copy(update={"tried": tried}), ExtractedFactReply, sample=sample)
        for fact, view in offered.items():
            if (view.relation, view.object_name) == (said.relation, said.object_name):
                return fact
        given = f"{said.relation} {said.object_name}"
        refused = CheckResult("FAIL", "no-injection", f"{said.relation!r} {said.object_name!r} was not offered")
        tried = (explain_refusal(refused, given),)
    return refused


ACCEPTED = "accepted"
REASONS = frozenset(get_args(RewriteReason))


@dataclass(frozen=True, slots=True)
class Setback:
    """A failed round; ``fact`` is None if it failed before a fact was found."""

    round: int
    results: tuple[CheckResult, ...]
    fact: Fact | None = None

    @property
    def code(self) -> str:
        """The code that refused every descriptor; ``no-descriptor`` if the codes differ."""
        codes = {result.code for result in self.results}
        return self.results[0].code if len(codes) == 1 and codes <= REASONS else "no-descriptor"


def split_told(corpus: Corpus, number: int, descriptor: Descriptor) -> tuple[Descriptor, tuple[Fact, ...]]:
    """Return a descriptor with its literal facts alone, and the facts it tells that lead to other articles."""
    found = {fact: find_fact(corpus, number, fact.relation, fact.text) for fact in descriptor.facts}
    literal = tuple(fact for fact, linked in found.items() if linked is None)
    linked = tuple(dict.fromkeys(fact for fact in found.values() if fact is not None))
    return descriptor.model_copy(update={"facts": literal}), linked


def view_entity(corpus: Corpus, fact: Fact) -> FactView:
    """Return a fact that leads to an article as a descriptor may tell it: by the article's title."""
    return FactView(relation=fact.key, text=corpus.page(fact.target).title)


@dataclass(frozen=True, slots=True)
class Hiding:
    """One round beside the chain: the entity to be hidden and the fact that it is hidden behind."""

    draft: ProofDraft
    number: int
    """Of the entity in the proof."""
    entity: int
    """Node number in the corpus."""
    fact: Fact
    round: int
    answer: Answer

    @property
    def node(self) -> PathNode:
        """The entity."""
        return self.draft.proof.entities[self.number]


@dataclass(frozen=True)
class BranchRounds:
    """Rounds beside the chain."""

    ground: Indexes
    askings: Askings
    reader: Evaluator
    rules: InjectionRules
    search: ChainSearch
    """Which facts lead on far enough."""
    answer: Answer

    async def grow(self, draft: ProofDraft, rounds: int) -> ProofDraft | Setback:
        """Do ``rounds`` rounds beside the chain, or return why the first that could not be done could not.

        A draft from which no round can be done is given up for another one of the round before; after as many as
        chains may be tried the search ends.
        """
        given_up: list[Setback] = []
        return await self._grow(draft, rounds, given_up)

    async def _grow(self, draft: ProofDraft, left: int, given_up: list[Setback]) -> ProofDraft | Setback:
        if not left:
            return draft
        refused: list[Setback] = []
        async for step in self._hide_each(draft, left, refused):
            grown = await self._grow(step, left - 1, given_up)
            if isinstance(grown, ProofDraft) or len(given_up) >= self.rules.settings.tries:
                return grown
        given_up.append(refused[-1])
        return given_up[-1]

    def list_companions(self, draft_numbers: Sequence[int], fact: Fact, rounds: int) -> list[Fact]:
        """Return further facts of a page to name beside a fact, whose objects can be hidden in so many rounds."""
        facts = self._list_facts(draft_numbers, min(rounds, AHEAD) + 1)
        return list(list_companions(self.ground, fact, facts))

    def _list_facts(self, taken: Sequence[int], rounds: int) -> tuple[Fact, ...]:
        aliases = self.ground.corpus.aliases
        own = {word for name in aliases(taken[-1]) for word in fold_name(name).split() if len(word) >= TELLING}
        facts = self.search.list_facts(taken, rounds)
        return tuple(
            fact for fact in facts if own.isdisjoint(fold_name(self.ground.corpus.page(fact.target).title).split())
        )

    async def _hide_each(self, draft: ProofDraft, left: int, refused: list[Setback]) -> AsyncIterator[ProofDraft]:
        taken = locate_nodes(self.ground.corpus, draft.proof.entities)
        number_of_round = len(draft.certificates) + 1
        setback = Setback(number_of_round, (CheckResult("FAIL", "no-injection", "no branch leads on"),), draft.fact)
        refused.append(setback)
        drawn = [self.search.draw, number_of_round]
        for number in sorted(list_named(draft.proof), key=lambda number: draw_unit("branch", *drawn, number)):
            entity = taken[number]
            numbers = (*(node for node in taken if node != entity), entity)
            facts = await asyncio.to_thread(self._list_facts, numbers, min(left, AHEAD))
            for sample in range(min(FACTS_TRIED, len(facts))):
                words, node = PAGE_WORDS, draft.proof.entities[number]
                fact = await extract_fact(self.askings.extracting, self.ground, node, facts, words, sample)
                if isinstance(fact, CheckResult):
                    refused.append(replace(setback, results=(fact,)))
                    break
                step = await self._hide(Hiding(draft, number, entity, fact, number_of_round, self.answer), left)
                if isinstance(step, ProofDraft):
                    yield step
                else:
                    refused.append(replace(setback, results=step))
                facts = tuple(other for other in facts if other != fact)

    async def _hide(self, this: Hiding, left: int) -> ProofDraft | tuple[CheckResult, ...]:
        results: list[CheckResult] = []
        tried: list[Candidate] = []
        told: dict[str, Tried] = {}
        corpus = self.ground.corpus
        names = list_names(corpus, [*this.draft.proof.hidden, this.node])
        taken = locate_nodes(corpus, this.draft.proof.entities)
        numbers = (*(node for node in taken if node != this.entity), this.entity)
        beside = await asyncio.to_thread(self.list_companions, numbers, this.fact, left - 1)
        for also in (tuple(view_entity(corpus, fact) for fact in beside[:1]), ()):
            for descriptor in await self._propose(this, also, tuple(told.values())):
                if descriptor.text in told:
                    continue
                step = await self._try(this, descriptor)
                if isinstance(step, ProofDraft):
                    tried.append(Candidate(descriptor=descriptor.text, verdict=ACCEPTED))
                    return self._certify(step, this, tuple(tried))
                results.extend(step)
                tried.append(Candidate(descriptor=descriptor.text, verdict=step[0].code))
                shown = f"{this.draft.text} {this.node.title}"
                told[descriptor.text] = explain_refusal(
                    step[0], descriptor.text, list_secrets(names, this.answer), shown
                )
        return tuple(results) or (CheckResult("FAIL", "no-descriptor", "none was proposed"),)

    async def _propose(
        self, this: Hiding, also: tuple[FactView, ...], tried: tuple[Tried, ...]
    ) -> tuple[Descriptor, ...]:
        corpus, rules = self.ground.corpus, self.rules
        inputs = ProposeDescriptorsInputs(
            anchor_type=corpus.page(this.fact.target).type,
            subject_type=corpus.page(this.fact.target).type,
            hop=self._view_hop(this),
            facts=offer_facts(corpus, this.entity, rules.max_answer_tokens),
            count=CANDIDATES,
            variety=digest_value(["branch", this.node.page_id, this.fact.key])[:16],
            entities=also,
            tried=tried,
        )
        reply = await ask_model(self.askings.proposing, inputs, DescriptorsReply)
        return reply.descriptors[:CANDIDATES]

    def _view_hop(self, this: Hiding) -> HopView:
        return HopView(
            relation=this.fact.key, clause="", object_name=this.node.title, object_type=this.node.type, backward=True
        )

    async def _try(self, this: Hiding, descriptor: Descriptor) -> ProofDraft | tuple[CheckResult, ...]:
        corpus = self.ground.corpus
        literal, linked = split_told(corpus, this.entity, descriptor)
        said = list_constraints(corpus, this.entity, this.number, literal)
        own = [make_branch(self.ground, this.number, fact) for fact in (this.fact, *linked)]
        before = this.draft.proof
        proof = hide_branch(corpus, before, this.number, descriptor.text, own).model_copy(
            update={"constraints": (*before.constraints, *said)}
        )
        checks = self._list_checks(this, literal, proof, own)
        refused = await asyncio.to_thread(run_checks, checks)
        if not refused and (cap := NEAR_MISSES):
            search = await asyncio.to_thread(find_side_misses, self.ground, make_query(corpus, proof), this.number, cap)
            refused = run_checks([partial(check_near_misses, search)])
            proof = proof.model_copy(update={"near_misses": (*proof.near_misses, *search.looked_up)})
        return refused or await self._reword(this, descriptor, proof)

    def _list_checks(
        self, this: Hiding, descriptor: Descriptor, proof: Proof, own: Sequence[Branch]
    ) -> Iterator[Check]:
        corpus, query = self.ground.corpus, make_query(self.ground.corpus, proof)
        said = [constraint for constraint in proof.constraints if constraint.node == this.number]
        titles = [branch.node.title for branch in own]
        yield partial(check_facts, descriptor)
        yield partial(_check_typed, this, any(constraint.relation == TYPE for constraint in said))
        yield partial(check_counted, corpus, this.entity, said, descriptor.text, titles=titles)
        names, words = list_names(corpus, proof.hidden), list_type_words(proof.entities)
        yield partial(check_names, descriptor.text, names, words)
        yield partial(check_demonyms, descriptor.text, names, words)
        yield partial(check_answer, descriptor.text, this.answer, words)
        yield lambda: check_side(count_side(self.ground, query, this.number))
        yield partial(check_answer_unchanged, self.ground, query, this.answer.key)

    async def _reword(self, this: Hiding, descriptor: Descriptor, proof: Proof) -> ProofDraft | tuple[CheckResult, ...]:
        corpus, tried = self.ground.corpus, NOTHING
        page = corpus.page(this.fact.target)
        path = WriteQuestionInputs(
            anchor_name=page.title,
            anchor_type=page.type,
            hops=(self._view_hop(this),),
            answer_relation=proof.answer_relation,
            answer=this.answer,
            variety=digest_value(["branch", this.node.page_id, this.fact.key])[:16],
        )
        inputs = RewriteQuestionInputs(
            question=this.draft.text,
            name=this.node.title,
            node=this.number,
            descriptor=descriptor.text,
            path=path,
            descriptors=(),
        )
        names = list_names(corpus, proof.hidden)
        refused: tuple[CheckResult, ...] = ()
        for _ in range(TRIES):
            asked = inputs.model_copy(update={"tried": tried})
            text = (await ask_model(self.askings.rewriting, asked, QuestionReply)).question
            refused = run_checks(self._list_text_checks(this, text, proof))
            if not refused:
                _, read = await self.reader.check(text, proof, this.answer)
                refused = () if read.passed else (read,)
            if not refused:
                return replace(this.draft, text=text, proof=proof)
            tried = (explain_refusal(refused[0], text, list_secrets(names, this.answer), this.draft.text),)
        return refused

    def _list_text_checks(self, this: Hiding, text: str, proof: Proof) -> Iterator[Check]:
        corpus = self.ground.corpus
        words, front = list_type_words(proof.entities), proof.nodes[0]
        yield partial(check_named, text, corpus.page(this.fact.target).title)
        yield partial(check_named, text, front.title)
        yield partial(check_names, text, list_names(corpus, proof.hidden)[1:], words)
        yield partial(check_answer, text, this.answer, words)
        yield partial(check_spoken, text, list_descriptors(proof))
        yield partial(check_kept, this.draft.text, text, this.node.title)
        if not proof.thresholds.volatile:
            yield partial(check_timeless, text)

    def _certify(self, draft: ProofDraft, this: Hiding, tried: tuple[Candidate, ...]) -> ProofDraft:
        count = count_side(self.ground, make_query(self.ground.corpus, draft.proof), this.number)
        certificate = Certificate(
            node=this.number,
            name=this.node.title,
            candidates=tried,
            descriptor=tried[-1].descriptor,
            text_after=draft.text,
            chain_count=count.value,
            alone_count=count.value,
            answer_after=this.answer.key,
            near_misses=sum(miss.node == this.number for miss in draft.proof.near_misses),
            round=this.round,
        )
        return replace(draft, certificates=(*draft.certificates, certificate))


def _check_typed(this: Hiding, typed: bool) -> CheckResult:
    return PASSED if typed else CheckResult("FAIL", "no-descriptor", f"it does not say that it is a {this.node.type}")
