import asyncio
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.checks.pictures import classify_licence
from pipelines.errors import ConfigError, RateLimited, Unavailable
from pipelines.services.clients.commons import (
    THUMBNAIL_WIDTHS,
    CommonsApi,
    RecordedImageMetadata,
    make_client,
    make_title,
)
from pipelines.services.clients.replies import open_replies
from pipelines.services.image_metadata import ImageFacts, look_up_images, strip_html
from pipelines.services.metering import open_meter
from tests.pipelines.backends.commons_server import Fault, make_image, run_commons

AGENT = "synth/0.1 (who@example.org)"


@pytest.fixture
def commons():
    with run_commons(images={"File:A.jpg": [make_image()]}) as server:
        yield server


def make_api(server, **settings):
    width = settings.pop("width", 0)
    return CommonsApi(server.url, AGENT, width, make_client(**({"pause": 0.0, "backoff": 0.0} | settings)))


def describe(server, *files, **settings):
    return asyncio.run(make_api(server, **settings).describe_images(files))


def test_a_file_is_described_with_size_licence_and_author(commons):
    assert describe(commons, "A.jpg") == {
        "A.jpg": ImageFacts(
            url="https://u/A.jpg", thumbnail_url="", width=800, height=600, mime="image/jpeg", bytes=1234,
            sha1="a" * 40, licence="CC BY-SA 4.0", licence_url="https://l", author="A. Uthor",
            source_url="https://c/File:A.jpg",
        )
    }  # fmt: skip


def test_the_request_is_what_the_service_asks_of_clients(commons):
    describe(commons, "A.jpg")
    (request,) = commons.requests
    assert request["headers"]["User-Agent"] == AGENT
    form = request["form"]
    assert (form["action"], form["prop"], form["format"], form["formatversion"]) == ("query", "imageinfo", "json", "2")
    assert (form["iiprop"], form["maxlag"]) == ("url|size|mime|sha1|extmetadata", "5")
    assert "iiurlwidth" not in form


def test_files_are_asked_for_fifty_at_a_time(commons):
    commons.images |= {f"File:F{n}.jpg": [make_image(width=n)] for n in range(120)}
    facts = describe(commons, *(f"F{n}.jpg" for n in range(120)))
    assert [facts[f"F{n}.jpg"].width for n in range(120)] == list(range(120))
    assert [len(request["form"]["titles"].split("|")) for request in commons.requests] == [50, 50, 20]


def test_files_that_are_not_there_are_none(commons):
    commons.images["File:Page without file.jpg"] = None
    facts = describe(commons, "A.jpg", "B.jpg", "Page without file.jpg")
    assert facts["A.jpg"]
    assert [facts["B.jpg"], facts["Page without file.jpg"]] == [None, None]


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
    assert [request["form"]["titles"] for request in commons.requests] == ["File:A.jpg"]


def test_nothing_is_asked_for_no_files(commons):
    assert describe(commons) == {}
    assert commons.requests == []


def test_continuations_are_followed_to_the_last_file(commons):
    commons.images = {f"File:F{n}.jpg": [make_image(width=n)] for n in range(7)}
    commons.at_once = 3
    facts = describe(commons, *(f"F{n}.jpg" for n in range(7)))
    assert [facts[f"F{n}.jpg"].width for n in range(7)] == list(range(7))
    assert [request["form"].get("iistart") for request in commons.requests] == [None, "3", "6"]


def test_older_versions_are_not_read(commons):
    """With one title the service offers to go on to the file's history."""

    def offer_history(server, form):
        return server.reply(form) | {"continue": {"iistart": "2001-01-01T00:00:00Z", "continue": "||"}}

    commons.answer = offer_history
    commons.images["File:A.jpg"] = [make_image(width=9), make_image(width=1)]
    assert describe(commons, "A.jpg")["A.jpg"].width == 9
    assert len(commons.requests) == 1


