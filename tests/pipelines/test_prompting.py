import asyncio
from dataclasses import dataclass, field

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel

from pipelines.errors import ConfigError, RecordFailed
from pipelines.services.prompting import (
    BadReply,
    Prompt,
    RoleClient,
    ask_model,
    ask_on_day,
    load_prompt,
    make_schema,
    read_reply,
    render_messages,
)
from pipelines.services.protocols import ChatReply
from schemas.tasks import AnswerReply
from tests.pipelines.stages.players import FakeModel


class Inputs(BaseModel):
    name: str = ""
    secret: str = "zq-secret"


PROMPT = Prompt("ask/v1", "d" * 64, ("name",), "Answer.", "About {{ name }}?")


def make_prompt(user, inputs=("name",), system=""):
    return Prompt("ask/v1", "d" * 64, inputs, system, user)


@dataclass
class FixedModel:
    """Gives its replies in order."""

    replies: list[ChatReply]
    name: str = "fixed"
    identity: str = "fixed:1"
    reads_inputs: bool = False
    asked: list = field(default_factory=list)

    async def chat(self, request):
        self.asked.append(request)
        return self.replies[len(self.asked) - 1]


def ask(replies, images=(), sample=0):
    """Return the reply and the requests of one structured request."""
    turns = iter(replies)
    model = FakeModel(lambda inputs: next(turns))
    reply = asyncio.run(ask_model(RoleClient(model, PROMPT), Inputs(name="Kelm"), AnswerReply, images, sample))
    return reply, model.asked


def test_a_reply_comes_with_the_day_on_which_it_was_first_given():
    said = [ChatReply("no json", 1, 1, day="2026-11-20"), ChatReply('{"answer": "1201"}', 1, 1, day="2026-11-22")]
    asked = ask_on_day(RoleClient(FixedModel(said), PROMPT), Inputs(name="Kelm"), AnswerReply)
    assert asyncio.run(asked) == (AnswerReply(answer="1201"), "2026-11-22")


def test_only_declared_fields_reach_the_text():
    (system, user) = render_messages(PROMPT, Inputs(name="Kelm"))
    assert (system.role, system.text) == ("system", "Answer.")
    assert (user.role, user.text, user.images) == ("user", "About Kelm?", ())


def test_a_field_that_is_not_declared_cannot_be_used():
    with pytest.raises(Exception, match="'secret' is undefined"):
        render_messages(make_prompt("{{ secret }}"), Inputs())


def test_a_declared_field_that_the_inputs_lack_is_our_mistake():
    with pytest.raises(ConfigError, match=r"declares \['page'\]; Inputs has no such field"):
        render_messages(make_prompt("{{ page }}", inputs=("page",)), Inputs())


@pytest.mark.parametrize(
    "text", ["{{ 7 * 7 }}", "{% for x in range(9) %}x{% endfor %}", "{# gone #}", "{{ secret }}", "{", "<b>&amp;"]
)
def test_page_text_is_data_and_never_a_template(text):
    (message,) = render_messages(make_prompt("{{ name }}"), Inputs(name=text))
    assert message.text == text


@given(st.text())
def test_page_text_of_any_kind_enters_as_it_is(text):
    (message,) = render_messages(make_prompt("[{{ name }}]"), Inputs(name=text))
    assert message.text == f"[{text}]"


def test_a_template_cannot_reach_into_python():
    with pytest.raises(Exception, match="unsafe"):
        render_messages(make_prompt("{{ name.__class__.__mro__ }}"), Inputs())


def test_pictures_are_shown_with_the_user_message():
    messages = render_messages(PROMPT, Inputs(), ["a" * 64])
    assert [message.images for message in messages] == [(), ("a" * 64,)]


@pytest.mark.parametrize(
    ("said", "code"),
    [
        (ChatReply('{"answer": "1204"}', 1, 1, "cut"), "cut-reply"),
        (ChatReply('{"answer": "1204"}', 1, 1, "refused"), "refused-reply"),
        (ChatReply(" \n", 1, 1), "empty-reply"),
        (ChatReply('{"answer": " "}', 1, 1), "empty-reply"),
        (ChatReply("what?", 1, 1), "unparseable-reply"),
    ],
)
def test_a_cut_refused_or_empty_reply_is_repaired_once_and_then_fails_its_record_by_its_name(said, code):
    with pytest.raises(BadReply) as caught:
        read_reply(said, AnswerReply)
    assert caught.value.code == code
    model = FixedModel([said, said])
    with pytest.raises(RecordFailed) as failed:
        asyncio.run(ask_model(RoleClient(model, PROMPT), Inputs(name="Kelm"), AnswerReply))
    assert failed.value.error == code
    repaired = FixedModel([said, ChatReply('{"answer": "1300"}', 1, 1)])
    assert asyncio.run(ask_model(RoleClient(repaired, PROMPT), Inputs(name="Kelm"), AnswerReply)).answer == "1300"
    assert len(model.asked) == len(repaired.asked) == 2


def test_a_failed_record_says_what_was_wrong_both_times():
    with pytest.raises(RecordFailed, match="is empty; before that: the reply holds no JSON object"):
        ask(["what?", ""])


@pytest.mark.parametrize("text", ["", " ", "\ud800", "x" * 1_000_000])
def test_what_is_said_again_in_a_repair_is_some_text_and_short(text):
    _, asked = ask([text, '{"answer": "1204"}'])
    echo = asked[1].messages[2].text
    assert 0 < len(echo.encode()) <= 4000


def test_a_good_reply_is_asked_for_once():
    reply, asked = ask(['{"answer": "1204"}'], images=["a" * 64], sample=3)
    assert reply.answer == "1204"
    (request,) = asked
    assert (request.task, request.prompt, request.sample) == ("ask", "ask/v1", 3)
    assert request.schema_json == make_schema(AnswerReply)


def test_a_bad_reply_is_repaired_once_by_telling_what_was_wrong():
    reply, asked = ask(["what?", '{"answer": "1204"}'])
    assert reply.answer == "1204"
    assert [message.role for message in asked[1].messages] == ["system", "user", "assistant", "user"]
    assert asked[1].messages[2].text == "what?"
    assert "the reply holds no JSON object" in asked[1].messages[3].text


def test_a_second_bad_reply_fails_the_record_and_nothing_else():
    with pytest.raises(RecordFailed, match="ask/v1 on fake") as caught:
        ask(["what?", '{"anser": "1204"}'])
    assert caught.value.error == "unparseable-reply"


def test_a_prompt_that_does_not_exist_is_named():
    with pytest.raises(ConfigError, match=r"no file prompts/write_question/v99\.md"):
        load_prompt("write_question", 99)


def test_a_loaded_prompt_has_its_label_digest_and_inputs():
    prompt = load_prompt("answer_question")
    assert (prompt.label, len(prompt.digest)) == ("answer_question/v1", 64)
    assert prompt.inputs == ("question", "condition", "search_results")
    assert prompt.system
    assert prompt.user
