"""What prose states of a fact: another value refuses, the same in other words does not, and silence is no "only"."""

import asyncio
import json
from dataclasses import replace

import pytest

from pipelines.checks.propositions import Claim, ProseReader, list_claims, list_reading_problems
from pipelines.graph.answers import type_answer
from pipelines.graph.facts import read_attributes, read_relations
from pipelines.graph.query import Indexes
from pipelines.services.prompting import RoleClient, load_prompt
from schemas.datasets import Question
from tests.pipelines.stages.players import FakeModel
from tests.toy import box, build_toy_corpus

PROSE = (
    "'''Tol Marn''' is a painter. Marn tied the knot with [[Ada Brink]] in 1899. After her death came [[Ila Fosk]]. "
    "His first spouse, Brink, was a weaver. The artist saw the light of day on 2 April 1871 in a barn near [[Ostrel]]. "
    "His tower of granite rises to 412 metres. Nothing else is known."
)
PERSON = "'''{0}''' was a painter."
BOX = (
    "spouse = [[Ada Brink]]", "birth_date = {{birth date|1871|4|2}}", "birth_place = [[Ostrel]]", "height = 412 m",
    "material = granite", "children = [[Ila Fosk]]",
)  # fmt: skip


@pytest.fixture(scope="module")
def ground(tmp_path_factory):
    pages = {
        "Tol Marn": box("artist", PROSE, *BOX),
        "Ada Brink": box("artist", PERSON.format("Ada Brink"), "children = {{ubl|[[Tol Marn]]|[[Ila Fosk]]}}"),
        "Ila Fosk": box("artist", PERSON.format("Ila Fosk"), "children = {{ubl|[[Tol Marn]]|[[Ada Brink]]}}"),
        "Ostrel": box("settlement", "'''Ostrel''' is a town.", "settlement_type = Town", "country = [[Valdonia]]"),
        "Valdonia": box("country", "'''Valdonia''' is a country."),
    }
    return Indexes(build_toy_corpus(tmp_path_factory.mktemp("prose"), pages, {}))


def claim(ground, relation):
    """Return what the infobox of Tol Marn gives for a field."""
    node = ground.corpus.find("Tol Marn")
    found = [each.answer for each in read_attributes(ground.corpus, node) if each.fact.key == relation]
    found += [fact.target for fact in read_relations(ground.corpus, node) if fact.key == relation]
    return Claim(node, relation, found[0])


def say(words, value, **more):
    """Return a reply with one proposition, of the sentence that holds the words."""

    def reply(inputs):
        places = [number for number, text in enumerate(inputs.sentences, 1) if words in text]
        return json.dumps({"propositions": [{"sentence": (places or [1])[0], "words": words, "value": value, **more}]})

    return reply


def read_claim(ground, asked, reply, mode="required"):
    """Return the reading of a claim, the verdict and the requests."""
    model = FakeModel(reply)
    reader = ProseReader(ground, RoleClient(model, load_prompt("read_page")))
    return (*asyncio.run(reader.check_claim(asked, mode)), model.asked)


@pytest.fixture
def read(ground):
    """Return the verdict on one claim, the reading and the requests."""

    def read(relation, reply, mode="required"):
        reading, result, asked = read_claim(ground, claim(ground, relation), reply, mode)
        return result, reading, asked

    return read


def say_nothing(inputs):
    return '{"propositions": []}'


def test_a_second_value_in_words_that_no_list_of_cues_has_refuses_the_hop(read):
    result, reading, _ = read("spouse", say("After her death came", "Ila Fosk"))
    assert (result.outcome, result.code) == ("FAIL", "multi-valued")
    assert "After her death came" in result.detail
    assert [said.likeness for said in reading.propositions] == ["other"]


def test_a_value_of_another_time_is_no_second_one(read):
    now, then = say("His first spouse", "Ada Brink"), say("After her death came", "Ila Fosk", when="from 1901")

    def reply(inputs):
        return json.dumps({"propositions": [json.loads(each(inputs))["propositions"][0] for each in (now, then)]})

    assert read("spouse", reply)[0].passed


@pytest.mark.parametrize("value", ["Ada Brink", "Brink", "A. Brink", "the weaver Ada Brink"])
def test_the_same_entity_by_any_of_its_names_passes(read, value):
    result, reading, _ = read("spouse", say("His first spouse, Brink", value))
    assert result.passed
    assert reading.propositions[0].likeness == "same"


@pytest.mark.parametrize(
    ("reply", "outcome"),
    [
        (say_nothing, "UNKNOWN"),
        (say("His first spouse", "Ila Fosk"), "PASS"),
        (say("After", "Ila Fosk", only=True), "PASS"),
    ],
)
def test_of_a_relation_that_often_has_several_values_silence_is_no_evidence(read, reply, outcome):
    assert read("children", reply)[0].outcome == outcome