def test_an_endless_continuation_is_given_up(commons):
    def stall(server, form):
        page = {"ns": 6, "title": "File:A.jpg", "imagerepository": "local"}
        return {"continue": {"iistart": "0", "continue": "||"}, "query": {"pages": [page]}}

    commons.answer = stall
    with pytest.raises(Unavailable, match="left 1 of 1 files out"):
        describe(commons, "A.jpg")
    assert len(commons.requests) == 2


def test_a_reply_that_leaves_files_out_is_no_reply(commons):
    commons.answer = lambda server, form: {
        "batchcomplete": True,
        "query": {"pages": server.reply(form)["query"]["pages"][:1]},
    }
    with pytest.raises(Unavailable, match=r"left 1 of 2 files out, first 'File:B\.jpg'"):
        describe(commons, "A.jpg", "B.jpg")


@pytest.mark.parametrize("width", THUMBNAIL_WIDTHS)
def test_thumbnails_come_in_the_standard_widths(commons, width):
    commons.images["File:A.jpg"] = [make_image(thumburl=f"https://t/{width}px-A.jpg")]
    assert describe(commons, "A.jpg", width=width)["A.jpg"].thumbnail_url == f"https://t/{width}px-A.jpg"
    assert commons.requests[0]["form"]["iiurlwidth"] == str(width)


@pytest.mark.parametrize("width", [1, 512, 800, 1024, -20])
def test_any_other_width_is_refused(width):
    with pytest.raises(ConfigError, match="20, 40, 60, 120, 250, 330, 500, 960, 1280, 1920, 3840"):
        CommonsApi("https://c/api.php", AGENT, width)


@pytest.mark.parametrize("url", ["http://commons.wikimedia.org/w/api.php", "ftp://c/", "commons", "file:///etc/passwd"])
def test_an_address_in_the_clear_is_refused(url):
    with pytest.raises(ConfigError, match="expected https"):
        CommonsApi(url, AGENT)


@pytest.mark.parametrize("part", ["me:secret@c/w/api.php", "c/w/api.php?key=secret", "c/w/api.php#secret", "secret@c/"])
def test_an_address_with_a_secret_is_refused_and_the_secret_not_repeated(part):
    with pytest.raises(ConfigError, match="user, password or parameters") as caught:
        CommonsApi(f"https://{part}", AGENT)
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize("agent", ["", "synth/0.1 ()", "synth (é@b)", "a@b\r\nX: y"])
def test_nobody_asks_without_saying_who(agent):
    with pytest.raises(ConfigError, match="names nobody"):
        CommonsApi("https://c/api.php", agent)


def error(code, **headers):
    body = b'{"error":{"code":"%s","info":"i"}}' % code.encode()
    return Fault(body=body, headers={"Content-Type": "application/json"} | headers)


@pytest.mark.parametrize(
    ("fault", "wait"),
    [
        (Fault(429, headers={"Retry-After": "17"}), 17.0),
        (Fault(429), 0.0),
        (Fault(503, headers={"Retry-After": "3600"}), 3600.0),
        (Fault(429, headers={"Retry-After": "soon"}), 0.0),
        (error("maxlag", **{"Retry-After": "5"}), 5.0),
        (error("ratelimited"), 0.0),
    ],
)
def test_a_service_that_asks_to_slow_down_is_said_so(commons, fault, wait):
    commons.faults = [fault]
    with pytest.raises(RateLimited) as caught:
        describe(commons, "A.jpg")
    assert caught.value.retry_after == wait
    assert len(commons.requests) == 1


def test_retry_after_may_be_a_date(commons):
    later = format_datetime(datetime.now(UTC) + timedelta(seconds=90), usegmt=True)
    commons.faults = [Fault(429, headers={"Retry-After": later})]
    with pytest.raises(RateLimited) as caught:
        describe(commons, "A.jpg")
    assert 60 < caught.value.retry_after <= 90


@pytest.mark.parametrize("status", [403, 429])
def test_a_ban_stops_at_once(commons, status):
    commons.faults = [Fault(status, b"Please respect our robot policy", headers={"Retry-After": "1"})]
    with pytest.raises(Unavailable, match=f"{status}.*robot policy"):
        describe(commons, "A.jpg")
    assert len(commons.requests) == 1


