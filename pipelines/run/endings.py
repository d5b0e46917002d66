"""How a run may end: every expected failure as an error of ours, whatever raised it; what is left is a defect."""

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager

from pipelines.errors import Unavailable
from pipelines.files import explain_os_error


@contextmanager
def naming_endings() -> Iterator[None]:
    """Raise the failures of disk, memory and store, and interrupts, as the errors of DESIGN section 4.

    Raises:
        SynthError: which says by its exit code how a command ends, and by its words why.
    """
    try:
        yield
    except OSError as error:
        if error.errno is None:
            raise
        raise explain_os_error(error, "synth") from error
    except sqlite3.OperationalError as error:
        raise Unavailable(f"synth: {error}; free space and run the same command again") from error
    except MemoryError as error:
        detail = "out of memory; allow more, or a smaller runtime.concurrency, and run it again"
        raise Unavailable(f"synth: {detail}") from error
    except KeyboardInterrupt as error:
        raise Unavailable("synth: interrupted; the same command goes on from here") from error
