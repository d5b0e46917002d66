"""Requests to servers that `serve-model` starts, by the adapter that a run uses."""

import asyncio
import io
import json
from dataclasses import replace

import pytest
from PIL import Image

from pipelines.config.settings import ModelConfig
from pipelines.errors import ConfigError, RecordFailed
from pipelines.pictures import PictureSource
from pipelines.services.clients.chat import OpenAIChat
from pipelines.services.prompting import make_schema
from pipelines.services.protocols import ChatReply, ChatRequest, Message, Sampling
from schemas.tasks import AnswerReply
from tests.vllm.conftest import CONTEXT

SCHEMA = make_schema(AnswerReply)
CHOICE = json.dumps({
    "type": "object",
    "properties": {
        "verdict": {"enum": ["correct", "incorrect"]},
        "score": {"type": "integer", "minimum": 0, "maximum": 9},
    },
    "required": ["verdict", "score"],
    "additionalProperties": False,
})  # fmt: skip
REQUEST = ChatRequest(
    "answer_question",
    "answer_question/v2",
    (Message("system", "Answer in one word."), Message("user", "Who built the bridge?")),
    AnswerReply(answer="nobody"),
    Sampling(temperature=0.7, max_tokens=160),
    SCHEMA,
)


def show(*images: str, text: str = "Who built the bridge?") -> ChatRequest:
    return replace(REQUEST, messages=(Message("system", "Answer in one word."), Message("user", text, images)))


@pytest.fixture(scope="module")
def shown(pictures) -> list[str]:
    """Three pictures in the store."""
    source = PictureSource("toy.png", "nobody", "CC0", "https://licence.example/", "https://toy.example/")
    found = []
    for number in range(3):
        out = io.BytesIO()
        Image.effect_noise((600 + 40 * number, 520), 50.0 + number).save(out, "PNG")
        found.append(pictures.add_bytes(out.getvalue(), source).sha256)
    return found


@pytest.fixture(scope="module")
def make_chat(config, servers, pictures):
    def make(role: str, **changed) -> OpenAIChat:
        known = {"name": config.models[role].name, "base_url": servers[role].address}
        return OpenAIChat(ModelConfig(**(known | changed)), pictures.load)

    return make


def ask(model: OpenAIChat, *requests: ChatRequest) -> list:
    async def ask_all():
        return await asyncio.gather(*map(model.chat, requests), return_exceptions=True)

    return asyncio.run(ask_all())


def test_a_text_request_is_answered_and_its_tokens_counted(make_chat):
    (reply,) = ask(make_chat("judge"), replace(REQUEST, schema_json=""))
    assert isinstance(reply, ChatReply), reply
    assert reply.tokens_in > len("Who built the bridge?")
    assert reply.tokens_out >= 1


@pytest.mark.parametrize("role", ["solver", "judge"])
def test_a_schema_is_obeyed_even_by_random_weights(make_chat, role):
    requests = [replace(REQUEST, schema_json=CHOICE, sample=sample) for sample in range(8)]
    for reply in ask(make_chat(role), *requests):
        said = json.loads(reply.text)
        assert said["verdict"] in ("correct", "incorrect")
        assert 0 <= said["score"] <= 9


def test_without_a_schema_random_weights_say_no_json(make_chat):
    replies = ask(make_chat("solver", replies="text"), *(replace(REQUEST, sample=sample) for sample in range(8)))
    assert not any(reply.text.startswith("{") for reply in replies)


def test_any_json_object_is_asked_for_where_the_role_says_so(make_chat):
    (reply,) = ask(make_chat("judge", replies="json"), REQUEST)
    assert reply.text.lstrip().startswith("{")


def test_one_seed_says_one_thing_and_another_seed_another(make_chat):
    requests = [replace(REQUEST, sample=sample) for sample in (0, 0, *range(1, 12))]
    first, again, *others = [reply.text for reply in ask(make_chat("judge"), *requests)]
    assert first == again
    assert len({first, *others}) > 1


def test_pictures_are_seen_and_counted(make_chat, shown):
    replies = ask(make_chat("solver"), show(), show(shown[0]), show(*shown[:2]))
    tokens = [reply.tokens_in for reply in replies]
    assert tokens[0] < tokens[1] < tokens[2]


def test_more_pictures_than_the_server_takes_are_refused(make_chat, shown):
    (error,) = ask(make_chat("solver"), show(*shown))
    assert isinstance(error, ConfigError | RecordFailed)
    assert "image" in str(error)


def test_a_picture_to_a_model_that_sees_none_is_the_configurations_fault(make_chat, shown):
    (error,) = ask(make_chat("judge"), show(shown[0]))
    assert isinstance(error, ConfigError)
    assert "not a multimodal model" in str(error)


def test_a_wrong_model_name_is_the_configurations_fault(make_chat):
    (error,) = ask(make_chat("judge", name="nobody"), REQUEST)
    assert isinstance(error, ConfigError)
    assert "nobody" in str(error)


def test_a_prompt_that_is_too_long_fails_its_record_alone(make_chat):
    long, short = ask(make_chat("judge"), show(text="x" * (CONTEXT + 1)), REQUEST)
    assert isinstance(long, RecordFailed)
    assert long.error == "prompt-too-long"
    assert isinstance(short, ChatReply)


def test_a_long_prefix_that_requests_share_is_read_once(make_chat, metrics):
    prefix = "The rules of this quiz are as follows. " * 40
    hits = metrics["judge"].read("prefix_cache_hits_total")
    chat = make_chat("judge")
    ask(chat, show(text=prefix + "first"))
    ask(chat, *(show(text=f"{prefix}question {number}") for number in range(8)))
    assert metrics["judge"].read("prefix_cache_hits_total") - hits >= 8 * len(prefix) / 2
