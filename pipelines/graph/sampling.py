"""Many constrained walks at once, in numpy alone (OpenSearch-VL, section 3.1 and appendix D.1).

A walk is drawn from its identity: every choice is a hash of the seed, the identity, the step and the try, so a walk is
the same alone, in a batch of millions, on any machine and in any cut. A step draws a link of its node up to ``tries``
times; a node whose draws were all refused is looked through, so a walk ends early only where nothing leads on, or where
none of ``ASKED`` links reads. Either way, each link that the rules allow is taken with the same probability.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from pipelines.graph.draws import TRIES, Purpose, Words, count_choice, draw_units, draw_words, make_keys

Mask = npt.NDArray[np.bool_]
Numbers = npt.NDArray[np.int64]
Nodes = npt.NDArray[np.uint32]

LIST, DISAMBIGUATION, HUB = 1, 2, 4
"""Bits of a node's flags; a node with any of them is never stepped on."""
REASONS = ("hub", "list-page", "disambiguation-page", "out-of-reach", "cycle", "unreadable", "dead-end")
"""Why a link was not taken, the first that applies; ``dead-end`` counts the steps that found no link to take."""
BATCH = 1 << 17
"""Walks drawn together: many enough for numpy, few enough for the cache; about 20 MB."""
ASKED = 256
"""Links, in random order, whose sentences are read where a node is looked through: each costs the length of a line."""
LOOKED_THROUGH = 1 << 20
"""Links looked through together."""

_FAR, _CYCLE, _UNREADABLE, _DEAD_END = (
    np.uint8(1 + REASONS.index(name)) for name in ("out-of-reach", "cycle", "unreadable", "dead-end")
)


def _list_flag_reasons() -> npt.NDArray[np.uint8]:
    """Return the reason of each value of the flags, 0 for none."""
    reasons = np.zeros(256, dtype=np.uint8)
    for flag, name in ((DISAMBIGUATION, "disambiguation-page"), (LIST, "list-page"), (HUB, "hub")):
        reasons[(np.arange(256) & flag) > 0] = 1 + REASONS.index(name)
    return reasons


_REASON_OF_FLAGS = _list_flag_reasons()


@dataclass(frozen=True, slots=True, eq=False)
class Rows:
    """Edges as compressed sparse rows: those of node n lead to ``targets[offsets[n]:offsets[n + 1]]``."""

    offsets: Numbers
    targets: Nodes


@dataclass(frozen=True, slots=True, eq=False)
class Terrain:
    """What is walked on: at least one kind of edges, and what each node is."""

    links: Rows | None
    relations: Rows | None
    flags: npt.NDArray[np.uint8]
    reach: npt.NDArray[np.uint16] | None = None
    """Bits of a node that say from where a walk can still be finished; see :class:`Starts`."""


@dataclass(frozen=True, slots=True, eq=False)
class Starts:
    """Walks to be drawn: four arrays of one length."""

    nodes: npt.NDArray[np.integer]
    lengths: npt.NDArray[np.integer]
    identities: Words
    bits: npt.NDArray[np.integer]
    """A node is stepped on with k steps left only if bit ``bits + k`` of its reach is set; see ``Draw.look_ahead``."""


@dataclass(frozen=True, slots=True)
class Draw:
    """How walks are drawn."""

    seed: int
    tries: int = TRIES
    """Links drawn at a step before its node is looked through, at most 10."""
    relation_preference: float = 1.0
    """Probability that a step looks for a relation first, and for a link where none leads on; else the other way."""
    look_ahead: bool = True
    """Whether the reach is asked at every step, or only where a walk ends, which there may turn out not to be whole."""


@dataclass(frozen=True, slots=True, eq=False)
class Sampled:
    """Walks as arrays, one row a walk; ``steps`` is the longest length asked for."""

    nodes: npt.NDArray[np.int32]
    """Shape (walks, steps + 1): the nodes visited, -1 after the end."""
    edges: Numbers
    """Shape (walks, steps): the number of the edge in its rows' targets, -1 after the end."""
    related: Mask
    """Shape (walks, steps): whether the edge is a relation."""
    whole: Mask
    """Shape (walks,): whether the walk has the length asked for, and ends where the reach says it may."""
    refused: npt.NDArray[np.uint32]
    """Shape (walks, reasons): how many links were looked at and not taken, by reason; columns as in ``REASONS``."""


Reads = Callable[[npt.NDArray[np.int32], Numbers], Mask]
"""Takes the sources and the numbers of links that pass all other rules; says which of them read as a sentence."""


