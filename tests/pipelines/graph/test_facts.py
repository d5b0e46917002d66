import pytest

from pipelines.graph.facts import FactIndex, Match, list_periods, read_attributes, stem_key
from pipelines.graph.query import match_literal, match_relation, name_relation, read_field
from pipelines.graph.values import parse_date
from tests.pipelines.painters import add_pages, paint


def name(corpus, nodes):
    return {corpus.page(int(node)).title for node in nodes}


def find_subjects(corpus, relation, title):
    return name(corpus, FactIndex(corpus).subjects_of(relation, corpus.find(title)))


def test_subjects_are_all_pages_that_link_to_the_object_in_the_field(painters):
    assert find_subjects(painters, "birth_place", "Ostrel") == {"Ada Brill", "Cleo Dahl", "Emil Foss"}
    assert find_subjects(painters, "birth_place", "Pell Bridge") == set()
    assert find_subjects(painters, "no_such_field", "Ostrel") == set()


def test_fields_with_several_values_and_numbered_twins_count_with_each_value(painters):
    assert find_subjects(painters, "residence", "Marn") == {"Gus Hald"}
    assert find_subjects(painters, "leader_name2", "Gus Hald") == {"Ostrel"}
    assert find_subjects(painters, "leader_name", "Ada Brill") == {"Ostrel"}


@pytest.mark.parametrize(
    ("value", "found"),
    [
        ("Ostrel", True), ("ÓSTREL", True), ("Old Ostrel", True), ("Ostrel, Valdonia", False),
        ("[[Lumby|Ostrel]]", False),
    ],
)  # fmt: skip
def test_an_unlinked_value_counts_when_it_is_a_name_of_the_object(painters, value, found):
    corpus = add_pages(painters, Vera_Wick=paint("Vera Wick", f"birth_place = {value}"))
    assert ("Vera Wick" in find_subjects(corpus, "birth_place", "Ostrel")) is found
    naming = FactIndex(corpus).naming("birth_place", corpus.find("Ostrel"))
    assert ("Vera Wick" in name(corpus, naming)) is (value == "Ostrel, Valdonia" or found)


def test_entities_of_a_type_have_a_field_or_lack_it(painters):
    index = FactIndex(painters)
    assert name(painters, index.lacking("painter", "height")) == {"Ben Corr", "Cleo Dahl", "Dora Esk"}
    assert name(painters, index.having("height")) == {"Ada Brill"}
    assert name(painters, index.lacking("painter", "nothing")) == name(painters, painters.nodes_of_type("painter"))
    assert list(index.lacking("no such type", "height")) == []


def test_a_relation_is_multiple_when_its_fields_often_have_several_values(painters):
    index = FactIndex(painters)
    assert index.is_multiple("residence")
    assert index.is_multiple("leader_name")
    assert not index.is_multiple("birth_place")
    assert not index.is_multiple("nothing")


def list_values(corpus):
    """Yield every relation with the values, decades and centuries that pages of the corpus show."""
    for node in corpus.article_nodes():
        for attribute in read_attributes(corpus, node):
            date = parse_date(attribute.answer.value) if attribute.answer.type == "date" else None
            for value in (attribute.fact.text, *(list_periods(date) if date else ())):
                yield attribute.fact.key, value


@pytest.mark.parametrize("extra", [{}, {"Vera_Wick": paint("Vera Wick", "birth_date = 1871", "height = 170 in")}])
def test_the_index_holds_what_the_pages_say_one_by_one(painters, extra):
    corpus = add_pages(painters, **extra)
    index = FactIndex(corpus)
    values = sorted(set(list_values(corpus)))
    assert len(values) > 10
    for relation, value in values:
        fits = [node for node in corpus.article_nodes() if match_literal(corpus, node, relation, value) is Match.YES]
        assert index.holding(relation, value).tolist() == fits
    for key in sorted({fact.key for node in corpus.article_nodes() for fact in corpus.facts(node)}):
        for target in corpus.article_nodes():
            nodes = [node for node in corpus.article_nodes() if node != target and name_relation(key)]
            fits = [node for node in nodes if match_relation(corpus, node, key, target) is Match.YES]
            assert list(index.subjects_of(key, target)) == fits


def test_the_index_of_the_demo_holds_what_its_pages_say(demo_corpus, demo_ground):
    values = sorted(set(list_values(demo_corpus)))[::10]
    assert len(values) > 50
    for relation, value in values:
        nodes = demo_corpus.article_nodes()
        fits = [node for node in nodes if match_literal(demo_corpus, node, relation, value) is Match.YES]
        assert demo_ground.facts.holding(relation, value).tolist() == fits
    for node in demo_corpus.article_nodes():
        for fact in demo_corpus.facts(node):
            stem = stem_key(fact.key)
            if name_relation(fact.key) and fact.target not in (-1, node):
                assert node in demo_ground.facts.subjects_of(stem, fact.target)
                assert read_field(demo_corpus, node, stem).facts
