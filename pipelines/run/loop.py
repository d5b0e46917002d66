"""The one loop of a run: claim, checks, corpus, servers, stages, gates, publishing, catalogue.

``synth run`` and the flow both call :func:`run_request`. They differ in where shards are made, which is the executor's
part, and in who hears how far the run is, which is the reporter's.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from pipelines.checks.benchmarks import probe_benchmarks
from pipelines.checks.limits import ROUNDS_TOLERANCE
from pipelines.checks.shares import list_short_rounds
from pipelines.config.loading import explain_missing, reaches
from pipelines.config.settings import RunConfig
from pipelines.corpus.store import Corpus
from pipelines.errors import ConfigError, GateNotMet
from pipelines.release.manifest import PublishedRelease
from pipelines.run.assembly import Assembly, list_missing_roles, list_roles
from pipelines.run.chains import run_stages
from pipelines.run.corpora import ensure_corpus, find_dump, settle_source
from pipelines.run.executors import Executor, run_here
from pipelines.run.filling import Filling
from pipelines.run.models import check_renewable
from pipelines.run.naming import NamedRun, keep_run
from pipelines.run.plugins import check_plugins, find_prompt_folder
from pipelines.run.progress import Reporter, following_run, timing
from pipelines.run.publishing import publish_run, report_corpus
from pipelines.run.quotas import TargetRow
from pipelines.run.readiness import (
    Warner,
    check_corpus,
    check_degraded,
    check_dump,
    check_models,
    check_shares,
    check_stage,
)
from pipelines.run.retrying import begin_retry
from pipelines.run.reviewing import count_unmatched, export_undecided
from pipelines.run.runner import PlannedStage, StageReport, find_last, select_stages
from pipelines.run.shards import count_pools, read_parts
from pipelines.run.workers import WorkerSpec
from pipelines.run.workspace import RELEASE, Workspace
from pipelines.services.clients.http import read_key
from pipelines.services.clients.replies import renew
from pipelines.services.clients.serving import owned_servers
from pipelines.services.prompting import check_prompts
from pipelines.stages.concepts import read_list
from pipelines.stages.pools import check_files
from schemas.datasets import Enhancement, Rewrite

SHOWN_REASONS = 3
"""Reasons of a stage that the message of an empty release names."""


@dataclass(frozen=True, slots=True)
class RunRequest:
    """What a run is to do.

    Attributes:
        config: of the run.
        root: the workspace.
        until: last stage to run, empty for all.
        only: run just these stages; empty for all.
        fresh: roles and tools whose recorded replies are not used from now on.
        retry: ``failed``, ``unscored`` or reasons: rows that ended so are asked anew.
        named: its name and what is kept under it; None for a run that is not kept.
    """

    config: RunConfig
    root: Path
    until: str = ""
    only: tuple[str, ...] = ()
    fresh: tuple[str, ...] = ()
    retry: tuple[str, ...] = ()
    named: NamedRun | None = None

    @property
    def last(self) -> str:
        """The last stage that is wanted; empty for all."""
        return find_last(self.until, self.only)

    @property
    def name(self) -> str:
        """What it is called; empty for a run that is not kept."""
        return self.named.name if self.named else ""


@dataclass(frozen=True, slots=True)
class RunDocument:
    """What ``synth run`` did: the funnel of every stage and the releases."""

    recipe: str
    workspace: Path
    stages: tuple[StageReport, ...]
    releases: tuple[PublishedRelease, ...]
    published: bool
    """Whether releases were written in this run, and not only found."""
    seconds: float
    nothing: str
    """What each stage took, when all ran and nothing is released; empty otherwise."""
    warnings: tuple[str, ...]
    targets: tuple[TargetRow, ...] = ()
    """The strata of the target sizes; none where none is set, or the run ended before selections."""
    name: str = ""
    """Of the run; empty for one that is not kept."""

    def check_released(self) -> None:
        """Raise an error unless something is released or was not to be, as much of each stratum as was wanted.

        Raises:
            GateNotMet: with what each stage took, or what is short of its target.
        """
        if self.nothing:
            raise GateNotMet(self.nothing)
        short = [row for row in self.targets if row.accepted < row.wanted]
        if self.releases and short:
            told = "; ".join(f"{row.stratum}: {row.accepted:,} of {row.wanted:,} ({row.state})" for row in short)
            raise GateNotMet(f"targets: {len(short):,} of {len(self.targets):,} strata are not full: {told}")

    def as_dict(self) -> dict[str, Any]:
        """Return the document of ``synth run --json`` (DESIGN section 7)."""
        return {
            "run": {
                "name": self.name,
                "recipe": self.recipe,
                "workspace": str(self.workspace),
                "seconds": round(self.seconds, 3),
            },
            "stages": [_describe_report(report) for report in self.stages],
            "releases": [
                {"dataset": r.dataset, "version": r.version, "path": str(r.path), "rows": r.rows, "root": r.root}
                for r in self.releases
            ],
            **({"targets": [asdict(row) for row in self.targets]} if self.targets else {}),
            "warnings": list(self.warnings),
        }

    def summarise(self) -> str:
        """Return the closing lines: why rows were refused, the releases, and what was done."""
        lines = [f"{report.stage} rejected: {report.describe_reasons()}" for report in self.stages if report.rejected]
        lines += [f'{r.stage} failed: {r.failed:,}; see `synth sql "from failures"`' for r in self.stages if r.failed]
        lines += [f"{r.dataset} {r.version}: {r.rows:,} rows in {r.path}, root {r.root}" for r in self.releases]
        ran = [report.stage for report in self.stages if report.ran] + ["publishing"] * self.published
        if not ran:
            lines.append(f"Nothing to do: all {len(self.stages)} stages were complete ({self.seconds:.1f} s).")
        else:
            lines.append(f"Done in {self.seconds:.1f} s; ran {', '.join(ran) or 'no stage'}.")
        return "\n".join(lines)


def _describe_report(report: StageReport) -> dict[str, Any]:
    return {
        "stage": report.stage,
        "key": report.key,
        "ran": report.ran,
        "rows_in": report.rows_in,
        "kept": report.kept,
        "rejected": report.rejected,
        "failed": report.failed,
        "rows_out": report.rows_out,
        "seconds": report.seconds,
        "calls": report.usage.calls,
        "cached_calls": report.usage.cached_calls,
        "retries": report.usage.retries,
        "tokens": report.usage.tokens_in + report.usage.tokens_out,
        "gpu_seconds": round(report.usage.gpu_seconds, 3),
        "cost": round(report.usage.cost, 6),
        "cost_per_kept": round(report.paid / report.kept, 6) if report.kept else None,
    }


def run_request(
    request: RunRequest,
    reporter: Reporter,
    executor: Executor | None = None,
    claimed: Callable[[Workspace], None] = lambda _: None,
) -> RunDocument:
    """Run the missing parts of a recipe in a workspace.

    Args:
        request: what the run is to do.
        reporter: told how far the run is, and each warning.
        executor: makes the shards; None for this process.
        claimed: called once this run holds the workspace.

    Raises:
        ConfigError: if configuration or input is wrong; nothing was written that a later run would trust.
        WorkspaceBusy: if another run holds the workspace.
        Unavailable: if a disk is full, or a service is unavailable.
        BudgetSpent: if the budget is spent; all paid replies are recorded.
        GateNotMet: if a stage failed all its rows, or too many answers are unscored.
    """
    config, workspace = request.config, Workspace(request.root.resolve())
    check_plugins(config)
    _check_request(request)
    with (
        timing() as spent,
        workspace.claim() as run,
        following_run(reporter, workspace, request.name, config.recipe),
    ):
        claimed(workspace)
        for line in keep_run(workspace, request.named, config.recipe) if request.named else ():
            reporter.note(line)
        if request.fresh:
            renew(workspace.replies, request.fresh, config.replies)
        warner, executor = Warner(reporter), executor or run_here
        reports, (releases, published, nothing), targets = _run_claimed(request, workspace, warner, executor, run)
    return RunDocument(
        config.recipe,
        workspace.root,
        tuple(reports),
        tuple(releases),
        published,
        spent[0],
        nothing,
        tuple(warner.said),
        targets,
        request.name,
    )


def _check_request(request: RunRequest) -> None:
    """Refuse before anything is written what could not be run.

    Raises:
        ConfigError: naming roles, prompts or replies.
    """
    config = request.config
    check_renewable(config, request.fresh)
    if missing := list_missing_roles(config, request.last):
        raise ConfigError(explain_missing(missing))
    Warner(Reporter()).heed(check_models(config))
    check_prompts(find_prompt_folder(config))
    check_files(config.pools)
    probe_benchmarks(config.releases.benchmarks)
    if config.method == "concepts" and config.seeds.concepts:
        read_list(Path(config.seeds.concepts))


def _check_keys(config: RunConfig, last: str, workspace: Workspace) -> None:
    # Hours of reading a dump may lie between here and the first request.
    for role in () if any(workspace.root.glob("corpus/*")) else list_roles(config, last):
        read_key(f"models.{role}", config.models[role].api_key_env)


def _run_claimed(
    request: RunRequest, workspace: Workspace, warner: Warner, executor: Executor, run: str
) -> tuple[list[StageReport], tuple[list[PublishedRelease], bool, str], tuple[TargetRow, ...]]:
    config, reporter, last = request.config, warner.reporter, request.last
    _check_keys(config, last, workspace)
    corpus, reports = _open_corpus(request, workspace, warner)
    assembly = Assembly(config, workspace, corpus)
    with closing(assembly):
        assembly.roles.say, assembly.roles.run = reporter.note, run
        filling = Filling.of(assembly) if config.targets.wanted and last != "corpus" else None
        planned = [] if last == "corpus" else assembly.plan_stages(last)
        chosen = _choose_stages(request, planned, reporter, filling is None)
        _warn_of_lacks(assembly, planned, warner, last)

        def end(report: StageReport) -> None:
            reports.append(report)
            warner.heed(check_stage(report))
            if report.stage == "mixtures":
                folder = next(plan.folder for plan in planned if plan.name == report.stage)
                warner.heed(check_shares(count_pools(folder), {pool.name: pool.share for pool in config.pools}))
            if report.stage == "rewrites":
                _warn_of_rounds(assembly, planned, warner)
            if 0 < report.rows_in == report.failed:
                finish_run(assembly, planned, [], request.name, filling)
                raise GateNotMet(
                    f'{report.stage}: all {report.failed:,} rows failed; `synth sql "from failures"` says why'
                )
            if report.stage == "selections":
                _check_selected(assembly, planned, warner)

        def make(stages: Sequence[PlannedStage], ended: Callable[[StageReport], None]) -> None:
            spec = WorkerSpec(config, workspace.root, last, assembly.corpus_entry, run, quotas=assembly.quotas)
            with executor(spec) as run_chain:
                run_stages(stages, assembly.corpus_entry, config.runtime.shard_rows, reporter, ended, run_chain)

        rounds: list[StageReport] = []
        asked = list_asked_roles(config, chosen, bool(filling))
        with owned_servers(config.models, asked, workspace.logs):
            try:
                if filling and reaches(last, "selections"):
                    run_round = _is_sealed if request.only else partial(_run_round, filling, warner, make, rounds)
                    filling.settle(run_round, reaches(last, "releases"))
                    planned = assembly.plan_stages(last)
                    chosen = _choose_stages(request, planned, reporter)
                make(chosen, end)
            except _NothingLeftError as stopped:
                finish_run(assembly, planned, [], request.name, filling)
                return join_reports(reports, rounds), ([], False, str(stopped)), _sum_targets(filling)
        if config.method == "news":
            _say_decisions(config, workspace, planned, warner)
        ended = finish_run(assembly, planned, chosen, request.name, filling)
        return join_reports(reports, rounds), ended, _sum_targets(filling)


def _open_corpus(request: RunRequest, workspace: Workspace, warner: Warner) -> tuple[Corpus, list[StageReport]]:
    """Return the corpus, built if it is missing, and its report."""
    config, reporter = request.config, warner.reporter
    # A world that is generated here is no part of the corpus's time.
    source = settle_source(config, workspace, reporter)
    dump = find_dump(source, workspace, reporter)
    warner.heed((*check_models(config), *check_dump(config, dump, request.last)))
    with timing() as spent:
        corpus, built = ensure_corpus(source, workspace, reporter, config.runtime.workers)
    report = report_corpus(corpus, built, spent[0])
    reporter.begin("corpus", unit="pages")
    reporter.finish(report.summarise())
    warner.heed(check_stage(report))
    return corpus, [report]


def _choose_stages(
    request: RunRequest, planned: Sequence[PlannedStage], reporter: Reporter, retries: bool = True
) -> list[PlannedStage]:
    chosen = select_stages(planned, request.until, request.only) if planned else []
    if retries and chosen:
        begin_retry(chosen, request.retry, reporter.note)
    return chosen


def _is_sealed(planned: Sequence[PlannedStage]) -> bool:
    return planned[-1].folder.read_manifest() is not None


def _sum_targets(filling: Filling | None) -> tuple[TargetRow, ...]:
    return filling.sum_up() if filling and filling.planned else ()


def _run_round(
    filling: Filling,
    warner: Warner,
    make: Callable[[Sequence[PlannedStage], Callable[[StageReport], None]], None],
    rounds: list[StageReport],
    planned: Sequence[PlannedStage],
) -> bool:
    """Make what is missing of the stages of one round of drawing, and say what of the targets cannot be met."""

    def end(report: StageReport) -> None:
        rounds.append(report)
        if 0 < report.rows_in == report.failed:
            raise GateNotMet(
                f"{report.stage}: all {report.failed:,} rows of a round failed; see {planned[0].folder.path}"
            )

    if planned[-1].folder.read_manifest() is None:
        make(planned[:1], end)
        if len(filling.quotas.draws) == 1:
            for text in filling.find_short():
                warner.say(f"targets: {text}")
        warner.reporter.note(filling.describe_round())
        make(planned[1:], end)
    return True


def join_reports(reports: Sequence[StageReport], rounds: Sequence[StageReport]) -> list[StageReport]:
    """Return the reports of a run with what its rounds of drawing used added to those of the same stage."""
    joined = []
    for report in reports:
        own = [each for each in rounds if each.stage == report.stage and each.ran]
        usage = sum((each.usage for each in own), report.usage)
        seconds = report.seconds + sum(each.seconds for each in own)
        joined.append(replace(report, ran=report.ran or bool(own), usage=usage, seconds=seconds))
    return joined


def _warn_of_lacks(assembly: Assembly, planned: Sequence[PlannedStage], warner: Warner, last: str) -> None:
    """Say before seeds are drawn what the corpus lacks for them."""
    if planned and planned[0].name == "seeds" and planned[0].folder.read_manifest() is None:
        warner.heed(check_corpus(assembly.corpus, assembly.seed_gate, assembly.config, last))


def _say_decisions(config: RunConfig, workspace: Workspace, planned: Sequence[PlannedStage], warner: Warner) -> None:
    """Write out the chains that wait for people, and say how many do, and how many decisions are on none."""
    if waiting := export_undecided(config.news, workspace, planned):
        warner.say(f"{waiting:,} chains wait for people: {workspace.reviews / 'bridges'}; see news.decisions")
    if any(plan.name == "bridges" for plan in planned) and (strange := count_unmatched(config.news, planned)):
        detail = "their chains are of another run, or have changed since"
        warner.say(f"news.decisions: {strange:,} decisions are on no chain of this run: {detail}")


def _warn_of_rounds(assembly: Assembly, planned: Sequence[PlannedStage], warner: Warner) -> None:
    """Say which number of rounds has too few questions for its share, before what is over the others' is paid for."""
    limits = assembly.limits
    if limits.rounds:
        folder = next(plan.folder for plan in planned if plan.name == "rewrites")
        counts = Counter(row.proof.rounds for row in read_parts(folder, Rewrite))
        for text in list_short_rounds(counts, limits.rounds, ROUNDS_TOLERANCE):
            warner.say(f"rewrites: {text}")


