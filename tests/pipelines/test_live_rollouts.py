"""Whole rollouts with live tools against servers on loopback, and from the recording when all servers are gone."""

import asyncio
import base64
import io
import json
from contextlib import closing
from dataclasses import replace

import pytest
from PIL import Image

from pipelines.config.loading import make_config, read_recipe
from pipelines.pictures import PictureStore
from pipelines.run.assembly import Assembly
from pipelines.run.workspace import Workspace
from pipelines.services.clients.images import LiveImageSearch
from pipelines.services.clients.pages import DirectReader
from pipelines.services.clients.recorded import Recorded, RecordedChat
from pipelines.services.clients.replies import open_replies
from pipelines.services.clients.search import LiveSearch
from pipelines.stages.rollouts import Rollouts
from tests.mock_teacher import Manner, start_teacher
from tests.pipelines.agent.trail import FakeModel, make_agent, make_picture, make_question, make_tools
from tests.pipelines.services.clients.live_servers import QUICK, Answer, make_guard, run_live_server, say, show
from tests.toy import build_toy_corpus

pytest.importorskip("trafilatura")

KEYS = {"SEARCH_KEY": "s3cret-search", "READER_KEY": "s3cret-reader", "IMAGES_KEY": "s3cret-images"}
PUBLIC = "http://93.184.215.14/kelm"
"""A page that needs no look-up; the reader service is asked for it, and nobody else."""
TEXT = "Kelm Bridge is a bridge in Velm. It was designed by Ana Kovač and opened in 1931."


@pytest.fixture(autouse=True)
def keys(monkeypatch):
    for name, key in KEYS.items():
        monkeypatch.setenv(name, key)


def draw():
    target = io.BytesIO()
    Image.linear_gradient("L").resize((300, 200)).convert("RGB").save(target, "JPEG")
    return target.getvalue()


def serve(page, picture):
    """Return services and a site: a search, a reader, a search by picture, a page and its picture."""
    web = {
        "bestGuessLabels": [{"label": "kelm bridge"}],
        "pagesWithMatchingImages": [
            {"url": page, "pageTitle": "Kelm Bridge", "fullMatchingImages": [{"url": picture}]},
        ],
    }
    found = {
        "/search": (KEYS["SEARCH_KEY"], {"organic": [{"link": page, "title": "Kelm Bridge", "snippet": "A bridge."}]}),
        "/images": (KEYS["IMAGES_KEY"], {"responses": [{"webDetection": web}]}),
        f"/reader/{page}": (KEYS["READER_KEY"], {"code": 200, "data": {"url": page, "title": "Kelm", "content": TEXT}}),
    }

    def respond(asked):
        if asked.path in found:
            key, reply = found[asked.path]
            return say(reply) if key in f"{asked.headers}" else Answer(401)
        if asked.path == "/picture.jpg":
            return Answer(body=draw(), kind="image/jpeg")
        return show(
            f"<html><head><title>Kelm Bridge</title></head><body><article><p>{TEXT}</p></article></body></html>"
        )

    return respond


def list_paths(server):
    return [asked.path for asked in server.asked]


def call(name, **arguments):
    return f"<think>Well.</think>\n<tool_call>\n{json.dumps({'name': name, 'arguments': arguments})}\n</tool_call>"


def roll_out(folder, server, model):
    """Answer one question with the live tools, recorded in a folder; all is opened anew each time."""
    place, store = f"http://127.0.0.1:{server.port}", PictureStore(folder)
    guard = make_guard()
    with closing(open_replies(folder)) as replies:
        tools = make_tools(
            folder,
            text_search=Recorded(LiveSearch("serper", f"{place}/search", "SEARCH_KEY", QUICK), replies, live=True),
            pages=Recorded(DirectReader("", QUICK, guard), replies, live=True),
            image_search=Recorded(
                LiveImageSearch("google-vision", f"{place}/images", "IMAGES_KEY", QUICK, pictures=store, guard=guard),
                replies,
                live=True,
            ),
            thumbnails=1,
            online=True,
        )
        stage = Rollouts(make_agent(RecordedChat(model, replies), tools), attempts=1)
        (rollout,) = asyncio.run(stage(make_question(make_picture(folder))))
    return rollout


