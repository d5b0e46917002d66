"""Clean questions to plant defects in: what the pipeline itself accepts on small toy worlds, by both recipes."""

import shutil
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from random import Random

from pipelines.assembly import Assembly
from pipelines.bench.ranking import is_far
from pipelines.config import RunConfig, make_config, read_recipe
from pipelines.corpus.build import build_corpus
from pipelines.corpus.store import Corpus
from pipelines.graph.ground import Ground
from pipelines.graph.query import locate_nodes
from pipelines.inputs import ensure_corpus, find_dump
from pipelines.progress import SilentReporter
from pipelines.runs import StageReport, run_stage, select_stages
from pipelines.shards import read_parts
from pipelines.workspace import Workspace
from pipelines.world.config import WorldConfig
from pipelines.world.generate import write_world
from schemas.groundings import Grounding


@dataclass(frozen=True, slots=True)
class PoolSize:
    """How large the worlds are, and how many seeds each recipe gets in one."""

    entities: int
    seeds: Mapping[str, int]
    passes: int = 1
    """Times that injection, which accepts few, asks each seed: every pass draws other facts and other chains."""


LARGE = PoolSize(450, {"paths": 200, "injection": 400}, passes=5)
SMALL = PoolSize(300, {"paths": 25, "injection": 130}, passes=2)
LAST = "groundings"
METHODS = ("paths", "injection")
SETTINGS = (
    "seeds.small_corpus.min_in_degree=1",
    "paths.per_seed=2",
    "rewrites.min_alone_first=2",
    "rewrites.min_alone=2",
    "groundings.min_answers=2",
    "injections.rounds=[1, 2, 3]",
    "injections.weights=[0.4, 0.4, 0.2]",
    "questions.max_answer_share=0.5",
    "runtime.workers=1",
)
"""Small worlds: fewer entities and answers than the recipe demands of a large one, all else as shipped."""
TRUSTING = ('questions.agreement="uncontradicted"', "rewrites.near_misses=0")
"""What is not known counts as right: no sentence need confirm an answer, and infoboxes are taken to be complete."""
Reports = tuple[tuple[StageReport, ...], ...]
"""Funnel by pass."""


@dataclass(frozen=True, eq=False)
class Pool:
    """A small world and the questions that the pipeline accepts in it."""

    missing: float
    world: Path
    corpus: Corpus
    questions: tuple[Grounding, ...]
    """Of both recipes, those of the path recipe first."""
    reports: Mapping[str, Reports]
    """Funnels by method."""
    config: WorldConfig
    root: Path
    size: PoolSize
    first: tuple[Grounding, ...]
    """Questions of the first pass of each recipe."""

    @cached_property
    def ground(self) -> Ground:
        """The world's corpus with what checks count by."""
        return Ground(self.corpus)

    @cached_property
    def later(self) -> Corpus:
        """The same world a year on."""
        folder = self.root / "later"
        write_world(folder, self.config, later=True)
        dump = next(folder.glob("*-pages-articles-multistream.xml.bz2"))
        build_corpus(dump, self.root / "later-corpus" / "later")
        return Corpus.open(self.root / "later-corpus" / "later")

    def assemble(self, *settings: str) -> Assembly:
        """Return the parts of a run over the pool's corpus, with other settings."""
        config = make_config(read_recipe("demo"), [*_list_settings(self.config), *settings])
        return Assembly(config, Workspace(self.root / "workspace"), self.corpus)

    @cached_property
    def trusted(self) -> tuple[Grounding, ...]:
        """What the first pass of each recipe accepts of the same seeds where UNKNOWN refuses nothing."""
        workspace, found = Workspace(self.root / "workspace"), list[Grounding]()
        for method in METHODS:
            config = _configure(method, self.config, self.size, self.config.seed, TRUSTING)
            found += _run(config, Assembly(config, workspace, self.corpus))[0]
        return tuple(found)

    def find_method(self, question: Grounding) -> str:
        """Return the recipe that made a question: only the path recipe leaves the answer node without a descriptor."""
        return METHODS[bool(question.proof.descriptors[-1].strip())]

    @cached_property
    def steady(self) -> tuple[Grounding, ...]:
        """Questions whose answer a text search is far from finding, by the bench's own ranking.

        One at the edge is no clean twin: any page more or less moves it over.
        """
        return tuple(question for question in self.questions if self.is_hidden(question, question.text))

    def is_hidden(self, question: Grounding, text: str) -> bool:
        """Say whether a wording of a question is far from finding the page of its answer."""
        (number,) = locate_nodes(self.corpus, question.proof.nodes[-1:])
        rank = question.proof.thresholds.retrieval_rank
        return is_far(self.corpus, text, number, self.corpus.text(number), rank)

    def draw(self, rng: Random) -> Grounding:
        """Return one of the steady questions."""
        return rng.choice(self.steady)


