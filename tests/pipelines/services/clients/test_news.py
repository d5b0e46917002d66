import asyncio

import pytest

from pipelines.errors import Unavailable
from pipelines.services.clients.news import NewsPictures
from tests.pipelines.services.clients.live_servers import OTHER, QUICK, Answer, make_guard, run_live_server, send_to


def answer(asked):
    """Answer as a picture's host: a picture, a redirect to it, an endless one, and nothing else."""
    found = {
        "/a.jpg": Answer(body=b"picture", kind="image/jpeg"),
        "/moved": send_to("/a.jpg"),
        "/round": send_to("/round"),
        "/inside": send_to("http://127.0.0.1:1/a.jpg"),
        "/big": Answer(body=b"x" * 4096, kind="image/jpeg", endless=True),
        "/busy": Answer(503, b""),
    }
    return found.get(asked.path, Answer(404))


@pytest.fixture
def server():
    with run_live_server(answer) as running:
        yield running


def fetch(folder, *urls):
    pictures = NewsPictures(folder, "ana@example.org", QUICK, make_guard())
    return asyncio.run(pictures.fetch_all(urls))


def test_a_picture_is_fetched_once_with_a_contact_and_kept(server, tmp_path):
    urls = (server.page("/a.jpg"), server.page("/moved", OTHER))
    first = fetch(tmp_path, *urls)
    assert {path.read_bytes() for path in first.values()} == {b"picture"}
    assert set(first) == set(urls)
    assert "ana@example.org" in server.asked[0].headers["user-agent"]
    asked = len(server.asked)
    assert fetch(tmp_path, *urls) == first
    assert len(server.asked) == asked


@pytest.mark.parametrize("path", ["/gone", "/round", "/inside", "/big"])
def test_what_a_host_does_not_give_is_left_out_and_not_asked_again(server, tmp_path, path):
    urls = (server.page("/a.jpg"), server.page(path))
    assert list(fetch(tmp_path, *urls)) == [urls[0]]
    asked = len(server.asked)
    assert list(fetch(tmp_path, *urls)) == [urls[0]]
    assert len(server.asked) == asked


def test_a_busy_host_is_asked_again_in_the_next_run(server, tmp_path):
    urls = (server.page("/a.jpg"), server.page("/busy"))
    assert list(fetch(tmp_path, *urls)) == [urls[0]]
    asked = len(server.asked)
    fetch(tmp_path, *urls)
    assert len(server.asked) == asked + 1


def test_private_addresses_are_never_connected_to(tmp_path):
    with run_live_server(answer) as server:
        urls = (f"http://127.0.0.2:{server.port}/a.jpg", f"http://localhost:{server.port}/a.jpg")
        guard = make_guard(localhost=("10.0.0.1",))
        assert asyncio.run(NewsPictures(tmp_path, "", QUICK, guard).fetch_all(urls)) == {}
        assert server.asked == []


def test_a_network_that_is_down_stops_the_run_and_the_next_one_fetches(server, tmp_path):
    urls = [f"http://nowhere{number}.example.org/a.jpg" for number in range(3)]
    with pytest.raises(Unavailable, match="none of 3"):
        fetch(tmp_path, *urls)
    assert list(fetch(tmp_path, server.page("/a.jpg"), *urls)) == [server.page("/a.jpg")]
