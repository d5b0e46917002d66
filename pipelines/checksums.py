"""Checksums of what does not change once it is written: of folders block by block, and of small JSON notes.

A folder's checksums lie inside it, in one file. A block is held against its hash the first time it is read
after an opening, so a folder of any size opens at once. xxh3 finds what disks and copies do wrong; it is no signature.
"""

import re
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import xxhash
from numpy.typing import NDArray

from pipelines.errors import Damaged

BLOCK = 1 << 16
"""Bytes of a block: 4 us of hashing, and about what a disk reads ahead for a look-up."""
CHECKSUMS = "checksums.bin"
"""A table of files, and the hash of that."""
WHOLE_BYTES = 256 << 20
"""A folder of so many bytes is checked whole when it is opened, in 0.1 s; of a larger one, the sizes of its files."""
_SCHEMA = pa.schema([("file", pa.string()), ("bytes", pa.int64()), ("blocks", pa.list_(pa.uint64()))])


class CheckedFile:
    """A file whose blocks are held against their hashes; safe to share between threads."""

    def __init__(self, path: Path, size: int, hashes: NDArray[np.uint64]) -> None:
        self.path, self.size = path, size
        self._hashes = hashes
        self._seen = bytearray(len(hashes))

    def check(self, start: int = 0, end: int | None = None) -> None:
        """Check the blocks that hold a range of bytes, the whole file where none is given.

        Raises:
            Damaged: the file is missing, or a block has other bytes.
        """
        first, last = start // BLOCK, -(-(self.size if end is None else end) // BLOCK)
        if self._seen.find(0, first, last) < 0:
            return
        try:
            with self.path.open("rb", buffering=0) as source:
                for block in range(first, min(last, len(self._seen))):
                    if not self._seen[block]:
                        source.seek(block * BLOCK)
                        self._check_block(block, source.read(BLOCK))
        except FileNotFoundError as error:
            raise Damaged(self.path, "is missing") from error

    def _check_block(self, block: int, data: bytes) -> None:
        if xxhash.xxh3_64_intdigest(data) != self._hashes[block]:
            raise Damaged(self.path, f"has other bytes than were written, from byte {block * BLOCK:,} on")
        self._seen[block] = 1

    def recheck(self) -> None:
        """Check all blocks, also those that were checked before; raises as :meth:`check`."""
        self._seen = bytearray(len(self._seen))
        self.check()

    def check_size(self) -> None:
        """Check that the file is there with all its bytes.

        Raises:
            Damaged: it is not.
        """
        if not self.path.is_file():
            raise Damaged(self.path, "is missing")
        if (found := self.path.stat().st_size) != self.size:
            raise Damaged(self.path, f"has {found:,} bytes; {self.size:,} were written")


def write_checksums(folder: Path) -> None:
    """Write the checksums of all files below a folder, but for its manifest."""
    skipped = (folder / CHECKSUMS, folder / "manifest.json")
    paths = sorted(path for path in folder.rglob("*") if path.is_file() and path not in skipped)
    names = [path.relative_to(folder).as_posix() for path in paths]
    columns = [names, [path.stat().st_size for path in paths], [list(_hash_blocks(path)) for path in paths]]
    pq.write_table(pa.table(dict(zip(_SCHEMA.names, columns, strict=True)), _SCHEMA), folder / CHECKSUMS)
    seal_file(folder / CHECKSUMS)


def _hash_blocks(path: Path) -> Iterator[int]:
    with path.open("rb", buffering=0) as source:
        while block := source.read(BLOCK):
            yield xxhash.xxh3_64_intdigest(block)


def hash_bytes(data: bytes) -> str:
    """Return the 64-bit xxh3 of some bytes, 16 hex digits."""
    return xxhash.xxh3_64_hexdigest(data)


