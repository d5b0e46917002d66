"""The grammar on lines of real pages, which hold whatever a sentence can hold."""

import pytest

from pipelines.toy.reader import read_question
from schemas.tasks import OfferedRelation, ReadingReply, ReadQuestionInputs

LINE = 'The […] of St. Ives (founded c. 1710), "the ____ of the north, that is", is large.'
OTHER = "The harbour of St. Ives faces the ____ to the north."
OFFERED = (
    OfferedRelation(id="r1", kind="entity", statement=LINE),
    OfferedRelation(id="r2", kind="entity", statement=OTHER),
    OfferedRelation(id="r3", kind="value", statement="lower house"),
    OfferedRelation(id="r4", kind="value", statement="upper house"),
)


def read(quoted: str, asks: str = "What is listed as the lower house of {s}?") -> ReadingReply:
    hop = f"the land that completes the line “{quoted}” in the article about the abbey in the image"
    return read_question(ReadQuestionInputs(text=asks.replace("{s}", hop), relations=OFFERED))


@pytest.mark.parametrize(
    "quoted",
    [
        "The … of St. Ives (founded c. 1710), ’the ____ of the north, that is’, is large",
        "… c. 1710), ’the ____ of the north …",
        "… of St. Ives … the ____ of the north …",
    ],
)
def test_a_quoted_line_is_found_however_it_was_cut(quoted: str) -> None:
    reading = read(quoted)
    assert [step.relation for step in reading.steps] == ["r1"], reading
    assert quoted in reading.steps[0].words
    assert (reading.asked, reading.unsure) == ("r3", "none")


@pytest.mark.parametrize(
    "quoted", ["… of St. Ives … the ____ of the south …", "… ____ … the …", "… ____ of St. Ives …"]
)
def test_a_line_with_other_words_or_that_may_be_two_is_none_of_those_offered(quoted: str) -> None:
    assert [step.relation for step in read(quoted).steps] == ["none"]


@pytest.mark.parametrize(
    "asks",
    [
        "Under the heading “lower house”, what is given for {s}?",
        "What does the article give as the lower house of {s}?",
    ],
)
def test_a_field_without_words_of_its_own_is_known_by_its_key(asks: str) -> None:
    assert read(LINE.replace("[…]", "…"), asks).asked == "r3"
