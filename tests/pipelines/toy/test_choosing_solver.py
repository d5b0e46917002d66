"""The Knower that chooses its searches, and questions for names as templates ask and the grammar reads them."""

import asyncio

import pytest

from pipelines.agent.dialects import find_dialect
from pipelines.agent.loop import run_rollout
from pipelines.stages.choices import name_searches
from pipelines.stages.rollouts import make_oracle
from pipelines.toy.phrases import read_tables
from pipelines.toy.players import ScriptedSolver
from pipelines.toy.reader import classify_question, read_question
from pipelines.toy.writer import ask_name
from schemas.proofs import Answer
from schemas.tasks import NOTHING, AskConceptInputs, ClassifyQuestionInputs, OfferedRelation, ReadQuestionInputs, Tried
from tests.pipelines.agent.trail import FakeImageSearch, make_agent, make_picture, make_question, make_tools

TOWN = "Marlow (town)"
NAME = Answer(type="name", value="Marlow", precision="", unit="", surface="Marlow", aliases=(), key="text:marlow")
SURE = {"fact_popularity": 10, "sight_popularity": 10, "guess_rate": 0.0, "slip_rate": 0.0}


def play(folder, popularity, naming=False, shown=TOWN, attempt=0, calls=2, **abilities):
    question = make_question(make_picture(folder))
    node = question.proof.nodes[-1].model_copy(update={"role": "anchor"})
    proof = question.proof.model_copy(update={"nodes": (node,), "hops": ()})
    answer = question.answer
    if naming:
        proof, answer = proof.model_copy(update={"answer_relation": "title"}), NAME
    question = question.model_copy(update={"proof": proof, "answer": answer})
    tools = make_tools(folder, image_search=FakeImageSearch((shown,)))
    agent = make_agent(ScriptedSolver(**(SURE | abilities)), tools, find_dialect("mmsearch-r1"), calls=calls)
    oracle = make_oracle(question, attempt).model_copy(update={"popularity": (popularity,)})
    rollout = asyncio.run(run_rollout(agent, question, oracle))
    return name_searches(rollout), rollout.answer == answer.surface


@pytest.mark.parametrize(
    ("abilities", "played"),
    [
        ({}, ("search-free", True)),
        ({"sight_popularity": 99}, ("image", True)),
        ({"fact_popularity": 99}, ("text", True)),
        ({"sight_popularity": 99, "fact_popularity": 99}, ("mixed", True)),
        ({"sight_popularity": 99, "seen_before": 1.0}, ("search-free", True)),
        ({"fact_popularity": 99, "read_before": 1.0}, ("search-free", True)),
        ({"sight_popularity": 99, "shown": "Ana Kovač"}, ("image", False)),
        ({"sight_popularity": 99, "fact_popularity": 99, "calls": 1}, ("image", False)),
        ({"sight_popularity": 99, "calls": 0}, ("search-free", False)),
        ({"slip_rate": 1.0}, ("search-free", False)),
        ({"sight_popularity": 99, "naming": True}, ("image", True)),
        ({"fact_popularity": 99, "naming": True}, ("search-free", True)),
    ],
)
def test_a_knower_searches_for_what_it_does_not_know_and_for_nothing_else(tmp_path, abilities, played):
    assert play(tmp_path, 50, **abilities) == played


def test_every_wording_for_a_name_is_read_as_one():
    tables, offers = read_tables(), (
        OfferedRelation(id="r1", kind="value", statement="own name"),
        OfferedRelation(id="r2", kind="value", statement="opened"),
    )  # fmt: skip
    for noun, kind in (("person", "person"), ("bridge", "thing"), ("film", "thing")):
        for frame in tables["names"][kind]:
            for reference in tables["references"]:
                text = frame.replace("{a}", reference.replace("{noun}", noun))
                read = read_question(ReadQuestionInputs(text=text, relations=offers))
                assert (read.asked, read.steps, read.conditions, read.unsure) == ("r1", (), (), "none"), text


def test_what_was_refused_is_worded_otherwise_and_a_painter_is_a_person():
    concept = AskConceptInputs(concept="Edda Marn", type="painter", page="", variety="1")
    first = ask_name(concept)
    assert "person" in first
    assert "painter" not in first
    others = {ask_name(concept.model_copy(update={"tried": (Tried(text=first, problem="no"),) * n})) for n in range(5)}
    assert len(others) > 1
    assert concept.tried == NOTHING


@pytest.mark.parametrize(
    ("kind", "knowledge"),
    [
        ("painting", "Arts"),
        ("town", "Place"),
        ("painter", "People"),
        ("species of finch", "Nature"),
        ("helmet", "Entities"),
    ],
)
def test_the_grammar_classifies_by_the_noun(kind, knowledge):
    asked = classify_question(ClassifyQuestionInputs(question="What is it?", type=kind))
    assert (asked.knowledge, asked.curious) == (knowledge, 4)
    assert classify_question(ClassifyQuestionInputs(question="Under “opened”, what is it?", type=kind)).curious < 3
