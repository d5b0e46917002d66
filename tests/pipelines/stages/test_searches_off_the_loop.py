import asyncio
import shutil
from contextlib import closing

import pyarrow.parquet as pq
import pytest

from pipelines.config.loading import make_config, read_recipe
from pipelines.corpus.passages import PassageIndex
from pipelines.corpus.store import Corpus
from pipelines.run.assembly import Assembly
from pipelines.run.workspace import Workspace
from tests.conftest import SETTINGS
from tests.record_shards import run_record_shards

GROWN = ('method="injection"', "injections.rounds=[1,2]", "injections.weights=[0.5,0.5]", "rewrites.near_misses=50")


class ThreadedIndex(PassageIndex):
    """Refuses a search on the thread of an event loop: over a large corpus the loop would stand still."""

    asked = 0

    def _note(self):
        assert asyncio._get_running_loop() is None, "the corpus is searched on the event loop"
        self.asked += 1

    def search(self, *arguments):
        self._note()
        return super().search(*arguments)

    def rank_nodes(self, *arguments):
        self._note()
        return super().rank_nodes(*arguments)

    def find_phrases(self, *arguments):
        self._note()
        return super().find_phrases(*arguments)


def count_searches(demo, folder, names, rows, settings):
    """Run some rows through stages, and return how often each searched; the first stage reads what the demo made."""
    (place,) = (demo.root / "corpus").iterdir()
    workspace, corpus = Workspace(folder), Corpus.open(place)
    index = corpus.__dict__["_passages"] = ThreadedIndex.open(place / "search")
    shutil.copytree(demo.root / "images", workspace.images)
    config = make_config(read_recipe("demo"), [f"corpus.world={demo.world}", *SETTINGS, *settings])
    counts = {}
    with closing(Assembly(config, workspace, corpus)) as assembly:
        for plan in assembly.plan_stages(names[-1]):
            if plan.name in names:
                before, source = index.asked, plan.sources[0]
                read = source.folder if source.name in counts else demo.stage(source.name)
                few = folder / f"{source.name}.parquet"
                pq.write_table(pq.read_table(read.part(0)).slice(0, rows), few)
                run_record_shards(plan.stage, plan.folder, [(0, few)], rows)
                counts[plan.name] = index.asked - before
                assert plan.folder.read_sidecar(0).kept
    return counts


@pytest.mark.parametrize(
    ("names", "rows", "settings"),
    [
        (("questions", "rewrites", "groundings", "difficulty", "rollouts"), 24, ()),
        (("questions", "rewrites"), 100, GROWN),
    ],
    ids=["walks", "injections"],
)
def test_no_stage_searches_the_corpus_on_the_event_loop(demo, tmp_path, names, rows, settings):
    counts = count_searches(demo, tmp_path, names, rows, settings)
    assert counts["rewrites"] + counts.get("groundings", 0) > 0
    assert list(counts) == list(names)
