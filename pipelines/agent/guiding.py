"""Model-guided walks: at each node a model reads what its page states, and ranks the steps worth asking about.

OpenSearch-VL (section 3.1, appendix D.1) draws links at random and gives up after ten dead ends; its chains are what
links happen to say. Here the steps are infobox relations and propositions (:mod:`pipelines.graph.propositions`) that
lead to one thing for good. What can be decided without a model is decided before it is asked. A page is read once, by a
request that holds its sentences and nothing of the path: every path over it shares the recorded reply.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field

from pipelines.checks.readings import state_relation
from pipelines.config.settings import PathsConfig
from pipelines.corpus.store import Corpus
from pipelines.errors import RecordFailed
from pipelines.graph.answers import count_tokens
from pipelines.graph.facts import Attribute, read_relations
from pipelines.graph.propositions import Proposition, list_lines, place_relations, state_answer, view_lines
from pipelines.graph.query import Indexes
from pipelines.graph.salience import is_generic, rate_attribute, rate_hop
from pipelines.graph.walks import DISAMBIGUATION, HUB, LIST, NO_BRIDGE, NO_END, Order, Walk, WalkGraph, WalkMove
from pipelines.ids import digest_value, draw_unit
from pipelines.services.prompting import Prompted, RoleClient, ask_model, make_schema
from pipelines.splits import SplitRule
from schemas.datasets import Path, PathMarks, Split
from schemas.manifest import ModelEntry
from schemas.tasks import (
    ChooseStepInputs,
    ChosenStepsReply,
    ExtractRelationsInputs,
    JudgePathInputs,
    OfferedStep,
    PathMarksReply,
    RelationsReply,
    WalkedStep,
)

VERSION = 2
READ_SENTENCES = 30
"""First sentences of a page that the model reads: nearly all facts of an infobox stand in them."""
OFFERED = 8
"""Steps, or facts to ask for, among which the model chooses."""
"""Version of what is offered; part of a guide's identity."""
PECULIAR = 0.5
"""Factor of the rating of a step whose relation no field of infoboxes means."""
JITTER = 0.5
"""Share of a step's rating that is left to chance, so that two walks from one node differ."""


@dataclass(frozen=True, slots=True)
class Guided:
    """A walk, or why it ended without an answer worth asking for."""

    walk: Walk | None
    reason: str = ""


