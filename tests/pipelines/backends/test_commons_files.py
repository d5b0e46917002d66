import asyncio
import hashlib
import io
from dataclasses import dataclass, field
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from pipelines.errors import ConfigError, RateLimited, RecordFailed, Unavailable
from pipelines.pictures import PictureStore
from pipelines.services.clients.commons import (
    CommonsApi,
    CommonsFiles,
    RecordedFileFetch,
    choose_address,
    list_hosts,
    make_client,
    make_limiter,
)
from pipelines.services.clients.replies import open_replies
from pipelines.services.image_metadata import RemoteFile
from pipelines.services.metering import open_meter
from tests.pipelines.backends.commons_server import Fault, run_commons

AGENT = "synth/0.1 (who@example.org)"
ORIGINAL = "/wikipedia/commons/6/65/Kelm_Bridge.png"
THUMBNAIL = "/wikipedia/commons/thumb/6/65/Kelm_Bridge.png/330px-Kelm_Bridge.png"
COMMONS = "https://upload.wikimedia.org/wikipedia/commons"


def draw(shade: int = 80) -> bytes:
    stream = io.BytesIO()
    Image.new("RGB", (64, 48), (shade, 90, 100)).save(stream, "PNG")
    return stream.getvalue()


PICTURE = draw()


@pytest.fixture
def commons():
    with run_commons(files={ORIGINAL: PICTURE, THUMBNAIL: draw(1)}) as server:
        yield server


def base(server):
    return server.url.removesuffix("/w/api.php")


def make_files(**settings):
    hosts = settings.pop("hosts", ("127.0.0.1",))
    return CommonsFiles(AGENT, 330, hosts, make_client(**({"pause": 0.0, "backoff": 0.0} | settings)))


def make_remote(server, width=64, path=ORIGINAL, sha1=""):
    return RemoteFile("Kelm Bridge.png", base(server) + path, width, sha1)


def fetch(server, remote=None, **settings):
    return asyncio.run(make_files(**settings).fetch_file(remote or make_remote(server)))


def test_a_small_original_is_fetched_as_it_is_and_a_large_one_at_a_standard_width(commons):
    assert fetch(commons) == PICTURE
    assert fetch(commons, make_remote(commons, 331)) == draw(1)
    assert [request["path"] for request in commons.requests] == [ORIGINAL, THUMBNAIL]


def test_the_request_says_who_asks_and_wants_nothing_packed(commons):
    fetch(commons)
    headers = commons.requests[0]["headers"]
    assert (headers["User-Agent"], headers["Accept-Encoding"]) == (AGENT, "identity")


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


@pytest.mark.parametrize("width", [0, 100, 512, 1024])
def test_a_width_that_is_not_served_is_refused(width):
    with pytest.raises(ConfigError, match="960, 1280, 1920"):
        CommonsFiles(AGENT, width)


def test_nobody_fetches_without_saying_who_or_from_nowhere():
    with pytest.raises(ConfigError, match="names nobody"):
        CommonsFiles("synth", 330)
    for hosts in ((), ("",)):
        with pytest.raises(ConfigError, match="expected names such as"):
            CommonsFiles(AGENT, 330, hosts)


def test_pictures_lie_where_the_api_says():
    assert list_hosts("https://commons.wikimedia.org/w/api.php") == ("wikimedia.org",)
    assert list_hosts("https://wiki.example.org/w/api.php") == ("wiki.example.org",)
    assert list_hosts("https://evilwikimedia.org/w/api.php") == ("evilwikimedia.org",)


@pytest.mark.parametrize(
    ("fault", "wait"),
    [
        (Fault(429, headers={"Retry-After": "17"}), 17.0),
        (Fault(429), 0.0),
        (Fault(503, headers={"Retry-After": "9"}), 9.0),
    ],
)
def test_a_service_that_asks_to_slow_down_is_said_so(commons, fault, wait):
    commons.faults = [fault]
    with pytest.raises(RateLimited) as caught:
        fetch(commons)
    assert (caught.value.retry_after, len(commons.requests)) == (wait, 1)


@pytest.mark.parametrize("fault", [Fault(403), Fault(429, b"see our robot policy")])
def test_a_ban_stops_at_once(commons, fault):
    commons.faults = [fault]
    with pytest.raises(Unavailable, match="refuses us"):
        fetch(commons)
    assert len(commons.requests) == 1


