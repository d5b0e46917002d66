"""Target sizes: what a run asks for is what it releases, or it says what it cannot have and why."""

import os
import shutil
import subprocess
import time
from collections import Counter
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.checks.quotas import Aim, Draw, Quotas, place_question, refuse_surplus
from pipelines.checks.sets import Signature
from pipelines.cli.commands import run_recipe
from pipelines.cli.plan import estimate_run
from pipelines.config.loading import make_config, read_recipe
from pipelines.errors import ConfigError, GateNotMet
from pipelines.run.assembly import Assembly
from pipelines.run.loop import RunDocument
from pipelines.run.pruning import find_leftovers
from pipelines.run.quotas import RoundCounts, TargetPlan
from pipelines.run.shards import read_parts
from pipelines.run.workspace import Workspace
from schemas.base import Rejection
from schemas.datasets import Enhancement, ReleaseEntry, Seed
from schemas.datasets import Path as WalkedPath
from schemas.manifest import Usage
from tests.chaos.driving import ROOT, digest_outputs, make_environment, make_run, read_ledger
from tests.conftest import SETTINGS

TARGETS = ("seeds.limit=0", "runtime.shard_rows=16", 'targets.by=["hops"]')
WANTED = ("targets.rows.sft=6", 'targets.strata.rl={"2"=2, "3"=1}')


def configure(world: Path, *settings: str):
    return make_config(read_recipe("demo"), [f"corpus.world={world}", *SETTINGS, *TARGETS, *settings])


def copy_corpus(source: Path, root: Path) -> Path:
    """Return a workspace that has another's corpus, so that it need not be built again."""
    shutil.copytree(source / "corpus", root / "corpus", copy_function=os.link)
    return root


@dataclass(frozen=True)
class Filled:
    """A run with target sizes, and what it left."""

    config: object
    root: Path
    document: RunDocument

    def rows(self, stage: str, model: type) -> list:
        workspace = Workspace(self.root)
        return list(read_parts(workspace.stage(stage, workspace.read_latest()[stage]), model))


@pytest.fixture(scope="module")
def filled(demo, tmp_path_factory) -> Filled:
    config = configure(demo.world, *WANTED)
    root = copy_corpus(demo.root, tmp_path_factory.mktemp("filled") / "workspace")
    return Filled(config, root, run_recipe(config, root, "", ()))


def count_released(filled: Filled) -> Counter[str]:
    strata = {row.record_id: place_question(row, ("hops",)) for row in filled.rows("selections", Enhancement)}
    entries = [row for row in filled.rows("releases", ReleaseEntry) if row.dataset in ("sft", "rl")]
    return Counter(f"{entry.dataset}: {strata[entry.parent_id][1]}" for entry in entries)


@pytest.mark.slow
class TestFilledRun:
    def test_what_is_wanted_is_released_and_no_row_more(self, filled):
        released = count_released(filled)
        assert {row.stratum for row in filled.document.targets} == {"sft: 2", "sft: 3", "sft: 4", "rl: 2", "rl: 3"}
        assert sum(row.state == "full" for row in filled.document.targets) >= 3
        for row in filled.document.targets:
            assert row.accepted == released[row.stratum] <= row.wanted
            assert (row.state == "full") == (row.accepted == row.wanted)
        assert not [row for row in filled.rows("selections", Enhancement) if row.split == "eval"]

    def test_more_rounds_than_one_were_drawn_and_each_begins_a_shard(self, filled):
        seeds = filled.rows("seeds", Seed)
        assert max(seed.round for seed in seeds) > 1
        workspace = Workspace(filled.root)
        folder = workspace.stage("seeds", workspace.read_latest()["seeds"])
        for path in folder.path.glob("part-*.parquet"):
            assert len(set(pq.read_table(path)["round"].to_pylist())) <= 1

    def test_a_seed_that_was_drawn_for_a_length_has_a_path_of_it(self, filled):
        seeds = {seed.record_id: seed for seed in filled.rows("seeds", Seed)}
        walked = filled.rows("paths", WalkedPath)
        assert walked
        assert {(seeds[path.parent_id].hops, len(path.hops)) for path in walked} <= {(2, 2), (3, 3), (4, 4)}

    def test_strata_that_are_not_full_end_the_run_with_a_gate_that_says_why(self, filled):
        short = [row for row in filled.document.targets if row.state != "full"]
        if not short:
            filled.document.check_released()
            return
        with pytest.raises(GateNotMet, match=f"{len(short)} of 5 strata are not full") as error:
            filled.document.check_released()
        assert all(row.state in str(error.value) for row in short)

    def test_a_run_again_does_nothing_and_a_plan_knows_the_rounds(self, filled):
        again = run_recipe(filled.config, filled.root, "", ())
        assert not [report for report in again.stages if report.ran]
        assert again.targets == filled.document.targets
        assert {release.version for release in again.releases} == {r.version for r in filled.document.releases}
        estimate = estimate_run(filled.config, filled.root)
        assert estimate.targets == filled.document.targets
        assert {stage.by for stage in estimate.stages[:-1]} == {"done"}

    def test_pruning_keeps_the_rounds_that_later_ones_are_drawn_by(self, filled):
        with Workspace(filled.root).claim():
            assert not {found.kind for found in find_leftovers(Workspace(filled.root))} & {"seeds", "questions"}


