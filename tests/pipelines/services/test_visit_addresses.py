"""What ``visit`` refuses, from the model's call to the socket: the tool box with the live reader, recorded and not."""

import asyncio
import json
from contextlib import closing
from ipaddress import ip_address

import pytest

from pipelines.config.settings import ToolsConfig
from pipelines.services.addresses import Guard, is_public
from pipelines.services.clients.pages import DirectReader
from pipelines.services.clients.recorded import Recorded
from pipelines.services.clients.replies import open_replies
from tests.pipelines.agent.trail import make_tools
from tests.pipelines.services.clients.live_servers import HOST, OTHER, QUICK, Answer, run_live_server, send_to

pytest.importorskip("trafilatura")

SECRET = "the key of the cloud"
LOCAL = ip_address("127.0.0.1")
"""Where the public pages of these tests are served: open to names alone, as a page's host is; never as an address."""
NAMES = {
    HOST: ("127.0.0.1",),
    OTHER: ("127.0.0.1",),
    "loop.example.org": ("127.0.0.2",),
    "loop6.example.org": ("::1",),
    "mapped.example.org": ("::ffff:127.0.0.1",),
    "ten.example.org": ("10.0.0.7",),
    "cloud.example.org": ("169.254.169.254",),
    "half.example.org": ("127.0.0.1", "10.0.0.7"),
    "half6.example.org": ("127.0.0.1", "fd00:ec2::254"),
}
FORBIDDEN = (
    *(
        "http://127.0.0.1:{port}/secret http://[::1]:{port}/secret http://10.0.0.1/secret "
        "http://10.255.255.254:{port}/secret http://169.254.169.254/latest/meta-data/ file:///etc/passwd "
        "http://2130706433:{port}/secret http://0x7f000001:{port}/secret http://0.0.0.0:{port}/secret "
        "http://[::]:{port}/secret http://172.16.0.1/secret http://192.168.1.1/secret "
        "http://100.100.100.200/latest/meta-data/ http://[fd00:ec2::254]/latest/meta-data/ "
        "http://[fe80::1]:{port}/secret http://0177.0.0.1:{port}/secret http://0x7f.1:{port}/secret "
        "http://127.1:{port}/secret http://127.0.0.1.:{port}/secret http://[::ffff:127.0.0.1]:{port}/secret "
        "http://[::ffff:7f00:1]:{port}/secret http://[64:ff9b::7f00:1]:{port}/secret "
        "http://[fe80::1%25lo]:{port}/secret http://\uff11\uff12\uff17.0.0.1:{port}/secret "
        "http://127\u30020\u30020\u30021:{port}/secret http://127\uff610\uff610\uff611:{port}/secret "
        "http://127\ufe00.0.0.1:{port}/secret http://%31%32%37.0.0.1:{port}/secret "
        "http://localhost:{port}/secret http://LOCALHOST.:{port}/secret http://l\u1d52calhost:{port}/secret "
        "http://metadata.google.internal/ http://pages.example.org@127.0.0.1:{port}/secret "
        "http://127.0.0.1:{port}@pages.example.org/secret "
        "http://pages.example.org\\@127.0.0.1:{port}/secret "
        "http://127.0.0.1:{port}\\@pages.example.org/secret http://127.0.0.1\t:{port}/secret "
        "http://pages.example.org:{port}:22/secret http://pages.example.org:22/secret "
        "https://\u2100.example.org:{port}/secret ftp://pages.example.org/secret "
        "gopher://127.0.0.1:{port}/_GET%20/secret view-source:http://127.0.0.1:{port}/secret "
        "data:text/html,secret javascript:alert(1)"
    ).split(" "),
    "http://127.0.0.1:{port}\r\n/secret",
    f"http://{'a.' * 130}org:{{port}}/secret",
    *(f"http://{name}:{{port}}/secret" for name in NAMES if name not in (HOST, OTHER)),
)


async def look_up(host, port):
    return NAMES[host]


GUARD = Guard(look_up, lambda address: address == LOCAL or is_public(address), frozenset())


def visit(tools, url):
    call = tools.call("visit", json.dumps({"url": url, "goal": ""}), ())
    return asyncio.run(call).observation


def record(folder, reader, *urls, **settings):
    """Visit by a recorded reader, each time with the recording opened anew."""
    found = []
    for url in urls:
        with closing(open_replies(folder)) as store:
            pages = Recorded(reader, store, live=True)
            found.append(visit(make_tools(folder, pages=pages, online=True, **settings), url))
    return found


def check_refused(observation):
    assert (observation.ok, observation.error, observation.flags) == (False, "forbidden-address", ())
    assert SECRET not in observation.text


@pytest.fixture
def site():
    with run_live_server() as server:
        yield server


def open_site(server, to=""):
    """Serve a page, a redirect to an address, a hop to that by another name, and a secret that none may see."""
    pages = {
        "/page": Answer(body=b"A public page.", kind="text/plain"),
        "/away": send_to(to),
        "/hop": send_to(server.page("/away", OTHER), 307),
    }
    server.respond = lambda asked: pages.get(asked.path, Answer(body=SECRET.encode(), kind="text/plain"))
    return server


def list_paths(server):
    return [asked.path for asked in server.asked]


def test_a_public_page_is_read(site, tmp_path):
    (seen,) = record(tmp_path, DirectReader("", QUICK, GUARD), open_site(site).page())
    assert (seen.ok, "A public page." in seen.text) == (True, True)


@pytest.mark.parametrize("address", FORBIDDEN)
def test_visit_refuses_what_is_not_of_the_public_web(address, site, tmp_path):
    url = address.format(port=open_site(site).port)
    blocked = ToolsConfig().blocked_hosts
    reader = DirectReader("", QUICK, GUARD)
    check_refused(visit(make_tools(tmp_path, pages=reader, online=True), url))
    for seen in record(tmp_path, reader, url, url, blocked_hosts=blocked):
        assert (seen.ok, seen.error in ("forbidden-address", "blocked-host")) == (False, True)
    assert list_paths(site) == []


@pytest.mark.parametrize("path", ["/away", "/hop"])
@pytest.mark.parametrize("address", FORBIDDEN)
def test_visit_refuses_a_public_page_that_redirects_there(address, path, site, tmp_path):
    to = address.format(port=site.port).replace("\r\n", "\t")
    url = open_site(site, to.encode("utf-8").decode("latin-1")).page(path)
    followed = ["/hop", "/away"] if path == "/hop" else ["/away"]
    reader = DirectReader("", QUICK, GUARD)
    check_refused(visit(make_tools(tmp_path, pages=reader, online=True), url))
    assert list_paths(site) == followed
    for seen in record(tmp_path, reader, url, url):
        check_refused(seen)
    # The second time it is the recording that refuses.
    assert list_paths(site) == followed * 2