def sample_walks(terrain: Terrain, starts: Starts, draw: Draw, reads: Reads | None = None) -> Sampled:
    """Draw a walk for each start.

    Args:
        terrain: the edges and nodes.
        starts: where each walk begins, how long it is, and who it is.
        draw: seed, tries and preference.
        reads: asked about links (never about relations) that pass all other rules.

    Raises:
        ValueError: there are no edges, or more tries than a step has random words for.
    """
    if terrain.links is None and terrain.relations is None:
        raise ValueError("no links and no relations: expected at least one kind of edges to walk on")
    if not 0 <= draw.tries <= TRIES:
        raise ValueError(f"{draw.tries} tries a step: expected 0 to {TRIES}")
    count, steps = len(starts.nodes), int(starts.lengths.max()) if len(starts.lengths) else 0
    parts = [
        _Batch(terrain, _cut(starts, slice(first, first + BATCH)), draw, steps, reads).walk()
        for first in range(0, max(count, 1), BATCH)
    ]
    names = ("nodes", "edges", "related", "whole", "refused")
    return Sampled(*(np.concatenate([getattr(part, name) for part in parts]) for name in names))


def _cut(starts: Starts, part: slice) -> Starts:
    return Starts(starts.nodes[part], starts.lengths[part], starts.identities[part], starts.bits[part])


class _Batch:
    """Walks that are drawn together, step by step; arrays by step are stored one step a row."""

    def __init__(self, terrain: Terrain, starts: Starts, draw: Draw, steps: int, reads: Reads | None) -> None:
        count = len(starts.nodes)
        self.terrain, self.draw, self.reads = terrain, draw, reads
        self.lengths = starts.lengths.astype(np.int64)
        self.bits = starts.bits.astype(np.uint16)
        self.keys = make_keys(draw.seed, starts.identities)
        self.nodes = np.full((steps + 1, count), -1, dtype=np.int32)
        self.nodes[0] = starts.nodes
        self.edges = np.full((steps, count), -1, dtype=np.int64)
        self.related = np.zeros((steps, count), dtype=bool)
        self.refused = np.zeros(count * len(REASONS), dtype=np.uint32)

    def walk(self) -> Sampled:
        steps, count = self.edges.shape
        walks = np.arange(count)
        for step in range(steps):
            walks = walks[self.lengths[walks] > step]
            moved = self._take_step(step, walks)
            self._count(walks[~moved], np.full(len(walks) - int(moved.sum()), _DEAD_END))
            walks = walks[moved]
        refused = self.refused.reshape(count, len(REASONS))
        return Sampled(self.nodes.T, self.edges.T, self.related.T, self._judge_ends(), refused)

    def _judge_ends(self) -> Mask:
        """Return which walks are whole; without look-ahead an end out of reach is counted as refused only here."""
        walks = np.arange(len(self.lengths))
        whole: Mask = self.nodes[self.lengths, walks] >= 0
        if self.terrain.reach is None or self.draw.look_ahead:
            return whole
        ends = self.terrain.reach.take(self.nodes[self.lengths, walks])
        far = whole & ((ends >> self.bits) & 1 == 0)
        self._count(walks[far], np.full(int(far.sum()), _FAR))
        whole &= ~far
        return whole

    def _take_step(self, step: int, walks: Numbers) -> Mask:
        """Move walks by one step, along a relation first for as many as the preference says; return who moved."""
        links, relations = self.terrain.links, self.terrain.relations
        moved = np.zeros(len(walks), dtype=bool)
        if links is None or relations is None:
            choosing = [(links or relations, links is None, ~moved)]
        else:
            first = draw_units(self.keys[walks], count_choice(step, "coin")) < self.draw.relation_preference
            choosing = [(relations, True, first), (links, False, ~moved), (relations, True, ~first)]
        for rows, related, who in choosing:
            (chosen,) = np.nonzero(who & ~moved)
            if len(chosen) and rows is not None:
                moved[chosen] = _Step(self, rows, related, step, walks[chosen]).choose()
        return moved

    def judge(self, step: int, walks: Numbers, targets: Nodes) -> npt.NDArray[np.uint8]:
        """Return for each walk why it must not step on its target, 0 where it may."""
        reasons = _REASON_OF_FLAGS.take(self.terrain.flags.take(targets))
        if self.terrain.reach is not None and self.draw.look_ahead:
            left = (self.lengths.take(walks) - step - 1).astype(np.uint16)
            far = (self.terrain.reach.take(targets) >> (self.bits.take(walks) + left)) & 1 == 0
            reasons[far & (reasons == 0)] = _FAR
        # Who was visited is the dearest question, and after the others few links are left to ask it of.
        (open_,) = np.nonzero(reasons == 0)
        walks, targets = walks.take(open_), targets.take(open_)
        seen = np.zeros(len(walks), dtype=bool)
        for visited in self.nodes[: step + 1]:
            seen |= visited.take(walks) == targets
        reasons[open_[seen]] = _CYCLE
        return reasons

    def count(self, walks: Numbers, reasons: npt.NDArray[np.uint8]) -> None:
        """Count refusals; a walk may occur more than once, and reason 0 counts for nothing."""
        (refused,) = np.nonzero(reasons)
        self._count(walks[refused], reasons[refused])

    def _count(self, walks: Numbers, reasons: npt.NDArray[np.uint8]) -> None:
        np.add.at(self.refused, walks * len(REASONS) + reasons - 1, np.uint32(1))


