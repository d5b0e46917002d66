"""`synth serve-tools`: the same observations as in rollouts, over HTTP and MCP, within limits."""

import asyncio
import base64
import hashlib
import http.client
import json
import os
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from pipelines.agent import environment as environments
from pipelines.agent.dialects import find_dialect
from pipelines.agent.environment import Refusal, read_call
from pipelines.agent.transcript import BadTurn, render_observation
from pipelines.checks.rollouts import FATAL_ERRORS
from pipelines.cli.tool_server import ServingOptions, open_environment
from pipelines.errors import ConfigError
from pipelines.release.synth_tools import ToolServerError, ToolSession, send
from schemas.datasets import Enhancement, Rollout
from tests.conftest import SETTINGS
from tests.serving_tools import copy_workspace, serving_tools

ROOT = Path(__file__).parents[3]


@pytest.fixture(scope="module")
def root(demo, tmp_path_factory):
    return copy_workspace(demo.root, tmp_path_factory.mktemp("served") / "workspace")


@pytest.fixture(scope="module")
def spare(root, tmp_path_factory):
    """Another copy, that no server holds."""
    return copy_workspace(root, tmp_path_factory.mktemp("spare") / "workspace")


@pytest.fixture(scope="module")
def config(demo):
    return demo.config


@pytest.fixture(scope="module")
def record(tmp_path_factory):
    return tmp_path_factory.mktemp("recorded") / "calls.jsonl"


@pytest.fixture(scope="module")
def served(config, root, record):
    with serving_tools(config, root, ServingOptions(mcp="http", record=record)) as server:
        yield server


@pytest.fixture(scope="module")
def rollouts(demo):
    return [row for row in demo.rows("rollouts", Rollout) if row.steps]


@pytest.fixture
def session(served, rollouts):
    opened = ToolSession(rollouts[0].parent_id, served.address).open()
    yield opened
    opened.close()


def test_every_recorded_turn_is_answered_as_it_was_when_it_was_rolled_out(served, rollouts):
    seen = 0
    for rollout in rollouts:
        session = ToolSession(rollout.parent_id, served.address).open()
        assert [message["content"] for message in session.messages] == [rollout.system, rollout.question]
        for step in rollout.steps:
            reply = session.take_turn(step.reply)
            if step.observation is None:
                assert reply.ended
                continue
            seen += 1
            assert reply.message == render_observation(step.observation)
            assert [image.id for image in reply.images] == list(step.observation.images)
        shown = [(image.id, hashlib.sha256(image.content).hexdigest()) for image in session.images]
        assert shown == [(image.id, image.picture.sha256) for image in rollout.images]
        assert reply.answer == rollout.answer
        assert reply.ended == rollout.stop_reason
        session.close()
    assert seen > 50


def test_a_call_by_name_is_answered_as_the_turn_with_that_call(served, rollouts):
    for rollout in rollouts[:6]:
        session = ToolSession(rollout.parent_id, served.address)
        for step in rollout.steps:
            if step.observation is not None and step.tool:
                reply = session.call(step.tool, json.loads(step.arguments))
                assert reply.message == render_observation(step.observation)
                assert reply.text == render_observation(step.observation, find_dialect("native"))
        session.close()


def test_nothing_that_decides_a_question_is_given_out(served, demo):
    questions = {row.record_id: row for row in demo.rows("selections", Enhancement)}
    for question_id in send(served.address + "/questions")["questions"]:
        opened = send(served.address + "/sessions", {"question_id": question_id})
        send(f"{served.address}/sessions/{opened['session']}", method="DELETE")
        assert set(opened) == {"session", "question_id", "messages", "images", "calls_left"}
        assert [set(image) for image in opened["images"]] == [{"id", "sha256", "media_type", "data"}]
        assert [set(message) for message in opened["messages"]] == [{"role", "content"}] * 2
        question = questions[question_id]
        assert opened["messages"][1]["content"].count(question.text) == 1
        assert question.proof.nodes[-1].title not in opened["messages"][1]["content"]


