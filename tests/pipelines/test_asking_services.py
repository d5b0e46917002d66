import asyncio
import ssl

import aiohttp
import pytest
from aiohttp.client_reqrep import ConnectionKey

from pipelines.cli.doctor import QUOTED, Answer, Line

KEY = "sk-hush-0123456789"
PLACE = ConnectionKey("models.example", 443, True, True, None, None, None)


class FailingSession:
    """A session whose every request ends with the same error."""

    def __init__(self, error):
        self.error = error

    def request(self, *_, **__):
        raise self.error


def fail(error):
    return asyncio.run(Line(FailingSession(error), KEY, 1.0).send("http://models.example/v1/models"))


async def ask(scheme, reply, patience=5.0):
    """Ask a server that sends the same bytes whatever it is asked."""

    async def serve(reader, writer):
        await reader.read(10)
        writer.write(reply)
        writer.close()

    async with await asyncio.start_server(serve, "127.0.0.1", 0) as server, aiohttp.ClientSession() as session:
        port = server.sockets[0].getsockname()[1]
        answer = await Line(session, KEY, patience).send(f"{scheme}://127.0.0.1:{port}/v1/models")
    return answer.status, answer.text.replace(str(port), "PORT"), answer.advice


FAILURES = {
    "no certificate": (
        aiohttp.ClientConnectorCertificateError(PLACE, ssl.SSLCertVerificationError("self-signed")),
        "the certificate of models.example:443 is not trusted",
    ),
    "no such name": (
        aiohttp.ClientConnectorDNSError(PLACE, OSError(-2, "Name or service not known")),
        "no address is known of models.example",
    ),
    "no way": (
        aiohttp.ClientConnectorError(PLACE, OSError(113, "No route to host")),
        "no connection to models.example:443: No route to host",
    ),
    "no address": (aiohttp.InvalidURL("http://[::"), "http://[:: is no address"),
    "cut": (aiohttp.ServerDisconnectedError(), "the connection ended before a whole answer came"),
    "reset": (ConnectionResetError(104, "reset"), "the connection ended before a whole answer came"),
    "key that is no header": (ValueError(f"{KEY} is no header"), "no answer: ... is no header"),
}


@pytest.mark.parametrize(("error", "says"), FAILURES.values(), ids=FAILURES.keys())
def test_a_failure_is_said_in_words(error, says):
    answer = fail(error)
    assert (answer.status, answer.quote()) == (0, says)
    assert "Error" not in answer.quote()


REPLIES = {
    "no TLS": ("https", b"HTTP/1.1 400 Bad Request\r\n\r\n", "127.0.0.1:PORT speaks no TLS", "say http:// in base_url"),
    "no HTTP": ("http", b"SSH-2.0-x\r\n", "no answer: it speaks no HTTP", "see base_url"),
    "half": (
        "http",
        b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nabc",
        "the connection ended before a whole answer came",
        "",
    ),
}


@pytest.mark.parametrize(("scheme", "reply", "says", "advice"), REPLIES.values(), ids=REPLIES.keys())
def test_what_is_no_answer_is_said_in_words(scheme, reply, says, advice):
    assert asyncio.run(ask(scheme, reply)) == (0, says, advice)


def test_a_server_that_refuses_the_handshake_is_said_to():
    status, text, advice = asyncio.run(ask("https", b"\x15\x03\x03\x00\x02\x02\x28"))
    # OpenSSL's releases name the alert differently.
    assert (status, advice) == (0, "see base_url")
    assert text.startswith("no TLS connection to 127.0.0.1:PORT: ")
    assert text.endswith("alert handshake failure")


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("not here", "HTTP 404: not here"),
        ("", "HTTP 404"),
        ("<html>", "HTTP 404"),
        ("<html><script>if (1 < 2) run()</script><h1>Not Found</h1>", "HTTP 404: Not Found"),
        ("<p>cut <a href='long", "HTTP 404: cut"),
        ('{"detail": "a <b> c"}', 'HTTP 404: {"detail": "a <b> c"}'),
    ],
)
def test_a_page_is_quoted_without_its_tags(text, says):
    assert Answer(404, text).quote() == says


@pytest.mark.parametrize("text", ["<" * 100_000, "<script>" * 10_000, "<p>" + "a" * 100_000])
def test_a_hostile_page_is_quoted_briefly(text):
    assert len(Answer(500, text).quote()) <= QUOTED + 10


@pytest.mark.parametrize(
    ("status", "text", "busy", "refusal"),
    [(429, "slow down", True, False), (429, "insufficient_quota", False, False), (400, "", False, True),
     (408, "", False, False), (503, "", False, False), (0, "no answer in 1 s", False, False)],
)  # fmt: skip
def test_busy_and_refused_are_told_from_broken(status, text, busy, refusal):
    answer = Answer(status, text)
    assert (answer.is_busy, answer.is_refusal) == (busy, refusal)