BROKEN = {
    "server error": Fault(500),
    "truncated": Fault(body=PICTURE, cut=100),
    "page": Fault(body=b"\n<!DOCTYPE html><html>log in"),
    "packed": Fault(body=PICTURE, headers={"Content-Encoding": "gzip"}),
    "no content": Fault(206, PICTURE),
}


@pytest.mark.parametrize("fault", BROKEN.values(), ids=BROKEN)
def test_what_is_no_whole_picture_is_asked_for_again(commons, fault):
    commons.faults = [fault, fault]
    assert fetch(commons) == PICTURE
    commons.faults = [fault] * 3
    with pytest.raises(Unavailable, match="3 times; run again later"):
        fetch(commons)
    assert len(commons.requests) == 6


def test_an_original_is_held_against_its_sha1_whatever_its_address_says_of_where_it_was_read(commons):
    remote = make_remote(commons, path=f"{ORIGINAL}?utm_source=api&utm_campaign=imageinfo", sha1="0" * 40)
    with pytest.raises(RecordFailed, match="picture-changed"):
        fetch(commons, remote)


def test_a_thumbnail_that_never_comes_is_its_files_failure_while_the_original_is_there(commons):
    commons.files[THUMBNAIL] = Fault(503)
    with pytest.raises(RecordFailed, match=r"picture-undecodable.*HTTP 503, 3 times, and its original is there"):
        fetch(commons, make_remote(commons, 4000))
    assert [(request.get("method"), request["path"]) for request in commons.requests[3:]] == [("HEAD", ORIGINAL)]


@pytest.mark.parametrize(("original", "kind"), [(Fault(503), "image/png"), (PICTURE, "text/html")])
def test_a_thumbnail_that_never_comes_is_the_services_failure_without_an_original(commons, original, kind):
    commons.files |= {THUMBNAIL: Fault(503), ORIGINAL: original}
    commons.kind = kind
    with pytest.raises(Unavailable, match="run again later"):
        fetch(commons, make_remote(commons, 4000))


def test_many_thumbnails_in_a_row_that_never_come_are_the_services_failure(commons):
    commons.files[THUMBNAIL] = Fault(503)
    files, wide = make_files(tries=1), make_remote(commons, 4000)
    raised = []
    for remote in (wide, make_remote(commons), wide, wide, wide):
        try:
            asyncio.run(files.fetch_file(remote))
            raised.append("")
        except (RecordFailed, Unavailable) as error:
            raised.append(type(error).__name__)
    assert raised == ["RecordFailed", "", "RecordFailed", "RecordFailed", "Unavailable"]


def test_nothing_is_sent_while_the_service_wants_to_be_left_alone(commons):
    shared = make_limiter(0.0)
    files, api = make_files(shared=shared), CommonsApi(commons.url, AGENT, client=make_client(shared=shared))
    commons.faults = [Fault(429, headers={"Retry-After": "3600"})]
    for ask in (
        files.fetch_file(make_remote(commons)),
        files.fetch_file(make_remote(commons)),
        api.describe_images("A"),
    ):
        with pytest.raises(RateLimited) as caught:
            asyncio.run(ask)
        assert 3590 < caught.value.retry_after <= 3600
    assert len(commons.requests) == 1


def test_who_waits_asks_when_the_service_may_be_asked_again(commons):
    files = make_files()
    commons.faults = [Fault(429, headers={"Retry-After": "1"})]
    with pytest.raises(RateLimited):
        asyncio.run(files.fetch_file(make_remote(commons)))
    assert asyncio.run(files.fetch_file(make_remote(commons))) == PICTURE
    first, second = commons.requests
    assert second["at"] - first["at"] >= 1.0


def test_a_picture_that_drips_is_given_up(commons):
    commons.faults = [Fault(body=PICTURE, drip=0.05)] * 2
    with pytest.raises(Unavailable, match=r"no whole reply in 0\.2 s"):
        fetch(commons, seconds=0.2, tries=2)


def test_a_service_that_is_not_there_is_away():
    with run_commons() as gone:
        remote = make_remote(gone)
    with pytest.raises(Unavailable, match="no connection"):
        fetch(gone, remote, tries=1)


