"""Target sizes: the strata that are wanted, what the rounds so far made, and what the next round draws.

All of it is a function of the configuration and of sealed stages, so that a run that was killed draws what it would
have drawn, and `synth plan` and `synth prune` know the rounds of a run by reading them.
"""

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import product

import pyarrow.parquet as pq

from pipelines.checks.quotas import Aim, Draw, Quotas, Stratum, find_aim, place_question
from pipelines.config.settings import DIFFICULTIES, Dimension, RunConfig
from pipelines.corpus.store import Corpus
from pipelines.errors import ConfigError
from pipelines.graph.caps import list_marks
from pipelines.run.runner import PlannedStage
from pipelines.run.shards import list_parts, read_parts
from pipelines.run.workspace import StageFolder
from schemas.datasets import Enhancement, Split
from schemas.manifest import Usage

SPLITS: tuple[Split, ...] = ("sft", "rl", "eval")
FIRST = 3
"""Seeds of the first round for each row that is wanted, where no more than ``MOST_FIRST`` are."""
MOST_FIRST = 256
LEAST = 8
"""Fewest seeds drawn for an aim in a round."""
GROWTH, SURE_GROWTH, SURE = 3, 10, 20
"""Seeds of a round, as a multiple of those before, while few rows and from ``SURE`` rows on tell how many it takes."""
MARGIN = 1.1
"""More seeds than the rows that lack are expected to take."""
GIVE_UP = 200
"""Seeds drawn for a stratum without one row, after which no more are."""
DRAWING_SHARE = 0.5
"""Share of a budget for drawing where the teacher is to be paid, and the cost of a row is not known yet."""
SOLVABLE = ("opensearch-vl", "vsearcher")
"""Presets of difficulty that refuse by the number of right attempts."""


def list_strata(config: RunConfig, corpus: Corpus) -> dict[Stratum, int]:
    """Return the rows that are wanted of each stratum; strata of which no row is wanted are left out.

    Raises:
        ConfigError: if a stratum has a domain that the corpus has not.
    """
    domains = pq.read_table(corpus.table("pages"), columns=["domain"])["domain"].unique().to_pylist()
    values = {**config.target_values, "domain": tuple(sorted(filter(None, domains)))}
    wanted: dict[Stratum, int] = {}
    targets = config.targets
    for split in SPLITS:
        every = [(split, *each) for each in product(*(values[dimension] for dimension in targets.by))]
        named = targets.name_strata(split)
        for stratum, rows in named.items():
            if (split, *stratum) not in every:
                raise ConfigError(f"targets.strata.{split} {stratum}: this corpus has {', '.join(values['domain'])}")
            wanted[split, *stratum] = rows
        whole, rest = divmod(targets.rows[split], len(every))
        shares = (whole + (place < rest) for place in range(len(every)))
        wanted |= {each: rows for each, rows in zip(every, shares, strict=True) if rows and not named}
    return wanted


def list_known(config: RunConfig) -> frozenset[Dimension]:
    """Return the dimensions that a seed can be drawn for; of the others what the rounds made says how many it takes."""
    if config.method != "paths":
        return frozenset(["domain"])
    return frozenset(["domain", "hops", *(["answer_type"] if config.paths.guide == "off" else [])])  # type: ignore[list-item]


@dataclass(frozen=True, slots=True)
class RoundCounts:
    """What all rounds so far made."""

    drawn: Counter[Aim]
    """Seeds."""
    kept: Counter[Stratum]
    """Questions that selections keep."""
    answers: Counter[tuple[str, str]]
    """How many questions there are by split and what :func:`list_marks` says."""
    spent: Usage
    """Of all stages up to selections, in all rounds."""


def read_usage(folders: Iterable[tuple[str, StageFolder]]) -> dict[str, Usage]:
    """Return what each stage used in all rounds, in runs that were stopped, too.

    Args:
        folders: of the stages by name, of every round, each once.
    """
    used = defaultdict[str, Usage](Usage)
    for name, folder in folders:
        if (manifest := folder.read_manifest()) is not None:
            used[name] += manifest.stopped + manifest.usage
    return used


