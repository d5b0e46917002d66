"""Statements of Wikidata as facts of the corpus: which ones count, and which ones infoboxes leave no room for."""

import bz2
import json

import pyarrow.parquet as pq
import pytest

from pipelines.corpus.build import build_corpus
from pipelines.corpus.properties import collect_entities
from pipelines.corpus.relations import read_relations_table
from pipelines.corpus.store import Corpus
from pipelines.graph.facts import FactIndex, RelationIndex, read_attributes, read_relations
from pipelines.graph.query import read_field
from tests.pipelines.corpus.entity_lines import make_entity, render_line
from tests.pipelines.corpus.entity_lines import write_dump as write_entities
from tests.toy import keep_parser

PAGES = (
    ("Kelm Bridge", "'''Kelm Bridge''' is a bridge over the [[Ost]]."),
    ("Ada Brill (architect)", "'''Ada Brill''' was an architect."),
    ("Ben Corr", "{{Infobox architect\n| birthplace = [[Marn]]\n| fields = \n}}\n'''Ben Corr''' was an architect."),
    ("Ost", "The Ost is a river."),
    ("Marn", "Marn is a town."),
)
QIDS = {title: number for number, (title, *_) in enumerate(PAGES, 11)}
UNKNOWN_ENTITY = 99
GREGORIAN, JULIAN = (f"http://www.wikidata.org/entity/{qid}" for qid in ("Q1985727", "Q1985786"))


def make_statement(property, value, datatype="wikibase-item", rank="normal", qualifiers=(), snaktype="value", number=1):
    snak = {"snaktype": snaktype, "property": property, "datatype": datatype}
    if snaktype == "value":
        snak["datavalue"] = {"value": value, "type": "any"}
    given = {"qualifiers": {name: [] for name in qualifiers}} if qualifiers else {}
    return {"mainsnak": snak, "type": "statement", "id": f"Q1${property}-{number}", "rank": rank, **given}


def name_entity(property, title, **given):
    number = QIDS.get(title, UNKNOWN_ENTITY)
    return make_statement(property, {"entity-type": "item", "numeric-id": number, "id": f"Q{number}"}, **given)


def date(property, time, precision=11, calendar=GREGORIAN, **given):
    value = {"time": time, "precision": precision, "calendarmodel": calendar, "before": 0, "after": 0, "timezone": 0}
    return make_statement(property, value, "time", **given)


def measure(property, amount, unit="1", **given):
    unit = unit if unit == "1" else f"http://www.wikidata.org/entity/{unit}"
    return make_statement(property, {"amount": amount, "unit": unit}, "quantity", **given)


@pytest.fixture
def build(write_dump, tmp_path):
    """Build the corpus of PAGES beside a JSON dump with the statements given by title; without any, beside none."""

    def make(statements, name="out", pages=PAGES):
        lines = []
        for title, given in statements.items():
            entity = make_entity(QIDS[title], statements=0, identifiers=0, classes=(), title=title)
            entity["claims"] = {}
            for statement in given:
                entity["claims"].setdefault(statement["mainsnak"]["property"], []).append(statement)
            lines.append(render_line(entity))
        # Entities without statements, whose articles may be objects.
        lines += [
            render_line(make_entity(QIDS[title], 3, 0, 0, (), title)) for title in QIDS if title not in statements
        ]
        if statements:
            write_entities(tmp_path / "wikidata-20250131-all.json.gz", lines)
        with keep_parser():
            build_corpus(write_dump(*pages, name="enwiki-20250131-pages-articles.xml"), tmp_path / name)
        return Corpus.open(tmp_path / name)

    return make


def list_stated(corpus, title):
    facts = corpus.facts(corpus.find(title))
    return [(fact.key, fact.text, fact.value_count) for fact in facts if fact.statement]


