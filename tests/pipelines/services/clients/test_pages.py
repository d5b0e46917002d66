import asyncio
import codecs
import dataclasses
import errno
import socket

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.errors import ConfigError, RateLimited, Unavailable
from pipelines.services.addresses import ForbiddenAddress, Guard
from pipelines.services.clients.http import HttpRequest, NoConnection
from pipelines.services.clients.pages import (
    CHARACTERS,
    MOST_SILENT,
    DirectReader,
    JinaReader,
    cut_text,
    decode_page,
    find_encoding,
)
from pipelines.services.protocols import PageNotFound, PageText
from tests.pipelines.services.clients.live_servers import (
    FAULTS,
    HOST,
    OTHER,
    QUICK,
    Answer,
    make_bomb,
    make_guard,
    run_live_server,
    say,
    send_to,
    show,
)

pytest.importorskip("trafilatura")

ARTICLE = """<!doctype html><html><head><title>Ada Lovelace</title></head><body><nav><a href="/">Home</a></nav>
<article><h1>Ada Lovelace</h1><p>Ada Lovelace was an English mathematician and writer, known for her work on the
Analytical Engine, a mechanical computer that Charles Babbage proposed.</p>
<table><tr><th>Born</th><td>10 December 1815</td></tr><tr><th>Died</th><td>27 November 1852</td></tr></table>
<p>She was the first to see that the machine had uses beyond pure calculation, and published an algorithm for it.</p>
<script>alert("hidden")</script></article></body></html>"""


def read_swapped(html):
    """Stand in for the converter where it does not matter: what a child is for is tested by itself."""
    return "a title", html


class Instant:
    async def parse(self, html):
        return read_swapped(html)


def make_reader(guard=None, client=QUICK, contact=""):
    return DirectReader(contact, client, guard or make_guard(), Instant())


def read(url, guard=None, client=QUICK):
    return asyncio.run(make_reader(guard, client).read_page(url))


def serve(pages):
    """Return a site: pages by path, 404 for the rest."""
    return lambda asked: pages.get(asked.path, Answer(404))


def test_a_page_comes_as_its_text_with_tables_and_without_menus_and_scripts():
    with run_live_server(serve({"/page": show(ARTICLE)})) as server:
        page = asyncio.run(DirectReader("", QUICK, make_guard()).read_page(server.page()))
    assert (page.url, page.title) == (server.page(), "Ada Lovelace")
    for part in ("English mathematician", "10 December 1815", "uses beyond pure calculation"):
        assert part in page.text
    for part in ("Home", "alert", "<p>"):
        assert part not in page.text


def test_text_comes_as_it_is_without_control_characters():
    pages = {"/page": Answer(body="Ada\u0007 \u2028was\there\n".encode(), kind="text/plain; charset=utf-8")}
    with run_live_server(serve(pages)) as server:
        assert read(server.page()) == PageText(server.page(), "", "Ada was\there")


def test_a_long_page_ends_in_an_ellipsis():
    client = dataclasses.replace(QUICK, reply_bytes=1 << 20)
    pages = {"/page": Answer(body=b"word " * 50_000, kind="text/plain")}
    with run_live_server(serve(pages)) as server:
        text = read(server.page(), client=client).text
    assert (text[-6:], len(text) <= CHARACTERS + 2) == ("word …", True)


@pytest.mark.parametrize("status", [301, 302, 308])
def test_a_redirect_to_a_public_page_is_followed_and_the_page_comes_under_its_own_address(status):
    with run_live_server() as server:
        server.respond = serve(
            {"/page": send_to(server.page("/b?x=\xe4", OTHER), status), "/b": send_to("c#part"), "/c": show("found")}
        )
        assert read(server.page()) == PageText(server.page("/c", OTHER), "a title", "found")
        assert [asked.headers["host"].split(":")[0] for asked in server.asked] == [HOST, OTHER, OTHER]


def test_the_address_that_was_checked_is_the_one_that_is_connected_to():
    asked = []

    async def rebind(host, port):
        asked.append(host)
        return ("127.0.0.1",) if len(asked) == 1 else ("10.0.0.1",)

    guard = dataclasses.replace(make_guard(), lookup=rebind)
    with run_live_server(lambda asked: show("found")) as server:
        # One lookup for one connection: there is no second one that could say something else.
        assert read(server.page(), guard).text == "found"
        assert asked == [HOST]
        with pytest.raises(ForbiddenAddress, match="not a public address"):
            read(server.page(), guard)
        assert len(server.asked) == 1


class Careless(Guard):
    """Resolves without a look."""

    async def resolve(self, host, port):
        return ("127.0.0.1",)


def test_no_socket_is_made_for_an_address_that_slipped_through():
    with run_live_server(lambda asked: show("secret")) as server:
        client = dataclasses.replace(QUICK, guard=Careless())
        with pytest.raises(NoConnection, match="not a public address"):
            asyncio.run(client.send(HttpRequest(server.page())))
        assert not server.asked


