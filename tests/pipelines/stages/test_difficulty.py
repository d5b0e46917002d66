import asyncio
from collections import Counter
from dataclasses import dataclass, field, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.backends.protocols import ImageHit
from pipelines.pictures import PictureStore
from pipelines.scoring.agreement import wilson_interval
from pipelines.scoring.compare import compare_answers
from pipelines.stages.difficulty import MeasuredDifficulty, make_oracle
from schemas.base import Rejection
from schemas.difficulty import Difficulty
from schemas.groundings import Grounding
from schemas.proofs import Count
from schemas.tasks import AnswerReply
from tests.pipelines.release.builders import make_picture, make_question
from tests.pipelines.stages.players import make_asking

RIGHT, WRONG, BROKEN = AnswerReply(answer="1201"), AnswerReply(answer="1999"), "no json here"


@dataclass
class FakeImages:
    """One hit; remembers how often it was asked."""

    identity: str = "images:1"
    asked: list = field(default_factory=list)

    async def search_image(self, picture, count):
        self.asked.append(picture.sha256)
        return (ImageHit("https://toy.example/wiki/Kelm", "Kelm Bridge 1", "a bridge", 0.0),)


@pytest.fixture
def question(tmp_path) -> Grounding:
    made = dict(make_question(1, make_picture(tmp_path, 1)))
    made.pop("cells")
    return Grounding(**made)


def make_stage(tmp_path, replies, attempts=4, max_correct=0):
    """Return the stage with a solver whose replies come by condition, one a sample in turn."""
    taken = Counter()

    def reply(inputs):
        said = replies.get(inputs.condition, [WRONG])
        taken[inputs.condition] += 1
        return said[(taken[inputs.condition] - 1) % len(said)]

    solver = make_asking("answer_question", reply)
    return MeasuredDifficulty(solver, FakeImages(), PictureStore(tmp_path / "images"), attempts, max_correct)


def measure(stage, question):
    made = asyncio.run(stage(question))
    return made if isinstance(made, Rejection) else made[0]


def test_a_hard_question_has_a_cell_for_each_condition_in_order_of_cost(tmp_path, question):
    made = measure(make_stage(tmp_path, {}), question)
    assert isinstance(made, Difficulty)
    assert [(c.condition, c.attempts, c.correct, c.unscored) for c in made.cells] == [
        ("text", 4, 0, 0),
        ("image", 4, 0, 0),
        ("image-search", 4, 0, 0),
    ]
    assert (made.record_id, made.text) == (question.record_id, question.text)


def test_cells_carry_the_wilson_interval_of_what_was_scored(tmp_path, question):
    stage = make_stage(tmp_path, {"text": [RIGHT, WRONG, WRONG, WRONG]}, max_correct=1)
    cell = measure(stage, question).cells[0]
    low, high = wilson_interval(1, 4)
    assert (cell.correct, cell.low, cell.high) == (1, round(low, 6), round(high, 6))
    assert (cell.solver, cell.prompt) == ("fake", "answer_question/v1")


@pytest.mark.parametrize(
    ("condition", "reason"),
    [
        ("text", "solved-without-tools"),
        ("image", "solved-without-tools"),
        ("image-search", "solved-by-one-image-search"),
    ],
)
def test_one_right_answer_too_many_refuses_the_question(tmp_path, question, condition, reason):
    refused = measure(make_stage(tmp_path, {condition: [WRONG, RIGHT, WRONG, WRONG]}), question)
    assert refused.reason == reason
    assert f"1 of 4 correct by fake ({condition})" in refused.detail


def test_later_conditions_cost_nothing_once_a_question_is_refused(tmp_path, question):
    stage = make_stage(tmp_path, {"text": [RIGHT]})
    measure(stage, question)
    assert {request.inputs.condition for request in stage.solver.model.asked} == {"text"}
    assert stage.images.asked == []


def test_one_search_serves_all_attempts(tmp_path, question):
    stage = make_stage(tmp_path, {})
    measure(stage, question)
    assert stage.images.asked == [question.picture.sha256]


@pytest.mark.parametrize("condition", ["text", "image", "image-search"])
def test_an_unscored_attempt_never_passes_the_question(tmp_path, question, condition):
    refused = measure(make_stage(tmp_path, {condition: [WRONG, BROKEN, BROKEN, WRONG, WRONG, WRONG]}), question)
    assert refused.reason == "unscored"


