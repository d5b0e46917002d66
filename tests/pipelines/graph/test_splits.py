from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.ids import SplitRule
from schemas.datasets import Difficulty, ReleaseEntry

RULE = SplitRule(0.6, 0.3, 0.1, seed=7)


@given(st.sampled_from(["entity", "answer"]), st.text())
def test_a_name_has_one_split_in_every_run(kind, name):
    assert RULE.place(kind, name) == SplitRule(0.6, 0.3, 0.1, seed=7).place(kind, name)


def test_the_shares_are_what_was_asked_for():
    counts = Counter(RULE.place("entity", f"name {number}") for number in range(5000))
    assert {split: round(count / 5000, 1) for split, count in counts.items()} == {"sft": 0.6, "rl": 0.3, "eval": 0.1}


@pytest.mark.parametrize(("shares", "split"), [((1, 0, 0), "sft"), ((0, 1, 0), "rl"), ((0, 0, 1), "eval")])
def test_a_share_of_one_takes_everything(shares, split):
    rule = SplitRule(*shares, seed=1)
    assert {rule.place("entity", str(number)) for number in range(200)} == {split}


def test_another_seed_and_another_kind_cut_otherwise():
    names = [f"name {number}" for number in range(200)]
    cuts = {
        tuple(rule.place(kind, name) for name in names)
        for kind in ("entity", "answer")
        for rule in (RULE, SplitRule(0.6, 0.3, 0.1, seed=8))
    }
    assert len(cuts) == 4


def test_no_anchor_answer_node_answer_or_picture_is_in_two_splits(demo):
    entries = {entry.parent_id for entry in demo.rows("releases", ReleaseEntry)}
    rows = [row for row in demo.rows("difficulty", Difficulty) if row.record_id in entries]
    assert {row.split for row in rows} == {"sft", "rl", "eval"}
    for read in (
        lambda row: row.proof.nodes[0].page_id,
        lambda row: row.proof.nodes[-1].page_id,
        lambda row: row.answer.key,
        lambda row: row.picture.sha256,
    ):
        places = {(read(row), row.split) for row in rows}
        assert len(places) == len({place for place, _ in places})


def test_an_anchor_of_one_split_is_never_the_answer_node_of_another(demo):
    rows = demo.rows("difficulty", Difficulty)
    ends = {(node.page_id, row.split) for row in rows for node in (row.proof.nodes[0], row.proof.nodes[-1])}
    assert len(ends) == len({page for page, _ in ends})
