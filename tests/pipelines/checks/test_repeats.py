"""Near duplicates among questions: what is refused is near and about one thing, whatever the order of rows."""

from dataclasses import replace

import pytest

from pipelines.checks import repeats
from pipelines.checks.near import Sketches, find_alike, shingle_text
from pipelines.checks.repeats import count_near, refuse_near, refuse_near_across
from pipelines.checks.sets import make_signature
from tests.pipelines.release.builders import make_question

LONG = "In which year was the town founded that is the birthplace of the architect who designed the bridge in the image"
LIKE = LONG.replace("designed", "planned") + "?"
((_, _, ALIKE),) = find_alike(*(Sketches([shingle_text(text)], 0.1) for text in (LONG, LIKE)))
PLAIN = make_signature(make_question(0, None))


def sign(number, text=LONG, **changes):
    """Return a question of a path of its own, but for what is given."""
    own = {
        "record_id": f"question-{number:04d}",
        "anchor": number,
        "answer_node": number,
        "answer_key": f"year:{number}",
        "hops": (f"{number} architect a{number}", f"a{number} birth place t{number}"),
        "edges": f"{number}",
        "final": f"t{number} founded",
        "entities": (f"bridge {number}", f"architect {number}", f"town {number}"),
        "skeleton": f"{number}",
        "shingles": shingle_text(text),
    }
    return replace(PLAIN, **(own | changes))


def pool(number, text, answer, **changes):
    """Return a question that nothing proves."""
    return sign(number, text, answer_key=answer, hops=(), final="", entities=(), edges="", **changes)


def name_refused(rejections):
    assert all(rejection.reason == "near-duplicate" for rejection in rejections.values())
    return sorted(rejections)


SHARED = [
    {"final": "t1 founded"},
    {"hops": ("2 architect a2", "a1 birth place t1")},
    {"sha256": "ab" * 32},
    {"phash": "00ff"},
    {"parts": ("cd" * 32,)},
]


@pytest.mark.parametrize("shared", SHARED, ids=lambda shared: next(iter(shared)))
def test_near_words_about_one_fact_or_picture_are_refused_and_the_first_is_kept(shared, monkeypatch):
    pictured = {name: value for name, value in shared.items() if name not in ("final", "hops")}
    rows = [sign(1, **pictured), sign(2, LIKE, **shared)]
    assert ALIKE > 0.6
    monkeypatch.setattr(repeats, "NEAR_TEXT", ALIKE)
    assert name_refused(refuse_near(rows)) == ["question-0002"]
    assert name_refused(refuse_near(rows[::-1])) == ["question-0001"]
    monkeypatch.setattr(repeats, "NEAR_TEXT", ALIKE + 0.01)
    assert refuse_near(rows) == {}


def test_two_proved_facts_with_one_answer_are_two_questions():
    assert refuse_near([sign(1), sign(2, answer_key="year:1")]) == {}


def test_a_path_that_is_mostly_another_is_refused_in_other_words():
    tail = ("x river y", "y mouth z")
    rows = [
        sign(1, "Which lake?", hops=("1 birth place x", *tail), final="z depth"),
        sign(2, "How deep?", hops=("2 hq x", *tail), final="z depth"),
        sign(3, "What else?", hops=("3 hq x", *tail), final="z area"),
    ]
    refused = refuse_near(rows)
    assert name_refused(refused) == ["question-0002"]
    assert refused["question-0002"].detail == "0.60 of the facts of its path as question-0001"


def test_across_splits_less_is_enough_and_evaluation_keeps_its_own():
    entities = ("bridge 1", "architect 9", "town 1")
    train, held_out = sign(1, LIKE), sign(2, split="eval", entities=entities)
    assert refuse_near([train, held_out]) == {}
    assert refuse_near_across([train, replace(held_out, entities=("elsewhere",))]) == {}
    refused = refuse_near_across([train, held_out])
    assert name_refused(refused) == ["question-0001"]
    assert refused["question-0001"].detail.endswith("the same entity bridge 1 as question-0002 in eval")


def test_reports_say_how_many_are_near_by_measure_and_threshold():
    rows = [sign(1), sign(2, final="t1 founded"), sign(3, split="eval", entities=("bridge 1",)), pool(4, LONG, "x")]
    assert count_near(rows) == {
        "words 0.8 alike, one split": 1,
        "path 0.6 alike, one split": 0,
        "words 0.6 alike, two splits": 1,
        "path 0.3 alike, two splits": 0,
        "final fact of another row": 2,
    }
    kept = [rows[0], *rows[2:]]
    kept = [each for each in kept if each.record_id not in refuse_near_across(kept)]
    assert set(count_near(kept).values()) == {0}
