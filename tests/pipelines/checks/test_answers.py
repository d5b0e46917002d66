import pytest

from pipelines.checks.answers import check_form, check_precision
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


@pytest.mark.parametrize(
    ("text", "change"),
    [
        ("320 m", {"unit": "", "surface": "320"}),
        ("320 m", {"value": "321"}),
        ("5 April 1931", {"value": "1931-04-06"}),
        ("granite", {"surface": "marble"}),
    ],
)
def test_an_answer_that_is_not_what_the_page_says_fails(text, change):
    relation = "opened" if text[-4:].isdigit() else "label"
    assert check_form(text, typed(text, relation).model_copy(update=change), 6).code == "answer-form"


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
    ("question", "passing"),
    [
        ("When was the bridge opened?", "5 April 1931"),
        ("In which decade was the bridge opened?", None),
        ("How old is the bridge?", None),
        ("What is the length of the bridge?", None),
    ],
)
def test_other_ways_to_ask_fit_one_precision_or_none(question, passing):
    for value in ("5 April 1931", "April 1931", "1931"):
        result = check_precision(question, typed(value, "opened"))
        assert result.passed == (value == passing)
        assert result.passed or result.code == "precision-unasked"


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
