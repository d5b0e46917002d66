"""Measures how long ``groundings`` keeps the event loop over a corpus of two million passages.

The questions, the pictures and the tables are those of a generated world. Its search index is another: the world's own
passages lie among so many of distinct text, as :mod:`tests.benchmarks.search` draws them. A search takes as long as it
does over such a corpus, and so does every check that searches.
``python -m tests.benchmarks.stalls FOLDER 20000`` takes another number.
"""

import argparse
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

from pipelines.cli.commands import load_config
from pipelines.corpus.infobox import read_infobox
from pipelines.corpus.passages import PassageIndex, PassageRow, write_passages
from pipelines.corpus.scan import render_article
from pipelines.corpus.store import Corpus
from pipelines.corpus.texts import split_passages
from pipelines.run.assembly import Assembly
from pipelines.run.runner import PlannedStage
from pipelines.run.workspace import Workspace
from tests.benchmarks.measured import Measured
from tests.benchmarks.rollouts import Stalls
from tests.benchmarks.search import THREADS, draw_passages
from tests.chaos.driving import ROOT, list_settings, make_command
from tests.record_shards import run_record_shards

PASSAGES = 2_000_000
SETTINGS = ("corpus.generate.entities=8000",)
LONGEST = 0.2
"""Wanted seconds of the longest callback."""


def list_passages(corpus: Corpus, count: int) -> Iterator[PassageRow]:
    """Yield so many passages, those of the corpus strewn among them; each belongs to one of its articles."""
    own = list[PassageRow]()
    for node in corpus.article_nodes():
        text, title = corpus.text(node), corpus.page(node).title
        own += [(node, title, piece) for piece in split_passages(render_article(text, read_infobox(text)))]
    articles = len(corpus.article_nodes())
    for node, title, text in draw_passages(own, count):
        yield node % articles, title, text


def measure(scratch: Path, passages: int = PASSAGES) -> list[Measured]:
    """Run the stage with every callback timed; an index that is there already is used."""
    config, workspace = load_config("demo", None, list(SETTINGS)), Workspace(scratch / "workspace")
    command = make_command("run", "--workspace", workspace.root, "--until", "rewrites", *list_settings(SETTINGS))
    subprocess.run(command, cwd=ROOT, check=True)
    (place,) = workspace.corpora.iterdir()
    corpus, index = Corpus.open(place), scratch / "search"
    if not index.is_dir():
        write_passages(index, list_passages(corpus, passages), THREADS)
    corpus.__dict__["_passages"] = PassageIndex.open(index)
    with closing(Assembly(config, workspace, corpus)) as assembly:
        plan = assembly.plan_stages("groundings")[-1]
        return time_callbacks(plan, passages)


def time_callbacks(plan: PlannedStage, passages: int) -> list[Measured]:
    """Run the shards of a stage and return the rows of the table."""
    source, stalls = plan.sources[0].folder.read_manifest(), Stalls()
    assert source is not None
    sources = [(each.shard, plan.sources[0].folder.part(each.shard)) for each in source.shards]
    started, spent = time.perf_counter(), time.process_time()
    with stalls.watch():
        run_record_shards(plan.stage, plan.folder, sources, plan.in_flight)  # type: ignore[arg-type]
    seconds, processor = time.perf_counter() - started, time.process_time() - spent
    own, wall = sorted(stalls.processor), sorted(stalls.wall)
    rare = -1 - len(own) // 1000
    return [
        Measured(
            f"groundings of {source.rows_out:,} rows over {passages:,} passages, {plan.in_flight} in flight",
            f"{seconds:.0f} s, {1000 * processor / source.rows_out:.0f} ms of processor time a row",
        ),
        Measured("longest callback, its own processor time", f"{1000 * own[-1]:.0f} ms", f"{1000 * LONGEST:.0f} ms"),
        Measured("longest callback, by the wall", f"{1000 * wall[-1]:.0f} ms", f"{1000 * LONGEST:.0f} ms"),
        Measured("99.9% of callbacks end sooner than this, by the wall", f"{1000 * wall[rare]:.0f} ms"),
        Measured(f"the loop's share of the processor time, {len(own):,} callbacks", f"{sum(own) / processor:.0%}"),
    ]


def main() -> None:
    """Measure over so many passages and print the table."""
    parser = argparse.ArgumentParser()
    parser.add_argument("scratch", type=Path)
    parser.add_argument("passages", type=int)
    order = parser.parse_args()
    for entry in measure(order.scratch, order.passages):
        sys.stdout.write(f"| {entry.what} | {entry.value} | {entry.budget} |\n")


if __name__ == "__main__":
    main()
