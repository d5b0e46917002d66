"""How much memory and how many cores this process may have, and what of it databases and indexes take.

The rule, for all of them: DuckDB holds at most half of the memory, and spills the rest to disk where it can; it finds
by itself how many threads quotas leave it. As many segments of a search index are written at once as half of
the memory holds. Neither changes a byte of what is made.
"""

import os
import resource
from collections.abc import Iterator
from pathlib import Path

GIB = 1 << 30
SHARE = 2
"""The part of the memory that one of them may take is one of so many."""
SEGMENT = GIB
"""Bytes that a thread takes which writes a segment of a search index: two segments of text, and the postings of one."""
LEAST = 64 << 20
"""Bytes that DuckDB needs for anything."""


def measure_memory(root: Path = Path("/")) -> int:
    """Return the bytes that this process may have: of the machine, control groups and its address space.

    Args:
        root: of the file system that tells of control groups.
    """
    limit, _ = resource.getrlimit(resource.RLIMIT_AS)
    machine = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    spaces = [limit] if limit != resource.RLIM_INFINITY else []
    return min(machine, *spaces, *(bound for _, bound in list_group_limits(root)))


def count_cores() -> int:
    """Return how many cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def limit_duckdb(root: Path = Path("/")) -> dict[str, str | bool | int | float | list[str]]:
    """Return the settings of a DuckDB connection that bound its memory."""
    return {"memory_limit": f"{max(LEAST, measure_memory(root) // SHARE) >> 20}MiB"}


def count_segments(threads: int, root: Path = Path("/")) -> int:
    """Return how many segments of a search index are written at once, at most so many and at least one."""
    return max(1, min(threads, measure_memory(root) // SHARE // SEGMENT))


def list_group_limits(root: Path = Path("/")) -> Iterator[tuple[Path, int]]:
    """Yield the limits in bytes of this process's control group and those around it, each with the file that says it.

    Args:
        root: of the file system that tells of control groups, of version 1 or 2.
    """
    groups = root / "proc/self/cgroup"
    for line in groups.read_text(encoding="utf-8").splitlines() if groups.is_file() else ():
        _, controllers, name = line.split(":", 2)
        if controllers in ("", "memory"):
            top = root / "sys/fs/cgroup" / controllers
            inner = top / name.lstrip("/")
            for folder in (folder for folder in (inner, *inner.parents) if folder.is_relative_to(top)):
                path = folder / ("memory.limit_in_bytes" if controllers else "memory.max")
                text = path.read_text(encoding="ascii").strip() if path.is_file() else ""
                if text.isdigit():
                    yield path, int(text)