@pytest.mark.slow
def test_a_plan_of_a_run_that_has_not_begun_shows_what_is_wanted(demo, tmp_path):
    root = copy_corpus(demo.root, tmp_path / "workspace")
    targets = estimate_run(configure(demo.world, *WANTED), root).targets
    assert {(row.stratum, row.wanted, row.accepted, row.state) for row in targets} == {
        ("sft: 2", 2, 0, "open"), ("sft: 3", 2, 0, "open"), ("sft: 4", 2, 0, "open"),
        ("rl: 2", 2, 0, "open"), ("rl: 3", 1, 0, "open"),
    }  # fmt: skip


@pytest.mark.slow
def test_what_the_world_has_not_is_said_before_a_model_is_asked(demo, tmp_path):
    root = copy_corpus(demo.root, tmp_path / "workspace")
    config = configure(demo.world, 'targets.by=["hops"]', 'targets.strata.rl={"4"=500}', "targets.rounds=1")
    document = run_recipe(config, root, "selections", ())
    assert any("rl: 4: cannot be filled: 500 rows wanted" in text for text in document.warnings)
    (row,) = document.targets
    assert "no more candidates" in row.state


@pytest.mark.slow
def test_a_domain_that_the_corpus_has_not_is_refused(demo, tmp_path):
    root = copy_corpus(demo.root, tmp_path / "workspace")
    config = configure(demo.world, 'targets.by=["domain"]', 'targets.strata.rl={"Weather"=5}')
    with pytest.raises(ConfigError, match=r"Weather.*this corpus has .*Person"):
        run_recipe(config, root, "", ())


@pytest.mark.slow
def test_a_further_round_changes_no_seed_of_the_rounds_before(demo, demo_corpus):
    first = (Draw(Aim("rl", "", 3), 4), Draw(Aim("rl", "Person"), 3))
    second = (Draw(Aim("rl", "", 2), 5), Draw(Aim("rl", "", 3), 2))
    made = []
    for draws in ((first,), (first, second)):
        assembly = Assembly(demo.config, Workspace(demo.root), demo_corpus, Quotas((), draws, {}))
        rows = list(assembly.build_stage("seeds")())
        assert len(rows) == len(demo_corpus.article_nodes())
        made.append([row for row in rows if not isinstance(row, Rejection)])
    assert made[0] == made[1][: len(made[0])]
    assert len(made[0]) < len(made[1])
    assert all(seed.domain == "Person" for seed in made[0] if not seed.hops)


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        (["targets.rows.rl=5", 'targets.strata.rl={"2"=2}'], "targets of rl: say rows or strata"),
        (['targets.by=["hops"]', 'targets.strata.rl={"5"=2}'], "hops '5'; there are: 2, 3, 4"),
        (
            ['targets.by=["hops", "answer_type"]', 'targets.strata.rl={"2"=2}'],
            "expected 2 values, as hops, answer_type",
        ),
        (['targets.by=["hops", "hops"]', "targets.rows.rl=2"], "name each dimension once"),
        (["targets.rows.eval=2", "splits={sft=0.5, rl=0.5, eval=0.0}"], "targets of eval: splits"),
        (["targets.rows.sft=2", "rollouts.splits=[]"], "rollouts.splits leaves sft out"),
        (["targets.rows.sft=2", "method=concepts"], "targets are for methods paths and injection"),
        (["targets.rows.rl=2", 'pools=[{name="other", path="other.json"}]'], "leave out ..pools.. or targets"),
        (['targets.by=["hops"]', "targets.rows.rl=2", "method=injection"], "targets.by hops: method injection"),
        (['targets.by=["difficulty"]', 'targets.strata.rl={"hard"=2}'], "there are: never, seldom, often"),
    ],
)
def test_targets_that_no_run_can_meet_are_refused_at_once(settings, told):
    with pytest.raises(ConfigError, match=told):
        make_config(read_recipe("demo"), ["corpus.world=nowhere", *settings])


@given(
    st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 3)), max_size=40),
    st.dictionaries(st.sampled_from("ab"), st.integers(0, 9)),
)
def test_of_each_stratum_as_many_are_kept_as_are_wanted_and_those_that_repeat_go_first(rows, wanted):
    signatures = [
        Signature(
            f"q{place}",
            "rl",
            0,
            0,
            "",
            f"relation {place}",
            (),
            "",
            ("", ""),
            "",
            "",
            str(wording),
            b"",
            final=str(place),
        )
        for place, (_, wording) in enumerate(rows)
    ]
    strata = {f"q{place}": ("rl", stratum) for place, (stratum, _) in enumerate(rows)}
    most = {("rl", stratum): count for stratum, count in wanted.items()}
    refused = refuse_surplus(signatures, strata, most)
    for stratum in "abc":
        own = [each for each in signatures if strata[each.record_id] == ("rl", stratum)]
        kept = [each for each in own if each.record_id not in refused]
        assert len(kept) == min(len(own), wanted.get(stratum, 0))
    # One that came earlier is kept before a later one with the same wording.
    for early, late in pairwise(signatures):
        if strata[early.record_id] == strata[late.record_id] and early.skeleton == late.skeleton:
            assert early.record_id not in refused or late.record_id in refused


