"""Batches: what is sent, what becomes of each line, and what is found again after a kill."""

import asyncio
import json
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipelines.config.settings import ModelConfig
from pipelines.errors import ConfigError, CorruptInput, RecordFailed, Unavailable
from pipelines.services.clients.batch import BatchChat, Pace, read_batch_note
from pipelines.services.clients.chat import OpenAIChat
from pipelines.services.clients.recorded import RecordedChat, make_chat_key
from pipelines.services.clients.replies import open_replies
from pipelines.services.metering import Price, open_meter
from pipelines.services.protocols import ChatRequest, Message
from schemas.base import Nested
from tests.mock_batches import BatchMock, Plan, serve_batches
from tests.pipelines.services.clients.live_servers import FAULTS, LiveServer, run_handler, say


class Asked(Nested):
    """What a request was made from."""


def make_request(number):
    return ChatRequest("t", "t/v1", (Message("user", f"number {number}"),), Asked())


ALL = {"pace": {"rows": 8}}
REQUESTS = [make_request(number) for number in range(8)]


def make_chat(mock, folder, recorded=(), said=None, **more):
    pace = Pace(**{"rows": 4, "wait": 0.05, "poll": 0.02, "patience": 20.0} | more.pop("pace", {}))
    config = ModelConfig(**{"name": "mock", "base_url": mock.url, "mode": "batch"} | more)
    chat = BatchChat(config, folder / "batches", lambda key: key in recorded, pace=pace)
    return chat if said is None else replace(chat, say=said)


@contextmanager
def opened(mock, folder, **more):
    with serve_batches(mock):
        chat = make_chat(mock, folder, **more)
        try:
            yield chat
        finally:
            chat.close()


async def ask_all(chat, requests=REQUESTS):
    return await asyncio.gather(*map(chat.chat, requests), return_exceptions=True)


def run(mock, folder, **more):
    """Ask for all requests at once and return what each came to."""
    with opened(mock, folder, **more) as chat:
        return asyncio.run(ask_all(chat))


def ask_until(chat, reached):
    """Ask for everything; drop it all, as a kill does, once something is reached."""

    async def work():
        asking = asyncio.create_task(ask_all(chat))
        while not reached():
            await asyncio.sleep(0.005)
        asking.cancel()

    asyncio.run(work())
    chat.close()


def list_notes(folder):
    return [read_batch_note(path) for path in sorted((folder / "batches").glob("*.json"))]


def test_replies_in_a_batch_are_those_of_live_requests(tmp_path):
    mock = BatchMock(0.02)
    with opened(mock, tmp_path) as chat:
        live = OpenAIChat(ModelConfig(name="mock", base_url=mock.url))
        batched, other = asyncio.run(ask_all(chat)), asyncio.run(ask_all(live))
    assert chat.identity == live.identity
    assert [reply.text for reply in batched] == [reply.text for reply in other]
    assert [(reply.tokens_in, reply.tokens_out) for reply in batched] == [(11, 7)] * 8
    assert (mock.counts["batches"], mock.counts["paid"]) == (2, 8)
    assert not list(tmp_path.glob("batches/*.jsonl"))


def test_a_line_has_the_four_parts_that_openai_and_vllm_read(tmp_path):
    mock = BatchMock(0.02)
    assert len(run(mock, tmp_path, pace={"rows": 100})) == 8
    lines = [json.loads(line) for line in mock.files["file-0"].splitlines()]
    chat = make_chat(mock, tmp_path)
    assert [set(line) for line in lines] == [{"custom_id", "method", "url", "body"}] * 8
    assert {line["custom_id"] for line in lines} == {make_chat_key(chat, request) for request in REQUESTS}
    assert {(line["method"], line["url"]) for line in lines} == {("POST", "/v1/chat/completions")}
    assert [line["body"]["messages"][0]["content"] for line in lines] == [f"number {number}" for number in range(8)]
    assert all(line["body"]["model"] == "mock" for line in lines)


def test_what_does_not_fill_a_batch_is_sent_after_the_wait(tmp_path):
    mock = BatchMock(0.02)
    replies = run(mock, tmp_path, pace={"rows": 5})
    assert all(reply.text for reply in replies)
    assert sorted(data.count(b"custom_id") for name, data in mock.files.items() if b'"method"' in data) == [3, 5]


