import socket
import threading

import pytest

from pipelines.errors import ConfigError
from pipelines.services.clients.serving import check_port, fetch


def serve_once(answer: bytes) -> tuple[str, list[bytes]]:
    """Return the address of a server that gives one answer, and what it will have read."""
    listening, read = socket.create_server(("127.0.0.1", 0)), []

    def serve() -> None:
        with listening, listening.accept()[0] as connection:
            read.append(connection.recv(4096))
            connection.sendall(answer)

    threading.Thread(target=serve, daemon=True).start()
    return f"http://127.0.0.1:{listening.getsockname()[1]}/health", read


def test_an_answer_is_returned_and_the_key_was_sent(monkeypatch):
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    url, read = serve_once(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
    assert fetch(url, "sk-zq") == b"ok"
    assert b"Authorization: Bearer sk-zq\r\n" in read[0]


@pytest.mark.parametrize("answer", [b"", b"no HTTP at all\r\n\r\n", b"HTTP/1.1 503 Busy\r\nContent-Length: 0\r\n\r\n"])
def test_what_is_no_answer_is_none(answer):
    assert fetch(serve_once(answer)[0]) is None


def test_nobody_answers_where_nobody_is():
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port = listening.getsockname()[1]
    check_port("serve.port", port)
    assert fetch(f"http://127.0.0.1:{port}/health") is None


def test_a_port_that_is_taken_is_refused_by_its_settings_name():
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port = listening.getsockname()[1]
        with pytest.raises(ConfigError, match=f"models.solver.serve.port {port}: Address already in use; stop what"):
            check_port("models.solver.serve.port", port)
