"""What a server refuses is learned from its words, once."""

import asyncio
import base64
import json
import threading
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from pipelines.config.profiles import KeyRules, Profile, load_profiles
from pipelines.config.settings import ModelConfig
from pipelines.errors import ConfigError
from pipelines.services.clients.chat import OpenAIChat
from pipelines.services.clients.vendors import SPARED, Vendors, read_refusal
from pipelines.services.protocols import ChatRequest, Message, Sampling
from schemas.tasks import AnswerReply
from tests.hostile_pictures import encode
from tests.pipelines.services.clients.openai_server import make_completion, make_error, run_chat
from tests.pipelines.services.clients.vendors import STRICT, judge_gateway, run_vendor

SCHEMA = '{"type": "object", "properties": {"answer": {"type": "string"}}, "required": ["answer"]}'
TOOLS = '[{"type":"function","function":{"name":"crop","parameters":{"type":"object","properties":{}}}}]'
PLAIN = ChatRequest(
    "answer",
    "answer/v1",
    (Message("system", "Reply with JSON."), Message("user", "Who?")),
    AnswerReply(answer="in"),
    Sampling(temperature=0.7, top_p=0.9, max_tokens=64, presence_penalty=0.5),
    SCHEMA,
)
STOPPED = replace(PLAIN, schema_json="", stop=("<end>",), sample=1)
NATIVE = replace(PLAIN, schema_json="", tools=TOOLS, sample=2)
REFUSED = {
    "openai": {"max_tokens", "temperature", "top_p", "presence_penalty", "stop"},
    "azure": {"max_tokens", "temperature", "top_p", "presence_penalty", "stop", "parallel_tool_calls"},
    "anthropic": {"temperature+top_p"},
    "gemini": {"seed", "presence_penalty"},
    "openrouter": {"temperature+top_p"},
    "deepseek": set(),
    "vllm": set(),
    "sglang": set(),
}
"""What each strict server refuses of the three requests, sent without a profile."""
HEADERS = {"azure": ("api-key", "k-1")}


def make_model(server, vendors, **settings):
    config = ModelConfig(**{"name": "tiny", "base_url": server.url, "timeout": 5.0} | settings)
    return OpenAIChat(config, vendors=vendors, patience=0.0)


def ask_all(model, count=8):
    """Ask each kind of request many times at once."""

    async def ask():
        requests = [replace(request, sample=n) for request in (PLAIN, STOPPED, NATIVE) for n in range(count)]
        return await asyncio.gather(*(model.chat(request) for request in requests))

    return asyncio.run(ask())


@pytest.mark.parametrize("vendor", STRICT)
def test_every_vendor_is_learned_without_a_profile_and_no_key_is_refused_twice(vendor, tmp_path):
    path = tmp_path / "vendors.json"
    # DeepSeek's refusal of schemas is no refusal of a key: a reply without one is another reply.
    forced = {"replies": "json"} if vendor == "deepseek" else {}
    with run_vendor(STRICT[vendor]) as server:
        assert len(ask_all(make_model(server, Vendors(path), **forced))) == 24
        assert (len(server.refused), {*server.refused}) == (len(REFUSED[vendor]), REFUSED[vendor])
        # A second process knows from the file.
        ask_all(make_model(server, Vendors(path), **forced))
        assert len(server.refused) == len(REFUSED[vendor])


@pytest.mark.parametrize("vendor", STRICT)
def test_a_profile_knows_all_but_what_a_model_alone_refuses(vendor, monkeypatch):
    monkeypatch.setenv("VENDOR_KEY", "k-1")
    with run_vendor(STRICT[vendor], wanted_header=HEADERS.get(vendor, ("authorization", "Bearer k-1"))) as server:
        ask_all(make_model(server, Vendors(), profile=vendor, api_key_env="VENDOR_KEY"))
        assert server.refused == (["parallel_tool_calls"] if vendor == "azure" else [])


def test_every_profile_has_a_strict_server():
    assert {*load_profiles()} == {*STRICT}


