import asyncio
import hashlib
import io
from dataclasses import dataclass, field
from itertools import pairwise

import pytest
from PIL import Image

from pipelines.checks.pictures import classify_licence
from pipelines.errors import ConfigError, RateLimited, RecordFailed, Unavailable
from pipelines.pictures import PictureStore
from pipelines.services.clients.commons import (
    CommonsApi,
    CommonsFiles,
    JoinedMetadata,
    RecordedCommons,
    RecordedFileFetch,
    choose_address,
    make_client,
    make_title,
    strip_html,
)
from pipelines.services.clients.http import RateLimiter
from pipelines.services.clients.replies import open_replies
from pipelines.services.clients.sparql import name_agent
from pipelines.services.image_metadata import ImageFacts, RemoteFile, look_up_images
from pipelines.services.metering import open_meter
from tests.pipelines.services.clients.commons_server import make_image, run_commons
from tests.pipelines.services.clients.live_servers import Answer

AGENT = name_agent("who@example.org")


TITLES = [f"File:Kelm {number}.jpg" for number in range(5)]
ORIGINAL = "/wikipedia/commons/6/65/Kelm_Bridge.png"
THUMBNAIL = "/wikipedia/commons/thumb/6/65/Kelm_Bridge.png/1280px-Kelm_Bridge.png"
COMMONS = "https://upload.wikimedia.org/wikipedia/commons"


def draw(shade: int = 80) -> bytes:
    stream = io.BytesIO()
    Image.new("RGB", (64, 48), (shade, 90, 100)).save(stream, "PNG")
    return stream.getvalue()


PICTURE = draw()


@pytest.fixture
def commons():
    images = {"File:A.jpg": [make_image()]}
    images |= {title: [make_image(width=100 + place)] for place, title in enumerate(TITLES)}
    files = {ORIGINAL: PICTURE, THUMBNAIL: draw(1)}
    with run_commons(images=images, found={"Kelm Bridge filetype:bitmap": TITLES}, files=files) as server:
        yield server


def make_quick(pause=0.0, **settings):
    return make_client(settings.pop("limiter", RateLimiter("Wikimedia", pause=pause)), **({"backoff": 0.0} | settings))


def make_config(api, contact="who@example.org"):
    return api, contact


def make_api(server, **settings):
    return CommonsApi(*make_config(server.url), make_quick(**settings))


def describe(server, *files, **settings):
    return asyncio.run(make_api(server, **settings).describe_images(files))


def test_a_file_is_described_with_size_licence_and_author(commons):
    assert describe(commons, "A.jpg") == {
        "A.jpg": ImageFacts(
            url="https://u/A.jpg", width=800, height=600, mime="image/jpeg", bytes=1234,
            sha1="a" * 40, licence="CC BY-SA 4.0", licence_url="https://l", author="A. Uthor",
            source_url="https://c/File:A.jpg",
        )
    }  # fmt: skip


def test_the_request_is_what_the_service_asks_of_clients(commons):
    describe(commons, "A.jpg")
    (request,) = commons.asked
    assert request.headers["user-agent"] == AGENT
    form = request.form
    assert (form["action"], form["prop"], form["format"], form["formatversion"]) == ("query", "imageinfo", "json", "2")
    assert (form["iiprop"], form["maxlag"]) == ("url|size|mime|sha1|extmetadata", "5")


def test_files_are_asked_for_fifty_at_a_time(commons):
    commons.images |= {f"File:F{n}.jpg": [make_image(width=n)] for n in range(120)}
    facts = describe(commons, *(f"F{n}.jpg" for n in range(120)))
    assert [facts[f"F{n}.jpg"].width for n in range(120)] == list(range(120))
    assert [len(request.form["titles"].split("|")) for request in commons.asked] == [50, 50, 20]


def test_names_are_mapped_back_however_the_service_writes_them(commons):
    commons.images["File:Kelm bridge.jpg"] = [make_image(width=1)]
    commons.moved["File:Old name.jpg"] = "File:Kelm bridge.jpg"
    names = ("kelm_bridge.jpg", "File:Kelm bridge.jpg", "Old_name.jpg")
    assert {name: facts.width for name, facts in describe(commons, *names).items()} == dict.fromkeys(names, 1)

    def normalise(server, form):
        page = {"ns": 6, "title": "File:Ⅷ.jpg", "imagerepository": "local", "imageinfo": [make_image(width=8)]}
        return {"query": {"normalized": [{"from": "File:VIII.jpg", "to": "File:Ⅷ.jpg"}], "pages": [page]}}

    commons.answer = normalise
    assert describe(commons, "VIII.jpg")["VIII.jpg"].width == 8


