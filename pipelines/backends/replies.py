"""The reply store: every reply under the hash of the exact request, shared by all processes of a host.

One SQLite file in WAL mode: a reply that was written survives kill -9 at any later moment. Before a request is sent an
ask is noted, so ``asks`` minus ``replies`` is what was in flight at a crash and a reply paid twice shows as a count.
"""

import asyncio
import sqlite3
import threading
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path

from pipelines.errors import Unavailable

TABLES = """
CREATE TABLE IF NOT EXISTS asks (key TEXT NOT NULL, backend TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS replies (key TEXT PRIMARY KEY, backend TEXT NOT NULL, reply TEXT NOT NULL) WITHOUT ROWID;
"""


@dataclass(slots=True)
class ReplyStore:
    """Replies of one workspace. Open one a process with :func:`open_replies`; its threads may share it."""

    connection: sqlite3.Connection
    in_flight: dict[tuple[int, str], asyncio.Future[str]] = field(default_factory=dict)
    """Requests under way by event loop and key: whoever asks the same meanwhile waits for that reply."""
    lock: threading.Lock = field(default_factory=threading.Lock)

    def read(self, key: str) -> str | None:
        """Return the recorded reply, or None."""
        row = self._execute("SELECT reply FROM replies WHERE key = ?", (key,)).fetchone()
        return None if row is None else str(row[0])

    def note_ask(self, key: str, backend: str) -> None:
        """Note that a request is about to be sent."""
        self._execute("INSERT INTO asks VALUES (?, ?)", (key, backend))

    def write(self, key: str, backend: str, reply: str) -> None:
        """Record a reply; the first one stays when two processes asked at the same time."""
        self._execute("INSERT OR IGNORE INTO replies VALUES (?, ?, ?)", (key, backend, reply))

    def count(self) -> tuple[int, int]:
        """Return how many requests were sent and how many replies are recorded."""
        (asks,) = self._execute("SELECT count(*) FROM asks", ()).fetchone()
        (replies,) = self._execute("SELECT count(*) FROM replies", ()).fetchone()
        return int(asks), int(replies)

    async def recall(self, key: str, backend: str, ask: Callable[[], Awaitable[str]]) -> tuple[str, bool]:
        """Return the recorded reply, or ask for it and record it.

        Args:
            key: hash of the backend's identity and the exact request.
            backend: identity, kept beside the reply for pruning.
            ask: sends the request; called only on a miss.

        Returns:
            The reply and whether it came from the recording.
        """
        recorded = self.read(key)
        if recorded is not None:
            return recorded, True
        loop = asyncio.get_running_loop()
        flight = (id(loop), key)
        if flight in self.in_flight:
            return await asyncio.shield(self.in_flight[flight]), True
        self.in_flight[flight] = pending = loop.create_future()
        try:
            self.note_ask(key, backend)
            reply = await ask()
            self.write(key, backend, reply)
            pending.set_result(reply)
        except BaseException as error:
            pending.set_exception(error)
            # Whoever waits sees it; where nobody does, it must not be reported as never retrieved.
            pending.exception()
            raise
        finally:
            del self.in_flight[flight]
        return reply, False

    def close(self) -> None:
        """Close the connection."""
        self.connection.close()

    def _execute(self, statement: str, values: tuple[str, ...]) -> sqlite3.Cursor:
        try:
            with self.lock:
                return self.connection.execute(statement, values)
        except sqlite3.OperationalError as error:
            raise Unavailable(f"reply store: {error}; free space or end the other run, then run again") from error


def open_replies(folder: Path) -> ReplyStore:
    """Open (or make) the reply store in a folder.

    Raises:
        Unavailable: if the file cannot be opened or its disk is full.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        connection = sqlite3.connect(folder / "replies.db", isolation_level=None, timeout=30.0, check_same_thread=False)
        connection.execute("PRAGMA journal_mode=WAL")
        connection.execute("PRAGMA synchronous=NORMAL")
        connection.executescript(TABLES)
    except sqlite3.Error as error:
        raise Unavailable(f"reply store in {folder}: {error}") from error
    return ReplyStore(connection)
