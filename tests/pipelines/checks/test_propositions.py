"""What prose states of a fact: another value refuses, the same in other words does not."""

import asyncio
import json

import pytest

from pipelines.checks.propositions import ProseReader, compare_name, compare_value, find_stated_problems
from pipelines.graph.answers import type_answer
from pipelines.graph.facts import read_attributes, read_relations
from pipelines.graph.query import Indexes
from pipelines.services.prompting import RoleClient, load_prompt
from schemas.proofs import Hop
from schemas.tasks import Proposition
from tests.pipelines.stages.players import FakeModel
from tests.toy import box, build_toy_corpus

PROSE = (
    "'''Tol Marn''' is a painter. Marn tied the knot with [[Ada Brink]] in 1899. After her death came [[Ila Fosk]]. "
    "His first spouse, Brink, was a weaver. The artist saw the light of day on 2 April 1871 in a barn near [[Ostrel]]."
)
PERSON = "'''{0}''' was a painter."


@pytest.fixture(scope="module")
def ground(tmp_path_factory):
    pages = {
        "Tol Marn": box("artist", PROSE, "spouse = [[Ada Brink]]", "birth_date = {{birth date|1871|4|2}}"),
        "Ada Brink": box("artist", PERSON.format("Ada Brink"), "birth_date = {{birth date|1875|4|2}}"),
        "Ila Fosk": box("artist", PERSON.format("Ila Fosk"), "birth_date = {{birth date|1880|4|2}}"),
        "Ostrel": box("settlement", "'''Ostrel''' is a town.", "settlement_type = Town"),
    }
    return Indexes(build_toy_corpus(tmp_path_factory.mktemp("prose"), pages, {}))


def state(words, value, sentence=None, about="none"):
    """Return a reader that finds one proposition: in the sentence with these words, or in the one named."""

    def reply(inputs):
        places = [number for number, text in enumerate(inputs.sentences, 1) if words in text]
        number = sentence or (places[0] if places else 1)
        said = {"sentence": number, "words": words, "value": value, "about": about}
        return json.dumps({"propositions": [said]})

    return reply


def read_hop(ground, reply):
    corpus = ground.corpus
    subject, value = corpus.find("Tol Marn"), corpus.find("Ada Brink")
    (fact,) = [fact for fact in read_relations(corpus, subject) if fact.key == "spouse"]
    hop = Hop.model_construct(index=1, relation=fact.key, clause="", backward=False)
    model = FakeModel(reply)
    reader = ProseReader(ground, RoleClient(model, load_prompt("read_page")))
    return asyncio.run(reader.check_hop(subject, value, hop)), model


def read_answer(ground, reply):
    subject = ground.corpus.find("Tol Marn")
    (found,) = [each for each in read_attributes(ground.corpus, subject) if each.fact.key == "birth_date"]
    reader = ProseReader(ground, RoleClient(FakeModel(reply), load_prompt("read_page")))
    return asyncio.run(reader.check_answer(subject, "birth_date", found.answer))


def test_a_second_value_in_words_that_no_list_of_cues_has_refuses_the_hop(ground):
    (stated, result), _ = read_hop(ground, state("After her death came", "Ila Fosk"))
    assert (result.outcome, result.code) == ("FAIL", "multi-valued")
    assert "After her death came" in result.detail
    assert [each.value for each in stated] == ["Ila Fosk"]


def test_the_same_value_in_other_words_is_kept_as_stated(ground):
    (stated, result), _ = read_hop(ground, state("His first spouse, Brink", "Brink"))
    assert result.passed
    assert ground.corpus.text(ground.corpus.find("Tol Marn"))[stated[0].start : stated[0].end].startswith("His first")


def test_the_reader_sees_sentences_and_the_field_and_not_the_value(ground):
    _, model = read_hop(ground, lambda inputs: '{"propositions": []}')
    (request,) = model.asked
    shown = json.loads(request.inputs.model_dump_json())
    assert shown["field"] == "spouse"
    assert set(shown) == {"name", "type", "field", "sentences"}
    assert any("After her death came" in sentence for sentence in shown["sentences"])


@pytest.mark.parametrize(
    ("words", "value", "outcome"),
    [
        ("saw the light of day on 2 April 1871", "2 April 1871", "PASS"),
        ("saw the light of day", "1871", "PASS"),
        ("saw the light of day", "3 April 1871", "FAIL"),
        ("saw the light of day", "the spring of that year", "UNKNOWN"),
        ("was born in a stable", "2 April 1871", "UNKNOWN"),
    ],
)
def test_an_answer_is_held_to_what_prose_states(ground, words, value, outcome):
    _, result = read_answer(ground, state(words, value))
    assert result.outcome == outcome
    assert result.passed or result.code == "answer-disputed"


@pytest.mark.parametrize("reply", ["", "no JSON", '{"propositions": 3}'])
def test_a_reply_that_cannot_be_used_refuses(ground, reply):
    assert read_answer(ground, lambda inputs: reply)[1].outcome == "UNKNOWN"
    assert read_hop(ground, lambda inputs: reply)[0][1].outcome == "UNKNOWN"


def say(value, about="none"):
    return Proposition(sentence=1, words="x", value=value, about=about)


LENGTH = type_answer("412 m", "", "length")


@pytest.mark.parametrize(
    ("said", "verdict"),
    [
        (say("412 metres"), "same"),
        (say("four hundred and twelve metres"), "same"),
        (say("1,352 ft"), "same"),
        (say("400 m", "about"), "same"),
        (say("300 m", "about"), "other"),
        (say("380 m"), "other"),
        (say("90 m", "part"), "same"),
        (say("390 m", "other time"), "same"),
        (say("a fair stretch"), "open"),
    ],
)
def test_numbers_are_compared_by_unit_and_rounding(said, verdict):
    assert compare_value(said, LENGTH) == verdict


@pytest.mark.parametrize(
    ("value", "verdict"),
    [("Ada Brink", "same"), ("Brink", "same"), ("the painter Ada Brink", "open"), ("Ila Fosk", "other")],
)
def test_names_are_compared_by_the_names_of_the_article(ground, value, verdict):
    names = frozenset({"ada brink"})
    assert compare_name(say(value), names) == verdict


def test_recorded_statements_are_compared_again_without_a_model(demo, demo_ground):
    from schemas.datasets import Grounding
    from schemas.proofs import Stated

    row = demo.rows("groundings", Grounding)[0]
    evidence, proof = row.proof.answer_evidence, row.proof
    whole = Stated(
        page_id=evidence.page_id,
        relation=proof.answer_relation,
        start=evidence.start,
        end=evidence.end,
        value=row.answer.surface,
        about="none",
    )
    for stated, problems in ((whole, 0), (whole.model_copy(update={"value": "99 leagues"}), 1)):
        given = proof.model_copy(update={"stated": (stated,)})
        assert len(list(find_stated_problems(demo_ground, given, row.answer))) == problems