@pytest.mark.parametrize("name", ["A|B.jpg", "A#b.jpg", "", "A\x07b.jpg", "x" * 300, "File:", "[[A]].jpg"])
def test_a_name_that_no_file_has_is_never_sent(commons, name):
    assert make_title(name) is None
    assert describe(commons, name, "A.jpg")[name] is None
    assert [request.form["titles"] for request in commons.asked] == ["File:A.jpg"]


def test_continuations_are_followed_to_the_last_file(commons):
    commons.images = {f"File:F{n}.jpg": [make_image(width=n)] for n in range(7)}
    commons.at_once = 3
    facts = describe(commons, *(f"F{n}.jpg" for n in range(7)))
    assert [facts[f"F{n}.jpg"].width for n in range(7)] == list(range(7))
    assert [request.form.get("iistart") for request in commons.asked] == [None, "3", "6"]


def error(code, **headers):
    body = b'{"error":{"code":"%s","info":"i"}}' % code.encode()
    return Answer(body=body, headers={"Content-Type": "application/json"} | headers)


BROKEN_REPLIES = {
    "500": Answer(500),
    "html": Answer(200, b"<html>busy</html>", "text/html"),
    "truncated json": Answer(200, b'{"query":{"pages":[{"title":"File:A.jpg"'),
    "truncated body": Answer(200, b'{"query":{}}', cut=50),
    "wrong shape": Answer(200, b'["query"]'),
    "no query": Answer(200, b'{"batchcomplete":true}'),
    "empty": Answer(200, b""),
    "readonly": error("readonly"),
    "internal error": error("internal_api_error_DBQueryError"),
}


@pytest.mark.parametrize("fault", BROKEN_REPLIES.values(), ids=BROKEN_REPLIES)
def test_a_broken_reply_is_asked_for_again_and_never_taken_for_an_answer(commons, fault):
    commons.faults = [fault, fault]
    assert describe(commons, "A.jpg")["A.jpg"].width == 800
    assert len(commons.asked) == 3
    commons.faults = [fault] * 3
    with pytest.raises(Unavailable, match="3 times"):
        describe(commons, "A.jpg")


@pytest.mark.parametrize("fault", [Answer(404), Answer(400), error("badvalue"), error("unknown_action")])
def test_an_address_that_is_no_such_api_is_our_mistake(commons, fault):
    commons.faults = [fault]
    with pytest.raises(ConfigError, match="expected the API of a MediaWiki"):
        describe(commons, "A.jpg")


@pytest.mark.parametrize(
    ("said", "licence", "found"),
    [
        ({"LicenseShortName": "Public domain"}, "Public domain", "free"),
        ({"LicenseShortName": "<span>GFDL</span>"}, "GFDL", "free"),
        ({"LicenseShortName": "", "License": "cc-by-2.0"}, "cc-by-2.0", "free"),
        ({"LicenseShortName": "CC BY-NC 2.0"}, "CC BY-NC 2.0", "unfree"),
        ({"LicenseShortName": "CC BY 4.0", "NonFree": "true"}, "Non-free: CC BY 4.0", "unfree"),
        ({"LicenseShortName": "CC0", "DeletionReason": "not own work"}, "Up for deletion: CC0", "unknown"),
        ({"LicenseShortName": "Fair use"}, "Fair use", "unfree"),
        ({"LicenseShortName": ""}, "", "unknown"),
    ],
)
def test_the_licence_is_the_short_name_and_non_free_files_are_not_free(commons, said, licence, found):
    commons.images["File:A.jpg"] = [make_image(**said)]
    assert describe(commons, "A.jpg")["A.jpg"].licence == licence
    assert classify_licence(licence) == found


def test_files_of_a_shared_repository_are_found_though_their_page_is_missing(commons):
    def share(server, form):
        page = {"ns": 6, "title": "File:A.jpg", "missing": True, "known": True, "imagerepository": "shared"}
        more = {"imageinfo": [make_image()]} if "iistart" in form else {}
        going = {} if more else {"continue": {"iistart": "1", "continue": "||"}}
        return {"query": {"pages": [page | more]}} | going

    commons.answer = share
    assert describe(commons, "A.jpg")["A.jpg"].width == 800


