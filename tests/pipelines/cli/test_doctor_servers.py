import asyncio
import json
import threading
import time
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from pipelines.cli.doctor import ask_models
from pipelines.config.loading import make_config, read_recipe

KEY = "sk-hush-0123456789"
FAST = 1.0
START = "start it, or see base_url"


@dataclass
class FakeServer:
    """An OpenAI-compatible server that can do what it is told it can."""

    models: object = (("tiny", 100_000),)
    sees: bool = True
    forces: bool = True
    ends: bool = True
    takes_shapes: bool = True
    key: str = ""
    hangs: bool = False
    raw: bytes = b""
    """Sent for the list of models in place of one."""
    status: int = 200
    chat: tuple[int, bytes] | None = None
    """Sent for every completion in place of one."""
    extra: tuple[int, bytes] | None = None
    """Sent for completions with a picture or a shape in place of one."""
    url: str = ""
    asked: list = field(default_factory=list)
    going: threading.Event = field(default_factory=threading.Event)

    def answer(self, path, headers, body):
        self.asked.append((path, body))
        if self.hangs:
            self.going.wait(20)
        if self.key and headers.get("Authorization") != f"Bearer {self.key}":
            return 401, f"no key but {headers.get('Authorization')}".encode()
        if path.endswith("/models"):
            entries = [{"id": name, "max_model_len": length} for name, length in self.models]
            return self.status, self.raw or json.dumps({"object": "list", "data": entries}).encode()
        return self.complete(body)

    def complete(self, body):
        content = body["messages"][0]["content"]
        if isinstance(content, list) and not self.sees:
            return 400, f"no pictures for {self.key}".encode()
        shape, said = body.get("response_format"), "hello"
        if self.chat or (self.extra and (shape or isinstance(content, list))):
            return self.chat or self.extra
        if shape and not self.takes_shapes:
            return 400, b"response_format is not supported"
        if shape:
            said = json.dumps({"colour": "quartz" if self.forces else "blue"})
            said = said if self.ends else '{"colour"' + " " * 100
        ending = "stop" if self.ends else "length"
        choice = {"message": {"role": "assistant", "content": said}, "finish_reason": ending}
        return 200, json.dumps({"choices": [choice]}).encode()


def make_handler(fake):
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            self.reply(None)

        def do_POST(self):
            self.reply(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))

        def reply(self, body):
            status, sent = fake.answer(self.path, self.headers, body)
            try:
                self.send_response(status)
                self.send_header("Content-Length", str(len(sent)))
                self.end_headers()
                self.wfile.write(sent)
            except ConnectionError:
                self.close_connection = True

        def log_message(self, *_):
            """Say nothing."""

    return Handler


@contextmanager
def serve(**abilities):
    fake = FakeServer(**abilities)
    server = ThreadingHTTPServer(("127.0.0.1", 0), make_handler(fake))
    server.daemon_threads = True
    fake.url = f"http://127.0.0.1:{server.server_port}/v1"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield fake
    finally:
        fake.going.set()
        server.shutdown()
        thread.join()
        server.server_close()


def make_settings(role, url, **more):
    settings = {"adapter": "openai", "name": "tiny", "base_url": url, "max_tokens": 512, **more}
    return f"models.{role}={write_value(settings)}"


def write_value(value):
    """Return a value as TOML has it on one line."""
    if not isinstance(value, dict):
        return json.dumps(value)
    return "{ " + ", ".join(f"{key} = {write_value(each)}" for key, each in value.items()) + " }"


def look(*settings, patience=FAST):
    return asyncio.run(ask_models(make_config(read_recipe("demo"), list(settings)), patience))


def find(findings, ending=""):
    """The one finding of an aspect; of the server itself without one."""
    (found,) = [f for f in findings if (f.what.endswith(f": {ending}") if ending else f.what.endswith("/v1"))]
    return found


def test_nobody_is_asked_where_all_players_are_scripted():
    assert look() == []


def test_a_server_that_can_all_its_role_needs_is_fine():
    with serve() as server:
        found = look(make_settings("solver", server.url))
    assert {finding.state for finding in found} == {"ok"}
    assert [finding.what.rpartition(": ")[2] for finding in found[1:]] == ["context", "chat", "pictures", "replies"]


def test_a_role_without_pictures_is_shown_none():
    with serve(sees=False) as server:
        found = look(make_settings("rewriter", server.url))
    assert {finding.state for finding in found} == {"ok"}
    assert all(body is None or isinstance(body["messages"][0]["content"], str) for _, body in server.asked)