def test_what_a_gateway_forbids_all_at_once_is_learned_at_once():
    with run_vendor(judge_gateway) as server:
        model = make_model(server, Vendors(), replies="text")
        asyncio.run(model.chat(PLAIN))
        assert server.refused == ["presence_penalty", "seed", "top_p"]
        asyncio.run(model.chat(STOPPED))
        assert server.refused[3:] == ["stop"]
        with pytest.raises(ConfigError, match="tools"):
            asyncio.run(model.chat(NATIVE))


ERRORS = {
    "OpenAI, a value": (
        {"error": {"message": "Unsupported value: 'temperature' does not support 0.5 with this model. Only the default "
                   "(1) value is supported.", "param": "temperature", "code": "unsupported_value"}},
        KeyRules(drop=("temperature",)),
    ),
    "OpenAI, code alone": (
        {"error": {"message": "Not so.", "param": "seed", "code": "unsupported_parameter"}}, KeyRules(drop=("seed",)),
    ),
    "Azure, old": ({"error": {"message": "Unrecognized request argument supplied: seed"}}, KeyRules(drop=("seed",))),
    "the other way round": (
        {"error": {"message": "Unknown parameter: 'max_completion_tokens'."}},
        KeyRules(rename={"max_completion_tokens": "max_tokens"}),
    ),
    "deprecated": (
        {"error": {"message": "`temperature` is deprecated for this model."}}, KeyRules(drop=("temperature",)),
    ),
    "pydantic in a string": (
        {"message": "[{'type': 'extra_forbidden', 'loc': ('body', 'seed'), 'msg': 'Extra inputs are not permitted'}]"},
        KeyRules(drop=("seed",)),
    ),
    "plain text": ("seed: Extra inputs are not permitted", KeyRules(drop=("seed",))),
    "Python": ("create() got an unexpected keyword argument 'top_p'", KeyRules(drop=("top_p",))),
    # About something else.
    "a bound": ({"error": {"message": "temperature must be at most 1", "param": "temperature"}}, KeyRules()),
    "a length": ({"error": {"message": "'max_tokens' or 'max_completion_tokens' is too large: 8192."}}, KeyRules()),
    "a schema": ({"error": {"message": "'response_format' of type json_schema is not supported."}}, KeyRules()),
    "tools": ({"error": {"message": "Unsupported parameter: 'tools'.", "param": "tools",
                         "code": "unsupported_parameter"}}, KeyRules()),
    "a tool's schema": (
        {"error": {"message": "Invalid JSON payload received. Unknown name \"seed\" at 'tools[0].parameters': Cannot "
                   "find field."}}, KeyRules(),
    ),
    "another key": ({"error": {"message": "Unknown parameter: 'top_k'."}}, KeyRules()),
    "a quoted request": (
        {"detail": [{"loc": ["body", "model"], "msg": "bad", "input": "seed: Extra inputs are not permitted"}]},
        KeyRules(),
    ),
    "deep": ("[" * 100_000, KeyRules()),
}  # fmt: skip
SENT = frozenset(
    ["temperature", "top_p", "seed", "max_tokens", "max_completion_tokens", "response_format", "tools", "model"]
)


@pytest.mark.parametrize("name", ERRORS)
def test_a_refusal_of_a_key_is_told_from_every_other_error(name):
    said, rules = ERRORS[name]
    assert read_refusal(said if isinstance(said, str) else json.dumps(said), SENT) == rules


def ask_once(server, request=PLAIN, vendors=None, **settings):
    return asyncio.run(make_model(server, vendors or Vendors(), **settings).chat(request))


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"replies": "schema"}, "type json_schema is not supported"),
        ({"extra_body": {"top_k": 5}}, "Unknown parameter: 'top_k'"),
        ({"extra_body": {"seed": 5}}, "Unknown parameter: 'seed'"),
        (
            {"extra_body": {"reasoning_effort": "minimal"}},
            "Unsupported value: 'reasoning_effort' does not support 'minimal'",
        ),
    ],
)
def test_what_the_user_words_and_what_changes_a_reply_stays_an_error_in_the_vendors_words(settings, words):
    with run_chat(lambda body: make_error(400, f"{words}.")) as server:
        with pytest.raises(ConfigError, match=words):
            ask_once(server, **settings)
        assert len(server.requests) == 1


