"""What a card says of pictures: how they were chosen, how easily they are looked up, how they were degraded."""

from pipelines.release.quality import measure_enhancements, measure_grounding
from schemas.datasets import Depiction
from tests.pipelines.release.builders import make_degraded, make_question, make_trial


def make_depiction(**changes) -> Depiction:
    values = {
        "source": "infobox",
        "ranker": "metadata",
        "candidates": 3,
        "score": 0.8,
        "margin": None,
        "distractors": 0,
        "over_threshold": None,
        "articles": 1,
        "depicts": None,
        "engines": (),
        "text": (),
        "text_at_training": (),
        "ease": "easy",
        "ease_at_training": "",
    }
    return Depiction(**(values | changes))


def ask(number, **changes):
    return make_question(number, None, depiction=make_depiction(**changes))


def test_pictures_are_counted_by_how_they_were_chosen_and_looked_up():
    table = measure_grounding([ask(1), ask(2, source="page", ease="hard", depicts=True), make_question(3, None)])
    assert table["from: infobox"] == {"rows": 1, "share": 0.5}
    assert table["ranked by: metadata"] == {"rows": 2, "share": 1.0}
    assert (table["to look up: hard"]["rows"], table["to look up at training resolution: not searched"]["rows"]) == (
        1,
        2,
    )
    assert table["Commons says it depicts the anchor: not stated"]["rows"] == 1
    assert table["read by: nobody"]["rows"] == 2
    assert table["candidates a question"]["median"] == 3


def test_what_nobody_measured_has_no_row():
    assert "margin over the best distractor" not in measure_grounding([ask(1)])
    assert measure_grounding([])["candidates a question"] == {"n": 0}


def test_margins_and_the_published_threshold_are_those_of_the_pictures_an_encoder_judged():
    seen = {"ranker": "clip", "distractors": 20}
    questions = [
        ask(1, margin=0.1, over_threshold=True, **seen),
        ask(2, margin=0.3, over_threshold=False, **seen),
        ask(3),
    ]
    table = measure_grounding(questions)
    assert (table["margin over the best distractor"]["n"], table["margin over the best distractor"]["max"]) == (2, 0.3)
    assert table["over the absolute threshold"] == {"rows": 1, "share": 0.5}


def test_text_that_tells_nothing_is_counted_with_who_read_it():
    table = measure_grounding([ask(1, engines=("rapidocr", "layer"), text=("Open",)), ask(2, engines=("rapidocr",))])
    assert table["with text that tells nothing"] == {"rows": 1, "share": 0.5}
    assert table["read by: rapidocr and layer"]["rows"] == 1


def test_degraded_pictures_are_counted_and_their_strengths_described_however_many_there_are(tmp_path):
    strengths = [0.2 + number / 100 for number in range(30)]
    degraded = [make_degraded(tmp_path, n, trial=make_trial(strength=each)) for n, each in enumerate(strengths)]
    table = measure_enhancements([*degraded, *(make_question(100 + n, None) for n in range(30))])
    assert table["degraded"] == {"rows": 30, "share": 0.5}
    assert table["blur, sharpen, shown by image-search"] == {"rows": 30, "share": 0.5}
    assert (table["strength of blur"]["n"], table["strength of blur"]["min"]) == (30, 0.2)
    assert len(table) == 3


def test_a_release_without_degraded_pictures_says_so():
    assert measure_enhancements([make_question(1, None)]) == {"degraded": {"rows": 0, "share": 0.0}}
