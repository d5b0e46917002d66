"""Ablations: what checks, and solvers under every condition, find on the rows of a release.

Nothing here knows what a run refused: the functions are the checks themselves, called on released rows by the limits
of the whole recipe, and attempts that refuse nothing.
"""

import asyncio
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path

from pipelines.agent.agreement import wilson_interval
from pipelines.agent.attempts import MEASURED, make_measuring_plan
from pipelines.agent.cascade import examine_rollout
from pipelines.agent.judging import UnscoredWatch
from pipelines.checks.endings import list_probes
from pipelines.checks.leakage import check_answer, check_demonyms, check_names, list_type_words
from pipelines.checks.shortcuts import check_earlier_pages, check_path_length, check_retrieval
from pipelines.config.settings import RunConfig
from pipelines.errors import ConfigError
from pipelines.graph.proofs import list_names
from pipelines.graph.query import locate_nodes
from pipelines.run.assembly import Assembly
from pipelines.run.corpora import ensure_corpus
from pipelines.run.loop import RunDocument
from pipelines.run.progress import SilentReporter
from pipelines.run.runner import process_records
from pipelines.run.shards import read_parts
from pipelines.run.workspace import Workspace
from schemas.datasets import Cell, Difficulty, Enhancement, Grounding, ReleaseEntry, Trajectory

CHEAP = ("clause", "text", "image", "image+image-search")
"""Conditions under which no question should be solved: without a tool, by its end alone, by one search by picture."""


@dataclass(frozen=True, slots=True)
class Switch:
    """Something that a recipe does, and how it is left out.

    Attributes:
        name: as the command line has it.
        settings: which leave it out, each as ``section.key=value``.
        measure: the name of the measure that should get worse.
        wanted: whether the measure counts something good.
    """

    name: str
    settings: tuple[str, ...]
    measure: str
    wanted: bool = False


SWITCHES = (
    Switch("anchoring", ("ablations.anchoring=false",), "one link away"),
    Switch("fuzzing", ("ablations.fuzzing=false",), "leaks"),
    Switch("filtering", (f"ablations.filters_off={list(CHEAP)}",), "solved cheaply"),
    *(Switch(f"filter {each}", (f'ablations.filters_off=["{each}"]',), f"solved by {each}") for each in CHEAP),
    Switch("shortcuts", ("rewrites.forbid_shortcuts=false",), "shortcuts"),
    Switch("retrieval", ("groundings.retrieval_rank=0",), "found by one retrieval"),
    Switch("enhancement", ("enhancements.share=0.0",), "degraded", wanted=True),
    Switch("cascade", ("trajectories.checks=[]",), "faulty transcripts"),
    Switch("process judge", ("trajectories.min_process=1.0",), "poor transcripts"),
)
"""What OpenSearch-VL's table 3 leaves out (the first three and enhancement), and each part of it alone."""


@dataclass(frozen=True, slots=True)
class Share:
    """So many of so many."""

    hits: int
    of: int

    @property
    def value(self) -> float:
        """The share; 0.0 of nothing."""
        return self.hits / self.of if self.of else 0.0

    @property
    def interval(self) -> tuple[float, float]:
        """Its 95% Wilson interval."""
        return wilson_interval(self.hits, self.of)

    @classmethod
    def count(cls, found: Sequence[bool]) -> "Share":
        """Return the share of the true ones."""
        return cls(sum(found), len(found))


