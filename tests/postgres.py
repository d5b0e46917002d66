"""A PostgreSQL server of a test's own: no port unless one is asked for, its data in a temporary folder."""

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlencode
from uuid import uuid4

import psycopg

WAIT = "120"
"""Seconds that starting and stopping may take."""
USERS = ("postgres", "nobody")
"""PostgreSQL refuses to run as root: whom it runs as then."""


def find_program(name: str) -> str:
    """Return the path of a program of PostgreSQL, also where Debian keeps it; empty where there is none."""
    places = [str(place) for place in sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)]
    return shutil.which(name) or shutil.which(name, path=os.pathsep.join(places)) or ""


@dataclass(frozen=True)
class Postgres:
    """A server that runs. ``address`` is its database ``postgres``, by a socket in its folder."""

    folder: Path
    user: str
    port: int

    @property
    def address(self) -> str:
        """What ``replies`` takes."""
        return f"postgresql://synth@/postgres?{urlencode({'host': str(self.folder), 'port': self.port})}"

    def make_address(self, host: str = "") -> str:
        """Make a database and return its address, by the socket or by a host that the server listens on."""
        name = f"replies_{uuid4().hex[:12]}"
        with psycopg.connect(self.address, autocommit=True) as connection:
            connection.execute(f"CREATE DATABASE {name}")
        if host:
            return f"postgresql://synth@{host}:{self.port}/{name}"
        return self.address.replace("/postgres?", f"/{name}?")

    def control(self, action: str, *options: str) -> None:
        """Start, stop or restart the server; ``-m immediate`` ends it as a crash does."""
        log = self.folder / "log"
        command = [find_program("pg_ctl"), "-D", str(self.folder / "data"), "-w", "-t", WAIT, "-l", str(log)]
        run_as(self.user, *command, *options, action)


def run_as(user: str, *command: str) -> None:
    """Run a program as a user, or as whoever runs this where none is named."""
    who = {"user": user, "group": os.stat(command[2]).st_gid, "extra_groups": []} if user else {}  # noqa: PTH116
    # A pipe that the server inherits would never end.
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, cwd="/", **who)


def pick_user() -> str:
    """Return whom the server runs as; empty for whoever runs this."""
    if os.geteuid():
        return ""
    names = {line.split(":")[0] for line in Path("/etc/passwd").read_text().splitlines()}
    return next(name for name in USERS if name in names)


@contextmanager
def start_postgres(*settings: str, listen: str = "", port: int = 5432) -> Iterator[Postgres]:
    """Run a server for the block.

    Args:
        settings: as ``fsync=off``.
        listen: address to listen on; empty: a socket in a folder alone.
        port: of the address, and part of the socket's name.
    """
    user = pick_user()
    with tempfile.TemporaryDirectory(prefix="synth-pg-") as name:
        folder, data = Path(name), Path(name) / "data"
        data.mkdir()
        if user:
            shutil.chown(folder, user)
            shutil.chown(data, user)
        folder.chmod(0o755)
        run_as(user, find_program("initdb"), "-D", str(data), "-U", "synth", "-A", "trust", "-E", "UTF8", "-N")
        given = (f"listen_addresses='{listen}'", f"unix_socket_directories='{folder}'", f"port={port}", *settings)
        with (data / "postgresql.conf").open("a") as out:
            out.write("".join(f"{line}\n" for line in given))
        server = Postgres(folder, user, port)
        server.control("start")
        try:
            yield server
        finally:
            server.control("stop", "-m", "immediate")
