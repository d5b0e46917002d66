"""Paths: constrained walks from seeds, with roles, relations and evidence (OpenSearch-VL, equation 5)."""

import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from pipelines.corpus.store import Corpus, Fact
from pipelines.graph.clauses import make_clause
from pipelines.graph.walks import Move, Walk, WalkGraph
from pipelines.ids import digest_value, make_record_id
from schemas.base import Record, Rejection
from schemas.manifest import ModelEntry
from schemas.paths import Path
from schemas.proofs import Evidence, Hop, PathNode, Role
from schemas.seeds import Seed


@dataclass(frozen=True)
class Paths:
    """Walks each seed up to ``walks`` times for each of ``per_seed`` paths."""

    graph: WalkGraph
    walks: int
    per_seed: int
    seed: int
    name: str = "paths"
    version: int = 1
    input: ClassVar[type[Record]] = Seed
    output: ClassVar[type[Record]] = Path

    def fingerprint(self) -> str:
        """Digest of the walk rules and the seed."""
        return digest_value([repr(self.graph.rules), self.walks, self.per_seed, self.seed])

    def prompts(self) -> dict[str, str]:
        """No model is asked."""
        return {}

    def models(self) -> tuple[ModelEntry, ...]:
        """No model is asked."""
        return ()

    async def __call__(self, record: Seed) -> Sequence[Path] | Rejection:
        """Return distinct paths of a seed, or why there is none."""
        node = self.graph.corpus.find(record.title)
        lengths = [] if node is None else self.graph.lengths_from(node, record.split)
        if node is None or not lengths:
            return Rejection(record_id=record.record_id, reason="no-answer-in-reach", detail=record.title)
        rng = random.Random(digest_value([self.seed, "walk", record.record_id]))
        paths: dict[str, Path] = {}
        for _ in range(self.per_seed):
            for attempt in range(1, self.walks + 1):
                (length,) = rng.choices([h for h, _ in lengths], weights=[w for _, w in lengths])
                walk = self.graph.try_walk(node, record.split, length, rng)
                path = None if walk is None else self._make_path(record, node, walk, attempt)
                if path is not None and path.record_id not in paths:
                    paths[path.record_id] = path
                    break
        if not paths:
            return Rejection(record_id=record.record_id, reason="no-walk", detail=f"{self.walks} walks, none whole")
        return tuple(paths.values())

    def _make_path(self, seed: Seed, node: int, walk: Walk, attempt: int) -> Path | None:
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
        attribute = walk.attribute
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


def make_node(corpus: Corpus, node: int, role: Role) -> PathNode:
    """Return a node of a path as its page has it."""
    page = corpus.page(node)
    return PathNode(page_id=page.page_id, title=page.title, role=role, type=page.type, in_degree=page.in_degree)


def make_hop(corpus: Corpus, index: int, source: int, move: Move, names: Sequence[str]) -> Hop | None:
    """Return a move as a hop with its evidence; None when its sentence, with all names masked, no longer reads."""
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
    evidence = cite(corpus, source, "sentence", clause.start, clause.end, move.link.start)
    return Hop(
        index=index,
        relation="mentions",
        subject_id=subject_id,
        object_id=object_id,
        clause=clause.text,
        evidence=evidence,
    )


def cite_fact(corpus: Corpus, fact: Fact) -> Evidence:
    """Return an infobox value as evidence."""
    page = corpus.page(fact.node)
    return Evidence(
        page_id=page.page_id,
        title=page.title,
        revision=page.revision,
        kind="infobox",
        key=fact.key,
        start=fact.start,
        end=fact.end,
        text=corpus.text(fact.node)[fact.start : fact.end],
        link_start=fact.link_start if fact.target >= 0 else -1,
    )


def cite(corpus: Corpus, node: int, kind: str, start: int, end: int, link_start: int) -> Evidence:
    """Return a span of a page as evidence."""
    page = corpus.page(node)
    return Evidence.model_validate(
        {
            "page_id": page.page_id,
            "title": page.title,
            "revision": page.revision,
            "kind": kind,
            "key": "",
            "start": start,
            "end": end,
            "text": corpus.text(node)[start:end],
            "link_start": link_start,
        }
    )
