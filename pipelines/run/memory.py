"""How much memory this process may have, and whether a run fits: libraries that get none end it without a word.

A limit of the address space (``ulimit -v``) also counts what threads only reserve, most of it never used.
"""

import os
import resource
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from pipelines.errors import ConfigError

GIB = 1 << 30
ADDRESSES, ADDRESSES_A_CORE = 3 * GIB, GIB // 4
"""Address space that a run reserves; the demo was measured to reserve 2.8 GiB on two cores."""
RESIDENT = GIB
"""Memory that a run of the demo uses with its children; a corpus that is built takes more."""


@dataclass(frozen=True, slots=True)
class MemoryLimit:
    """A limit of this process, and what a run needs of it, in bytes."""

    name: str
    limit: int
    needed: int
    remedy: str


def list_limits(root: Path = Path("/")) -> Iterator[MemoryLimit]:
    """Yield the limits there are.

    Args:
        root: of the file system that tells of control groups.
    """
    addresses, _ = resource.getrlimit(resource.RLIMIT_AS)
    if addresses != resource.RLIM_INFINITY:
        needed = ADDRESSES + ADDRESSES_A_CORE * (os.cpu_count() or 1)
        yield MemoryLimit("the address space (ulimit -v)", addresses, needed, "ulimit -v unlimited")
    for path in _list_group_files(root):
        text = path.read_text(encoding="ascii").strip() if path.is_file() else ""
        if text.isdigit():
            yield MemoryLimit(
                f"the control group ({path})", int(text), RESIDENT, "give the container or job more memory"
            )


def _list_group_files(root: Path) -> Iterator[Path]:
    """Yield the files that may limit this process: of its group and those around it, of both versions of cgroups."""
    groups = root / "proc/self/cgroup"
    for line in groups.read_text(encoding="utf-8").splitlines() if groups.is_file() else ():
        _, controllers, name = line.split(":", 2)
        if controllers in ("", "memory"):
            top = root / "sys/fs/cgroup" / controllers
            file = "memory.limit_in_bytes" if controllers else "memory.max"
            inner = top / name.lstrip("/")
            yield from (folder / file for folder in (inner, *inner.parents) if folder.is_relative_to(top))


def check_memory(root: Path = Path("/")) -> None:
    """Check that a run fits into the memory that this process may have.

    Raises:
        ConfigError: naming the limit, what a run needs, and what to do.
    """
    for found in list_limits(root):
        if found.limit < found.needed:
            raise ConfigError(
                f"memory: {found.name} is limited to {found.limit / GIB:.1f} GB, and a run needs "
                f"{found.needed / GIB:.1f} GB; {found.remedy}"
            )