def test_a_server_that_takes_a_length_under_no_name_is_an_error():
    def refuse(body):
        key = next(key for key in ("max_tokens", "max_completion_tokens") if key in body)
        return make_error(400, f"Unknown parameter: '{key}'.")

    with run_chat(refuse) as server:
        with pytest.raises(ConfigError, match="max_completion_tokens"):
            ask_once(server)
        assert len(server.requests) == 2


def test_only_what_is_set_is_sent():
    with run_chat() as server:
        ask_once(server, replace(PLAIN, sampling=Sampling(), schema_json=""))
        ask_once(server, replace(PLAIN, sampling=Sampling(temperature=0.0), schema_json="", sample=4))
        ask_once(server, replace(PLAIN, sampling=Sampling(), schema_json=""), profile="vllm")
    bare = {"model", "messages"}
    assert [{*body} for body in server.bodies] == [bare, {*bare, "temperature", "seed"}, {*bare, "max_tokens"}]


def test_what_the_user_adds_is_sent_as_it_is_and_secrets_come_from_variables(monkeypatch, tmp_path):
    monkeypatch.setenv("VENDOR_SECRET", "s3cret")
    added = {
        "extra_body": {"top_k": 5, "chat_template_kwargs": {"enable_thinking": False}, "reasoning_effort": "low"},
        "headers": {"X-Title": "synth", "X-Gateway": "env:VENDOR_SECRET"},
    }
    with run_chat() as server:
        model = make_model(server, Vendors(), **added)
        asyncio.run(model.chat(PLAIN))
        (request,) = server.requests
    assert {key: request["body"][key] for key in added["extra_body"]} == added["extra_body"]
    assert (request["headers"]["x-title"], request["headers"]["x-gateway"]) == ("synth", "s3cret")
    assert "s3cret" not in repr(model) + model.identity
    with run_chat(lambda body: make_error(400, "seed: Extra inputs are not permitted, s3cret, s3cret")) as server:
        vendors = Vendors(tmp_path / "vendors.json")
        with pytest.raises(ConfigError, match=r"\.\.\., \.\.\.") as caught:
            ask_once(server, STOPPED, vendors, **added)
        assert "s3cret" not in str(caught.value) + vendors.path.read_text()
    monkeypatch.delenv("VENDOR_SECRET")
    with pytest.raises(ConfigError, match="variable VENDOR_SECRET is not set"):
        make_model(server, Vendors(), **added)


def test_what_decides_a_reply_is_part_of_the_identity_and_what_does_not_is_none():
    def name(**settings):
        return OpenAIChat(ModelConfig(name="tiny", base_url="http://h/v1", **settings)).identity

    plain = name()
    deciding = [
        {"profile": "openai"},
        {"profile": "vllm"},
        {"extra_body": {"top_k": 5}},
        {"headers": {"X-Model": "b"}},
    ]
    names = [name(**settings) for settings in deciding]
    assert len({plain, *names}) == len(deciding) + 1
    assert plain == name(extra_body={"top_p": 0.9}) == name(replies="schema")
    assert name(profile="deepseek") == name(profile="deepseek", replies="json")


def test_what_a_request_begins_with_is_named_where_the_vendor_keeps_it():
    turns = (*PLAIN.messages, Message("assistant", "So."), Message("user", "Well?"))
    with run_chat() as server:
        for request in (PLAIN, replace(PLAIN, stop=("x",), messages=turns), replace(PLAIN, stop=("x",))):
            ask_once(server, request, profile="openai")
    first, turn, begun = (body["prompt_cache_key"] for body in server.bodies)
    assert (first, turn) == ("answer/v1", begun)
    assert turn != first


