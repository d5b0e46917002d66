"""The commands of the CLI as functions that take values and return values."""

import asyncio
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from rich.table import Table

from pipelines.config.loading import (
    explain_missing,
    make_config,
    read_layers,
)
from pipelines.config.settings import PluginsConfig, RunConfig
from pipelines.corpus.store import Corpus
from pipelines.errors import ConfigError, GateNotMet, ServiceError, SynthError
from pipelines.ids import digest_file
from pipelines.release.manifest import read_release_manifest
from pipelines.run.assembly import make_evaluator, make_page_reader
from pipelines.run.executors import make_executor
from pipelines.run.loop import RunDocument, RunRequest, run_request
from pipelines.run.models import Roles
from pipelines.run.progress import Reporter, following, make_reporter
from pipelines.run.workspace import LATEST, Workspace, pick_releases, read_names
from pipelines.services.clients.serving import owned_servers

if TYPE_CHECKING:
    from pipelines.cli.plan import RunEstimate
    from pipelines.release.verify import VerifyReport

NO_PLUGINS = PluginsConfig()


def load_config(recipe: str, paths: Sequence[Path] | None, settings: Sequence[str], last: str = "") -> RunConfig:
    """Return the configuration of a recipe with files over it and settings applied.

    Args:
        recipe: name of a shipped recipe; empty for the one that a file names, demo where there is no file.
        paths: TOML files, the last one uppermost.
        settings: values as ``section.key=value``.
        last: stage after which nothing is run, so that what later ones need may be missing; empty for all.

    Raises:
        ConfigError: if a name, a key or a value is wrong.
    """
    return make_config(read_layers(recipe or ("" if paths else "demo"), paths or ()), settings, last)


def run_recipe(config: RunConfig, root: Path, until: str, only: Sequence[str]) -> RunDocument:
    """Run the missing parts of a recipe in a workspace, and say on stderr how far it is; see :func:`run_request`."""
    return run_here(RunRequest(config, root, until, tuple(only)))


def run_here(request: RunRequest) -> RunDocument:
    """Carry a request out on this machine, and say on stderr how far it is; see :func:`run_request`."""
    return run_request(request, make_reporter(), make_executor(request.config))


def render_run(document: RunDocument) -> Table:
    """Return the funnel of a run as a table."""
    table = Table(title=f"{document.recipe}: rows in = kept + rejected + failed")
    table.add_column("stage")
    paid = any(report.usage.cost or report.usage.gpu_seconds for report in document.stages)
    shown = ["in", "kept", "rejected", "failed", "out", "seconds", "calls", "recorded"]
    for name in [*shown, *(["tokens", "GPU s", "cost"] if paid else [])]:
        table.add_column(name, justify="right")
    for report in document.stages:
        numbers = [report.rows_in, report.kept, sum(report.rejected.values()), report.failed, report.rows_out]
        seconds = f"{report.seconds:.1f}" if report.ran else "-"
        used = report.usage
        usage = [f"{used.calls:,}", f"{used.cached_calls:,}"]
        if paid:
            usage += [f"{used.tokens_in + used.tokens_out:,}", f"{used.gpu_seconds:,.1f}", f"{used.cost:,.4f}"]
        table.add_row(report.stage, *(f"{number:,}" for number in numbers), seconds, *usage)
    return table


def plan_by_sample(config: RunConfig, root: Path, seeds: int) -> "tuple[RunEstimate, SynthError | None]":
    """Run so many seeds in the workspace, where it pays for nothing twice, and estimate the whole by them.

    Returns:
        The estimate, and the error that ended the sample early: it is measured as far as it came.

    Raises:
        ConfigError: as :func:`run_recipe`.
        Unavailable: if the workspace is held by another run.
    """
    from pipelines.cli.plan import estimate_run, make_sample_config, measure_sample

    sample = make_sample_config(config, seeds)
    ended = run_sample(sample, root, "trajectories")
    return replace(estimate_run(config, root), sample=measure_sample(sample, root)), ended


def run_sample(sample: RunConfig, root: Path, until: str) -> SynthError | None:
    """Run a sample up to a stage; no later command takes it for the last run.

    Returns:
        The error that ended it early: a service is away, or a gate is not met by so few rows.

    Raises:
        ConfigError: as :func:`run_recipe`.
        Unavailable: if the workspace is held by another run.
    """
    from pipelines.run.views import write_catalogue

    workspace = Workspace(root.resolve())
    before = read_names(workspace.root / LATEST)
    ended: SynthError | None = None
    try:
        run_recipe(sample, root, until, [])
    except (ServiceError, GateNotMet) as error:
        ended = error
    if before and not isinstance(ended, ServiceError):
        # The sample is no run that reports and views should speak of; one that a service ended has noted nothing.
        workspace.note_latest(before)
        write_catalogue(workspace.root)
    return ended


@dataclass(frozen=True, slots=True)
class ReadingChoice:
    """Which model reads released questions again, and how many of each release (0 for all)."""

    config: RunConfig
    role: str
    sample: int = 0