@pytest.mark.parametrize(
    ("relation", "value", "outcome", "code"),
    [
        ("birth_date", "2 April 1871", "PASS", ""),
        ("birth_date", "1871", "PASS", ""),
        ("birth_date", "3 April 1871", "FAIL", "answer-disputed"),
        ("birth_date", "the 1880s", "FAIL", "answer-disputed"),
        ("birth_date", "not 2 April 1871", "FAIL", "answer-disputed"),
        ("material", "granite, from Valdonia", "PASS", ""),
        ("height", "412 metres", "PASS", ""),
        ("height", "1,352 ft", "PASS", ""),
        ("height", "about 300 m", "FAIL", "answer-disputed"),
        ("height", "380 m", "FAIL", "answer-disputed"),
        ("material", "grey granite", "UNKNOWN", "answer-unconfirmed"),
    ],
)  # fmt: skip
def test_an_answer_is_held_to_what_the_prose_says(read, relation, value, outcome, code):
    result, _, _ = read(relation, say("Nothing else" if relation == "material" else "Marn", value))
    assert (result.outcome, result.code) == (outcome, code)


LIVES = {
    "Henry Morton Stanley": "Stanley Born January 28, 1841 Denbigh, [[Wales]] Died May 10, 1904 London. The Welsh-born "
    "journalist found Livingstone. He lived in Paris, Rome and Ypres. His bust stands in Ruel.",
    "Thomas Edison": "Edison bought a home in West Orange, New Jersey. He was born in Milan, Ohio.",
    "Herbert Hoover": "Hoover was the first President to be born west of the Mississippi River.",
    "Wales": box("country", "'''Wales''' is a country."),
    "Denbighshire": "'''Denbighshire''' is a county in [[Wales]].",
    "Ruel": box("settlement", "'''Ruel''' is a market town in [[Denbighshire]].", "settlement_type = Town"),
}


@pytest.fixture(scope="module")
def lives(tmp_path_factory):
    return Indexes(build_toy_corpus(tmp_path_factory.mktemp("lives"), LIVES, {}))


@pytest.mark.parametrize(
    ("title", "relation", "place", "value", "likeness"),
    [
        ("Henry Morton Stanley", "birth_place", "Denbigh", "Welsh-born", "close"),
        ("Henry Morton Stanley", "birth_place", "Wales", "Denbigh", "close"),
        ("Henry Morton Stanley", "birth_place", "Denbigh", "London", "other"),
        ("Thomas Edison", "death_place", "West Orange", "New Jersey", "close"),
        ("Thomas Edison", "death_place", "West Orange", "Milan, Ohio", "other"),
        ("Herbert Hoover", "birth_place", "West Branch", "west of the Mississippi River", "close"),
        ("Henry Morton Stanley", "birth_place", "Paris", "Rome", "other"),
        ("Henry Morton Stanley", "is shown by a bust in", "Ruel", "Wales", "close"),
    ],
)
def test_a_place_that_the_corpus_says_lies_around_another_is_no_other_place(
    lives, title, relation, place, value, likeness
):
    asked = Claim(lives.corpus.find(title), relation, type_answer(place, "", ""))
    reading, result, _ = read_claim(lives, asked, say(title.split()[-1], value), "uncontradicted")
    assert reading.propositions[0].likeness == likeness
    assert result.passed == (likeness == "close")


@pytest.mark.parametrize("single", [True, False])
def test_where_prose_is_silent_a_reader_who_said_that_there_is_one_is_believed(ground, single):
    asked = replace(claim(ground, "children"), single=single)
    assert read_claim(ground, asked, say_nothing)[1].passed == single


@pytest.mark.parametrize("reply", ["", "no JSON", '{"propositions": 3}'])
def test_a_reply_that_cannot_be_used_is_unknown(read, reply):
    for relation in ("spouse", "height"):
        assert read(relation, lambda inputs: reply)[0].outcome == "UNKNOWN"


def test_the_reader_sees_the_field_and_the_sentences_and_nothing_of_the_infobox(read):
    _, _, (request,) = read("spouse", say_nothing)
    shown = request.inputs.model_dump()
    told = [shown.pop(key) for key in ("field", "gloss", "kind", "name", "type")]
    assert told == ["spouse", "person married to the subject", "entity", "Tol Marn", "artist"]
    assert list(shown) == ["sentences"]
    assert len(shown["sentences"]) == 7
    _, _, (dated,) = read("birth_date", say_nothing)
    assert [text for text in dated.inputs.sentences if "knot" in text or "light of day" in text]
    assert not [text for text in dated.inputs.sentences if "granite" in text and "4" not in text]


@pytest.fixture(scope="module")
def row(demo):
    """A question of the demo with a hop that names a field, and every page read."""
    return next(
        row
        for row in demo.rows("questions", Question)
        if len(row.proof.page_readings) > 1 and all(reading.propositions for reading in row.proof.page_readings)
    )


def find(ground, row, **changes):
    return list(list_reading_problems(ground, row.proof.model_copy(update=changes), row.answer))


def test_every_question_of_the_demo_carries_a_reading_of_each_page_that_it_takes_a_value_from(demo, demo_ground):
    for row in demo.rows("questions", Question):
        claims = list_claims(demo_ground.corpus, row.proof, row.answer)
        assert [reading.relation for reading in row.proof.page_readings] == [each.relation for each in claims]
        assert find(demo_ground, row) == []


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"likeness": "close"}, "is not close"),
        ({"value": "99 leagues"}, "is not same"),
        ({"words": "made up"}, "does not stand"),
        ({"start": 0}, "does not stand"),
    ],
)
def test_a_reading_that_was_edited_is_named_without_a_model(demo_ground, row, change, problem):
    first, *others = row.proof.page_readings
    edited = first.model_copy(update={"propositions": (first.propositions[0].model_copy(update=change),)})
    assert problem in " ".join(find(demo_ground, row, page_readings=(edited, *others)))
