"""Talking to a server on this machine: is its port free, and what does it answer."""

import http.client
import socket
import urllib.request

from pipelines.errors import ConfigError

HOST = "127.0.0.1"
_PATIENCE = 5.0
"""Seconds for an answer."""
_LONGEST = 1 << 20
"""Bytes of an answer that are read."""


def check_port(setting: str, port: int) -> None:
    """Refuse a port that somebody listens on.

    Args:
        setting: its name in the configuration.
        port: on the loopback interface.

    Raises:
        ConfigError: if it is taken, or may not be had.
    """
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, port))
        except OSError as error:
            raise ConfigError(
                f"{setting} {port}: {error.strerror}; stop what listens there, choose another port, or attach to it by "
                f"serve.own = false"
            ) from error


def fetch(url: str, key: str = "") -> bytes | None:
    """Return what a server answers, None where it does not, or with an error.

    Args:
        url: its address.
        key: sent as the bearer's token; empty for none.
    """
    headers = {"Authorization": f"Bearer {key}"} if key else {}
    # Nothing on the loopback interface goes through a proxy.
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open(urllib.request.Request(url, headers=headers), timeout=_PATIENCE) as reply:
            return bytes(reply.read(_LONGEST))
    except (OSError, http.client.HTTPException):
        return None
