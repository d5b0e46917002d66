"""The ``synth`` command: parse arguments, call one function, print one summary.

Only typer is imported here; everything else is imported by the command that needs it, so ``--help`` answers at once.
"""

import json
import sqlite3
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer

app = typer.Typer(
    help="From a Wikipedia dump to verified multi-hop visual QA. `synth run` alone makes a demo dataset, offline.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
bench = typer.Typer(help="How good the checks and the judges are, on planted defects.", no_args_is_help=True)
app.add_typer(bench, name="bench")
replies = typer.Typer(help="Recorded replies: what there is, and what may go.")
app.add_typer(replies, name="replies")

WorkspaceOption = Annotated[Path, typer.Option("--workspace", help="Folder for everything a run makes.")]
JsonOption = Annotated[bool, typer.Option("--json", help="Print one JSON document on stdout.")]
RecipeOption = Annotated[str, typer.Option("--recipe", help="Shipped recipe; `synth stages` lists them.")]
ConfigOption = Annotated[Path | None, typer.Option("--config", help="Configuration file (TOML) instead of a recipe.")]
SetOption = Annotated[list[str] | None, typer.Option("--set", help="Change one key: section.key=value.")]
LimitOption = Annotated[int, typer.Option("--limit", min=0, help="At most this many seeds; 0 is the recipe's own.")]
WORKSPACE = Path("workspace")


def emit(text: str) -> None:
    """Write a line to stdout: results go there, progress and errors to stderr."""
    sys.stdout.write(text if text.endswith("\n") else text + "\n")


def emit_json(document: Any) -> None:  # noqa: ANN401 - any JSON value
    """Write one JSON document to stdout."""
    emit(json.dumps(document, indent=1, ensure_ascii=False, default=str))


def emit_table(table: Any) -> None:  # noqa: ANN401 - a rich renderable
    """Write a rich table to stdout, plain when it is no terminal."""
    from rich.console import Console

    # A pipe or a log has no width of its own; a table cut to 80 columns would lose its words.
    Console(width=None if sys.stdout.isatty() else 140).print(table)


@app.command("run")
def run_command(  # noqa: PLR0913 - a command line has the options it has
    recipe: RecipeOption = "demo",
    config: ConfigOption = None,
    stage: Annotated[list[str] | None, typer.Option("--stage", help="Run only this stage; may be repeated.")] = None,
    until: Annotated[str, typer.Option("--until", help="Stop after this stage.")] = "",
    limit: LimitOption = 0,
    budget: Annotated[float, typer.Option("--budget", min=0.0, help="Money this run may spend; 0 is no limit.")] = 0.0,
    fresh: Annotated[
        list[str] | None,
        typer.Option("--fresh-replies", help="Ask this role or tool anew; may be repeated. Go on without the option."),
    ] = None,
    set_: SetOption = None,
    workspace: WorkspaceOption = WORKSPACE,
    as_json: JsonOption = False,
) -> None:
    """Run a recipe, or go on with it: what is done is not done again."""
    from pipelines.commands import load_config, run_recipe

    settings = load_config(recipe, config, set_ or [], limit, budget)
    with interruptible():
        document = run_recipe(settings, workspace, until, stage or [], fresh or [])
    if as_json:
        emit_json(document.as_dict())
    else:
        emit_table(document.make_table())
        emit(document.summarise())


@app.command("stages")
def stages_command(workspace: WorkspaceOption = WORKSPACE, as_json: JsonOption = False) -> None:
    """List the stages, what each makes and from what, and the recipes."""
    from pipelines.commands import describe_stages

    document, table = describe_stages()
    emit_json(document) if as_json else emit_table(table)


@app.command("status")
def status_command(workspace: WorkspaceOption = WORKSPACE, as_json: JsonOption = False) -> None:
    """Say where the run in a workspace stands."""
    from pipelines.inspection.status import render_status, summarise_workspace

    status = summarise_workspace(workspace)
    emit_json(to_json(status)) if as_json else emit_table(render_status(status))


@app.command("doctor")
def doctor_command(
    recipe: RecipeOption = "demo",
    config: ConfigOption = None,
    set_: SetOption = None,
    workspace: WorkspaceOption = WORKSPACE,
    as_json: JsonOption = False,
) -> None:
    """Check that configuration, input, disk, models and software are ready; servers are sent a few tokens each."""
    from pipelines.commands import load_config
    from pipelines.doctor import examine_run, render_examination

    examination = examine_run(load_config(recipe, config, set_ or [], 0), workspace)
    emit_json(to_json(examination)) if as_json else emit_table(render_examination(examination))
    if not examination.ready:
        raise typer.Exit(2)


@app.command("plan")
def plan_command(  # noqa: PLR0913 - as above
    recipe: RecipeOption = "demo",
    config: ConfigOption = None,
    limit: LimitOption = 0,
    sample: Annotated[int, typer.Option("--sample", min=0, help="Run so many seeds first and estimate by them.")] = 0,
    budget: Annotated[float, typer.Option("--budget", min=0.0, help="Say how far this much money goes.")] = 0.0,
    set_: SetOption = None,
    workspace: WorkspaceOption = WORKSPACE,
    as_json: JsonOption = False,
) -> None:
    """Say what a run would still do and cost, by what was measured here and else at most."""
    from pipelines.commands import load_config, plan_by_sample
    from pipelines.estimate import estimate_run, render_estimate

    settings = load_config(recipe, config, set_ or [], limit, budget)
    with interruptible():
        estimate = plan_by_sample(settings, workspace, sample) if sample else estimate_run(settings, workspace)
    emit_json(to_json(estimate)) if as_json else emit_table(render_estimate(estimate))


@app.command("serve-model")
def serve_model_command(
    role: Annotated[str, typer.Argument(help="Role whose model is served, or a name under models.solvers.")],
    recipe: RecipeOption = "demo",
    config: ConfigOption = None,
    set_: SetOption = None,
    workspace: WorkspaceOption = WORKSPACE,
) -> None:
    """Start vLLM's server for a role as the configuration says, and end it with this command."""
    from pipelines.commands import load_config
    from pipelines.serving import serve_model
    from pipelines.workspace import Workspace

    with interruptible("the server is ended"):
        serve_model(load_config(recipe, config, set_ or []), role, Workspace(workspace.resolve()).logs, emit)


@replies.callback(invoke_without_command=True)
def replies_command(
    context: typer.Context, workspace: WorkspaceOption = WORKSPACE, as_json: JsonOption = False
) -> None:
    """Say what recorded replies a workspace holds: number, size and days by model, and the hit rate by stage."""
    from pipelines.inspection.replies import render_replies, summarise_replies

    if context.invoked_subcommand is None:
        summary = summarise_replies(workspace)
        emit_json(to_json(summary)) if as_json else emit_table(render_replies(summary))


@replies.command("prune")
def prune_command(
    backend: Annotated[
        str, typer.Option("--backend", help="Only of models and tools whose identity has this in it.")
    ] = "",
    older_than: Annotated[int, typer.Option("--older-than", min=0, help="Only those so many days old.")] = 0,
    apply: Annotated[
        bool, typer.Option("--yes", help="Remove them; without it only what it would free is said.")
    ] = False,
    workspace: WorkspaceOption = WORKSPACE,
    as_json: JsonOption = False,
) -> None:
    """Remove recorded replies; what needs them later is asked and paid for again."""
    from pipelines.inspection.replies import PruneRules, prune_replies, render_pruned

    pruned = prune_replies(workspace, PruneRules(backend, older_than), apply)
    emit_json(to_json(pruned)) if as_json else emit_table(render_pruned(pruned))


@app.command("sql")
def sql_command(
    statement: Annotated[str, typer.Argument(help="SQL over seeds, paths, ..., rejections, failures, funnel, pages.")],
    workspace: WorkspaceOption = WORKSPACE,
    as_json: JsonOption = False,
) -> None:
    """Ask DuckDB about every dataset of a workspace, rejections included."""
    from pipelines.inspection.views import render_result, run_sql

    result = run_sql(workspace, statement)
    emit_json(result.as_dicts()) if as_json else emit_table(render_result(result))


@app.command("explain")
def explain_command(
    record_id: Annotated[str, typer.Argument(help="Id, or the beginning of one, of any row of any stage.")],
    workspace: WorkspaceOption = WORKSPACE,
    as_json: JsonOption = False,
) -> None:
    """Show everything known about one row: path, evidence, certificates, picture, attempts, releases."""
    from pipelines.inspection.explain import explain_record, render_explanation

    explanation = explain_record(workspace, record_id)
    emit_json(to_json(explanation)) if as_json else emit_table(render_explanation(explanation))


@app.command("verify")
def verify_command(
    release: Annotated[Path | None, typer.Argument(help="Release folder; left out, the last run's releases.")] = None,
    corpus: Annotated[Path | None, typer.Option("--corpus", help="Corpus folder, if not the workspace's.")] = None,
    dump: Annotated[
        Path | None, typer.Option("--dump", help="Build the corpus from this dump and verify by it.")
    ] = None,
    workspace: WorkspaceOption = WORKSPACE,
    as_json: JsonOption = False,
) -> None:
    """Re-derive every answer of a release from corpus and proof alone, with no model."""
    from pipelines.progress import make_reporter
    from pipelines.verification import verify_releases

    reports = verify_releases(release, corpus, dump, workspace, make_reporter())
    passed = all(report.passed for report in reports)
    if as_json:
        emit_json(to_json(reports))
    else:
        for report in reports:
            for problem in report.problems:
                emit(f"{problem.where}: {problem.what}")
            for claim in report.claims:
                emit(f"{report.dataset} claims: {claim}")
            told = "" if report.passed else f", NOT VERIFIED: {len(report.problems)} problems, named above"
            emit(f"{report.dataset} {report.version}: {report.verified}/{report.rows}{told}")
        emit(f"{sum(r.verified for r in reports)}/{sum(r.rows for r in reports)}")
    if not passed:
        raise typer.Exit(1)


@app.command("report")
def report_command(
    out: Annotated[Path | None, typer.Option("--out", help="HTML file to write.")] = None,
    workspace: WorkspaceOption = WORKSPACE,
    as_json: JsonOption = False,
) -> None:
    """Write one HTML page about the last run: funnel, distributions, questions with pictures and evidence."""
    from pipelines.inspection.report import write_report

    path = write_report(workspace, out or workspace / "report.html")
    emit_json({"report": str(path)}) if as_json else emit(str(path))


@app.command("diff")
def diff_command(
    a: Annotated[Path, typer.Argument(help="A release folder.")],
    b: Annotated[Path, typer.Argument(help="Another release folder of the same dataset.")],
    workspace: WorkspaceOption = WORKSPACE,
    as_json: JsonOption = False,
) -> None:
    """Compare two releases: rows added, removed and changed, and how the funnel moved."""
    from pipelines.inspection.diff import diff_releases, render_diff

    difference = diff_releases(a, b)
    emit_json(to_json(difference)) if as_json else emit_table(render_diff(difference))


@app.command("audit")
def audit_command(
    file: Annotated[Path, typer.Argument(help="Any VQA file: .parquet, .json or .jsonl.")],
    workspace: WorkspaceOption = WORKSPACE,
    as_json: JsonOption = False,
) -> None:
    """Look for known defects in anybody's VQA file; exit 1 when there are some."""
    from pipelines.inspection.audit import audit_file, render_audit

    audit = audit_file(file)
    emit_json(to_json(audit)) if as_json else emit_table(render_audit(audit))
    if audit.defects:
        raise typer.Exit(1)


@app.command("push")
def push_command(
    release: Annotated[Path, typer.Argument(help="Release folder.")],
    repo: Annotated[str, typer.Option("--repo", help="Dataset repository, org/name.")],
    workspace: WorkspaceOption = WORKSPACE,
    as_json: JsonOption = False,
) -> None:
    """Push a release to the Hugging Face Hub: one commit, verified, tagged with its version."""
    from pipelines.release.push import push_release

    receipt = push_release(release, repo)
    emit_json(to_json(receipt)) if as_json else emit(f"{repo}: {receipt}")


@app.command("deploy")
def deploy_command(workspace: WorkspaceOption = WORKSPACE, as_json: JsonOption = False) -> None:
    """Register the deployments of prefect.yaml with the Prefect server of this environment."""
    from pipelines.commands import deploy_flows

    deployed = deploy_flows()
    emit_json(deployed) if as_json else emit("\n".join(deployed["deployments"]))


@app.command("world")
def world_command(  # noqa: PLR0913 - as above
    out: Annotated[Path, typer.Argument(help="Folder to write; it must not exist or be empty.")],
    entities: Annotated[int, typer.Option(help="Articles about entities.")] = 2000,
    seed: Annotated[int, typer.Option(help="Seed of the generator.")] = 7,
    missing: Annotated[float, typer.Option(min=0.0, max=0.3, help="Share of infobox fields left to the prose.")] = 0.1,
    later: Annotated[bool, typer.Option("--later", help="The same world a year on: some facts have changed.")] = False,
    workspace: WorkspaceOption = WORKSPACE,
    as_json: JsonOption = False,
) -> None:
    """Generate a toy Wikipedia: dump, tables, Wikidata, pictures, and the truth beside them."""
    from pipelines.world.config import WorldConfig
    from pipelines.world.generate import write_world

    summary = write_world(out, WorldConfig(entities=entities, seed=seed, missing=missing), later)
    emit_json(to_json(summary)) if as_json else emit(f"{out}: {summary}")


@bench.command("planted")
def bench_planted_command(  # noqa: PLR0913 - as above
    pairs: Annotated[
        int, typer.Option(help="Minimal pairs a defect; twice as many where next to no miss is allowed.")
    ] = 150,
    seed: Annotated[int, typer.Option(help="Seed of the worlds and the plants.")] = 7,
    missing: Annotated[
        list[float] | None, typer.Option(help="Share of infobox fields left to the prose; may be given several times.")
    ] = None,
    defect: Annotated[list[str] | None, typer.Option(help="Code of a defect, such as D07; all when not given.")] = None,
    vocabulary: Annotated[Path | None, typer.Option(help="TOML file with words of your own to plant with.")] = None,
    workspace: WorkspaceOption = WORKSPACE,
    as_json: JsonOption = False,
) -> None:
    """Plant defects in minimal pairs and count what the checks catch and accuse falsely; exit 1 below demand."""
    from pipelines.bench.planted import MISSING, run_planted
    from pipelines.bench.planted_tables import render_planted
    from pipelines.progress import make_reporter

    report = run_planted(pairs, seed, missing or MISSING, defect, vocabulary, make_reporter())
    emit_json(to_json(report)) if as_json else emit_table(render_planted(report))
    if not report.met:
        raise typer.Exit(1)


@bench.command("judge")
def bench_judge_command(  # noqa: PLR0913 - as above
    pairs: Annotated[int, typer.Option(help="Planted answers of each kind.")] = 150,
    seed: Annotated[int, typer.Option(help="Seed of the plants.")] = 7,
    recipe: RecipeOption = "",
    config: ConfigOption = None,
    set_: SetOption = None,
    workspace: WorkspaceOption = WORKSPACE,
    as_json: JsonOption = False,
) -> None:
    """Plant near misses and true paraphrases; measure the typed comparer, and a recipe's judges where one is named."""
    from pipelines.bench.judge_tables import render_judge
    from pipelines.commands import measure_judges

    report = measure_judges(pairs, seed, recipe, config, set_ or [], workspace)
    emit_json(to_json(report)) if as_json else emit_table(render_judge(report))


def to_json(value: Any) -> Any:  # noqa: ANN401 - any dataclass or model
    """Return dataclasses and models, at any depth, as plain JSON values."""
    from dataclasses import fields, is_dataclass

    if hasattr(value, "model_dump"):
        return value.model_dump(mode="json")
    if is_dataclass(value) and not isinstance(value, type):
        return {field.name: to_json(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, dict):
        return {str(key): to_json(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [to_json(entry) for entry in value]
    return value


def main(arguments: list[str] | None = None) -> None:
    """Run the command line; every expected failure is one line on stderr and an exit code.

    0 done; 1 a gate not met; 2 our configuration or input; 3 a service, disk or lock away: run again to go on.
    """
    guarded(lambda: app(args=arguments, prog_name="synth"))


@contextmanager
def interruptible(what_next: str = "the same command goes on from here") -> Iterator[None]:
    """Say what an interrupt means; the command line library would end without a word."""
    from pipelines.errors import Unavailable

    try:
        yield
    except KeyboardInterrupt as error:
        raise Unavailable(f"interrupted; {what_next}") from error


def guarded(call: Callable[[], None]) -> None:
    """Call and turn the failures of DESIGN section 4 into exit codes; anything else is a crash with its traceback."""
    from pipelines.errors import SynthError, Unavailable
    from pipelines.files import explain_os_error

    try:
        call()
    except SynthError as error:
        fail(error)
    except OSError as error:
        if error.errno is None:
            raise
        fail(explain_os_error(error, "synth"))
    except sqlite3.OperationalError as error:
        fail(Unavailable(f"synth: {error}; free space and run the same command again"))
    except KeyboardInterrupt:
        fail(Unavailable("synth: interrupted; the same command goes on from here"))


def fail(error: Any) -> None:  # noqa: ANN401 - a SynthError, whose class is imported late
    """Write one line to stderr and leave with the error's exit code."""
    sys.stderr.write(f"synth: {error}\n" if not str(error).startswith("synth:") else f"{error}\n")
    raise SystemExit(error.exit_code)


if __name__ == "__main__":
    main()