@contextmanager
def open_pools(seed: int, missing: tuple[float, ...], size: PoolSize = LARGE) -> Iterator[tuple[Pool, ...]]:
    """Give a pool for each missing rate; what they keep on disk goes when they are no longer needed."""
    root = Path(tempfile.mkdtemp(prefix="synth-bench-"))
    pools: list[Pool] = []
    try:
        for number, rate in enumerate(missing):
            pools.append(make_pool(root / str(number), seed, rate, size))
        yield tuple(pools)
    finally:
        for pool in pools:
            pool.corpus.close()
        shutil.rmtree(root, ignore_errors=True)


def make_pool(root: Path, seed: int, missing: float, size: PoolSize = LARGE) -> Pool:
    """Generate a world under ``root``, run both recipes over it, and collect what they accept."""
    world, workspace = WorldConfig(size.entities, seed, missing), Workspace(root / "workspace")
    config = _configure(METHODS[0], world, size, seed)
    corpus, _ = ensure_corpus(config.corpus, workspace, SilentReporter(), 1)
    questions: list[Grounding] = []
    first: list[Grounding] = []
    reports: dict[str, Reports] = {}
    for method in METHODS:
        passes = []
        for number in range(size.passes if method == "injection" else 1):
            own = _configure(method, world, size, seed + number)
            passes.append(_run(own, Assembly(own, workspace, corpus)))
        first += passes[0][0]
        questions += {row.record_id: row for found, _ in passes for row in found}.values()
        reports[method] = tuple(funnel for _, funnel in passes)
    folder = find_dump(config.corpus, workspace, SilentReporter()).parent
    return Pool(missing, folder, corpus, tuple(questions), reports, world, root, size, tuple(first))


def _configure(method: str, world: WorldConfig, size: PoolSize, seed: int, settings: Sequence[str] = ()) -> RunConfig:
    limits = (f"seeds.limit={size.seeds[method]}", f'method="{method}"', f"seed={seed}")
    return make_config(read_recipe("demo"), [*_list_settings(world), *limits, *settings])


def _run(config: RunConfig, assembly: Assembly) -> tuple[list[Grounding], tuple[StageReport, ...]]:
    """Run a recipe up to its finished questions, which come by record id, and return its funnel too."""
    chosen, runtime = select_stages(assembly.plan_stages(), LAST, ()), config.runtime
    reports = tuple(
        run_stage(plan, assembly.corpus_entry, runtime.shard_rows, runtime.concurrency, SilentReporter())
        for plan in chosen
    )
    return sorted(read_parts(chosen[-1].folder, Grounding), key=lambda row: row.record_id), reports


def _list_settings(world: WorldConfig) -> list[str]:
    """Return the settings of a run over a generated world."""
    generated = {"entities": world.entities, "seed": world.seed, "missing": world.missing}
    return [*(f"corpus.generate.{key}={value}" for key, value in generated.items()), f"seed={world.seed}", *SETTINGS]