def test_a_question_that_is_held_out_is_refused(served, demo):
    held = [row.record_id for row in demo.rows("selections", Enhancement) if row.split == "eval" and row.picture]
    assert held
    assert not set(held) & set(send(served.address + "/questions")["questions"])
    with pytest.raises(ToolServerError, match="held-out") as caught:
        ToolSession(held[0], served.address).open()
    assert caught.value.status == 403


def test_an_observation_that_states_a_held_out_fact_says_so(config, spare, demo):
    with open_environment(config, spare, ServingOptions()) as environment:
        session = environment.open_session(environment.list_questions()[0])
        fact = next(iter(environment.held_out.facts.values()))[0].fact

        class Telling:
            identity = "telling"

            async def search_text(self, query, count):
                return (replace(found, snippet=f"{fact[0]} has {fact[1]}."),)

        found = asyncio.run(environment.agent.tools.text_search.search_text("tower", 1))[0]
        arguments = json.dumps({"query": "tower"})
        assert not asyncio.run(environment.call(session, "text_search", arguments)).held_out
        tools = replace(environment.agent.tools, text_search=Telling(), reads=False)
        environment.agent = replace(environment.agent, tools=tools)
        assert asyncio.run(environment.call(session, "text_search", arguments)).held_out


def test_calls_that_a_model_got_wrong_are_observations(session):
    assert session.call("translate", {}).text.startswith("error: unknown-tool")
    assert session.call("crop", {"image": "img_9", "box": [0, 0, 9, 9]}).text.startswith("error: unknown-image")
    assert session.call("visit", {"url": "file:///etc/passwd"}).text.startswith("error: ")


def test_consecutive_failures_end_an_attempt_as_they_end_a_rollout(session):
    replies = [session.call("translate", {}) for _ in range(FATAL_ERRORS)]
    assert [reply.ended for reply in replies] == ["", "", "tool-errors"]
    assert session.call("image_search", {}).text.startswith("tool-errors: ")


def test_the_last_call_is_followed_by_the_answer_alone(session, config):
    for _ in range(config.rollouts.max_calls):
        assert session.call("image_search", {}).ended == ""
    answered = session.take_turn("<think>t</think><answer>Ostrava</answer>")
    assert (answered.ended, answered.answer) == ("answered", "Ostrava")
    with_one_more = ToolSession(session.question_id, session.server)
    for _ in range(config.rollouts.max_calls):
        with_one_more.call("image_search", {})
    assert with_one_more.call("image_search", {}).ended == "turn-limit"
    with_one_more.close()


@pytest.mark.parametrize(("limit", "ended"), [("MAX_CHARACTERS", "context-limit"), ("MAX_SECONDS", "time-limit")])
def test_an_attempt_is_over_where_a_rollout_would_be(config, spare, limit, ended, monkeypatch):
    monkeypatch.setattr(environments, limit, 5)
    now = [0.0]
    with open_environment(config, spare, ServingOptions()) as environment:
        environment.clock = lambda: now[0]
        session = environment.open_session(environment.list_questions()[0])
        now[0] = 6.0
        replies = [asyncio.run(environment.call(session, "image_search", "{}")) for _ in range(2)]
    assert [(reply.ended, reply.observation) for reply in replies] == [(ended, None)] * 2
    assert session.calls == 0


def test_calls_of_one_attempt_made_at_once_give_each_picture_a_name_of_its_own(served, config, spare):
    with open_environment(config, spare, ServingOptions()) as environment:
        session = environment.open_session(environment.list_questions()[0])
        box = json.dumps({"box": [0, 0, 500, 500]})

        async def call_all():
            return await asyncio.gather(*(environment.call(session, "crop", box) for _ in range(4)))

        names = [image.id for reply in asyncio.run(call_all()) for image in reply.images]
    assert sorted(names) == ["img_2", "img_3", "img_4", "img_5"]


def test_a_tool_that_takes_too_long_costs_no_call(config, spare, monkeypatch):
    monkeypatch.setattr(environments, "CALL_SECONDS", 0.001)
    with open_environment(config, spare, ServingOptions()) as environment:
        session = environment.open_session(environment.list_questions()[0])

        class Stuck:
            identity = "stuck"

            async def search_text(self, query, count):
                await asyncio.Event().wait()

        environment.agent = replace(environment.agent, tools=replace(environment.agent.tools, text_search=Stuck()))
        with pytest.raises(Refusal) as caught:
            asyncio.run(environment.call(session, "text_search", '{"query": "tower"}'))
    assert caught.value.kind == "timeout"
    assert session.calls == 0


