import asyncio

import pytest

from pipelines.cli.doctor import ask_live
from pipelines.config.settings import LiveConfig
from tests.pipelines.services.clients.live_servers import Answer, run_live_server, say, send_to

pytest.importorskip("trafilatura")


@pytest.fixture(autouse=True)
def key(monkeypatch):
    for name in ("SEARCH_KEY", "READER_KEY", "IMAGES_KEY"):
        monkeypatch.setenv(name, "s3cret")


def look(server, patience=5.0, **settings):
    keys = {f"{tool}_key_env": f"{tool.upper()}_KEY" for tool in ("search", "reader", "images")}
    places = {f"{tool}_url": f"http://127.0.0.1:{server.port}/{tool}" for tool in ("search", "reader", "images")}
    return asyncio.run(ask_live(LiveConfig(**(places | keys | settings)), patience))


def judge(asked):
    """Answer as services do that are asked for nothing."""
    if "s3cret" not in f"{asked.headers} {asked.query}":
        return Answer(401)
    return say({"message": "Missing query parameter"}, 400) if asked.path != "/reader" else Answer(200, b"usage")


@pytest.mark.parametrize(
    "settings",
    [
        {"reader": "jina"},
        {"reader": "jina", "search": "serpapi", "images": "serpapi", "picture_base": "https://p.example.org/images"},
    ],
)
def test_services_that_take_the_key_are_fine_and_are_asked_once_for_nothing(settings):
    with run_live_server(judge) as server:
        found = look(server, **settings)
    assert [finding.state for finding in found] == ["ok"] * 3
    assert [finding.what.split(":")[0] for finding in found] == ["live search", "live reader", "live images"]
    assert len(server.asked) == 3
    assert all("q" not in asked.query and "url" not in asked.query for asked in server.asked)


def test_a_key_that_is_not_taken_is_a_problem_and_is_not_shown():
    with run_live_server(lambda asked: say({"message": f"{asked.headers}"}, 403)) as server:
        found = look(server, reader="jina")
    assert [finding.state for finding in found] == ["problem"] * 3
    assert "rejects the key of SEARCH_KEY" in found[0].detail
    assert not any("s3cret" in finding.detail for finding in found)


def test_a_variable_that_is_not_set_is_a_problem_and_nothing_is_asked(monkeypatch):
    monkeypatch.delenv("SEARCH_KEY")
    with run_live_server(judge) as server:
        found = look(server)
    assert (found[0].state, "SEARCH_KEY is not set" in found[0].detail) == ("problem", True)
    assert [asked.path for asked in server.asked] == ["/images"]


@pytest.mark.parametrize(
    ("answer", "state", "word"),
    [
        (Answer(429), "warning", "busy"),
        (Answer(503, headers={"Retry-After": "1"}), "warning", "busy"),
        (Answer(402), "problem", "nothing left"),
        (Answer(404), "problem", "live.search_url"),
        (Answer(500), "problem", "HTTP 500"),
        (send_to("http://127.0.0.1:1/"), "problem", "moved"),
        (Answer(hang_up=True), "problem", "live.search_url"),
        (Answer(hang=1.0), "problem", "no complete reply"),
        (Answer(body=b"x" * 4096, endless=True), "problem", "8,388,608"),
    ],
)
def test_a_service_that_cannot_serve_is_a_problem_and_one_that_is_busy_is_not(answer, state, word):
    with run_live_server(lambda asked: answer) as server:
        found = look(server, patience=0.5 if answer.hang else 60.0)[0]
    assert (found.state, word in found.detail) == (state, True), found.detail


def test_pages_that_are_fetched_here_need_no_service():
    with run_live_server(judge) as server:
        found = look(server)
    assert (found[1].state, "trafilatura" in found[1].detail) == ("ok", True)
    assert len(server.asked) == 2


def test_serpapi_without_published_pictures_is_a_problem():
    with run_live_server(judge) as server:
        found = look(server, images="serpapi")
    assert [finding.detail for finding in found if finding.state == "problem"] == [
        "live.picture_base is empty: serpapi takes addresses alone; say where images/ is published"
    ]