class _Step:
    """One step of some walks along one kind of edges."""

    def __init__(self, batch: _Batch, rows: Rows, related: bool, step: int, walks: Numbers) -> None:
        self.batch, self.rows, self.related, self.step, self.walks = batch, rows, related, step, walks
        self.keys = batch.keys.take(walks)
        self.nodes = batch.nodes[step].take(walks)
        self.starts = rows.offsets.take(self.nodes)
        self.degrees = rows.offsets.take(self.nodes + np.int32(1)) - self.starts
        self.moved = np.zeros(len(walks), dtype=bool)

    def choose(self) -> Mask:
        """Move the walks that find an edge; return who moved."""
        purpose: Purpose = "relation" if self.related else "link"
        (open_,) = np.nonzero(self.degrees)
        for attempt in range(self.batch.draw.tries):
            if not len(open_):
                break
            words = draw_words(self.keys.take(open_), count_choice(self.step, purpose, attempt)) >> np.uint64(32)
            ordinals = (words * self.degrees.take(open_).astype(np.uint64)) >> np.uint64(32)
            edges = self.starts.take(open_) + ordinals.astype(np.int64)
            targets = self.rows.targets.take(edges)
            moved = self._accept(open_, edges, targets, self._judge(open_, targets))
            # Drawing more often than there are links costs more than looking at them.
            open_ = open_[~moved & (self.degrees.take(open_) > attempt + 1)]
        (left,) = np.nonzero(~self.moved & (self.degrees > 0))
        for part in _cut_by_size(left, self.degrees.take(left)):
            self._look_through(part)
        return self.moved

    def _look_through(self, who: Numbers) -> None:
        """Take one of all edges that may be taken, each with the same probability."""
        degrees = self.degrees.take(who)
        ends = np.cumsum(degrees)
        owners = np.repeat(np.arange(len(who)), degrees)
        ordinals = np.arange(int(ends[-1])) - (ends - degrees).take(owners)
        edges = self.starts.take(who).take(owners) + ordinals
        targets = self.rows.targets.take(edges)
        (fine,) = np.nonzero(self._judge(who.take(owners), targets) == 0)
        owners, ordinals, edges = (array.take(fine) for array in (owners, ordinals, edges))
        targets = targets.take(fine)
        order_of_all = count_choice(self.step, "relations-in-order" if self.related else "links-in-order")
        words = draw_words(self.keys.take(who), order_of_all).take(owners)
        order = np.lexsort((make_keys(self.batch.draw.seed, words + ordinals.astype(np.uint64)), owners))
        counts = np.bincount(owners, minlength=len(who))
        firsts = np.cumsum(counts) - counts
        (some,), number = np.nonzero(counts), 0
        # Whoever has moved or has no link left is dropped, so that a link costs once, whatever page it is of.
        while len(some) and number < ASKED:
            taken = order.take(firsts.take(some) + number)
            reasons = np.zeros(len(some), dtype=np.uint8)
            moved = self._accept(who.take(some), edges.take(taken), targets.take(taken), reasons)
            number += 1
            some = some[~moved & (counts.take(some) > number)]

    def _judge(self, who: Numbers, targets: Nodes) -> npt.NDArray[np.uint8]:
        walks = self.walks.take(who)
        reasons = self.batch.judge(self.step, walks, targets)
        self.batch.count(walks, reasons)
        return reasons

    def _accept(self, who: Numbers, edges: Numbers, targets: Nodes, reasons: npt.NDArray[np.uint8]) -> Mask:
        """Move along the edges that no reason speaks against and that read; return who moved."""
        fine: Mask = reasons == 0
        if self.batch.reads is not None and not self.related and fine.any():
            reading = fine.copy()
            reading[fine] = self.batch.reads(self.nodes[who[fine]], edges[fine])
            self.batch.count(self.walks[who], np.where(fine & ~reading, _UNREADABLE, np.uint8(0)))
            fine = reading
        (taken,) = np.nonzero(fine)
        chosen = who.take(taken)
        walks = self.walks.take(chosen)
        self.batch.nodes[self.step + 1, walks] = targets.take(taken)
        self.batch.edges[self.step, walks] = edges.take(taken)
        self.batch.related[self.step, walks] = self.related
        self.moved[chosen] = True
        return fine


def _cut_by_size(who: Numbers, degrees: Numbers) -> list[Numbers]:
    """Cut walks into runs of at most ``LOOKED_THROUGH`` links, or one walk."""
    numbers = (np.cumsum(degrees) - 1) // LOOKED_THROUGH
    return np.split(who, np.flatnonzero(np.diff(numbers)) + 1) if len(who) else []
