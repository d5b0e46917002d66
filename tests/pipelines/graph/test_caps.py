from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from pipelines.graph.caps import Ration, find_capped, list_marks
from schemas.datasets import Path
from schemas.proofs import Evidence, PathNode

EVIDENCE = Evidence(page_id=1, title="A", revision=1, kind="infobox", key="k", start=0, end=1, text="x", link_start=-1)


def make_path(number, end, relation, answer):
    nodes = tuple(PathNode(page_id=place, title=title, role="answer", type="town", in_degree=0)
                  for place, title in enumerate(("A", end)))  # fmt: skip
    return Path(
        record_id=f"path-{number}", parent_id="seed", split="sft", domain="Location", image="", nodes=nodes, hops=(),
        answer_relation=relation, answer_text=answer, answer_iso="", answer_evidence=EVIDENCE, walks=1,
    )  # fmt: skip


ENDS, RELATIONS, ANSWERS = "BCDE", ["mayor", "founder1", "founder2"], ["X Y", "12", "Z"]
ROWS = st.tuples(st.sampled_from(ENDS), st.sampled_from(RELATIONS), st.sampled_from(ANSWERS))
PATHS = st.lists(ROWS, max_size=60).map(lambda rows: [make_path(number, *row) for number, row in enumerate(rows)])


@given(PATHS, st.sampled_from([0.03, 0.2, 0.5]), st.sampled_from([0.2, 0.6]))
def test_no_fact_answer_or_relation_is_over_its_cap_and_nothing_is_refused_below_one(paths, answers, relations):
    refused = find_capped(paths, answers, relations)
    kept = [path for path in paths if path.record_id not in refused]
    most = max(Counter(path.answer_text for path in kept).values(), default=0)
    assert most <= max(2, -(-len(paths) * answers // 1))
    asked = Counter(path.answer_relation.rstrip("12") for path in kept)
    assert max(asked.values(), default=0) <= max(2, -(-len(paths) * relations // 1))
    assert refused == find_capped(paths[::-1], answers, relations)
    for path in paths:
        if path.record_id in refused:
            others = [each for each in kept if each.answer_text == path.answer_text or
                      each.answer_relation.rstrip("12") == path.answer_relation.rstrip("12")]  # fmt: skip
            assert len(others) >= 2


@given(PATHS, st.sampled_from([0.2, 0.34, 0.5]))
def test_guessing_the_commonest_answer_of_a_relation_is_right_in_no_more_than_its_share(paths, share):
    refused = find_capped(paths, 1.0, 1.0, share)
    kept = [path for path in paths if path.record_id not in refused]
    for relation in ("mayor", "founder"):
        answers = Counter(path.answer_text for path in kept if path.answer_relation.rstrip("12") == relation)
        assert max(answers.values(), default=0) <= max(1, share * answers.total())
    assert {path.answer_text for path in kept} == {path.answer_text for path in paths}


def test_an_answer_over_its_share_is_kept_where_others_make_room_for_it():
    paths = [make_path(n, f"T{n}", "mayor", f"Otto L{chr(97 + n)}") for n in range(8)]
    twice = [make_path(8 + n, f"U{n}", "mayor", "Ida Holm") for n in range(2)]
    assert find_capped([*twice, *paths], 1.0, 1.0, 0.2) == {}


@given(st.integers(1, 9), st.integers(1, 12), st.integers(0, 9))
def test_the_shards_of_a_round_share_out_what_earlier_rounds_left_of_an_answer(most, shards, used):
    left, allowed, names = max(most - used, 0), 0, 60
    for name in range(names):
        marks = list_marks(f"text:{name}", name, "mouth")
        before = {("rl", mark): used for mark in marks[:2]}
        for shard in range(shards):
            ration = Ration(most, 1.0, before, {"rl": 1 / shards}, f"shard {shard}")
            asked = 0
            while ration.allows("rl", marks):
                ration.add("rl", marks)
                asked += 1
            assert asked <= left // shards + 1
            allowed += asked
    assert allowed <= names * left * 1.5
    assert allowed or not left


def test_an_answer_of_a_relation_is_asked_for_as_often_as_its_share_of_earlier_rounds_leaves():
    marks = list_marks("text:the sea", 5, "mouth1")
    _, _, relation, guess = (("rl", mark) for mark in marks)
    for used, free in (({}, 1), ({relation: 40, guess: 2}, 2), ({relation: 9, guess: 1}, 0)):
        ration = Ration(100, 0.1, used, {"rl": 1.0}, "shard")
        for _ in range(free):
            assert ration.allows("rl", marks)
            ration.add("rl", marks)
        assert not ration.allows("rl", marks)
