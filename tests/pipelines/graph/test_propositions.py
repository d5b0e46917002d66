import pytest

from pipelines.graph.propositions import list_lines, place_relations, read_clause, view_lines
from schemas.tasks import StatedRelation
from tests.toy import build_toy_corpus

LONG = f"They {'sang and ' * 25}rose, and in the tales of old they are known as Six Sisters."
HALL = (
    "'''Kelm Hall''' is a concert hall in [[Ostrel]], [[Valdonia]]. It was designed by [[Jon Vask]], whose brother was "
    "born in [[Lumby]]. The hall opened on 4 May 1871, cost 3,000 crowns and is named after Otto Lang. [[Greta Pohl]] "
    "was married in [[Sellby]]. Halls are rare, and the Lumbian Ana Brill of Ostrel praised this one. Plays ended, "
    f"but under Ida Moor they came back to the stage of Kelm in 1902. {LONG}"
)
PAGES = {
    "Kelm Hall": HALL,
    "Ostrel": "'''Ostrel''' is a town.",
    "Valdonia": "'''Valdonia''' is a country.",
    "Jon Vask": "'''Jon Vask''' was an architect.",
    "Lumby": "'''Lumby''' is a village.",
    "Sellby": "'''Sellby''' is a village.",
    "Greta Pohl": "'''Greta Pohl''' was a chemist.",
}
DESIGNED = {"sentence": 2, "object": "l3", "relation": "was designed by", "words": "It was designed by Jon Vask"}


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    return build_toy_corpus(tmp_path_factory.mktemp("hall"), PAGES, {})


def place(corpus, *stated):
    node = corpus.find("Kelm Hall")
    return place_relations(corpus, node, list_lines(corpus, node, 10), [StatedRelation(**each) for each in stated])


def test_a_model_sees_the_sentences_with_what_they_link_to(corpus):
    lines = view_lines(corpus, list_lines(corpus, corpus.find("Kelm Hall"), 10))
    assert [line.text.split()[0] for line in lines] == ["Kelm", "It", "The", "Greta", "Halls", "Plays", "They"]
    assert [[(each.id, each.name) for each in line.objects] for line in lines[:4]] == [
        [("l1", "Ostrel"), ("l2", "Valdonia")],
        [("l3", "Jon Vask"), ("l4", "Lumby")],
        [],
        [("l5", "Greta Pohl"), ("l6", "Sellby")],
    ]


def test_a_relation_that_stands_in_its_sentence_is_a_hop_with_its_quotation(corpus):
    (found,) = place(corpus, DESIGNED)
    assert (found.gloss, found.field, found.relation) == ("was designed by", "designer", "designer")
    assert (found.clause.text, found.target) == ("It was designed by ____", corpus.find("Jon Vask"))


@pytest.mark.parametrize(
    "changed",
    [
        {"sentence": 9},
        {"words": "It was planned by Jon Vask"},
        {"words": "whose brother was born in Lumby"},
        {"object": "l1"},
        {"object": "l9"},
        {"relation": "was designed by Vask and"},
        {"relation": "was designed in 1871 by"},
        {"relation": "was in those years as many say designed by"},
        {"relation": " . "},
        {"object": "value", "value": "1880"},
    ],
)
def test_what_does_not_stand_in_its_sentence_is_dropped(corpus, changed):
    assert place(corpus, DESIGNED | changed) == ()


@pytest.mark.parametrize(
    ("value", "relation", "type", "key"),
    [
        ("4 May 1871", "opened on", "date", "date:1871-05-04"),
        ("3,000", "cost", "number", "number:3000"),
        ("Otto Lang", "is named after", "name", "text:otto lang"),
    ],
)
def test_dates_numbers_and_names_without_a_link_are_answers(corpus, value, relation, type, key):
    words = "The hall opened on 4 May 1871, cost 3,000 crowns and is named after Otto Lang"
    (found,) = place(corpus, {"sentence": 3, "object": "value", "value": value, "relation": relation, "words": words})
    assert (found.target, found.answer.type, found.answer.key) == (-1, type, key)


def test_of_one_relation_with_two_objects_none_is_kept(corpus):
    words = "Kelm Hall is a concert hall in Ostrel, Valdonia"
    places = [{"sentence": 1, "object": each, "relation": "is in", "words": words} for each in ("l1", "l2")]
    assert [len(place(corpus, *places)), len(place(corpus, places[0]))] == [0, 1]


@pytest.mark.parametrize(
    ("value", "words", "clause"),
    [
        ("Ana Brill", "and the Lumbian Ana Brill", "and the Lumbian ____ of Ostrel"),
        ("Ana Brill of Ostrel", "the Lumbian Ana Brill of Ostrel", "and the Lumbian ____ praised this one"),
        ("Ida Moor", "under Ida Moor", "but under ____ they came back to the stage of Kelm in 1902"),
        ("Six Sisters", LONG.rstrip("."), "and in the tales of old they are known as ____"),
    ],
)
def test_a_quotation_is_whole_words_around_its_value_and_is_read_again(corpus, value, words, clause):
    number = {"Ida Moor": 6, "Six Sisters": 7}.get(value, 5)
    said = {"sentence": number, "object": "value", "value": value, "relation": "was first European home of"}
    (found,) = place(corpus, said | {"words": words})
    assert found.clause.text == clause
    (read,) = read_clause(corpus, found.node, clause, "home", ())
    assert read.answer.surface == value


def test_a_gloss_means_a_field_only_where_its_object_is_of_that_kind(corpus):
    words = "Kelm Hall is a concert hall in Ostrel"
    (found,) = place(corpus, {"sentence": 1, "object": "l1", "relation": "died on", "words": words})
    assert (found.field, found.relation) == ("", "died_on")
    opened = {"sentence": 3, "object": "value", "value": "4 May 1871", "relation": "died on"}
    (found,) = place(corpus, opened | {"words": "The hall opened on 4 May 1871"})
    assert found.relation == "death_date"
