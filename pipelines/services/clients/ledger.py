"""Check and repair the ledger of paid replies, the store of :mod:`pipelines.services.clients.replies`.

A check reads every row. A repair reads what can be read, page by page around what cannot, and writes the rows that are
whole into a new store. The damaged files are set aside whole, so nothing is ever lost by a repair.
"""

import shutil
import sqlite3
from collections import Counter
from collections.abc import Iterator
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from pipelines.errors import ConfigError, CorruptInput
from pipelines.files import TEMP_PREFIX, sync_files, sync_folder
from pipelines.services.clients.replies import open_row, read_address
from pipelines.services.clients.sqlite import FILE, TABLES, connect_replies

ENDINGS = ("", "-wal", "-shm")
SMALLEST_ROW = 16
"""Fewest bytes that a row takes in the file: with its size this bounds the numbers of its rows."""
SHOWN = 3
"""Complaints of SQLite that a check quotes."""
COLUMNS = {
    "asks": ("key", "backend", "asked"),
    "failures": ("key", "backend", "failed", "error"),
    "replies": ("key", "backend", "recorded", "bytes", "reply", "checksum"),
}
TEXTS = frozenset({"key", "backend", "error", "reply"})

Cells = tuple[Any, ...]
"""A row as it lies in the file, texts as bytes; a damaged one may hold anything."""


@dataclass(frozen=True, slots=True)
class LedgerCheck:
    """What is wrong with a store: nothing, unless one of the three says so."""

    replies: int
    """Replies that are whole."""
    damaged: dict[str, int]
    """Rows that are not as they were written, by the backend they name."""
    complaints: tuple[str, ...]
    """What SQLite says about the file."""

    @property
    def sound(self) -> bool:
        """Whether every row and the file are whole."""
        return not self.damaged and not self.complaints

    def explain(self) -> str:
        """Return one line: how many rows are whole, and what is wrong."""
        line = f"{self.replies:,} replies are whole"
        if self.damaged:
            line += ", not: " + ", ".join(f"{count:,} of {backend}" for backend, count in sorted(self.damaged.items()))
        return "; the file: ".join([line, *self.complaints[:1]])


@dataclass(frozen=True, slots=True)
class Repair:
    """What a repair found and did."""

    found: LedgerCheck
    saved: int
    """Replies in the new store; as found where nothing was wrong."""
    aside: Path | None
    """Folder of the damaged files; None where nothing was wrong."""


def check_ledger(folder: Path) -> LedgerCheck:
    """Read every reply of the store in a folder, or in PostgreSQL where a workspace keeps its replies there.

    Raises:
        ConfigError: if the folder's file system cannot hold a store.
        Unavailable: if the store cannot be read now.
    """
    if address := read_address(folder):
        return _check_postgres(address)
    try:
        with closing(connect_replies(folder)) as store:
            complaints = _examine_file(store)
            whole, damaged = 0, Counter[str]()
            for cells in scan_table(store, "replies", folder / FILE):
                if is_whole("replies", cells):
                    whole += 1
                else:
                    damaged[_name_backend(cells)] += 1
    except CorruptInput as error:
        return LedgerCheck(0, {}, (str(error),))
    return LedgerCheck(whole, dict(damaged), complaints)


def _check_postgres(address: str) -> LedgerCheck:
    from pipelines.services.clients.postgres import scan_replies

    whole, damaged = 0, Counter[str]()
    for row in scan_replies(address):
        try:
            open_row((row[0], row[1], row[2], row[3]), "replies")
            whole += 1
        except CorruptInput:
            damaged[_name_backend(row)] += 1
    return LedgerCheck(whole, dict(damaged), ())


def refuse_postgres(folder: Path, command: str) -> None:
    """Refuse a command that works on SQLite's file.

    Raises:
        ConfigError: if the workspace's replies are in PostgreSQL.
    """
    if address := read_address(folder):
        raise ConfigError(
            f"{command}: the replies are in PostgreSQL, {address}, and this works on SQLite's file alone; there are "
            "the tables asks, replies and failures for psql, and `synth replies check` reads them"
        )


def repair_ledger(folder: Path) -> Repair:
    """Write the rows that are whole into a new store and set the damaged files aside; a sound store stays as it is.

    No other process may use the store: the caller holds the workspace. A crash at any moment leaves a store behind, the
    old one or the new one.

    Raises:
        ConfigError: if the replies are in PostgreSQL.
        OSError: if the disk has no room for a second store.
    """
    refuse_postgres(folder, "repair")
    found = check_ledger(folder)
    if found.sound:
        return Repair(found, found.replies, None)
    aside = _choose_aside(folder)
    with TemporaryDirectory(dir=folder, prefix=TEMP_PREFIX) as scratch:
        made = Path(scratch) / "made"
        with closing(connect_replies(made)) as store:
            saved = _copy_whole(folder, Path(scratch), store)
            store.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        aside.mkdir()
        for ending in ENDINGS:
            with suppress(FileNotFoundError):
                shutil.copy2(folder / f"{FILE}{ending}", aside)
        sync_files(aside)
        sync_files(made)
        # SQLite would apply the log of the old file to the new one.
        for ending in ENDINGS[1:]:
            (folder / f"{FILE}{ending}").unlink(missing_ok=True)
        (made / FILE).replace(folder / FILE)
        sync_folder(folder)
    return Repair(found, saved, aside)


