import asyncio
import base64
import dataclasses
import hashlib
import io
import random

import pytest
from PIL import Image

from pipelines.errors import ConfigError, RateLimited, RecordFailed, Unavailable
from pipelines.pictures import PictureStore
from pipelines.services.clients.images import (
    LIKE,
    MOST_SENT,
    PART,
    SAME,
    SIDE,
    LiveImageSearch,
)
from pipelines.services.protocols import PictureFile
from tests.pipelines.services.clients.live_servers import (
    QUICK,
    Answer,
    make_bomb,
    make_guard,
    run_live_server,
    say,
    send_to,
)

KEY = "s3cret"


def draw(width=400, height=300, kind="JPEG", **settings):
    target = io.BytesIO()
    image = Image.radial_gradient("L").resize((width, height)).convert("RGB")
    image.save(target, kind, **settings)
    return target.getvalue()


@pytest.fixture(autouse=True)
def key(monkeypatch):
    monkeypatch.setenv("IMAGES_KEY", KEY)


@pytest.fixture
def store(tmp_path):
    return PictureStore(tmp_path / "images")


def keep(store, data, extension="jpg"):
    sha256 = hashlib.sha256(data).hexdigest()
    path = store.path(sha256, extension)
    path.parent.mkdir(parents=True)
    path.write_bytes(data)
    return PictureFile(sha256, path)


PROTOCOLS = {"vision": "google-vision", "lens": "serpapi"}
BASE = "https://pictures.example.org/images/"
both = pytest.mark.parametrize("kind", list(PROTOCOLS))


def make_search(kind, server, store, client=QUICK, guard=None):
    service = (PROTOCOLS[kind], server.url, "IMAGES_KEY", client)
    return LiveImageSearch(*service, pictures=store, picture_base=BASE, guard=guard or make_guard())


def search(kind, server, store, count=10, **settings):
    picture = keep(store, draw(64, 64))
    return asyncio.run(make_search(kind, server, store, **settings).search_image(picture, count))


def describe_web(server):
    return {
        "bestGuessLabels": [{"label": "eiffel tower"}],
        "webEntities": [{"entityId": "/m/02j81", "description": "Eiffel  Tower", "score": 1.2}, {"entityId": "/m/x"}],
        "pagesWithMatchingImages": [
            {
                "url": "https://part.example.org/",
                "pageTitle": "A <b>part</b> &amp; more",
                "partialMatchingImages": [{"url": server.page("/part.png")}],
            },
            {
                "url": "https://same.example.org/",
                "pageTitle": "The  tower",
                "fullMatchingImages": [{"url": server.page("/same.jpg")}],
                "partialMatchingImages": [{"url": server.page("/part.png")}],
            },
            {"url": "https://bare.example.org/"},
            {"pageTitle": "leads nowhere"},
        ],
        "visuallySimilarImages": [{"url": server.page("/like.jpg")}],
    }


def describe_lens(server):
    return {
        "search_metadata": {"status": "Success"},
        "visual_matches": [
            {
                "position": 1,
                "title": "The  tower",
                "link": "https://same.example.org/",
                "source": "Same",
                "thumbnail": server.page("/same.jpg"),
            },
            {"position": 2, "title": "No page", "thumbnail": server.page("/part.png")},
            {"position": 3, "title": "Third", "link": "https://third.example.org/"},
        ],
    }


def serve(server, kind, pictures=None):
    """Return a service with a site of pictures beside it."""
    reply = {
        "vision": lambda: {"responses": [{"webDetection": describe_web(server)}]},
        "lens": lambda: describe_lens(server),
    }[kind]
    shown = pictures or {"/same.jpg": draw(), "/part.png": draw(kind="PNG"), "/like.jpg": draw(100, 50)}

    def respond(asked):
        if asked.path == "/api":
            return say(reply())
        found = shown.get(asked.path, Answer(404))
        return found if isinstance(found, Answer) else Answer(body=found, kind="image/jpeg")

    return respond


def test_vision_lists_pages_with_the_picture_then_parts_of_it_then_pictures_like_it(store):
    with run_live_server() as server:
        server.respond = serve(server, "vision")
        hits = search("vision", server, store)
        like = server.page("/like.jpg")
    assert [(hit.url, hit.title, hit.snippet, hit.distance) for hit in hits] == [
        ("https://same.example.org/", "The tower", "The picture may show: eiffel tower; Eiffel Tower", SAME),
        ("https://part.example.org/", "A part & more", "", PART),
        ("https://bare.example.org/", "", "", PART),
        (like, "eiffel tower", "", LIKE),
    ]


def test_vision_is_sent_the_picture_itself_and_the_key_in_a_header(store):
    with run_live_server() as server:
        server.respond = serve(server, "vision")
        search("vision", server, store, 2)
        asked = server.asked[0]
    (request,) = asked.json()["requests"]
    assert (asked.method, asked.query, asked.headers["x-goog-api-key"]) == ("POST", {}, KEY)
    assert base64.b64decode(request["image"]["content"]) == draw(64, 64)
    assert request["features"] == [{"type": "WEB_DETECTION", "maxResults": 2}]


