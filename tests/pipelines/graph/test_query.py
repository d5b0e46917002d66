""" """

from collections import defaultdict
from dataclasses import replace
from itertools import pairwise

import networkx as nx
import pytest

from pipelines.graph.answers import derive_answer
from pipelines.graph.facts import Match, read_attributes, read_relations
from pipelines.graph.indexes import Ground
from pipelines.graph.proofs import make_query
from pipelines.graph.query import (
    Query,
    answer_query,
    count_alone,
    count_anchor_answers,
    find_shortcut,
    follow_chain,
    follow_hop,
    locate_nodes,
    match_literal,
    match_relation,
    match_type,
    matches,
)
from schemas.datasets import Question, Rewrite
from schemas.proofs import Constraint, Hop, PathNode
from tests.pipelines.painters import NOWHERE, add_pages, ask_back, born, make_hop, paint
from tests.toy import box


def make_hops(*relations, clause=""):
    return tuple(
        Hop(index=index, relation=relation, subject_id=0, object_id=0, clause=clause, evidence=NOWHERE)
        for index, relation in enumerate(relations, 1)
    )


def ask(corpus, anchor, *relations, constraints=(), clause=""):
    """Return the query ``anchor -> ... . attribute``; the last relation is the attribute."""
    return Query(corpus.find(anchor), make_hops(*relations[:-1], clause=clause), constraints, relations[-1], ())


def describe(corpus, hop, constraints=()):
    """Return the query of one hop with a descriptor."""
    return Query(corpus.find("Kelm Bridge"), (hop,), constraints, "", ())


def name(corpus, nodes):
    return {corpus.page(node).title for node in nodes}


def test_a_query_has_the_answer_at_the_end_of_its_chain(toy):
    query = ask(toy, "Kelm Bridge", "architect", "birth_place", "established_date")
    assert list(answer_query(Ground(toy), query)) == ["date:1204"]
    assert [name(toy, nodes) for nodes in follow_chain(Ground(toy), query, query.anchor)] == [
        {"Kelm Bridge"},
        {"Mira Tolland"},
        {"Ostrel"},
    ]


def test_a_constraint_that_does_not_fit_leaves_no_answer(toy):
    wrong = (Constraint(node=1, relation="nationality", value="Other"),)
    query = ask(toy, "Kelm Bridge", "architect", "birth_place", "established_date", constraints=wrong)
    assert answer_query(Ground(toy), query) == {}


def test_a_sentence_leads_to_the_entity_in_its_blank_and_nowhere_else(toy):
    clause = "The money for it came from the banker ____ of the old town."
    query = ask(toy, "Kelm Bridge", "mentions", "birth_place", clause=clause)
    assert name(toy, follow_chain(Ground(toy), query, query.anchor)[1]) == {"Hans Oder"}
    other = ask(toy, "Kelm Bridge", "mentions", "birth_place", clause=clause.replace("old", "new"))
    assert follow_chain(Ground(toy), other, other.anchor)[1] == frozenset()


def test_without_the_chain_every_object_of_the_relation_that_fits_is_counted(toy, toy_ground):
    (hop,) = make_hops("architect")
    valdonian = (Constraint(node=1, relation="nationality", value="Valdonian"),)
    assert count_alone(toy_ground, describe(toy, hop), 1, cap=9) == 3
    assert count_alone(toy_ground, describe(toy, hop, valdonian), 1, cap=9) == 2
    assert count_alone(toy_ground, describe(toy, hop), 1, cap=2) == 2


def test_a_backward_hop_leads_to_every_page_with_the_node_among_its_values(painters):
    ground = Ground(painters)
    assert name(painters, follow_hop(ground, painters.find("Ostrel"), make_hop(1, "birth_place", True), ())) == {
        "Ada Brill",
        "Cleo Dahl",
        "Emil Foss",
    }
    assert name(painters, follow_hop(ground, painters.find("Marn"), make_hop(1, "residence", True), ())) == {"Gus Hald"}
    query = ask_back(painters)
    assert [name(painters, nodes) for nodes in follow_chain(ground, query, query.anchor)] == [{"Ostrel"}, {"Ada Brill"}]
    assert list(answer_query(ground, query)) == ["text:luminist"]


def test_an_anchor_that_leads_to_several_entities_or_answers_counts_for_none(painters):
    pages = {"Vera_Wick": paint("Vera Wick", "birth_place = [[Marn]]", born(1872), "movement = Cubist")}
    town = painters.page(painters.find("Ostrel")).type
    wide, narrow = (("type", "painter"),), (("type", "painter"), ("birth_date", "1872"))
    for facts, counts in ((wide, (1, 1)), (narrow, (1, 1))):
        corpus = add_pages(painters, **pages)
        assert count_anchor_answers(Ground(corpus), ask_back(corpus, "Ostrel", *facts), town, cap=9) == counts