@pytest.mark.parametrize(
    ("source", "text"),
    [
        ('<a href="//commons.wikimedia.org/wiki/User:A" title="User:A">A. Uthor</a>', "A. Uthor"),
        ('Unknown author<span style="display: none;">Unknown author</span>', "Unknown author"),
        ('<span style="display:none"><span>date</span>,+1900</span>Jane Doe', "Jane Doe"),
        ("<style data-x>.a{color:red}</style><p>Ann</p><p>Bo</p>", "Ann Bo"),
        ("Ann &amp; Bo &lt;b&gt;<br>Cy", "Ann & Bo <b> Cy"),
        ("<script>alert(1)</script>x", "x"),
        ("a\x00\u202eb\tc", "ab c"),
        ("<div style='display:none'><br>x</div>y", "y"),
        ("<![x[", ""),
        ("A" * 5000, "A" * 1000),
        ("", ""),
    ],
)
def test_credits_in_html_become_the_text_that_is_shown(source, text):
    assert strip_html(source) == text


@dataclass
class ScriptedMetadata:
    """Describes files, or raises what it is told to."""

    raises: list = field(default_factory=list)
    asked: list = field(default_factory=list)
    absent: tuple = ()
    identity: str = "scripted:1"

    async def describe_images(self, files):
        self.asked.append(list(files))
        if self.raises:
            raise self.raises.pop(0)
        facts = ImageFacts("u", 800, 600, "image/png", 9, "", "CC0", "l", "A", "s")
        return {file: None if file in self.absent else facts for file in files}


@pytest.fixture
def store(tmp_path):
    store = open_replies(tmp_path)
    yield store
    store.close()


def test_each_file_is_asked_about_once_whatever_else_was_asked_for(store):
    service = ScriptedMetadata(absent=("B.jpg",))
    recorded = RecordedCommons(JoinedMetadata(service), store)
    first = asyncio.run(recorded.describe_images(["A.jpg", "B.jpg"]))
    with open_meter() as meter:
        second = asyncio.run(recorded.describe_images(["B.jpg", "C.jpg", "A.jpg"]))
    assert service.asked == [["A.jpg", "B.jpg"], ["C.jpg"]]
    assert second["A.jpg"] == first["A.jpg"]
    assert (first["B.jpg"], second["B.jpg"]) == (None, None)
    assert (meter.usage.calls, meter.usage.cached_calls) == (1, 2)
    assert store.count() == (3, 3)


def test_what_was_answered_before_a_failure_is_kept(store):
    class FailsLater(ScriptedMetadata):
        async def describe_images(self, files):
            if len(self.asked) == 1:
                self.raises = [Unavailable("away")]
            return await super().describe_images(files)

    files = [f"F{n}.jpg" for n in range(60)]
    with pytest.raises(Unavailable):
        asyncio.run(RecordedCommons(JoinedMetadata(FailsLater()), store).describe_images(files))
    service = ScriptedMetadata()
    assert len(asyncio.run(RecordedCommons(JoinedMetadata(service), store).describe_images(files))) == 60
    assert service.asked == [files[50:]]


def test_looked_up_pictures_are_rows_without_a_path():
    service = ScriptedMetadata(absent=("B.jpg",))
    rows = look_up_images(service, ["A.jpg", "B.jpg", "A.jpg"])
    assert list(rows) == ["A.jpg"]
    image = rows["A.jpg"]
    assert (image.file, image.path, image.sha256, image.phash, image.error) == ("A.jpg", "", "", "", "")
    assert (image.width, image.height, image.format, image.licence, image.author) == (800, 600, "png", "CC0", "A")
    assert service.asked == [["A.jpg", "B.jpg"]]


def base(server):
    return server.url.removesuffix("/w/api.php")


def make_files(server, **settings):
    return CommonsFiles(*make_config(server.url), make_quick(**settings))


def make_remote(server, width=64, path=ORIGINAL, sha1=""):
    return RemoteFile("Kelm Bridge.png", base(server) + path, width, sha1)


def fetch(server, remote=None, **settings):
    return asyncio.run(make_files(server, **settings).fetch_file(remote or make_remote(server)))


