"""Measures the link graph and its walks at the size of English Wikipedia: ``python -m tests.benchmarks.graph``.

The links are simulated: log-normal out-degrees, targets by Zipf's law with the most linked pages strewn over all nodes.
Each part runs in a process of its own, so that its peak memory is its own. Seconds are those of one core.
"""

import json
import math
import resource
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import numpy.typing as npt

from pipelines.config.settings import PathsConfig
from pipelines.corpus.linkgraph import EdgeBlock, LinkGraph, build_graph
from pipelines.graph.salience import rate_counts
from pipelines.graph.walks import (
    DISAMBIGUATION,
    HUB,
    LIST,
    REASONS,
    Ratings,
    Rows,
    Starts,
    Terrain,
    extend_reach,
    sample_walks,
)
from tests.benchmarks.measured import Measured

ROOT = Path(__file__).resolve().parents[2]
HUB_IN_DEGREE = 10_000
LIST_SHARE, DISAMBIGUATION_SHARE = 0.02, 0.03
HOPS, WEIGHTS = (2, 3, 4), (0.4, 0.4, 0.2)
BLOCK_NODES = 1 << 16
STRIDE = 3_266_489_917
EXPONENT = 5
"""A rank is drawn as a fifth power, which is Zipf's law with an exponent of 0.8."""
REPEATS = 3


@dataclass(frozen=True, slots=True)
class Size:
    """How much is simulated."""

    nodes: int
    links: int
    walks: int


ENWIKI = Size(7_000_000, 222_000_000, 1_000_000)
"""Links are made with some to spare: up to one in twenty leads where another one led."""
SMALL = Size(20_000, 600_000, 20_000)


def simulate_links(nodes: int, links: int, seed: int = 1) -> Iterator[EdgeBlock]:
    """Yield about so many links in node order, some 65,000 nodes at a time."""
    rng = np.random.default_rng(seed)
    stride = next(step for step in range(STRIDE, STRIDE + nodes) if math.gcd(step, nodes) == 1)
    mean, top = links / nodes / math.exp(0.605), nodes ** (1 / EXPONENT)
    for first in range(0, nodes, BLOCK_NODES):
        count = min(BLOCK_NODES, nodes - first)
        degrees = (rng.lognormal(0.0, 1.1, count) * mean + rng.random(count)).astype(np.int64)
        sources = np.repeat(np.arange(first, first + count, dtype=np.uint32), degrees)
        ranks = ((rng.random(len(sources)) * (top - 1) + 1) ** EXPONENT).astype(np.int64) - 1
        ordinals = np.arange(len(sources)) - np.repeat(np.cumsum(degrees) - degrees, degrees)
        positions = ordinals.astype(np.uint32) * np.uint32(90)
        yield sources, (ranks * stride % nodes).astype(np.uint32), positions


def make_flags(graph: LinkGraph, hub_in_degree: int) -> npt.NDArray[np.uint8]:
    """Return flags with a usual share of lists and disambiguation pages."""
    rng = np.random.default_rng(2)
    flags = np.where(graph.in_degree > hub_in_degree, HUB, 0).astype(np.uint8)
    flags[rng.random(graph.node_count) < LIST_SHARE] |= LIST
    flags[rng.random(graph.node_count) < DISAMBIGUATION_SHARE] |= DISAMBIGUATION
    return flags


def make_starts(flags: npt.NDArray[np.uint8], walks: int, seed: int) -> Starts:
    """Return walks of two to four hops from nodes that may be stepped on."""
    rng = np.random.default_rng(seed)
    open_ = np.flatnonzero(flags == 0)
    nodes = open_[rng.integers(0, len(open_), walks)]
    lengths = rng.choice(HOPS, walks, p=WEIGHTS)
    return Starts(nodes, lengths, rng.integers(0, 1 << 63, walks).astype(np.uint64), np.zeros(walks, dtype=np.uint8))


def time_process(call: Callable[..., Any], *arguments: object) -> tuple[float, Any]:
    """Return the processor seconds a call takes, and what it returns."""
    started = time.process_time()
    result = call(*arguments)
    return time.process_time() - started, result


def run_build(folder: Path, size: Size) -> dict[str, Any]:
    """Build the graph; the seconds of making the links are taken off."""
    spent, made = time_process(lambda: sum(len(sources) for sources, _, _ in simulate_links(size.nodes, size.links)))
    seconds, graph = time_process(lambda: build_graph(folder, size.nodes, simulate_links(size.nodes, size.links)))
    return {"seconds": seconds - spent, "made": made, "links": graph.link_count}


