"""Paths: constrained walks from seeds, with roles, relations and evidence (OpenSearch-VL, equation 5)."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import ClassVar

from pipelines.agent.guiding import Guide
from pipelines.checks.examination import PathDemands
from pipelines.config.settings import PathsConfig
from pipelines.corpus.store import Corpus
from pipelines.errors import RateLimited
from pipelines.graph.caps import Balance, Ration, Tally, list_marks
from pipelines.graph.facts import Attribute
from pipelines.graph.proofs import cite_answer, cite_fact, cite_sentence, make_node
from pipelines.graph.prose import Clause, make_clause, mask_names
from pipelines.graph.query import Indexes
from pipelines.graph.salience import read_lists, weigh_attribute
from pipelines.graph.walks import Drawn, Order, Walk, WalkGraph, WalkMove
from pipelines.ids import choose_weighted, digest_value, draw_unit, make_record_id
from pipelines.services.prompting import Prompted
from schemas.base import Record, Rejection
from schemas.datasets import Path, Seed
from schemas.manifest import ModelEntry
from schemas.proofs import AnswerType, Hop, Role

# (0.08) and 2 other words (0.03); FVQA and InfoSeek ask for names more often still.
ANSWER_TYPES: Mapping[AnswerType, float] = {"name": 0.6, "date": 0.25, "number": 0.1, "string": 0.05}
"""Wanted share of each type of answer, by which the fact to ask for is drawn; guided walks leave it to their model."""


@dataclass(slots=True)
class _Turn:
    over: asyncio.Event = field(default_factory=asyncio.Event)
    error: RateLimited | None = None
    """What put the record off: it is tried again, and so are those that wait for it."""


@dataclass(slots=True)
class _Shard:
    records: Sequence[Seed]
    balance: Balance
    tally: Tally
    ration: Ration | None = None
    made: dict[str, "Sequence[Path] | Rejection"] = field(default_factory=dict)
    """By record id, the first of the records."""
    turns: dict[str, _Turn] = field(default_factory=dict)
    """Of guided walks, by record id: what earlier records ask for decides what a later one may."""

    def begin_turn(self, record_id: str) -> _Turn:
        if record_id not in self.turns or self.turns[record_id].error:
            self.turns[record_id] = _Turn()
        return self.turns[record_id]

    async def await_earlier(self, record_id: str) -> None:
        for record in self.records:
            if record.record_id == record_id:
                return
            turn = self.turns[record.record_id]
            await turn.over.wait()
            if turn.error:
                raise turn.error


@dataclass(frozen=True)
class Paths(Prompted):
    """The stage: seeds in, a path of each out; it has ``walks`` tries."""

    graph: WalkGraph
    seed: int
    ground: Indexes
    demands: PathDemands | None = None
    """Checks of a path's answer; a walk whose attributes all fail is drawn again, as the paper does for other reasons
    (appendix D.1). None leaves these rejections to later stages."""
    guide: Guide | None = None
    """Chooses the steps and marks the paths; None draws walks by chance."""
    kept: tuple[int, float] = (0, 1.0)
    """What a release keeps of an answer, ``most`` and ``share`` of :class:`Ration`, where seeds are drawn in rounds."""
    used: tuple[Mapping[tuple[str, str], int], ...] = ()
    """For each round what those before have used of that, see :class:`Ration`."""
    name: str = "paths"
    version: int = 8
    drawn: dict[Order, Drawn] = field(default_factory=dict, init=False, repr=False, compare=False)
    """First walks of the records of a shard, drawn in one batch."""
    shards: dict[str, _Shard] = field(default_factory=dict, init=False, repr=False, compare=False)
    """By record id, the shard that a record was prepared with."""
    judged: dict[tuple[int, str, str], str] = field(default_factory=dict, init=False, repr=False, compare=False)
    """By node, key and answer of an attribute, the code that refuses it; empty for none."""
    input: ClassVar[type[Record]] = Seed
    output: ClassVar[type[Record]] = Path

    @property
    def settings(self) -> PathsConfig:
        """The section of the configuration that the graph's rules hold."""
        return self.graph.rules.settings

    def fingerprint(self) -> str:
        lists = read_lists() if self.settings.salience else ""
        guided = [self.guide.identity] if self.guide else []
        used = [self.kept, [sorted(counts.items()) for counts in self.used]] if self.used else []
        return digest_value([repr(self.graph.rules), self.seed, repr(self.demands), lists, *guided, *used])

    def models(self) -> tuple[ModelEntry, ...]:
        return (self.guide.describe(),) if self.guide else ()

    def prepare(self, records: Sequence[Seed]) -> None:
        """Start the shard's counts; draw the first walk of every path at once, each the same as when drawn alone."""
        balance = Balance(ANSWER_TYPES) if self.guide else self._draw_first(records)
        turns = {record.record_id: _Turn() for record in records}
        shard = _Shard(records, balance, self._start_tally(), self._start_ration(records), turns=turns)
        self.shards.update((record.record_id, shard) for record in records)

    def _draw_first(self, records: Sequence[Seed]) -> Balance:
        orders = []
        for record in records:
            node = self.graph.corpus.find(record.title)
            if node is not None and self._can_walk(record, node):
                orders += [make_order(record, node, number, 1) for number in range(self.settings.per_seed)]
        drawn = self.graph.draw_walks(orders, self.seed)
        self.drawn.update(zip(orders, drawn, strict=True))
        walks = (walk for each in drawn if (walk := self.graph.read_walk(each)) is not None)
        return Balance.of(ANSWER_TYPES, {walk.moves[-1].target: walk.attributes for walk in walks})

    def _start_tally(self) -> Tally:
        # Where one fact may be asked any number of times, so may one answer of a relation.
        capped = self.demands if self.settings.max_answer_share < 1.0 else None
        guess = capped.limits.answer_share if capped else 1.0
        return Tally(self.settings.max_answer_share, self.settings.max_relation_share, guess)

    def _start_ration(self, records: Sequence[Seed]) -> Ration | None:
        if not self.used or not records:
            return None
        own = Counter(record.split for record in records)
        parts: dict[str, float] = {record.split: own[record.split] / record.drawn for record in records}
        return Ration(*self.kept, self.used[records[0].round - 1], parts, records[0].record_id)

    async def __call__(self, record: Seed) -> Sequence[Path] | Rejection:
        shard = self.shards.get(record.record_id)
        if shard is None:
            shard = _Shard((record,), Balance(ANSWER_TYPES), self._start_tally())
        if self.guide:
            shard.made[record.record_id] = await self._walk_guided(self.guide, record, shard)
        # What earlier records of a shard ask for decides what this one may: they go first, whoever is called first.
        while record.record_id not in shard.made:
            earlier = shard.records[len(shard.made)]
            shard.made[earlier.record_id] = self._walk(earlier, shard)
        self.shards.pop(record.record_id, None)
        return shard.made[record.record_id]

    def _can_walk(self, record: Seed, node: int) -> bool:
        lengths = [length for length, _ in self.graph.lengths_from(node, record.split)]
        return record.hops in lengths if record.hops else bool(lengths)

    def _walk(self, record: Seed, shard: _Shard) -> Sequence[Path] | Rejection:
        node = self.graph.corpus.find(record.title)
        if node is None or not self._can_walk(record, node):
            detail = f"{record.title}{self._held}"
            return Rejection(record_id=record.record_id, reason="no-answer-in-reach", detail=detail)
        paths: dict[str, Path] = {}
        refused: Counter[str] = Counter()
        for number in range(self.settings.per_seed):
            for attempt, drawn in enumerate(self._draw(record, node, number), start=1):
                walk = self.graph.read_walk(drawn)
                if walk is None:
                    refused.update(drawn.refused)
                    continue
                asked = self._list_asked(walk, record, drawn.order, shard, refused)
                found = next(self._list_paths(record, node, replace(walk, attributes=asked), attempt, refused), None)
                if found is not None and found[0].record_id not in paths:
                    paths[found[0].record_id] = found[0]
                    self._count(record, found[1], shard)
                    break
        return self._conclude(record, paths, refused)

    async def _walk_guided(self, guide: Guide, record: Seed, shard: _Shard) -> Sequence[Path] | Rejection:
        turn = shard.begin_turn(record.record_id)
        node = self.graph.corpus.find(record.title)
        try:
            if node is None:
                return Rejection(record_id=record.record_id, reason="no-answer-in-reach", detail=record.title)
            refused: Counter[str] = Counter()
            seen: set[str] = set()
            drawing = [self._draw_guided(guide, record, node, number, seen, refused)
                       for number in range(self.settings.per_seed)]  # fmt: skip
            # What nothing else decides is asked at once for all records; only the caps wait for those before.
            firsts = [await anext(each, None) for each in drawing]
            await shard.await_earlier(record.record_id)
            paths: dict[str, Path] = {}
            for found, others in zip(firsts, drawing, strict=True):
                while found and self._is_often(record, found[1], shard):
                    refused["asked-often"] += 1
                    found = await anext(others, None)
                if found:
                    paths[found[0].record_id] = found[0]
                    self._count(record, found[1], shard)
            return self._conclude(record, paths, refused)
        except RateLimited as error:
            turn.error = error
            raise
        finally:
            turn.over.set()

    async def _draw_guided(
        self, guide: Guide, record: Seed, node: int, number: int, seen: set[str], refused: Counter[str]
    ) -> AsyncIterator[tuple[Path, Attribute]]:
        kind = record.answer_type
        for attempt in range(1, self.settings.walks + 1):
            order = make_order(record, node, number, attempt)
            order = replace(order, length=order.length or self._draw_length(order))
            guided = await guide.draw(order, str(order.identity), attempt == 1)
            if guided.walk is None:
                refused[guided.reason] += 1
                continue
            asked = tuple(each for each in guided.walk.attributes if kind in ("", each.answer.type))
            refused["other-type"] += not asked
            for path, attribute in self._list_paths(
                record, node, replace(guided.walk, attributes=asked), attempt, refused
            ):
                if path.record_id in seen:
                    break
                marks = await guide.judge(path)
                if marks.least < self.settings.least_mark:
                    refused["low-mark"] += 1
                    break
                seen.add(path.record_id)
                yield path.model_copy(update={"marks": marks}), attribute

    def _draw_length(self, order: Order) -> int:
        unit = draw_unit(self.seed, "length", order.identity)
        return choose_weighted(self.settings.hops, self.settings.weights, unit)

    def _draw(self, record: Seed, node: int, number: int) -> Iterator[Drawn]:
        first = make_order(record, node, number, 1)
        prepared = self.drawn.pop(first, None)
        yield prepared or self.graph.draw_walks([first], self.seed)[0]
        others = [make_order(record, node, number, attempt) for attempt in range(2, self.settings.walks + 1)]
        yield from self.graph.draw_walks(others, self.seed)

    def _conclude(self, record: Seed, paths: Mapping[str, Path], refused: Counter[str]) -> Sequence[Path] | Rejection:
        if paths:
            return tuple(paths.values())
        counts = ", ".join(f"{reason} {count}" for reason, count in refused.most_common() if count)
        walks = self.settings.walks * self.settings.per_seed
        detail = f"{walks} walks, none to be asked about; refused: {counts or 'none'}{self._held}"
        return Rejection(record_id=record.record_id, reason="no-walk", detail=detail)

    @property
    def _held(self) -> str:
        return f"; in-degrees held to {self.settings.in_degree}" if self.settings.in_degree else ""

    def _list_paths(
        self, record: Seed, node: int, walk: Walk, attempt: int, refused: Counter[str]
    ) -> Iterator[tuple[Path, Attribute]]:
        for attribute in walk.attributes:
            fault = self._judge_answer(attribute)
            if fault:
                refused[fault] += 1
                continue
            path = self._make_path(record, node, walk, attribute, attempt)
            if path is None:
                refused["unreadable"] += 1
                return
            found = self.demands.find_path_fault(self.ground, path, attribute.answer) if self.demands else None
            if found is None:
                yield path, attribute
            else:
                refused[found.code] += 1

    def _list_asked(
        self, walk: Walk, record: Seed, order: Order, shard: _Shard, refused: Counter[str]
    ) -> tuple[Attribute, ...]:
        weigh = partial(weigh_attribute, self.ground) if self.settings.salience else lambda _: 1.0
        kind = record.answer_type
        balance = replace(shard.balance, wanted={kind: 1.0}) if kind else shard.balance
        asked = balance.order(walk.attributes, order.identity, weigh)
        often = [each for each in asked if self._is_often(record, each, shard)]
        refused["asked-often"] += len(often)
        return tuple(attribute for attribute in asked if attribute not in often)

    def _is_often(self, record: Seed, asked: Attribute, shard: _Shard) -> bool:
        rationed = shard.ration and not shard.ration.allows(record.split, self._list_marks(asked))
        return bool(rationed or shard.tally.find_over(asked))

    def _count(self, record: Seed, asked: Attribute, shard: _Shard) -> None:
        shard.tally.add(asked)
        if shard.ration:
            shard.ration.add(record.split, self._list_marks(asked))

    def _list_marks(self, attribute: Attribute) -> tuple[str, ...]:
        page_id = self.graph.corpus.page(attribute.fact.node).page_id
        return list_marks(attribute.answer.key, page_id, attribute.fact.key)

    def _judge_answer(self, attribute: Attribute) -> str:
        place = attribute.fact.node, attribute.fact.key, attribute.answer.key
        if place not in self.judged:
            fault = self.demands.find_answer_fault(self.ground, attribute) if self.demands else None
            self.judged[place] = fault.code if fault else ""
        return self.judged[place]

    def _make_path(self, seed: Seed, node: int, walk: Walk, attribute: Attribute, attempt: int) -> Path | None:
        corpus = self.graph.corpus
        nodes = [node, *(move.target for move in walk.moves)]
        names = [alias for visited in nodes for alias in corpus.aliases(visited)]
        hops = []
        for index, (source, move) in enumerate(zip(nodes, walk.moves, strict=False), start=1):
            hop = make_hop(corpus, index, source, move, names)
            if hop is None:
                return None
            hops.append(hop)
        roles: list[Role] = ["anchor", *("bridge" for _ in walk.moves[1:]), "answer"]  # type: ignore[list-item]
        key = [seed.page_id, [[hop.relation, hop.object_id, hop.evidence.start] for hop in hops], attribute.fact.key]
        return Path(
            record_id=make_record_id("path", key),
            parent_id=seed.record_id,
            split=seed.split,
            domain=seed.domain,
            image=seed.image,
            nodes=tuple(make_node(corpus, number, role) for number, role in zip(nodes, roles, strict=True)),
            hops=tuple(hops),
            answer_relation=attribute.fact.key,
            answer_text=attribute.fact.text,
            answer_iso=attribute.fact.iso,
            answer_evidence=cite_answer(corpus, attribute),
            walks=attempt,
            answer_gloss=attribute.gloss,
            answer_clause=mask_names(attribute.clause, names),
        )