@pytest.mark.parametrize(("derivation", "key"), [("", "1871-04-02"), ("month", "1871-04"), ("year", "1871")])
def test_the_answer_is_what_is_asked_of_the_attribute(painters, derivation, key):
    query = replace(ask_back(painters, attribute="birth_date"), derivation=derivation)
    (found,) = answer_query(Ground(painters), query).items()
    assert (found[0], found[1].answer.key, found[1].fact.key) == (f"date:{key}", f"date:{key}", "birth_date")


def test_freeing_the_anchor_counts_anchors_and_distinct_answers(toy):
    query = ask(toy, "Kelm Bridge", "architect", "birth_place", "established_date")
    assert count_anchor_answers(Ground(toy), query, "bridge", cap=99) == (4, 2)
    assert count_anchor_answers(Ground(toy), query, "town", cap=99) == (0, 0)
    assert count_anchor_answers(Ground(toy), query, "bridge", cap=1) == (1, 1)


def test_answers_and_counts_of_the_demo_agree_with_brute_force(demo, demo_corpus, demo_ground):
    """Brute force over plain dictionaries of the same facts, with neither the index nor the query code."""
    ahead, values, by_type = defaultdict(dict), defaultdict(dict), defaultdict(list)
    for node in demo_corpus.article_nodes():
        by_type[demo_corpus.page(node).type].append(node)
        ahead[node].update({fact.key: fact.target for fact in read_relations(demo_corpus, node)})
        values[node].update({a.fact.key: a.answer for a in read_attributes(demo_corpus, node)})
    rows = [row for row in demo.rows("rewrites", Rewrite) if all(hop.relation != "mentions" for hop in row.proof.hops)]
    assert len(rows) > 30
    for row in rows:
        query = make_query(demo_corpus, row.proof)
        ends, keys = [], [hop.relation for hop in row.proof.hops]
        for anchor in by_type[row.proof.nodes[0].type]:
            node = anchor
            for index, key in enumerate(keys, 1):
                node = ahead[node].get(key) if node is not None else None
                here = [constraint for constraint in row.proof.constraints if constraint.node == index]
                node = None if node is None or not matches(demo_corpus, node, here) else node
            found = values[node].get(row.proof.answer_relation) if node is not None else None
            asked = None if found is None else derive_answer(found, row.proof.derivation)
            ends += [] if asked is None else [asked.key]
        assert count_anchor_answers(demo_ground, query, row.proof.nodes[0].type, 10**6) == (len(ends), len(set(ends)))
        assert set(answer_query(demo_ground, query)) == {row.answer.key}
        for hop in row.proof.hops:
            objects = {links[hop.relation] for links in ahead.values() if hop.relation in links}
            here = [constraint for constraint in row.proof.constraints if constraint.node == hop.index]
            fits = sum(matches(demo_corpus, node, here) for node in objects)
            assert count_alone(demo_ground, query, hop.index, 10**6) == fits


def test_answers_of_the_demo_are_true_in_the_world(demo):
    true = {(fact["subject"], fact["key"]): fact for fact in demo.truth("facts")}
    rows = [row for row in demo.rows("questions", Question) if all(hop.evidence.key for hop in row.proof.hops)]
    assert len(rows) > 60
    for row in rows:
        titles = [node.title for node in row.proof.nodes]
        for hop, (subject, target) in zip(row.proof.hops, pairwise(titles), strict=True):
            assert true[subject, hop.relation]["object"] == target
        fact = true[titles[-1], row.proof.answer_relation]
        if fact["value_kind"] == "date":
            assert (row.answer.type, fact["value_iso"][: len(row.answer.value)]) == ("date", row.answer.value)
        elif row.answer.type == "number":
            assert float(row.answer.value) == fact["value_number"]


@pytest.mark.parametrize("hubs_above", [3, 8, 10_000])
def test_the_shortest_link_path_is_that_of_networkx(demo, demo_corpus, hubs_above):
    graph = nx.DiGraph()
    links = demo_corpus.graph
    for node in demo_corpus.article_nodes():
        graph.add_edges_from((node, int(target)) for target in links.targets_of(node))
    hubs = {node for node in demo_corpus.article_nodes() if links.in_degree[node] > hubs_above}
    shortest = set()
    for row in demo.rows("questions", Question):
        nodes = locate_nodes(demo_corpus, row.proof.nodes)
        free = graph.subgraph(set(graph) - hubs | {nodes[0], nodes[-1]})
        length = nx.shortest_path_length(free, nodes[0], nodes[-1]) if nx.has_path(free, nodes[0], nodes[-1]) else 99
        assert find_shortcut(demo_corpus, nodes, hubs_above) == min(length, len(nodes) - 1)
        shortest.add(length)
    assert len(shortest) > 1


