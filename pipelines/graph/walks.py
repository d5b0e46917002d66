"""Constrained walks over the link graph (OpenSearch-VL, section 3.1 and appendix D.1).

The published walk tries at random and gives up after ten dead ends. Ours looks ahead: for every split and number of
steps left it knows which entities can still end at an answer, so a walk fails only on cycles and unreadable sentences.
"""

import random
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt
import pyarrow.parquet as pq

from pipelines.corpus.store import Corpus, Fact
from pipelines.corpus.wikitext import WikiLink, find_links
from pipelines.graph.clauses import Clause, make_clause
from pipelines.graph.relations import Attribute, RelationIndex, read_attributes, read_relations
from pipelines.graph.splits import SplitRule
from schemas.seeds import Split

Mask = npt.NDArray[np.bool_]
SPLITS: tuple[Split, ...] = ("sft", "rl", "eval")
LINK_TRIES = 8


@dataclass(frozen=True, slots=True)
class WalkRules:
    """What a walk may do."""

    hops: tuple[int, ...]
    weights: tuple[float, ...]
    hub_in_degree: int
    """Entities with more incoming links are never stepped on."""
    text_hops: bool
    """Whether a link in a sentence may be a hop where no infobox relation leads on."""
    max_answer_tokens: int
    splits: SplitRule


@dataclass(frozen=True, slots=True)
class Move:
    """One step of a walk: along an infobox relation (``fact``) or a link in a sentence (``clause``)."""

    target: int
    fact: Fact | None
    link: WikiLink | None
    clause: Clause | None


@dataclass(frozen=True, slots=True)
class Walk:
    """A walk that reached an answer: the moves from the seed and the attribute at its end."""

    moves: tuple[Move, ...]
    attribute: Attribute