BROKEN = {
    "500": Fault(500),
    "503": Fault(503),
    "html": Fault(200, headers={"Content-Type": "text/html"}),
    "truncated json": Fault(200, b'{"query":{"pages":[{"title":"File:A.jpg"'),
    "truncated body": Fault(200, b'{"query":{}}', cut=50),
    "wrong shape": Fault(200, b'["query"]'),
    "no query": Fault(200, b'{"batchcomplete":true}'),
    "error text": Fault(200, b'{"error":"no"}'),
    "empty": Fault(200, b""),
    "readonly": error("readonly"),
    "internal error": error("internal_api_error_DBQueryError"),
}


@pytest.mark.parametrize("fault", BROKEN.values(), ids=BROKEN)
def test_a_broken_reply_is_asked_for_again_and_never_taken_for_an_answer(commons, fault):
    commons.faults = [fault, fault]
    assert describe(commons, "A.jpg")["A.jpg"].width == 800
    assert len(commons.requests) == 3
    commons.faults = [fault] * 3
    with pytest.raises(Unavailable, match="3 times"):
        describe(commons, "A.jpg")


def test_a_reply_that_drips_is_cut_off(commons):
    commons.faults = [Fault(200, b"{" + b" " * 500, drip=0.05)]
    assert describe(commons, "A.jpg", seconds=0.3, tries=2)["A.jpg"].width == 800


def test_a_reply_without_end_is_refused(commons):
    commons.faults = [Fault(200, b" " * (33 << 20))]
    with pytest.raises(Unavailable, match="bytes"):
        describe(commons, "A.jpg", tries=1)


def test_nobody_there_is_unavailable():
    with run_commons() as server:
        gone = server
    with pytest.raises(Unavailable, match="no connection"):
        describe(gone, "A.jpg", tries=1)


def test_a_redirect_is_not_followed(commons):
    with run_commons() as other:
        commons.faults = [Fault(302, headers={"Location": other.url})]
        with pytest.raises(ConfigError, match="has moved to"):
            describe(commons, "A.jpg")
        assert other.requests == []


@pytest.mark.parametrize("fault", [Fault(404), Fault(400), error("badvalue"), error("unknown_action")])
def test_an_address_that_is_no_such_api_is_our_mistake(commons, fault):
    commons.faults = [fault]
    with pytest.raises(ConfigError, match="expected the API of a MediaWiki"):
        describe(commons, "A.jpg")


@pytest.mark.parametrize(
    "change",
    [{"width": "wide"}, {"height": -1}, {"size": None}, {"extmetadata": ["x"]}, {"extmetadata": {"Artist": 3}}],
)
def test_an_image_of_another_form_is_no_answer(commons, change):
    commons.images["File:A.jpg"] = [make_image(**change)]
    with pytest.raises(Unavailable, match="another form"):
        describe(commons, "A.jpg")


def test_one_request_is_in_flight_at_a_time_with_a_pause_after_each(commons):
    api = make_api(commons, pause=0.05)

    async def ask_together():
        await asyncio.gather(*(api.describe_images([f"F{n}.jpg"]) for n in range(4)))

    asyncio.run(ask_together())
    times = [request["at"] for request in commons.requests]
    assert commons.most_busy == 1
    assert all(later - earlier >= 0.05 for earlier, later in pairwise(times))


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


def test_a_hidden_or_lost_version_is_no_file(commons):
    commons.images = {"File:A.jpg": [{"filehidden": True}], "File:B.jpg": [{"filemissing": True}]}
    assert describe(commons, "A.jpg", "B.jpg") == {"A.jpg": None, "B.jpg": None}


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


@given(st.text(alphabet="<>![]/-&;a= '\"\n", max_size=60))
def test_any_html_becomes_one_line(source):
    assert "\n" not in strip_html(source)


