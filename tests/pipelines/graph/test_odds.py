"""The odds of a guesser who does not see the picture, on the demo's questions."""

from collections import Counter
from dataclasses import replace

import pytest

from pipelines.graph.odds import count_odds, is_countable, read_gold_share
from pipelines.graph.proofs import make_query
from pipelines.graph.query import answer_query
from schemas.datasets import Grounding


@pytest.fixture(scope="module")
def rows(demo):
    return demo.rows("groundings", Grounding)


def ask_every_anchor(demo_corpus, demo_ground, query, kind):
    """Ask the question of every article of the type, one by one, as the question is asked of its own anchor."""
    answers = Counter()
    for node in demo_corpus.article_nodes():
        if demo_corpus.page(node).type == kind:
            found = answer_query(demo_ground, replace(query, anchor=node))
            answers.update(list(found) if len(found) == 1 else [])
    return answers


def test_the_gold_share_is_what_asking_every_anchor_of_the_type_gives(rows, demo_corpus, demo_ground):
    for row in rows[:12]:
        query, kind = make_query(demo_corpus, row.proof), row.proof.nodes[0].type
        answers = ask_every_anchor(demo_corpus, demo_ground, query, kind)
        odds = count_odds(demo_ground, query, kind, row.answer.key, 5)
        assert (odds.anchors, odds.answers, odds.gold) == (answers.total(), len(answers), answers[row.answer.key])
        assert odds.share == read_gold_share(row.proof) == pytest.approx(odds.gold / odds.anchors)
        assert not odds.capped


def test_of_a_large_type_a_sample_is_tried_and_more_only_for_as_many_answers_as_are_demanded(
    rows, demo_corpus, demo_ground
):
    row = max(rows, key=lambda row: next(count.value for count in row.proof.counts if count.name == "answers"))
    query, kind = make_query(demo_corpus, row.proof), row.proof.nodes[0].type
    whole = count_odds(demo_ground, query, kind, row.answer.key, 5)
    few = count_odds(demo_ground, query, kind, row.answer.key, 1, sampled=4)
    more = count_odds(demo_ground, query, kind, row.answer.key, 3, sampled=1)
    assert few.capped
    assert few.anchors < whole.anchors
    assert (more.answers, more.capped) == (3, True)


def test_a_step_that_is_quoted_from_one_page_is_not_counted_and_its_share_is_not_known(rows, demo_corpus, demo_ground):
    row = rows[0]
    hop = row.proof.hops[0].model_copy(update={"relation": "mentions", "clause": "It leads to ____."})
    quoted = row.proof.model_copy(update={"hops": (hop, *row.proof.hops[1:])})
    assert not is_countable(make_query(demo_corpus, quoted))
    counts = tuple(count for count in row.proof.counts if count.name != "gold")
    assert read_gold_share(row.proof.model_copy(update={"counts": counts})) is None
    assert is_countable(make_query(demo_corpus, row.proof))


def test_where_no_anchor_has_an_answer_nothing_is_taken_for_good(rows, demo_corpus, demo_ground):
    query = make_query(demo_corpus, rows[0].proof)
    assert count_odds(demo_ground, query, "no such type", rows[0].answer.key, 5).share == 1.0
