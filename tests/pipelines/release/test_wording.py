"""What the words of questions tell of their answers, on planted releases and on clean ones."""

from dataclasses import replace
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.config.settings import ReleasesConfig
from pipelines.errors import GateNotMet
from pipelines.release import guessing
from pipelines.release.guessing import Guessed, check_guessability, measure_guessability
from pipelines.release.wording import QuestionWords, draw_folds

COLOURS = {"violet": "hue", "red": "shade", "blue": "tint", "green": "tone"}


@pytest.fixture(autouse=True)
def plenty(monkeypatch):
    for name, most in {"COMMONEST": 1.0, "ONE_ANSWER": 1.0, "WORDING": 0.5}.items():
        monkeypatch.setattr(guessing, name, most)


def make_release(rng, told, count=120):
    """Return questions for colours, whose words follow the answer as often as is told."""
    rows = []
    for number in range(count):
        answer = rng.choice(sorted(COLOURS))
        word = COLOURS[answer] if rng.random() < told else rng.choice(sorted(COLOURS.values()))
        aside = " ".join(f"w{rng.randrange(60)}" for _ in range(12))
        text = f"What {word} has the {aside} of the thing in the image?"
        words = QuestionWords(text, f"text:{answer}", (f"a{number}", f"b{number}"))
        rows.append(Guessed("train", "colour", words.answer, "Thing, string", words, None))
    return rows


def test_words_that_tell_an_answer_are_caught_by_their_gate():
    table = measure_guessability(make_release(Random(7), told=1.0), ReleasesConfig())
    assert table["words alone"]["verdict"] == "not met"
    with pytest.raises(GateNotMet, match="words alone: "):
        check_guessability(table)


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
        words = QuestionWords(f"What has tell{answer} of the w{number % 7} thing?", f"a{answer}", groups)
        rows.append(Guessed("train", "r", words.answer, "Thing, name", words, None))
    return rows


def test_what_cannot_be_cut_into_folds_is_not_measured_and_never_met():
    rows = make_tangle(anchors=1, nodes=1)
    rows = [replace(row, words=replace(row.words, groups=("anchor", "node"))) for row in rows]
    table = measure_guessability(rows, ReleasesConfig())
    assert {row["verdict"] for name, row in table.items() if "words" in name} == {"not measured"}
