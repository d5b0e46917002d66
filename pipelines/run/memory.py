"""Whether a run fits into the memory that this process may have: libraries that get none end it without a word.

A limit of the address space (``ulimit -v``) also counts what threads only reserve, most of it never used: how much that
is can be said beforehand. How much a run uses depends on its data, so a control group is only warned of.
"""

import resource
from collections.abc import Iterator
from pathlib import Path

from pipelines.errors import ConfigError
from pipelines.memory import GIB, count_cores, list_group_limits

ADDRESSES, ADDRESSES_A_CORE = 3 * GIB, GIB // 4
"""Address space that a run reserves; the demo was measured to reserve 2.8 GiB on two cores."""
RESIDENT = GIB // 2
"""Memory that a run of the demo uses with its children; a larger corpus takes more."""


def check_address_space() -> None:
    """Check that a run fits into the address space that this process may have.

    Raises:
        ConfigError: naming the limit, what a run needs, and what to do.
    """
    limit, _ = resource.getrlimit(resource.RLIMIT_AS)
    # Libraries start a thread for each core that this process may use.
    needed = ADDRESSES + ADDRESSES_A_CORE * count_cores()
    if limit != resource.RLIM_INFINITY and limit < needed:
        raise ConfigError(_describe("the address space (ulimit -v)", limit, needed, "ulimit -v unlimited"))


def list_tight_groups(root: Path = Path("/")) -> Iterator[str]:
    """Yield a warning for each control group that has less memory than the demo uses.

    Args:
        root: of the file system that tells of control groups.
    """
    for path, limit in list_group_limits(root):
        if limit < RESIDENT:
            yield _describe(f"the control group ({path})", limit, RESIDENT, "give the container or job more memory")


def _describe(name: str, limit: int, needed: int, remedy: str) -> str:
    return f"memory: {name} is limited to {limit / GIB:.1f} GiB, and a run needs {needed / GIB:.1f} GiB; {remedy}"
