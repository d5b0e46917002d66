import asyncio
import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest

from pipelines.errors import ConfigError, RecordFailed, Unavailable
from pipelines.services.clients.chat import OpenAIChat
from pipelines.services.clients.vllm_batch import VllmBatch
from pipelines.services.prompting import make_schema
from pipelines.services.protocols import ChatReply, ChatRequest, Message, Sampling, ToolCall
from schemas.tasks import AnswerReply
from tests.fake_vllm import is_alive, write_fake_vllm

PICTURES = {"a" * 64: (b"\x89PNG first", "image/png")}
REQUEST = ChatRequest(
    "answer_question",
    "answer_question/v1",
    (Message("system", "Be brief."), Message("user", "Who?")),
    AnswerReply(answer="zq-the-truth"),
    Sampling(temperature=0.5, top_p=0.9, max_tokens=64),
    make_schema(AnswerReply),
    sample=3,
)


def ask(text: str) -> ChatRequest:
    return replace(REQUEST, messages=(Message("user", text),))


@pytest.fixture
def make_model(tmp_path):
    python, made = write_fake_vllm(tmp_path), []

    def make(**settings) -> VllmBatch:
        known = {"log": tmp_path / "logs" / "tiny.log", "python": str(python), "read_picture": PICTURES.__getitem__}
        made.append(VllmBatch("tiny", **(known | settings)))
        return made[-1]

    yield make
    for model in made:
        model.close()


def chat(model: VllmBatch, *requests: ChatRequest) -> list:
    """Return the reply to each request, or what it raised."""

    async def ask_all():
        return await asyncio.gather(*map(model.chat, requests), return_exceptions=True)

    return asyncio.run(ask_all())


