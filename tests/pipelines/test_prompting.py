import asyncio
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel

from pipelines.errors import ConfigError, RecordFailed
from pipelines.prompting import Asking, Prompt, ask_model, load_prompt, make_schema, parse_reply, render_messages
from schemas.tasks import AnswerReply
from tests.pipelines.stages.players import FakeModel


class Inputs(BaseModel):
    name: str = ""
    secret: str = "zq-secret"


PROMPT = Prompt("ask/v1", "d" * 64, ("name",), "Answer.", "About {{ name }}?")


def make_prompt(user, inputs=("name",), system=""):
    return Prompt("ask/v1", "d" * 64, inputs, system, user)


def ask(replies, images=(), sample=0):
    """Return the reply and the requests of one structured request."""
    turns = iter(replies)
    model = FakeModel(lambda inputs: next(turns))
    reply = asyncio.run(ask_model(Asking(model, PROMPT), Inputs(name="Kelm"), AnswerReply, images, sample))
    return reply, model.asked


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
    "text", ['{"answer": "1204"}', 'Sure! ```json\n{"answer": "1204"}\n``` Done.', '\n\n{"answer":"1204"}']
)
def test_text_around_the_object_is_ignored(text):
    assert parse_reply(text, AnswerReply).answer == "1204"


@pytest.mark.parametrize(
    "text", ["", "1204", '{"answer": ', '{"answer": 1204, "why": "x"}', "{}", '{"answer": null}', "[1]", '{"a": {}} {}']
)
def test_a_reply_without_the_object_is_a_value_error(text):
    with pytest.raises(ValueError, match=r"."):
        parse_reply(text, AnswerReply)


@given(st.text())
def test_no_reply_breaks_the_parser(text):
    with suppress(ValueError):
        assert isinstance(parse_reply(text, AnswerReply), AnswerReply)


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