def test_a_statement_about_another_article_is_a_relation(build):
    corpus = build({"Kelm Bridge": [name_entity("P84", "Ada Brill (architect)")]})
    bridge, architect = corpus.find("Kelm Bridge"), corpus.find("Ada Brill (architect)")
    (fact,) = read_relations(corpus, bridge)
    assert (fact.node, fact.key, fact.text, fact.target) == (bridge, "architect", "Ada Brill", architect)
    assert (fact.property, fact.statement, fact.start, fact.link_start) == ("P84", "Q1$P84-1", -1, -1)
    assert RelationIndex(corpus).find_objects("architect").tolist() == [architect]
    assert FactIndex(corpus).subjects_of("architect", architect) == (bridge,)
    assert corpus.manifest.counts.side["statements"] == {
        "read": 1, "kept": 1, "in_infobox": 0, "without_article": 0,
    }  # fmt: skip


def test_only_the_best_rank_counts(build):
    ost, marn, ada = "Ost", "Marn", "Ada Brill (architect)"
    corpus = build({
        "Kelm Bridge": [
            name_entity("P84", ost, rank="deprecated"), name_entity("P84", ada),
            name_entity("P177", ost, rank="preferred"), name_entity("P177", marn),
            name_entity("P138", ost, rank="deprecated"),
        ]
    })  # fmt: skip
    assert list_stated(corpus, "Kelm Bridge") == [("architect", "Ada Brill", 1), ("crosses", "Ost", 1)]


@pytest.mark.parametrize(
    "other",
    [
        name_entity("P84", "Nobody with an article", number=2),
        name_entity("P84", "Marn", qualifiers=["P582"], number=2),
        name_entity("P84", "Marn", qualifiers=["P518"], number=2),
        make_statement("P84", None, snaktype="somevalue", number=2),
    ],
    ids=["no article", "ended", "of a part", "unknown"],
)
def test_a_value_that_cannot_be_asked_for_still_makes_the_other_one_not_the_only_one(build, other):
    corpus = build({"Kelm Bridge": [name_entity("P84", "Ada Brill (architect)"), other]})
    assert list_stated(corpus, "Kelm Bridge") == [("architect", "Ada Brill", 2)]
    assert read_relations(corpus, corpus.find("Kelm Bridge")) == ()
    assert not read_field(corpus, corpus.find("Kelm Bridge"), "architect").complete


def test_a_field_of_the_infobox_goes_before_a_statement_and_an_empty_field_does_not(build):
    corpus = build(
        {"Ben Corr": [name_entity("P19", "Ost"), name_entity("P101", "Ost"), date("P569", "+1871-05-04T00:00:00Z")]}
    )
    facts = corpus.facts(corpus.find("Ben Corr"))
    assert [(fact.key, fact.text) for fact in facts] == [
        ("birthplace", "Marn"), ("birth_date", "4 May 1871"), ("fields", "Ost"),
    ]  # fmt: skip
    assert corpus.manifest.counts.side["statements"]["in_infobox"] == 1


DATES = [
    (("+1871-05-04T00:00:00Z",), "4 May 1871", "1871-05-04"),
    (("+1871-05-00T00:00:00Z", 10), "May 1871", "1871-05"),
    (("+1871-00-00T00:00:00Z", 9), "1871", "1871"),
    (("+0079-10-24T00:00:00Z", 11, JULIAN), "24 October AD 79", "0079-10-24"),
    (("-0044-03-15T00:00:00Z", 11, JULIAN), "15 March 44 BC", "-0043-03-15"),
    (("+1871-05-04T00:00:00Z", 8), None, None),
    (("+1871-05-04T00:00:00Z", 11, JULIAN), None, None),
    (("+1871-13-01T00:00:00Z", 10), None, None),
    (("-13798000000-00-00T00:00:00Z", 9), None, None),
]