def test_a_node_that_the_corpus_does_not_have_is_named(toy):
    node = PathNode(page_id=1, title="Kelm Bridge", role="anchor", type="bridge", in_degree=3)
    assert locate_nodes(toy, [node]) == [toy.find("Kelm Bridge")]
    for change in ({"page_id": 2}, {"title": "Nowhere"}):
        with pytest.raises(LookupError, match="the corpus has no page"):
            locate_nodes(toy, [node.model_copy(update=change)])


def add_vera(painters, *fields, **options):
    corpus = add_pages(painters, Vera_Wick=paint("Vera Wick", *fields, **options))
    return corpus, corpus.find("Vera Wick")


@pytest.mark.parametrize(
    ("field", "result"),
    [
        ("movement = Luminist", Match.YES), ("movement = Tonalist", Match.NO),
        ("movement = {{ubl|Tonalist|Luminist}}", Match.YES), ("movement = {{ubl|Tonalist|Symbolist}}", Match.NO),
        ("movement1 = Luminist", Match.YES), ("movement = {{unknown template|Luminist}}", Match.OPEN),
        ("movement = {{ubl|Tonalist|{{unknown template|x}}}}", Match.OPEN), ("school = Luminist", Match.OPEN),
    ],
)  # fmt: skip
def test_a_field_shows_a_value_or_another_or_leaves_it_open(painters, field, result):
    assert match_literal(*add_vera(painters, field), "movement", "Luminist") is result


@pytest.mark.parametrize(
    ("field", "result"),
    [
        ("birth_place = [[Ostrel]]", Match.YES), ("birth_place = [[Old Ostrel]]", Match.YES),
        ("birth_place = Ostrel", Match.YES), ("birth_place = [[Lumby]]", Match.NO), ("birth_place = Lumby", Match.NO),
        ("birth_place = near Ostrel", Match.OPEN), ("birth_place = New Ostrelburg", Match.NO),
        ("birth_place = {{unknown template|x}}", Match.OPEN), ("birth_place = <br>", Match.OPEN),
        ("death_place = [[Ostrel]]", Match.OPEN),
    ],
)  # fmt: skip
def test_a_field_relates_to_an_entity_or_another_or_leaves_it_open(painters, field, result):
    corpus, vera = add_vera(painters, field)
    assert match_relation(corpus, vera, "birth_place", corpus.find("Ostrel")) is result


def test_a_type_is_shown_or_told_by_the_lead_or_missing(painters):
    ada = painters.find("Ada Brill")
    assert match_type(painters, ada, "painter") is Match.YES
    assert match_type(painters, ada, "sculptor") is Match.NO
    corpus = add_pages(painters, Vera_Wick=box("person", "'''Vera Wick''' was a painter."), Nobody="'''Nobody''' came.")
    assert match_type(corpus, corpus.find("Vera Wick"), "painter") is Match.OPEN
    assert match_type(corpus, corpus.find("Nobody"), "painter") is Match.OPEN


@pytest.mark.parametrize(
    ("kind", "lead", "wanted", "result"),
    [
        ("painter", "painter", "painter", Match.YES), ("painter", "painter", "person", Match.OPEN),
        ("person", "person", "painter", Match.OPEN), ("artist", "artist", "painter", Match.OPEN),
        ("politician", "politician", "painter", Match.OPEN), ("painter", "painter", "politician", Match.NO),
        ("judge", "judge", "politician", Match.OPEN), ("painter", "teacher", "sculptor", Match.OPEN),
        ("painter", "painter", "sculptor", Match.NO), ("town", "town", "city", Match.OPEN),
        ("river", "river", "town", Match.NO), ("river", "river", "place", Match.OPEN),
        ("bridge", "bridge", "structure", Match.OPEN), ("bridge", "bridge", "person", Match.NO),
        ("organisation", "organisation", "company", Match.OPEN), ("company", "company", "bridge", Match.NO),
        ("surname", "surname", "painter", Match.NO), ("theatre", "playhouse", "bridge", Match.NO),
    ],
)  # fmt: skip
def test_nouns_of_one_domain_may_name_one_thing_where_either_is_broad(painters, kind, lead, wanted, result):
    corpus = add_pages(painters, Vera_Wick=box(kind, f"'''Vera Wick''' was a {lead}."))
    assert match_type(corpus, corpus.find("Vera Wick"), wanted) is result