def measure_released(assembly: Assembly, whole: RunConfig) -> dict[str, Share]:
    """Return each measure of a finished run's releases.

    The rows are held against the limits of the whole recipe.

    Raises:
        ConfigError: if the run is not complete.
        ServiceError: if a solver is away.
    """
    folders = {plan.name: plan.folder for plan in assembly.plan_stages("")}
    entries = list(read_parts(folders["releases"], ReleaseEntry))
    asked, solved = {entry.parent_id for entry in entries}, {entry.trajectory_id for entry in entries}
    questions = [row for row in read_parts(folders["selections"], Enhancement) if row.record_id in asked]
    transcripts = [row for row in read_parts(folders["trajectories"], Trajectory) if row.record_id in solved]
    found = {
        name: Share.count([look(question) for question in questions])
        for name, look in _list_looks(assembly, whole).items()
    }
    faulty = [bool(_examine(assembly, whole, row)) for row in transcripts]
    marks = [row.process.score < whole.trajectories.min_process for row in transcripts if row.process]
    found |= {"faulty transcripts": Share.count(faulty), "poor transcripts": Share.count(marks)}
    return found | dict(_measure_solved(assembly, whole, questions))


def _list_looks(assembly: Assembly, whole: RunConfig) -> dict[str, Callable[[Enhancement], bool]]:
    """Return what is looked for in each question; true where it is found."""
    ground, corpus, rank = assembly.ground, assembly.corpus, whole.groundings.retrieval_rank

    def leaks(row: Enhancement) -> bool:
        names, words = list_names(corpus, row.proof.hidden), list_type_words(row.proof.hidden)
        results = (
            check_names(row.text, names, words),
            check_demonyms(row.text, names, words),
            check_answer(row.text, row.answer, words),
        )
        return not all(result.passed for result in results)

    def is_short(row: Enhancement) -> bool:
        numbers = locate_nodes(corpus, row.proof.nodes)
        results = (
            check_path_length(corpus, numbers, assembly.hub_in_degree),
            check_earlier_pages(corpus, numbers, row.answer),
        )
        return not all(result.passed for result in results)

    def is_retrieved(row: Enhancement) -> bool:
        numbers = locate_nodes(ground.corpus, row.proof.nodes)
        probes = list_probes(numbers, row.text, row.proof)
        return not check_retrieval(corpus, row.text, numbers[-1], rank, probes).passed

    def is_near(row: Enhancement) -> bool:
        anchor, *_, last = locate_nodes(corpus, row.proof.nodes)
        return corpus.graph.find_link(anchor, last) >= 0

    return {
        "leaks": leaks,
        "one link away": is_near,
        "shortcuts": is_short,
        "found by one retrieval": is_retrieved,
        "degraded": lambda row: row.trial is not None,
    }


def _examine(assembly: Assembly, whole: RunConfig, row: Trajectory) -> bool:
    cascade = assembly.acting.make_cascade()
    return bool(examine_rollout(row, None, whole.trajectories, cascade.counter, cascade.fatal_errors).faults)


def _measure_solved(
    assembly: Assembly, whole: RunConfig, questions: Sequence[Enhancement]
) -> Iterator[tuple[str, Share]]:
    """Yield the share of questions that a solver answers, by condition, and in any cheap one.

    Half of the attempts must be right: of many guesses one is right by luck. A question of which the solver gave no
    usable reply is in none of the shares, and counted as not measured.
    """
    stage = replace(
        assembly.build_measuring("grid"),
        plan=make_measuring_plan(),
        settings=whole.difficulty.model_copy(update={"early_stop": False}),
        watch=UnscoredWatch(1.0, len(questions) + 1),
        contest=None,
    )
    asked = [Grounding(**{name: getattr(row, name) for name in Grounding.model_fields}) for row in questions]
    rows, _ = asyncio.run(process_records(stage, asked, whole.runtime.concurrency))
    cells = [row.cells for row in rows.kept if isinstance(row, Difficulty)]
    for condition in MEASURED:
        yield f"solved by {condition}", Share.count([_is_solved(each, (condition,)) for each in cells])
    yield "solved cheaply", Share.count([_is_solved(each, CHEAP) for each in cells])
    yield "not measured", Share(len(questions) - len(cells), len(questions))


def _is_solved(cells: Sequence[Cell], conditions: Collection[str]) -> bool:
    return any(2 * cell.correct >= cell.attempts > 0 for cell in cells if cell.condition in conditions)