class _NothingLeftError(Exception):
    """No question is left to ask the teacher."""


def _check_selected(assembly: Assembly, planned: Sequence[PlannedStage], warner: Warner) -> None:
    """Stop before the teacher is paid where no question is left, and warn where none is of a split it is paid for.

    Raises:
        _NothingLeftError: with what each stage took.
    """
    sealed = [plan for plan in planned if plan.folder.read_manifest() is not None]
    selected = next(plan for plan in sealed if plan.name == "selections")
    splits, degraded = Counter[str](), Counter[str]()
    for row in read_parts(selected.folder, Enhancement):
        splits[row.split] += 1
        degraded.update([row.trial.degradation] if row.trial else [])
    if not splits:
        lost = "; ".join(map(_describe_loss, sealed))
        raise _NothingLeftError(f"nothing was released: no question is left, so the teacher is not asked: {lost}")
    warner.heed(check_degraded(splits.total(), degraded, assembly.config.enhancements))
    wanted = assembly.config.rollouts.splits
    if wanted and not any(splits[split] for split in wanted):
        left = ", ".join(f"{split} {count:,}" for split, count in sorted(splits.items()))
        warner.say(f"no question of {' or '.join(wanted)} is left, so none is rolled out; there are: {left}")


def list_asked_roles(config: RunConfig, chosen: Sequence[PlannedStage], again: bool = False) -> tuple[str, ...]:
    """Return the roles whose models the stages that are still to run may ask; ``again``: all stages run in rounds."""
    pending = [plan for plan in chosen if again or plan.folder.read_manifest() is None]
    asked = {entry.role for plan in pending for entry in plan.stage.models()}
    return tuple(role for role in config.roles if role in asked)


