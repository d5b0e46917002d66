import asyncio
import dataclasses

import pytest

from pipelines.errors import ConfigError, RateLimited, Unavailable
from pipelines.services.addresses import ForbiddenAddress
from pipelines.services.clients.pages import CHARACTERS, MOST_SILENT, JinaReader
from pipelines.services.protocols import PageNotFound, PageText
from tests.pipelines.backends.live_servers import FAULTS, QUICK, Answer, make_guard, run_live_server, say, send_to

PAGE = "https://pages.example.org/ada?x=1#part"
DATA = {
    "title": "Ada  Lovelace",
    "url": "https://pages.example.org/ada?x=1",
    "content": "Ada was\na mathematician.\x07",
    "usage": {"tokens": 5},
}


@pytest.fixture(autouse=True)
def key(monkeypatch):
    monkeypatch.setenv("READER_KEY", "s3cret")


def wrap(**changes):
    return say({"code": 200, "status": 20000, "data": DATA | changes})


def complain(status, name="AssertionFailureError", message="Failed to goto page"):
    return say({"data": None, "code": status, "status": status * 100, "name": name, "message": message}, status)


def make_reader(server, key_env="READER_KEY", client=QUICK, guard=None):
    return JinaReader(f"{server.url}/", key_env, client, guard or make_guard())


def read(server, url=PAGE, **settings):
    return asyncio.run(make_reader(server, **settings).read_page(url))


def test_the_service_is_asked_for_json_with_the_pages_address_in_the_path():
    with run_live_server(lambda asked: wrap()) as server:
        assert read(server) == PageText(DATA["url"], "Ada Lovelace", "Ada was\na mathematician.")
    (asked,) = server.asked
    assert (asked.method, asked.path, asked.query) == ("GET", "/api/https://pages.example.org/ada", {"x": "1"})
    assert (asked.headers["accept"], asked.headers["authorization"]) == ("application/json", "Bearer s3cret")


def test_without_a_variable_no_key_is_sent():
    with run_live_server(lambda asked: wrap()) as server:
        read(server, key_env="")
    assert "authorization" not in server.asked[0].headers


@pytest.mark.parametrize(
    "url",
    ["http://127.0.0.1/", "http://[::1]/", "file:///etc/passwd", "http://0x7f000001/", "http://a.local/", "not a page"],
)
def test_a_private_address_is_not_passed_on(url):
    with run_live_server(lambda asked: wrap()) as server:
        with pytest.raises(ForbiddenAddress):
            read(server, url)
        assert not server.asked


def test_a_public_name_that_leads_to_a_private_address_is_not_passed_on():
    with run_live_server(lambda asked: wrap()) as server:
        with pytest.raises(ForbiddenAddress, match=r"10\.0\.0\.1"):
            read(server, "http://inside.example.org/", guard=make_guard(inside__example__org=("10.0.0.1",)))
        assert not server.asked


def test_a_name_that_cannot_be_looked_up_here_is_left_to_the_service():
    with run_live_server(lambda asked: wrap(url="https://unknown.example.org/")) as server:
        assert read(server, "https://unknown.example.org/").url == "https://unknown.example.org/"


@pytest.mark.parametrize("url", ["http://127.0.0.1/", "http://169.254.169.254/", "file:///x", "http://in.example.org/"])
def test_a_page_that_was_found_at_a_private_address_is_thrown_away(url):
    with run_live_server(lambda asked: wrap(url=url)) as server, pytest.raises(ForbiddenAddress):
        read(server, guard=make_guard(in__example__org=("192.168.1.1",)))


def test_a_page_that_the_site_refused_is_not_there():
    warning = "Target URL returned error 404: Not Found"
    with run_live_server(lambda asked: wrap(warning=warning)) as server, pytest.raises(PageNotFound, match="HTTP 404"):
        read(server)


@pytest.mark.parametrize("content", ["", " \n", None, 3])
def test_a_page_without_text_is_not_there(content):
    with (
        run_live_server(lambda asked: wrap(content=content)) as server,
        pytest.raises(PageNotFound, match="without text"),
    ):
        read(server)


def test_a_page_that_is_too_long_ends_in_an_ellipsis():
    client = dataclasses.replace(QUICK, reply_bytes=1 << 20)
    with run_live_server(lambda asked: wrap(content="word " * 50_000)) as server:
        assert len(read(server, client=client).text) <= CHARACTERS + 2