def count_round(planned: Sequence[PlannedStage], quotas: Quotas, used: Mapping[str, Usage]) -> RoundCounts:
    """Count the rows of a round that is sealed up to selections.

    ``used`` is what each stage used in all rounds.
    """
    by_name = {plan.name: plan for plan in planned}
    asking = planned[: planned.index(by_name["selections"])]
    answers = Counter[tuple[str, str]]()
    for row in read_parts(by_name["enhancements"].folder, Enhancement):
        if row.proof.nodes:
            marks = list_marks(row.answer.key, row.proof.nodes[-1].page_id, row.proof.answer_relation)
            answers.update((row.split, mark) for mark in marks)
    return RoundCounts(
        Counter(read_aims(by_name["seeds"], quotas).values()),
        count_selected(planned, quotas),
        answers,
        sum((used[plan.name] for plan in asking if plan.name in used), Usage()),
    )


def count_selected(planned: Sequence[PlannedStage], quotas: Quotas) -> Counter[Stratum]:
    """Return how many questions of each stratum selections keep."""
    folder = next(plan.folder for plan in planned if plan.name == "selections")
    return Counter(place_question(row, quotas.by) for row in read_parts(folder, Enhancement))


def read_aims(seeds: PlannedStage, quotas: Quotas) -> dict[str, Aim]:
    """Return what each seed was drawn for, by its id."""
    columns = ["record_id", "split", "domain", "hops", "answer_type"]
    aims = {}
    for path in list_parts(seeds.folder):
        for row in pq.read_table(path, columns=columns).to_pylist():
            domain = row["domain"] if "domain" in quotas.by else ""
            aims[row["record_id"]] = Aim(row["split"], domain, row["hops"], row["answer_type"])
    return aims


def count_asked(quotas: Quotas) -> Counter[Aim]:
    """Return how many seeds all rounds wanted for each aim; of one that got fewer there are no more."""
    asked = Counter[Aim]()
    for draw in (draw for draws in quotas.draws for draw in draws):
        asked[draw.aim] += draw.seeds
    return asked


