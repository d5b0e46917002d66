"""What ``synth doctor`` says of a configuration, its input, its software and its servers."""

import json
import threading
import time
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from pipelines.cli.commands import run_recipe
from pipelines.cli.doctor import examine_run
from pipelines.config.loading import make_config, read_recipe
from pipelines.errors import ConfigError
from tests.chaos.driving import call_here
from tests.pipelines.services.clients.commons_server import make_image, run_commons
from tests.pipelines.services.clients.live_servers import run_live_server, say
from tests.pipelines.services.clients.vendors import refuse_openai, run_vendor

KEY = "sk-hush-0123456789"
NOBODY = "http://127.0.0.1:9/v1"


@dataclass
class FakeServer:
    """An OpenAI-compatible server that can do what it is told it can."""

    sees: bool = True
    forces: bool = True
    takes_shapes: bool = True
    key: str = ""
    hangs: bool = False
    chat: tuple[int, bytes] | None = None
    """Sent for every completion in place of one."""
    url: str = ""
    asked: list = field(default_factory=list)
    going: threading.Event = field(default_factory=threading.Event)

    def answer(self, headers, body):
        self.asked.append(body)
        if self.hangs:
            self.going.wait(20)
        if self.key and headers.get("Authorization") != f"Bearer {self.key}":
            return 401, f"no key but {headers.get('Authorization')}".encode()
        if isinstance(body["messages"][0]["content"], list) and not self.sees:
            return 400, f"no pictures for {self.key}".encode()
        if self.chat:
            return self.chat
        if body.get("response_format"):
            if not self.takes_shapes:
                return 400, b"response_format is not supported"
            return complete(json.dumps({"colour": "quartz" if self.forces else "blue"}))
        return complete("hello")


def complete(content, ending="stop", calls=(), **more):
    message = {"role": "assistant", "content": content} | ({"tool_calls": list(calls)} if calls else {})
    return 200, json.dumps({"choices": [{"message": message, "finish_reason": ending}], **more}).encode()


def make_handler(fake):
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self):
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            status, sent = fake.answer(self.headers, body)
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


def name_model(role, url, **more):
    settings = {"adapter": "openai", "name": "tiny", "base_url": url, "max_tokens": 512, **more}
    return f"models.{role}={write_value(settings)}"


def write_value(value):
    if isinstance(value, dict):
        return f"{{ {', '.join(f'{key} = {write_value(inner)}' for key, inner in value.items())} }}"
    return json.dumps(value)


@pytest.fixture
def look(tmp_path):
    """Examine a run of the demo with other settings; return the findings by what they are about."""

    def looking(*settings, recipe="demo", patience=2.0):
        config = make_config(read_recipe(recipe), [*settings], last="corpus")
        return {finding.what: finding for finding in examine_run(config, tmp_path / "workspace", patience=patience)}

    return looking


def ask(look, *settings, **more):
    """Return the findings of servers, by their aspect."""
    return {what.rpartition(": ")[2]: found for what, found in look(*settings, **more).items() if "/v1" in what}


# The command, the workspace


def test_the_demo_is_ready_and_no_server_is_asked(capsys, tmp_path):
    outcome = call_here(capsys, "doctor", "--workspace", tmp_path / "workspace")
    assert outcome.code == 0
    assert "ready" in outcome.out.splitlines()[0]
    assert "synth[" not in outcome.out or "pip install 'synth[" in outcome.out
    assert not list(tmp_path.iterdir())
    document = call_here(capsys, "doctor", "--workspace", tmp_path, "--json").document
    assert document["ready"]
    assert {finding["state"] for finding in document["findings"]} <= {"ok", "warning"}
    assert [path.name for path in tmp_path.iterdir()] == [".lock"]


@pytest.mark.parametrize("below", ["", "deeper"])
def test_a_workspace_in_the_place_of_a_file_is_an_error(capsys, tmp_path, below):
    (tmp_path / "file").write_text("mine")
    outcome = call_here(capsys, "doctor", "--workspace", tmp_path / "file" / below, "--json")
    assert (outcome.code, outcome.document["ready"]) == (2, False)
    assert (tmp_path / "file").read_text() == "mine"


def test_a_dump_that_is_not_there_is_an_error(look, tmp_path):
    found = look(f"corpus.dump={tmp_path / 'x.xml'}")
    assert (found["input"].state, "no such file" in found["input"].said) == ("error", True)


# Software