def test_a_line_that_fails_is_asked_again_in_another_batch(tmp_path):
    mock = BatchMock(0.02, Plan(failed=0.4, seed=3))
    replies = run(mock, tmp_path, pace={"tries": 9})
    assert all(reply.text for reply in replies)
    assert sum(reply.retries for reply in replies) == mock.tries.total() - 8 > 0
    assert mock.counts["paid"] == len(mock.bought) == 8


def test_a_line_that_always_fails_is_a_failed_row_where_others_are_answered(tmp_path):
    mock = BatchMock(0.02)
    mock._answer_line = fail_at(mock, "number 3", mock._answer_line)
    replies = run(mock, tmp_path, pace={"tries": 3})
    assert isinstance(replies[3], RecordFailed)
    assert replies[3].error == "no-reply"
    assert "3 times; other requests succeeded" in replies[3].detail
    assert all(reply.text for number, reply in enumerate(replies) if number != 3)


def fail_at(mock, text, answer):
    def answer_or_fail(line):
        if text in json.dumps(line):
            return {"status_code": 503, "request_id": "r", "body": {"error": {"message": "overloaded"}}}
        return answer(line)

    return answer_or_fail


def test_a_server_that_fails_at_every_line_stops_the_run(tmp_path):
    replies = run(BatchMock(0.02, Plan(failed=1.0)), tmp_path, pace={"tries": 2})
    assert all(isinstance(reply, Unavailable) for reply in replies)
    assert "run again later" in str(replies[0])


def test_a_prompt_that_is_refused_is_a_failed_row_at_once_as_live(tmp_path):
    mock = BatchMock(0.02, Plan(bad={"number 5": "content_filter"}))
    replies = run(mock, tmp_path)
    assert isinstance(replies[5], RecordFailed)
    assert replies[5].error == "prompt-refused"
    assert mock.counts["batches"] == 2


def test_a_parameter_that_is_refused_stops_the_run_and_says_so(tmp_path):
    mock = BatchMock(0.02, Plan(bad={"number 5": "unknown_parameter"}))
    replies = run(mock, tmp_path)
    assert isinstance(replies[5], ConfigError)
    assert "refused: unknown_parameter" in str(replies[5])


@pytest.mark.parametrize("rows", [4, 8])
def test_an_expired_batch_gives_what_it_has_and_the_rest_is_asked_again(tmp_path, rows):
    mock = BatchMock(0.02, Plan(expired=[0]))
    replies = run(mock, tmp_path, pace={"rows": rows})
    assert all(reply.text for reply in replies)
    assert sum(reply.retries for reply in replies) == rows // 2
    assert mock.counts["paid"] == len(mock.bought) == 8


def test_batches_that_always_expire_stop_the_run(tmp_path):
    mock = BatchMock(0.01, Plan(expired=list(range(40))))
    replies = run(mock, tmp_path, pace={"tries": 2, "rows": 8})
    assert isinstance(replies[0], Unavailable) or any(isinstance(reply, Unavailable) for reply in replies)
    # Eight, then the four without an answer, then the two.
    assert mock.counts["batches"] == 2


def test_a_cancelled_batch_gives_what_it_has_and_stops_the_run(tmp_path):
    mock = BatchMock(0.02, Plan(cancelled=[0]))
    replies = run(mock, tmp_path, pace={"rows": 8})
    stopped = [reply for reply in replies if isinstance(reply, Unavailable)]
    assert len(stopped) == 4
    assert "was cancelled; run again to ask the rest anew" in str(stopped[0])
    assert len(list_notes(tmp_path)[0].keys) == 4
    assert not [reply for reply in run(mock, tmp_path, pace={"rows": 8}) if isinstance(reply, Exception)]


def test_a_batch_that_is_not_taken_is_a_config_error_in_the_servers_words_and_leaves_no_note(tmp_path):
    replies = run(BatchMock(0.02, model="another"), tmp_path, **ALL)
    assert all(isinstance(reply, ConfigError) for reply in replies)
    assert "The model ['mock'] does not exist (model_not_found, line 1)" in str(replies[0])
    assert not list_notes(tmp_path)


def test_a_server_with_no_room_gets_the_requests_again_once_another_batch_has_ended(tmp_path):
    mock = BatchMock(0.1, Plan(crowded=[1]))
    replies = run(mock, tmp_path)
    assert all(reply.text for reply in replies)
    assert sum(reply.retries for reply in replies) == 0
    assert (mock.counts["batches"], mock.counts["paid"]) == (3, 8)


