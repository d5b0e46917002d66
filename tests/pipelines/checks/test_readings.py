"""A reading that says what its proof says passes; whatever differs is named, and what is unsure is refused."""

import asyncio
import hashlib
import json
from dataclasses import dataclass, field

import pytest

from pipelines.checks.readings import (
    DIFFERS,
    UNREAD,
    Evaluator,
    compare_reading,
    find_others,
    list_offers,
    state_hop,
    state_relation,
)
from pipelines.services.prompting import RoleClient, load_prompt
from pipelines.services.protocols import ChatReply, ChatRequest
from pipelines.toy.reader import screen_question
from schemas.datasets import Grounding
from schemas.proofs import ReadFact, ReadHop, Reading
from schemas.tasks import FoundEntity, HiddenThing, ScreenQuestionInputs, SearchedStep

TEXT = "the text that was read"


@pytest.fixture(scope="module")
def questions(demo) -> list[Grounding]:
    return demo.rows("groundings", Grounding)


def read_rightly(question: Grounding, **changes) -> Reading:
    """Return the reading that is the proof's query."""
    proof = question.proof
    reading = Reading(
        reader="test",
        text=hashlib.sha256(TEXT.encode()).hexdigest(),
        offered=(),
        hops=tuple(ReadHop(statement=state_hop(hop), backward=hop.backward, words="text") for hop in proof.hops),
        asked=state_relation(proof.answer_relation),
        form=question.answer.precision,
        unit=question.answer.unit,
        facts=tuple(
            ReadFact(
                node=fact.node,
                statement="" if fact.relation == "type" else state_relation(fact.relation),
                value=fact.value,
                words="read",
            )
            for fact in proof.constraints
        ),
        questions=1,
        instruction="",
        unsure="",
    )
    return reading.model_copy(update=changes)


def compare(corpus, question, **changes):
    return compare_reading(corpus, TEXT, read_rightly(question, **changes), question.proof, question.answer)


def test_every_question_of_the_demo_passes_when_it_is_read_as_its_proof(demo_corpus, questions):
    assert [compare(demo_corpus, question).detail for question in questions] == [""] * len(questions)
    assert compare(demo_corpus, questions[0], **damage_hop(questions[0], words="read the text")).passed


def damage_hop(question, **changes):
    first, *others = read_rightly(question).hops
    return {"hops": (first.model_copy(update=changes), *others)}


ADDED = ReadFact(node=1, statement="", value="2019", words="that was")


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        (lambda q: damage_hop(q, statement="rival"), "says rival, not"),
        (lambda q: damage_hop(q, words="made up"), "words that do not stand in the text"),
        (lambda q: {"hops": read_rightly(q).hops[1:]}, "steps, the proof"),
        (lambda q: {"asked": "number of windows"}, "asks for number of windows, not"),
        (lambda q: {"facts": (*read_rightly(q).facts, ADDED)}, "adds a condition on node 1"),
        (lambda q: {"questions": 2}, "asks 2 questions"),
        (lambda q: {"instruction": "Answer in French"}, "holds an instruction"),
        (lambda q: {"unit": "furlongs"}, "asks for furlongs"),
    ],
)
def test_each_difference_is_named(demo_corpus, questions, damage, said):
    for question in questions[:40]:
        result = compare(demo_corpus, question, **damage(question))
        assert (result.outcome, result.code) == ("FAIL", DIFFERS)
        assert said in result.detail


def test_a_reader_that_is_unsure_refuses(demo_corpus, questions):
    result = compare(demo_corpus, questions[0], unsure="which bridge is meant")
    assert (result.outcome, result.code) == ("UNKNOWN", UNREAD)


def test_the_offers_hold_the_proofs_relations_among_others_in_an_order_that_the_text_draws(demo_corpus, questions):
    places = set()
    for question in questions:
        offers = list_offers(demo_corpus, question.text, question.proof)
        statements = {(offer.kind, offer.statement) for offer in offers}
        assert {("entity", state_hop(hop)) for hop in question.proof.hops} <= statements
        assert ("value", state_relation(question.proof.answer_relation)) in statements
        assert len(offers) > len(question.proof.hops) + 4
        assert [offer.id for offer in offers] == [f"r{number}" for number in range(1, len(offers) + 1)]
        places.add([offer.statement for offer in offers].index(state_relation(question.proof.answer_relation)))
    assert len(places) > 5