def test_a_thought_that_a_reply_begins_with_is_kept_apart():
    with run_chat(lambda body: "\n<think>Hm, <b>.</think>\n\n{}") as server:
        reply = ask_once(server)
        said = ask_once(server, STOPPED)
    assert (reply.text, reply.reasoning) == ("{}", "Hm, <b>.")
    # In the text protocol of an agent the thought is a part of the turn.
    assert said.text.startswith("\n<think>")
    with run_chat(lambda body: make_completion("{}", reasoning="Hm.")) as server:
        assert (ask_once(server).text, ask_once(server).reasoning) == ("{}", "Hm.")
    with run_chat(lambda body: "<think>without end {}") as server:
        assert ask_once(server).text == "<think>without end {}"


def test_a_file_that_is_not_ours_is_an_error(tmp_path):
    path = tmp_path / "vendors.json"
    path.write_text('{"a": {"rules": 3}}')
    with pytest.raises(ConfigError, match=r"vendors\.json: is damaged"):
        Vendors(path).find("http://h/v1", "tiny")


def test_a_picture_is_scaled_down_where_the_vendor_takes_no_larger_one(monkeypatch):
    noise = encode(Image.effect_noise((300, 200), 90).convert("RGB"), "PNG")
    request = replace(PLAIN, messages=(Message("user", "Who?", ("a" * 64,)),))

    def show(profile):
        with run_chat() as server:
            config = ModelConfig(name="tiny", base_url=server.url, profile=profile)
            asyncio.run(OpenAIChat(config, lambda sha256: (noise, "image/png")).chat(request))
        return server.bodies[0]["messages"][0]["content"][0]["image_url"]["url"]

    monkeypatch.setitem(load_profiles(), "anthropic", Profile(picture_bytes=3000))
    assert show("") == f"data:image/png;base64,{base64.b64encode(noise).decode()}"
    few = show("anthropic")
    assert few.startswith("data:image/jpeg;base64,")
    assert len(base64.b64decode(few.partition(",")[2])) <= 3000


def test_a_first_request_that_takes_long_holds_others_up_for_a_moment_only(monkeypatch):
    monkeypatch.setattr("pipelines.services.clients.vendors.TRIAL_SECONDS", 0.05)
    slow = threading.Event()

    def respond(body):
        if "first" in json.dumps(body["messages"]):
            assert slow.wait(20.0)
        return "hello"

    async def ask(model):
        first = replace(PLAIN, messages=(Message("user", "first"),))
        waiting = asyncio.create_task(model.chat(first))
        while not server.asked:
            await asyncio.sleep(0.001)
        said = await model.chat(PLAIN)
        done = waiting.done()
        slow.set()
        return said.text, done, (await waiting).text

    with run_chat(respond) as server:
        assert asyncio.run(ask(make_model(server, Vendors(), timeout=30.0))) == ("hello", False, "hello")


WORDINGS = (
    "Unsupported parameter: '{}' is not supported with this model.",
    'Unknown name "{}": Cannot find field.',
    "Unrecognized request argument supplied: {}",
    "`{}` is deprecated for this model.",
    "UnsupportedParamsError: bedrock does not support parameters: ['{}'], for model=tiny",
    "{}: Extra inputs are not permitted",
    "unknown field `{}`, expected one of `model`, `messages`",
)


@given(st.sampled_from(WORDINGS), st.sampled_from(SPARED), st.sets(st.sampled_from(SPARED)), st.text(max_size=40))
def test_in_every_wording_the_key_that_is_named_is_refused_and_no_other(wording, key, others, noise):
    sent = frozenset({key, *others, "model", "messages"})
    for text in (wording.format(key), json.dumps({"error": {"message": wording.format(key), "user": "u"}})):
        assert read_refusal(text, sent) == KeyRules(drop=(key,))
        assert read_refusal(text, sent - {key}) == KeyRules()
    # Whatever else is said, nothing is refused that was not sent.
    found = read_refusal(noise, sent)
    assert {*found.drop} <= sent
    assert {*found.rename} <= sent
