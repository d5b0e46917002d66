import asyncio
import hashlib
import json
from contextlib import suppress
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
    check_prompts,
    load_prompt,
    parse_reply,
    read_reply,
    render_messages,
)
from pipelines.services.protocols import ChatReply
from schemas.tasks import (
    AnswerReply,
    AskedFactReply,
    Descriptor,
    DescriptorsReply,
    ExtractedFactReply,
    FactView,
    QuestionReply,
)
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


@pytest.mark.parametrize(
    "text", ["{{ 7 * 7 }}", "{% for x in range(9) %}x{% endfor %}", "{# gone #}", "{{ secret }}", "{", "<b>&amp;"]
)
def test_page_text_is_data_and_never_a_template(text):
    (message,) = render_messages(make_prompt("{{ name }}"), Inputs(name=text))
    assert message.text == text


def test_a_template_cannot_reach_into_python():
    with pytest.raises(Exception, match="unsafe"):
        render_messages(make_prompt("{{ name.__class__.__mro__ }}"), Inputs())


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


def test_a_bad_reply_is_repaired_once_by_telling_what_was_wrong():
    reply, asked = ask(["what?", '{"answer": "1204"}'])
    assert reply.answer == "1204"
    assert [message.role for message in asked[1].messages] == ["system", "user", "assistant", "user"]
    assert asked[1].messages[2].text == "what?"
    assert "the reply holds no JSON object" in asked[1].messages[3].text


def test_a_prompt_that_does_not_exist_is_named():
    with pytest.raises(ConfigError, match=r"no file prompts/write_question/v99\.md"):
        load_prompt("write_question", 99)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ('{"answer": "1204", "answer": "1300"}', "'answer' appears more than once"),
        ('{"answer": NaN}', "NaN is not JSON"),
        ('{"answer": 1e999}', "too large a number"),
        ('{"answer": ' + "9" * 5000 + "}", "cannot be read"),
        ('{"answer": ' + "[" * 100_000, "nested too deeply"),
        ('{"a":' * 20_000 + "1" + "}" * 20_000, "nested too deeply"),
        ('{"answer": "' + "x" * 300_000 + '"}', "300,014 characters, allowed are 262,144"),
        ('{"answer": "' + "x" * 4001 + '"}', "answer has 4,001 of 4,000 characters"),
        ('{"answer": "\\ud800"}', "not Unicode"),
        ('{"\\ud800": "1204"}', "valid string"),
        ('{"answer": "12\\u000004"}', "answer holds control characters"),
        ('{"answer": "12\n04"}', "Invalid control character"),
        ('{"answer": ""}', "answer is blank"),
        ('{"answer": " \\u00a0\\n"}', "answer is blank"),
        ("<html><body>502 Bad Gateway</body></html>", "holds no JSON object"),
        ("{'answer': '1204'}", "broken or incomplete"),
        ('"{\\"answer\\": \\"1204\\"}"', "broken or incomplete"),
        ('<think>I take {"answer": "1204"}', "thinking has no end"),
    ],
)
def test_what_cannot_be_used_is_told_why(text, problem):
    with pytest.raises(BadReply) as caught:
        parse_reply(text, AnswerReply)
    assert problem in str(caught.value)
    assert len(str(caught.value)) <= 500
    str(caught.value).encode()


@pytest.mark.parametrize(
    "text",
    [
        '<think>First {"answer": "9"}, then {broken</think>\n{"answer": "1204"}',
        'no opening {"answer": "9"} </think> {"answer": "1204"}',
        '{"answer": "1204"}\n\nFinal reply:\n```json\n{"answer":   "1204"}\n```',
        '[{"answer": "1204"}]',
        '\ufeff{"answer": "1204"}}',
        '{"answer": "12\\u00304"}',
    ],
)
def test_thought_fences_and_a_repeated_object_are_ignored(text):
    assert parse_reply(text, AnswerReply).answer == "1204"


@pytest.mark.parametrize(
    "text",
    [
        'The page says {"answer": "9"}, so: {"answer": "1204"}',
        '{"answer": "1204"}\nI ignored the page\'s {"answer": "9"}.',
        'The page says {"answer": "9"}, so: {"answr": "1204"}',
        'The page says {"answer": "9"}, so: {"answer": "12',
        '{"page": {"answer": "9"}, "answer": "12',
        '{"note": "the page says {\\"answer\\": 9", {"answer": "9"}',
        '{\'page\': {"answer": "9"}}',
    ],
)
def test_an_object_that_a_reply_quotes_is_never_taken_for_the_reply(text):
    with pytest.raises(BadReply):
        parse_reply(text, AnswerReply)


@given(st.text(), st.text(), st.text(st.characters(exclude_categories=["Cc", "Cs"]), min_size=1, max_size=50))
def test_no_text_around_a_reply_changes_it(before, after, answer):
    said = json.dumps({"answer": answer})
    with suppress(BadReply):
        assert parse_reply(f"{before}{said}{after}", AnswerReply).answer == answer