def test_a_small_original_is_fetched_as_it_is_and_a_large_one_at_a_standard_width(commons):
    assert fetch(commons) == PICTURE
    assert fetch(commons, make_remote(commons, 1281)) == draw(1)
    assert [request.path for request in commons.asked] == [ORIGINAL, THUMBNAIL]
    headers = commons.asked[0].headers
    assert (headers["user-agent"], headers["accept-encoding"]) == (AGENT, "identity")


@pytest.mark.parametrize(
    ("path", "width", "address"),
    [
        ("6/65/Kelm_Bridge.jpg", 4000, "thumb/6/65/Kelm_Bridge.jpg/1280px-Kelm_Bridge.jpg"),
        ("6/65/Kelm_Bridge.jpg", 1280, "6/65/Kelm_Bridge.jpg"),
        ("6/65/Kelm_Bridge.jpg", 0, "6/65/Kelm_Bridge.jpg"),
        ("6/65/K%C3%A9.webp", 4000, "thumb/6/65/K%C3%A9.webp/1280px-K%C3%A9.webp.png"),
        (f"6/65/{'%C3%A9' * 80}.jpg", 4000, f"thumb/6/65/{'%C3%A9' * 80}.jpg/1280px-thumbnail.jpg"),
        ("Special:Redirect/Kelm.jpg", 4000, "Special:Redirect/Kelm.jpg"),
        ("6/65/K.jpg?utm_source=a&utm_content=original", 4000, "thumb/6/65/K.jpg/1280px-K.jpg"),
        ("6/65/K.jpg?utm_source=a&utm_content=original", 800, "6/65/K.jpg"),
        ("Special:Redirect/K.jpg?width=4", 4000, "Special:Redirect/K.jpg?width=4"),
    ],
)
def test_the_address_of_a_thumbnail_is_that_of_mediawiki(path, width, address):
    assert choose_address(RemoteFile("K", f"{COMMONS}/{path}", width), 1280) == f"{COMMONS}/{address}"


BROKEN_FILES = {
    "server error": Answer(500),
    "truncated": Answer(body=PICTURE, cut=100),
    "page": Answer(body=b"\n<!DOCTYPE html><html>log in"),
    "packed": Answer(body=PICTURE, headers={"Content-Encoding": "gzip"}),
}


@pytest.mark.parametrize("fault", BROKEN_FILES.values(), ids=BROKEN_FILES)
def test_what_is_no_whole_picture_is_asked_for_again(commons, fault):
    commons.faults = [fault, fault]
    assert fetch(commons) == PICTURE
    commons.faults = [fault] * 3
    with pytest.raises(Unavailable, match="3 times; run again later"):
        fetch(commons)
    assert len(commons.asked) == 6


def test_an_original_takes_the_place_of_a_thumbnail_that_never_comes(commons):
    commons.files[THUMBNAIL] = Answer(503)
    wide = make_remote(commons, 4000, sha1=hashlib.sha1(PICTURE).hexdigest())
    assert fetch(commons, wide) == PICTURE
    assert [request.path for request in commons.asked] == [THUMBNAIL] * 3 + [ORIGINAL]
    commons.files[ORIGINAL] = Answer(503)
    with pytest.raises(Unavailable, match=f"{ORIGINAL}: HTTP 503, 3 times; run again later"):
        fetch(commons, wide)


UNFIT = {
    "missing": (Answer(404), "picture-missing", 1),
    "gone": (Answer(410), "picture-missing", 1),
    "svg": (Answer(body=b"<?xml version='1.0'?><svg/>"), "picture-format", 1),
    "empty": (Answer(body=b""), "picture-format", 1),
    "told too large": (Answer(body=PICTURE, cut=1 << 40), "picture-too-large", 1),
    "turns out too large": (Answer(body=PICTURE + b"\0" * 5000, endless=True), "picture-too-large", 1),
}


@pytest.mark.parametrize(("fault", "error", "asked"), UNFIT.values(), ids=UNFIT)
def test_a_file_of_no_use_fails_its_record_alone(commons, fault, error, asked):
    commons.faults = [fault] * 3
    with pytest.raises(RecordFailed) as caught:
        fetch(commons, reply_bytes=5000)
    assert (caught.value.error, len(commons.asked)) == (error, asked)