def make_order(seed: Seed, node: int, number: int, attempt: int) -> Order:
    """Return one walk of a seed: the attempt at its path of this number."""
    identity = int(digest_value(["walk", seed.record_id, number, attempt])[:16], 16)
    return Order(node, seed.split, identity, seed.hops)


def _read_clause(corpus: Corpus, source: int, move: WalkMove, names: Sequence[str]) -> Clause | None:
    if move.link is None or move.clause is None:
        return None
    if move.gloss:
        return replace(move.clause, text=mask_names(move.clause.text, names))
    return make_clause(corpus.text(source), move.link, names)


def make_hop(corpus: Corpus, index: int, source: int, move: WalkMove, names: Sequence[str]) -> Hop | None:
    """Return a move as a hop with its evidence; None if its sentence does not read with all names masked."""
    text = ""
    if move.fact is not None:
        evidence = cite_fact(corpus, move.fact)
    else:
        clause = _read_clause(corpus, source, move, names)
        if clause is None or move.link is None:
            return None
        text, evidence = clause.text, cite_sentence(corpus, source, clause.start, clause.end, move.link.start)
    return Hop(
        index=index,
        relation=move.fact.key if move.fact else "mentions",
        subject_id=corpus.page(source).page_id,
        object_id=corpus.page(move.target).page_id,
        clause=text,
        evidence=evidence,
        gloss=move.gloss,
        field=move.field,
    )
