from hypothesis import given
from hypothesis import strategies as st

from pipelines.graph.caps import Ration, list_marks


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
