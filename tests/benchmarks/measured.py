"""A row of the benchmark table, and what the benchmarks share."""

import resource
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Measured:
    """One number of the table."""

    what: str
    value: str
    budget: str = ""


def read_peak() -> float:
    """Return this process's peak megabytes; ``getrusage`` would give its parent's where that was larger."""
    status = Path("/proc/self/status")
    if status.is_file():
        return int(status.read_text().partition("VmHWM:")[2].split()[0]) / 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
