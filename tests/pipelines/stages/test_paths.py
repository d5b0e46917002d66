import asyncio
from dataclasses import replace

import pytest

from pipelines.checks.examination import PathDemands
from pipelines.config.settings import PathsConfig
from pipelines.graph.facts import RelationIndex
from pipelines.graph.query import Indexes
from pipelines.graph.walks import WalkGraph, WalkRules
from pipelines.splits import SplitRule
from pipelines.stages.paths import Paths
from schemas.base import Rejection
from schemas.datasets import Path, Seed
from schemas.proofs import UNCOUNTED, Evidence
from tests.toy import box, build_toy_corpus


@pytest.fixture(scope="module")
def stage(assembly) -> Paths:
    return assembly.build_stage("paths")


@pytest.fixture(scope="module")
def paths(demo) -> list[Path]:
    return demo.rows("paths", Path)


def test_evidence_is_cut_from_the_page_and_its_revision(demo_corpus, paths):
    def check(evidence: Evidence):
        node = demo_corpus.find(evidence.title)
        assert demo_corpus.page(node).revision == evidence.revision
        assert demo_corpus.text(node)[evidence.start : evidence.end] == evidence.text
        if evidence.link_start >= 0:
            assert demo_corpus.text(node)[evidence.link_start :].startswith("[[")
            assert evidence.start <= evidence.link_start < evidence.end

    for path in paths:
        for hop in path.hops:
            check(hop.evidence)
        check(path.answer_evidence)
        assert (path.answer_evidence.link_start >= 0) == ("[[" in path.answer_evidence.text)


@pytest.fixture(scope="module")
def free(stage) -> Paths:
    """The stage without demands: a path over a sentence fits one picture, so that none of them would be kept."""
    return replace(stage, demands=None)


def test_a_seed_without_an_answer_in_reach_says_so(demo, stage):
    seed = demo.rows("seeds", Seed)[0]
    gone = asyncio.run(stage(seed.model_copy(update={"title": "Nowhere"})))
    assert (gone.record_id, gone.reason) == (seed.record_id, "no-answer-in-reach")


@pytest.fixture(scope="module")
def round_trip(tmp_path_factory) -> Paths:
    """Walks of two hops over a bridge and its architect, whose only relations lead to each other."""
    pages = {
        "Kelm Bridge": box(
            "bridge", "'''Kelm Bridge''' is a bridge.", "architect = [[Mira Tolland]]", "length = 320 m"
        ),
        "Mira Tolland": box("architect", "'''Mira Tolland''' was an architect.", "works = [[Kelm Bridge]]"),
    }
    corpus = build_toy_corpus(tmp_path_factory.mktemp("round"), pages, {})
    rules = WalkRules(PathsConfig(hops=(2,), weights=(1.0,)), 100, 6, SplitRule({"sft": 1.0}, seed=0))
    return Paths(WalkGraph(corpus, rules, RelationIndex(corpus)), seed=1, ground=Indexes(corpus))


def test_a_seed_whose_walks_all_end_early_says_what_refused_its_links(demo, round_trip):
    seed = demo.rows("seeds", Seed)[0].model_copy(update={"title": "Kelm Bridge", "split": "sft"})
    refused = asyncio.run(round_trip(seed))
    # Each walk looks at the one relation of the architect twice: as a draw, and when the page is looked through.
    assert refused.reason == "no-walk"
    assert refused.detail == "10 walks, none to be asked about; refused: cycle 20, dead-end 10"


def test_walks_drawn_for_a_shard_are_those_drawn_for_one_seed(demo, stage):
    seeds = demo.rows("seeds", Seed)[:60]
    seeds.append(seeds[0].model_copy(update={"title": "Nowhere", "record_id": "seed-nowhere"}))

    def draw_shards(*shards):
        drawn = {}
        for shard in shards:
            prepared = replace(stage)
            prepared.prepare(shard)
            # What was drawn of a batch is a row of the batch's table: the walks read from it are compared.
            drawn |= {order: (stage.graph.read_walk(each), each.refused) for order, each in prepared.drawn.items()}
        return drawn

    alone = draw_shards(*([seed] for seed in seeds))
    assert len(alone) > len(seeds)
    assert draw_shards(seeds) == alone
    assert draw_shards(seeds[:7], seeds[7:30], seeds[30:]) == alone


def change_settings(stage, **changes) -> Paths:
    rules = replace(stage.graph.rules, settings=stage.settings.model_copy(update=changes))
    return replace(stage, graph=WalkGraph(stage.graph.corpus, rules, stage.graph.relations))


def test_the_fingerprint_covers_rules_walks_and_seed(stage):
    changes = ({"hops": (2,), "weights": (1.0,)}, {"walks": 9})
    others = [*(change_settings(stage, **change) for change in changes), replace(stage, seed=9)]
    assert len({other.fingerprint() for other in [stage, *others]}) == 4


@pytest.fixture(scope="module")
def beside(tmp_path_factory) -> Paths:
    """A bridge whose own page says when its architect, a hop away, was born."""
    pages = {
        "Kelm Bridge": box(
            "bridge",
            "'''Kelm Bridge''' is a bridge. Its architect was born on 2 April 1880.",
            "architect = [[Mira Tolland]]",
        ),
        "Mira Tolland": box("architect", "'''Mira Tolland''' was an architect.", "birth_place = [[Ostrel]]"),
        "Ostrel": box("town", "'''Ostrel''' is a town.", "established_date = 2 April 1880"),
    }
    corpus = build_toy_corpus(tmp_path_factory.mktemp("beside"), pages, {})
    splits = SplitRule({"sft": 1.0}, seed=0)
    rules = WalkRules(PathsConfig(hops=(2,), weights=(1.0,)), 100, 6, splits)
    ground = Indexes(corpus)
    return Paths(WalkGraph(corpus, rules, ground.relations), seed=1, ground=ground)


@pytest.mark.parametrize("hub_in_degree", [100, None])
def test_a_walk_whose_answer_an_earlier_page_says_is_refused_before_a_word_is_written(demo, beside, hub_in_degree):
    seed = demo.rows("seeds", Seed)[0].model_copy(update={"title": "Kelm Bridge", "split": "sft"})
    limits = UNCOUNTED.model_copy(update={"agreement": "off", "answer_share": 1.0, "answers": 0})
    made = asyncio.run(replace(beside, demands=PathDemands(limits, 6, hub_in_degree))(seed))
    if hub_in_degree is None:
        assert not isinstance(made, Rejection)
        assert made[0].answer_text == "2 April 1880"
    else:
        assert isinstance(made, Rejection)
        assert "answer-on-earlier-page 10" in made.detail


@pytest.mark.parametrize("hops", [(1,), (2,)])
@pytest.mark.parametrize(("bands", "kept"), [
    ({"bridge": (1, 1), "answer": (1, 1)}, True), ({"bridge": (2, 9)}, False), ({"answer": (2, 9)}, False),
    ({"answer": (0, 0)}, False),
])  # fmt: skip
def test_bridges_and_answers_pages_keep_to_their_in_degrees(demo, beside, bands, kept, hops):
    seed = demo.rows("seeds", Seed)[0].model_copy(update={"title": "Kelm Bridge", "split": "sft"})
    walking = change_settings(beside, in_degree=bands, hops=hops)
    made = asyncio.run(walking(seed))
    # The architect is a bridge on the longer way, and the page with the answer on the shorter one.
    assert isinstance(made, Rejection) != (kept or (hops == (1,) and "bridge" in bands))