@pytest.mark.parametrize(
    ("settings", "what", "state", "word"),
    [
        ([], "ranker", "warning", "encoder.pretrained"),
        (["tools.image_search=clip", "encoder.pretrained=/nowhere/weights.pt"], "encoder", None, ""),
        (
            ['enhancements.degradations=["blur", "downsample"]'],
            "degraded pictures",
            "warning",
            "downsample is left out",
        ),
        (["tools.edsr=/nowhere/EDSR_x4.pb"], "tools.edsr", "error", "EDSR_x4.pb"),
    ],
)
def test_what_is_not_installed_or_not_there_is_named(look, settings, what, state, word):
    found = look(*settings)[what]
    assert state is None or found.state == state
    assert word in found.said


# Models


@pytest.mark.parametrize(
    ("pair", "revisions", "state"),
    [
        (("judge", "solver"), ("r1", "r1"), "error"),
        (("judge", "teacher"), ("", ""), "error"),
        (("evaluator", "writer"), ("", ""), "error"),
        (("evaluator", "rewriter"), ("", ""), "error"),
        (("judge", "solver"), ("r1", "r2"), "warning"),
    ],
)
def test_a_judge_that_judges_itself_is_told_and_is_no_run(look, tmp_path, pair, revisions, state):
    settings = [name_model(role, NOBODY, revision=revision) for role, revision in zip(pair, revisions, strict=True)]
    assert look(*settings, patience=0.5)[f"models.{pair[0]} and models.{pair[1]}"].state == state
    if state == "error":
        with pytest.raises(ConfigError, match="both are tiny"):
            run_recipe(make_config(read_recipe("demo"), settings), tmp_path / "work", "", [])
        assert not (tmp_path / "work").exists()


def test_a_run_without_an_evaluator_stops_before_any_work_and_says_what_to_add(look, tmp_path):
    config = make_config(read_recipe("demo"), ["models.evaluator.name="])
    with pytest.raises(ConfigError, match=r"no model for models.evaluator(.|\n)*\[models.evaluator\]"):
        run_recipe(config, tmp_path / "work", "", [])
    assert not (tmp_path / "work").exists()
    assert look("models.evaluator.name=")["models.evaluator"].state == "error"


def test_a_solver_that_teaches_that_nobody_judges_and_that_never_varies_is_warned_of(look):
    found = look(
        name_model("solver", NOBODY, temperature=0.0, name="scripted-teacher"), "models.judge.name=", patience=0.5
    )
    for what in ("models.solver", "models.judge", "models.solver.temperature"):
        assert found[what].state == "warning"


# Servers


def test_a_server_that_can_all_its_role_needs_is_fine(look):
    with serve() as server:
        found = ask(look, name_model("solver", server.url), name_model("teacher", server.url))
    assert {name: finding.state for name, finding in found.items()} == dict.fromkeys(
        ("chat", "pictures", "replies"), "ok"
    )
    assert len(server.asked) == 3
    assert next(iter(found.values())).what.startswith("solver, teacher at ")


def test_a_role_without_pictures_is_shown_none(look):
    with serve(sees=False) as server:
        found = ask(look, name_model("rewriter", server.url))
    assert found.keys() == {"chat", "replies"}
    assert all(isinstance(body["messages"][0]["content"], str) for body in server.asked)


@pytest.mark.parametrize("settings", [("solver", "paths"), ("judge", "paths"), ("writer", "news")])
def test_a_role_that_is_shown_pictures_needs_a_server_that_takes_them(look, settings):
    role, method = settings
    with serve(sees=False) as server:
        found = ask(look, name_model(role, server.url), f"method={method}")
    assert (found["pictures"].state, "HTTP 400" in found["pictures"].said) == ("error", True)


def test_servers_that_hang_are_waited_for_together_and_one_that_is_away_is_told(look):
    started = time.monotonic()
    with serve(hangs=True) as one, serve(hangs=True) as other:
        found = look(name_model("solver", one.url), name_model("teacher", other.url), patience=0.3)
        waited = time.monotonic() - started
    assert {finding.state for what, finding in found.items() if "/v1" in what} == {"error"}
    # The servers would wait for 20 s: far from a matter of speed.
    assert waited < 15
    away = ask(look, name_model("solver", NOBODY), patience=0.5)["chat"]
    assert (away.state, "127.0.0.1:9" in away.said) == ("error", True)


def test_a_key_is_sent_and_never_shown_and_without_one_nothing_is_sent(look, monkeypatch):
    monkeypatch.setenv("SYNTH_TEST_KEY", KEY)
    with serve(key=KEY, sees=False) as server, serve(key="another") as stranger:
        taken = ask(look, name_model("solver", server.url, api_key_env="SYNTH_TEST_KEY"))
        refused = ask(look, name_model("solver", stranger.url, api_key_env="SYNTH_TEST_KEY"))
    assert (taken["chat"].state, taken["pictures"].state, refused["chat"].state) == ("ok", "error", "error")
    assert KEY not in repr([taken, refused])
    monkeypatch.delenv("SYNTH_TEST_KEY")
    with serve() as server:
        found = ask(look, name_model("solver", server.url, api_key_env="SYNTH_TEST_KEY"))
    assert (found["chat"].state, "SYNTH_TEST_KEY" in found["chat"].said, server.asked) == ("error", True, [])


