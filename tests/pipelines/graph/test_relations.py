import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pipelines.corpus.store import FACT_ROWS, Corpus
from pipelines.corpus.tables import FACTS
from pipelines.errors import CorruptInput
from pipelines.graph.facts import RelationIndex, is_layout, read_attributes, read_relations
from tests.toy import box, build_toy_corpus


def list_relations(corpus, title):
    return {fact.key: corpus.page(fact.target).title for fact in read_relations(corpus, corpus.find(title))}


def list_attributes(corpus, title, max_tokens=0):
    return {a.fact.key: a.answer.value for a in read_attributes(corpus, corpus.find(title), max_tokens)}


@pytest.mark.parametrize(
    "key",
    ["image", "image_alt", "imageCaption", "map2", "Website", "coordinates", "name", "settlement_type", "ref_name"],
)
def test_fields_of_layout_and_names_are_no_relations(key):
    assert is_layout(key)


def test_a_field_with_several_values_is_no_edge(toy):
    assert list_relations(toy, "Jon Vask") == {"birth_place": "Lumby"}


def test_numbered_twins_on_one_page_are_no_edges(toy):
    assert list_relations(toy, "Ostrel") == {"twin1": "Lumby", "country": "Valdonia"}


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
    assert [corpus.page(node).title for node in index.objects_of("twin")] == ["Ana", "Bo"]
    assert index.objects_of("twin") == index.objects_of("Twin7") == tuple(index.find_objects("twin").tolist())
    assert index.objects_of("leader") == ()


def test_attributes_are_typed_literals(toy):
    assert list_attributes(toy, "Kelm Bridge") == {"length": "320"}
    assert list_attributes(toy, "Mira Tolland") == {"birth_date": "1880-04-02", "nationality": "Valdonian"}


def test_every_relation_of_the_world_is_the_only_value_of_its_field_and_true(demo, demo_corpus):
    true = {(fact["subject"], fact["key"], fact["object"]) for fact in demo.truth("facts") if fact["linked"]}
    found = set()
    for node in demo_corpus.article_nodes():
        for fact in read_relations(demo_corpus, node):
            assert fact.value_count == 1
            found.add((demo_corpus.page(node).title, fact.key, demo_corpus.page(fact.target).title))
    assert found <= true
    assert len(found) > 0.5 * len(true)


def test_the_index_holds_the_relations_of_every_page(demo_corpus, demo_relations):
    wanted = {(n, f.target) for n in demo_corpus.article_nodes() for f in read_relations(demo_corpus, n)}
    assert wanted <= set(zip(demo_relations.subjects.tolist(), demo_relations.objects.tolist(), strict=True))


def write_facts(corpus, folder, facts):
    """Return a corpus like the given one, but with these (node, key, value count, target) as its facts."""
    columns = {name: [] for name in FACTS.names}
    for fact in facts:
        given = dict(zip(("node", "key", "value_count", "target"), fact, strict=True))
        for name, values in columns.items():
            values.append(given.get(name, "" if name in ("text", "iso") else 0))
    folder.mkdir(exist_ok=True)
    pq.write_table(pa.table(columns, schema=FACTS), folder / "facts.parquet")
    return Corpus(folder, corpus.manifest)


def list_index(corpus):
    index = RelationIndex(corpus)
    return list(zip(index.subjects.tolist(), index.objects.tolist(), strict=True))


def test_facts_in_another_order_than_that_of_nodes_are_refused(toy, tmp_path):
    shuffled = write_facts(toy, tmp_path, [(3, "architect", 1, 1), (2, "architect", 1, 1)])
    with pytest.raises(CorruptInput, match="not in node order"):
        RelationIndex(shuffled).objects_of("architect")


def test_a_page_whose_facts_are_read_in_two_goes_is_still_one_page(toy, tmp_path):
    # Node 1 fills more than one go, and the numbered twins of node 2 lie in the second and the third.
    facts = [(0, "architect", 1, 3), *[(1, "work", 3, 0)] * (FACT_ROWS + 10), (2, "twin1", 1, 4)]
    facts += [(2, "work", 2, 5)] * (2 * FACT_ROWS - len(facts))
    facts += [(2, "born", 1, 5), (2, "twin2", 1, 6), (3, "born", 1, 0)]
    assert list_index(write_facts(toy, tmp_path, facts)) == [(0, 3), (2, 5), (3, 0)]