@pytest.mark.parametrize(
    ("role", "method"), [("solver", "paths"), ("teacher", "paths"), ("judge", "paths"), ("writer", "news")]
)
def test_a_role_that_is_shown_pictures_needs_a_server_that_takes_them(role, method):
    with serve(sees=False) as server:
        found = look(make_settings(role, server.url), f"method={method}")
    assert find(found, "pictures").state == "problem"
    assert "HTTP 400" in find(found, "pictures").detail


def test_another_name_is_a_problem_that_says_which_there_are():
    with serve(models=(("small", 4096), ("large", 4096))) as server:
        found = look(make_settings("solver", server.url))
    assert [finding.state for finding in found] == ["problem"]
    assert "small, large" in found[0].detail
    assert "models.solver.name" in found[0].detail
    assert len(server.asked) == 1


def test_of_many_names_some_are_shown():
    with serve(models=[(f"model-{number}", 1) for number in range(100)]) as server:
        found = look(make_settings("solver", server.url))
    assert "and 92 more" in found[0].detail


def test_no_server_is_a_problem():
    with serve() as server:
        url = server.url
    found = look(make_settings("solver", url))
    assert [finding.state for finding in found] == ["problem"]
    assert f"cannot connect to {url[7:-3]} (" in found[0].detail


def test_a_server_too_busy_to_list_its_models_is_asked_on():
    with serve(raw=b"slow down", status=429) as server:
        found = look(make_settings("rewriter", server.url))
    assert (find(found).state, find(found).detail) == ("warning", "busy (HTTP 429: slow down); look again later")
    assert find(found, "chat").state == "ok"


def test_a_page_of_html_is_cut_to_one_line_of_its_words():
    style = "<style>body { color: red }</style>"
    page = f"<!DOCTYPE html><html><head>{style}<title>404 Not Found</title></head>\n<body><p>{'Nothing here. ' * 500}"
    with serve(raw=page.encode(), status=404) as server:
        found = look(make_settings("rewriter", server.url))
    detail = find(found).detail
    assert "(HTTP 404: 404 Not Found Nothing here." in detail
    assert len(detail) < 300
    assert not set("<>{}\n") & set(detail)


def test_servers_that_hang_are_waited_for_together_and_not_for_long():
    started = time.monotonic()
    with serve(hangs=True) as one, serve(hangs=True) as other:
        found = look(
            make_settings("solver", [one.url, other.url], revision="r1"),
            make_settings("teacher", other.url),
            patience=0.2,
        )
        waited = time.monotonic() - started
    assert {finding.state for finding in found} == {"problem"}
    assert "no complete reply in 0.2 s" in found[0].detail
    # The servers would wait for 20 s: far from a matter of speed.
    assert waited < 10


@pytest.mark.parametrize(("length", "state"), [(100_000, "ok"), (3000, "warning"), (512, "problem"), (None, None)])
def test_the_context_is_held_against_a_long_prompt_and_the_reply(length, state):
    with serve(models=(("tiny", length),)) as server:
        found = look(make_settings("solver", server.url))
    states = [finding.state for finding in found if finding.what.endswith("context")]
    assert states == ([state] if state else [])


def test_a_teacher_needs_room_for_its_transcript():
    with serve(models=(("tiny", 40_000),)) as server:
        found = look(make_settings("teacher", server.url), "rollouts.max_context=200000")
    assert find(found, "context").state == "warning"


def test_a_schema_that_is_not_obeyed_is_warned_of():
    with serve(forces=False) as server:
        found = look(make_settings("rewriter", server.url))
        loose = look(make_settings("rewriter", server.url, replies="json"))
    assert find(found, "replies").state == "warning"
    assert "blue" in find(found, "replies").detail
    assert find(loose, "replies").state == "ok"


def test_a_forced_reply_that_never_ends_is_warned_of():
    with serve(ends=False) as server:
        found = look(make_settings("rewriter", server.url))
    assert (find(found, "replies").state, find(found, "chat").state) == ("warning", "ok")
    assert "cut-reply" in find(found, "replies").detail


def test_a_server_that_takes_no_schema_is_a_problem_unless_none_is_wanted():
    with serve(takes_shapes=False) as server:
        found = look(make_settings("rewriter", server.url))
        free = look(make_settings("rewriter", server.url, replies="text"))
    assert find(found, "replies").state == "problem"
    assert 'replies = "json"' in find(found, "replies").detail
    assert {finding.state for finding in free} == {"ok"}


def test_a_key_whose_variable_is_not_set_is_a_problem_and_nothing_is_sent(monkeypatch):
    monkeypatch.delenv("SYNTH_TEST_KEY", raising=False)
    with serve() as server:
        found = look(make_settings("solver", server.url, api_key_env="SYNTH_TEST_KEY"))
    assert (len(found), found[0].state, "SYNTH_TEST_KEY" in found[0].detail) == (1, "problem", True)
    assert server.asked == []