@dataclass(slots=True)
class TargetPlan:
    """Decides what each round draws, and remembers why a stratum is drawn for no more."""

    config: RunConfig
    wanted: Mapping[Stratum, int]
    closed: dict[Stratum, str] = field(default_factory=dict)

    def begin(self) -> Quotas:
        """Return the quotas of the first round."""
        targets, questions = self.config.targets, dict(self.wanted)
        difficulty = self.config.difficulty
        refuses = difficulty.preset in SOLVABLE
        for stratum, rows in self.wanted.items():
            if stratum[0] == "sft":
                questions[stratum] = math.ceil(rows / self.config.rollouts.wanted)
            if (
                refuses
                and "difficulty" in targets.by
                and stratum[-1 - targets.by[::-1].index("difficulty")] != DIFFICULTIES[0]
            ):
                self.closed[stratum] = "difficulty refuses each question that was answered once"
        needs: dict[Aim, int] = {}
        for stratum, count in questions.items():
            if stratum not in self.closed:
                aim = self.aim(stratum)
                needs[aim] = needs.get(aim, 0) + min(max(FIRST * count, LEAST), MOST_FIRST)
        if any(limit for limit, _ in self._list_limits(Usage())):
            # What a seed takes is not known yet.
            needs = dict.fromkeys(needs, LEAST)
        released = {stratum: count for stratum, count in self.wanted.items() if stratum[0] == "sft"}
        return Quotas(targets.by, (_list_draws(self._limit(needs, 0)),), questions, released, ({},))

    def aim(self, stratum: Stratum) -> Aim:
        """Return what seeds for a stratum are drawn for."""
        return find_aim(stratum, self.config.targets.by, list_known(self.config))

    def draw_more(self, quotas: Quotas, counts: RoundCounts) -> Quotas | None:
        """Return the quotas of the next round; None if every stratum is full, or closed."""
        asked, needs = count_asked(quotas), dict[Aim, int]()
        for stratum, most in quotas.questions.items():
            if counts.kept[stratum] >= most or stratum in self.closed:
                continue
            aim = self.aim(stratum)
            if why := self._find_end(stratum, asked[aim], quotas, counts):
                self.closed[stratum] = why
            else:
                more = _expect(most - counts.kept[stratum], counts.kept[stratum], counts.drawn[aim])
                needs[aim] = max(needs.get(aim, 0), more)
        drawn = counts.drawn.total()
        needs = self._limit(self._afford(needs, counts), drawn)
        for stratum, most in quotas.questions.items():
            if counts.kept[stratum] < most and stratum not in self.closed and not needs.get(self.aim(stratum)):
                self.closed[stratum] = f"the budget or seeds.limit ends after {drawn:,} seeds"
        if not any(needs.values()):
            return None
        return replace(quotas, draws=(*quotas.draws, _list_draws(needs)), used=(*quotas.used, counts.answers))

    def ask_more(self, quotas: Quotas, counts: RoundCounts, rows: Mapping[Stratum, int]) -> Quotas | None:
        """Return quotas with more questions for strata of sft whose rollouts left too few rows; None if none has."""
        more: dict[Stratum, int] = {}
        for stratum, wanted in quotas.rows.items():
            made, asked = rows.get(stratum, 0), quotas.questions[stratum]
            # Where questions are missing already, there are no more.
            if made >= wanted or counts.kept[stratum] < asked:
                continue
            if not made and asked >= GIVE_UP:
                self.closed[stratum] = f"no trajectory of {asked:,} questions is accepted"
                continue
            more[stratum] = max(asked + 1, min(2 * asked, math.ceil(asked * wanted / made) if made else 2 * asked))
        return replace(quotas, questions={**quotas.questions, **more}) if more else None

    def _find_end(self, stratum: Stratum, asked: int, quotas: Quotas, counts: RoundCounts) -> str:
        """Return why no more seeds are drawn for a stratum, empty if some are."""
        drawn, kept = counts.drawn[self.aim(stratum)], counts.kept[stratum]
        if drawn < asked:
            return f"the world has no more candidates: all {drawn:,} are drawn"
        if not kept and drawn >= GIVE_UP:
            return f"none of {drawn:,} seeds led to a row"
        return "targets.rounds is reached" if len(quotas.draws) >= self.config.targets.rounds else ""

    def _limit(self, needs: Mapping[Aim, int], drawn: int) -> dict[Aim, int]:
        """Return the needs within what ``seeds.limit`` leaves."""
        limit = self.config.seeds.limit
        return _scale(needs, max(limit - drawn, 0)) if limit else dict(needs)

    def _afford(self, needs: Mapping[Aim, int], counts: RoundCounts) -> dict[Aim, int]:
        """Return the needs within what the budget leaves, at the pace of the rounds before."""
        limits, drawn = self._list_limits(counts.spent), counts.drawn.total()
        left = min((drawn * (limit / used - 1.0) for limit, used in limits if limit and used), default=math.inf)
        return dict(needs) if left >= sum(needs.values()) else _scale(needs, math.floor(max(left, 0.0)))

    def _list_limits(self, spent: Usage) -> tuple[tuple[float, float], ...]:
        """Return each limit of drawing, 0 for none, with what is used of it."""
        budget = self.config.budget
        share = DRAWING_SHARE if any(stratum[0] == "sft" for stratum in self.wanted) else 1.0
        return (
            (share * budget.get("money", 0), spent.cost),
            (share * budget.get("tokens", 0), spent.tokens_in + spent.tokens_out),
            (share * budget.get("gpu_hours", 0), spent.gpu_seconds / 3600.0),
        )


def _expect(lacking: int, kept: int, drawn: int) -> int:
    """Return how many more seeds the rows that lack are expected to take, not many more than are known to give some."""
    if not kept:
        return max(drawn, LEAST)
    growth = SURE_GROWTH if kept >= SURE else GROWTH
    return max(min(math.ceil(MARGIN * lacking * drawn / kept), growth * drawn), LEAST)


def _scale(needs: Mapping[Aim, int], most: int) -> dict[Aim, int]:
    """Return as many seeds as may be drawn, by what each aim needs; the largest remainders are rounded up."""
    whole = sum(needs.values())
    if whole <= most:
        return dict(needs)
    scaled = {aim: seeds * most // whole for aim, seeds in needs.items()}
    order = sorted(needs, key=lambda aim: (-(needs[aim] * most % whole), aim))
    return scaled | {aim: scaled[aim] + 1 for aim in order[: most - sum(scaled.values())]}


def _list_draws(needs: Mapping[Aim, int]) -> tuple[Draw, ...]:
    """Return the draws of a round: the longest paths, which fewest candidates have, choose first."""
    return tuple(Draw(aim, needs[aim]) for aim in sorted(needs, key=lambda aim: (-aim.hops, aim)) if needs[aim])


@dataclass(frozen=True, slots=True)
class TargetRow:
    """One stratum of a run: what was wanted, and what it took."""

    stratum: str
    wanted: int
    accepted: int
    """Rows that are released; before the teacher is asked, questions."""
    drawn: int
    """Seeds for it and for the strata that differ from it in difficulty alone."""
    state: str
    """``full``, ``open``, or why it cannot be filled."""
