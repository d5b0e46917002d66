"""The client that is shipped with RL data, before servers that misbehave."""

import json
import socket
import threading
from contextlib import contextmanager

import pytest

from pipelines.release import synth_tools
from pipelines.release.synth_tools import ToolServerError, ToolSession, send

MESSAGES = [{"role": "system", "content": ""}, {"role": "user", "content": "?"}]
OPENED = json.dumps({"session": "s1", "messages": MESSAGES, "images": []}).encode()


def reply(content, status=b"200 OK"):
    return b"HTTP/1.1 %s\r\nContent-Length: %d\r\nConnection: close\r\n\r\n%s" % (status, len(content), content)


@contextmanager
def serving(*replies):
    """Answer one connection after the other with bytes; None leaves a request unanswered until the end."""
    with socket.create_server(("127.0.0.1", 0)) as place:
        held = []

        def serve():
            for each in replies:
                connection, _ = place.accept()
                connection.recv(65536)
                if each is None:
                    held.append(connection)
                else:
                    connection.sendall(each)
                    connection.close()

        thread = threading.Thread(target=serve)
        thread.start()
        yield f"http://127.0.0.1:{place.getsockname()[1]}"
        thread.join()
        for connection in held:
            connection.close()


@pytest.mark.parametrize(
    "answer",
    [b"", b"HTTP/1.1 200 OK\r\nContent-Length: 90\r\n\r\n{", b"no protocol\r\n\r\n", reply(b"<html>"), None],
    ids=["closed", "cut off", "no protocol", "no JSON", "silent"],
)
def test_a_server_that_breaks_off_is_an_error_of_the_tool_server(answer, monkeypatch):
    monkeypatch.setattr(synth_tools, "PATIENCE", 0.5)
    with serving(answer) as address, pytest.raises(ToolServerError, match="serve-tools") as caught:
        send(f"{address}/tools")
    assert caught.value.status == 0


def test_a_server_on_this_machine_is_asked_past_any_proxy(monkeypatch):
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    for name in ("no_proxy", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)
    # Made at the first request of this process, it keeps the proxies of then.
    monkeypatch.setattr("urllib.request._opener", None)
    with serving(reply(OPENED)) as address:
        session = ToolSession("q1", address).open()
    assert [each["content"] for each in session.messages] == ["", "?"]
