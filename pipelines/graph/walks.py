"""Constrained walks over the link graph, many at once in numpy (OpenSearch-VL, section 3.1 and appendix D.1).

The published walk draws links at random and gives up after ten dead ends. With ``look_ahead``, marks of a node say for
each split and number of steps left whether an answer can be reached, so a walk fails only on cycles and unreadable
sentences. This favours answers behind narrow bridges: of two bridges, one with 1 of 10 links leading on and one with 10
of 10, each gets half of the walks, where the published walk gives the first 1 of 11. Without it, walks are drawn as
published, and one that ends without an answer fails as ``out-of-reach``.

Every choice is a hash of seed, identity, step and try, so a walk is the same alone, in a batch or on any machine. If
all ``TRIES`` draws at a node are refused, all its links are tried in random order, so each allowed link is equally
likely.

With ``salience``, an allowed edge is as likely as its rating (:mod:`pipelines.graph.salience`): a drawn edge is taken
with that probability, by the lower bits of the word whose upper bits drew it, and the order of all edges is weighted.
No link leads to a generic thing; a relation may, once a path.
"""

import inspect
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import pairwise
from pathlib import Path
from typing import Literal

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from pipelines import names
from pipelines.config.settings import PathsConfig
from pipelines.corpus.dump import strip_qualifier
from pipelines.corpus.kinds import list_hubs, list_kinds
from pipelines.corpus.store import Corpus, Fact
from pipelines.corpus.tables import map_array
from pipelines.corpus.wikitext import WikiLink
from pipelines.files import replacing
from pipelines.graph import answers, facts, values
from pipelines.graph.answers import count_tokens
from pipelines.graph.facts import (
    Attribute,
    FieldKeys,
    RelationIndex,
    list_single_rows,
    name_key,
    read_askable,
    read_relations,
    type_value,
)
from pipelines.graph.prose import Clause, make_clause
from pipelines.graph.salience import (
    GENERIC_RATE,
    Rates,
    find_generic,
    is_asked,
    is_telling,
    rate_counts,
    rate_places,
    read_lists,
)
from pipelines.graph.seeds import HUB_IN_DEGREE
from pipelines.ids import digest_value
from pipelines.splits import SplitRule
from schemas.datasets import Split

Words = npt.NDArray[np.uint64]
Mask = npt.NDArray[np.bool_]
Bits = npt.NDArray[np.uint8]
Marks = npt.NDArray[np.uint16]
Numbers = npt.NDArray[np.int64]
Nodes = npt.NDArray[np.uint32]
Purpose = Literal["link", "relation", "links-in-order", "relations-in-order", "coin"]
"""What a step draws: a link or a relation by number, an order of all of them, which kind comes first."""

TRIES = 10
"""Draws of a link, and of a relation, before all edges of the node are tried."""
CHOICES = 64
"""Counters of a step. This number and the first counters below fix every walk: do not change them."""
_FIRST: dict[Purpose, int] = {"link": 0, "relation": 11, "links-in-order": 31, "relations-in-order": 42, "coin": 60}
_LENGTH, _ATTRIBUTE, _SURVEY = 1 << 32, (1 << 32) + 1, (1 << 32) + 2
"""Counters of the draws outside the steps, above those of any step."""
_GOLDEN = 0x9E3779B97F4A7C15
_WORD = (1 << 64) - 1
_LOW = np.uint64((1 << 32) - 1)

LIST, DISAMBIGUATION, HUB, GENERIC, NO_BRIDGE, NO_END = 1, 2, 4, 8, 16, 32
"""Bits of a node's flags; the last two by its in-degree."""
CLOSED = LIST | DISAMBIGUATION | HUB
"""A node with any of these bits is never stepped on."""
NO_ANSWER = CLOSED | GENERIC
"""A node with any of these bits is no answer: too many questions have it."""
REASONS = ("hub", "list-page", "disambiguation-page", "out-of-reach", "cycle", "unreadable", "dead-end", "generic",
           "in-degree")  # fmt: skip
