"""What walks ask for: wanted shares of types, relations alike, and shares that no path exceeds."""

from collections import Counter
from math import ceil

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.corpus.store import Fact
from pipelines.graph.answers import type_answer
from pipelines.graph.caps import LEAST, LEAST_ALIKE, Balance, Tally
from pipelines.graph.facts import Attribute


def make_attribute(node, key, text):
    fact = Fact(node, key, 0, 1, 0, 1, text, "", 0, 1, -1, -1)
    return Attribute(fact, type_answer(text, "", key))


END = (
    make_attribute(1, "length", "320 m"), make_attribute(1, "height", "90 m"),
    make_attribute(1, "opened", "5 May 1931"), make_attribute(1, "architect", "Mira Tolland"),
)  # fmt: skip


def draw_first(balance, attributes, times=2000):
    drawn = (balance.order(attributes, number, lambda each: 1.0) for number in range(times))
    return Counter(order[0].fact.key for order in drawn if order)


def test_types_are_drawn_by_their_wanted_shares_and_relations_of_a_type_alike():
    balance = Balance.of({"name": 0.6, "date": 0.3, "number": 0.1}, {1: END})
    first = draw_first(balance, END)
    shares = {key: count / first.total() for key, count in first.items()}
    assert shares["architect"] == pytest.approx(0.6, abs=0.04)
    assert shares["opened"] == pytest.approx(0.3, abs=0.04)
    assert shares["length"] == pytest.approx(shares["height"], abs=0.03)


def test_a_relation_of_many_ends_is_drawn_as_often_as_a_rare_one():
    common = {node: (make_attribute(node, "length", f"{node} m"),) for node in range(2, 12)}
    balance = Balance.of({"number": 1.0}, {1: END, **common})
    first = draw_first(balance, END)
    assert first["height"] > 5 * first["length"]
    drawn = Counter(
        balance.order(ends, number, lambda each: 1.0)[0].fact.key
        for number in range(500)
        for ends in (END, *common.values())
    )
    assert set(drawn) == {"height", "length"}


ASKED = st.tuples(
    st.integers(0, 6), st.sampled_from(["length", "height", "span"]), st.sampled_from(["1 m", "2 m", "3 m"])
)


@given(st.lists(ASKED, max_size=80), *[st.sampled_from([0.05, 0.2, 0.5, 1.0])] * 3)
def test_no_share_is_exceeded_by_what_a_tally_lets_pass(rows, answers, relations, guesses):
    tally, kept = Tally(answers, relations, guesses), []
    for row in rows:
        attribute = make_attribute(*row)
        if not tally.find_over(attribute):
            tally.add(attribute)
            kept.append(row)
    count = len(kept)
    for place, share, least in (((0, 1), answers, LEAST), ((2,), answers, LEAST), ((1,), relations, LEAST_ALIKE)):
        most = max(Counter(tuple(row[at] for at in place) for row in kept).values(), default=0)
        assert most <= max(ceil(share * count), least)
    for relation, asked in Counter(row[1] for row in kept).items():
        most = max(Counter(row[2] for row in kept if row[1] == relation).values())
        assert most <= max(guesses * asked, 1)
    assert count >= min(len(rows), 1)
