"""Where what tests share is made: once a session, or once for all sessions that are told one folder."""

import os
from pathlib import Path


def find_shared(base: Path) -> Path:
    """Return the folder of what the workers of a session share; of CI's suites, all do.

    Args:
        base: the session's base temp folder. Under xdist each worker has its own in the session's; alone, its parent is
            shared with other sessions.
    """
    if told := os.environ.get("SYNTH_TESTS_SHARED"):
        return Path(told)
    return base.parent if base.name.startswith("popen-") else base
