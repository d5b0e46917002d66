"""Near duplicates among questions: what is refused is near and about one thing, whatever the order of rows."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.checks.limits import Limits, refuse_across_splits, refuse_over_limits
from pipelines.checks.near import Sketches, find_alike, shingle_text
from pipelines.checks.repeats import count_near, refuse_near, refuse_near_across
from pipelines.checks.sets import make_signature
from pipelines.config.settings import ReleasesConfig
from tests.pipelines.release.builders import make_question

LONG = "In which year was the town founded that is the birthplace of the architect who designed the bridge in the image"
LIKE = LONG.replace("designed", "planned") + "?"
((_, _, ALIKE),) = find_alike(*(Sketches([shingle_text(text)], 0.1) for text in (LONG, LIKE)))
PLAIN = make_signature(make_question(0, None))
USUAL = ReleasesConfig()


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
def test_near_words_about_one_fact_or_picture_are_refused_and_the_first_is_kept(shared):
    pictured = {name: value for name, value in shared.items() if name not in ("final", "hops")}
    rows = [sign(1, **pictured), sign(2, LIKE, **shared)]
    assert ALIKE > 0.6
    assert name_refused(refuse_near(rows, ReleasesConfig(near_text=ALIKE))) == ["question-0002"]
    assert name_refused(refuse_near(rows[::-1], ReleasesConfig(near_text=ALIKE))) == ["question-0001"]
    assert refuse_near(rows, ReleasesConfig(near_text=ALIKE + 0.01)) == {}


def test_one_template_about_other_things_is_no_duplicate():
    rows = [sign(number) for number in range(50)]
    assert refuse_near(rows, USUAL) == refuse_near_across(rows, USUAL) == {}


def test_two_proved_facts_with_one_answer_are_two_questions():
    assert refuse_near([sign(1), sign(2, answer_key="year:1")], USUAL) == {}


def test_questions_that_nothing_proves_are_compared_by_words_and_answer():
    rows = [pool(1, LONG, "paris"), pool(2, LONG, "paris"), pool(3, LONG, "rome"), pool(4, "Who is it?", "paris")]
    assert name_refused(refuse_near(rows, USUAL)) == ["question-0002"]
    assert name_refused(refuse_near([pool(1, LONG, "paris"), sign(2, answer_key="paris")], USUAL)) == ["question-0002"]


def test_a_path_that_is_mostly_another_is_refused_in_other_words():
    tail = ("x river y", "y mouth z")
    rows = [
        sign(1, "Which lake?", hops=("1 birth place x", *tail), final="z depth"),
        sign(2, "How deep?", hops=("2 hq x", *tail), final="z depth"),
        sign(3, "What else?", hops=("3 hq x", *tail), final="z area"),
    ]
    refused = refuse_near(rows, USUAL)
    assert name_refused(refused) == ["question-0002"]
    assert refused["question-0002"].detail == "0.60 of the facts of its path as question-0001"


def test_across_splits_less_is_enough_and_evaluation_keeps_its_own():
    entities = ("bridge 1", "architect 9", "town 1")
    train, held_out = sign(1, LIKE), sign(2, split="eval", entities=entities)
    assert refuse_near([train, held_out], USUAL) == {}
    assert refuse_near_across([train, replace(held_out, entities=("elsewhere",))], USUAL) == {}
    refused = refuse_near_across([train, held_out], USUAL)
    assert name_refused(refused) == ["question-0001"]
    assert refused["question-0001"].detail.endswith("the same entity bridge 1 as question-0002 in eval")


def test_reinforcement_gives_way_to_imitation_for_half_a_path():
    rows = [sign(1, "Where?", split="rl", hops=("1 a x", "x b y")), sign(2, "When?", hops=("2 a x", "x b y"))]
    assert refuse_near_across(rows, ReleasesConfig(near_path_across=0.21)) == {}
    assert name_refused(refuse_near_across(rows, ReleasesConfig(near_path_across=0.2))) == ["question-0001"]


def test_every_repeat_of_many_questions_for_evaluation_is_refused_in_training():
    shared = ("bridge 1",)
    held_out = [sign(n, f"who made {n}", split="eval", entities=shared) for n in range(400)]
    train = [
        replace(sign(1000 + n, split="rl", entities=shared), shingles=held_out[n].shingles) for n in range(390, 400)
    ]
    assert len(refuse_near_across([*held_out, *train], ReleasesConfig(near_path_across=1.0))) == 10


def test_of_hundreds_of_equal_questions_with_pictures_of_their_own_the_first_is_kept():
    rows = [pool(number, "Is there a dog?", "yes", sha256=f"{number:064x}") for number in range(600)]
    assert name_refused(refuse_near(rows, USUAL)) == [each.record_id for each in rows[1:]]


ROWS = st.lists(
    st.builds(
        lambda words, split, fact, answer, hops, proved: {
            "text": " ".join(words),
            "split": split,
            "final": f"t{fact} founded" if proved else "",
            "answer_key": answer,
            "hops": tuple(hops) if proved else (),
        },
        st.lists(st.sampled_from("abc"), min_size=1, max_size=8),
        st.sampled_from(["sft", "rl", "eval"]),
        st.integers(0, 2),
        st.sampled_from(["x", "y"]),
        st.lists(st.sampled_from(["h1", "h2", "h3"]), unique=True, max_size=3).map(sorted),
        st.booleans(),
    ),
    max_size=12,
)


@given(ROWS, st.randoms(use_true_random=False))
def test_of_near_questions_the_first_is_kept_whatever_the_order_of_splits(rows, draw):
    signatures = [sign(number, entities=(), **row) for number, row in enumerate(rows)]
    parts = [[each for each in signatures if each.split == split] for split in ("eval", "sft", "rl")]
    shuffled = [each for part in draw.sample(parts, 3) for each in part]
    for refuse in (refuse_near, refuse_near_across):
        assert refuse(shuffled, USUAL) == refuse(signatures, USUAL)


@given(ROWS)
def test_only_what_is_near_another_kept_one_is_refused_and_the_kept_ones_have_none(rows):
    signatures = {each.record_id: each for each in (sign(n, entities=(), **row) for n, row in enumerate(rows))}
    refused = refuse_near(signatures.values(), USUAL)
    for rejection in refused.values():
        kept = signatures[(rejection.detail or "").rpartition(" ")[2]]
        own = signatures[rejection.record_id]
        assert kept.record_id not in refused
        assert kept.record_id < own.record_id
        assert kept.split == own.split
        facts = [{*each.hops, each.final} for each in (own, kept)]
        runs = [{each.shingles[at : at + 8] for at in range(0, len(each.shingles), 8)} for each in (own, kept)]
        words = len(runs[0] & runs[1]) >= USUAL.near_text * len(runs[0] | runs[1]) and (
            own.final == kept.final or set(own.hops) & set(kept.hops) or own.answer_key == kept.answer_key
        )
        assert words or len(facts[0] & facts[1]) >= USUAL.near_path * len(facts[0] | facts[1])
    left = [each for each in signatures.values() if each.record_id not in refused]
    assert refuse_near(left, USUAL) == {}


@given(ROWS)
def test_no_final_fact_is_in_two_splits_and_none_is_asked_for_too_often(rows):
    # What proves a question names the entity of its final fact, which no two splits share.
    signatures = [
        sign(number, answer_node=int(row["final"][1]) if row["final"] else -1, **row) for number, row in enumerate(rows)
    ]
    limits = Limits(ReleasesConfig(max_per_fact=1, max_skeleton_share=1.0))
    refused = refuse_across_splits(signatures, limits, None)
    kept = [each for each in signatures if each.record_id not in refused]
    refused |= refuse_over_limits(kept, (), limits)
    facts = [each.final for each in signatures if each.record_id not in refused and each.final]
    assert len(facts) == len(set(facts))


def test_reports_say_how_many_are_near_by_measure_and_threshold():
    rows = [sign(1), sign(2, final="t1 founded"), sign(3, split="eval", entities=("bridge 1",)), pool(4, LONG, "x")]
    assert count_near(rows, USUAL) == {
        "words 0.8 alike, one split": 1,
        "path 0.6 alike, one split": 0,
        "words 0.6 alike, two splits": 1,
        "path 0.3 alike, two splits": 0,
        "final fact of another row": 2,
    }
    kept = [rows[0], *rows[2:]]
    kept = [each for each in kept if each.record_id not in refuse_near_across(kept, USUAL)]
    assert set(count_near(kept, USUAL).values()) == {0}
