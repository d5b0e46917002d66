"""A row of any dialect verifies as it was accepted, however its observations write what the row points at."""

import asyncio
from dataclasses import replace

import pytest

from pipelines.agent.dialects import DIALECTS, SYNTH, find_dialect, render_system
from pipelines.agent.loop import run_rollout
from pipelines.release.making import Example, RowMaker, make_proof_row
from pipelines.release.verify import find_transcript_problems
from pipelines.stages.rollouts import make_oracle
from pipelines.stages.trajectories import Trajectories
from pipelines.toy.teacher import ScriptedTeacher, Vices
from schemas.datasets import ReleaseEntry
from tests.pipelines.agent.trail import make_agent, make_picture, make_question, make_tools

WORDS = "It opened on the fifth day, April 5th, 1204, near Ana Kovac and 1.5 km of 3.25 during 1931."


@pytest.fixture
def make(tmp_path):
    """Return the proof and the row of an accepted attempt in a dialect."""
    question = make_question(make_picture(tmp_path / "images"))

    def make_in(name, attempt=0):
        dialect, teacher = find_dialect(name), ScriptedTeacher("teacher", Vices(crop_first=0.5))
        agent = replace(
            make_agent(teacher, make_tools(tmp_path / "images")), dialect=dialect, prompt=dialect.load_prompt()
        )
        rollout = asyncio.run(run_rollout(agent, question, make_oracle(question, attempt)))
        (accepted,) = asyncio.run(Trajectories()(rollout))
        entry = ReleaseEntry(
            record_id="entry-1",
            parent_id=question.record_id,
            dataset="sft",
            split="train",
            trajectory_id=accepted.record_id,
        )
        example = Example(entry, question, accepted)
        system = render_system(SYNTH, agent.tools.describe(), 30) if dialect.native else ""
        return make_proof_row(example), RowMaker(tmp_path, agent.offered, system).make_row(example, 0)

    return make_in


@pytest.mark.parametrize("dialect", DIALECTS)
def test_an_accepted_row_has_no_problem_in_any_dialect(make, dialect):
    for attempt in range(3):
        proof, row = make(dialect, attempt)
        assert list(find_transcript_problems(proof, row)) == []
    response = find_dialect(row.dialect).response
    users = [message.content for message in row.messages if message.role == "user"]
    assert all(f"<{response}>\n" in user and user.endswith(f"\n</{response}>") for user in users[1:])


def tell(row, text):
    """Return a row whose first tool says something else."""
    messages = list(row.messages)
    messages[3] = messages[3].model_copy(update={"content": f"<tool_response>\n{text}\n</tool_response>"})
    return row.model_copy(update={"messages": tuple(messages), "images": row.images[:1]})


@pytest.mark.parametrize("text", ["error: disk full, says the sign.", "error: none\n", "warning: bridge closed\n5 May"])
def test_a_page_that_begins_as_an_error_does_is_trained_on(make, text):
    proof, row = make("synth")
    problems = find_transcript_problems(proof, tell(row, text))
    assert not [problem for problem in problems if problem.startswith("loss")]


@pytest.mark.parametrize("error", ["tool-failed", "unknown-page"])
def test_a_call_that_failed_is_not_trained_on_and_shows_nothing(make, error):
    proof, row = make("synth")
    problems = find_transcript_problems(proof, tell(row, f"error: {error}\n{WORDS}"))
    assert any(problem.startswith("loss: ") for problem in problems)