def finish_run(
    assembly: Assembly,
    planned: Sequence[PlannedStage],
    chosen: Sequence[PlannedStage],
    run: str,
    filling: Filling | None,
) -> tuple[list[PublishedRelease], bool, str]:
    """Note what the run used, publish its releases when it got that far, and write the catalogue of views.

    Returns:
        The releases, whether they were written now, and, if all stages ran and nothing is released, what each took.
    """
    # Imported here, as publishing is below, because no stage needs them and a run starts sooner without.
    from pipelines.run.views import write_catalogue

    workspace = assembly.workspace
    complete = {plan.name: plan.key for plan in planned if plan.folder.read_manifest() is not None}
    last = bool(chosen) and chosen[-1].name == "releases"
    releases, written = publish_run(assembly, planned) if last else ([], False)
    published = {f"{RELEASE}{r.dataset}": r.version for r in releases}
    used = {"corpus": assembly.corpus.folder.name, **complete}
    # What the run had already beyond what is planned stays its own where all that it was made from is the same.
    before = workspace.read_latest(run)
    wanted = {"corpus": assembly.corpus.folder.name, **{plan.name: plan.key for plan in planned}}
    later = {} if last or any(before.get(name, key) != key for name, key in wanted.items()) else before
    # Later rounds are drawn by those before, so none of them may be pruned.
    rounds = {f"{name}@{key}": key for name, key in filling.keys} if filling else {}
    workspace.note_latest({**later, **rounds, **used, **published}, run)
    write_catalogue(workspace.root)
    empty = last and not any(release.rows for release in releases)
    return releases, written, f"nothing was released: {'; '.join(map(_describe_loss, planned))}" if empty else ""


def _describe_loss(plan: PlannedStage) -> str:
    """Return what a sealed stage took of its rows."""
    manifest = plan.folder.read_manifest()
    if manifest is None:
        return f"{plan.name} did not run"
    lost = Counter(manifest.rejected) + Counter({"failed": manifest.failed})
    reasons = ", ".join(f"{reason} {count:,}" for reason, count in lost.most_common(SHOWN_REASONS) if count)
    return f"{plan.name} kept {manifest.kept:,} of {manifest.rows_in:,}" + (f" ({reasons})" if reasons else "")