def test_a_rollout_over_live_tools_is_replayed_when_all_servers_are_gone(tmp_path, monkeypatch):
    with run_live_server() as server:
        page = server.page("/kelm")
        server.respond = serve(page, server.page("/picture.jpg"))
        lines = (
            call("text_search", query="Kelm Bridge"),
            call("visit", url=page, goal="designer"),
            call("image_search", image="img_1"),
            call("visit", url=f"http://127.0.0.1:{server.port}/kelm", goal=""),
            "<think>Well.</think>\n<answer>1931</answer>",
        )
        first = roll_out(tmp_path, server, FakeModel(lines))
        assert list_paths(server) == ["/search", "/kelm", "/images", "/picture.jpg"]
        sent = json.loads(server.asked[2].body)["requests"][0]["image"]["content"]
    assert (first.stop_reason, first.answer) == ("answered", "1931")
    assert [step.tool for step in first.steps[:4]] == ["text_search", "visit", "image_search", "visit"]
    observations = [step.observation for step in first.steps[:4]]
    assert [observation.error for observation in observations] == ["", "", "", "forbidden-address"]
    assert page in observations[0].text
    assert "Ana Kovač" in observations[1].text
    thumbnail = observations[2].results[0].thumbnail
    assert (observations[2].images, thumbnail.source_url) == (("img_2",), page)
    assert base64.b64decode(sent) == PictureStore(tmp_path).read(first.images[0].picture)
    assert not any(key in first.model_dump_json() for key in KEYS.values())
    for name in KEYS:
        monkeypatch.delenv(name)
    assert roll_out(tmp_path, server, replace(FakeModel(()), requests=[])) == first
    assert len(server.asked) == 4


def set_up(server, teacher):
    """Return the settings of a run whose every service is on loopback; no page is, for those nobody may open."""
    place = f"http://127.0.0.1:{server.port}"
    return (
        *("tools.family=live", "contact=ada@example.org", "live.reader=jina"),
        *(f"live.urls.{tool}={place}/{tool}" for tool in ("search", "reader", "images")),
        *(f"live.key_envs.{tool}={tool.upper()}_KEY" for tool in ("search", "reader", "images")),
        *("models.teacher.adapter=openai", "models.teacher.name=teacher", f"models.teacher.base_url={teacher}"),
        "rollouts.attempts=2",
    )


def act(folder, corpus, settings):
    assembly = Assembly(make_config(read_recipe("demo"), settings), Workspace(folder), corpus)
    try:
        stage = assembly.build_stage("rollouts")
        return asyncio.run(stage(make_question(make_picture(assembly.workspace.images))))
    finally:
        assembly.close()


def test_a_configured_teacher_acts_with_the_services_of_the_configuration(tmp_path):
    corpus = build_toy_corpus(tmp_path / "toy")
    with run_live_server() as server:
        server.respond = serve(PUBLIC, f"http://127.0.0.1:{server.port}/picture.jpg")
        with start_teacher(Manner(4, 0.0, 0.01)) as teacher:
            settings = set_up(server, teacher)
            rollouts = act(tmp_path / "space", corpus, settings)
        asked = list_paths(server)
    assert [rollout.stop_reason for rollout in rollouts] == ["answered"] * 2
    steps = rollouts[0].steps[:4]
    assert [step.tool for step in steps] == ["image_search", "visit", "text_search", "visit"]
    assert [step.observation.error for step in steps] == [""] * 4
    assert "Ana Kovač" in steps[1].observation.text
    # One search by picture for both attempts; the picture that is said to lie on loopback was asked for by nobody.
    assert asked.count("/images") == 1
    assert asked.count(f"/reader/{PUBLIC}") == 1
    assert {path for path in asked if path != "/search"} == {"/images", f"/reader/{PUBLIC}"}
    assert act(tmp_path / "space", corpus, settings) == rollouts
    assert list_paths(server) == asked
    recorded = b"".join(path.read_bytes() for path in (tmp_path / "space").rglob("*") if path.is_file())
    assert not any(key.encode() in recorded for key in KEYS.values())