def test_a_key_is_sent_and_never_shown(monkeypatch):
    monkeypatch.setenv("SYNTH_TEST_KEY", KEY)
    setting = {"api_key_env": "SYNTH_TEST_KEY"}
    with serve(key=KEY, sees=False) as server, serve(key="another") as stranger:
        taken = look(make_settings("solver", server.url, **setting))
        refused = look(make_settings("solver", stranger.url, **setting))
    assert find(taken).state == "ok"
    assert find(taken, "pictures").state == "problem"
    assert (refused[0].state, "HTTP 401" in refused[0].detail) == ("problem", True)
    assert KEY not in repr([taken, refused])


def test_a_key_that_can_be_no_header_is_not_shown_either(monkeypatch):
    monkeypatch.setenv("SYNTH_TEST_KEY", f"{KEY}\nX-Other: 1")
    with serve() as server:
        found = look(make_settings("solver", server.url, api_key_env="SYNTH_TEST_KEY"))
    assert found[0].state == "problem"
    assert KEY not in repr(found)
    assert server.asked == []


def test_every_address_must_serve_the_name():
    with serve() as one, serve(models=(("other", 9),)) as other:
        found = look(make_settings("rewriter", [one.url, other.url], revision="r1"))
    assert [finding.state for finding in found if finding.what.endswith("/v1")] == ["ok", "problem"]


def test_addresses_with_different_contexts_do_not_serve_one_model():
    with serve() as one, serve(models=(("tiny", 90_000),)) as other:
        found = look(make_settings("rewriter", [one.url, other.url], revision="r1"))
    assert find(found, "addresses").state == "warning"
    assert "90,000, 100,000" in find(found, "addresses").detail


def test_roles_that_share_a_model_ask_once():
    with serve() as server:
        found = look(make_settings("solver", server.url), make_settings("teacher", server.url))
    assert find(found).what.startswith("solver, teacher at ")
    assert len(server.asked) == 4


@pytest.mark.parametrize(("raw", "status"), [(b"<html>", 200), (b'{"data": 3}', 200), (b"[" * 5000, 200), (b"no", 404)])
def test_a_server_that_does_not_list_its_models_is_asked_all_the_same(raw, status):
    with serve(raw=raw, status=status) as server:
        found = look(make_settings("rewriter", server.url))
    assert find(found).state == "warning"
    assert find(found, "chat").state == "ok"


def test_a_reply_without_end_is_not_read():
    with serve(raw=b"x" * (3 << 20)) as server:
        found = look(make_settings("rewriter", server.url))
    assert (len(found), found[0].state) == (1, "problem")


def test_a_broken_server_is_a_problem():
    with serve(raw=b"busy", status=503) as server:
        found = look(make_settings("rewriter", server.url))
    assert (found[0].state, "HTTP 503: busy" in found[0].detail) == ("problem", True)


def test_a_server_that_the_run_starts_is_not_asked():
    with serve() as server:
        assert look(make_settings("solver", server.url), "models.solver.serve={ own = true }") == []
    assert server.asked == []


def complete(content, ending="stop", **more):
    choice = {"message": {"role": "assistant", "content": content}, "finish_reason": ending}
    return 200, json.dumps({"choices": [choice], **more}).encode()


def think(content):
    message = {"role": "assistant", "content": content, "reasoning_content": "The sky."}
    return 200, json.dumps({"choices": [{"message": message, "finish_reason": "stop"}]}).encode()


@pytest.mark.parametrize(
    ("chat", "state", "words"),
    [
        (complete(None), "problem", "chat template and reasoning parser"),
        (complete(" \n"), "problem", "without content"),
        (think(None), "problem", "a completion of reasoning without content"),
        (think("Hello."), "ok", "answers, with its reasoning apart"),
        (complete(None, "length"), "warning", "max_tokens must have room"),
        (complete("Hello.", model="large"), "warning", "answers as large, and tiny was asked"),
        (complete("Hello.", model="org/Tiny-2026"), "ok", "answers"),
    ],
)
def test_a_completion_must_say_something_and_come_from_the_model_that_was_asked(chat, state, words):
    with serve(chat=chat) as server:
        found = look(make_settings("writer", server.url))
    assert find(found, "chat").state == state
    assert words in find(found, "chat").detail


@pytest.mark.parametrize(("more", "state"), [({}, "problem"), ({"tool_calls": [{"id": "call-1"}]}, "ok")])
def test_a_teacher_who_is_offered_tools_says_something_or_calls_one(more, state):
    message = {"role": "assistant", "content": None, **more}
    chat = 200, json.dumps({"choices": [{"message": message, "finish_reason": "stop"}]}).encode()
    with serve(chat=chat) as server:
        found = look(make_settings("teacher", server.url), "rollouts.dialect=native")
    assert find(found, "chat").state == state
