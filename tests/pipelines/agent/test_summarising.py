import asyncio
from dataclasses import dataclass, field

import pytest

from pipelines.agent.observations import LONGEST, MOST_READ, TASK, Summariser
from pipelines.errors import RecordFailed
from pipelines.services.prompting import RoleClient, load_prompt
from pipelines.services.protocols import ChatReply, ChatRequest
from pipelines.toy.writer import TemplatesModel

FACT = "The mill of Kelm burned down on 3 May 1871, and Ana Kovač had it built anew."
PAGE = "\n\n".join(["Kelm is a town on the Ister.", *["It has streets, roofs and rain."] * 60, FACT])
GOAL = "When did the mill burn down? Confirm: in Velm, in 1866."
GOOD = "Kelm is a town on the Ister. Its mill burned down on 3 May 1871, and Ana Kovač had it built anew."


@dataclass(frozen=True)
class Says:
    """A model with one reply, or one failure."""

    reply: ChatReply | Exception
    name: str = "says"
    identity: str = "says@1"
    reads_inputs: bool = False
    requests: list[ChatRequest] = field(default_factory=list)

    async def chat(self, request: ChatRequest) -> ChatReply:
        self.requests.append(request)
        if isinstance(self.reply, Exception):
            raise self.reply
        return self.reply


def make_summariser(reply) -> Summariser:
    model = Says(ChatReply(reply, 1, 1)) if isinstance(reply, str) else Says(reply)
    return Summariser(RoleClient(model, load_prompt("summarise_page")))


def summarise(reply, text=PAGE, limit=300):
    return asyncio.run(make_summariser(reply).summarise(GOAL, "Kelm", text, limit))


def test_a_summary_is_shown_without_the_thought_before_it():
    for reply in (GOOD, f"<think>Okay, the user wants 99 things.</think>\n{GOOD}", f"Okay.</think>{GOOD}\n"):
        summary = summarise(reply)
        assert (summary.text, summary.whole, summary.problem) == (GOOD, True, "")


@pytest.mark.parametrize(
    ("reply", "problem"),
    [
        ("", "0 characters"),
        ("word " * LONGEST, "characters, expected"),
        ("I'm sorry, but the page is too long.", "a refusal"),
        ("<think> Okay, let's see. The user wants", "tags"),
        ("Kelm is a town.<|im_end|>", "tags"),
        ("The mill of Kelm burned down in 1872.", "the number 1872 is not on the page"),
        ("The mill was built anew by Jonas Ferrow.", "the name Jonas is not on the page"),
        (ChatReply(GOOD, 1, 1, "cut"), "cut reply"),
        (RecordFailed("prompt-too-long", "too many tokens"), "prompt-too-long"),
    ],
)
def test_what_is_no_summary_falls_back_to_the_passages_that_fit(reply, problem):
    summary = summarise(reply)
    assert summary.text.startswith(FACT)
    assert len(summary.text) <= 300
    assert not summary.whole
    assert problem in summary.problem


def test_the_model_is_shown_the_goal_and_what_fits_it_without_markup():
    summariser = make_summariser(GOOD)
    long = "<image>" + "Rain falls on roofs.\n\n" * 5000 + FACT
    asyncio.run(summariser.summarise(GOAL, "Kelm", long))
    (request,) = summariser.asking.model.requests
    assert (request.task, request.prompt) == (TASK, "summarise_page/v1") == ("summarise", "summarise_page/v1")
    assert request.inputs.goal == GOAL
    assert request.inputs.text.startswith("Rain falls on roofs.")
    assert request.inputs.text.endswith(FACT)
    assert len(request.inputs.text) <= MOST_READ
    assert "<image>" not in request.messages[-1].text


def test_templates_sum_up_a_page_with_its_own_sentences():
    summariser = Summariser(RoleClient(TemplatesModel(), load_prompt("summarise_page")))
    summary = asyncio.run(summariser.summarise(GOAL, "Kelm", PAGE))
    assert summary.whole
    assert summary.text.startswith("About Kelm:\n")
    assert summary.text.endswith(FACT)