def find_second_round(root: Path) -> bool:
    """Say whether a run has made a shard of its second round, and is not through with it."""
    parts = sorted(len(list(folder.glob("part-*.json"))) for folder in root.glob("stages/questions/*"))
    sealed = len(list(root.glob("stages/enhancements/*/manifest.json")))
    return len(parts) == 2 and parts[1] > parts[0] and sealed == 1


@pytest.mark.slow
def test_a_run_killed_in_its_second_round_ends_with_the_same_bytes_and_pays_nothing_twice(filled, demo, tmp_path):
    root = copy_corpus(demo.root, tmp_path / "workspace")
    settings = (f"corpus.world={demo.world}", *SETTINGS, *TARGETS, *WANTED)
    quiet = subprocess.DEVNULL
    child = subprocess.Popen(
        make_run(root, settings=settings), cwd=ROOT, env=make_environment(), stdout=quiet, stderr=quiet
    )
    deadline = time.monotonic() + 300.0
    while child.poll() is None and not find_second_round(root):
        assert time.monotonic() < deadline
        time.sleep(0.002)
    assert child.poll() is None, "the run was over before it was killed"
    child.kill()
    child.wait()
    killed = read_ledger(root)
    document = run_recipe(filled.config, root, "", ())
    assert digest_outputs(root) == digest_outputs(filled.root)
    assert [(row.stratum, row.accepted, row.drawn, row.state) for row in document.targets] == [
        (row.stratum, row.accepted, row.drawn, row.state) for row in filled.document.targets
    ]
    ledger = read_ledger(root)
    assert ledger.replies == read_ledger(filled.root).replies
    assert {key for key, count in ledger.asks.items() if count > 1} <= killed.in_flight


def decide(kept: int, drawn: int, *settings: str, spent: Usage | None = None):
    """Return what a second round draws where the first drew so many seeds and kept so many questions, and why not."""
    config = make_config(
        read_recipe("demo"), ["corpus.world=nowhere", "targets.rows.rl=20", "seeds.limit=0", *settings]
    )
    plan, aim = TargetPlan(config, {("rl",): 20}), Aim("rl")
    quotas = replace(plan.begin(), draws=((Draw(aim, drawn),),))
    counts = RoundCounts(Counter({aim: drawn}), Counter({("rl",): kept}), Counter(), spent or Usage())
    following = plan.draw_more(quotas, counts)
    return following and following.draws[1][0].seeds, plan.closed.get(("rl",), "")


SPENT = Usage(cost=4.0)


@pytest.mark.parametrize(
    ("kept", "drawn", "settings", "more", "why"),
    [
        (20, 60, (), None, ""),
        (10, 60, (), 66, ""),
        (1, 60, (), 180, ""),
        (0, 60, (), 60, ""),
        (0, 200, (), None, "none of 200 seeds led to a row"),
        (10, 60, ("targets.rounds=1",), None, "targets.rounds is reached"),
        (10, 60, ("budget.money=5",), 15, ""),
        (10, 60, ("seeds.limit=64",), 4, ""),
    ],
)
def test_a_round_draws_what_the_rounds_before_say_it_takes_within_the_budget(kept, drawn, settings, more, why):
    assert decide(kept, drawn, *settings, spent=SPENT) == (more, why)


STRATA = [("rl", domain) for domain in "abcdefghijkl"]


@pytest.mark.parametrize(
    ("settings", "seeds"),
    [
        ((), 12 * 256),
        (("budget.money=1",), 12 * 8),
        (("budget.gpu_hours=1",), 12 * 8),
        (("seeds.limit=10",), 10),
        (("seeds.limit=100",), 100),
    ],
)
def test_a_first_round_with_a_limit_finds_out_what_a_seed_takes_and_draws_all_that_the_limit_leaves(settings, seeds):
    given = ["corpus.world=nowhere", "targets.rows.rl=500", 'targets.by=["domain"]', "seeds.limit=0", *settings]
    config = make_config(read_recipe("demo"), given)
    draws = TargetPlan(config, dict.fromkeys(STRATA, 500)).begin().draws[0]
    assert sum(draw.seeds for draw in draws) == seeds


def test_a_target_of_injection_knows_no_lengths_and_every_type_of_answer():
    config = make_config(read_recipe("vsearcher"), ["corpus.world=nowhere", "seed=7"])
    assert config.method == "injection"
    assert config.target_values["answer_type"] == ("date", "number", "name", "string")
