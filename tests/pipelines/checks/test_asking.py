from dataclasses import replace

import pytest

from pipelines.checks.answers import check_asked
from pipelines.checks.examination import examine
from pipelines.checks.proofs import find_problems
from pipelines.graph.indexes import Ground
from tests.pipelines.checks.claims import prove
from tests.pipelines.painters import build_painters
from tests.toy import build_toy_corpus

SAID = "the painter of the 1870s born in [subject]"


@pytest.fixture(scope="module")
def painters(tmp_path_factory):
    return Ground(build_painters(tmp_path_factory.mktemp("painters")))


@pytest.fixture(scope="module")
def injected(painters):
    asking = "To which movement did this one belong"
    return prove(painters, ("Ostrel", "Ada Brill"), ("<birth_place",), "movement", (SAID,), asking)


@pytest.fixture(scope="module")
def dated(tmp_path_factory):
    """The year of a town, at the end of a path."""
    ground = Ground(build_toy_corpus(tmp_path_factory.mktemp("toy")))
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
