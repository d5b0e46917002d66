"""Rounds of drawing until target sizes are met: each runs the stages up to selections, and counts what they keep.

A round is a whole run with more seeds than the one before. For the rows of that one all replies are recorded, and the
stages of the last round look as if all seeds had been drawn at once.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Self

from pipelines.checks.quotas import Aim, Quotas, Stratum, name_stratum, place_question
from pipelines.run.assembly import Assembly
from pipelines.run.quotas import (
    TargetPlan,
    TargetRow,
    count_asked,
    count_round,
    count_selected,
    list_strata,
    read_aims,
    read_usage,
)
from pipelines.run.runner import PlannedStage
from pipelines.run.shards import read_parts
from schemas.datasets import Enhancement, ReleaseEntry
from schemas.manifest import Usage

RunRound = Callable[[Sequence[PlannedStage]], bool]
"""Makes what is missing of a round's stages; says whether all are sealed."""


@dataclass(slots=True)
class Filling:
    """The rounds of one run."""

    assembly: Assembly
    wanted: Mapping[Stratum, int]
    plan: TargetPlan
    quotas: Quotas
    """Of the last round that began."""
    planned: list[PlannedStage] = field(default_factory=list)
    """Its stages."""
    keys: list[tuple[str, str]] = field(default_factory=list)
    """Name and key of every stage of every round."""

    @classmethod
    def of(cls, assembly: Assembly) -> Self:
        """Return the rounds of a run before the first; the assembly plans for that one."""
        wanted = list_strata(assembly.config, assembly.corpus)
        plan = TargetPlan(assembly.config, wanted)
        filling = cls(assembly, wanted, plan, plan.begin())
        assembly.take_quotas(filling.quotas)
        return filling

    def settle(self, run: RunRound, teach: bool = True) -> None:
        """Go through the rounds until no seed is left to draw, or a round cannot be made.

        Args:
            run: called with the stages up to selections, and with all where trajectories are to be counted.
            teach: whether they are.
        """
        following: Quotas | None = self.quotas
        while following is not None:
            quotas = following
            self._begin(quotas)
            last = [plan.name for plan in self.planned].index("selections")
            if not run(self.planned[: last + 1]):
                return
            counts = count_round(self.planned, quotas, self._read_usage())
            following = self.plan.draw_more(quotas, counts)
            if following is None and quotas.rows and teach:
                if not run(self.planned):
                    return
                following = self.plan.ask_more(quotas, counts, count_rows(self.planned, quotas))

    def _begin(self, quotas: Quotas) -> None:
        self.quotas = quotas
        self.assembly.take_quotas(quotas)
        self.planned = self.assembly.plan_stages()
        self.keys += [(plan.name, plan.key) for plan in self.planned]

    def describe_round(self) -> str:
        """Return one line on the round that begins."""
        draws = self.quotas.draws[-1]
        return (
            f"round {len(self.quotas.draws)}: {sum(draw.seeds for draw in draws):,} seeds for {len(draws):,} of "
            f"{len(self.wanted):,} strata"
        )

    def find_short(self) -> Iterator[str]:
        """Yield what the seeds of a round already say of strata that cannot be filled, before a model is asked."""
        drawn = Counter(read_aims(self.planned[0], self.quotas).values())
        for stratum, rows in self.wanted.items():
            aim, name = self.plan.aim(stratum), name_stratum(stratum)
            if why := self.plan.closed.get(stratum):
                yield f"{name}: cannot be filled: {why}"
            elif drawn[aim] < min(count_asked(self.quotas)[aim], self.quotas.questions[stratum]):
                yield f"{name}: cannot be filled: {rows:,} rows wanted, {drawn[aim]:,} candidates in the world"

    def sum_up(self) -> tuple[TargetRow, ...]:
        """Return each stratum with what was made of it so far."""
        quotas = self.quotas
        drawn = Counter(read_aims(self.planned[0], quotas).values()) if self._is_sealed("seeds") else Counter[Aim]()
        counts = count_selected(self.planned, quotas) if self._is_sealed("selections") else Counter[Stratum]()
        rows = count_rows(self.planned, quotas) if self._is_sealed("releases") else counts
        found = []
        for stratum, wanted in self.wanted.items():
            aim, made = self.plan.aim(stratum), rows[stratum]
            state = "full" if made >= wanted else self.plan.closed.get(stratum, "open")
            found.append(TargetRow(name_stratum(stratum), wanted, made, drawn[aim], state))
        return tuple(found)

    def _read_usage(self) -> dict[str, Usage]:
        """Return what each stage used in all rounds so far."""
        workspace = self.assembly.workspace
        return read_usage((name, workspace.stage(name, key)) for name, key in dict.fromkeys(self.keys))

    def _is_sealed(self, name: str) -> bool:
        return any(plan.name == name and plan.folder.read_manifest() is not None for plan in self.planned)


def count_rows(planned: Sequence[PlannedStage], quotas: Quotas) -> Counter[Stratum]:
    """Return how many rows of each stratum are released: of sft trajectories, of the others questions."""
    by_name = {plan.name: plan for plan in planned}
    questions = read_parts(by_name["selections"].folder, Enhancement)
    strata = {row.record_id: place_question(row, quotas.by) for row in questions}
    counts = Counter[Stratum]()
    for entry in read_parts(by_name["releases"].folder, ReleaseEntry):
        stratum = strata[entry.parent_id]
        # A question of sft or rl is a row of vqa, too.
        if (entry.dataset if entry.dataset in ("sft", "rl") else "eval") == stratum[0]:
            counts[stratum] += 1
    return counts
