"""What the words of questions tell of their answers, on planted releases and on clean ones."""

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.config.settings import ReleasesConfig
from pipelines.errors import GateNotMet
from pipelines.release.guessing import Asked, check_guessability, measure_guessability
from pipelines.release.wording import Worded, draw_folds, read_size
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
        words = Worded(
            text, "opened" if dated else "colour", key, answer if dated else "", (f"a{number}", f"b{number}")
        )
        rows.append(Asked("train", words.relation, key, "Thing, string", words, None))
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
    rows = [
        Asked("train", "name", f"text:{n // 2}", "Thing, name",
              Worded(f"Who made the q{n // 2} thing?", "name", f"text:{n // 2}", "", (f"a{n}", f"node{n // 2}")), None)
        for n in range(80)
    ]  # fmt: skip
    assert measure_guessability(rows, PLENTY)["words alone"]["share"] == 0.0


@given(st.lists(st.tuples(st.sampled_from("abcdefgh"), st.sampled_from(["", *"stuvwxyz"])), max_size=40))
def test_no_two_folds_share_an_entity(groups):
    folds = draw_folds(groups)
    where = {}
    for names, fold in zip(groups, folds, strict=True):
        for name in filter(None, names):
            assert where.setdefault(name, fold) == fold
    assert len(folds) == len(groups)


@pytest.mark.parametrize(
    ("type", "value", "size"),
    [("date", "1924-09-20", "century 19"), ("number", "1513", "magnitude 3"), ("number", "0", "zero"),
     ("number", "0.05", "magnitude -2"), ("name", "Ada", "")],
)  # fmt: skip
def test_a_value_has_a_century_or_a_magnitude(type, value, size):
    precision = "day" if type == "date" else ""
    answer = Answer(type=type, value=value, precision=precision, unit="", surface=value, aliases=(), key=value)
    assert read_size(answer) == size
