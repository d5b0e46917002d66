"""What a profile makes of a request, and what a role's own settings add to it."""

import asyncio
import base64
from dataclasses import replace

import pytest
from PIL import Image

from pipelines.config.profiles import Profile, load_profiles
from pipelines.config.settings import ModelConfig
from pipelines.errors import ConfigError
from pipelines.services.clients.chat import OpenAIChat
from pipelines.services.protocols import ChatRequest, Message, Sampling
from schemas.tasks import AnswerReply
from tests.hostile_pictures import encode
from tests.pipelines.services.clients.openai_server import make_completion, make_error, run_chat
from tests.pipelines.services.clients.vendors import STRICT, run_vendor

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
HEADERS = {"azure": ("api-key", "k-1")}


def make_model(server, **settings):
    config = ModelConfig(**{"name": "tiny", "base_url": server.url, "timeout": 5.0} | settings)
    return OpenAIChat(config, patience=0.0)


def ask_all(model, count=8):
    """Ask each kind of request many times at once."""

    async def ask():
        requests = [replace(request, sample=n) for request in (PLAIN, STOPPED, NATIVE) for n in range(count)]
        return await asyncio.gather(*(model.chat(request) for request in requests))

    return asyncio.run(ask())


def ask_once(server, request=PLAIN, **settings):
    return asyncio.run(make_model(server, **settings).chat(request))


@pytest.mark.parametrize("vendor", STRICT)
def test_a_profile_knows_all_that_its_server_refuses(vendor, monkeypatch):
    monkeypatch.setenv("VENDOR_KEY", "k-1")
    with run_vendor(STRICT[vendor], wanted_header=HEADERS.get(vendor, ("authorization", "Bearer k-1"))) as server:
        ask_all(make_model(server, profile=vendor, api_key_env="VENDOR_KEY"))
        assert server.refused == []


def test_every_profile_has_a_strict_server():
    assert {*load_profiles()} == {*STRICT}


def test_only_what_is_set_is_sent():
    with run_chat() as server:
        ask_once(server, replace(PLAIN, sampling=Sampling(), schema_json=""))
        ask_once(server, replace(PLAIN, sampling=Sampling(temperature=0.0), schema_json="", sample=4))
        ask_once(server, replace(PLAIN, sampling=Sampling(), schema_json=""), profile="vllm")
    bare = {"model", "messages"}
    assert [{*body} for body in server.bodies] == [bare, {*bare, "temperature", "seed"}, {*bare, "max_tokens"}]


def test_what_the_user_adds_is_sent_as_it_is_and_secrets_come_from_variables(monkeypatch):
    monkeypatch.setenv("VENDOR_SECRET", "s3cret")
    added = {
        "extra_body": {"top_k": 5, "chat_template_kwargs": {"enable_thinking": False}, "reasoning_effort": "low"},
        "headers": {"X-Title": "synth", "X-Gateway": "env:VENDOR_SECRET"},
    }
    with run_chat() as server:
        model = make_model(server, **added)
        asyncio.run(model.chat(PLAIN))
        (request,) = server.requests
    assert {key: request["body"][key] for key in added["extra_body"]} == added["extra_body"]
    assert (request["headers"]["x-title"], request["headers"]["x-gateway"]) == ("synth", "s3cret")
    assert "s3cret" not in repr(model) + model.identity
    with run_chat(lambda body: make_error(400, "seed: Extra inputs are not permitted, s3cret")) as server:
        with pytest.raises(ConfigError, match=r"permitted, \.\.\.") as caught:
            ask_once(server, STOPPED, **added)
        assert "s3cret" not in str(caught.value)
    monkeypatch.delenv("VENDOR_SECRET")
    with pytest.raises(ConfigError, match="variable VENDOR_SECRET is not set"):
        make_model(server, **added)


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
