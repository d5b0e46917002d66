"""Chat with a server: what is sent, what a reply means, and what each error stops."""

import asyncio
import base64
import json
import sqlite3
import traceback
from dataclasses import replace

import pytest

from pipelines.config.settings import ModelConfig
from pipelines.errors import ConfigError, RecordFailed, Unavailable
from pipelines.services.clients.chat import (
    LEAST_REPLY_BYTES,
    LONGEST_WAIT,
    TOKEN_BYTES,
    OpenAIChat,
    refuse_picture,
)
from pipelines.services.clients.recorded import RecordedChat
from pipelines.services.clients.replies import open_replies
from pipelines.services.prompting import RoleClient, load_prompt, make_schema
from pipelines.services.protocols import ChatReply, ChatRequest, Message, Sampling, ToolCall
from schemas.tasks import AnswerReply
from tests.pipelines.services.clients.live_servers import Answer, send_to
from tests.pipelines.services.clients.openai_server import Fault, make_completion, make_error, run_chat

KEY = "sk-zq-very-secret"
PICTURES = {"a" * 64: (b"\x89PNG first", "image/png"), "b" * 64: (b"\xff\xd8\xff second", "image/jpeg")}
REQUEST = ChatRequest(
    "answer_question",
    "answer_question/v1",
    (Message("system", "Be brief."), Message("user", "Who?")),
    AnswerReply(answer="zq-the-truth"),
    Sampling(temperature=0.5, top_p=0.9, max_tokens=64),
    make_schema(AnswerReply),
    sample=3,
)


AZURE_POLICY = (
    "The response was filtered due to the prompt triggering Azure OpenAI's content management policy. "
    "Please modify your prompt and retry."
)
VLLM_TOKENS = (
    "'max_tokens' or 'max_completion_tokens' is too large: 8192. This model's maximum context length is 4096 tokens "
    "and your request has 100 input tokens (8192 > 4096 - 100)."
)


def make_model(url: str, **settings) -> OpenAIChat:
    made = {"pause": 0.001, "read_picture": refuse_picture, "patience": 0.0}
    made |= {key: settings.pop(key) for key in ("pause", "read_picture", "patience", "tries") if key in settings}
    # Not validated: a configuration refuses most addresses that are none before a model is made of them.
    config = ModelConfig.model_construct(**{"name": "tiny", "base_url": (url,), "timeout": 5.0} | settings)
    return OpenAIChat(config, **made)


def ask(model: OpenAIChat, request: ChatRequest = REQUEST) -> ChatReply:
    """Return the reply, without the seconds that it took."""
    return replace(asyncio.run(model.chat(request)), seconds=0.0)


def ask_served(*faults, respond=lambda body: "hello", **settings) -> ChatReply:
    """Return the reply of a server that begins with these faults."""
    with run_chat(respond, faults) as server:
        return ask(make_model(server.url, **settings))


# What is sent and what comes back


