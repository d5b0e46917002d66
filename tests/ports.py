"""Ports for servers that tests start in processes of their own."""

import random
import socket
from contextlib import suppress
from pathlib import Path

GIVEN = int(Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0])
"""The first of the ports that the system gives to whoever asks for any."""


def find_port() -> int:
    """Return a free port that nobody is given by chance before the server takes it."""
    draw = random.SystemRandom()
    while True:
        with socket.socket() as probe, suppress(OSError):
            probe.bind(("127.0.0.1", draw.randrange(1024, GIVEN) if GIVEN > 1024 else 0))
            return int(probe.getsockname()[1])
