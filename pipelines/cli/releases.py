"""Commands about releases and what is made of them."""

import sys
from pathlib import Path
from typing import Annotated, Literal

import typer

from pipelines.cli.console import (
    WORKSPACE,
    ConfigOption,
    JsonOption,
    RecipeOption,
    SetOption,
    WorkspaceOption,
    app,
    emit,
    emit_json,
    emit_table,
    to_json,
)

TRAINERS = "llamafactory, ms-swift, trl, verl-sft, mars-sft (of sft); verl, rllm, mmsearch-r1, mars (of rl)"
SHOWN_PROBLEMS = 50
ToOption = Annotated[str, typer.Option("--to", help=f"Trainer that is to read it: {TRAINERS}.")]


@app.command("verify")
def verify_command(  # noqa: PLR0913 - one argument for each option
    release: Annotated[Path | None, typer.Argument(help="Release folder; left out, the last run's releases.")] = None,
    corpus: Annotated[Path | None, typer.Option("--corpus", help="Corpus folder, if not the workspace's.")] = None,
    dump: Annotated[
        Path | None, typer.Option("--dump", help="Build the corpus from this dump and verify by it.")
    ] = None,
    read: Annotated[str, typer.Option("--read", help="Let this role's model read the questions again.")] = "",
    sample: Annotated[int, typer.Option("--sample", min=0, help="With --read: questions a release; 0 for all.")] = 0,
    apart_from: Annotated[
        list[Path] | None, typer.Option("--apart-from", help="Release or benchmark file to share nothing with; repeat.")
    ] = None,
    recipe: RecipeOption = "",
    config: ConfigOption = None,
    set_: SetOption = None,
    workspace: WorkspaceOption = WORKSPACE,
    as_json: JsonOption = False,
) -> None:
    """Re-derive every answer of a release from corpus and proof alone; with no model, unless one is to read."""
    from pipelines.cli.commands import ReadingChoice, compare_releases, load_config, verify_releases
    from pipelines.release.verify import describe_rows
    from pipelines.run.progress import make_reporter

    reading = ReadingChoice(load_config(recipe, config, set_ or []), read, sample) if read else None
    reports = verify_releases(release, corpus, dump, workspace, make_reporter(), reading)
    if apart_from:
        reports = compare_releases(reports, release, workspace, apart_from)
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
            emit(f"{report.dataset} {report.version}: {report.describe()}{told}")
        emit(describe_rows(reports))
    if not passed:
        raise typer.Exit(1)


@app.command("diff")
def diff_command(
    a: Annotated[Path, typer.Argument(help="A release folder.")],
    b: Annotated[Path, typer.Argument(help="Another release folder of the same dataset.")],
    workspace: WorkspaceOption = WORKSPACE,
    as_json: JsonOption = False,
) -> None:
    """Compare two releases: rows added, removed and changed, and how the funnel moved."""
    from pipelines.cli.diff import diff_releases, render_diff

    difference = diff_releases(a, b)
    emit_json(to_json(difference)) if as_json else emit_table(render_diff(difference))


@app.command("audit")
def audit_command(
    file: Annotated[Path, typer.Argument(help="Any VQA file: .parquet, .json or .jsonl.")],
    workspace: WorkspaceOption = WORKSPACE,
    as_json: JsonOption = False,
) -> None:
    """Look for known defects in anybody's VQA file; exit 1 when there are some."""
    from pipelines.cli.audit import audit_file, render_audit

    audit = audit_file(file)
    emit_json(to_json(audit)) if as_json else emit_table(render_audit(audit))
    if audit.defects:
        raise typer.Exit(1)


@app.command("push")
def push_command(  # noqa: PLR0913 - a command line has the options it has
    release: Annotated[Path, typer.Argument(help="Release folder.")],
    repo: Annotated[str, typer.Option("--repo", help="Dataset repository, org/name.")],
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Say what would be sent, and send nothing.")] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask; needed where there is no terminal.")] = False,
    public: Annotated[bool, typer.Option("--public", help="Make a new repository public; it is private else.")] = False,
    pr: Annotated[bool, typer.Option("--pr", help="Open a pull request; push again to tag what was merged.")] = False,
    replace: Annotated[
        bool, typer.Option("--replace", help="Overwrite what is not ours where it stands in the way.")
    ] = False,
    toy: Annotated[bool, typer.Option("--toy", help="Let toy or scripted data be public.")] = False,
    workspace: WorkspaceOption = WORKSPACE,
    as_json: JsonOption = False,
) -> None:
    """Push a release to the Hugging Face Hub: a plan, one commit beside what is there, verified, tagged."""
    from pipelines.cli.pushing import check_approval, describe_plan, render_plan
    from pipelines.release.push import PushOptions, carry_out, plan_push

    plan = plan_push(release, repo, options=PushOptions(public, pr, replace, toy))
    if not as_json:
        emit_table(render_plan(plan))
    elif dry_run or plan.done or not yes:
        emit_json(describe_plan(plan))
    if dry_run or plan.done:
        return
    check_approval(plan, yes, None if as_json or not sys.stdin.isatty() else typer.confirm)
    receipt = carry_out(plan)
    emit_json(to_json(receipt)) if as_json else emit(f"{receipt.url}: commit {receipt.commit} {receipt.tag}")


@app.command("export")
def export_command(  # noqa: PLR0913 - a command line has the options it has
    release: Annotated[Path, typer.Argument(help="Release folder.")],
    out: Annotated[Path, typer.Argument(help="Folder to write; it must not exist.")],
    to: ToOption,
    dialect: Annotated[
        str, typer.Option("--dialect", help="Protocol to write the turns in, if not the one they were held in.")
    ] = "",
    calls: Annotated[
        Literal["native", "text"],
        typer.Option("--calls", help="Tool calls as llamafactory's and ms-swift's own messages, or as text."),
    ] = "native",
    name: Annotated[str, typer.Option("--name", help="Name of the dataset.")] = "synth",
    workspace: WorkspaceOption = WORKSPACE,
    as_json: JsonOption = False,
) -> None:
    """Write a release as a trainer's own loader reads it, and hold the files to that loader's rules."""
    from pipelines.release.exporters.base import ExportOptions
    from pipelines.release.exporters.registry import export_release

    report = export_release(release, out, to, ExportOptions(dialect=dialect, name=name, calls=calls))
    if as_json:
        emit_json(to_json(report))
        return
    emit(f"{out}: {report.rows_out} of {report.rows_in} rows for {report.to}")
    for note in report.notes:
        emit(note)


@app.command("validate")
def validate_command(
    folder: Annotated[Path, typer.Argument(help="Folder that synth export wrote, edited or not.")],
    to: ToOption,
    workspace: WorkspaceOption = WORKSPACE,
    as_json: JsonOption = False,
) -> None:
    """Hold files to the rules of a trainer's loader; exit 1 when it would lose, shift or refuse anything."""
    from pipelines.release.exporters.registry import MOST_PROBLEMS, validate_export

    problems = validate_export(folder, to)
    if as_json:
        emit_json(list(problems))
    else:
        for problem in problems[:SHOWN_PROBLEMS]:
            emit(problem)
        more = " or more" if len(problems) == MOST_PROBLEMS else ""
        named = f", the first {SHOWN_PROBLEMS} above" if len(problems) > SHOWN_PROBLEMS else ""
        emit(f"{folder}: {len(problems) or 'nothing'}{more} against it for {to}{named}")
    if problems:
        raise typer.Exit(1)