def test_a_request_reaches_the_engine_as_it_is_and_its_inputs_do_not(make_model):
    (reply,) = chat(make_model(gpus=2.0), REQUEST)
    assert (reply.tokens_in, reply.tokens_out, reply.ended, reply.retries) == (3, 2, "whole", 0)
    assert reply.gpu_seconds > 0
    told = json.loads(reply.text)
    assert told["messages"] == [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Who?"}]
    assert told["sampling"] == [0.5, 0.9, 64]
    assert told["seed"] == 3
    assert told["shape"] == {"json": json.loads(REQUEST.schema_json), "json_object": None}
    assert "zq-the-truth" not in reply.text


def test_a_presence_penalty_and_stop_texts_reach_the_engine(make_model):
    (reply,) = chat(make_model(), replace(REQUEST, sampling=Sampling(presence_penalty=1.5), stop=("</never>",)))
    told = json.loads(reply.text)
    assert (told["presence_penalty"], told["stops"]) == (1.5, 1)


def test_a_reply_ends_before_its_stop_text(make_model):
    (reply,) = chat(make_model(), replace(REQUEST, stop=('"sampling"',)))
    assert reply.text.endswith("}], ")


@pytest.mark.parametrize(
    "change",
    [
        {"tools": "[]"},
        {"messages": (Message("assistant", "x", calls=(ToolCall("1", "crop", "{}"),)),)},
        {"messages": (Message("tool", "x", call_id="1"),)},
    ],
)
def test_native_tool_calls_are_the_configurations_fault(make_model, change):
    (error,) = chat(make_model(), replace(REQUEST, **change))
    assert isinstance(error, ConfigError)
    assert "model tiny: vLLM inside a worker reads no tool calls" in str(error)


def test_the_models_own_defaults_hold_for_what_a_request_leaves_open(make_model):
    (reply,) = chat(make_model(), REQUEST)
    assert json.loads(reply.text)["top_k"] == 20


def test_a_picture_is_sent_before_the_text(make_model):
    (reply,) = chat(make_model(), replace(REQUEST, messages=(Message("user", "Who?", ("a" * 64,)),)))
    (message,) = json.loads(reply.text)["messages"]
    assert [part["type"] for part in message["content"]] == ["image_url", "text"]
    assert message["content"][0]["image_url"]["url"].startswith("data:image/png;base64,")


@pytest.mark.parametrize(
    ("replies", "schema", "shape"),
    [
        ("json", REQUEST.schema_json, {"json": None, "json_object": True}),
        ("text", REQUEST.schema_json, None),
        ("schema", "", None),
    ],
)
def test_a_replys_shape_is_asked_for_as_the_role_says(make_model, replies, schema, shape):
    (reply,) = chat(make_model(replies=replies), replace(REQUEST, schema_json=schema))
    assert json.loads(reply.text)["shape"] == shape


def test_requests_that_wait_together_are_one_batch_and_each_gets_its_own_reply(make_model):
    replies = chat(make_model(), *(ask(f"question {number}") for number in range(40)))
    told = [json.loads(reply.text) for reply in replies]
    assert [one["messages"][0]["content"] for one in told] == [f"question {number}" for number in range(40)]
    assert {one["batch"] for one in told} == {40}


def test_what_comes_while_a_batch_runs_is_the_next_one(make_model):
    model = make_model()

    async def ask_later():
        first = asyncio.create_task(model.chat(ask("slowly")))
        await asyncio.sleep(0.3)
        return await asyncio.gather(first, *(model.chat(ask(f"later {number}")) for number in range(7)))

    chat(model, ask("warm"))
    batches = [json.loads(reply.text)["batch"] for reply in asyncio.run(ask_later())]
    assert batches == [1, *[7] * 7]


def test_two_event_loops_share_one_engine(make_model):
    model = make_model()
    assert [chat(model, ask("one"))[0].ended, chat(model, ask("two"))[0].ended] == ["whole", "whole"]


def test_a_reply_at_the_limit_is_cut(make_model):
    (reply,) = chat(make_model(), replace(REQUEST, sampling=Sampling(max_tokens=1)))
    assert reply.ended == "cut"


def test_a_prompt_that_is_too_long_fails_its_record_and_no_other(make_model):
    long, short = chat(make_model(max_context=200), ask("x" * 300), ask("short"))
    assert isinstance(short, ChatReply)
    assert isinstance(long, RecordFailed)
    assert long.error == "prompt-too-long"


def test_what_the_model_can_do_for_no_record_is_the_configurations_fault(make_model):
    refused, whole = chat(make_model(), ask("refuse me"), ask("short"))
    assert isinstance(whole, ChatReply)
    assert isinstance(refused, ConfigError)
    assert "model tiny: vLLM does not take the request (TypeError: tiny is not a multimodal model)" in str(refused)


def test_a_request_given_up_while_it_waits_is_not_sent(make_model):
    model = make_model()

    async def give_up():
        first = asyncio.create_task(model.chat(ask("slowly")))
        await asyncio.sleep(0.3)
        given_up = asyncio.create_task(model.chat(ask("given up")))
        await asyncio.sleep(0)
        await asyncio.sleep(0.05)
        given_up.cancel()
        return await asyncio.gather(first, given_up, model.chat(ask("last")), return_exceptions=True)

    chat(model, ask("warm"))
    _, given_up, last = asyncio.run(give_up())
    assert isinstance(given_up, asyncio.CancelledError)
    assert json.loads(last.text)["batch"] == 1


# Its end


def test_a_crash_stops_the_run_and_says_what_the_log_says(make_model):
    model = make_model(arguments=("--fake", "crash"))
    first, second = chat(model, ask("crash"), ask("short"))
    (third,) = chat(model, ask("after"))
    for error in (first, second, third):
        assert isinstance(error, Unavailable)
        assert "model tiny: vLLM ended with status 7" in str(error)
        assert "engine core died" in str(error)


def test_a_model_that_cannot_be_loaded_stops_the_run(make_model):
    (error,) = chat(make_model(arguments=("--fake", "die")), REQUEST)
    assert isinstance(error, Unavailable)
    assert "no memory for the model" in str(error)


def test_a_model_that_is_not_ready_in_time_stops_the_run(make_model):
    (error,) = chat(make_model(arguments=("--fake", "hang"), start_seconds=1.0), REQUEST)
    assert isinstance(error, Unavailable)
    assert "was not ready after 1 s" in str(error)


def test_after_its_end_it_answers_nobody(make_model):
    model = make_model()
    chat(model, REQUEST)
    model.close()
    model.close()
    (error,) = chat(model, REQUEST)
    assert isinstance(error, Unavailable)
    assert str(error) == "model tiny: vLLM was ended"


def test_one_that_was_never_asked_starts_nothing(make_model, tmp_path):
    make_model().close()
    assert not (tmp_path / "logs").exists()


def test_ending_it_refuses_what_waits(make_model):
    model = make_model(arguments=("--fake", "hang"))

    async def end_soon():
        waiting = asyncio.create_task(model.chat(REQUEST))
        await asyncio.sleep(0.5)
        await asyncio.to_thread(model.close)
        return await asyncio.gather(waiting, return_exceptions=True)

    (error,) = asyncio.run(end_soon())
    assert isinstance(error, Unavailable)


OWNER = """
import asyncio, json, sys
from pathlib import Path
from pipelines.services.clients.vllm_batch import VllmBatch
from tests.pipelines.backends.test_vllm_batch import REQUEST

model = VllmBatch("tiny", log=Path(sys.argv[1]), python=sys.argv[2])
print(json.loads(asyncio.run(model.chat(REQUEST)).text)["pid"], flush=True)
{end}
"""


@pytest.mark.parametrize(("end", "status"), [("import time; time.sleep(60)", -signal.SIGKILL), ("", 0)])
def test_it_ends_with_whoever_started_it(tmp_path, end, status):
    python = write_fake_vllm(tmp_path)
    command = [sys.executable, "-c", OWNER.format(end=end), str(tmp_path / "tiny.log"), str(python)]
    root = Path(__file__).parents[3]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, cwd=root, env={**os.environ, "PYTHONPATH": str(root)}
    ) as owner:
        child = int(owner.stdout.readline())
        if end:
            assert is_alive(child)
            owner.kill()
        assert owner.wait(20) == status
    wait_until(lambda: not is_alive(child))


