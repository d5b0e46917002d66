"""Questions about concepts: for their names under four rules, or for a fact, each with the knowledge it takes."""

import asyncio

import pytest

from pipelines.agent.naming import ConceptAsker
from pipelines.graph.query import Indexes
from pipelines.splits import SplitRule
from pipelines.stages.initials import Initials
from schemas.base import Rejection
from schemas.datasets import Seed
from schemas.proofs import UNCOUNTED
from schemas.tasks import AskedFactReply, ClassifiedReply, QuestionReply
from tests.pipelines.stages.chain_wiki import build_chain_wiki
from tests.pipelines.stages.players import TrustingReader, make_asking

LIMITS = UNCOUNTED.model_copy(update={"volatile": False, "alone_first": 1, "alone": 1})
ALL_SFT = SplitRule({"sft": 1.0}, seed=7)
ASKED = "Who is the person in the image?"


@pytest.fixture(scope="module")
def wiki(tmp_path_factory):
    return build_chain_wiki(tmp_path_factory.mktemp("concepts"), Nameless="It was a painter.\n")


def make_seed(corpus, title="Edda Marn", asks="visual", concept=""):
    page = corpus.page(corpus.find(title))
    return Seed(
        record_id="seed-1", parent_id=f"concept:{title}", page_id=page.page_id, title=title, qid="", type="painter",
        domain="Person", in_degree=0, sitelinks=-1, statements=-1, image="", split="sft", concept=concept or title,
        frequency=9, band="head", asks=asks,
    )  # fmt: skip


def ask(corpus, *texts, mark=4, least=3, tokens=6, **changes):
    """Return the question or the rejection, and the requests for a name."""
    replies = iter(texts or (ASKED,))
    naming = make_asking("ask_concept", lambda inputs: QuestionReply(question=next(replies)))
    sorting = make_asking("classify_question", lambda inputs: ClassifiedReply(knowledge="People", curious=mark))
    fact = AskedFactReply(relation="birth_date", question="On what date was Edda Marn born?")
    ground, reader = Indexes(corpus), TrustingReader()
    asker = ConceptAsker(ground, naming, sorting, reader, LIMITS, tokens, 8, least)
    writing = make_asking("ask_fact", lambda inputs: fact)
    stage = Initials(ground, writing, reader, None, LIMITS, 6, ALL_SFT, 8, concepts=asker)
    made = asyncio.run(stage(make_seed(corpus, **changes)))
    return (made if isinstance(made, Rejection) else made[0]), naming.model.asked


def test_a_name_is_asked_for_with_a_proof_of_one_node_and_its_knowledge(wiki):
    made, _ = ask(wiki)
    assert (made.text, made.answer.surface, made.knowledge) == (ASKED, "Edda Marn", "People")
    assert "E. Marn" in made.answer.aliases
    assert ([node.role for node in made.proof.nodes], made.proof.hops) == (["anchor"], ())
    evidence = made.proof.answer_evidence
    assert wiki.text(wiki.find("Edda Marn"))[evidence.start : evidence.end] == evidence.text == "Edda Marn"


def test_a_question_that_breaks_a_rule_is_asked_for_once_more_with_the_reason(wiki):
    made, asked = ask(wiki, "Which person is in the image?", ASKED)
    assert made.text == ASKED
    assert [request.inputs.tried[0].text for request in asked[1:]] == ["Which person is in the image?"]


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("Which person is in the image?", "other-opening"), ("Who is Marn, the person in the image?", "alias-leak"),
        ("Who is the person in the image born in 1871?", "fact-unproved"), ("Who is it?", "reference-missing"),
    ],
)  # fmt: skip
def test_a_second_question_that_breaks_a_rule_refuses_its_concept(wiki, text, code):
    made, asked = ask(wiki, text, text)
    assert (made.reason, made.codes, len(asked)) == ("rules-broken", ("rules-broken", code), 2)


def test_a_page_that_does_not_say_its_name_and_a_concept_of_another_name_are_refused_before_anybody_is_asked(wiki):
    unnamed, asked = ask(wiki, title="Nameless")
    assert (unnamed.reason, asked) == ("unnamed", [])
    assert ask(wiki, tokens=1)[0].reason == "answer-too-long"
    other, asked = ask(wiki, concept="Ostrel")
    assert (other.reason, asked) == ("concept-not-in-answer", [])
    assert ask(wiki, concept="E. Marn")[0].answer.surface == "Edda Marn"