@dataclass
class Scripted:
    """Describes files, or raises what it is told to."""

    raises: list = field(default_factory=list)
    asked: list = field(default_factory=list)
    absent: tuple = ()
    identity: str = "scripted:1"

    async def describe_images(self, files):
        self.asked.append(list(files))
        if self.raises:
            raise self.raises.pop(0)
        facts = ImageFacts("u", "", 800, 600, "image/png", 9, "", "CC0", "l", "A", "s")
        return {file: None if file in self.absent else facts for file in files}


@pytest.fixture
def store(tmp_path):
    store = open_replies(tmp_path)
    yield store
    store.close()


def test_each_file_is_asked_about_once_whatever_else_was_asked_for(store):
    service = Scripted(absent=("B.jpg",))
    recorded = RecordedImageMetadata(service, store)
    first = asyncio.run(recorded.describe_images(["A.jpg", "B.jpg"]))
    with open_meter() as meter:
        second = asyncio.run(recorded.describe_images(["B.jpg", "C.jpg", "A.jpg"]))
    assert service.asked == [["A.jpg", "B.jpg"], ["C.jpg"]]
    assert second["A.jpg"] == first["A.jpg"]
    assert (first["B.jpg"], second["B.jpg"]) == (None, None)
    assert (meter.usage.calls, meter.usage.cached_calls) == (1, 2)
    assert store.count() == (3, 3)


def test_what_was_answered_before_a_failure_is_kept(store):
    class FailsLater(Scripted):
        async def describe_images(self, files):
            if len(self.asked) == 1:
                self.raises = [Unavailable("away")]
            return await super().describe_images(files)

    files = [f"F{n}.jpg" for n in range(60)]
    with pytest.raises(Unavailable):
        asyncio.run(RecordedImageMetadata(FailsLater(), store).describe_images(files))
    service = Scripted()
    assert len(asyncio.run(RecordedImageMetadata(service, store).describe_images(files))) == 60
    assert service.asked == [files[50:]]


def test_another_service_or_thumbnail_is_asked_anew(store):
    for identity in ("a", "b", "a"):
        asyncio.run(RecordedImageMetadata(Scripted(identity=identity), store).describe_images(["A.jpg"]))
    assert store.count() == (2, 2)
    assert CommonsApi("https://c/", AGENT).identity != CommonsApi("https://c/", AGENT, 960).identity


def test_looked_up_pictures_are_rows_without_a_path():
    service = Scripted(absent=("B.jpg",))
    rows = look_up_images(service, ["A.jpg", "B.jpg", "A.jpg"])
    assert list(rows) == ["A.jpg"]
    image = rows["A.jpg"]
    assert (image.file, image.path, image.sha256, image.phash, image.error) == ("A.jpg", "", "", "", "")
    assert (image.width, image.height, image.format, image.licence, image.author) == (800, 600, "png", "CC0", "A")
    assert service.asked == [["A.jpg", "B.jpg"]]


def test_looking_up_waits_as_long_as_it_is_asked_to():
    waits = []

    async def sleep(seconds):
        waits.append(seconds)

    service = Scripted(raises=[RateLimited("slow", 17.0), RateLimited("slow"), RateLimited("slow")])
    assert look_up_images(service, ["A.jpg"], sleep)
    assert waits == [17.0, 60.0, 60.0]
    with pytest.raises(Unavailable, match="run again in 3600 s"):
        look_up_images(Scripted(raises=[RateLimited("slow", 3600.0)]), ["A.jpg"], sleep)
    with pytest.raises(Unavailable, match="still rate limited after 8 tries"):
        look_up_images(Scripted(raises=[RateLimited("slow")] * 8), ["A.jpg"], sleep)
    assert waits[3:] == [30.0] + [60.0] * 6


def test_a_format_that_cannot_be_shown_is_an_error_in_the_row(commons):
    commons.images["File:A.svg"] = [make_image(mime="image/svg+xml")]
    image = look_up_images(make_api(commons), ["A.svg"])["A.svg"]
    assert (image.format, image.error) == ("", "format")