def test_a_server_that_never_has_room_stops_the_run(tmp_path):
    replies = run(BatchMock(0.01, Plan(crowded=list(range(20)))), tmp_path, pace={"tries": 2, "rows": 8})
    assert all(isinstance(reply, Unavailable) for reply in replies)
    assert "Enqueued token limit reached" in str(replies[0])


@pytest.mark.parametrize("plan", [Plan(lost=[0]), Plan(refused={"0": 500})])
def test_a_batch_whose_creation_got_no_reply_is_created_once(tmp_path, plan):
    mock = BatchMock(0.02, plan)
    replies = run(mock, tmp_path, pace={"rows": 8})
    assert all(reply.text for reply in replies)
    assert mock.counts["batches"] == 1
    assert mock.counts["listings"] >= 1


def test_a_server_that_is_away_stops_the_run_after_the_patience(tmp_path):
    mock = BatchMock()
    mock.url = "http://127.0.0.1:9/v1"
    chat = make_chat(mock, tmp_path, pace={"patience": 0.0})
    replies = asyncio.run(ask_all(chat))
    chat.close()
    assert all(isinstance(reply, Unavailable) for reply in replies)
    assert "no reply for 0 s (APIConnectionError" in str(replies[0])


def test_a_server_without_batches_is_a_config_error(tmp_path):
    mock = BatchMock()
    with serve_batches(mock):
        chat = make_chat(mock, tmp_path, base_url=mock.url + "/none")
        replies = asyncio.run(ask_all(chat))
        chat.close()
    assert isinstance(replies[0], ConfigError)
    assert "needs a server with /files and /batches" in str(replies[0])


FILE = {"id": "file-1", "object": "file"}
BATCH = {"id": "batch_1", "object": "batch", "status": "completed", "output_file_id": "file-2", "metadata": {}}
STEPS = [
    "POST /v1/files",
    "POST /v1/batches",
    "GET /v1/batches",
    "GET /v1/batches/batch_1",
    "GET /v1/files/file-2/content",
]


@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("fault", FAULTS)
def test_whatever_a_server_sends_a_run_that_cannot_go_on_stops_in_order(tmp_path, fault, step):
    def respond(asked):
        name = f"{asked.method} {asked.path}"
        if name == step or (name == STEPS[0] and step == STEPS[1]):
            return FAULTS[fault]
        return say(FILE if "files" in name else BATCH)

    with run_handler(LiveServer(respond=respond)) as server:
        url = f"http://127.0.0.1:{server.port}/v1"
        with closing(make_chat(BatchMock(url=url), tmp_path, pace={"patience": 0.0, "tries": 1})) as chat:
            replies = asyncio.run(ask_all(chat, REQUESTS[:4]))
    assert all(isinstance(reply, Unavailable | ConfigError) for reply in replies), replies


def test_the_price_of_a_batch_is_what_its_replies_took(tmp_path):
    mock, store = BatchMock(0.02), open_replies(tmp_path / "replies")
    with opened(mock, tmp_path) as chat, open_meter() as meter, closing(store):
        asyncio.run(ask_all(RecordedChat(chat, store, Price(1e6, 1e6))))
    usage = meter.usage
    assert (usage.calls, usage.tokens_in, usage.tokens_out, usage.cost) == (8, 88, 56, 144.0)


@settings(max_examples=15)
@given(
    failed=st.sampled_from([0.0, 0.1, 0.5]),
    expired=st.lists(st.integers(0, 5), max_size=3),
    crowded=st.lists(st.integers(0, 5), max_size=3),
    rows=st.integers(1, 9),
    refused=st.booleans(),
)
def test_whatever_becomes_of_its_batches_a_request_ends_once_and_is_paid_once(failed, expired, crowded, rows, refused):
    bad = {"number 5": "content_filter"} if refused else {}
    mock = BatchMock(0.01, Plan(failed=failed, expired=expired, crowded=crowded, bad=bad))
    with TemporaryDirectory() as folder:
        pace = {"rows": rows, "wait": 0.02, "poll": 0.01, "tries": 30}
        replies = run(mock, Path(folder), pace=pace)
        noted = [key for note in list_notes(Path(folder)) for key in note.keys]
    right = [reply.text for reply in replies if not isinstance(reply, Exception)]
    assert len(set(right)) == len(right) == 8 - refused
    assert isinstance(replies[5], RecordFailed) == refused
    assert mock.counts["paid"] == len(mock.bought) == len(set(noted)) == len(noted) == 8 - refused


