"""Mixes: questions that need no search and questions that need one, in the shares of the release (MMSearch-R1, 3.1).

The mix is decided here, once labels are known and before a teacher is paid. Releases hold it again: what they refuse
for other reasons may break it.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar

from pipelines.checks.balance import Needed, refuse_mix
from pipelines.errors import GateNotMet
from pipelines.ids import digest_value
from schemas.base import Failure, Record, Rejection
from schemas.datasets import Difficulty
from schemas.manifest import ModelEntry


@dataclass(frozen=True, slots=True)
class Mixes:
    """The stage: labelled questions in, those of the mix out; the smallest record ids are kept."""

    bounds: tuple[float, float]
    """Least and largest share of a split's questions that need no search."""
    name: str = "mixes"
    version: int = 1
    inputs: ClassVar[tuple[type[Record], ...]] = (Difficulty,)
    output: ClassVar[type[Record]] = Difficulty

    def fingerprint(self) -> str:
        """Digest of the bounds."""
        return digest_value(list(self.bounds))

    def prompts(self) -> dict[str, str]:
        """No prompt: nothing here asks a model."""
        return {}

    def models(self) -> tuple[ModelEntry, ...]:
        """No model."""
        return ()

    def __call__(self, inputs: Sequence[Iterable[Difficulty]]) -> Iterator[Difficulty | Rejection | Failure]:
        """Yield each question, kept or refused, in the order in which they came in.

        Raises:
            GateNotMet: if no mix within the bounds can be made of any split.
        """
        rows = [Needed(row.record_id, row.split, row.search_need) for row in inputs[0]]
        refused = refuse_mix(sorted(rows, key=lambda row: row.record_id), self.bounds)
        if rows and len(refused) == len(rows):
            first = refused[min(refused)]
            raise GateNotMet(f"releases.search_free: no split can meet it; {first.detail}")
        for row in inputs[0]:
            yield refused.get(row.record_id, row)