@pytest.mark.parametrize("status", [400, 404, 410, 422, 451])
def test_a_page_that_the_service_does_not_read_is_not_there(status):
    with run_live_server(lambda asked: complain(status)) as server:
        with pytest.raises(PageNotFound):
            read(server)
        assert len(server.asked) == 1


@pytest.mark.parametrize("status", [500, 502, 504, 524])
def test_a_page_at_which_the_service_fails_each_time_stops_no_run(status):
    with run_live_server(lambda asked: complain(status)) as server:
        with pytest.raises(PageNotFound):
            read(server)
        assert len(server.asked) == QUICK.tries


@pytest.mark.parametrize("status", [400, 404, 422])
def test_a_machine_before_the_service_does_not_speak_for_the_page(status):
    refusal = Answer(status, b"<html>nothing here</html>", kind="text/html")
    with run_live_server(lambda asked: refusal) as server, pytest.raises((ConfigError, PageNotFound)) as caught:
        read(server)
    assert (status == 404) == (caught.type is ConfigError)


@pytest.mark.parametrize("status", [401, 403])
def test_a_key_that_is_not_taken_is_the_configurations_fault(status):
    with run_live_server(lambda asked: complain(status, "AuthenticationFailedError", "s3cret")) as server:
        with pytest.raises(ConfigError, match="READER_KEY") as caught:
            read(server)
        assert len(server.asked) == 1
    assert "s3cret" not in str(caught.value)


def test_an_empty_account_stops_the_run():
    refusal = complain(402, "InsufficientBalanceError")
    with run_live_server(lambda asked: refusal) as server, pytest.raises(Unavailable, match="nothing left"):
        read(server)


def test_a_service_that_is_busy_each_time_limits_the_rate():
    with run_live_server(lambda asked: complain(429, "RateLimitTriggeredError")) as server:
        with pytest.raises(RateLimited):
            read(server)
        assert len(server.asked) == QUICK.tries


@pytest.mark.parametrize("fault", list(FAULTS))
def test_after_a_fault_the_service_is_asked_again(fault):
    with run_live_server(lambda asked: wrap(), FAULTS[fault]) as server:
        assert read(server).title == "Ada Lovelace"


@pytest.mark.parametrize("fault", ["bad gateway", "hangs up", "error page with 200", "another object", "cut JSON"])
def test_a_service_that_is_away_stops_the_run(fault):
    with run_live_server(lambda asked: FAULTS[fault]) as server, pytest.raises(Unavailable, match="3 times"):
        read(server)


def test_a_service_where_nobody_listens_stops_the_run():
    with run_live_server() as server:
        gone = dataclasses.replace(server)
    with pytest.raises(Unavailable, match="no connection"):
        read(gone)


def test_a_service_that_has_moved_is_not_followed():
    with (
        run_live_server(lambda asked: send_to("http://127.0.0.1:1/")) as server,
        pytest.raises(ConfigError, match="moved"),
    ):
        read(server)


def test_a_page_that_is_too_large_stops_no_run():
    with run_live_server(lambda asked: Answer(body=b" " * (1 << 17))) as server:
        with pytest.raises(PageNotFound, match="65,536"):
            read(server)
        assert len(server.asked) == 1


def test_a_silent_page_stops_no_run_but_many_in_a_row_do():
    client = dataclasses.replace(QUICK, timeout=0.05, tries=1)

    async def read_all(reader):
        found = []
        for number in range(MOST_SILENT + 1):
            try:
                await reader.read_page(f"http://h{number}.example.org/")
            except (PageNotFound, Unavailable) as error:
                found.append(type(error))
        return found

    with run_live_server(lambda asked: Answer(hang=0.3)) as server:
        found = asyncio.run(read_all(make_reader(server, client=client)))
    assert found == [PageNotFound] * MOST_SILENT + [Unavailable]


def test_the_identity_names_the_address_and_never_the_key():
    readers = [JinaReader("https://r.example.org/", name) for name in ("A", "B")]
    assert readers[0].identity == readers[1].identity
    assert readers[0].identity != JinaReader("https://s.example.org/", "A").identity