def test_sessions_are_few_and_expire(config, spare):
    now = [0.0]
    with open_environment(config, spare, ServingOptions()) as environment:
        environment.clock, environment.sessions = lambda: now[0], 3
        question = environment.list_questions()[0]
        opened = [environment.open_session(question) for _ in range(3)]
        with pytest.raises(Refusal, match="3 sessions"):
            environment.open_session(question)
        now[0] = environments.IDLE_SECONDS + 1
        with pytest.raises(Refusal, match="no such session"):
            environment.find_session(opened[0].id)
        environment.open_session(question)


def post(address, path, body, headers):
    connection = http.client.HTTPConnection(urlsplit(address).netloc, timeout=60)
    connection.putrequest("POST", path, skip_host="Host" in headers)
    for name, value in headers.items():
        connection.putheader(name, value)
    connection.endheaders(body)
    reply = connection.getresponse()
    reply.read()
    connection.close()
    return reply.status


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Content-Length": "2"}, 422),
        ({"Content-Length": "300000"}, 413),
        ({"Transfer-Encoding": "chunked"}, 411),
        ({"Content-Length": "2", "Host": "evil.example"}, 400),
    ],
)
def test_what_is_no_request_of_ours_is_refused(served, headers, status):
    body = b"2\r\n{}\r\n0\r\n\r\n" if "Transfer-Encoding" in headers else b"{}"
    assert post(served.address, "/sessions", body, {"Content-Type": "application/json", **headers}) == status


def test_nothing_is_served_but_what_is_said(served):
    for path in ("/openapi.json", "/docs", "/redoc"):
        with pytest.raises(ToolServerError) as caught:
            send(served.address + path)
        assert caught.value.status == 404


def test_every_call_is_recorded_with_its_pictures_by_content(served, session, record, root):
    before = len(record.read_text().splitlines())
    cropped = session.call("crop", {"box": [0, 0, 500, 500]})
    (line,) = map(json.loads, record.read_text().splitlines()[before:])
    assert (line["question_id"], line["name"], line["text"]) == (session.question_id, "crop", cropped.text)
    (image,) = line["images"]
    kept = root / "images" / image["sha256"][:2] / f"{image['sha256']}.jpg"
    assert kept.read_bytes() == cropped.images[0].content


def test_a_whole_attempt_is_rolled_out_by_plain_python(served, rollouts):
    rollout = next(each for each in rollouts if each.stop_reason == "answered" and len(each.steps) > 3)
    session = ToolSession(rollout.parent_id, served.address)
    *_, last = (session.take_turn(step.reply) for step in rollout.steps)
    assert (last.answer, last.ended) == (rollout.answer, "answered")
    contents = [hashlib.sha256(image.content).hexdigest() for image in session.images]
    assert contents == [image.picture.sha256 for image in rollout.images]
    session.close()


@pytest.mark.parametrize(
    "name", ["synth", "opensearch-vl", "vsearcher", "mmsearch-r1", "mars", "dr-mmsearch", "native"]
)
def test_every_tool_of_a_dialect_is_served_under_its_own_name(config, spare, name):
    with open_environment(config, spare, ServingOptions(dialect=name)) as environment:
        session = environment.open_session(environment.list_questions()[0])
        functions = [each["function"] for each in json.loads(environment.agent.offered)]
        made = {
            "query": "tower", "q": "tower", "url": "img_1", "goal": "height", "image": "img_1", "img_idx": 0,
            "box": [0, 0, 500, 500], "bbox_2d": [0, 0, 500, 500], "label": "a", "x": 0, "y": 0, "width": 100,
            "height": 100,
        }  # fmt: skip
        for function in functions:
            arguments = {key: made[key] for key in function["parameters"].get("required", ())}
            reply = asyncio.run(environment.call(session, function["name"], json.dumps(arguments)))
            assert reply.observation.error in ("", "unknown-page", "picture-undecodable"), (
                function["name"],
                reply.text,
            )


