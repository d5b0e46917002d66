"""Write files whole: temp file, fsync, rename, fsync the folder. Recognise file systems unfit for a shared database."""

import errno
import glob
import os
import shutil
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pipelines.errors import ConfigError, SynthError, Unavailable

TEMP_PREFIX = ".tmp-"
FULL = (errno.ENOSPC, errno.EDQUOT)
MISPLACED = (errno.ENOTDIR, errno.EISDIR, errno.EEXIST)
FAILING = (
    errno.EIO, errno.ESTALE, errno.ETIMEDOUT, errno.ENODEV, errno.ENXIO, errno.EMFILE, errno.ENFILE, errno.ENOMEM,
)  # fmt: skip
REFUSED = (errno.EACCES, errno.EPERM, errno.EROFS)


def make_temp_path(path: Path) -> Path:
    """Return a sibling path that readers ignore; :func:`clear_temps` removes the ones that a crash left."""
    return path.with_name(f"{TEMP_PREFIX}{path.name}-{uuid.uuid4().hex[:8]}")


def sync_folder(folder: Path) -> None:
    """Flush a folder's entries to disk, so that a rename inside it survives power loss."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def sync_files(folder: Path) -> None:
    """Flush every file and folder under a folder to disk, itself included: about 0.3 ms a file."""
    for path in sorted(folder.rglob("*")):
        if path.is_dir():
            sync_folder(path)
            continue
        with path.open("rb+") as stream:
            os.fsync(stream.fileno())
    sync_folder(folder)


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Yield a temp path to write to; on a clean exit it is synced and renamed to ``path``, else removed."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temp = make_temp_path(path)
    try:
        yield temp
        with temp.open("rb+") as written:
            os.fsync(written.fileno())
        temp.replace(path)
        sync_folder(path.parent)
    finally:
        temp.unlink(missing_ok=True)


@contextmanager
def drafting_folder(out: Path) -> Iterator[Path]:
    """Yield a sibling folder to write to; on a clean exit it is synced and becomes ``out``, else it is removed.

    Drafts of the same folder that a crash left are removed first.
    """
    out.parent.mkdir(parents=True, exist_ok=True)
    for left in out.parent.glob(f"{TEMP_PREFIX}{glob.escape(out.name)}-*"):
        shutil.rmtree(left)
    draft = make_temp_path(out)
    draft.mkdir()
    try:
        yield draft
        sync_files(draft)
        draft.replace(out)
        sync_folder(out.parent)
    finally:
        shutil.rmtree(draft, ignore_errors=True)


def write_bytes(path: Path, data: bytes) -> None:
    """Write a whole file or nothing."""
    with replacing(path) as temp:
        temp.write_bytes(data)


def write_text(path: Path, text: str) -> None:
    """Write a whole UTF-8 file or nothing."""
    write_bytes(path, text.encode())


def clear_temps(folder: Path) -> None:
    """Remove what interrupted writes left directly inside a folder."""
    for path in folder.glob(f"{TEMP_PREFIX}*"):
        if path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)


def remove_whole(path: Path) -> None:
    """Remove a file, or a folder whole or not at all: what a crash leaves of it is a temporary folder."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path.rename(make_temp_path(path)))
    else:
        path.unlink(missing_ok=True)


def explain_os_error(error: OSError, doing: str) -> SynthError:
    """Return the synth error that an operating system error stands for.

    Raises:
        OSError: the error itself, when it is not a full disk, a refusal, a wrong path or a failing device: a defect of
            synth.
    """
    place = f" ({error.filename})" if error.filename else ""
    if error.errno in FULL:
        return Unavailable(f"{doing}: the disk is full{place}; free space and run the same command again")
    if error.errno in MISPLACED:
        return ConfigError(f"{doing}: a part of the path is not a folder{place}; choose another one")
    if error.errno in REFUSED:
        return ConfigError(f"{doing}: no permission{place}; choose another path or change its rights")
    if error.errno in FAILING:
        return Unavailable(f"{doing}: {error.strerror}{place}; run the same command again once this is fixed")
    raise error


MOUNTS = Path("/proc/self/mountinfo")
"""Linux' list of mounts; without it every file system is accepted."""
LOCAL = frozenset(
    "bcachefs btrfs ecryptfs exfat ext2 ext3 ext4 f2fs jfs nilfs2 ntfs3 overlay ramfs reiserfs rootfs tmpfs vfat xfs "
    "zfs fuse.fuse-overlayfs".split()
)
"""File systems of one host. On others SQLite in WAL mode may hang or lose rows, for processes share no memory there or
have unreliable locks (sqlite.org/wal.html, "does not work over a network filesystem"). There are too many of them to
list: of networks, of clusters, of a virtual machine's host (9p, virtiofs), and any behind FUSE."""


def find_file_system(folder: Path, mounts: str) -> str:
    """Return the type of the file system a folder lies on, such as ``ext4``.

    Args:
        folder: an absolute path with no links in it.
        mounts: text of ``/proc/self/mountinfo``.

    Returns:
        The type, or an empty string when no mount is above the folder.
    """
    found, kind = -1, ""
    for line in mounts.splitlines():
        before, _, after = line.partition(" - ")
        fields = before.split(" ")
        if len(fields) < 5 or not after:
            continue
        point = Path(_unescape(fields[4]))
        # A later mount on the same point hides the earlier one.
        if folder.is_relative_to(point) and len(point.parts) >= found:
            found, kind = len(point.parts), after.split(" ")[0]
    return kind


def check_shared_memory(folder: Path, mounts: Path = MOUNTS) -> None:
    """Refuse a folder on a file system that is not known to be local: SQLite's WAL mode may not work there.

    Raises:
        ConfigError: naming the folder and its file system.
    """
    if not mounts.is_file():
        return
    kind = find_file_system(folder.resolve(), mounts.read_text(encoding="utf-8", errors="surrogateescape"))
    if kind not in LOCAL:
        raise ConfigError(
            f"reply store in {folder}: {kind or 'its file system'} is not known to be local, and SQLite may lose "
            "replies elsewhere; keep them in PostgreSQL (replies), or put the workspace on a local disk "
            "(--workspace)"
        )


def _unescape(field: str) -> str:
    """Return a mount point as it is: blanks, tabs, line ends and backslashes are written in octal."""
    for code, character in (("\\040", " "), ("\\011", "\t"), ("\\012", "\n"), ("\\134", "\\")):
        field = field.replace(code, character)
    return field
