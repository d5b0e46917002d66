"""Samples: as many questions of each category of knowledge as there are, evenly (MMSearch-R1, section 3.1).

What a taxonomy has too much of is refused here, before a picture is chosen or a solver asked. Questions for a name and
questions for a fact are sampled apart, as the paper samples its two sources. A question about the thing in the picture
alone has nothing to hide: it is handed on as it is.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar

from pipelines.checks.shares import ROUNDING, sample
from pipelines.graph.proofs import make_rewrite
from pipelines.graph.titles import asks_name
from pipelines.ids import digest_value, make_record_id
from pipelines.services.prompting import WithoutModels
from schemas.base import Failure, Record, Rejection
from schemas.datasets import Question, Rewrite


@dataclass(frozen=True, slots=True)
class Samples(WithoutModels):
    """The stage: classified questions in, an even sample of them out; the smallest record ids are kept."""

    kept: float = 0.6
    """Share of the questions of each kind that is kept, at most."""
    spread: float = 1.5
    """Largest share of a category among the kept of a kind, as a multiple of an even one."""
    name: str = "rewrites"
    version: int = 1
    inputs: ClassVar[tuple[type[Record], ...]] = (Question,)
    output: ClassVar[type[Record]] = Rewrite

    def fingerprint(self) -> str:
        return digest_value(["samples", self.kept, self.spread])

    def __call__(self, inputs: Sequence[Iterable[Question]]) -> Iterator[Rewrite | Rejection | Failure]:
        marks = {row.record_id: (asks_name(row.proof), str(row.knowledge)) for row in inputs[0]}
        found = Counter(marks.values())
        quota: dict[tuple[bool, str], int] = {}
        for visual in (True, False):
            counts = {category: count for (kind, category), count in found.items() if kind is visual}
            total = int(self.kept * sum(counts.values()) + ROUNDING)
            quota |= {(visual, category): most for category, most in sample(counts, total, self.spread).items()}
        left = dict(quota)
        chosen = set[str]()
        for record_id in sorted(marks):
            if left[marks[record_id]] > 0:
                left[marks[record_id]] -= 1
                chosen.add(record_id)
        for row in inputs[0]:
            mark = marks[row.record_id]
            if row.record_id in chosen:
                record_id = make_record_id("rewrite", [row.record_id])
                yield make_rewrite(row, row.text, row.proof, record_id=record_id)
                continue
            kind = "names" if mark[0] else "facts"
            detail = f"{quota[mark]} of {found[mark]} questions for {kind} about {mark[1]} are kept"
            yield Rejection(record_id=row.record_id, reason="category-over-share", detail=detail)
