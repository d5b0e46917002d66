""" """

from dataclasses import replace

import pytest

from pipelines.checks.answers import check_asked, check_form, check_kept, check_named, check_precision
from pipelines.checks.examination import examine
from pipelines.checks.proofs import find_problems
from pipelines.graph.answers import type_answer
from pipelines.graph.query import Indexes
from pipelines.toy.writer import list_frames
from schemas.proofs import Answer
from tests.pipelines.checks.claims import prove
from tests.pipelines.painters import build_painters
from tests.toy import build_toy_corpus


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


SAID = "the painter of the 1870s born in [subject]"


@pytest.fixture(scope="module")
def painters(tmp_path_factory):
    return Indexes(build_painters(tmp_path_factory.mktemp("painters")))


@pytest.fixture(scope="module")
def injected(painters):
    asking = "To which movement did this one belong"
    return prove(painters, ("Ostrel", "Ada Brill"), ("<birth_place",), "movement", (SAID,), asking)


@pytest.fixture(scope="module")
def dated(tmp_path_factory):
    """The year of a town, at the end of a path."""
    ground = Indexes(build_toy_corpus(tmp_path_factory.mktemp("toy")))
    titles, relations = ("Kelm Bridge", "Mira Tolland", "Ostrel"), ("architect", "birth_place")
    return ground, prove(ground, titles, relations, "established_date", ("the architect of [subject]", ""), "When")


@pytest.mark.parametrize(
    "asking",
    [
        "To which movement did this one belong",
        "Which MOVEMENTS claimed this one",
        "What school was this one of",
        "Find this one. Which movement is given for it?",
    ],
)
def test_a_word_of_the_key_or_a_cue_asks_for_the_attribute(painters, injected, asking):
    assert check_asked(painters, f"{asking}; {SAID}", injected.proof).passed


@pytest.mark.parametrize(
    "asking",
    [
        "Under which teacher did this one study",
        "Blah blah",
        "",
        "Find the movement of it. Under whom did this one study?",
    ],
)
def test_a_question_for_something_else_or_nothing_is_refused(painters, injected, asking):
    text = f"{SAID}; {asking}"
    result = check_asked(painters, text, injected.proof)
    assert (result.outcome, result.code) == ("UNKNOWN", "attribute-unasked")
    worse = replace(injected, text=text)
    assert "attribute-unasked" in [found.code for found in examine(painters, worse, 6, audit=True)]
    assert any("attribute-unasked" in problem for problem in find_problems(painters, worse))


def test_a_cue_inside_a_descriptor_or_a_reference_asks_for_nothing(painters, injected):
    said = "the painter of the same movement as [subject]"
    proof = injected.proof.model_copy(update={"descriptors": (said,)})
    assert not check_asked(painters, f"Who was {said.replace('[subject]', 'the town in the image')}?", proof).passed
    typed = injected.proof.model_copy(
        update={"nodes": tuple(node.model_copy(update={"type": "movement"}) for node in injected.proof.nodes)}
    )
    assert not check_asked(painters, "Where is the movement in the image, and that movement?", typed).passed


@pytest.mark.parametrize(
    ("asking", "asked"),
    [
        ("In what year was that town founded?", True), ("In what year was that town set up?", True),
        ("In which year did that town come into being?", True), ("How did that town come?", False),
        ("When was it?", False), ("In what year did that person die?", False),
    ],
)  # fmt: skip
def test_a_date_is_asked_for_by_what_happened_and_not_by_when_alone(dated, asking, asked):
    ground, claim = dated
    assert check_asked(ground, asking, claim.proof).passed is asked


BEFORE = "In what year did Edda Marn, a friend of Jon Vask, move to Ostrel for 3 years?"


@pytest.mark.parametrize(
    "text", ["Who met jon vask?", "Who met Jon Vaskov?", "Who met Jon  Vask?", "Who met Vask?", ""]
)
def test_a_name_in_any_other_form_is_lost(text):
    assert check_named(text, "Jon Vask").code == "descriptor-lost"


@pytest.mark.parametrize(
    "after",
    [
        BEFORE.replace("Edda Marn", "the painter born in Lumby"),
        "For 3 years a painter born in Lumby lived in OSTREL with Jon Vask; when did that begin?",
    ],
)
def test_names_and_numbers_that_stay_in_any_order_are_kept(after):
    assert check_kept(BEFORE, after, "Edda Marn").passed