UNFIT = {
    "missing": (Fault(404), "picture-missing", 1),
    "gone": (Fault(410), "picture-missing", 1),
    "svg": (Fault(body=b"<?xml version='1.0'?><svg/>"), "picture-format", 3),
    "empty": (Fault(body=b""), "picture-format", 3),
    "told too large": (Fault(body=PICTURE, cut=1 << 40), "picture-too-large", 1),
    "turns out too large": (Fault(body=PICTURE + b"\0" * 5000, is_endless=True), "picture-too-large", 1),
    "not scaled": (Fault(500, b"<html>Error generating thumbnail</html>"), "picture-undecodable", 1),
}


@pytest.mark.parametrize(("fault", "error", "asked"), UNFIT.values(), ids=UNFIT)
def test_a_file_of_no_use_fails_its_record_alone(commons, fault, error, asked):
    commons.faults = [fault] * 3
    with pytest.raises(RecordFailed) as caught:
        fetch(commons, reply_bytes=5000)
    assert (caught.value.error, len(commons.requests)) == (error, asked)


def test_an_original_must_be_what_was_described(commons):
    sha1 = hashlib.sha1(PICTURE).hexdigest()
    assert fetch(commons, make_remote(commons, sha1=sha1)) == PICTURE
    assert fetch(commons, make_remote(commons, 4000, sha1=sha1)) == draw(1)
    with pytest.raises(RecordFailed, match="picture-changed"):
        fetch(commons, make_remote(commons, sha1="0" * 40))


def test_a_redirect_inside_the_service_is_followed(commons):
    commons.faults = [Fault(302, headers={"Location": "/elsewhere.png"})]
    commons.files["/elsewhere.png"] = draw(3)
    assert fetch(commons) == draw(3)


@pytest.mark.parametrize(
    "target",
    ["http://10.0.0.1/a.png", "https://169.254.169.254/latest/meta-data", "http://localhost:1/a.png",
     "http://upload.wikimedia.org/a.png", "file:///etc/passwd", "//[::1]/a.png", "http://127.0.0.1.example.org/",
     "https://[", "ftp://127.0.0.1/a.png"],
)  # fmt: skip
def test_a_redirect_out_of_the_service_is_not_followed(commons, target):
    commons.faults = [Fault(302, headers={"Location": target})]
    with pytest.raises(RecordFailed, match="picture-address"):
        fetch(commons)
    assert len(commons.requests) == 1


def test_redirects_without_end_are_given_up(commons):
    commons.files["/around"] = Fault(301, headers={"Location": "/around"})
    with pytest.raises(RecordFailed, match="more than 3 redirects"):
        fetch(commons, make_remote(commons, path="/around"))
    assert len(commons.requests) == 4


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
        asyncio.run(CommonsFiles(AGENT, 330).fetch_file(RemoteFile("A.png", url, 64)))


def test_one_picture_is_fetched_at_a_time_with_a_pause_after_each(commons):
    files = make_files(pause=0.05)

    async def fetch_together():
        await asyncio.gather(*(files.fetch_file(make_remote(commons)) for _ in range(3)))

    asyncio.run(fetch_together())
    asyncio.run(fetch_together())  # another event loop, as another shard has
    times = [request["at"] for request in commons.requests]
    assert (commons.most_busy, len(times)) == (1, 6)
    assert all(later - earlier >= 0.05 for earlier, later in pairwise(times))


def test_width_and_hosts_are_the_identity():
    identities = {CommonsFiles(AGENT, width, hosts).identity for width in (330, 500) for hosts in (("a",), ("b",))}
    assert len(identities) == 4
    assert CommonsFiles("other@b", 330).identity == CommonsFiles(AGENT, 330, client=make_client(9.0)).identity


@given(st.text(max_size=40))
def test_any_address_stays_or_becomes_a_thumbnail_of_it(url):
    address = choose_address(RemoteFile("A", url, 4000), 330)
    assert address == url or "/thumb/" in address


@dataclass
class Scripted:
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
        return RecordedFileFetch(Scripted(list(replies)), store, pictures, **settings)

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
    with open_meter() as meter:
        assert take(record(PICTURE)) == PICTURE
    assert (meter.usage.calls, meter.usage.cached_calls) == (1, 0)
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


def test_another_width_is_another_picture(record):
    one, other = record(PICTURE), record(draw(2))
    other.fetch.identity = "scripted:2"
    assert (take(one), take(other), take(record())) == (PICTURE, draw(2), PICTURE)