class WalkGraph:
    """A corpus with the rules applied: who may be stepped on, and who still leads to an answer.

    Nothing is read before the first walk: a run whose paths are complete asks for the rules alone.
    """

    def __init__(self, corpus: Corpus, rules: WalkRules, relations: RelationIndex) -> None:
        self.corpus = corpus
        self.rules = rules
        self.relations = relations

    @cached_property
    def allowed(self) -> Mask:
        """Which articles may be stepped on: no lists, no disambiguation pages, no hubs."""
        columns = ["is_list", "is_disambiguation", "in_degree"]
        pages = pq.read_table(self.corpus.folder / "pages.parquet", columns=columns)
        listed, ambiguous = (pages[name].to_numpy(zero_copy_only=False) for name in columns[:2])
        mask: Mask = ~(listed | ambiguous) & (pages["in_degree"].to_numpy() <= self.rules.hub_in_degree)
        return mask

    @cached_property
    def reach(self) -> dict[Split, list[Mask]]:
        """``reach[split][k][node]``: from ``node``, ``k`` more steps can end at an answer of the split.

        One vectorised pass over the edges for each split and step.
        """
        sources, targets = self.relations.subjects, self.relations.objects
        if self.rules.text_hops:
            graph = self.corpus.graph
            degrees = np.diff(np.asarray(graph.offsets, dtype=np.int64)).astype(np.int64)
            sources = np.concatenate([sources, np.repeat(np.arange(len(degrees), dtype=np.int64), degrees)])
            targets = np.concatenate([targets, np.asarray(graph.targets, dtype=np.int64)])
        usable = self.allowed[targets]
        sources, targets = sources[usable], targets[usable]
        answers = _place_answers(self.corpus, self.rules, self.allowed)
        return {split: _extend_reach(answers[split], sources, targets, max(self.rules.hops)) for split in SPLITS}

    def lengths_from(self, node: int, split: Split) -> list[tuple[int, float]]:
        """Return the path lengths that can be walked from a seed, with their weights."""
        masks = self.reach[split]
        return [(h, w) for h, w in zip(self.rules.hops, self.rules.weights, strict=True) if masks[h][node]]

    def try_walk(self, node: int, split: Split, length: int, rng: random.Random) -> Walk | None:
        """Walk once; None on a dead end (a cycle, or no readable sentence)."""
        visited, moves = {node}, list[Move]()
        for left in range(length - 1, -1, -1):
            move = self._choose_move(node, left, visited, split, rng)
            if move is None:
                return None
            moves.append(move)
            node = move.target
            visited.add(node)
        attributes = self.read_split_attributes(node, split)
        return Walk(tuple(moves), attributes[rng.randrange(len(attributes))]) if attributes else None

    def read_split_attributes(self, node: int, split: Split) -> list[Attribute]:
        """Return a page's attributes whose answer key belongs to the split."""
        attributes = read_attributes(self.corpus, node, self.rules.max_answer_tokens)
        return [a for a in attributes if self.rules.splits.place("answer", a.answer.key) == split]

    def _choose_move(self, node: int, left: int, visited: set[int], split: Split, rng: random.Random) -> Move | None:
        mask = self.reach[split][left]
        facts = [
            fact
            for fact in read_relations(self.corpus, node)
            if mask[fact.target] and self.allowed[fact.target] and fact.target not in visited
        ]
        if facts:
            fact = facts[rng.randrange(len(facts))]
            return Move(fact.target, fact, None, None)
        if not self.rules.text_hops:
            return None
        return self._choose_link(node, mask, visited, rng)

    def _choose_link(self, node: int, mask: Mask, visited: set[int], rng: random.Random) -> Move | None:
        graph = self.corpus.graph
        start, end = int(graph.offsets[node]), int(graph.offsets[node + 1])
        targets, positions = np.asarray(graph.targets[start:end]), np.asarray(graph.positions[start:end])
        usable = np.flatnonzero(mask[targets] & self.allowed[targets]).tolist()
        usable = [index for index in usable if int(targets[index]) not in visited]
        rng.shuffle(usable)
        if not usable:
            return None
        page = self.corpus.text(node)
        links = {link.start: link for link in find_links(page)}
        for index in usable[:LINK_TRIES]:
            link = links.get(int(positions[index]))
            clause = None if link is None else make_clause(page, link, ())
            if clause is not None:
                return Move(int(targets[index]), None, link, clause)
        return None


def find_hub_threshold(in_degree: npt.NDArray[np.uint32], hub_in_degree: int, hub_share: float, small: bool) -> int:
    """Return the in-degree above which an article is a hub.

    The paper's 10,000 is the top 0.03% of enwiki; on a small corpus the share decides, and there is at least one hub.
    """
    if not small or not len(in_degree):
        return hub_in_degree
    hubs = max(1, round(len(in_degree) * hub_share))
    ordered = np.sort(in_degree)[::-1]
    return min(hub_in_degree, int(ordered[min(hubs, len(ordered) - 1)]))


def _place_answers(corpus: Corpus, rules: WalkRules, allowed: Mask) -> dict[Split, Mask]:
    """Return, for each split, which entities of the split have an attribute whose answer key is in the split too."""
    answers = {split: np.zeros(len(allowed), dtype=bool) for split in SPLITS}
    with_facts = np.unique(pq.read_table(corpus.folder / "facts.parquet", columns=["node"])["node"].to_numpy())
    for node in with_facts.tolist():
        if not allowed[node]:
            continue
        split = rules.splits.place("entity", corpus.page(node).title)
        attributes = read_attributes(corpus, node, rules.max_answer_tokens)
        answers[split][node] = any(rules.splits.place("answer", a.answer.key) == split for a in attributes)
    return answers


def _extend_reach(ends: Mask, sources: npt.NDArray[np.int64], targets: npt.NDArray[np.int64], steps: int) -> list[Mask]:
    reach = [ends]
    for _ in range(steps):
        mask = np.zeros_like(ends)
        mask[sources[reach[-1][targets]]] = True
        reach.append(mask)
    return reach
