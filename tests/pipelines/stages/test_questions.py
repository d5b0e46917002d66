import asyncio
from dataclasses import replace

import pytest

from pipelines.checks.verdicts import PASSED, CheckResult
from pipelines.errors import RecordFailed
from pipelines.graph.query import Indexes
from pipelines.ids import canonical_json
from pipelines.splits import SHARES, SplitRule
from pipelines.stages.questions import Questions
from schemas.base import Rejection
from schemas.datasets import Path, Question
from schemas.proofs import UNCOUNTED
from schemas.tasks import QuestionReply, WrittenQuestionReply
from tests.pipelines.stages.players import TrustingReader, make_asking, read_request


def word(inputs):
    """Return a question that names anchor and bridges and asks for the attribute by its key."""
    return ask([inputs.anchor_name, *(hop.object_name for hop in inputs.hops[:-1])], inputs.answer_relation)


def ask(names, relation):
    return f"What {relation.replace('_', ' ')} of {', '.join(names)}?"


@pytest.fixture
def stage(demo_corpus) -> Questions:
    asking = make_asking("write_question", lambda inputs: QuestionReply(question=word(inputs)))
    return Questions(Indexes(demo_corpus), asking, TrustingReader(), None, UNCOUNTED, 6, SplitRule(SHARES, seed=7))


@pytest.fixture(scope="module")
def path(demo) -> Path:
    made = {question.parent_id for question in demo.rows("questions", Question)}
    return next(
        path
        for path in demo.rows("paths", Path)
        if path.record_id in made and not path.hops[0].clause and path.answer_evidence.link_start < 0
    )


def test_a_question_carries_its_path_as_a_proof(stage, path, demo_corpus):
    (question,) = asyncio.run(stage(path))
    assert question.text == ask([node.title for node in path.nodes[:-1]], path.answer_relation)
    assert (question.parent_id, question.split, question.image) == (path.record_id, path.split, path.image)
    assert (question.proof.corpus, question.proof.nodes, question.proof.hops) == (
        demo_corpus.digest,
        path.nodes,
        path.hops,
    )
    assert (question.proof.constraints, question.proof.counts) == ((), ())


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"answer_text": "", "answer_iso": ""}, "answer-untyped"),
        ({"answer_text": "1066", "answer_iso": "1066", "answer_relation": "established_date"}, "not-derivable"),
        ({"answer_relation": "no_such_key"}, "not-derivable"),
    ],
)
def test_each_reason_is_reached_before_a_model_is_asked(stage, path, change, reason):
    refused = asyncio.run(stage(path.model_copy(update=change)))
    assert (refused.record_id, refused.reason) == (path.record_id, reason)
    assert stage.asking.model.asked == []


def test_a_writer_that_leaves_a_name_out_is_asked_again_and_then_fails_the_record(stage, path):
    names = [node.title for node in path.nodes[:-1]]
    right, wrong = ask(names, path.answer_relation), ask(names[1:], path.answer_relation)
    replies = iter((wrong, right))
    late = replace(stage, asking=make_asking("write_question", lambda inputs: QuestionReply(question=next(replies))))
    (question,) = asyncio.run(late(path))
    assert question.text == right
    assert [request.sample for request in late.asking.model.asked] == [0, 1]
    never = replace(stage, asking=make_asking("write_question", lambda inputs: QuestionReply(question=wrong)))
    with pytest.raises(RecordFailed, match=r"unusable-question: .* does not stand in"):
        asyncio.run(never(path))


def test_the_fingerprint_covers_writer_prompt_and_bound(stage):
    other = make_asking("write_question", lambda inputs: "", identity="fake:2")
    others = [replace(stage, asking=other), replace(stage, max_tokens=5)]
    assert len({each.fingerprint() for each in [stage, *others]}) == 3


def test_a_coarser_answer_is_asked_for_only_where_its_key_is_in_the_split_of_its_path(stage, demo):
    coarse = replace(stage, obfuscated=1.0)
    made = [question for path in demo.rows("paths", Path) for question in ask_for(coarse, path)]
    derived = [question for question in made if question.proof.derivation]
    assert derived
    assert all(stage.splits.place("answer", question.answer.key) == question.split for question in derived)
    assert any(question.answer.precision == "day" for question in made)


def ask_for(stage, path) -> list[Question]:
    try:
        made = asyncio.run(stage(path))
    except RecordFailed:
        return []
    return [] if isinstance(made, Rejection) else list(made)


def test_the_second_request_says_what_was_wrong_and_a_writer_that_mends_it_is_kept(stage, path):
    names = [node.title for node in path.nodes[:-1]]
    right, wrong = ask(names, path.answer_relation), ask(names[1:], path.answer_relation)

    def mend(inputs):
        told = inputs.tried and inputs.tried[0].text == wrong and repr(names[0]) in inputs.tried[0].problem
        return QuestionReply(question=right if told else wrong)

    mending = replace(stage, asking=make_asking("write_question", mend))
    (question,) = asyncio.run(mending(path))
    assert question.text == right
    first, second = mending.asking.model.asked
    assert "tried" not in canonical_json(first.inputs)
    assert "</tried>" not in read_request(mending.asking.model, 0)
    assert f"{names[0]!r} does not stand in" in read_request(mending.asking.model)
    assert second.inputs.model_copy(update={"tried": ()}) == first.inputs


def test_a_writer_learns_where_it_was_misread_and_neither_the_reading_nor_the_last_name(stage, path):
    last = path.nodes[-1].title

    class Misreader(TrustingReader):
        async def check(self, text, proof, answer):
            if text.startswith("So"):
                return None, PASSED
            return None, CheckResult("FAIL", "reading-differs", f"step 1 ('{last}') says secret key, not opened by")

    def mend(inputs):
        return QuestionReply(question=("So: " if inputs.tried else "") + word(inputs))

    mending = replace(stage, asking=make_asking("write_question", mend), reader=Misreader())
    (question,) = asyncio.run(mending(path))
    assert question.text.startswith("So: ")
    (tried,) = mending.asking.model.asked[1].inputs.tried
    assert tried.problem == "a reader understood something else: step 1 ('[…]') does not say opened by"
    assert last not in read_request(mending.asking.model)


def test_a_writer_may_decline_and_the_row_is_refused_with_its_reason(stage, path):
    said = WrittenQuestionReply(question="none", declined="The line does not say how it is reached.")
    declining = replace(stage, asking=make_asking("write_question", lambda inputs: said))
    refused = asyncio.run(declining(path))
    assert (refused.reason, refused.detail) == ("writer-declined", said.declined)
    assert len(declining.asking.model.asked) == 1
