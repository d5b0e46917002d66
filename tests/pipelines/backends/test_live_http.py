import asyncio
import dataclasses

import pytest

from pipelines.errors import ConfigError
from pipelines.services.clients.http import HttpRequest, NobodyThere, NoSuchHost
from tests.pipelines.backends.live_servers import HOST, QUICK, Answer, make_guard, run_live_server, say
from tests.pipelines.services.test_chat import serve, write_certificate


def send(url, guard=None, **settings):
    return asyncio.run(dataclasses.replace(QUICK, guard=guard).send(HttpRequest(url, **settings)))


async def send_trusting_nobody(tmp_path, guard, host):
    async with serve("127.0.0.1", write_certificate(tmp_path)) as url:
        await dataclasses.replace(QUICK, guard=guard).send(HttpRequest(url.replace("127.0.0.1", host)))


def test_a_service_with_a_certificate_that_is_not_trusted_is_the_configurations_fault(tmp_path):
    with pytest.raises(ConfigError, match=r"its certificate is not trusted \(self-signed.*SSL_CERT_FILE"):
        asyncio.run(send_trusting_nobody(tmp_path, None, "127.0.0.1"))


def test_a_page_with_a_certificate_that_is_not_trusted_is_not_there(tmp_path):
    with pytest.raises(NoSuchHost, match="its certificate is not trusted"):
        asyncio.run(send_trusting_nobody(tmp_path, make_guard(), HOST))


def test_a_server_without_tls_is_not_asked_without_it():
    with run_live_server(lambda asked: say({})) as server:
        with pytest.raises(NobodyThere):
            send(f"https://127.0.0.1:{server.port}/")
        assert not server.asked


def test_nothing_of_the_environment_and_no_cookie_is_sent(monkeypatch):
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:1")
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:1")

    async def send_twice(url):
        client = QUICK
        await client.send(HttpRequest(url))
        return await client.send(HttpRequest(url))

    with run_live_server(lambda asked: say({}, Set_Cookie="a=b")) as server:
        asyncio.run(send_twice(server.url))
    assert len(server.asked) == 2
    assert set(server.asked[1].headers) == {"host", "user-agent", "accept-encoding", "accept"}


def test_there_are_only_so_many_connections_to_all_hosts_together():
    hosts = [f"h{number}.example.org" for number in range(12)]
    guard = make_guard(**{host.replace(".", "__"): ("127.0.0.1",) for host in hosts})
    client = dataclasses.replace(QUICK, concurrency=2, guard=guard, connections=3)

    async def ask_all(port):
        await asyncio.gather(*(client.send(HttpRequest(f"http://{host}:{port}/")) for host in hosts * 2))

    with run_live_server(lambda asked: Answer(body=b"{}", hang=0.02)) as server:
        asyncio.run(ask_all(server.port))
        assert len(server.asked) == 24
        assert 1 < server.most_in_flight <= 3


def test_what_may_hold_a_key_is_not_shown():
    request = HttpRequest("http://a.example.org/", headers={"k": "s3cret"}, query={"k": "s3cret"}, body=b"s3cret")
    assert "s3cret" not in repr(request)


def test_a_parameter_is_encoded_once():
    with run_live_server(lambda asked: say({})) as server:
        send(server.url, query={"q": "a+b & c%20d/é#?"})
        assert server.asked[0].query == {"q": "a+b & c%20d/é#?"}
