"""The errors of synth, in three kinds that are never mixed.

::

    SynthError
    ├── ConfigError          configuration or input is wrong; nothing was written (exit 2)
    │   └── CorruptInput     an input file is not what it claims to be, or ends too early
    │       └── Damaged      a file that synth wrote is gone or has other bytes
    ├── RecordFailed         this one row cannot be processed; it becomes a failed row
    ├── ServiceError         of a service
    │   ├── RateLimited      wait and repeat; not counted as a failure
    │   ├── BudgetSpent      the run's budget is spent: stop, run again with a larger one (exit 3)
    │   ├── QueryTimeout     no complete reply came: ask for less
    │   └── Unavailable      a service, disk or lock is unavailable; stop, run again to continue (exit 3)
    │       ├── UnusableReplies   a model answers, but with nothing that can be used
    │       └── WorkspaceBusy     another run holds the workspace
    ├── GateNotMet           a verification or quality gate is not met (exit 1)
    └── ConservationError    rows were lost or invented: a defect of synth itself, never caught (exit 4)

A refused row is no error: it is a ``schemas.base.Rejection`` with a reason.
"""

from pathlib import Path

DEFECT = 4
"""Exit code of a defect of synth itself."""


class SynthError(Exception):
    """Root of everything synth raises on purpose."""

    exit_code = 1


class ConfigError(SynthError):
    """Configuration or input is wrong. Raised before anything is written."""

    exit_code = 2


class CorruptInput(ConfigError):
    """An input file is not what it claims to be, or ends before it should."""


class Damaged(CorruptInput):
    """A file that synth wrote is gone or has other bytes than it was written with.

    Args:
        path: the file.
        what: a predicate, such as ``is missing``.
        remedy: what to do about it.
    """

    def __init__(self, path: Path, what: str, remedy: str = "bring it back from a copy") -> None:
        super().__init__(f"{path}: {what}; {remedy}")
        self.path, self.what, self.remedy = path, what, remedy

    def __reduce__(self) -> tuple[type["Damaged"], tuple[Path, str, str]]:
        """Return what makes it again: it travels between processes."""
        return Damaged, (self.path, self.what, self.remedy)


class RecordFailed(SynthError):
    """One record cannot be processed; the runner writes it to the failed rows and goes on.

    Args:
        error: a short class word for counting, such as ``parse-timeout``.
        detail: what happened, for a reader.
    """

    def __init__(self, error: str, detail: str = "") -> None:
        super().__init__(f"{error}: {detail}" if detail else error)
        self.error = error
        self.detail = detail


class ServiceError(SynthError):
    """A service behind a backend failed; the record is not the cause."""

    exit_code = 3


class RateLimited(ServiceError):
    """The service asks to slow down.

    Args:
        message: which request to which service.
        retry_after: seconds to wait before the next request, 0.0 when the service did not say.
    """

    def __init__(self, message: str, retry_after: float = 0.0) -> None:
        super().__init__(message)
        self.retry_after = retry_after


class Unavailable(ServiceError):
    """A service, a disk or a lock is unavailable; run the same command again later."""


class UnusableReplies(Unavailable):
    """Most replies of a model cannot be used: a fault of the service until the opposite is shown."""


class WorkspaceBusy(Unavailable):
    """Another run holds the workspace."""


class BudgetSpent(ServiceError):
    """The run's budget is spent. Requests in flight finish and are recorded; no more are sent.

    Args:
        spent: how much of which limit, such as ``5.02 of 5.00 in money``.
    """

    def __init__(self, spent: str) -> None:
        super().__init__(
            f"the budget of this run is spent: {spent}; run the same command again to continue with the same budget"
        )
        self.spent = spent

    def __reduce__(self) -> tuple[type["BudgetSpent"], tuple[str]]:
        """Return what makes it again: an exception is pickled by its message, which is made here."""
        return type(self), (self.spent,)


class GateNotMet(SynthError):
    """A verification or quality gate was not met."""


class ConservationError(SynthError):
    """Rows in do not equal kept + rejected + failed: a defect of synth itself."""

    exit_code = DEFECT
