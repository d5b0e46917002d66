"""Who may be stepped on, and from where an answer can still be reached: one pass over the edges for each step.

A node's marks are bits, one for each split and number of steps left, so that one look-up tells a walk whether a node
still leads to an answer of its split. They cost two bytes an article.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from collections.abc import Set as AnySet
from functools import lru_cache
from itertools import pairwise
from pathlib import Path
from types import ModuleType

import numpy as np
import numpy.typing as npt
import pyarrow.parquet as pq

from pipelines import names
from pipelines.corpus.arrays import map_array
from pipelines.corpus.store import Corpus
from pipelines.errors import ConfigError
from pipelines.files import replacing
from pipelines.graph import relations
from pipelines.graph.relations import FieldKeys, list_single_rows, type_value
from pipelines.graph.sampling import DISAMBIGUATION, HUB, LIST, Mask, Rows
from pipelines.graph.splits import SplitRule
from pipelines.ids import canonical_json, digest_value
from pipelines.scoring import answers, dates, numbers, spelled
from pipelines.scoring.answers import count_tokens
from schemas.seeds import Split

Bits = npt.NDArray[np.uint8]
Marks = npt.NDArray[np.uint16]

REACH_VERSION = 2
"""Raised when the code gives other marks of the same corpus, rules and tables."""
DECIDING = (relations, answers, dates, numbers, spelled, names)
"""Modules whose constants decide which values are answers, and of which key."""
SPLITS: tuple[Split, ...] = ("sft", "rl", "eval")
MOST_STEPS = 16 // len(SPLITS) - 1
KEPT_VALUES = 1 << 17
"""Values whose split is remembered, about 40 MB."""
JOINED_EDGES = 1 << 22
"""Edges looked along together."""


def digest_tables(modules: Sequence[ModuleType] = DECIDING) -> str:
    """Return the digest of every constant of the modules that decide who can be an answer."""
    tables = [
        [module.__name__, name, _spell_out(value)]
        for module in modules
        for name, value in sorted(vars(module).items())
        if name.isupper()
    ]
    return digest_value(tables)


def keep_marks(path: Path, count: int, find: Callable[[], Marks]) -> Marks:
    """Return the marks of so many nodes from a file; where it is missing, damaged or of another length, found anew."""
    if path.exists():
        try:
            kept = map_array(path)
        except ConfigError:
            kept = np.empty(0)
        if kept.shape == (count,) and kept.dtype == np.uint16:
            return kept
    with replacing(path) as temp, temp.open("wb") as stream:
        np.save(stream, find())
    return map_array(path)


def read_flags(corpus: Corpus, hub_in_degree: int) -> Bits:
    """Return the flags of each article: lists, disambiguation pages, and hubs by their in-degree."""
    columns = ["is_list", "is_disambiguation", "in_degree"]
    pages = pq.read_table(corpus.folder / "pages.parquet", columns=columns)
    listed, ambiguous = (pages[name].to_numpy().astype(np.uint8) for name in columns[:2])
    hubs = (pages["in_degree"].to_numpy() > hub_in_degree).astype(np.uint8)
    flags: Bits = listed * np.uint8(LIST) | ambiguous * np.uint8(DISAMBIGUATION) | hubs * np.uint8(HUB)
    return flags


def place_answers(corpus: Corpus, splits: SplitRule, max_tokens: int, flags: Bits) -> Bits:
    """Return for each article the bit of its split when one of its attributes has an answer key of that split.

    Args:
        corpus: whose facts are read once, in order.
        splits: decides who belongs where.
        max_tokens: longest answer in words, 0 is no bound.
        flags: articles with any are left out.
    """
    ends = np.zeros(len(flags), dtype=np.uint8)
    titles = pq.read_table(corpus.folder / "pages.parquet", columns=["title"])["title"]

    # Years and nationalities come back again and again, and typing one costs more than looking it up.
    @lru_cache(maxsize=KEPT_VALUES)
    def place_value(text: str, iso: str, key: str) -> Split | None:
        answer = type_value(text, iso, key)
        short = answer is not None and (not max_tokens or count_tokens(answer.surface) <= max_tokens)
        return splits.place("answer", answer.key) if answer is not None and short else None

    for table, _ in list_single_rows(corpus, FieldKeys(), ["target", "text", "iso"]):
        nodes = table["node"].to_numpy()
        kept = np.flatnonzero((table["target"].to_numpy() < 0) & (flags[nodes] == 0))
        if not len(kept):
            continue
        found, firsts = np.unique(nodes[kept], return_index=True)
        values = list(zip(*(table[name].take(kept).to_pylist() for name in ("text", "iso", "key")), strict=True))
        # Only the titles of this run of nodes: taking from a whole column would join all its pieces first.
        here = titles.slice(int(found[0]), int(found[-1] - found[0]) + 1).take(found - found[0]).to_pylist()
        for node, title, (first, after) in zip(
            found.tolist(), here, pairwise([*firsts.tolist(), len(values)]), strict=True
        ):
            split = splits.place("entity", title)
            if any(place_value(*value) == split for value in values[first:after]):
                ends[node] = 1 << SPLITS.index(split)
    return ends


def extend_reach(ends: Bits, edges: Sequence[Rows], flags: Bits, steps: int) -> Marks:
    """Return the marks of each node.

    Args:
        ends: bit s of a node says that a walk of split s may end there.
        edges: what may be walked along.
        flags: a node with any is not stepped on.
        steps: longest walk.

    Returns:
        Bit ``find_bit(split, steps) + k`` says: from here, k more steps can end at an answer of the split.

    Raises:
        ValueError: the steps of all splits do not fit into 16 bits.
    """
    if steps > MOST_STEPS:
        raise ValueError(f"walks of {steps} steps: expected at most {MOST_STEPS}")
    marks = np.zeros(len(ends), dtype=np.uint16)
    current = ends
    for left in range(steps + 1):
        for number, split in enumerate(SPLITS):
            marks |= ((current >> np.uint8(number)) & np.uint8(1)).astype(np.uint16) << (find_bit(split, steps) + left)
        if left < steps:
            open_ = np.where(flags == 0, current, np.uint8(0))
            current = np.zeros_like(ends)
            for rows in edges:
                _join_rows(rows, open_, current)
    return marks


def find_bit(split: Split, steps: int) -> int:
    """Return the lowest bit of a split's marks when the longest walk has so many steps."""
    return SPLITS.index(split) * (steps + 1)


