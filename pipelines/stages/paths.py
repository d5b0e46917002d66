"""Paths: constrained walks from seeds, with roles, relations and evidence (OpenSearch-VL, equation 5)."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import ClassVar

from pipelines.checks.examination import PathDemands
from pipelines.config.settings import PathsConfig
from pipelines.corpus.store import Corpus
from pipelines.graph.facts import Attribute
from pipelines.graph.proofs import cite_fact, cite_sentence, make_node
from pipelines.graph.prose import make_clause
from pipelines.graph.query import Indexes
from pipelines.graph.walks import Drawn, Order, Walk, WalkGraph, WalkMove
from pipelines.ids import digest_value, make_record_id
from schemas.base import Record, Rejection
from schemas.datasets import Path, Seed
from schemas.manifest import ModelEntry
from schemas.proofs import Hop, Role


@dataclass(frozen=True)
class Paths:
    """The stage: seeds in, up to ``per_seed`` distinct paths of each out; each path has ``walks`` tries."""

    graph: WalkGraph
    seed: int
    ground: Indexes
    demands: PathDemands | None = None
    """Checks of a path's answer; a walk whose attributes all fail is drawn again, as the paper does for other reasons
    (appendix D.1). None leaves these rejections to later stages."""
    name: str = "paths"
    version: int = 4
    drawn: dict[Order, Drawn] = field(default_factory=dict, init=False, repr=False, compare=False)
    """First walks of the records of a shard, drawn in one batch."""
    judged: dict[tuple[int, int, str], str] = field(default_factory=dict, init=False, repr=False, compare=False)
    """By node and offset of an attribute, the code that refuses it; empty for none."""
    input: ClassVar[type[Record]] = Seed
    output: ClassVar[type[Record]] = Path

    @property
    def settings(self) -> PathsConfig:
        """The section of the configuration that the graph's rules hold."""
        return self.graph.rules.settings

    def fingerprint(self) -> str:
        """Digest of the walk rules and the seed."""
        later = self.ground.later.digest if self.ground.later else ""
        return digest_value([repr(self.graph.rules), self.seed, repr(self.demands), later])

    def prompts(self) -> dict[str, str]:
        """None: the stage uses no model."""
        return {}

    def models(self) -> tuple[ModelEntry, ...]:
        """None: the stage uses no model."""
        return ()

    def prepare(self, records: Sequence[Seed]) -> None:
        """Draw the first walk of every path of a shard at once; each is the same as when drawn alone."""
        orders = []
        for record in records:
            node = self.graph.corpus.find(record.title)
            if node is not None and self.graph.lengths_from(node, record.split):
                orders += [make_order(record, node, number, 1) for number in range(self.settings.per_seed)]
        self.drawn.update(zip(orders, self.graph.draw_walks(orders, self.seed), strict=True))

    async def __call__(self, record: Seed) -> Sequence[Path] | Rejection:
        """Return distinct paths of a seed, or the rejection if there is none."""
        node = self.graph.corpus.find(record.title)
        if node is None or not self.graph.lengths_from(node, record.split):
            return Rejection(record_id=record.record_id, reason="no-answer-in-reach", detail=record.title)
        paths: dict[str, Path] = {}
        refused: Counter[str] = Counter()
        for number in range(self.settings.per_seed):
            for attempt, drawn in enumerate(self._draw(record, node, number), start=1):
                walk = self.graph.read_walk(drawn)
                if walk is None:
                    refused.update(drawn.refused)
                    continue
                path = self._choose_path(record, node, walk, attempt, refused)
                if path is not None and path.record_id not in paths:
                    paths[path.record_id] = path
                    break
        if not paths:
            return Rejection(record_id=record.record_id, reason="no-walk", detail=self._explain(refused))
        return tuple(paths.values())

    def _draw(self, record: Seed, node: int, number: int) -> Iterator[Drawn]:
        """Yield the walks tried for a path; most paths need one, so the others are drawn on demand."""
        first = make_order(record, node, number, 1)
        prepared = self.drawn.pop(first, None)
        yield prepared or self.graph.draw_walks([first], self.seed)[0]
        others = [make_order(record, node, number, attempt) for attempt in range(2, self.settings.walks + 1)]
        yield from self.graph.draw_walks(others, self.seed)

    def _explain(self, refused: Counter[str]) -> str:
        counts = ", ".join(f"{reason} {count}" for reason, count in refused.most_common() if count)
        return (
            f"{self.settings.walks * self.settings.per_seed} walks, none to be asked about; refused: {counts or 'none'}"
        )

    def _choose_path(self, record: Seed, node: int, walk: Walk, attempt: int, refused: Counter[str]) -> Path | None:
        """Return the path to the first attribute at a walk's end that passes the demands; count the codes of others."""
        for attribute in walk.attributes:
            fault = self._judge_answer(attribute)
            if fault:
                refused[fault] += 1
                continue
            path = self._make_path(record, node, walk, attribute, attempt)
            if path is None:
                refused["unreadable"] += 1
                return None
            found = self.demands.find_path_fault(self.ground, path) if self.demands else None
            if found is None:
                return path
            refused[found.code] += 1
        return None

    def _judge_answer(self, attribute: Attribute) -> str:
        """Return the code that refuses an attribute, empty for none; walks often end at the same articles."""
        place = attribute.fact.node, attribute.fact.start, attribute.fact.statement
        if place not in self.judged:
            fault = self.demands.find_answer_fault(self.ground, attribute) if self.demands else None
            self.judged[place] = fault.code if fault else ""
        return self.judged[place]

    def _make_path(self, seed: Seed, node: int, walk: Walk, attribute: Attribute, attempt: int) -> Path | None:
        """Return a walk as a path; None if a sentence of it does not read with all names masked."""
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
            answer_evidence=cite_fact(corpus, attribute.fact),
            walks=attempt,
        )


def make_order(seed: Seed, node: int, number: int, attempt: int) -> Order:
    """Return one walk of a seed: the attempt at its path of this number."""
    identity = int(digest_value(["walk", seed.record_id, number, attempt])[:16], 16)
    return Order(node, seed.split, identity)


def make_hop(corpus: Corpus, index: int, source: int, move: WalkMove, names: Sequence[str]) -> Hop | None:
    """Return a move as a hop with its evidence; None if its sentence does not read with all names masked."""
    subject_id, object_id = corpus.page(source).page_id, corpus.page(move.target).page_id
    if move.fact is not None:
        evidence = cite_fact(corpus, move.fact)
        return Hop(
            index=index,
            relation=move.fact.key,
            subject_id=subject_id,
            object_id=object_id,
            clause="",
            evidence=evidence,
        )
    page = corpus.text(source)
    clause = None if move.link is None else make_clause(page, move.link, names)
    if clause is None or move.link is None:
        return None
    evidence = cite_sentence(corpus, source, clause.start, clause.end, move.link.start)
    return Hop(
        index=index,
        relation="mentions",
        subject_id=subject_id,
        object_id=object_id,
        clause=clause.text,
        evidence=evidence,
    )