@pytest.mark.parametrize("status", [400, 401, 403, 404, 410, 451])
def test_a_page_that_is_refused_is_not_there_and_not_asked_for_again(status):
    with run_live_server(lambda asked: Answer(status)) as server:
        with pytest.raises(PageNotFound, match=f"HTTP {status}"):
            read(server.page())
        assert len(server.asked) == 1


PASSING = {
    "busy": Answer(429),
    "busy for a moment": Answer(503, headers={"Retry-After": "0.01"}),
    "internal error": Answer(500),
    "hangs up": Answer(hang_up=True),
    "breaks off": Answer(body=b"<html>", kind="text/html", cut=100),
}


@pytest.mark.parametrize("fault", list(PASSING))
def test_a_site_that_fails_is_asked_again_and_each_time_has_no_such_page(fault):
    with run_live_server(lambda asked: show("found"), PASSING[fault]) as server:
        assert read(server.page()).text == "found"
    with run_live_server(lambda asked: PASSING[fault]) as server:
        with pytest.raises(PageNotFound):
            read(server.page())
        assert len(server.asked) >= QUICK.tries


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (Answer(body=b"%PDF-1.7", kind="application/pdf"), "application/pdf"),
        (Answer(body=b"\x00\x01", kind=""), "no content type"),
        (Answer(204, kind="text/html"), "HTTP 204"),
        (Answer(body=b" \n ", kind="text/plain"), "without text"),
        (make_bomb("text/html"), "65,536"),
        (Answer(body=b"x" * (1 << 17), kind="text/html"), "65,536"),
        (Answer(body=b"x" * 4096, kind="text/html", endless=True), "65,536"),
    ],
)
def test_what_is_no_page_of_text_is_not_read_and_says_why(answer, why):
    with run_live_server(lambda asked: answer) as server, pytest.raises(PageNotFound, match=why):
        read(server.page())


@pytest.mark.parametrize(
    "answer", [Answer(hang=1.0), Answer(body=b"x" * 4096, kind="text/html", drip=0.02)], ids=["hang", "drip"]
)
def test_a_page_has_an_end_however_slowly_it_comes(answer):
    client = dataclasses.replace(QUICK, timeout=0.2, tries=1)
    with run_live_server(lambda asked: answer) as server, pytest.raises(PageNotFound, match="no complete reply"):
        read(server.page(), client=client)


def test_a_host_that_is_unknown_has_no_pages_and_is_asked_for_once():
    asked = []

    async def forget(host, port):
        asked.append(host)
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    with pytest.raises(PageNotFound, match="no such host"):
        read("http://nowhere.example.org/", Guard(forget))
    assert len(asked) == 1


def fail_with(error):
    async def fail(host, port):
        raise error

    return Guard(fail)


AWAY = (
    # A name whose own servers fail is told in the same words as a resolver that is away.
    socket.gaierror(socket.EAI_AGAIN, "Temporary failure in name resolution"),
    # And a host that has an address of IPv6 alone, where this machine has none, as no network at all.
    OSError(errno.ENETUNREACH, "Network is unreachable"),
)


@pytest.mark.parametrize("error", AWAY)
def test_a_machine_without_a_network_stops_the_run(error):
    reader = make_reader(fail_with(error))
    for number in range(MOST_SILENT):
        with pytest.raises(PageNotFound):
            asyncio.run(reader.read_page(f"http://h{number}.example.org/"))
    with pytest.raises(Unavailable, match="check the network"):
        asyncio.run(reader.read_page("http://pages.example.org/"))


@pytest.mark.parametrize(
    "page",
    [
        Answer(body=b"found", kind="text/plain", headers={"Refresh": "0; url=http://127.0.0.1:{port}/secret"}),
        show('<meta http-equiv="refresh" content="0; url=/secret"><p>found</p><iframe src="/secret"></iframe>'),
        Answer(201, b"found", "text/plain", {"Location": "/secret"}),
        Answer(300, b"found", "text/plain", {"Location": "/secret"}),
    ],
)
def test_nothing_but_a_redirect_leads_on(page):
    with run_live_server(lambda asked: page) as server:
        try:
            assert "found" in read(server.page()).text
        except PageNotFound:
            assert page.status != 200
        assert [asked.path for asked in server.asked] == ["/page"]


ASKED = "https://pages.example.org/ada?x=1#part"
ANSWER = {
    "title": "Ada  Lovelace",
    "url": "https://pages.example.org/ada?x=1",
    "content": "Ada was\na mathematician.\x07",
    "usage": {"tokens": 5},
}


@pytest.fixture(autouse=True)
def key(monkeypatch):
    monkeypatch.setenv("READER_KEY", "s3cret")


def wrap(**changes):
    return say({"code": 200, "status": 20000, "data": ANSWER | changes})


def complain(status, name="AssertionFailureError", message="Failed to goto page"):
    return say({"data": None, "code": status, "status": status * 100, "name": name, "message": message}, status)


def make_jina(server, key_env="READER_KEY", client=QUICK, guard=None):
    return JinaReader("jina", f"{server.url}/", key_env, client, guard=guard or make_guard())


def ask_jina(server, url=ASKED, **settings):
    return asyncio.run(make_jina(server, **settings).read_page(url))