# What is found again


@pytest.mark.parametrize(
    ("plan", "what"),
    [
        (Plan(after=0.3), "batches"),
        (Plan(), "looks"),
        (Plan(reading=0.3), "contents"),
    ],
)
def test_after_a_kill_the_same_requests_find_their_batch_and_none_is_paid_twice(tmp_path, plan, what):
    mock = BatchMock(0.2, plan)
    with serve_batches(mock):
        ask_until(make_chat(mock, tmp_path, **ALL), lambda: mock.counts[what])
        with closing(make_chat(mock, tmp_path, **ALL)) as again:
            replies = asyncio.run(ask_all(again))
    assert all(reply.text for reply in replies)
    assert (mock.counts["batches"], mock.counts["paid"], len(mock.bought)) == (1, 8, 8)


def test_a_kill_before_a_batch_exists_has_its_requests_sent_in_another(tmp_path):
    mock = BatchMock(0.02, Plan(refused={"0": 500}))
    with serve_batches(mock):
        ask_until(make_chat(mock, tmp_path, **ALL), lambda: mock.creations)
        assert [note.batch_id for note in list_notes(tmp_path)] == [""]
        with closing(make_chat(mock, tmp_path, **ALL)) as again:
            replies = asyncio.run(ask_all(again))
    assert [(reply.text != "", reply.retries) for reply in replies] == [(True, 0)] * 8
    assert (mock.counts["batches"], mock.counts["paid"]) == (1, 8)
    assert mock.counts["listings"] == 2


def test_a_note_goes_once_every_reply_is_recorded(tmp_path):
    mock, recorded = BatchMock(0.02), set()
    with opened(mock, tmp_path, recorded=recorded, **ALL) as chat:
        asyncio.run(ask_all(chat))
        (note,) = list_notes(tmp_path)
        recorded.update(note.keys[1:])
        chat.close()
        assert list_notes(tmp_path) == [note]
        recorded.add(note.keys[0])
        asyncio.run(ask_all(chat, [make_request(9)]))
    (other,) = list_notes(tmp_path)
    assert len(other.keys) == 1


def test_a_failed_line_of_an_ended_batch_is_in_no_note(tmp_path):
    mock = BatchMock(0.02, Plan(bad={"number 5": "content_filter"}))
    with opened(mock, tmp_path, **ALL) as chat:
        asyncio.run(ask_all(chat))
        (note,) = list_notes(tmp_path)
        assert set(note.keys) == {make_chat_key(chat, each) for each in REQUESTS if each != REQUESTS[5]}


def test_a_batch_of_an_older_cache_epoch_is_not_waited_for(tmp_path):
    mock = BatchMock(0.02)
    with serve_batches(mock):
        ask_until(make_chat(mock, tmp_path, **ALL), lambda: mock.counts["looks"])
        with closing(replace(make_chat(mock, tmp_path, **ALL), epoch=1)) as fresh:
            asyncio.run(ask_all(fresh))
    assert (mock.counts["batches"], mock.counts["paid"]) == (2, 16)


def test_a_batch_at_another_server_is_not_paid_again(tmp_path):
    mock = BatchMock(0.02)
    with serve_batches(mock):
        ask_until(make_chat(mock, tmp_path, revision="r1", **ALL), lambda: mock.counts["looks"])
        moved = make_chat(mock, tmp_path, revision="r1", base_url="http://127.0.0.1:9/v1", **ALL)
        error = asyncio.run(ask_all(moved))[0]
        with closing(make_chat(mock, tmp_path, revision="r1", **ALL)) as advised:
            replies = asyncio.run(ask_all(advised))
    assert isinstance(error, ConfigError)
    assert f"8 requests is under way at {mock.url}" in str(error)
    assert [reply for reply in replies if isinstance(reply, BaseException)] == []
    assert (mock.counts["batches"], mock.counts["paid"]) == (1, 8)


def test_a_damaged_note_is_refused(tmp_path):
    (tmp_path / "batches").mkdir()
    (tmp_path / "batches" / "x.json").write_text("{")
    assert isinstance(run(BatchMock(0.02), tmp_path)[0], CorruptInput)
