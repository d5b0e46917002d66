"""Embeddings that are kept: nothing is encoded twice, within a run or across runs and processes.

One SQLite file in WAL mode under a folder. A row is an embedding under the hash of the encoder's identity and of the
picture's content, or the text. Rows are written in transactions, so that kill -9 leaves whole rows and loses only what
was being encoded; of two processes that encode the same at the same moment the first one's row stays, for both.
"""

import asyncio
import hashlib
import sqlite3
import threading
import time
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from pipelines.backends.group_commit import explain_sqlite_error, is_busy
from pipelines.backends.protocols import ImageEncoder, PictureFile
from pipelines.errors import CorruptInput, RecordFailed
from pipelines.files import explain_os_error
from pipelines.filesystems import check_shared_memory

FILE = "embeddings.db"
CHUNK = 256
"""Pictures or texts that are looked up, encoded and recorded together."""
FLYING = 2
"""Chunks of one caller that are under way at once: while one is recorded, the next is encoded."""
BUSY_SECONDS = 30.0
_STORED = np.dtype("<f4")
_UNIT = 1e-2
"""How far a stored row's length may be from 1."""

Row = NDArray[np.float32]
"""One embedding, of shape (d,)."""
EncodeSome = Callable[[Sequence[int]], Awaitable[NDArray[np.float32]]]
"""Encodes what is at some places of what was asked for."""


@dataclass(slots=True)
class EmbeddingStore:
    """The file; opened when it is first needed, shared by the threads and event loops of a process."""

    folder: Path
    lock: threading.Lock = field(default_factory=threading.Lock)
    """Held while the connection is used."""
    _connection: sqlite3.Connection | None = None

    def read(self, keys: Sequence[bytes]) -> dict[bytes, Row]:
        """Return the recorded embeddings of those keys that have one.

        Raises:
            Unavailable: if the file cannot be read now.
            CorruptInput: if it is damaged.
            ConfigError: if the folder's file system cannot hold it.
        """
        with self.lock:
            return self._guard(lambda connection: self._select(connection, keys))

    def record(self, rows: Mapping[bytes, Row]) -> dict[bytes, Row]:
        """Record embeddings, all or none; return what is recorded under their keys now: the first of a key stays.

        Raises:
            Unavailable: if the disk is full, or others hold the file for too long.
            CorruptInput: if the file is damaged.
        """
        with self.lock:
            return self._guard(lambda connection: self._insert(connection, rows))

    def close(self) -> None:
        """Close the file."""
        with self.lock:
            if self._connection is not None:
                self._connection.close()
                self._connection = None

    def _guard(self, work: Callable[[sqlite3.Connection], dict[bytes, Row]]) -> dict[bytes, Row]:
        try:
            if self._connection is None:
                self._connection = _connect(self.folder)
            return work(self._connection)
        except sqlite3.Error as error:
            raise explain_sqlite_error(error, f"embeddings {self.folder / FILE}") from error
        except OSError as error:
            raise explain_os_error(error, f"embeddings in {self.folder}") from error

    def _select(self, connection: sqlite3.Connection, keys: Sequence[bytes]) -> dict[bytes, Row]:
        marks = ",".join("?" * len(keys))
        found = connection.execute(f"SELECT key, embedding FROM embeddings WHERE key IN ({marks})", tuple(keys))
        return {key: self._unpack(embedding) for key, embedding in found}

    def _insert(self, connection: sqlite3.Connection, rows: Mapping[bytes, Row]) -> dict[bytes, Row]:
        values = [(key, row.astype(_STORED).tobytes()) for key, row in rows.items()]
        with connection:
            done = connection.executemany("INSERT OR IGNORE INTO embeddings (key, embedding) VALUES (?, ?)", values)
        return dict(rows) if done.rowcount == len(rows) else self._select(connection, list(rows))

    def _unpack(self, embedding: bytes) -> Row:
        row = np.frombuffer(embedding, dtype=_STORED) if len(embedding) % _STORED.itemsize == 0 else np.zeros(0)
        if not abs(float(np.dot(row, row)) - 1.0) < _UNIT:
            place = self.folder / FILE
            raise CorruptInput(f"embeddings {place}: a row is no embedding; delete the file: it is made anew")
        return row.astype(np.float32)


def _connect(folder: Path) -> sqlite3.Connection:
    folder.mkdir(parents=True, exist_ok=True)
    check_shared_memory(folder)
    connection = sqlite3.connect(folder / FILE, timeout=BUSY_SECONDS, check_same_thread=False)
    try:
        _begin_log(connection)
        # What a power cut takes is encoded again; kill -9 takes nothing that was recorded.
        connection.execute("PRAGMA synchronous=NORMAL")
        connection.execute("CREATE TABLE IF NOT EXISTS embeddings (key BLOB PRIMARY KEY, embedding BLOB NOT NULL)")
    except BaseException:
        connection.close()
        raise
    return connection


def _begin_log(connection: sqlite3.Connection) -> None:
    deadline = time.monotonic() + BUSY_SECONDS
    while True:
        try:
            connection.execute("PRAGMA journal_mode=WAL").fetchone()
            return
        except sqlite3.OperationalError as error:
            # SQLite does not wait by itself for this one: another process makes the file just now.
            if not is_busy(error) or time.monotonic() > deadline:
                raise
            time.sleep(0.01)