@dataclass(frozen=True)
class Guide(Prompted):
    """The model that guides walks, with the rules that it is held to."""

    ground: Indexes
    graph: WalkGraph
    extracting: RoleClient
    choosing: RoleClient
    judging: RoleClient
    _pages: dict[int, asyncio.Event] = field(default_factory=dict, init=False, repr=False, compare=False)
    """By node, pages that are being read: of two that want one at once, the other waits for its recorded reply."""

    @property
    def corpus(self) -> Corpus:
        """What is walked over."""
        return self.ground.corpus

    @property
    def settings(self) -> PathsConfig:
        """The rules' section of the configuration."""
        return self.graph.rules.settings

    @property
    def splits(self) -> SplitRule:
        """The split of every entity and answer key."""
        return self.graph.rules.splits

    @property
    def identity(self) -> str:
        asked = [asking.identity for asking in (self.extracting, self.choosing, self.judging)]
        shapes = [make_schema(reply) for reply in (RelationsReply, ChosenStepsReply, PathMarksReply)]
        return digest_value([VERSION, JITTER, PECULIAR, *asked, *shapes])

    def describe(self) -> ModelEntry:
        """Return the path judge's entry in a manifest."""
        return self.choosing.describe("path_judge")

    async def read_page(self, node: int) -> tuple[Proposition, ...]:
        """Return what a page states of its subject; nothing where two replies cannot be used."""
        while node in self._pages:
            await self._pages[node].wait()
        self._pages[node] = done = asyncio.Event()
        try:
            return await self._extract(node)
        finally:
            # Whoever waits asks again: the reply is recorded, or the request was cut off.
            del self._pages[node]
            done.set()

    async def _extract(self, node: int) -> tuple[Proposition, ...]:
        lines, page = list_lines(self.corpus, node, READ_SENTENCES), self.corpus.page(node)
        if not lines:
            return ()
        inputs = ExtractRelationsInputs(name=page.title, type=page.type, lines=view_lines(self.corpus, lines))
        try:
            reply = await ask_model(self.extracting, inputs, RelationsReply)
        except RecordFailed:
            return ()
        return place_relations(self.corpus, node, lines, reply.relations)

    async def draw(self, order: Order, key: str, first: bool) -> Guided:
        """Draw a walk."""
        nodes, moves = [order.node], list[WalkMove]()
        for left in range(order.length - 1, -1, -1):
            steps = await self._list_steps(nodes, moves, order.split, left, key)
            shown = [self._view_move(move) for move in steps]
            chosen = [steps[place] for place in await self._rank(nodes, moves, shown, ends=False)]
            if not chosen:
                return Guided(None, "nothing-worth-asking" if steps else "dead-end")
            move = chosen[0 if first else int(len(chosen) * draw_unit(key, "take", left) ** 2)]
            moves.append(move)
            nodes.append(move.target)
        attributes = await self._list_answers(nodes, moves, order.split, key)
        offered = [view_attribute(attribute) for attribute in attributes]
        ranked = [attributes[place] for place in await self._rank(nodes, moves, offered, ends=True)]
        if not ranked:
            return Guided(None, "nothing-worth-asking" if attributes else "out-of-reach")
        return Guided(Walk(tuple(moves), tuple(ranked)))

    async def _list_steps(
        self, nodes: Sequence[int], moves: Sequence[WalkMove], split: Split, left: int, key: str
    ) -> list[WalkMove]:
        node, corpus = nodes[-1], self.corpus
        moving = [WalkMove(fact.target, fact, None, None) for fact in read_relations(corpus, node)]
        known = {move.target for move in moving}
        for read in await self.read_page(node):
            if read.target >= 0 and read.target not in known:
                moving.append(WalkMove(read.target, None, read.link, read.clause, read.gloss, read.field))
        rated = []
        for move in moving:
            if not self._is_open(nodes, move, split, left):
                continue
            relation = move.fact.key if move.fact else move.field or "mentions"
            chance = draw_unit(key, "step", len(moves), move.target)
            rate = rate_hop(self.ground, node, relation, move.target) * (1 - JITTER * chance)
            # A relation that no field means is mostly one that only this pair has.
            rated.append((rate if move.fact or move.field else rate * PECULIAR, move))
        rated.sort(key=lambda pair: (-pair[0], pair[1].target))
        return [move for _, move in rated[:OFFERED]]

    def _is_open(self, nodes: Sequence[int], move: WalkMove, split: Split, left: int) -> bool:
        shut = LIST | DISAMBIGUATION | (NO_BRIDGE if left else NO_END)
        if move.target in nodes or self.graph.flags[move.target] & shut:
            return False
        if self._is_common(move.target):
            return left > 0 and not any(map(self._is_common, nodes[1:]))
        return left > 0 or self.splits.place("entity", self.corpus.page(move.target).title) == split

    def _is_common(self, node: int) -> bool:
        return bool(self.graph.flags[node] & HUB) or is_generic(self.corpus, node)

    async def _rank(
        self, nodes: Sequence[int], moves: Sequence[WalkMove], shown: Sequence[WalkedStep], ends: bool
    ) -> list[int]:
        if not shown:
            return []
        anchor = self.corpus.page(nodes[0])
        # The order tells nothing of the rating, and is the same for every walk that is offered the same.
        order = sorted(range(len(shown)), key=lambda place: draw_unit(anchor.title, shown[place].model_dump_json()))
        ids = {f"s{number}": place for number, place in enumerate(order, 1)}
        inputs = ChooseStepInputs(
            anchor=anchor.title,
            anchor_type=anchor.type,
            path=tuple(self._view_move(move) for move in moves),
            ends=ends,
            steps=tuple(OfferedStep(id=each, **shown[place].model_dump()) for each, place in ids.items()),
        )
        reply = await ask_model(self.choosing, inputs, ChosenStepsReply)
        return [ids[each] for each in dict.fromkeys(reply.steps) if each in ids]

    async def _list_answers(
        self, nodes: Sequence[int], moves: Sequence[WalkMove], split: Split, key: str
    ) -> list[Attribute]:
        node, corpus, longest = nodes[-1], self.corpus, self.graph.rules.max_answer_tokens
        found = list(self.graph.read_answers(node, split))
        for read in await self.read_page(node):
            if not longest or count_tokens(read.answer.surface) <= longest:
                found.append(state_answer(corpus, read))
        kind = corpus.page(node).type
        rated = []
        for attribute in {each.answer.key: each for each in reversed(found)}.values():
            target = attribute.fact.target
            refused = target in nodes or (target >= 0 and is_generic(corpus, target))
            if refused or self.splits.place("answer", attribute.answer.key) != split:
                continue
            chance = draw_unit(key, "answer", attribute.answer.key)
            rated.append((rate_attribute(self.ground, kind, attribute.fact.key) * (1 - JITTER * chance), attribute))
        rated.sort(key=lambda pair: (-pair[0], pair[1].answer.key))
        return [attribute for _, attribute in rated[:OFFERED]]

    async def judge(self, path: Path) -> PathMarks:
        """Return the marks of a path before a word of its question is written."""
        steps = tuple(
            WalkedStep(
                relation=hop.gloss or state_relation(hop.relation), object=node.title, type=node.type, said=hop.clause
            )
            for hop, node in zip(path.hops, path.nodes[1:], strict=True)
        )
        asked = WalkedStep(
            relation=path.answer_gloss or state_relation(path.answer_relation), object=path.answer_text, type="",
            said=path.answer_clause,
        )  # fmt: skip
        anchor = path.nodes[0]
        inputs = JudgePathInputs(anchor=anchor.title, anchor_type=anchor.type, path=steps, asked=asked)
        reply = await ask_model(self.judging, inputs, PathMarksReply)
        return PathMarks(**reply.model_dump())

    def _view_move(self, move: WalkMove) -> WalkedStep:
        page = self.corpus.page(move.target)
        relation = move.gloss or (state_relation(move.fact.key) if move.fact else "")
        said = move.clause.text if move.clause else ""
        return WalkedStep(relation=relation, object=page.title, type=page.type, said=said)


def view_attribute(attribute: Attribute) -> WalkedStep:
    """Return a fact that may be asked for as a model is shown it."""
    relation = attribute.gloss or state_relation(attribute.fact.key)
    return WalkedStep(relation=relation, object=attribute.answer.surface, type=attribute.answer.type,
                      said=attribute.clause)  # fmt: skip