IMPATIENT = """
import asyncio, sys
from pathlib import Path
from pipelines.services.clients.vllm_batch import VllmBatch
from tests.pipelines.backends.test_vllm_batch import REQUEST

model = VllmBatch("tiny", log=Path(sys.argv[1]), python=sys.argv[2], arguments=("--fake", "hang"))
asyncio.run(asyncio.wait_for(model.chat(REQUEST), 1.0))
"""


def test_a_model_that_is_being_loaded_keeps_nobody_from_ending(tmp_path):
    python, root = write_fake_vllm(tmp_path), Path(__file__).parents[3]
    command = [sys.executable, "-c", IMPATIENT, str(tmp_path / "tiny.log"), str(python)]
    ended = subprocess.run(
        command, capture_output=True, cwd=root, env={**os.environ, "PYTHONPATH": str(root)}, timeout=60
    )
    assert b"TimeoutError" in ended.stderr


def wait_until(holds, seconds: float = 20.0) -> None:
    end = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.05)


# What is refused before anything starts, and what tells two of them apart


def test_a_python_without_vllm_is_refused(tmp_path):
    with pytest.raises(ConfigError, match=r"models\.ROLE\.serve\.python .*: has no vLLM; name one that has"):
        VllmBatch("tiny", log=tmp_path / "log", python=sys.executable)
    with pytest.raises(ConfigError, match="cannot be run"):
        VllmBatch("tiny", log=tmp_path / "log", python=str(tmp_path / "nobody"))


def test_identity_holds_what_decides_a_reply(make_model):
    plain = make_model(revision="v1")
    assert plain.identity == "vllm@1:tiny:v1"
    assert make_model(revision="v1", replies="text").identity == "vllm@1:tiny:v1:text"
    assert plain.identity != OpenAIChat("tiny", ("http://127.0.0.1:1/v1",), revision="v1").identity
    assert not plain.reads_inputs


def test_without_a_revision_what_is_loaded_and_how_takes_its_place(make_model):
    models = [{}, {"model": "other"}, {"arguments": ("--quantization", "fp8")}, {"max_context": 100}]
    assert len({make_model(**settings).identity for settings in models}) == len(models)
