from collections import defaultdict

import networkx as nx
import pytest

from pipelines.graph.answers import derive_answer
from pipelines.graph.facts import Match, read_askable, read_relations
from pipelines.graph.proofs import make_query
from pipelines.graph.query import (
    Indexes,
    Query,
    answer_query,
    count_alone,
    count_anchor_answers,
    find_shortcut,
    follow_chain,
    follow_hop,
    locate_nodes,
    match_literal,
    match_type,
    matches,
)
from schemas.datasets import Question, Rewrite
from schemas.proofs import Hop, PathNode
from tests.pipelines.painters import NOWHERE, add_pages, ask_back, make_hop, paint
from tests.toy import box


def make_hops(*relations, clause=""):
    return tuple(
        Hop(index=index, relation=relation, subject_id=0, object_id=0, clause=clause, evidence=NOWHERE)
        for index, relation in enumerate(relations, 1)
    )


def ask(corpus, anchor, *relations, constraints=(), clause=""):
    """Return the query ``anchor -> ... . attribute``; the last relation is the attribute."""
    return Query(corpus.find(anchor), make_hops(*relations[:-1], clause=clause), constraints, relations[-1], ())


def name(corpus, nodes):
    return {corpus.page(node).title for node in nodes}


def test_a_sentence_leads_to_the_entity_in_its_blank_and_nowhere_else(toy):
    clause = "The money for it came from the banker ____ of the old town."
    query = ask(toy, "Kelm Bridge", "mentions", "birth_place", clause=clause)
    assert name(toy, follow_chain(Indexes(toy), query, query.anchor)[1]) == {"Hans Oder"}
    other = ask(toy, "Kelm Bridge", "mentions", "birth_place", clause=clause.replace("old", "new"))
    assert follow_chain(Indexes(toy), other, other.anchor)[1] == frozenset()


def test_a_backward_hop_leads_to_every_page_with_the_node_among_its_values(painters):
    ground = Indexes(painters)
    assert name(painters, follow_hop(ground, painters.find("Ostrel"), make_hop(1, "birth_place", True), ())) == {
        "Ada Brill",
        "Cleo Dahl",
        "Emil Foss",
    }
    assert name(painters, follow_hop(ground, painters.find("Marn"), make_hop(1, "residence", True), ())) == {"Gus Hald"}
    query = ask_back(painters)
    assert [name(painters, nodes) for nodes in follow_chain(ground, query, query.anchor)] == [{"Ostrel"}, {"Ada Brill"}]
    assert list(answer_query(ground, query)) == ["text:luminist"]


def test_answers_and_counts_of_the_demo_agree_with_brute_force(demo, demo_corpus, demo_ground):
    """Brute force over plain dictionaries of the same facts, with neither the index nor the query code."""
    ahead, values, by_type = defaultdict(dict), defaultdict(dict), defaultdict(list)
    for node in demo_corpus.article_nodes():
        by_type[demo_corpus.page(node).type].append(node)
        ahead[node].update({fact.key: fact.target for fact in read_relations(demo_corpus, node)})
        values[node].update({a.fact.key: a.answer for a in read_askable(demo_corpus, node)})
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


def test_a_type_is_shown_or_told_by_the_lead_or_missing(painters):
    ada = painters.find("Ada Brill")
    assert match_type(painters, ada, "painter") is Match.YES
    assert match_type(painters, ada, "sculptor") is Match.NO
    corpus = add_pages(painters, Vera_Wick=box("person", "'''Vera Wick''' was a painter."), Nobody="'''Nobody''' came.")
    assert match_type(corpus, corpus.find("Vera Wick"), "painter") is Match.OPEN
    assert match_type(corpus, corpus.find("Nobody"), "painter") is Match.OPEN
