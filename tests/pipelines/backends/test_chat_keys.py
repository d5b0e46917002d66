from dataclasses import asdict, dataclass, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.ids import canonical_json, digest_value
from pipelines.services.clients.recorded import make_chat_key, write_reply
from pipelines.services.protocols import ChatRequest, Message, Sampling, ToolCall
from schemas.tasks import AnswerReply


@dataclass(frozen=True)
class Model:
    """A model's part in a key."""

    identity: str = "model:1"
    reads_inputs: bool = False


MODEL = Model()
REQUEST = ChatRequest("ask", "ask/v1", (Message("user", "Who?", ("a" * 64,)),), AnswerReply(answer="in"))
TEXT = st.text(st.characters(exclude_categories=["Cs"]))
BROKEN = st.text(st.characters())
FINITE = st.floats(allow_nan=False, allow_infinity=False)
TEXTS = st.lists(TEXT, max_size=3).map(tuple)
CALLS = st.lists(st.builds(ToolCall, TEXT, TEXT, TEXT), max_size=2).map(tuple)
MESSAGES = st.builds(Message, st.sampled_from(["system", "user", "assistant", "tool"]), TEXT, TEXTS, CALLS, TEXT)
REQUESTS = st.builds(
    ChatRequest,
    task=TEXT,
    prompt=TEXT,
    messages=st.lists(MESSAGES, max_size=4).map(tuple),
    inputs=st.builds(AnswerReply, answer=TEXT),
    sampling=st.builds(Sampling, FINITE, FINITE, st.integers(1, 10**30), FINITE),
    schema_json=TEXT,
    sample=st.integers(0, 10**30),
    tools=TEXT,
    stop=TEXTS,
)


def digest_plainly(model, request):
    """The key as its definition has it: the digest of the request's canonical JSON, without later parts it lacks."""
    later = {"tools": request.tools, "stop": request.stop}
    return digest_value(
        {
            "identity": model.identity,
            "task": request.task if model.reads_inputs else "",
            "messages": [describe_message(message) for message in request.messages],
            "sampling": {
                name: value for name, value in asdict(request.sampling).items() if name != "presence_penalty" or value
            },
            "schema": request.schema_json,
            "sample": request.sample,
            "inputs": request.inputs.model_dump(mode="json") if model.reads_inputs else None,
            **{name: value for name, value in later.items() if value},
        }
    )


def describe_message(message):
    parts = asdict(message)
    later = {name: parts.pop(name) for name in ("calls", "call_id")}
    return parts | later if any(later.values()) else parts


@given(st.builds(Model, TEXT, st.booleans()), REQUESTS)
def test_a_key_is_the_digest_of_the_whole_request(model, request):
    assert make_chat_key(model, request) == digest_plainly(model, request)


def test_the_keys_of_existing_recordings_stay():
    assert make_chat_key(MODEL, REQUEST) == "8523e81bd5315dd29faa22be0beded97d5e5128f297083df0c93395917630197"
    assert (
        make_chat_key(Model(reads_inputs=True), REQUEST)
        == "523fdaaef15b8a0ae5a34c1536088e7277bbfa584e39662e5e72e91a76b2a7cb"
    )


TURN = replace(
    REQUEST,
    task="act",
    messages=(
        Message("system", "Find out."),
        Message("user", "Who built it?", ("a" * 64,)),
        Message("assistant", "<think>x</think>"),
        Message("user", "<tool_response>\nKelm\n</tool_response>", ("b" * 64,)),
    ),
    sampling=Sampling(0.7, 0.95, 2048),
    sample=3,
)


def test_the_keys_of_recorded_turns_stay():
    # As made before requests had tools, stop texts and a presence penalty, and messages calls.
    assert make_chat_key(MODEL, TURN) == "f8add2497a2a70b29b5feff736d61e33550090410e72fb46bf4e1fd555bf9b9b"
    assert (
        make_chat_key(Model(reads_inputs=True), TURN)
        == "189de86dddfbb7a7c0344d7b58dcc296d3725cf4c1c5a747ac43d6e626c5ba93"
    )


@pytest.mark.parametrize(
    "change",
    [
        {"tools": "[]"},
        {"stop": ("<tool_response>",)},
        {"sampling": Sampling(presence_penalty=1.5)},
        {"messages": (Message("user", "Who?", ("a" * 64,), (ToolCall("1", "crop", "{}"),)),)},
        {"messages": (Message("user", "Who?", ("a" * 64,), call_id="1"),)},
    ],
)
def test_what_requests_came_to_have_later_makes_another_key(change):
    assert make_chat_key(MODEL, replace(REQUEST, **change)) != make_chat_key(MODEL, REQUEST)


@given(BROKEN, BROKEN)
def test_half_a_surrogate_pair_is_a_text_like_any_other(first, second):
    one, two = (replace(REQUEST, messages=(Message("user", text),)) for text in (first, second))
    assert (make_chat_key(MODEL, one) == make_chat_key(MODEL, two)) == (first == second)


@pytest.mark.parametrize("field", ["identity", "schema"])
def test_half_a_surrogate_pair_may_stand_anywhere(field):
    model = Model("\ud800") if field == "identity" else MODEL
    request = replace(REQUEST, schema_json="\ud800") if field == "schema" else REQUEST
    assert make_chat_key(model, request) != make_chat_key(MODEL, REQUEST)


@given(st.lists(TEXT | st.integers(0, 2**53)))
def test_a_reply_is_written_as_canonical_json(value):
    assert write_reply(value) == canonical_json(value)


def test_the_label_of_a_prompt_alone_is_no_new_request():
    assert make_chat_key(MODEL, REQUEST) == make_chat_key(MODEL, replace(REQUEST, prompt="ask/v2"))


@given(TEXT, TEXT)
def test_two_texts_share_a_key_only_when_they_are_the_same(first, second):
    one, two = (replace(REQUEST, messages=(Message("user", text),)) for text in (first, second))
    assert (make_chat_key(MODEL, one) == make_chat_key(MODEL, two)) == (first == second)


@given(TEXT, TEXT)
def test_text_cannot_move_from_one_message_to_the_next(first, second):
    one = replace(REQUEST, messages=(Message("user", first + second), Message("user", "")))
    two = replace(REQUEST, messages=(Message("user", first), Message("user", second)))
    assert (make_chat_key(MODEL, one) == make_chat_key(MODEL, two)) == (second == "")