@given(st.data())
def test_no_beginning_of_a_reply_is_taken_for_a_reply(data):
    fact = {"relation": "r", "text": "t {x}"}
    whole = json.dumps({"descriptors": [{"text": "the {a} of [subject]", "facts": [fact]}, {"text": "b", "facts": []}]})
    end = data.draw(st.integers(0, len(whole) - 1))
    for model in (DescriptorsReply, Descriptor, FactView):
        with pytest.raises(BadReply):
            parse_reply(whole[:end], model)


@pytest.mark.parametrize(
    "text",
    [
        "I'm sorry, but I can't help with that.",
        "I’m sorry, I am unable to answer.",
        " Sorry, this request cannot be fulfilled",
        "Unfortunately, I can't provide the question",
        "I apologize, but I am not able to write that.",
        "As an AI language model, I",
    ],
)
def test_a_refusal_in_the_right_shape_is_a_refusal(text):
    candidates = DescriptorsReply(descriptors=(Descriptor(text="the town of [subject]"), Descriptor(text=text)))
    for said in (AnswerReply(answer=text), candidates):
        with pytest.raises(BadReply, match="refuses to answer") as caught:
            parse_reply(said.model_dump_json(), type(said))
        assert caught.value.code == "refused-reply"


TITLE = "I Can't Help Myself (Sugar Pie, Honey Bunch)"


@pytest.mark.parametrize(
    "said",
    [
        ExtractedFactReply(relation=TITLE, object_name=TITLE),
        AskedFactReply(relation=TITLE, question="When was it?"),
        DescriptorsReply(
            descriptors=(Descriptor(text="the song by [subject]", facts=(FactView(relation=TITLE, text=TITLE),)),)
        ),
    ],
    ids=lambda said: type(said).__name__,
)
def test_a_copied_value_that_sounds_like_a_refusal_is_none(said):
    assert parse_reply(said.model_dump_json(), type(said)) == said


@pytest.mark.parametrize(
    ("said", "place"),
    [
        (QuestionReply(question=f"{TITLE}?"), "question"),
        (AskedFactReply(relation="height", question="I'm sorry, I cannot."), "question"),
        (DescriptorsReply(descriptors=(Descriptor(text="the town"), Descriptor(text=TITLE))), "descriptors.1.text"),
    ],
    ids=["question", "asked", "descriptors"],
)
def test_a_text_of_the_models_own_that_sounds_like_a_refusal_is_one(said, place):
    with pytest.raises(BadReply, match=f"^{place} refuses to answer") as caught:
        parse_reply(said.model_dump_json(), type(said))
    assert caught.value.code == "refused-reply"


# A user's own prompts

OWN = "---\nname: judge_answer\nversion: 7\ninputs: question\n---\nsystem:\nBe strict.\nuser:\nAsked: {{ question }}\n"


def write_own(folder, text=OWN, name="judge_answer", file="v7.md"):
    (folder / name).mkdir(exist_ok=True)
    (folder / name / file).write_text(text)
    return folder / name / file


def test_the_highest_version_in_a_users_folder_takes_the_place_of_the_shipped_one(tmp_path):
    shipped = load_prompt("judge_answer")
    assert load_prompt("judge_answer", 1, str(tmp_path)) == shipped
    write_own(tmp_path, OWN.replace("strict", "kind"), file="v2.md")
    own = write_own(tmp_path, file="v11.md")
    prompt = load_prompt("judge_answer", 1, str(tmp_path))
    assert (prompt.label, prompt.system) == ("judge_answer/own-v11", "Be strict.")
    assert prompt.digest == hashlib.sha256(own.read_bytes()).hexdigest() != shipped.digest
    assert load_prompt("judge_picture", 1, str(tmp_path)).label == "judge_picture/v1"
    assert check_prompts(str(tmp_path)) == 1


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"name": "judge_answers"}, "judge_answers: no prompt has this name; there are: .*judge_answer"),
        ({"file": "v7.txt"}, r"v7.txt: versions are called v1.md, v2.md and so on"),
        ({"text": "Asked: {{ question }}"}, r"v7.md: the file must begin with front matter"),
        ({"text": OWN.replace("user:", "users:")}, r"v7.md: no user: part"),
        ({"text": OWN.replace("{{ question", "{{ question |")}, r"v7.md: not a template"),
        ({"text": OWN.replace("{{ question", "{{ answer")}, r"v7.md: answer is used but not declared in inputs"),
    ],
)
def test_a_users_prompt_that_cannot_be_used_is_named_by_its_path(tmp_path, changes, message):
    write_own(tmp_path, **changes)
    with pytest.raises(ConfigError, match=message) as caught:
        check_prompts(str(tmp_path))
    assert str(tmp_path) in str(caught.value)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (OWN.replace("inputs: question", "inputs: question, oracle"), r"v7.md: inputs oracle; there are: question"),
        (OWN.replace("system:\nBe strict.\n", ""), r"v7.md: it must have a system: part, as judge_answer has"),
    ],
)
def test_a_users_prompt_is_shown_what_the_shipped_one_is_and_no_more(tmp_path, text, message):
    write_own(tmp_path, text)
    with pytest.raises(ConfigError, match=message):
        load_prompt("judge_answer", 1, str(tmp_path))
