"""The form of an answer, and whether a question asks for as much."""

import pytest

from pipelines.checks.answers import check_form, check_kept, check_named, check_precision
from pipelines.graph.answers import type_answer
from pipelines.toy.writer import list_frames
from schemas.proofs import Answer


def typed(text, relation="label"):
    answer = type_answer(text, "", relation)
    assert answer is not None
    return answer


def say(surface):
    """An answer that somebody typed as it stands, whatever it is."""
    return Answer(
        type="string", value=surface, precision="", unit="", surface=surface, aliases=(), key=f"text:{surface}"
    )


@pytest.mark.parametrize(
    "text", ["granite", "Ana Kelm", "320 m", "-5 °C", "Bridge over the Kelm", "1.5 million", "44 BC"]
)
def test_a_single_certain_short_value_passes(text):
    assert check_form(text, typed(text), 6).passed


@pytest.mark.parametrize(
    "text",
    ["Ana Kelm, Bo Tarn", "Ana Kelm and Bo Tarn", "Ana Kelm; Bo Tarn", "Ana Kelm\nBo Tarn", "1931\u20131934",
     "about 1931", "c. 1931", "1931 or 1932", "Ana Kelm (disputed)?", "various", "unknown", "It was built by Ana Kelm.",
     "over 300 m", "https://kelm.example.org", "1930s", "[[Kelm]]", "n/a", "", "—", "between 3 and 5 km", "3-5 km"],
)  # fmt: skip
def test_lists_hedges_sentences_ranges_addresses_and_hollow_values_fail(text):
    result = check_form(text, say(text), 6)
    assert (result.outcome, result.code) == ("FAIL", "answer-form")


@pytest.mark.parametrize("value", ["5 April 1931", "April 1931", "1931"])
@pytest.mark.parametrize("key", ["open", "birth_date", "established_date", "unheard_of_date", "date", "launched"])
@pytest.mark.parametrize("subject", ["bridge", "person", "battle"])
def test_every_frame_of_the_templates_asks_for_its_precision(value, key, subject):
    answer = typed(value, "opened")
    for other in ("5 April 1931", "April 1931", "1931"):
        for frame in list_frames(key, typed(other, "opened"), subject):
            question = frame.replace("{s}", "the tower in the image")
            assert check_precision(question, answer).passed == (other == value), question


@pytest.mark.parametrize(
    ("question", "value", "passed"),
    [
        ("What is the length of the bridge?", "320", False),
        ("How tall is the tower?", "320", False),
        ("What is the length of the bridge, in metres?", "320", True),
        ("What is the length of the bridge?", "320 m", True),
        ("How many people live in the metropolitan area?", "320", True),
        ("What is the area code of the town?", "320", True),
        ("What material is the bridge made of?", "granite", True),
    ],
)
def test_a_measure_needs_a_unit_in_answer_or_question(question, value, passed):
    assert check_precision(question, typed(value)).passed == passed


BEFORE = "In what year did Edda Marn, a friend of Jon Vask, move to Ostrel for 3 years?"


@pytest.mark.parametrize(
    "after",
    [
        BEFORE.replace("Edda Marn", "the painter born in Lumby"),
        "For 3 years a painter born in Lumby lived in OSTREL with Jon Vask; when did that begin?",
    ],
)
def test_names_and_numbers_that_stay_in_any_order_are_kept(after):
    assert check_kept(BEFORE, after, "Edda Marn").passed


def test_a_name_may_stand_without_the_bracket_that_tells_articles_apart_and_without_nothing_else():
    assert check_named("Who saw Mercury first?", "Mercury (planet)").passed
    assert check_named("Who saw Mercury (planet) first?", "Mercury (planet)").passed
    for text in ("Who saw mercury first?", "Who saw the planet first?", "Who saw Mercuryville first?"):
        assert check_named(text, "Mercury (planet)").code == "descriptor-lost"
    assert check_named("Who saw it?", "(planet)").code == "descriptor-lost"
    assert check_named("Who was born in Springfield?", "Springfield, Ohio").code == "descriptor-lost"
    for written in ("Mercury (planet)", "Mercury"):
        assert check_kept(f"Is {written} near Venus?", "Is the first near Venus?", "Mercury (planet)").passed