def open_checked(path: Path) -> CheckedFile:
    """Return a file with the hashes that its folder, or the one above, has of it; where there are none, it has none.

    Raises:
        Damaged: the file is missing or has another size, or the checksums are damaged.
    """
    for folder in (path.parent, path.parent.parent):
        files = read_checksums(folder)
        if files and (found := files.get(path.relative_to(folder).as_posix())):
            found.check_size()
            return found
    return CheckedFile(path, 0, np.empty(0, np.uint64))


def check_folder(folder: Path, whole: int = WHOLE_BYTES) -> None:
    """Check that all files of a folder are there, and their bytes where they are few.

    Args:
        folder: with checksums.
        whole: up to so many bytes in all, each is checked.

    Raises:
        Damaged: naming the first file that is not as it was written.
    """
    files = read_checksums(folder)
    if not files:
        raise Damaged(folder / CHECKSUMS, "is missing")
    for file in files.values():
        file.check_size()
    if sum(file.size for file in files.values()) <= whole:
        for file in files.values():
            file.check()


def is_whole(folder: Path) -> bool:
    """Say whether a folder with checksums is there, as far as :func:`check_folder` looks."""
    try:
        check_folder(folder)
    except Damaged:
        return False
    return True


def read_checksums(folder: Path) -> dict[str, CheckedFile]:
    """Return the files of a folder by name, none where it has no checksums; what was checked before stays checked.

    Raises:
        Damaged: the file of checksums cannot be read.
    """
    place = folder / CHECKSUMS
    try:
        seen = place.stat()
    except (FileNotFoundError, NotADirectoryError):
        return {}
    return _read_checksums(place, (seen.st_ino, seen.st_mtime_ns, seen.st_size))


def forget_checks() -> None:
    """Check again from now on what was checked before: what is opened anew may have been damaged meanwhile."""
    _read_checksums.cache_clear()


@lru_cache(maxsize=8)
def _read_checksums(place: Path, _: tuple[int, ...]) -> dict[str, CheckedFile]:
    if not is_sealed(place):
        raise Damaged(place, "has other bytes than were written")
    rows = pq.read_table(pa.BufferReader(place.read_bytes()[:-_DIGITS]))
    hashes = [np.asarray(row.values) for row in rows["blocks"]]
    columns = rows["file"].to_pylist(), rows["bytes"].to_pylist(), hashes
    return {name: CheckedFile(place.parent / name, size, each) for name, size, each in zip(*columns, strict=True)}


def seal_file(path: Path) -> None:
    """Append its hash to a file whose readers stop before it, as those of arrays do."""
    with path.open("r+b") as file:
        digest = hash_bytes(file.read())
        file.write(digest.encode())


def is_sealed(path: Path) -> bool:
    """Say whether a file is as it was when :func:`seal_file` sealed it."""
    data = path.read_bytes()
    return hash_bytes(data[:-_DIGITS]).encode() == data[-_DIGITS:]


_DIGITS = 16
_SEAL = re.compile(r',?\n "xxh3": "([0-9a-f]{16})"\n\}\n\Z')
_SEAL_PARTS = ('"xx', 'h3": ')
"""One turned bit destroys one of them: a note that has neither was written before notes had a seal."""


def seal_note(text: str) -> str:
    """Return a JSON object's text with its hash as one more key, the last."""
    inner = text.rstrip()[:-1].rstrip()
    return f'{inner}{"," if inner != "{" else ""}\n "xxh3": "{hash_bytes(inner.encode())}"\n}}\n'


def read_note(path: Path) -> str:
    """Return the text of a JSON object that :func:`seal_note` sealed, without the seal.

    Raises:
        Damaged: it has other bytes than were written.
    """
    try:
        text = path.read_bytes().decode()
    except UnicodeDecodeError as error:
        raise Damaged(path, "has other bytes than were written") from error
    seal = _SEAL.search(text)
    if seal is not None and hash_bytes(text[: seal.start()].encode()) == seal[1]:
        return text[: seal.start()] + "\n}"
    if seal is not None or any(part in text for part in _SEAL_PARTS):
        raise Damaged(path, "has other bytes than were written")
    return text
