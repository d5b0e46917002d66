"""The stage protocol.

A stage is a frozen dataclass that decides rows and nothing else: ``runner`` owns concurrency, ``shards`` owns files
and checks ``rows_in = kept + rejected + failed`` before a shard counts as done.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, ClassVar, Protocol, runtime_checkable

from pipelines.agent.judging import UnscoredWatch
from schemas.base import Failure, Record, Rejection
from schemas.manifest import ModelEntry


class Stage(Protocol):
    """The attributes of every stage."""

    output: ClassVar[type[Record]]

    @property
    def name(self) -> str:
        """The stage's name: the dataset it makes."""

    @property
    def version(self) -> int:
        """Raised when the same input and parameters would give other rows."""

    def fingerprint(self) -> str:
        """Digest of everything that decides the output: parameters, prompt digests, identities of backends."""

    def prompts(self) -> dict[str, str]:
        """Prompt labels to file digests, for the manifest."""

    def models(self) -> tuple[ModelEntry, ...]:
        """Models by role, for the manifest."""


@runtime_checkable
class RecordStage(Stage, Protocol):
    """One record in, records or one rejection out; records do not know of each other."""

    input: ClassVar[type[Record]]

    async def __call__(self, record: Any) -> Sequence[Record] | Rejection:  # noqa: ANN401 - each stage narrows it
        """Process one record.

        Raises:
            RecordFailed: if this record cannot be processed; it becomes a failed row.
            ServiceError: if a backend is away; the shard stops and is resumed by the next run.
        """


@runtime_checkable
class PreparedStage(Protocol):
    """A record stage that does some of its work for a whole shard at once, or decides what a shard decides together."""

    def prepare(self, records: Sequence[Any]) -> None:
        """Get ready for these records, which are processed next."""


@runtime_checkable
class JudgedStage(Protocol):
    """A record stage that stops if too many answers of its run are unscored."""

    @property
    def watch(self) -> UnscoredWatch | None:
        """What counts them; None where none is counted."""


@runtime_checkable
class ExtendedStage(Protocol):
    """A stage that plugins may refuse rows in."""

    @property
    def reasons(self) -> tuple[str, ...]:
        """Their reasons, each as ``plugin:reason``."""


@runtime_checkable
class DatasetStage(Stage, Protocol):
    """The whole dataset in, out of core; for quotas, duplicates and splits."""

    inputs: ClassVar[tuple[type[Record], ...]]

    def __call__(self, inputs: Sequence[Iterable[Any]]) -> Iterator[Record | Rejection | Failure]:
        """Process whole datasets; the output must account for every row of ``inputs[0]``."""


@runtime_checkable
class SourceStage(Stage, Protocol):
    """No dataset in: candidates come from the corpus."""

    def count_candidates(self) -> int:
        """Return how many candidates there are: the stage's ``rows_in``."""

    def __call__(self) -> Iterator[Record | Rejection | Failure]:
        """Yield each candidate exactly once, kept or refused."""


AnyStage = RecordStage | DatasetStage | SourceStage