@dataclass(frozen=True, slots=True)
class CachedEncoder:
    """An encoder that encodes nothing twice.

    Attributes:
        encoder: what encodes.
        folder: where embeddings are kept, those of any number of encoders.
    """

    encoder: ImageEncoder
    folder: Path
    _store: EmbeddingStore = field(init=False, repr=False, compare=False)
    _flights: dict[bytes, "Future[None]"] = field(default_factory=dict, init=False, repr=False, compare=False)
    """What is being encoded by key: whoever wants the same meanwhile waits, and looks it up then."""
    _lock: threading.Lock = field(default_factory=threading.Lock, init=False, repr=False, compare=False)
    """Held while the flights are changed."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "_store", EmbeddingStore(self.folder))

    @property
    def name(self) -> str:
        """The encoder's."""
        return self.encoder.name

    @property
    def identity(self) -> str:
        """The encoder's: what is kept is what it would say."""
        return self.encoder.identity

    async def encode_pictures(self, pictures: Sequence[PictureFile]) -> NDArray[np.float32]:
        """Return one row of unit length a picture, of shape (n, d), in the order given.

        Raises:
            RecordFailed: if one cannot be decoded; the others of its chunk are recorded all the same.
            ServiceError: if the encoder is away, a picture's file, or the disk.
            CorruptInput: if the file of embeddings is damaged.
        """

        async def encode(places: Sequence[int]) -> NDArray[np.float32]:
            return await self.encoder.encode_pictures([pictures[place] for place in places])

        return await self._recall("picture", [picture.sha256 for picture in pictures], encode)

    async def encode_texts(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return one row of unit length a text, of shape (n, d), in the order given; errors as above."""

        async def encode(places: Sequence[int]) -> NDArray[np.float32]:
            return await self.encoder.encode_texts([texts[place] for place in places])

        return await self._recall("text", texts, encode)

    def close(self) -> None:
        """Close the file of embeddings; the encoder stays as it is."""
        self._store.close()

    async def _recall(self, kind: str, contents: Sequence[str], encode: EncodeSome) -> NDArray[np.float32]:
        if not contents:
            return await encode(())
        keys = make_keys(kind, self.identity, contents)
        places: dict[bytes, list[int]] = {}
        for place, key in enumerate(keys):
            places.setdefault(key, []).append(place)
        rows: list[NDArray[np.float32]] = []

        async def fill(chunk: Sequence[bytes]) -> None:
            for key, row in (await self._fetch(chunk, encode, places)).items():
                if not rows:
                    rows.append(np.empty((len(contents), len(row)), dtype=np.float32))
                rows[0][places[key]] = row

        await _run_chunks(fill, _cut(list(places)))
        return rows[0]

    async def _fetch(
        self, keys: Sequence[bytes], encode: EncodeSome, places: Mapping[bytes, list[int]]
    ) -> dict[bytes, Row]:
        """Return the embeddings of some keys: looked up, encoded here, or waited for where another caller encodes."""
        rows: dict[bytes, Row] = {}
        while wanted := [key for key in keys if key not in rows]:
            mine, others, flight = self._board(wanted)
            try:
                if mine:
                    rows |= await self._fly(mine, encode, places)
            finally:
                self._land(mine, flight)
            for other in others:
                await asyncio.wrap_future(other)
        return rows

    def _board(self, keys: Sequence[bytes]) -> "tuple[list[bytes], set[Future[None]], Future[None]]":
        """Return the keys that are the caller's to look up and encode, the flights of the others, and its own."""
        flight = Future[None]()
        # From now on nobody who waits for it can cancel it.
        flight.set_running_or_notify_cancel()
        with self._lock:
            others = {self._flights[key] for key in keys if key in self._flights}
            mine = [key for key in keys if key not in self._flights]
            self._flights.update(dict.fromkeys(mine, flight))
        return mine, others, flight

    def _land(self, keys: Iterable[bytes], flight: "Future[None]") -> None:
        with self._lock:
            for key in keys:
                del self._flights[key]
        flight.set_result(None)

    async def _fly(
        self, keys: Sequence[bytes], encode: EncodeSome, places: Mapping[bytes, list[int]]
    ) -> dict[bytes, Row]:
        found = await asyncio.to_thread(self._store.read, keys)
        missing = [key for key in keys if key not in found]
        if not missing:
            return found
        try:
            encoded = await encode([places[key][0] for key in missing])
        except RecordFailed:
            await self._keep_others(missing, encode, places)
            raise
        made = dict(zip(missing, encoded, strict=True))
        return found | await asyncio.to_thread(self._store.record, made)

    async def _keep_others(self, keys: Sequence[bytes], encode: EncodeSome, places: Mapping[bytes, list[int]]) -> None:
        """Record what can be encoded beside something that cannot."""
        outcomes = await asyncio.gather(*(encode([places[key][0]]) for key in keys), return_exceptions=True)
        made = {key: rows[0] for key, rows in zip(keys, outcomes, strict=True) if not isinstance(rows, BaseException)}
        if made:
            await asyncio.to_thread(self._store.record, made)


def make_keys(kind: str, identity: str, contents: Iterable[str]) -> list[bytes]:
    """Return the keys of pictures' digests, or of texts, as an encoder embeds them."""
    start = hashlib.sha256(f"{kind}\0{identity}\0".encode())
    keys = []
    for content in contents:
        digest = start.copy()
        # Half of a surrogate pair is a text, too.
        digest.update(content.encode("utf-8", "surrogatepass"))
        keys.append(digest.digest())
    return keys


def _cut(keys: Sequence[bytes]) -> Iterator[Sequence[bytes]]:
    return (keys[start : start + CHUNK] for start in range(0, len(keys), CHUNK))


async def _run_chunks(work: Callable[[Sequence[bytes]], Awaitable[None]], chunks: Iterator[Sequence[bytes]]) -> None:
    """Do the chunks in order, some at a time; the first error ends it."""

    async def take() -> None:
        for chunk in chunks:
            await work(chunk)

    tasks = [asyncio.create_task(take()) for _ in range(FLYING)]
    try:
        await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
