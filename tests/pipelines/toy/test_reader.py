"""The grammar on lines of real pages, which hold whatever a sentence can hold."""

import pytest

from pipelines.toy.reader import read_question
from pipelines.toy.writer import write_question
from schemas.proofs import Answer
from schemas.tasks import HopView, OfferedRelation, ReadingReply, ReadQuestionInputs, WriteQuestionInputs

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


def test_a_field_that_was_not_offered_is_not_read() -> None:
    assert "no attribute" in read(LINE.replace("[…]", "…"), "What is listed as the house of {s}?").unsure


GLOSSED = (
    OfferedRelation(id="r1", kind="entity", statement="was founded by"),
    OfferedRelation(id="r2", kind="entity", statement="looks down on"),
    OfferedRelation(id="r3", kind="value", statement="height"),
    OfferedRelation(id="r4", kind="entity", statement="designed by"),
    OfferedRelation(id="r5", kind="entity", statement=OTHER),
)


@pytest.mark.parametrize(
    ("hop", "relation"),
    [
        ("the monk by whom the abbey in the image was founded", "r1"),
        ("the monk that the abbey in the image was founded by", "r1"),
        ("the bay that the abbey in the image looks down on", "r2"),
        ("the monk by whom the abbey in the image was designed", "r4"),
    ],
)
def test_a_relation_that_is_offered_in_words_is_known_by_them(hop: str, relation: str) -> None:
    reading = read_question(ReadQuestionInputs(text=f"What is the height of {hop}?", relations=GLOSSED))
    assert [(step.relation, step.backward, step.words) for step in reading.steps] == [(relation, False, hop)]
    assert reading.unsure == "none"


def test_words_of_a_relation_that_was_not_offered_are_not_read() -> None:
    hop = "the monk by whom the abbey in the image was painted"
    reading = read_question(ReadQuestionInputs(text=f"What is the height of {hop}?", relations=GLOSSED))
    assert hop in reading.unsure


@pytest.mark.parametrize("variety", range(40))
def test_what_templates_say_of_relations_in_words_is_read_back(variety: int) -> None:
    glosses = ("was designed by", "studied at", "stands near")
    types = ("architect", "school", "bridge")
    hops = tuple(
        HopView(
            relation="mentions", clause=f"It {gloss} ____.", object_name=f"Name{kind}", object_type=kind, gloss=gloss
        )
        for gloss, kind in zip(glosses, types, strict=True)
    )
    answer = Answer(type="number", value="12", precision="", unit="m", surface="12 m", aliases=(), key="number:12 m")
    path = WriteQuestionInputs(
        anchor_name="Kelm Hall",
        anchor_type="theatre",
        hops=hops,
        answer_relation="length",
        answer=answer,
        variety=str(variety),
    )
    offered = [OfferedRelation(id=f"r{n}", kind="entity", statement=gloss) for n, gloss in enumerate(glosses)]
    offered.append(OfferedRelation(id="r9", kind="value", statement="length"))
    text = write_question(path)
    reading = read_question(ReadQuestionInputs(text=text, relations=tuple(offered)))
    steps = [(step.relation, step.backward) for step in reading.steps]
    assert steps == [(f"r{n}", False) for n in range(3)], (text, reading.unsure)
    assert reading.asked == "r9"