def run_walks(folder: Path, size: Size) -> dict[str, Any]:
    """Open the graph and walk over it; the first round touches pages that no process has mapped yet."""
    started = time.perf_counter()
    graph = LinkGraph.open(folder)
    opened = time.perf_counter() - started
    flags = make_flags(graph, HUB_IN_DEGREE)
    terrain = Terrain(Rows(graph.offsets, graph.targets), None, flags)
    rates, refused = [], dict.fromkeys(REASONS, 0)
    for repeat in range(REPEATS):
        starts = make_starts(flags, size.walks, seed=repeat)
        seconds, sampled = time_process(sample_walks, terrain, starts, 7, PathsConfig())
        rates.append(int((sampled.edges >= 0).sum()) / seconds)
        refused = dict(zip(REASONS, sampled.refused.sum(axis=0).tolist(), strict=True))
    hubs = int((graph.in_degree > HUB_IN_DEGREE).sum())
    steps = int((sampled.edges >= 0).sum())
    none = np.empty(0, dtype=np.float32)
    rated = replace(terrain, ratings=Ratings(rate_counts(graph.in_degree), graph.positions, none))
    salient = []
    for repeat in range(REPEATS):
        seconds, sampled = time_process(sample_walks, rated, make_starts(flags, size.walks, repeat), 7, PathsConfig())
        salient.append(int((sampled.edges >= 0).sum()) / seconds)
    return {"opened": opened, "rates": rates, "refused": refused, "steps": steps, "hubs": hubs, "salient": salient}


def run_reach(folder: Path, size: Size) -> dict[str, Any]:
    """Compute the look-ahead of walks over every link, one article in four having an answer, and walk with it."""
    graph = LinkGraph.open(folder)
    flags = make_flags(graph, HUB_IN_DEGREE)
    rng = np.random.default_rng(4)
    ends = np.where(rng.random(graph.node_count) < 0.25, 1 << rng.integers(0, 3, graph.node_count), 0).astype(np.uint8)
    rows = Rows(graph.offsets, graph.targets)
    seconds, marks = time_process(extend_reach, ends, [rows], flags, max(HOPS))
    starts = make_starts(flags, size.walks, seed=5)
    terrain = Terrain(rows, None, flags, marks)
    spent, sampled = time_process(sample_walks, terrain, starts, 7, PathsConfig())
    return {"seconds": seconds, "rate": int((sampled.edges >= 0).sum()) / spent, "whole": float(sampled.whole.mean())}


PARTS = {"build": run_build, "walks": run_walks, "reach": run_reach}


def run_part(name: str, folder: Path, size: Size) -> dict[str, Any]:
    """Run a part in a process of its own; its peak resident memory, MB, is added to what it says."""
    command = [sys.executable, "-m", "tests.benchmarks.graph", name, str(folder), json.dumps(asdict(size))]
    result: dict[str, Any] = json.loads(subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.PIPE).stdout)
    return result


def measure(scratch: Path, size: Size = ENWIKI) -> list[Measured]:
    """Measure everything; ``scratch`` takes 26 bytes a link."""
    build = run_part("build", scratch / "graph", size)
    walks = run_part("walks", scratch / "graph", size)
    reach = run_part("reach", scratch / "graph", size)
    rates = ", ".join(f"{rate / 1e6:.2f}" for rate in walks["rates"])
    salient = ", ".join(f"{rate / 1e6:.2f}" for rate in walks["salient"])
    refused = ", ".join(f"{reason} {count:,}" for reason, count in walks["refused"].items() if count)
    return [
        Measured(f"graph of {size.nodes:,} nodes and {build['links']:,} links", f"{build['seconds']:.0f} s"),
        Measured("its peak memory while it is built", f"{build['megabytes']:,.0f} MB", "8,000 MB"),
        Measured("opened", f"{walks['opened'] * 1000:.1f} ms", "50 ms"),
        Measured(f"steps on one core, {walks['hubs']:,} hubs", f"{rates} M/s", "1 M/s"),
        Measured(f"refused beside {walks['steps']:,} steps", refused),
        Measured("steps by the rating of their links", f"{salient} M/s", "1 M/s"),
        Measured("look-ahead of 4 steps for 3 splits over every link", f"{reach['seconds']:.1f} s"),
        Measured("its peak memory, mapped pages of the graph included", f"{reach['megabytes']:,.0f} MB"),
        Measured(f"steps with look-ahead, {reach['whole']:.1%} of walks whole", f"{reach['rate'] / 1e6:.2f} M/s"),
    ]


def main() -> None:
    """Run one part, or measure everything and print the table."""
    if len(sys.argv) > 1:
        name, folder, size = sys.argv[1:]
        result = PARTS[name](Path(folder), Size(**json.loads(size)))
        megabytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        sys.stdout.write(json.dumps(result | {"megabytes": megabytes}))
        return
    with TemporaryDirectory(prefix="synth-bench-") as scratch:
        for entry in measure(Path(scratch)):
            sys.stdout.write(f"| {entry.what} | {entry.value} | {entry.budget} |\n")


if __name__ == "__main__":
    main()