def show_mark(marks: Marks, split: Split, left: int, steps: int) -> Mask:
    """Return which nodes lead to an answer of a split in exactly so many steps."""
    mask: Mask = (marks >> np.uint16(find_bit(split, steps) + left)) & np.uint16(1) == 1
    return mask


def _join_rows(rows: Rows, values: Bits, joined: Bits) -> None:
    """Join to each node the values of all nodes that its edges lead to."""
    for first, last in _cut_nodes(rows.offsets):
        offsets = np.asarray(rows.offsets[first : last + 1])
        some = np.flatnonzero(offsets[1:] > offsets[:-1])
        if len(some):
            gathered = values.take(rows.targets[offsets[0] : offsets[-1]])
            # reduceat gives a row without edges the value after it, so only rows with edges are asked for.
            joined[first + some] |= np.bitwise_or.reduceat(gathered, offsets[some] - offsets[0])


def _cut_nodes(offsets: npt.NDArray[np.int64]) -> Iterator[tuple[int, int]]:
    """Yield runs of nodes with at most ``JOINED_EDGES`` edges, or of one node."""
    first, count = 0, len(offsets) - 1
    while first < count:
        last = int(np.searchsorted(offsets, offsets[first] + JOINED_EDGES, side="right")) - 1
        last = min(max(last, first + 1), count)
        yield first, last
        first = last


def _spell_out(value: object) -> object:
    """Return a constant as JSON that does not depend on the order in which a set or a table was filled."""
    if isinstance(value, re.Pattern):
        return [value.pattern, value.flags]
    if isinstance(value, dict):
        return sorted(([_spell_out(key), _spell_out(held)] for key, held in value.items()), key=canonical_json)
    if isinstance(value, AnySet):
        return sorted(map(_spell_out, value), key=canonical_json)
    if isinstance(value, tuple | list):
        return [_spell_out(held) for held in value]
    return value