"""Why a link was not taken, the first that applies; ``dead-end`` counts the steps that found no link to take."""
_HUB, _LISTED, _AMBIGUOUS, _FAR, _CYCLE, _UNREADABLE, _DEAD_END, _GENERIC, _DEGREE = map(
    np.uint8, range(1, 1 + len(REASONS))
)
BATCH = 1 << 17
"""Walks drawn together: many enough for numpy, few enough for the cache; about 20 MB."""
ASKED = 256
"""Links, in random order, whose sentences are read when all links of a node are tried."""
SALIENT = 0.2
"""Rating from which edges are equally likely: draws that are mostly refused would take too long."""
LOOKED_THROUGH = 1 << 20
"""Links per batch when all links of nodes are tried."""

REACH_VERSION = 5
"""Version of the marks; raise it if the code of this module computes other marks from the same input."""
DECIDING = (facts, answers, values, names)
"""Modules that decide which values are answers: marks are computed again when their source changes."""
SPLITS: tuple[Split, ...] = ("sft", "rl", "eval")
MOST_STEPS = 16 // len(SPLITS) - 1
KEPT_VALUES = 1 << 17
"""Cached splits of values, about 40 MB."""
JOINED_EDGES = 1 << 22
"""Edges joined at once."""
KEPT_PAGES = 1024
KEPT_SENTENCES = 1 << 14