def test_an_original_must_be_what_was_described(commons):
    sha1 = hashlib.sha1(PICTURE).hexdigest()
    assert fetch(commons, make_remote(commons, sha1=sha1)) == PICTURE
    assert fetch(commons, make_remote(commons, 4000, sha1=sha1)) == draw(1)
    for query in ("", "?utm_source=api&utm_campaign=imageinfo"):
        with pytest.raises(RecordFailed, match="picture-changed"):
            fetch(commons, make_remote(commons, path=ORIGINAL + query, sha1="0" * 40))


def test_a_redirect_inside_the_service_is_followed(commons):
    commons.faults = [Answer(302, headers={"Location": "/elsewhere.png"})]
    commons.files["/elsewhere.png"] = draw(3)
    assert fetch(commons) == draw(3)


@pytest.mark.parametrize(
    "target",
    ["http://10.0.0.1/a.png", "https://169.254.169.254/latest/meta-data", "http://localhost:1/a.png",
     "http://upload.wikimedia.org/a.png", "file:///etc/passwd", "//[::1]/a.png", "http://127.0.0.1.example.org/",
     "https://[", "ftp://127.0.0.1/a.png"],
)  # fmt: skip
def test_a_redirect_out_of_the_service_is_not_followed(commons, target):
    commons.faults = [Answer(302, headers={"Location": target})]
    with pytest.raises(RecordFailed, match="picture-address"):
        fetch(commons)
    assert len(commons.asked) == 1


@pytest.mark.parametrize(
    "url",
    ["http://upload.wikimedia.org/a.png", "https://evilwikimedia.org/a.png", "https://wikimedia.org.example.org/a.png",
     "https://me@upload.wikimedia.org/a.png", "https://upload.wikimedia.org:8443/a.png", "https://127.0.0.1/a.png",
     "http://127.0.0.1/a.png", "http://localhost/a.png", "https://10.1.2.3/a.png", "", "a.png",
     "https://upload.wikimedia.org:port/", "https://10.0.0.1\\@upload.wikimedia.org/", "https://[", "https://é\x00b/",
     "https://upload.wikimedia.org\t.example.org/", "https://upload.wikimedia.org\\.example.org/"],
)  # fmt: skip
def test_no_address_outside_wikimedia_is_asked_for(url):
    with pytest.raises(RecordFailed, match="picture-address"):
        asyncio.run(CommonsFiles(*make_config(""), make_quick()).fetch_file(RemoteFile("A.png", url, 64)))


@dataclass
class ScriptedFiles:
    """Hands out what it is told to, one a request."""

    replies: list
    asked: list = field(default_factory=list)
    identity: str = "scripted:1"

    async def fetch_file(self, file):
        self.asked.append(file)
        reply = self.replies.pop(0)
        if isinstance(reply, Exception):
            raise reply
        return reply


REMOTE = RemoteFile("Kelm.png", f"{COMMONS}/6/65/Kelm.png", 64)


@pytest.fixture
def record(tmp_path):
    """Wrap a service in a recording; its image store is at ``record.pictures``."""
    store, pictures = open_replies(tmp_path / "replies"), PictureStore(tmp_path / "images")

    def wrap(*replies, **settings):
        return RecordedFileFetch(ScriptedFiles(list(replies)), store, pictures=pictures, **settings)

    wrap.pictures, wrap.store = pictures, store
    yield wrap
    store.close()


def take(recorded):
    return asyncio.run(recorded.fetch_file(REMOTE))


def test_a_picture_is_fetched_once_and_then_read_from_the_image_store(record):
    with open_meter() as meter:
        assert take(record(PICTURE)) == PICTURE
        assert take(record()) == PICTURE
    assert (meter.usage.calls, meter.usage.cached_calls) == (1, 1)
    assert record.pictures.path(hashlib.sha256(PICTURE).hexdigest(), "png").read_bytes() == PICTURE


@pytest.mark.parametrize("reply", [RecordFailed("picture-missing", "HTTP 404"), PICTURE[:60]])
def test_a_file_of_no_use_is_asked_for_once(record, reply):
    errors = []
    for recorded in (record(reply), record()):
        with pytest.raises(RecordFailed) as caught:
            take(recorded)
        errors.append(str(caught.value))
    assert errors[0] == errors[1]


@pytest.mark.parametrize("error", [RateLimited("slow", 3.0), Unavailable("away")])
def test_a_service_that_is_away_is_asked_again(record, error):
    recorded = record(error, PICTURE)
    with pytest.raises(type(error)):
        take(recorded)
    assert take(recorded) == PICTURE