@dataclass(frozen=True, slots=True)
class Ablated:
    """One run of a recipe, whole or with something left out, and what was found on its released rows."""

    switch: Switch | None
    """None for the whole recipe."""
    rows: dict[str, int]
    """Released rows by dataset."""
    calls: int
    cost: float
    """Of what this run paid; the stages and replies that it shares with those before cost nothing again."""
    measures: dict[str, Share]

    def compare(self, whole: "Ablated") -> str:
        """Return how much worse the switch's own measure is than that of the whole recipe."""
        if self.switch is None:
            return ""
        before, after = whole.measures[self.switch.measure].value, self.measures[self.switch.measure].value
        worse = before - after if self.switch.wanted else after - before
        low, high = sorted((before, after))
        times = f"{high / low:.1f} times" if low else "to nothing" if before else "from nothing"
        first, second = whole.measures[self.switch.measure].interval, self.measures[self.switch.measure].interval
        overlap = "; the intervals overlap" if first[0] <= second[1] and second[0] <= first[1] else ""
        return f"{worse * 100:+.1f} points worse, {times}{overlap}"

    def as_dict(self) -> dict[str, object]:
        """Return it as one object of ``synth ablate --json``."""
        return {
            "left_out": self.switch.name if self.switch else "",
            "settings": list(self.switch.settings) if self.switch else [],
            "measure": self.switch.measure if self.switch else "",
            "rows": self.rows,
            "calls": self.calls,
            "cost": self.cost,
            "measures": {
                name: {"hits": share.hits, "of": share.of, "share": share.value, "interval": list(share.interval)}
                for name, share in self.measures.items()
            },
        }


def choose_switches(names: Sequence[str]) -> tuple[Switch, ...]:
    """Return the switches of these names, all where none is named.

    Raises:
        ConfigError: if there is no such switch.
    """
    known = {switch.name: switch for switch in SWITCHES}
    if strange := [name for name in names if name not in known]:
        raise ConfigError(f"--only {strange[0]!r}: there are: {', '.join(known)}")
    return tuple(known[name] for name in names) or SWITCHES


def ablate(
    load: Callable[..., RunConfig],
    switches: Sequence[Switch],
    root: Path,
    run: Callable[[RunConfig], RunDocument],
) -> list[Ablated]:
    """Run a recipe whole, then with each thing left out, in one workspace, which ends as the whole recipe leaves it.

    All runs share the corpus, the replies and every stage before the first that is changed, so little is paid twice.

    ``load`` returns the configuration with settings over it, and ``run`` runs one in the workspace.

    Raises:
        ConfigError: if a question of the recipe has no path, which measures are made of.
        SynthError: as a run.
    """
    whole = load()
    if whole.method != "paths" or whole.pools:
        given = f"method = {whole.method!r}" if whole.method != "paths" else f"pool {whole.pools[0].name}"
        raise ConfigError(f"ablate: {given}: only recipes whose questions are all walked paths are measured")
    found = [_measure_run(None, whole, whole, root, run)]
    found += [_measure_run(switch, load(*switch.settings), whole, root, run) for switch in switches]
    run(whole)
    return found


def _measure_run(
    switch: Switch | None, config: RunConfig, whole: RunConfig, root: Path, run: Callable[[RunConfig], RunDocument]
) -> Ablated:
    document = run(config)
    workspace = Workspace(root.resolve())
    corpus, _ = ensure_corpus(config.corpus, workspace, SilentReporter(), config.runtime.workers)
    with closing(Assembly(config, workspace, corpus)) as assembly:
        measures = measure_released(assembly, whole)
    usage = [report.usage for report in document.stages if report.ran]
    return Ablated(
        switch=switch,
        rows={release.dataset: release.rows for release in document.releases},
        calls=sum(each.calls for each in usage),
        cost=sum(each.cost for each in usage),
        measures=measures,
    )