def compare_releases(
    reports: "Sequence[VerifyReport]", release: Path | None, root: Path, apart_from: Sequence[Path]
) -> "list[VerifyReport]":
    """Return reports of releases with what each shares with others, or with files of benchmarks, as its problems.

    Raises:
        ConfigError: if one of the others is neither a release nor a file of questions.
    """
    from pipelines.checks.benchmarks import Benchmarks, probe_benchmarks
    from pipelines.config.settings import BenchmarkConfig
    from pipelines.release.making import find_benchmarked, find_overlaps, read_apart
    from pipelines.release.verify import Problem

    folders = [release] if release else list_last_releases(Workspace(root.resolve()))
    files = [path for path in apart_from if path.is_file()]
    named = [f"{number}-{re.sub(r'[^A-Za-z0-9.]+', '-', path.name)[-48:]}" for number, path in enumerate(files, 1)]
    benchmarks = tuple(BenchmarkConfig(name=name, path=(str(path),)) for name, path in zip(named, files, strict=True))
    probe_benchmarks(benchmarks)
    opened = Benchmarks(benchmarks, digest_file)
    apart, compared = read_apart(path for path in apart_from if path not in files), []
    for report, folder in zip(reports, folders, strict=True):
        shared = [Problem(row, f"shared: {what} is in another release") for row, what in find_overlaps(folder, apart)]
        shared += [Problem(row, f"shared: {what}") for row, what in find_benchmarked(folder, opened)]
        rows = len({problem.where for problem in shared})
        problems = (*report.problems, *shared)
        compared.append(replace(report, problems=problems, verified=max(0, report.verified - rows)))
    return compared


def check_root(report: "VerifyReport", wanted: str) -> "VerifyReport":
    """Return a report that also holds the release to the sha256 of its manifest; empty for any."""
    from pipelines.release.manifest import MANIFEST
    from pipelines.release.verify import Problem

    if not wanted or report.root == wanted:
        return report
    problem = Problem(MANIFEST, f"root: its sha256 is {report.root}, wanted is {wanted}")
    return replace(report, problems=(problem, *report.problems))


def verify_releases(  # noqa: PLR0913 - what is verified, by what, and which model reads again
    release: Path | None,
    corpus: Path | None,
    dump: Path | None,
    root: Path,
    reporter: Reporter,
    reading: ReadingChoice | None = None,
    plugins: PluginsConfig = NO_PLUGINS,
) -> "list[VerifyReport]":
    """Verify one release, or those of the last run.

    Args:
        release: a release folder; None for all that the last run in the workspace published.
        corpus: corpus folder to verify by; None for the one each release names, in its own workspace or in ``root``.
        dump: rebuild the corpus from this dump and verify by it.
        root: the workspace; replies of a model that reads are recorded in it.
        reporter: told how far it is.
        reading: a model that reads the questions again; None for no model at all.
        plugins: checks that may be asked again, with their settings; none is loaded that only a release names.

    Raises:
        ConfigError: if there is no release, no corpus to verify by, or no model in the role that is to read.
        Unavailable: if that model is away.
    """
    from pipelines.corpus.build import build_corpus
    from pipelines.graph.query import Indexes
    from pipelines.release.verify import read_anew, verify_release

    workspace = Workspace(root.resolve())
    folders = [release] if release else list_last_releases(workspace)
    with ExitStack() as open_until_done:
        open_until_done.enter_context(following(reporter))
        choose: Callable[[Path], Path] = lambda folder: corpus or find_corpus(workspace, folder)  # noqa: E731
        if dump is not None:
            built = Path(open_until_done.enter_context(TemporaryDirectory(prefix="synth-verify-"))) / "corpus"
            build_corpus(dump, built)
            choose = lambda folder: built  # noqa: E731
        roles = open_until_done.enter_context(_open_reader(workspace, reading)) if reading else None
        ground = cache(lambda place: Indexes(Corpus.open(place)))
        reports = []
        for folder in folders:
            reporter.begin("verify")
            place = ground(choose(folder))
            report = verify_release(folder, place, reporter.advance, plugins)
            if reading is not None and roles is not None:
                evaluator = make_evaluator(place, roles, reading.role)
                pages = make_page_reader(place, roles, reading.role)
                report = asyncio.run(read_anew(report, folder, evaluator, pages, reading.sample))
            reporter.finish(f"{folder}: {report.describe()}")
            reports.append(report)
        return reports


def read_root(given: str, release: Path | None) -> str:
    """Return a root as 64 hex digits; may be empty.

    Raises:
        ConfigError: if it is not 64 hex digits, or no release is named.
    """
    root = given.strip().lower().removeprefix("sha256:")
    if root and not re.fullmatch(r"[0-9a-f]{64}", root):
        raise ConfigError(f"verify: --root {given!r} is no sha256; `synth run` and `synth push` print 64 hex digits")
    if root and release is None:
        raise ConfigError("verify: --root is that of one release; name its folder, too")
    return root


@contextmanager
def _open_reader(workspace: Workspace, reading: ReadingChoice) -> Iterator[Roles]:
    config, role = reading.config, reading.role
    if role not in config.roles:
        raise ConfigError(explain_missing([role]))
    servers = owned_servers(config.models, [role], workspace.logs)
    claimed = workspace.claim("verify")
    with claimed as run, servers, closing(Roles(config, workspace, run=run)) as roles:
        yield roles


def list_last_releases(workspace: Workspace) -> list[Path]:
    """Return the folders of the releases that the last run published.

    Raises:
        ConfigError: if it published none.
    """
    found = pick_releases(workspace.read_latest())
    if not found:
        raise ConfigError(
            f"workspace {workspace.root}: the last run released nothing here; run `synth run`, or name a release folder"
        )
    return [workspace.releases / dataset / version for dataset, version in sorted(found.items())]


def find_corpus(workspace: Workspace, release: Path) -> Path:
    """Return the corpus a release was made from: in the workspace it lies in, else in the one named.

    Raises:
        ConfigError: if neither has it, or the folder is no release.
    """
    name = next(entry.key for entry in read_release_manifest(release).lineage if entry.name == "corpus")
    around = release.resolve().parents
    for root in [*around[2:3], workspace.root]:
        if (root / "corpus" / name / "manifest.json").is_file():
            return root / "corpus" / name
    raise ConfigError(
        f"verify {release}: no corpus {name} beside it; name its folder with --corpus, or the dump with --dump"
    )