@pytest.mark.parametrize("arguments", ["[]", "{", '{"a": 1, "a": 2}', '{"query": "<image>"}', '{"query": "\\ud800"}'])
def test_arguments_that_no_dialect_reads_are_no_turn(arguments):
    with pytest.raises(BadTurn):
        read_call("text_search", arguments, find_dialect("synth"))


def test_a_release_made_with_other_settings_is_refused(demo, spare):
    other = demo.config.model_copy(update={"seed": 8})
    opening = open_environment(other, spare, ServingOptions(release=demo.release("rl")))
    with pytest.raises(ConfigError, match="this configuration would have"), opening:
        pytest.fail("it was opened")


def test_a_release_serves_its_own_questions(demo, config, spare):
    options = ServingOptions(release=demo.release("rl"))
    with open_environment(config, spare, options) as environment:
        ids = environment.list_questions()
    assert ids
    splits = {row.record_id: row.split for row in demo.rows("selections", Enhancement)}
    assert {splits[each] for each in ids} == {"rl"}


async def visit_over_mcp(place):
    from mcp import Client

    async with Client(place) as client:
        tools = await client.list_tools()
        prompt = await client.get_prompt("question")
        found = await client.call_tool("text_search", {"query": "tower"})
        cropped = await client.call_tool("crop", {"box": [0, 0, 500, 500]})
        wrong = await client.call_tool("crop", {"box": [500, 0, 0, 500]})
    return tools, prompt, found, cropped, wrong


def check_visit(visit, session):
    tools, prompt, found, cropped, wrong = visit
    functions = [each["function"] for each in session.list_tools()]
    assert [(tool.name, tool.description, tool.input_schema) for tool in tools.tools] == [
        (each["name"], each["description"], each["parameters"]) for each in functions
    ]
    assert [message.content.type for message in prompt.messages] == ["text", "image", "text"]
    assert prompt.messages[2].content.text == session.messages[1]["content"]
    assert base64.b64decode(prompt.messages[1].content.data) == session.images[0].content
    assert found.content[0].text == session.call("text_search", {"query": "tower"}).text
    own = session.call("crop", {"box": [0, 0, 500, 500]})
    assert base64.b64decode(cropped.content[1].data) == own.images[0].content
    assert (wrong.is_error, found.is_error, cropped.meta["ended"]) == (True, False, "")


def test_mcp_over_http_gives_a_sessions_tools_and_pictures(served, session):
    there = ToolSession(session.question_id, served.address).open()
    visit = asyncio.run(visit_over_mcp(f"{served.address}/sessions/{there._id}/mcp"))
    check_visit(visit, session)
    there.close()


def make_command(config, root, *more):
    given = [part for each in (f"corpus.world={config.corpus.world}", *SETTINGS) for part in ("--set", each)]
    return [sys.executable, "-m", "pipelines.cli.main", "serve-tools", "--workspace", str(root), *given, *more]


@pytest.mark.slow
def test_mcp_over_stdio_is_about_one_question(served, demo, session, root, tmp_path):
    from mcp import StdioServerParameters

    own = copy_workspace(root, tmp_path / "workspace")
    command = make_command(demo.config, own, "--mcp", "stdio", "--question", session.question_id)
    server = StdioServerParameters(command=command[0], args=command[1:], cwd=ROOT, env={"PYTHONPATH": str(ROOT)})
    check_visit(asyncio.run(visit_over_mcp(server)), session)


@pytest.mark.slow
def test_the_command_says_where_it_listens_and_ends_with_a_signal(demo, root, tmp_path):
    own = copy_workspace(root, tmp_path / "workspace")
    command = make_command(demo.config, own, "--port", "0", str(demo.release("rl")))
    own_code = {**os.environ, "PYTHONPATH": str(ROOT)}
    with subprocess.Popen(command, cwd=ROOT, env=own_code, stdout=subprocess.PIPE, text=True) as process:
        address, told = process.stdout.readline().split(": ", 1)
        assert send(address + "/questions")["questions"]
        assert "tools in the dialect synth" in told
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 3