@pytest.mark.parametrize(("given", "text", "iso"), DATES)
def test_a_date_is_read_at_its_precision(build, given, text, iso):
    corpus = build({"Kelm Bridge": [date("P1619", *given)]})
    facts = corpus.facts(corpus.find("Kelm Bridge"))
    assert [(fact.key, fact.text, fact.iso) for fact in facts] == ([("opened", text, iso)] if text else [])
    answers = [attribute.answer for attribute in read_attributes(corpus, corpus.find("Kelm Bridge"))]
    assert [(answer.type, answer.value) for answer in answers] == ([("date", iso)] if text else [])


QUANTITIES = [
    (("P2043", "+320", "Q11573"), "320 m", ("320", "m")),
    (("P2043", "+12345.50", "Q828224"), "12,345.5 km", ("12345.5", "km")),
    (("P1101", "+17"), "17", ("17", "")),
    (("P2130", "+2000000", "Q4917"), "$2,000,000", ("2000000", "$")),
    (("P2043", "+3", "Q123456"), None, None),
]


@pytest.mark.parametrize(("given", "text", "value"), QUANTITIES)
def test_a_quantity_has_a_known_unit_or_none(build, given, text, value):
    corpus = build({"Kelm Bridge": [measure(*given)]})
    assert [fact.text for fact in corpus.facts(corpus.find("Kelm Bridge"))] == ([text] if text else [])
    answers = [attribute.answer for attribute in read_attributes(corpus, corpus.find("Kelm Bridge"))]
    assert [(answer.value, answer.unit) for answer in answers] == ([value] if value else [])


def test_figures_of_one_moment_and_circa_and_what_changes_are_no_facts(build):
    corpus = build({
        "Marn": [
            measure("P2046", "+12", "Q712226", qualifiers=["P585"]),
            date("P571", "+1204-00-00T00:00:00Z", 9, qualifiers=["P1480"]),
            measure("P1082", "+5000"), name_entity("P6", "Ben Corr"),
            name_entity("P1344", "Ost"),  # not in the table
        ]
    })  # fmt: skip
    assert corpus.facts(corpus.find("Marn")) == ()


def test_all_facts_come_in_node_order_infoboxes_first(build):
    corpus = build({"Ben Corr": [name_entity("P737", "Ost")], "Kelm Bridge": [name_entity("P84", "Marn")]})
    rows = [row for table in corpus.read_fact_tables(("node", "key")) for row in table.to_pylist()]
    facts = [fact for node in corpus.article_nodes() for fact in corpus.facts(node)]
    assert [(row["node"], row["key"]) for row in rows] == [(fact.node, fact.key) for fact in facts]
    assert [fact.key for fact in facts] == ["architect", "birthplace", "influenced_by"]
    index = RelationIndex(corpus)
    for node in corpus.article_nodes():
        objects = index.objects[index.offsets[node] : index.offsets[node + 1]].tolist()
        assert objects == [fact.target for fact in read_relations(corpus, node)]


def test_twenty_real_entities_state_what_a_parser_finds_in_them(shared_data, tmp_path):
    dump = shared_data / "wikidata-twenty-entities.json.bz2"
    collect_entities(dump, tmp_path)
    rows = pq.read_table(tmp_path / "stated.parquet").to_pylist()
    assert len(rows) > 100
    with bz2.open(dump) as stream:
        entities = [json.loads(line.strip().rstrip(b",")) for line in stream if line.strip() not in (b"[", b"]")]
    table = read_relations_table()
    ranks = {
        statement["id"]: (statement["rank"], property, f"{entity['id']}")
        for entity in entities
        for property, group in entity["claims"].items()
        for statement in group
    }
    for row in rows:
        rank, property, qid = ranks[row["statement"]]
        assert rank != "deprecated"
        assert (property, qid) == (row["property"], f"Q{row['subject']}")
        assert row["key"] == table[property].key
    born = [row for row in rows if row["subject"] == 58978 and row["key"] == "birth_date"]
    assert [(row["text"], row["iso"], row["value_count"]) for row in born] == [("11 December 1882", "1882-12-11", 1)]
