"""What the words of questions tell of their answers, on planted releases and on clean ones."""

from dataclasses import replace
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.config.settings import ReleasesConfig
from pipelines.errors import GateNotMet
from pipelines.release.guessing import Guessed, check_guessability, measure_guessability
from pipelines.release.wording import QuestionWords, draw_folds, read_size
from schemas.proofs import Answer

COLOURS = {"violet": "hue", "red": "shade", "blue": "tint", "green": "tone"}
CENTURIES = {"century 18": "set up", "century 19": "founded", "century 20": "opened"}
PLENTY = ReleasesConfig.model_validate({"gates": {"commonest": 1.0, "one_answer": 1.0, "wording": 0.5}})


def make_release(rng, told, count=120):
    """Return questions for colours and for dates, whose words follow the answer as often as is told."""
    rows = []
    for number in range(count):
        dated = number % 2
        answers = CENTURIES if dated else COLOURS
        answer = rng.choice(sorted(answers))
        word = answers[answer] if rng.random() < told else rng.choice(sorted(answers.values()))
        aside = " ".join(f"w{rng.randrange(60)}" for _ in range(12))
        text = f"What {word} has the {aside} of the thing in the image?"
        key = f"date:{number}" if dated else f"text:{answer}"
        words = QuestionWords(
            text, "opened" if dated else "colour", key, answer if dated else "", (f"a{number}", f"b{number}")
        )
        rows.append(Guessed("train", words.relation, key, "Thing, string", words, None))
    return rows


def test_words_that_tell_the_answer_or_its_century_are_caught():
    table = measure_guessability(make_release(Random(7), told=1.0), PLENTY)
    assert table["words alone, train"]["share"] == pytest.approx(0.5, abs=0.05)
    assert table["size by the words"]["share"] > 0.4
    assert table["size by the words"]["verdict"] == "not met"
    with pytest.raises(GateNotMet, match="size by the words"):
        check_guessability(table)


def test_words_that_tell_an_answer_are_caught_by_their_gate():
    rows = [row for row in make_release(Random(7), told=1.0) if row.relation == "colour"]
    table = measure_guessability(rows, PLENTY)
    assert table["words alone"]["verdict"] == "not met"
    with pytest.raises(GateNotMet, match="words alone: "):
        check_guessability(table)


@pytest.mark.parametrize("seed", range(8))
def test_words_that_tell_nothing_are_let_pass(seed):
    table = measure_guessability(make_release(Random(seed), told=0.0), PLENTY)
    assert {row["verdict"] for name, row in table.items() if "words" in name} == {"met"}
    check_guessability(table)


def test_what_one_entity_has_told_does_not_count():
    """Every answer is asked for twice, of one answer node and in the same words: the other folds know neither."""
    rows = []
    for number in range(80):
        half = number // 2
        text = f"Who made the q{half} thing?"
        words = QuestionWords(text, "name", f"text:{half}", "", (f"a{number}", f"node{half}"))
        rows.append(Guessed("train", "name", words.answer, "Thing, name", words, None))
    assert measure_guessability(rows, PLENTY)["words alone"]["share"] == 0.0


@given(st.lists(st.tuples(st.sampled_from("abcdefgh"), st.sampled_from(["", *"stuvwxyz"])), max_size=40))
def test_no_two_folds_share_an_answer_node_or_else_no_anchor_and_none_has_more_than_half(groups):
    folds = draw_folds(groups)
    assert len(folds) in (0, len(groups))
    assert all(2 * folds.count(fold) <= len(groups) for fold in folds)
    crossed = []
    for place in range(2):
        pairs = {(names[place], fold) for names, fold in zip(groups, folds, strict=False) if names[place]}
        crossed.append(len(pairs) > len({name for name, _ in pairs}))
    assert not all(crossed)


def make_tangle(anchors, nodes, count=120):
    """Return questions whose answers a word betrays, of anchors and answer nodes that are used again and again."""
    rng, rows = Random(1), []
    for number in range(count):
        answer = number % 5
        groups = (f"anchor{rng.randrange(anchors)}", f"node{answer}{rng.randrange(nodes)}")
        words = QuestionWords(f"What has tell{answer} of the w{number % 7} thing?", "r", f"a{answer}", "", groups)
        rows.append(Guessed("train", "r", words.answer, "Thing, name", words, None))
    return rows


def test_words_are_measured_where_all_questions_hang_together():
    row = measure_guessability(make_tangle(anchors=40, nodes=8), PLENTY)["words alone"]
    assert (row["questions"], row["share"], row["verdict"]) == (120, 1.0, "not met")


def test_what_cannot_be_cut_into_folds_is_not_measured_and_never_met():
    rows = make_tangle(anchors=1, nodes=1)
    rows = [replace(row, words=replace(row.words, groups=("anchor", "node"))) for row in rows]
    table = measure_guessability(rows, PLENTY)
    assert {row["verdict"] for name, row in table.items() if "words" in name} == {"not measured"}


@pytest.mark.parametrize(
    ("type", "value", "size"),
    [("date", "1924-09-20", "century 19"), ("number", "1513", "magnitude 3"), ("number", "0", "zero"),
     ("number", "0.05", "magnitude -2"), ("name", "Ada", "")],
)  # fmt: skip
def test_a_value_has_a_century_or_a_magnitude(type, value, size):
    precision = "day" if type == "date" else ""
    answer = Answer(type=type, value=value, precision=precision, unit="", surface=value, aliases=(), key=value)
    assert read_size(answer) == size