def test_a_request_is_sent_as_it_is_and_its_inputs_are_not():
    with run_chat(lambda body: '{"answer": "Ana Kovač"}') as server:
        reply = ask(make_model(server.url))
    assert reply == ChatReply('{"answer": "Ana Kovač"}', 11, 7, "whole")
    (request,) = server.requests
    assert request["path"] == "/v1/chat/completions"
    assert request["body"] == {
        "model": "tiny",
        "messages": [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Who?"}],
        "temperature": 0.5,
        "top_p": 0.9,
        "max_tokens": 64,
        "seed": 3,
        "response_format": {
            "type": "json_schema",
            "json_schema": {
                "name": "answer_question",
                "schema": json.loads(make_schema(AnswerReply)),
                "strict": False,
            },
        },
    }


def test_pictures_are_shown_before_the_text_with_their_media_type():
    request = replace(REQUEST, messages=(Message("user", "Who?", ("a" * 64, "b" * 64)),))
    with run_chat() as server:
        ask(make_model(server.url, read_picture=PICTURES.__getitem__), request)
    first, second, text = server.bodies[0]["messages"][0]["content"]
    assert text == {"type": "text", "text": "Who?"}
    for part, (data, media_type) in zip((first, second), PICTURES.values(), strict=True):
        assert part["type"] == "image_url"
        assert part["image_url"]["url"] == f"data:{media_type};base64,{base64.b64encode(data).decode()}"


@pytest.mark.parametrize(
    ("completion", "reply"),
    [
        (make_completion("{", "length"), ChatReply("{", 11, 7, "cut")),
        (make_completion("{}", "abort"), ChatReply("{}", 11, 7, "cut")),
        (make_completion("{}", "content_filter"), ChatReply("{}", 11, 7, "refused")),
        (make_completion(None, refusal="I cannot."), ChatReply("I cannot.", 11, 7, "refused")),
        (make_completion(None), ChatReply("", 11, 7, "whole")),
        (make_completion("x") | {"choices": []}, ChatReply("", 11, 7, "whole")),
        (make_completion("x") | {"usage": None}, ChatReply("x", 0, 0, "whole")),
        (make_completion("half \ud83d pair"), ChatReply("half ? pair", 11, 7, "whole")),
        (make_completion("nul \x00 and \u202e"), ChatReply("nul \x00 and \u202e", 11, 7, "whole")),
    ],
)
def test_how_a_reply_ended_is_kept_with_it(completion, reply):
    assert ask_served(respond=lambda body: completion) == reply


# Native tool calls, and texts that end a reply

TOOLS = '[{"type":"function","function":{"name":"crop","parameters":{"type":"object","properties":{}}}}]'
CALL = {"id": "c1", "type": "function", "function": {"name": "crop", "arguments": '{"image": "img_1"}'}}
NATIVE = replace(
    REQUEST,
    schema_json="",
    tools=TOOLS,
    messages=(
        Message("user", "Who?"),
        Message("assistant", "Closer.", calls=(ToolCall("call00000", "crop", '{"image":"img_1"}'),)),
        Message("tool", "A crop.", call_id="call00000"),
        Message("user", "img_2", ("a" * 64,)),
    ),
)


def test_tools_and_calls_are_sent_as_the_api_has_them():
    with run_chat() as server:
        ask(make_model(server.url, read_picture=PICTURES.__getitem__), NATIVE)
    (body,) = server.bodies
    assert body["tools"] == json.loads(TOOLS)
    assert body["parallel_tool_calls"] is False
    _, said, heard, shown = body["messages"]
    function = {"name": "crop", "arguments": '{"image":"img_1"}'}
    assert said == {
        "role": "assistant",
        "content": "Closer.",
        "tool_calls": [{"id": "call00000", "type": "function", "function": function}],
    }
    assert heard == {"role": "tool", "content": "A crop.", "tool_call_id": "call00000"}
    assert [part["type"] for part in shown["content"]] == ["image_url", "text"]


@pytest.mark.parametrize(
    ("message", "calls", "reasoning"),
    [
        ({"tool_calls": [CALL]}, (ToolCall("c1", "crop", '{"image": "img_1"}'),), ""),
        ({"tool_calls": [CALL, CALL]}, (ToolCall("c1", "crop", '{"image": "img_1"}'),) * 2, ""),
        ({"tool_calls": [CALL], "reasoning": "Hm."}, (ToolCall("c1", "crop", '{"image": "img_1"}'),), "Hm."),
        ({"tool_calls": [{"id": "1"}], "reasoning": {"a": 1}}, (ToolCall("1", "", ""),), ""),
        ({"tool_calls": [{"function": {"name": None, "arguments": {"ä": 1}}}]}, (ToolCall("", "", '{"ä": 1}'),), ""),
        ({"tool_calls": [{"id": "1", "function": {"name": "a\ud83d"}}]}, (ToolCall("1", "a?", ""),), ""),
        ({"tool_calls": None, "reasoning_content": "Hm."}, (), "Hm."),
    ],
)
def test_native_calls_and_the_train_of_thought_come_with_a_whole_reply(message, calls, reasoning):
    with run_chat(lambda body: make_completion(None, "tool_calls", **message)) as server:
        reply = ask(make_model(server.url, read_picture=PICTURES.__getitem__), NATIVE)
    assert reply == ChatReply("", 11, 7, "whole", calls=calls, reasoning=reasoning)


@pytest.mark.parametrize("finish_reason", ["stop", "length", "content_filter"])
def test_a_reply_ends_before_its_stop_text_whatever_the_server_does_with_it(finish_reason):
    request = replace(REQUEST, stop=("<b>", "<a>"))

    def say(text):
        with run_chat(lambda body: make_completion(text, finish_reason)) as server:
            return ask(make_model(server.url), request)

    cut = "cut" if finish_reason == "length" else "refused" if finish_reason == "content_filter" else "whole"
    ended = "whole" if cut == "cut" else cut
    assert (say("call").text, say("call").ended) == ("call", cut)
    assert (say("call<a>").text, say("call<a>").ended) == ("call", ended)
    assert (say("call<a>made up<b>more").text, say("call<a>made up<b>more").ended) == ("call", ended)


def test_half_a_surrogate_pair_is_not_sent():
    said = Message("assistant", "x\ud800 é", calls=(ToolCall("1", "crop", '{"a": "\ud800"}'),))
    with run_chat() as server:
        ask(make_model(server.url), replace(REQUEST, messages=(Message("user", "Who?"), said)))
    message = server.bodies[0]["messages"][1]
    assert (message["content"], message["tool_calls"][0]["function"]["arguments"]) == ("x? é", '{"a": "?"}')


def test_requests_in_flight_keep_to_the_limit_and_no_connection_is_left_open():
    with run_chat() as server:
        model = make_model(server.url, concurrency=3)

        async def ask_often():
            return await asyncio.gather(*(model.chat(replace(REQUEST, sample=sample)) for sample in range(12)))

        for _ in range(2):
            assert len(asyncio.run(ask_often())) == 12
        assert model.session._by_loop == {}
    assert server.most_in_flight <= 3


def test_a_role_may_ask_for_less_than_a_schema():
    for replies, sent in (("json", {"type": "json_object"}), ("text", None)):
        with run_chat() as server:
            model = make_model(server.url, replies=replies)
            ask(model)
            ask(model, replace(REQUEST, schema_json=""))
        assert [body.get("response_format") for body in server.bodies] == [sent, None]
        assert model.identity != make_model(server.url).identity


# Errors


BROKEN = {
    "hung up": Fault(hang_up=True),
    "broken off": Fault(body=b'{"choices"', cut=10),
    "500": Fault(status=500),
    "502": Fault(status=502),
    "503": Fault(status=503),
    "408": Fault(status=408),
    "HTML": Fault(),
    "nothing": Fault(body=b""),
    "nested": Fault(body=b"[" * 100_000),
    "bytes": Fault(body=b"\xff\xfe\xfa"),
    "an error in 200": Fault(body=b'{"error": {"message": "upstream"}}'),
    "another shape": Fault(body=b'{"choices": "none"}'),
    "not packed": Fault(body=b"not gzip", headers={"Content-Encoding": "gzip"}),
}


@pytest.mark.parametrize("name", BROKEN)
def test_what_is_no_whole_reply_is_asked_for_again_and_then_stops_the_run(name):
    fault = BROKEN[name]
    reply = ask_served(fault, fault)
    assert (reply.text, reply.retries) == ("hello", 2)
    with pytest.raises(Unavailable, match=r"model tiny: no address answered for 0 s \(http://.*/v1: .*\); run again"):
        ask_served(respond=lambda body: fault)


def test_a_request_that_alone_gets_no_reply_fails_its_record():
    with run_chat(lambda body: "hello" if body["messages"][-1]["content"] != "Who?" else Fault(500)) as server:
        with pytest.raises(RecordFailed, match=r"no-reply: .*/v1, model tiny: HTTP 500: .*, 4 times; oth"):
            ask(make_model(server.url))
        assert len(server.requests) == 5
        assert server.bodies[-1]["max_tokens"] == 1


def test_a_server_that_is_not_there_stops_the_run():
    with run_chat() as server:
        gone = server.url
    with pytest.raises(Unavailable, match="no connection \\(Connect call failed"):
        ask(make_model(gone))


def test_a_server_that_comes_back_is_asked_again():
    with run_chat() as server:
        model = make_model(server.url, patience=30.0)

        async def ask_while_away():
            asking = asyncio.create_task(model.chat(REQUEST))
            while not model.pool.waiting:
                await asyncio.sleep(0.001)
            return asking

        port = int(server.url.split(":")[2].split("/")[0])

    async def come_back():
        asking = await ask_while_away()
        with run_chat(port=port):
            return await asking

    assert asyncio.run(come_back()).text == "hello"


@pytest.mark.parametrize("drip", [0.01, 1.0])
def test_a_reply_that_drips_is_given_up_after_its_time(drip):
    body = json.dumps(make_completion("hello")).encode()
    with pytest.raises(Unavailable, match=r"no complete reply in 0.1 s"):
        ask_served(respond=lambda asked: Fault(body=body, drip=drip), timeout=0.1, tries=1)


def test_a_reply_may_be_as_long_as_the_tokens_asked_for():
    tokens = 8 * LEAST_REPLY_BYTES // TOKEN_BYTES
    text = "x" * (LEAST_REPLY_BYTES * 7)
    with run_chat(lambda body: text) as server:
        assert ask(make_model(server.url), replace(REQUEST, sampling=Sampling(max_tokens=tokens))).text == text
        with pytest.raises(Unavailable, match="allowed are 1,048,576"):
            ask(make_model(server.url))


def test_a_reply_too_large_fails_its_record_and_is_not_asked_for_again():
    with run_chat(lambda body: "hello" if body["messages"][-1]["content"] != "Who?" else "x" * 2_000_000) as server:
        with pytest.raises(
            RecordFailed, match=r"reply-too-large: .*a reply of 2,000,\d+ bytes; allowed are 1,048,576, 1"
        ):
            ask(make_model(server.url))
        assert [body["max_tokens"] for body in server.bodies] == [64, 1]


@pytest.mark.parametrize(
    "fault",
    [
        make_error(429, Retry_After="0.02"),
        make_error(429, Retry_After_Ms="20"),
        make_error(429, Retry_After="Thu, 01 Jan 2026 00:00:00 GMT"),
        make_error(429),
        make_error(429, "Slow down, or see your billing page for a larger plan."),
        make_error(503, Retry_After="0.02"),
    ],
)
def test_a_service_that_asks_to_slow_down_is_waited_for_and_no_try_is_lost(fault):
    reply = ask_served(fault, fault, fault, tries=1, patience=60.0)
    assert (reply.text, reply.retries) == ("hello", 3)


@pytest.mark.parametrize(
    ("fault", "seconds"),
    [
        (make_error(429, Retry_After="7"), 7.0),
        (make_error(503, Retry_After="7"), 7.0),
        (make_error(429, Retry_After="99999999999999999999"), LONGEST_WAIT),
        (make_error(429, Retry_After="Fri, 31 Dec 2199 23:59:59 GMT"), LONGEST_WAIT),
    ],
)
def test_a_service_is_left_alone_for_as_long_as_it_says_within_reason(fault, seconds):
    with run_chat(faults=[fault]) as server:
        model = make_model(server.url)
        with pytest.raises(Unavailable, match=f"no address answered for 0 s .*HTTP {fault.status}"):
            ask(model)
        assert len(server.requests) == 1
    (endpoint,) = model.pool.endpoints
    now = model.pool.clock()
    assert not endpoint.has_room(now)
    assert seconds - 5.0 < endpoint.away_until - now <= seconds


@pytest.mark.parametrize(
    "fault",
    [
        make_error(429, "You exceeded your current quota, please check your plan and billing details."),
        make_error(429, f"{'x ' * 3000}", "insufficient_quota"),
        make_error(402),
    ],
    ids=["words", "far on", "402"],
)
def test_an_empty_account_stops_the_run_at_once(fault):
    with run_chat(faults=[fault]) as server:
        with pytest.raises(Unavailable, match="nothing left on the account"):
            ask(make_model(server.url))
        assert len(server.requests) == 1


@pytest.mark.parametrize(
    ("fault", "complaint"),
    [
        (
            make_error(404, "The model `tiny` does not exist."),
            "model tiny: rejects the request .HTTP 404.*not exist",
        ),
        (make_error(400, "temperature must be 1"), "temperature must be 1.*see name, base_url, profile"),
        (make_error(400, VLLM_TOKENS), "too large: 8192.*max_tokens and sampling"),
        (make_error(401, "no key"), "rejects the key of no variable; name one as api_key_env"),
        (Answer(404, b"<html>\n<b>nothing\x00 here"), "<html> <b>nothing here"),
        (send_to("http://127.0.0.1:9/"), "HTTP 302"),
    ],
)
def test_what_no_other_record_would_fare_better_with_is_our_mistake(fault, complaint):
    with run_chat(faults=[fault]) as server:
        with pytest.raises(ConfigError, match=complaint):
            ask(make_model(server.url))
        assert len(server.requests) == 1


@pytest.mark.parametrize(
    ("fault", "error"),
    [
        (make_error(400, "This model's maximum context length is 4096 tokens. However"), "prompt-too-long"),
        (make_error(400, "too many", "context_length_exceeded"), "prompt-too-long"),
        (make_error(400, "max_tokens must be at least 1, got -186."), "prompt-too-long"),
        (make_error(413), "prompt-too-long"),
        (make_error(400, "input (5000 tokens) exceeds the Max Model Length"), "prompt-too-long"),
        (make_error(400, f"quoted: {'x ' * 3000}", "context_length_exceeded"), "prompt-too-long"),
        (make_error(400, "filtered", "content_filter"), "prompt-refused"),
        (make_error(400, AZURE_POLICY), "prompt-refused"),
        (make_error(400, "bad", "invalid_image_format"), "picture-refused"),
        (make_error(400, "absolute aspect ratio must be smaller than 200, got 220"), "picture-refused"),
    ],
)
def test_a_prompt_that_is_refused_for_itself_fails_its_record_alone(fault, error):
    with pytest.raises(RecordFailed, match="HTTP 4") as caught:
        ask_served(fault)
    assert caught.value.error == error


# Configuration and secrets


@pytest.mark.parametrize(
    ("urls", "revision", "complaint"),
    [
        *(((url,), "", "is not an address") for url in ("", "127.0.0.1:8000/v1", "ftp://h/v1", "http:///v1")),
        *(((url,), "", "is not an address") for url in ("http://[::1/v1", "http://h:x/v1")),
        *(((f"http://{url}",), "", "is not an address") for url in (f"m:{KEY}@h/v1", f"h?key={KEY}", f"h#{KEY}")),
        (("http://h/v1", "http://k/v1"), "", "several addresses need a revision"),
        (("http://h/v1", "ftp://k/v1"), "r1", "is not an address"),
    ],
)
def test_an_address_that_cannot_be_used_is_refused_and_its_secret_is_not_quoted(urls, revision, complaint):
    with pytest.raises(ConfigError, match=complaint) as caught:
        make_model(urls[0], base_url=urls, revision=revision)
    assert KEY not in str(caught.value)


@pytest.mark.parametrize("value", ["", f"{KEY}\n", f"{KEY}é"])
def test_a_key_that_is_missing_or_no_header_is_refused_without_quoting_it(monkeypatch, value):
    monkeypatch.setenv("ZQ_KEY", value)
    with pytest.raises(ConfigError, match=r"variable ZQ_KEY (is not set|must be printable ASCII)") as caught:
        make_model("http://127.0.0.1:9/v1", api_key_env="ZQ_KEY")
    assert KEY not in str(caught.value)


def test_the_key_is_sent_and_stands_nowhere_else(monkeypatch, tmp_path):
    monkeypatch.setenv("ZQ_KEY", KEY)
    store = open_replies(tmp_path)
    with run_chat() as server:
        model = make_model(server.url, api_key_env="ZQ_KEY", tries=1)
        recorded = RecordedChat(model, store)
        asyncio.run(recorded.chat(REQUEST))
        assert server.requests[0]["headers"]["authorization"] == f"Bearer {KEY}"
        described = RoleClient(recorded, load_prompt("answer_question")).describe("solver")
        shown = [repr(model), model.identity, model.name, described.model_dump_json()]
        for fault in (make_error(401, f"key {KEY}"), make_error(404, KEY), make_error(500, KEY), make_error(429, KEY)):
            server.faults.append(fault)
            with pytest.raises(Exception, match=server.url) as caught:
                asyncio.run(recorded.chat(replace(REQUEST, sample=4)))
            shown += traceback.format_exception(caught.value)
    store.close()
    rows = sqlite3.connect(tmp_path / "replies.db").execute("SELECT * FROM replies").fetchall()
    assert len(rows) == 1
    assert KEY not in "".join([*shown, str(rows)])


@pytest.mark.parametrize("key", [KEY, 'sk/zq"very\\secret'])
@pytest.mark.parametrize(
    "wrap",
    [
        lambda key: key,
        lambda key: f"<html>{key}",
        lambda key: json.dumps({"error": key}),
        lambda key: json.dumps({"choices": key}).replace("/", "\\/"),
        lambda key: " " * ((1 << 18) - 4) + key,
        lambda key: f"{'x' * 55}{key}",
    ],
    ids=["bare", "HTML", "error", "slashes", "at the limit", "at the cut"],
)
@pytest.mark.parametrize("status", [200, 400, 500])
def test_the_key_is_hidden_wherever_a_body_is_quoted(monkeypatch, key, wrap, status):
    monkeypatch.setenv("ZQ_KEY", key)
    with pytest.raises((ConfigError, Unavailable), match="model tiny") as caught:
        ask_served(respond=lambda body: Answer(status, wrap(key).encode()), api_key_env="ZQ_KEY", tries=1)
    shown = "".join(traceback.format_exception(caught.value))
    assert not [form for form in (key, key.replace("/", "\\/"), json.dumps(key)[1:-1], key[:9]) if form in shown]
