import json
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.services.prompting import BadReply, parse_reply
from schemas.tasks import (
    AnswerReply,
    AskedFactReply,
    Descriptor,
    DescriptorsReply,
    ExtractedFactReply,
    FactView,
    QuestionReply,
    SelectedEntityReply,
)


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


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ('{"answer": "1204", "answer": "1300"}', "'answer' stands in it more than once"),
        ('{"answer": "1204", "answer": "1204"}', "more than once"),
        ('{"answer": NaN}', "NaN is no JSON"),
        ('{"answer": -Infinity}', "-Infinity is no JSON"),
        ('{"answer": 1e999}', "too large a number"),
        ('{"answer": ' + "9" * 5000 + "}", "cannot be read"),
        ('{"answer": ' + "[" * 100_000, "nested too deeply"),
        ('{"a":' * 20_000 + "1" + "}" * 20_000, "nested too deeply"),
        ('{"answer": "' + "x" * 300_000 + '"}', "300,014 characters, allowed are 262,144"),
        ('{"answer": "' + "x" * 4001 + '"}', "answer has 4,001 of 4,000 characters"),
        ('{"answer": "\\ud800"}', "no text"),
        ('{"\\ud800": "1204"}', "valid string"),
        ('{"answer": "12\\u000004"}', "answer holds control characters"),
        ('{"answer": "12\\u001b[2J04"}', "answer holds control characters"),
        ('{"answer": "12\n04"}', "Invalid control character"),
        ('{"answer": ""}', "answer is blank"),
        ('{"answer": " \\u00a0\\n"}', "answer is blank"),
        ("<html><body>502 Bad Gateway</body></html>", "holds no JSON object"),
        ("I'm sorry, but I can't help with that.", "holds no JSON object"),
        ("{'answer': '1204'}", "broken or incomplete"),
        ("{answer: 1204}", "broken or incomplete"),
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


@given(st.text(alphabet='{}[]":,\\ answer\n<think>/x19\ud800', max_size=60))
def test_no_reply_of_json_crumbs_breaks_the_parser(text):
    with suppress(BadReply):
        assert isinstance(parse_reply(text, AnswerReply), AnswerReply)


@given(st.text())
def test_no_reply_breaks_the_parser(text):
    with suppress(BadReply):
        assert isinstance(parse_reply(text, AnswerReply), AnswerReply)


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
        "I cannot assist with that request.",
        "Unfortunately, I can't provide the question",
        "I apologize, but I am not able to write that.",
        "As an AI language model, I",
    ],
)
def test_a_refusal_in_the_right_shape_is_a_refusal(text):
    for said, model in (
        (AnswerReply(answer=text), AnswerReply),
        (
            DescriptorsReply(descriptors=(Descriptor(text="the town of [subject]"), Descriptor(text=text))),
            DescriptorsReply,
        ),
    ):
        with pytest.raises(BadReply, match="refuses to answer") as caught:
            parse_reply(said.model_dump_json(), model)
        assert caught.value.code == "refused-reply"


@pytest.mark.parametrize(
    "text",
    [
        "I'm Sorry",
        "Sorry",
        "I Can't Get No",
        "I, Robot",
        "Who wrote the song I'm sorry I cannot?",
        "unknown",
        "As an aid",
    ],
)
def test_a_title_that_sounds_like_a_refusal_is_none(text):
    assert parse_reply(AnswerReply(answer=text).model_dump_json(), AnswerReply).answer == text


TITLE = "I Can't Help Myself (Sugar Pie, Honey Bunch)"


@pytest.mark.parametrize(
    "said",
    [
        SelectedEntityReply(entity=TITLE),
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


def test_a_blank_candidate_spoils_no_others():
    reply = parse_reply('{"descriptors": [{"text": " "}, {"text": "the architect of [subject]"}]}', DescriptorsReply)
    assert [descriptor.text for descriptor in reply.descriptors] == [" ", "the architect of [subject]"]