def test_a_picture_gone_from_the_image_store_is_fetched_again(record):
    take(record(PICTURE))
    path = record.pictures.path(hashlib.sha256(PICTURE).hexdigest(), "png")
    path.unlink()
    assert take(record(PICTURE)) == PICTURE
    path.write_bytes(b"damaged")
    assert take(record(PICTURE)) == PICTURE
    assert path.read_bytes() == PICTURE


def test_a_picture_that_is_gone_and_changed_is_said_so(record):
    take(record(PICTURE))
    record.pictures.path(hashlib.sha256(PICTURE).hexdigest(), "png").unlink()
    with pytest.raises(RecordFailed, match=r"picture-changed.*--fresh-replies commons"):
        take(record(draw(7)))
    with pytest.raises(Unavailable):
        take(record(Unavailable("away")))
    assert take(record(draw(7), epoch=1)) == draw(7)


def test_files_that_are_not_there_and_hidden_versions_are_none(commons):
    commons.images |= {"File:C.jpg": None, "File:D.jpg": [{"filehidden": True}], "File:E.jpg": [{"filemissing": True}]}
    facts = describe(commons, *(f"{name}.jpg" for name in "ABCDE"))
    assert [file for file, known in facts.items() if known] == ["A.jpg"]


@pytest.mark.parametrize(
    ("api", "contact", "why"),
    [(url, "a@b", "expected https") for url in ("http://c.org/", "ftp://c/", "c")] + [("", "", "contact is empty")],
)
@pytest.mark.parametrize("kind", [CommonsApi, CommonsFiles])
def test_a_wrong_setting_is_refused(kind, api, contact, why):
    with pytest.raises(ConfigError, match=why):
        kind(api, contact, make_quick())


def describe_one(server, **settings):
    return describe(server, "A.jpg", **settings)


def fetch_original(server, **settings):
    return fetch(server, **settings)


ASKS = {"describe": describe_one, "fetch": fetch_original}
each_ask = pytest.mark.parametrize("ask", ASKS.values(), ids=ASKS)


@each_ask
@pytest.mark.parametrize(
    ("fault", "wait"),
    [
        (Answer(429, headers={"Retry-After": "17"}), 17.0),
        (Answer(429, headers={"Retry-After": "soon"}), 0.0),
        (Answer(503, headers={"Retry-After": "3600"}), 3600.0),
        (error("maxlag", **{"Retry-After": "5"}), 5.0),
        (error("ratelimited"), 0.0),
    ],
)
def test_a_service_that_asks_to_slow_down_is_not_asked_again(commons, ask, fault, wait):
    if ask is fetch_original and fault.status == 200:
        return
    commons.faults = [fault]
    with pytest.raises(RateLimited) as caught:
        ask(commons)
    assert (caught.value.retry_after, len(commons.asked)) == (wait, 1)


@each_ask
@pytest.mark.parametrize("status", [403, 429])
def test_a_ban_stops_at_once(commons, ask, status):
    commons.faults = [Answer(status, b"Please respect our robot policy", headers={"Retry-After": "1"})]
    with pytest.raises(Unavailable, match=f"{status}.*robot policy"):
        ask(commons)
    assert len(commons.asked) == 1


@each_ask
def test_a_service_that_is_away_or_drips_is_unavailable(commons, ask):
    commons.faults = [Answer(body=PICTURE * 4, drip=0.05)] * 2
    with pytest.raises(Unavailable, match=r"no complete reply in 0\.2 s.*, 2 times"):
        ask(commons, seconds=0.2, tries=2)
    with run_commons() as gone:
        pass
    with pytest.raises(Unavailable, match="no connection"):
        ask(gone, tries=1)


def test_all_clients_keep_one_pace_over_event_loops(commons):
    limiter = RateLimiter("Wikimedia", pause=0.05)
    files, api = make_files(commons, limiter=limiter), make_api(commons, limiter=limiter)

    async def ask_together():
        asks = [api.describe_images(["A.jpg"]), files.fetch_file(make_remote(commons))]
        await asyncio.gather(*asks)

    for _ in range(2):
        asyncio.run(ask_together())
    times = [request.at for request in commons.asked]
    assert (commons.most_in_flight, len(times)) == (1, 4)
    assert all(later - earlier >= 0.05 for earlier, later in pairwise(times))