def test_an_unscored_attempt_counts_neither_as_wrong_nor_as_right(tmp_path, question):
    # Two broken replies in a row are one attempt: the reply and its repair.
    stage = make_stage(tmp_path, {"text": [BROKEN]}, attempts=2, max_correct=2)
    cell = measure(stage, question).cells[0]
    assert (cell.attempts, cell.correct, cell.unscored, cell.low, cell.high) == (2, 0, 2, 0.0, 1.0)


def test_not_knowing_is_wrong_and_not_unscored(tmp_path, question):
    unknown = [AnswerReply(answer=said) for said in ("unknown", "I don't know", "", "N/A")]
    made = measure(make_stage(tmp_path, {"text": unknown}), question)
    assert (made.cells[0].correct, made.cells[0].unscored) == (0, 0)


def test_only_conditions_with_a_picture_show_it(tmp_path, question):
    stage = make_stage(tmp_path, {})
    measure(stage, question)
    for request in stage.solver.model.asked:
        shown = (question.picture.sha256,) if request.inputs.condition != "text" else ()
        assert request.messages[-1].images == shown
        assert bool(request.inputs.search_results) == (request.inputs.condition == "image-search")


def test_attempts_are_samples_of_their_own(tmp_path, question):
    stage = make_stage(tmp_path, {})
    measure(stage, question)
    samples = [request.sample for request in stage.solver.model.asked if request.inputs.condition == "text"]
    assert sorted(samples) == [0, 1, 2, 3]


def test_a_question_without_a_picture_is_measured_by_its_words(tmp_path, question):
    made = measure(make_stage(tmp_path, {}), question.model_copy(update={"picture": None}))
    assert [cell.condition for cell in made.cells] == ["text"]


@given(st.integers(0, 4), st.integers(0, 4))
def test_a_condition_passes_only_when_even_the_unscored_attempts_could_not_break_the_bound(correct, bound):
    question = Grounding(**{k: v for k, v in dict(make_question_without_picture()).items() if k != "cells"})
    stage = MeasuredDifficulty(
        make_asking("answer_question", make_turns([RIGHT] * correct + [WRONG] * (4 - correct))),
        FakeImages(),
        None,
        4,
        bound,
    )
    assert isinstance(measure(stage, question), Difficulty) == (correct <= bound)


def make_question_without_picture():
    return make_question(1, None)


def make_turns(replies):
    turns = iter(replies)
    return lambda inputs: next(turns)


def test_the_oracle_holds_the_truth_for_scripted_solvers(question):
    oracle = make_oracle(question, [ImageHit("u", "Kelm Bridge 1", "", 0.0)])
    assert oracle.popularity == tuple(node.in_degree for node in question.proof.nodes)
    assert (oracle.alone_count, oracle.seen_titles) == (6, ("Kelm Bridge 1",))


def test_a_guess_of_the_scripted_solver_is_one_of_several_and_mostly_wrong(question):
    oracle = make_oracle(question, [])
    assert len(set(oracle.guesses)) == 3
    assert {compare_answers(guess, question.answer) for guess in oracle.guesses} == {"incorrect"}


def test_a_count_that_stopped_early_does_not_say_that_an_entity_stands_out(question):
    counts = (Count(name="alone", node=1, value=1, capped=True), Count(name="alone", node=2, value=4, capped=False))
    capped = question.model_copy(update={"proof": question.proof.model_copy(update={"counts": counts})})
    assert make_oracle(capped, []).alone_count == 2


def test_the_demo_keeps_no_question_that_was_solved(demo):
    for row in demo.rows("difficulty", Difficulty):
        assert all((cell.correct, cell.unscored) == (0, 0) for cell in row.cells)


def test_the_fingerprint_covers_solver_search_and_bounds(tmp_path):
    stage = make_stage(tmp_path, {})
    others = [
        replace(stage, attempts=5),
        replace(stage, max_correct=1),
        replace(stage, images=FakeImages(identity="images:2")),
        replace(stage, solver=make_asking("answer_question", lambda inputs: WRONG, identity="fake:2")),
    ]
    assert len({each.fingerprint() for each in [stage, *others]}) == 5
