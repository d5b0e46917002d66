import pytest

from pipelines.graph.facts import (
    FactIndex,
    Match,
    RelationIndex,
    list_periods,
    read_attributes,
    read_relations,
)
from pipelines.graph.query import match_literal, match_relation, name_relation
from pipelines.graph.values import parse_date
from tests.pipelines.painters import add_pages, paint
from tests.toy import box, build_toy_corpus


def name(corpus, nodes):
    return {corpus.page(int(node)).title for node in nodes}


def find_subjects(corpus, relation, title):
    return name(corpus, FactIndex(corpus).subjects_of(relation, corpus.find(title)))


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


def list_relations(corpus, title):
    return {fact.key: corpus.page(fact.target).title for fact in read_relations(corpus, corpus.find(title))}


def test_keys_of_one_stem_are_one_relation_for_pages_and_index_alike(tmp_path):
    pages = {
        "Kelm": box("town", "'''Kelm''' is a town.", "Leader = [[Ana]]", "leader2 = [[Bo]]", "twin3 = [[Ana]]"),
        "Orsa": box("town", "'''Orsa''' is a town.", "Twin = [[Bo]]", "12 = [[Ana]]"),
        "Ana": "'''Ana''' is a person.",
        "Bo": "'''Bo''' is a person.",
    }
    corpus = build_toy_corpus(tmp_path, pages, {})
    assert list_relations(corpus, "Kelm") == {"twin3": "Ana"}
    assert list_relations(corpus, "Orsa") == {"Twin": "Bo"}
    index = RelationIndex(corpus)
    for key in ("twin", "Twin7"):
        assert [corpus.page(node).title for node in index.find_objects(key).tolist()] == ["Ana", "Bo"]
    assert not len(index.find_objects("leader"))


def test_every_relation_of_the_world_is_the_only_value_of_its_field_and_true(demo, demo_corpus):
    true = {(fact["subject"], fact["key"], fact["object"]) for fact in demo.truth("facts") if fact["linked"]}
    found = set()
    for node in demo_corpus.article_nodes():
        for fact in read_relations(demo_corpus, node):
            assert fact.value_count == 1
            found.add((demo_corpus.page(node).title, fact.key, demo_corpus.page(fact.target).title))
    assert found <= true
    assert len(found) > 0.5 * len(true)


def test_what_sets_out_a_box_or_names_a_record_is_no_attribute(painters):
    layout = """DiseasesDB = 4153 | MedlinePlus = 002912 | eMedicineSubj = med | unit_pref = US | ISIN = US4592001014
        | postcode_district = PL31 | glotto = aust1305 | background = group_or_band | imgwidth = 180px | width = 270px
        | pattern_so = _top_on_black | structure_res = 300px | subdivision_ranks = Subspecies | credit = NBK1442
        | statlabel2 = Yards | leftarm = FFAA00 | blank_name_sec1 = GRP"""
    facts = """rank = Captain | label = Pell Records | utc_offset = +4 | height = 180 cm | eye_color = Green
        | display = 6 in | debut_year = 1974 | model = A320"""
    corpus = add_pages(painters, Vera_Wick=paint("Vera Wick", *layout.split(" | "), *facts.split(" | ")))
    asked = {attribute.fact.key for attribute in read_attributes(corpus, corpus.find("Vera Wick"))}
    assert {"rank", "label", "utc_offset", "height", "eye_color", "display", "debut_year", "model"} <= asked
    assert not asked & {pair.split(" = ")[0].strip() for pair in layout.split("|")}