def test_the_service_is_asked_for_json_with_the_pages_address_in_the_path():
    with run_live_server(lambda asked: wrap()) as server:
        assert ask_jina(server) == PageText(ANSWER["url"], "Ada Lovelace", "Ada was\na mathematician.")
    (asked,) = server.asked
    assert (asked.method, asked.path, asked.query) == ("GET", "/api/https://pages.example.org/ada", {"x": "1"})
    assert (asked.headers["accept"], asked.headers["authorization"]) == ("application/json", "Bearer s3cret")


@pytest.mark.parametrize(
    "url",
    ["http://127.0.0.1/", "http://[::1]/", "file:///etc/passwd", "http://0x7f000001/", "http://a.local/", "not a page"],
)
def test_a_private_address_is_not_passed_on(url):
    with run_live_server(lambda asked: wrap()) as server:
        with pytest.raises(ForbiddenAddress):
            ask_jina(server, url)
        assert not server.asked


@pytest.mark.parametrize("url", ["http://127.0.0.1/", "http://169.254.169.254/", "file:///x", "http://in.example.org/"])
def test_a_page_that_was_found_at_a_private_address_is_thrown_away(url):
    with run_live_server(lambda asked: wrap(url=url)) as server, pytest.raises(ForbiddenAddress):
        ask_jina(server, guard=make_guard(in__example__org=("192.168.1.1",)))


@pytest.mark.parametrize("content", ["", " \n", None, 3])
def test_a_page_without_text_is_not_there(content):
    with (
        run_live_server(lambda asked: wrap(content=content)) as server,
        pytest.raises(PageNotFound, match="without text"),
    ):
        ask_jina(server)


@pytest.mark.parametrize(
    ("answer", "error", "asked"),
    [
        *((complain(status), PageNotFound, 1) for status in (400, 404, 410, 422, 451)),
        *((complain(status), PageNotFound, QUICK.tries) for status in (500, 502, 504, 524)),
        (wrap(warning="Target URL returned error 404: Not Found"), PageNotFound, 1),
        (Answer(body=b" " * (1 << 17)), PageNotFound, 1),
        # A proxy in front of the service does not speak for the page.
        (Answer(404, b"<html>nothing here</html>", kind="text/html"), ConfigError, 1),
        *((complain(status, "AuthenticationFailedError", "s3cret"), ConfigError, 1) for status in (401, 403)),
        (send_to("http://127.0.0.1:1/"), ConfigError, 1),
        (complain(402, "InsufficientBalanceError"), Unavailable, 1),
        (complain(429, "RateLimitTriggeredError"), RateLimited, QUICK.tries),
        *((FAULTS[name], Unavailable, QUICK.tries) for name in ("bad gateway", "another object", "cut JSON")),
    ],
)
def test_a_refusal_is_the_pages_the_services_or_the_configurations(answer, error, asked):
    with run_live_server(lambda asked: answer) as server:
        with pytest.raises(error) as caught:
            ask_jina(server)
        assert len(server.asked) == asked
    assert "s3cret" not in str(caught.value)


@pytest.mark.parametrize(
    ("body", "kind", "text"),
    [
        ("Zürich".encode(), "text/html; charset=utf-8", "Zürich"),
        ("Zürich".encode(), "text/html", "Zürich"),
        ("Zürich".encode("latin-1"), "text/html; charset=ISO-8859-1", "Zürich"),
        ("“Zürich”".encode("cp1252"), "text/html; charset=iso-8859-1", "“Zürich”"),
        ("“Zürich”".encode("cp1252"), "text/html", "“Zürich”"),
        ("日本".encode("shift_jis"), 'text/html; charset="Shift_JIS"', "日本"),
        ("日本".encode("gb18030"), "text/html; charset=gb2312", "日本"),
        (b'<meta charset="koi8-r">' + "мир".encode("koi8-r"), "text/html", '<meta charset="koi8-r">мир'),
        (codecs.BOM_UTF8 + "ä".encode(), "text/html; charset=latin-1", "ä"),
        (codecs.BOM_UTF16_LE + "ä".encode("utf-16-le"), "", "ä"),
        ("ä".encode(), "text/html; charset=nonsense", "ä"),
        ("ä".encode(), "text/html; charset=zlib", "ä"),
        (b"\xff\xfe", "text/html; charset=utf-8", ""),
    ],
)
def test_a_page_is_read_in_the_encoding_that_it_most_likely_has(body, kind, text):
    assert decode_page(body, {"Content-Type": kind}) == text


def test_what_is_no_encoding_of_pages_is_not_used():
    names = ("zlib", "rot13", "hex", "base64", "idna", "punycode", "utf-7", "unicode_escape", "mbcs")
    assert {find_encoding(f"text/html; charset={name}") for name in names} == {""}


@given(st.text(alphabet="ab \n", max_size=60) | st.just("a" * 100), st.integers(1, 50))
def test_a_text_is_cut_at_white_space_and_says_so(text, limit):
    cut = cut_text(text, limit)
    assert len(cut) <= limit + 2
    assert cut == text if len(text) <= limit else cut.endswith(" …")
