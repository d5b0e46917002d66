import asyncio
from dataclasses import replace

import pytest

from pipelines.stages.paths import Paths
from schemas.base import Rejection
from schemas.paths import Path
from schemas.proofs import Evidence
from schemas.seeds import Seed


@pytest.fixture(scope="module")
def stage(assembly) -> Paths:
    return assembly.build_stage("paths")


@pytest.fixture(scope="module")
def paths(demo) -> list[Path]:
    return demo.rows("paths", Path)


def test_the_stage_makes_the_same_paths_again(demo, stage):
    by_seed = {}
    for path in demo.rows("paths", Path):
        by_seed.setdefault(path.parent_id, []).append(path)
    for seed in demo.rows("seeds", Seed)[:40]:
        again = asyncio.run(stage(seed))
        assert isinstance(again, Rejection) or list(again) == by_seed[seed.record_id]


def test_one_seed_has_distinct_paths_and_not_more_than_asked_for(paths):
    by_seed = {}
    for path in paths:
        by_seed.setdefault(path.parent_id, set()).add(path.record_id)
    assert max(map(len, by_seed.values())) == 2
    assert sum(map(len, by_seed.values())) == len(paths)


def test_roles_run_from_anchor_over_bridges_to_answer(paths):
    for path in paths:
        roles = [node.role for node in path.nodes]
        assert roles == ["anchor", *["bridge"] * (len(path.hops) - 1), "answer"]
        assert 2 <= len(path.hops) <= 4
        assert 1 <= path.walks <= 10


def test_hops_join_one_node_to_the_next(paths):
    for path in paths:
        for hop, source, target in zip(path.hops, path.nodes, path.nodes[1:], strict=False):
            assert (hop.subject_id, hop.object_id) == (source.page_id, target.page_id)
            assert (hop.relation == "mentions") == (hop.clause != "") == (hop.evidence.kind == "sentence")


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
        assert path.answer_evidence.link_start == -1


def test_no_sentence_shows_the_name_of_a_node(paths):
    clauses = [(path, hop.clause) for path in paths for hop in path.hops if hop.clause]
    assert len(clauses) > 10
    for path, clause in clauses:
        assert clause.count("____") == 1
        assert all(node.title not in clause for node in path.nodes)


def test_a_seed_without_an_answer_in_reach_says_so(demo, stage):
    seed = demo.rows("seeds", Seed)[0]
    gone = asyncio.run(stage(seed.model_copy(update={"title": "Nowhere"})))
    assert (gone.record_id, gone.reason) == (seed.record_id, "no-answer-in-reach")


def test_a_seed_whose_walks_all_end_early_says_so(demo, stage):
    class DeadEnd:
        corpus, rules = stage.graph.corpus, stage.graph.rules

        def lengths_from(self, node, split):
            return [(2, 1.0)]

        def try_walk(self, node, split, length, rng):
            return None

    refused = asyncio.run(replace(stage, graph=DeadEnd())(demo.rows("seeds", Seed)[0]))
    assert (refused.reason, refused.detail) == ("no-walk", "10 walks, none whole")


def test_the_fingerprint_covers_rules_walks_and_seed(stage):
    others = [replace(stage, walks=9), replace(stage, per_seed=9), replace(stage, seed=9)]
    assert len({other.fingerprint() for other in [stage, *others]}) == 4