def _examine_file(store: sqlite3.Connection) -> tuple[str, ...]:
    try:
        lines = [str(line) for (line,) in store.execute(f"PRAGMA integrity_check({SHOWN})")]
    except sqlite3.DatabaseError as error:
        return (str(error),)
    return tuple(" ".join(line.split()) for line in lines if line != "ok")


def _choose_aside(folder: Path) -> Path:
    number = 1
    while (folder / f"damaged-{number}").exists():
        number += 1
    return folder / f"damaged-{number}"


def _copy_whole(folder: Path, scratch: Path, store: sqlite3.Connection) -> int:
    """Copy the rows that are whole of every table; return how many replies there are now."""
    with closing(_open_damaged(folder, scratch)) as source:
        store.execute("BEGIN IMMEDIATE")
        for table, columns in COLUMNS.items():
            marks = ", ".join("CAST(? AS TEXT)" if column in TEXTS else "?" for column in columns)
            statement = f"INSERT OR IGNORE INTO {table} ({', '.join(columns)}) VALUES ({marks})"
            rows = scan_table(source, table, folder / FILE)
            store.executemany(statement, (cells for cells in rows if is_whole(table, cells)))
        store.execute("COMMIT")
    (count,) = store.execute("SELECT count(*) FROM replies").fetchone()
    return int(count)


def _open_damaged(folder: Path, scratch: Path) -> sqlite3.Connection:
    """Open a store whose rows are to be saved; a copy with a new first page where the file's own cannot be read."""
    store = sqlite3.connect(folder / FILE)
    try:
        for table, columns in COLUMNS.items():
            store.execute(f"EXPLAIN SELECT {', '.join(columns)} FROM {table}")
    except sqlite3.DatabaseError:
        store.close()
    else:
        return store
    copy = scratch / FILE
    shutil.copy2(folder / FILE, copy)
    with closing(sqlite3.connect(scratch / "empty.db")) as empty:
        empty.executescript(TABLES)
        (page,) = empty.execute("PRAGMA page_size").fetchone()
    first = bytearray((scratch / "empty.db").read_bytes()[:page])
    first[28:32] = bytes(4)  # number of pages: 0 has SQLite go by the file's size
    with copy.open("r+b") as out:
        out.write(first)
    return sqlite3.connect(copy)


def scan_table(store: sqlite3.Connection, table: str, path: Path) -> Iterator[Cells]:
    """Yield the rows of a table that can be read, texts as bytes; pages that cannot be read are stepped over."""
    columns = ", ".join(f"CAST({name} AS BLOB)" if name in TEXTS else name for name in COLUMNS[table])
    select = f"SELECT rowid, {columns} FROM {table} WHERE rowid > ? ORDER BY rowid"
    most, last = path.stat().st_size // SMALLEST_ROW, 0
    while last <= most:
        try:
            for row in store.execute(select, (last,)):
                if last < row[0] <= most:
                    last = row[0]
                yield row[1:]
            return
        except sqlite3.DatabaseError:
            last = _step_over(store, table, last, most)


def _step_over(store: sqlite3.Connection, table: str, last: int, most: int) -> int:
    """Return the number of a row after ``last`` from which the table can be read on, or one beyond ``most``."""

    def can_read(start: int) -> bool:
        query = f"SELECT rowid, length({COLUMNS[table][-1]}) FROM {table} WHERE rowid > ? ORDER BY rowid LIMIT 1"
        try:
            store.execute(query, (start,)).fetchall()
        except sqlite3.DatabaseError:
            return False
        return True

    step = 1
    while last + step <= most and not can_read(last + step):
        step *= 2
    below, above = last + step // 2, last + step
    while below + 1 < above:
        middle = (below + above) // 2
        below, above = (below, middle) if can_read(middle) else (middle, above)
    return above


def is_whole(table: str, cells: Cells) -> bool:
    """Whether a row of a table is text where it should be and, of replies, as it was written."""
    named = dict(zip(COLUMNS[table], cells, strict=True))
    try:
        if table == "replies":
            open_row((named["key"], named["backend"], named["reply"], named["checksum"]), table)
        return all(named[name].decode() for name in TEXTS & named.keys() if named[name])
    except (UnicodeDecodeError, CorruptInput):
        return False


def _name_backend(cells: Cells) -> str:
    return (cells[1] or b"no backend").decode(errors="replace")