def mix_words(values: Words) -> Words:
    """Return the finaliser of splitmix64 over 64-bit words."""
    values = (values ^ (values >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    values = (values ^ (values >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return values ^ (values >> np.uint64(31))


def make_keys(seed: int, identities: Words) -> Words:
    """Return for each identity the word that all its choices are drawn from."""
    salt = mix_words(np.array([seed & _WORD], dtype=np.uint64) + np.uint64(_GOLDEN))
    return mix_words(mix_words(identities.astype(np.uint64) + np.uint64(_GOLDEN)) ^ salt)


def draw_words(keys: Words, counter: int) -> Words:
    """Return one random word for each key; each counter gives another word."""
    return mix_words(keys + np.uint64((counter + 1) * _GOLDEN & _WORD))


def draw_units(keys: Words, counter: int) -> npt.NDArray[np.float64]:
    """Return one number in [0, 1) for each key."""
    return (draw_words(keys, counter) >> np.uint64(11)).astype(np.float64) * 2.0**-53


def _count_choice(step: int, purpose: Purpose) -> int:
    return step * CHOICES + _FIRST[purpose]


@dataclass(frozen=True, slots=True, eq=False)
class Rows:
    """Edges as compressed sparse rows: those of node n lead to ``targets[offsets[n]:offsets[n + 1]]``."""

    offsets: Numbers
    targets: Nodes
    closed: int = CLOSED
    """Bits of the flags of nodes that these edges do not lead to."""


@dataclass(frozen=True, slots=True, eq=False)
class Ratings:
    """What the rating of an edge, in (0, 1], is made of."""

    nodes: Rates
    """Of a link, by its target."""
    positions: Nodes
    """Of each link, characters into its article."""
    relations: Rates
    """Of each relation."""


@dataclass(frozen=True, slots=True, eq=False)
class Terrain:
    """The graph of the walks: at least one kind of edges, and the flags of each node."""

    links: Rows | None
    relations: Rows | None
    flags: Bits
    reach: Marks | None = None
    """Marks of :func:`extend_reach`."""
    ratings: Ratings | None = None
    """None: all allowed edges of a node are equally likely."""


@dataclass(frozen=True, slots=True, eq=False)
class Starts:
    """Walks to be drawn: four arrays of one length."""

    nodes: npt.NDArray[np.integer]
    lengths: npt.NDArray[np.integer]
    identities: Words
    bits: npt.NDArray[np.integer]
    """With look-ahead, a node is stepped on with k steps left only if bit ``bits + k`` of its reach is set."""


@dataclass(frozen=True, slots=True, eq=False)
class Sampled:
    """Walks as arrays, one row a walk; ``steps`` is the longest length."""

    nodes: npt.NDArray[np.int32]
    """Shape (walks, steps + 1): the nodes visited, -1 after the end."""
    edges: Numbers
    """Shape (walks, steps): the number of the edge in its rows' targets, -1 after the end."""
    related: Mask
    """Shape (walks, steps): whether the edge is a relation."""
    whole: Mask
    """Shape (walks,): whether the walk has the requested length and ends within reach of an answer."""
    refused: npt.NDArray[np.uint32]
    """Shape (walks, reasons): number of refused links by reason; columns as in ``REASONS``."""


Reads = Callable[[npt.NDArray[np.int32], Numbers], Mask]
"""Takes the sources and the numbers of links that pass all other rules; says which of them read as a sentence."""


def sample_walks(terrain: Terrain, starts: Starts, seed: int, reads: Reads | None = None) -> Sampled:
    """Draw a walk for each start: by a relation where there is one, and only where an answer stays in reach."""
    if terrain.links is None and terrain.relations is None:
        raise ValueError("no links and no relations: expected at least one kind of edges to walk on")
    count, steps = len(starts.nodes), int(starts.lengths.max()) if len(starts.lengths) else 0
    parts = []
    for first in range(0, max(count, 1), BATCH):
        cut = slice(first, first + BATCH)
        some = Starts(starts.nodes[cut], starts.lengths[cut], starts.identities[cut], starts.bits[cut])
        parts.append(_Batch(terrain, some, seed, steps, reads).walk())
    columns = ("nodes", "edges", "related", "whole", "refused")
    return Sampled(*(np.concatenate([getattr(part, name) for part in parts]) for name in columns))


class _Batch:
    def __init__(self, terrain: Terrain, starts: Starts, seed: int, steps: int, reads: Reads | None) -> None:
        count = len(starts.nodes)
        self.terrain, self.seed, self.reads = terrain, seed, reads
        self.lengths = starts.lengths.astype(np.int64)
        self.bits = starts.bits.astype(np.uint16)
        self.keys = make_keys(seed, starts.identities)
        self.nodes = np.full((steps + 1, count), -1, dtype=np.int32)
        self.nodes[0] = starts.nodes
        self.edges = np.full((steps, count), -1, dtype=np.int64)
        self.related = np.zeros((steps, count), dtype=bool)
        self.refused = np.zeros(count * len(REASONS), dtype=np.uint32)
        flags = np.arange(256)
        self.reason_of_flags = np.zeros(256, dtype=np.uint8)
        for flag, reason in ((NO_BRIDGE | NO_END, _DEGREE), (GENERIC, _GENERIC), (DISAMBIGUATION, _AMBIGUOUS),
                             (LIST, _LISTED), (HUB, _HUB)):  # fmt: skip
            self.reason_of_flags[(flags & flag) > 0] = reason

    def walk(self) -> Sampled:
        steps, count = self.edges.shape
        walks = np.arange(count)
        for step in range(steps):
            walks = walks[self.lengths[walks] > step]
            moved = self._take_step(step, walks)
            self.count(walks[~moved], _DEAD_END)
            walks = walks[moved]
        refused = self.refused.reshape(count, len(REASONS))
        return Sampled(self.nodes.T, self.edges.T, self.related.T, self._judge_ends(), refused)

    def _judge_ends(self) -> Mask:
        walks = np.arange(len(self.lengths))
        return self.nodes[self.lengths, walks] >= 0

    def _take_step(self, step: int, walks: Numbers) -> Mask:
        links, relations = self.terrain.links, self.terrain.relations
        moved = np.zeros(len(walks), dtype=bool)
        for rows, related in ((relations, True), (links, False)):
            (chosen,) = np.nonzero(~moved)
            if len(chosen) and rows is not None:
                moved[chosen] = _WalkStep(self, rows, related, step, walks[chosen]).choose()
        return moved

    def count(self, walks: Numbers, reasons: Bits | np.uint8) -> None:
        np.add.at(self.refused, walks * len(REASONS) + reasons - 1, np.uint32(1))


class _WalkStep:
    def __init__(self, batch: _Batch, rows: Rows, related: bool, step: int, walks: Numbers) -> None:
        self.batch, self.rows, self.related, self.step, self.walks = batch, rows, related, step, walks
        self.keys = batch.keys.take(walks)
        self.nodes = batch.nodes[step].take(walks)
        self.starts = rows.offsets.take(self.nodes)
        self.degrees = rows.offsets.take(self.nodes + np.int32(1)) - self.starts
        self.moved = np.zeros(len(walks), dtype=bool)

    def choose(self) -> Mask:
        (open_,) = np.nonzero(self.degrees)
        for attempt in range(TRIES):
            if not len(open_):
                break
            counter = _count_choice(self.step, "relation" if self.related else "link") + attempt
            words = draw_words(self.keys.take(open_), counter)
            ordinals = ((words >> np.uint64(32)) * self.degrees.take(open_).astype(np.uint64)) >> np.uint64(32)
            edges = self.starts.take(open_) + ordinals.astype(np.int64)
            targets = self.rows.targets.take(edges)
            fine = self._judge(open_, targets) == 0
            if self.batch.terrain.ratings is not None:
                fine &= (words & _LOW).astype(np.float32) < self._rate(edges, targets) * np.float32(1 << 32)
            moved = self._accept(open_, edges, targets, fine)
            # Drawing more often than there are links costs more than trying all of them.
            open_ = open_[~moved & (self.degrees.take(open_) > attempt + 1)]
        (left,) = np.nonzero(~self.moved & (self.degrees > 0))
        cuts = (np.cumsum(self.degrees.take(left)) - 1) // LOOKED_THROUGH
        for part in np.split(left, np.flatnonzero(np.diff(cuts)) + 1) if len(left) else []:
            self._look_through(part)
        return self.moved

    def _look_through(self, who: Numbers) -> None:
        degrees = self.degrees.take(who)
        ends = np.cumsum(degrees)
        owners = np.repeat(np.arange(len(who)), degrees)
        ordinals = np.arange(int(ends[-1])) - (ends - degrees).take(owners)
        edges = self.starts.take(who).take(owners) + ordinals
        targets = self.rows.targets.take(edges)
        (fine,) = np.nonzero(self._judge(who.take(owners), targets) == 0)
        owners, ordinals, edges = (array.take(fine) for array in (owners, ordinals, edges))
        targets = targets.take(fine)
        counter = _count_choice(self.step, "relations-in-order" if self.related else "links-in-order")
        words = draw_words(self.keys.take(who), counter).take(owners)
        keys = make_keys(self.batch.seed, words + ordinals.astype(np.uint64))
        order = np.lexsort((keys if self.batch.terrain.ratings is None else self._weigh(keys, edges, targets), owners))
        counts = np.bincount(owners, minlength=len(who))
        firsts = np.cumsum(counts) - counts
        (some,), number = np.nonzero(counts), 0
        # A walk is dropped once it has moved or has no link left, so the cost does not depend on the longest page.
        while len(some) and number < ASKED:
            taken = order.take(firsts.take(some) + number)
            moved = self._accept(who.take(some), edges.take(taken), targets.take(taken), np.ones(len(some), dtype=bool))
            number += 1
            some = some[~moved & (counts.take(some) > number)]

    def _rate(self, edges: Numbers, targets: Nodes) -> Rates:
        ratings = self.batch.terrain.ratings
        assert ratings is not None
        if self.related:
            rates = ratings.relations.take(edges)
        else:
            rates = ratings.nodes.take(targets) * rate_places(ratings.positions.take(edges))
        shares: Rates = np.minimum(rates / np.float32(SALIENT), np.float32(1))
        return shares

    def _weigh(self, keys: Words, edges: Numbers, targets: Nodes) -> npt.NDArray[np.float64]:
        units = ((keys >> np.uint64(11)).astype(np.float64) + 0.5) * 2.0**-53
        weighed: npt.NDArray[np.float64] = -np.log(units) / self._rate(edges, targets)
        return weighed

    def _judge(self, who: Numbers, targets: Nodes) -> Bits:
        batch, walks = self.batch, self.walks.take(who)
        flags = batch.terrain.flags.take(targets)
        left = (batch.lengths.take(walks) - self.step - 1).astype(np.uint16)
        closed = np.where(left > 0, np.uint8(self.rows.closed | NO_BRIDGE), np.uint8(self.rows.closed | NO_END))
        reasons: Bits = batch.reason_of_flags.take(flags & closed)
        if batch.terrain.reach is not None:
            far = (batch.terrain.reach.take(targets) >> (batch.bits.take(walks) + left)) & 1 == 0
            reasons[far & (reasons == 0)] = _FAR
        # The test for cycles costs most, so it comes last, on the few links that are left.
        (open_,) = np.nonzero(reasons == 0)
        ahead = targets.take(open_)
        seen = np.zeros(len(open_), dtype=bool)
        for visited in batch.nodes[: self.step + 1]:
            seen |= visited.take(walks.take(open_)) == ahead
        reasons[open_[seen]] = _CYCLE
        if self.rows.closed & GENERIC == 0:
            self._refuse_second(reasons, walks, flags)
        (refused,) = np.nonzero(reasons)
        batch.count(walks[refused], reasons[refused])
        return reasons

    def _refuse_second(self, reasons: Bits, walks: Numbers, flags: Bits) -> None:
        (asked,) = np.nonzero((reasons == 0) & (flags & GENERIC > 0))
        for visited in self.batch.nodes[1 : self.step + 1]:
            before = self.batch.terrain.flags.take(visited.take(walks.take(asked)))
            reasons[asked[before & GENERIC > 0]] = _GENERIC

    def _accept(self, who: Numbers, edges: Numbers, targets: Nodes, fine: Mask) -> Mask:
        if self.batch.reads is not None and not self.related and fine.any():
            reading = fine.copy()
            reading[fine] = self.batch.reads(self.nodes[who[fine]], edges[fine])
            self.batch.count(self.walks[who[fine & ~reading]], _UNREADABLE)
            fine = reading
        (taken,) = np.nonzero(fine)
        chosen = who.take(taken)
        walks = self.walks.take(chosen)
        self.batch.nodes[self.step + 1, walks] = targets.take(taken)
        self.batch.edges[self.step, walks] = edges.take(taken)
        self.batch.related[self.step, walks] = self.related
        self.moved[chosen] = True
        return fine


def read_flags(corpus: Corpus, hub_in_degree: int) -> Bits:
    """Return the flags of each article: lists, disambiguation pages, and hubs.

    A hub has a high in-degree, or the type of one ("country"), or is about a kind of thing ("Bird").
    """
    columns = ["is_list", "is_disambiguation", "in_degree", "type", "title"]
    pages = pq.read_table(corpus.table("pages"), columns=columns)
    listed, ambiguous = (pages[name].to_numpy().astype(np.uint8) for name in columns[:2])
    by_type = pc.is_in(pages["type"], value_set=pa.array(sorted(list_hubs()), pa.string()))
    kinds = pc.is_in(pc.utf8_lower(pages["title"]), value_set=pa.array(sorted(list_kinds()), pa.string()))
    hubs = pages["in_degree"].to_numpy() > hub_in_degree
    hubs = (hubs | pc.or_(by_type, kinds).to_numpy()).astype(np.uint8)
    flags: Bits = listed * np.uint8(LIST) | ambiguous * np.uint8(DISAMBIGUATION) | hubs * np.uint8(HUB)
    return flags


def place_answers(
    corpus: Corpus, splits: SplitRule, max_tokens: int, flags: Bits, asked: Callable[[str], bool] | None = None
) -> Bits:
    """Return for each article the bit of its split when what may be asked of it has an answer key of that split."""
    ends = np.zeros(len(flags), dtype=np.uint8)
    # In one piece: what relations lead to lies anywhere, and taking from pieces joins them each time.
    titles = pq.read_table(corpus.table("pages"), columns=["title"])["title"].combine_chunks()

    # Years and nationalities recur, and typing a value costs more than a cache hit.
    @lru_cache(maxsize=KEPT_VALUES)
    def place_value(text: str, iso: str, key: str) -> Split | None:
        answer = type_value(text, iso, key)
        short = answer is not None and (not max_tokens or count_tokens(answer.surface) <= max_tokens)
        short = short and (asked is None or asked(key))
        return splits.place("answer", answer.key) if answer is not None and short else None

    @lru_cache(maxsize=KEPT_VALUES)
    def place_name(title: str, key: str) -> Split | None:
        surface = strip_qualifier(title)
        short = not max_tokens or count_tokens(surface) <= max_tokens
        return splits.place("answer", name_key(surface)) if short and (asked is None or asked(key)) else None

    for table, _ in list_single_rows(corpus, FieldKeys(), ["target", "text", "iso"]):
        nodes, targets = table["node"].to_numpy(), table["target"].to_numpy()
        named = (targets >= 0) & (targets != nodes) & (flags[np.maximum(targets, 0)] & NO_ANSWER == 0)
        kept = np.flatnonzero(((targets < 0) | named) & (flags[nodes] & CLOSED == 0))
        if not len(kept):
            continue
        found, firsts = np.unique(nodes[kept], return_index=True)
        columns = (table[name].take(kept).to_pylist() for name in ("text", "iso", "key"))
        linked = titles.take(np.maximum(targets[kept], 0)).to_pylist()
        placed = [
            place_name(title, key) if name else place_value(text, iso, key)
            for name, title, text, iso, key in zip(named[kept].tolist(), linked, *columns, strict=True)
        ]
        here = titles.take(found).to_pylist()
        for node, title, (first, after) in zip(
            found.tolist(), here, pairwise([*firsts.tolist(), len(placed)]), strict=True
        ):
            split = splits.place("entity", title)
            if split in placed[first:after]:
                ends[node] = 1 << SPLITS.index(split)
    return ends


def extend_reach(ends: Bits, edges: Sequence[Rows], flags: Bits, steps: int) -> Marks:
    """Return the marks of each node."""
    if steps > MOST_STEPS:
        raise ValueError(f"walks of {steps} steps: expected at most {MOST_STEPS}")
    marks = np.zeros(len(ends), dtype=np.uint16)
    current = ends
    for left in range(steps + 1):
        for number, split in enumerate(SPLITS):
            marks |= ((current >> np.uint8(number)) & np.uint8(1)).astype(np.uint16) << (find_bit(split, steps) + left)
        if left < steps:
            before, current = current, np.zeros_like(ends)
            for rows in edges:
                closed = np.uint8(rows.closed | (NO_BRIDGE if left else NO_END))
                _join_rows(rows, np.where(flags & closed == 0, before, np.uint8(0)), current)
    return marks


def find_bit(split: Split, steps: int) -> int:
    """Return the lowest bit of a split's marks when the longest walk has so many steps."""
    return SPLITS.index(split) * (steps + 1)


def _join_rows(rows: Rows, values: Bits, joined: Bits) -> None:
    for first, last in _cut_nodes(rows.offsets):
        offsets = np.asarray(rows.offsets[first : last + 1])
        some = np.flatnonzero(offsets[1:] > offsets[:-1])
        if len(some):
            gathered = values.take(rows.targets[offsets[0] : offsets[-1]])
            # reduceat gives a row without edges the value after it, so such rows are left out.
            joined[first + some] |= np.bitwise_or.reduceat(gathered, offsets[some] - offsets[0])


def _cut_nodes(offsets: Numbers) -> Iterator[tuple[int, int]]:
    first, count = 0, len(offsets) - 1
    while first < count:
        last = int(np.searchsorted(offsets, offsets[first] + JOINED_EDGES, side="right")) - 1
        last = min(max(last, first + 1), count)
        yield first, last
        first = last


@dataclass(frozen=True, slots=True)
class WalkRules:
    """Rules of walks."""

    settings: PathsConfig
    hub_in_degree: int
    """Entities with more incoming links are never stepped on."""
    max_answer_tokens: int
    splits: SplitRule


@dataclass(frozen=True, slots=True)
class WalkMove:
    """One step of a walk: along an infobox relation (``fact``) or a link in a sentence (``clause``)."""

    target: int
    fact: Fact | None
    link: WikiLink | None
    clause: Clause | None
    gloss: str = ""
    """The relation that a sentence was read to state, in plain words."""
    field: str = ""
    """Infobox key that means the same."""


@dataclass(frozen=True, slots=True)
class Walk:
    """A walk that reached an answer: the moves from the seed and the attributes at its end."""

    moves: tuple[WalkMove, ...]
    attributes: tuple[Attribute, ...]
    """At least one, in the order of trying."""


@dataclass(frozen=True, slots=True)
class Order:
    """A walk to be drawn. The same order gives the same walk in any batch."""

    node: int
    split: Split
    identity: int
    """64 bits that name the walk."""
    length: int = 0
    """In hops; 0 draws one of those that :meth:`WalkGraph.lengths_from` returns."""


@dataclass(frozen=True, slots=True, eq=False)
class Drawn:
    """A drawn walk as numbers; :meth:`WalkGraph.read_walk` returns its moves."""

    order: Order
    sampled: Sampled
    """The walks that were drawn together."""
    row: int
    choice: float
    """Which attribute is asked for, in [0, 1)."""

    @property
    def refused(self) -> dict[str, int]:
        """Number of refused links by reason."""
        counts = zip(REASONS, self.sampled.refused[self.row].tolist(), strict=True)
        return {reason: count for reason, count in counts if count}


class WalkGraph:
    """A corpus with the rules of walks. Nothing is read before the first walk."""

    def __init__(self, corpus: Corpus, rules: WalkRules, relations: RelationIndex, kept: Path | None = None) -> None:
        self.corpus, self.rules, self.relations = corpus, rules, relations
        self._kept = kept
        self._steps = max(rules.settings.hops)
        self._links_of = lru_cache(maxsize=KEPT_PAGES)(self._find_links)
        self._sentence_of = lru_cache(maxsize=KEPT_SENTENCES)(self._find_sentence)

    @cached_property
    def flags(self) -> Bits:
        """Bits of each article: list, disambiguation page, hub, with ``salience`` also generic; 0 for none."""
        flags, degrees = read_flags(self.corpus, self.rules.hub_in_degree), self.corpus.graph.in_degree
        for role, (low, high) in self.rules.settings.in_degree.items():
            bit = NO_BRIDGE if role == "bridge" else NO_END
            flags |= ((degrees < low) | (degrees > high)) * np.uint8(bit)
        if self.rules.settings.salience:
            flags |= find_generic(self.corpus) * np.uint8(GENERIC)
        return flags

    @cached_property
    def marks(self) -> Marks:
        """Marks of :func:`extend_reach`; a kept file that is damaged is replaced."""
        if self._kept is None:
            return self._find_marks()
        rules = self.rules
        decides = [
            self._steps, rules.hub_in_degree, rules.settings.text_hops, rules.max_answer_tokens, repr(rules.splits),
            *sorted(rules.settings.in_degree.items()),
            *map(inspect.getsource, DECIDING), read_lists() if rules.settings.salience else "",
        ]  # fmt: skip
        path = self._kept / f"reach-{digest_value([REACH_VERSION, self.corpus.digest, decides])[:16]}.npy"
        if path.exists():
            return map_array(path)
        with replacing(path) as temp, temp.open("wb") as stream:
            np.save(stream, self._find_marks())
        return map_array(path)

    @cached_property
    def terrain(self) -> Terrain:
        """The arrays that are walked on."""
        return Terrain(self._links, self._relations, self.flags, self.marks, self._ratings)

    def lengths_from(self, node: int, split: Split) -> list[tuple[int, float]]:
        """Return the path lengths that can be walked from a seed, with their weights, which are above 0."""
        marks, settings = int(self.marks[node]) >> find_bit(split, self._steps), self.rules.settings
        lengths = zip(settings.hops, settings.weights, strict=True)
        return [(length, weight) for length, weight in lengths if weight > 0 and marks >> length & 1]

    def draw_walks(self, orders: Sequence[Order], seed: int) -> list[Drawn]:
        """Draw walks, all at once."""
        if not orders:
            return []
        identities = np.asarray([order.identity for order in orders], dtype=np.uint64)
        keys = make_keys(seed, identities)
        nodes = np.asarray([order.node for order in orders], dtype=np.int64)
        bits = np.asarray([find_bit(order.split, self._steps) for order in orders], dtype=np.uint16)
        lengths = np.asarray([order.length for order in orders], dtype=np.int64)
        lengths = np.where(lengths > 0, lengths, self._draw_lengths(nodes, bits, draw_units(keys, _LENGTH)))
        if not lengths.all():
            raise ValueError(f"no answer in reach of node {int(nodes[lengths == 0][0])}: call lengths_from first")
        starts = Starts(nodes, lengths, identities, bits)
        sampled = sample_walks(self.terrain, starts, seed, self._read_links)
        choices = draw_units(keys, _ATTRIBUTE).tolist()
        return [Drawn(order, sampled, row, choices[row]) for row, order in enumerate(orders)]

    def read_walk(self, drawn: Drawn) -> Walk | None:
        """Return the moves of a drawn walk; None if it ended early."""
        sampled, row = drawn.sampled, drawn.row
        if not sampled.whole[row]:
            return None
        steps = int((sampled.edges[row] >= 0).sum())
        nodes, edges, related = (array[row].tolist() for array in (sampled.nodes, sampled.edges, sampled.related))
        moves = tuple(self._read_move(nodes[step], edges[step], related[step]) for step in range(steps))
        asked = self.read_answers(nodes[steps], drawn.order.split)
        found = tuple(a for a in asked if a.fact.target not in nodes[: steps + 1])
        first = int(drawn.choice * len(found))
        return Walk(moves, (*found[first:], *found[:first])) if found else None

    def read_answers(self, node: int, split: Split) -> tuple[Attribute, ...]:
        """Return what may be asked of a node whose answers are of a split, page order."""
        found = read_askable(self.corpus, node, self.rules.max_answer_tokens)
        return tuple(
            a
            for a in found
            if (a.fact.target < 0 or self.flags[a.fact.target] & NO_ANSWER == 0)
            and self.rules.splits.place("answer", a.answer.key) == split
        )

    def _find_marks(self) -> Marks:
        asked = is_asked if self.rules.settings.salience else None
        ends = place_answers(self.corpus, self.rules.splits, self.rules.max_answer_tokens, self.flags, asked)
        edges = [rows for rows in (self._relations, self._links) if rows is not None]
        return extend_reach(ends, edges, self.flags, self._steps)

    @property
    def _relations(self) -> Rows:
        return Rows(self.relations.offsets, self.relations.objects)

    @property
    def _links(self) -> Rows | None:
        graph = self.corpus.graph
        settings = self.rules.settings
        closed = CLOSED | GENERIC * settings.salience
        return Rows(graph.offsets, graph.targets, closed) if settings.text_hops else None

    @property
    def _ratings(self) -> Ratings | None:
        graph = self.corpus.graph
        if not self.rules.settings.salience:
            return None
        nodes = rate_counts(graph.in_degree)
        common = nodes.take(self.relations.objects) * rate_counts(self.relations.count_sharing() - 1)
        common[self.flags.take(self.relations.objects) & GENERIC > 0] *= GENERIC_RATE
        return Ratings(nodes, graph.positions, common)

    def _draw_lengths(self, nodes: Numbers, bits: Marks, units: npt.NDArray[np.float64]) -> Numbers:
        hops = np.asarray([*self.rules.settings.hops, 0], dtype=np.int64)
        marks = (self.marks.take(nodes) >> bits).astype(np.int64)
        open_ = (marks[:, None] >> hops[:-1]) & 1
        ends = np.cumsum(open_ * np.asarray(self.rules.settings.weights), axis=1)
        lengths: Numbers = hops[(units[:, None] * ends[:, -1:] >= ends).sum(axis=1)]
        return lengths

    def _read_move(self, node: int, edge: int, related: bool) -> WalkMove:
        if related:
            fact = read_relations(self.corpus, node)[edge - int(self.relations.offsets[node])]
            return WalkMove(fact.target, fact, None, None)
        link, clause = self._sentence_of(node, edge) or (None, None)
        return WalkMove(int(self.corpus.graph.targets[edge]), None, link, clause)

    def _read_links(self, nodes: npt.NDArray[np.int32], edges: Numbers) -> Mask:
        pairs = zip(nodes.tolist(), edges.tolist(), strict=True)
        return np.asarray([self._sentence_of(node, edge) is not None for node, edge in pairs], dtype=bool)

    def _find_sentence(self, node: int, edge: int) -> tuple[WikiLink, Clause] | None:
        link = self._links_of(node).get(int(self.corpus.graph.positions[edge]))
        clause = None if link is None else make_clause(self.corpus.text(node), link, ())
        if link is None or clause is None:
            return None
        told = not self.rules.settings.salience or is_telling(self.corpus, node, link, clause.text)
        return (link, clause) if told else None

    def _find_links(self, node: int) -> dict[int, WikiLink]:
        return {link.start: link for link in self.corpus.links(node)}


def find_hub_threshold(in_degree: Nodes, hub_share: float, small: bool) -> int:
    """Return the in-degree above which an article is a hub.

    On a small corpus the share decides, and there is at least one hub.
    """
    if not small or not len(in_degree):
        return HUB_IN_DEGREE
    hubs = max(1, round(len(in_degree) * hub_share))
    ordered = np.sort(in_degree)[::-1]
    return min(HUB_IN_DEGREE, int(ordered[min(hubs, len(ordered) - 1)]))