def test_a_picture_that_is_too_large_to_be_sent_is_sent_as_a_copy(store):
    target = io.BytesIO()
    noise = Image.frombytes("RGB", (1800, 1000), random.Random(1).randbytes(1800 * 1000 * 3))
    noise.save(target, "JPEG", quality=100, subsampling=0)
    picture = keep(store, target.getvalue())
    assert picture.path.stat().st_size > MOST_SENT
    with run_live_server() as server:
        server.respond = serve(server, "vision")
        asyncio.run(make_search("vision", server, store).search_image(picture, 1))
        sent = base64.b64decode(server.asked[0].json()["requests"][0]["image"]["content"])
    with Image.open(io.BytesIO(sent)) as shown:
        assert (shown.format, max(shown.size)) == ("JPEG", 1600)


def test_lens_is_sent_the_pictures_address_and_ranks_are_distances(store):
    with run_live_server() as server:
        server.respond = serve(server, "lens")
        hits = search("lens", server, store)
        asked = server.asked[0]
    assert [(hit.url, hit.title, hit.snippet, hit.distance) for hit in hits] == [
        ("https://same.example.org/", "The tower", "Same", 1.0),
        ("https://third.example.org/", "Third", "", 3.0),
    ]
    sha256 = hashlib.sha256(draw(64, 64)).hexdigest()
    assert asked.query == {
        "engine": "google_lens",
        "output": "json",
        "url": f"https://pictures.example.org/images/{sha256[:2]}/{sha256}.jpg",
        "api_key": KEY,
    }


def test_lens_without_a_place_where_pictures_are_published_is_refused(store):
    with pytest.raises(ConfigError, match=r"live\.urls\.pictures"):
        LiveImageSearch("serpapi", "https://a.example.org/", "", pictures=store)


@both
def test_a_thumbnail_is_small_and_stored_with_where_it_was_found(kind, store):
    with run_live_server() as server:
        server.respond = serve(server, kind)
        first = search(kind, server, store)[0].thumbnail
    assert (first.width, first.height, first.extension) == (SIDE, SIDE * 3 // 4, "jpg")
    assert (first.file, first.source_url) == ("same.jpg", "https://same.example.org/")
    assert (first.author, first.licence, first.licence_url) == ("unknown", "unknown", "")
    assert hashlib.sha256(store.read(first)).hexdigest() == first.sha256


@pytest.mark.parametrize(
    "picture",
    [
        Answer(404),
        Answer(500),
        Answer(429),
        Answer(hang_up=True),
        Answer(body=b"GIF89a broken", kind="image/gif"),
        Answer(body=b"<html>", kind="text/html"),
        Answer(body=draw()[:500], kind="image/jpeg"),
        Answer(body=draw(), kind="image/jpeg", cut=10),
        make_bomb("image/png"),
        Answer(body=b"x" * 4096, endless=True),
        Answer(body=draw(), drip=0.01),
        send_to("http://127.0.0.1:1/secret"),
        send_to("http://169.254.169.254/"),
        send_to("file:///etc/passwd"),
        send_to("/same.jpg"),
    ],
)
def test_a_thumbnail_that_cannot_be_had_is_left_out_and_the_result_stays(picture, store):
    client = dataclasses.replace(QUICK, timeout=1.0)
    with run_live_server() as server:
        server.respond = serve(server, "vision", {"/same.jpg": picture})
        first = search("vision", server, store, 1, client=client)[0]
    assert (first.url, first.thumbnail) == ("https://same.example.org/", None)


@pytest.mark.parametrize(
    "address", ["http://127.0.0.1:{port}/x", "http://169.254.169.254/", "http://localhost:{port}/x"]
)
def test_a_private_thumbnail_is_never_asked_for(address, store):
    with run_live_server() as server:
        match = {"link": "https://same.example.org/", "thumbnail": address.format(port=server.port)}
        server.respond = lambda asked: say({"search_metadata": {}, "visual_matches": [match]})
        (hit,) = search("lens", server, store)
        assert (hit.thumbnail, len(server.asked)) == (None, 1)


@both
@pytest.mark.parametrize(
    ("answer", "error"),
    [
        (say({"error": {"message": "API key not valid. Please pass a valid API key."}}, 400), ConfigError),
        (Answer(401), ConfigError),
        (Answer(403), ConfigError),
        (Answer(402), Unavailable),
        (Answer(429), RateLimited),
        (Answer(500), Unavailable),
        (Answer(404), ConfigError),
        (say({"error": "bad request"}, 400), RecordFailed),
        (say({"responses": [], "search_metadata": {}, "visual_matches": {"a": 1}}), Unavailable),
        (say({"responses": [{"error": {"code": 13, "message": KEY}}], "error": KEY}), Unavailable),
    ],
)
def test_a_refusal_is_the_keys_the_accounts_the_services_or_the_pictures(kind, answer, error, store):
    with run_live_server(lambda asked: answer) as server, pytest.raises(error) as caught:
        search(kind, server, store)
    assert KEY not in str(caught.value)
