"""Which file system a folder lies on, and whether a database shared by processes can live there."""

from pathlib import Path

from pipelines.errors import ConfigError

MOUNTS = Path("/proc/self/mountinfo")
"""Linux' list of mounts; where there is none, nothing is known and nothing is refused."""
NETWORKED = frozenset({"nfs", "nfs3", "nfs4", "cifs", "smb3", "smbfs", "ncpfs", "afs", "fuse.sshfs"})
"""File systems over a network that share no memory between hosts and lock by promise: SQLite in WAL mode hangs or
loses rows there (sqlite.org/wal.html, "does not work over a network filesystem")."""


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
    """Refuse a folder on a file system where SQLite's WAL mode cannot work.

    Raises:
        ConfigError: naming the folder and its file system.
    """
    if not mounts.is_file():
        return
    kind = find_file_system(folder.resolve(), mounts.read_text(encoding="utf-8", errors="surrogateescape"))
    if kind in NETWORKED:
        raise ConfigError(
            f"reply store in {folder}: {kind} is a network file system, on which processes cannot share it safely; "
            "put the workspace on a local disk (--workspace)"
        )


def _unescape(field: str) -> str:
    """Return a mount point as it is: blanks, tabs, line ends and backslashes are written in octal."""
    for code, character in (("\\040", " "), ("\\011", "\t"), ("\\012", "\n"), ("\\134", "\\")):
        field = field.replace(code, character)
    return field
