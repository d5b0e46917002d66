"""Difficulty by the solver's own choice of searches: what it did when it was right is the label."""

import asyncio
from dataclasses import dataclass, field

import pytest

from pipelines.agent.dialects import find_dialect
from pipelines.agent.judging import Jury, UnscoredWatch
from pipelines.agent.transcript import Turn, render_turn
from pipelines.checks.verdicts import PASSED, CheckResult
from pipelines.config.settings import DifficultyConfig
from pipelines.errors import RecordFailed
from pipelines.services.protocols import ChatReply
from pipelines.stages.choices import ChosenSearches
from pipelines.stages.rollouts import make_oracle
from schemas.base import Rejection
from schemas.datasets import Grounding
from tests.pipelines.agent.trail import make_agent, make_picture, make_question, make_tools

R1 = find_dialect("mmsearch-r1")
LOOK = render_turn(Turn("Look it up.", "image_search", '{"image":"img_1"}'), R1)
READ = render_turn(Turn("Read of it.", "text_search", '{"query":"Marlow"}'), R1)
WAYS = {"free": (), "image": (LOOK,), "text": (READ,), "both": (LOOK, READ)}


def answer(text):
    return render_turn(Turn("So.", answer=text), R1)


@dataclass
class Chooser:
    """Takes a way for each attempt, ``image right``, and says so in its turns."""

    ways: tuple[str, ...]
    name: str = "chooser"
    identity: str = "chooser:1"
    reads_inputs: bool = True
    asked: list = field(default_factory=list)

    async def chat(self, request):
        number = request.inputs.oracle.attempt
        way, _, end = self.ways[number].partition(" ")
        self.asked.append(number)
        if end == "failed":
            raise RecordFailed("no-reply", "nothing")
        said = {"right": answer("5 April 1204"), "broken": "I think so."}
        lines = (*WAYS[way], said.get(end) or answer({"unknown": "unknown"}.get(end, "5 April 1300")))
        return ChatReply(lines[sum(message.role == "assistant" for message in request.messages)], 1, 1)


def measure(folder, ways, contest=None, watch=None, at_once=False, **changes):
    model = Chooser(tuple(ways))
    agent = make_agent(model, make_tools(folder), R1, calls=2)
    config = DifficultyConfig(**({"preset": "fvqa", "attempts": len(ways)} | changes))
    stage = ChosenSearches(
        agent, Jury(()), config, make_oracle, watch or UnscoredWatch(1.0, 1), contest, at_once=at_once
    )
    question = make_question(make_picture(folder))
    row = Grounding(**{name: getattr(question, name) for name in Grounding.model_fields})
    made = asyncio.run(stage(row))
    return (made if isinstance(made, Rejection) else made[0]), model


@pytest.mark.parametrize(
    ("ways", "need"),
    [
        (["image wrong", "free right"], "search-free"), (["free wrong", "image right"], "image"),
        (["free wrong", "text right", "both right"], "text"), (["image wrong", "both right"], "mixed"),
        (["both right", "image right"], "image"), (["free broken", "text right"], "text"),
        (["free unknown", "text right"], "text"),
    ],
)  # fmt: skip
def test_the_label_is_what_was_searched_when_it_was_right(tmp_path, ways, need):
    made, _ = measure(tmp_path, ways)
    assert (made.search_need, made.standing) == (need, "solved")


def test_cells_record_what_was_searched_and_how_often_that_was_right(tmp_path):
    made, _ = measure(tmp_path, ["image right", "both wrong", "image wrong", "text right", "text unknown"])
    assert [(cell.condition, cell.attempts, cell.correct) for cell in made.cells] == [
        ("image+image-search", 2, 1), ("image+text-search", 2, 1), ("image+both", 1, 0),
    ]  # fmt: skip
    assert made.tools == ("fake-text", "fake-images")


@pytest.mark.parametrize("at_once", [True, False])
def test_an_early_stop_saves_what_cannot_change_the_label(tmp_path, at_once):
    ways = ["image right", "free wrong", "free right", "both wrong", "both wrong"]
    made, model = measure(tmp_path, ways, at_once=at_once, contest=lambda *asked: CheckResult("UNKNOWN"))
    # The last two give the same wrong answer, after the label is settled: they decide nothing.
    assert made.search_need == "search-free"
    assert len(set(model.asked)) == (5 if at_once else 3)


def test_a_wrong_answer_given_twice_is_held_against_the_corpus(tmp_path):
    ways = ["free wrong", "free wrong", "image right"]
    refused, _ = measure(tmp_path, ways, contest=lambda *asked: CheckResult("FAIL", "", "it fits"))
    assert refused.reason == "alternative-answer"
    kept, _ = measure(tmp_path, ways, contest=lambda *asked: PASSED)
    assert [(other.text, other.times) for other in kept.alternatives] == [("5 April 1300", 2)]


def test_a_solver_that_searches_beyond_its_rounds_has_no_answer(tmp_path):
    made, _ = measure(tmp_path, ["both right", "both right"], attempts=1)
    assert made.search_need == "mixed"
    model = Chooser(("both right",))
    agent = make_agent(model, make_tools(tmp_path), R1, calls=1)
    stage = ChosenSearches(agent, Jury(()), DifficultyConfig(attempts=1), make_oracle, UnscoredWatch(1.0, 1))
    question = make_question(make_picture(tmp_path))
    row = Grounding(**{name: getattr(question, name) for name in Grounding.model_fields})
    assert asyncio.run(stage(row)).reason == "never-solved"