@pytest.mark.parametrize(
    ("chat", "state", "words"),
    [
        (complete(" \n"), "error", "chat template and reasoning parser"),
        (complete(None, "length"), "warning", "max_tokens must have room"),
        (complete("Hello.", model="large"), "warning", "answers as large, and tiny was asked"),
        (complete("Hello.", model="org/Tiny-2026"), "ok", "answers"),
        ((404, b"The model tiny does not exist."), "error", "The model tiny does not exist."),
    ],
)
def test_a_completion_must_say_something_and_come_from_the_model_that_was_asked(look, chat, state, words):
    with serve(chat=chat) as server:
        found = ask(look, name_model("writer", server.url, replies="text"))
    assert found["chat"].state == state
    assert words in found["chat"].said


def test_a_teacher_who_is_offered_tools_may_call_one(look):
    call = {"id": "call-1", "type": "function", "function": {"name": "look", "arguments": "{}"}}
    with serve(chat=complete(None, calls=[call])) as server:
        found = ask(look, name_model("teacher", server.url, replies="text"), "rollouts.dialect=native")
    assert found["chat"].state == "ok"


@pytest.mark.parametrize(
    ("abilities", "replies", "state"),
    [
        ({"forces": False}, "schema", "warning"),
        ({"forces": False}, "json", "ok"),
        ({"takes_shapes": False}, "schema", "error"),
        ({"takes_shapes": False}, "text", None),
    ],
)
def test_a_forced_reply_has_to_be_obeyed(look, abilities, replies, state):
    with serve(**abilities) as server:
        found = ask(look, name_model("rewriter", server.url, replies=replies))
    assert (found["replies"].state if "replies" in found else None) == state


def test_what_cannot_be_left_out_is_told_in_the_vendors_words(look):
    words = "Unsupported value: 'reasoning_effort' does not support 'minimal' with this model."
    refuse = lambda body: ({"reasoning_effort"}, refuse_openai(words, "unsupported_value", "reasoning_effort"))  # noqa: E731
    with run_vendor(refuse, lambda body: "{}") as server:
        extra = {"extra_body": {"reasoning_effort": "minimal"}, "profile": "openai"}
        found = ask(look, name_model("writer", server.url, **extra))["chat"]
    assert (found.state, "'reasoning_effort' does not support 'minimal'" in found.said) == ("error", True)


# Services


def test_live_services_are_asked_once_and_a_missing_key_is_named(look, monkeypatch):
    pytest.importorskip("trafilatura")
    monkeypatch.setenv("SEARCH_KEY", "s3cret")
    monkeypatch.delenv("IMAGES_KEY", raising=False)

    def reply(asked):
        page = {"title": "A page", "url": "https://www.wikipedia.org/", "content": "words"}
        return say({"organic": []}) if asked.path == "/search" else say({"data": page})

    with run_live_server(reply) as server:
        place = f"http://127.0.0.1:{server.port}"
        found = look(
            "tools.family=live", f"live.urls.search={place}/search", "live.key_envs.search=SEARCH_KEY",
            "live.reader=jina", f"live.urls.reader={place}/reader", "live.images=serpapi",
            "live.key_envs.images=IMAGES_KEY",
        )  # fmt: skip
        assert [asked.path.split("/")[1] for asked in server.asked] == ["search", "reader"]
    states = {what: found[what].state for what in ("live search", "live reader", "live images", "live.urls.pictures")}
    assert list(states.values()) == ["ok", "ok", "error", "error"]
    assert "IMAGES_KEY" in found["live images"].said
    with run_live_server(lambda asked: say({"message": f"{asked.headers}"}, 403)) as server:
        found = look(
            "tools.family=live",
            f"live.urls.search=http://127.0.0.1:{server.port}/search",
            "live.key_envs.search=SEARCH_KEY",
        )
    assert (found["live search"].state, "s3cret" in found["live search"].said) == ("error", False)


def test_commons_is_asked_once_whether_it_is_there(look):
    with run_commons(images={"File:Example.jpg": [make_image()]}) as server:
        given = (f"commons.api={server.url}", "contact=a@b.example")
        (found,) = [finding for what, finding in look(*given).items() if what.startswith("Commons")]
        assert (found.state, len(server.asked)) == ("ok", 1)
        server.answer = lambda server, form: {"error": {"code": "unknown_action"}}
        (found,) = [finding for what, finding in look(*given).items() if what.startswith("Commons")]
        assert found.state == "error"
