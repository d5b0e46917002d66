import asyncio

from pipelines.agent.injecting import extract_fact
from pipelines.corpus.store import Fact
from pipelines.graph.facts import read_relations
from pipelines.graph.proofs import make_node
from pipelines.graph.query import Indexes
from schemas.tasks import ExtractedFactReply
from tests.pipelines.stages.chain_wiki import build_chain_wiki
from tests.pipelines.stages.players import make_asking


def test_an_extracted_fact_is_the_one_offered_under_its_relation_and_name(tmp_path):
    corpus = build_chain_wiki(tmp_path)
    number = corpus.find("Edda Marn")
    facts = read_relations(corpus, number)

    def extract(relation, name):
        reply = ExtractedFactReply(relation=relation, object_name=name)
        asking = make_asking("extract_fact", lambda inputs: reply)
        node = make_node(corpus, number, "answer")
        return asyncio.run(extract_fact(asking, Indexes(corpus), node, facts, 10, 0))

    found = extract("birth_place", "Ostrel")
    assert isinstance(found, Fact)
    assert found == facts[0]
    assert extract("birth_place", "ostrel").code == "no-injection"
    assert extract("death_place", "Ostrel").code == "no-injection"