@dataclass
class FakeEvaluator:
    """Replies with what a function makes of the inputs, and keeps what it was shown."""

    reply: object
    name: str = "evaluator"
    identity: str = "evaluator@1"
    reads_inputs: bool = False
    requests: list[ChatRequest] = field(default_factory=list)

    async def chat(self, request: ChatRequest) -> ChatReply:
        self.requests.append(request)
        return ChatReply(self.reply(request.inputs), 1, 1)


def evaluate(ground, question, reply):
    model = FakeEvaluator(reply)
    reader = Evaluator(ground, *(RoleClient(model, load_prompt(name)) for name in ("read_question", "screen_question")))
    return model, *asyncio.run(reader.check(question.text, question.proof, question.answer))


def say_rightly(question):
    def reply(inputs):
        ids = {offer.statement: offer.id for offer in inputs.relations}
        right = read_rightly(question)
        words = question.text
        return json.dumps({
            "steps": [{"relation": ids[hop.statement], "backward": hop.backward, "words": words} for hop in right.hops],
            "asked": ids[right.asked], "form": right.form or "none", "unit": right.unit or "none", "questions": 1,
            "conditions": [{"step": fact.node, "words": words, "relation": ids.get(fact.statement, "none"),
                            "value": fact.value} for fact in right.facts],
        })  # fmt: skip

    return reply


def test_the_evaluator_sees_the_text_and_relations_and_neither_names_nor_answer(demo_ground, questions):
    for question in questions[:30]:
        model, _, result = evaluate(demo_ground, question, say_rightly(question))
        assert result.passed, result.detail
        shown = "\n".join(message.text for message in model.requests[0].messages)
        assert question.text in shown
        assert not [node.title for node in question.proof.nodes if node.title in shown]


@pytest.mark.parametrize("reply", ["", "no JSON", '{"steps": "none"}', "{}"])
def test_a_reply_that_cannot_be_used_refuses(demo_ground, questions, reply):
    model, reading, result = evaluate(demo_ground, questions[0], lambda inputs: reply)
    assert (reading, result.outcome, result.code) == (None, "UNKNOWN", UNREAD)
    assert len(model.requests) == 2


def name_nodes(ground, question):
    return [ground.corpus.find(node.title) for node in question.proof.nodes]


def test_others_are_entities_whose_pages_name_where_the_step_begins(demo_ground, questions):
    shown = 0
    for question in questions[:40]:
        nodes = name_nodes(demo_ground, question)
        for found in find_others(demo_ground, question.reading, question.proof):
            source, reached = (demo_ground.corpus.page(nodes[found.entity.node + step]) for step in (-1, 0))
            assert found.entity.page_id not in (source.page_id, reached.page_id)
            assert found.sentences
            assert found.entity.title not in (source.title, reached.title)
            shown += 1
    assert shown >= 40


def screen(ground, question, reply):
    model = FakeEvaluator(reply)
    reader = Evaluator(ground, *(RoleClient(model, load_prompt(name)) for name in ("read_question", "screen_question")))
    asked = reader.screen(question.text, question.reading, question.proof, question.answer)
    return model, *asyncio.run(asked)


def test_another_entity_that_a_step_leads_to_refuses(demo_ground, questions):
    question = next(each for each in questions if each.screening.others)

    def reply(inputs):
        entity = inputs.steps[0].entities[0]
        fits = [{"entity": entity.id, "words": entity.sentences[0]}]
        return json.dumps({"leaks": [], "fits": fits})

    model, screening, result = screen(demo_ground, question, reply)
    assert (result.outcome, result.code) == ("FAIL", "second-entity")
    assert screening.others[0].title in result.detail
    shown = "\n".join(message.text for message in model.requests[0].messages)
    assert all(other.title in shown for other in screening.others)


def test_a_page_that_says_a_step_leads_to_it_fits_for_the_grammar():
    def say(backward, source):
        entity = FoundEntity(
            id="e1", name="Kelm Tower", type="tower", sentences=("Mira Tolland drew the plans for Kelm Tower.",)
        )
        step = SearchedStep(
            words="its tower",
            statement="architect",
            backward=backward,
            source=source,
            entities=(entity,),
        )
        hidden = (HiddenThing(id="h1", kind="answer", text="1871"),)
        return screen_question(ScreenQuestionInputs(text="When?", hidden=hidden, steps=(step,))).fits

    assert [fit.entity for fit in say(backward=True, source="Mira Tolland")] == ["e1"]
    assert say(backward=False, source="Mira Tolland") == say(backward=True, source="Jon Vask") == ()
