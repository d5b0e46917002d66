"""Commands about releases, what is made of them, and what people decide on a sample of their questions."""

import sys
from functools import partial
from pathlib import Path
from typing import Annotated, Literal

import typer

from pipelines.cli.console import (
    WORKSPACE,
    ConfigOption,
    JsonOption,
    ReleaseArgument,
    SetOption,
    WorkspaceOption,
    app,
    emit,
    emit_json,
    interruptible,
    review,
    to_json,
)

TRAINERS = "llamafactory, ms-swift, trl, verl-sft (of sft); verl, rllm, mmsearch-r1, mars (of rl)"


@app.command("verify")
def verify_command(  # noqa: PLR0913 - one argument for each option
    release: Annotated[
        Path | None, typer.Argument(help="Release folder, or RUN/DATASET; left out, the last run's releases.")
    ] = None,
    corpus: Annotated[Path | None, typer.Option("--corpus", help="Corpus folder, if not the workspace's.")] = None,
    dump: Annotated[
        Path | None, typer.Option("--dump", help="Build the corpus from this dump and verify by it.")
    ] = None,
    read: Annotated[str, typer.Option("--read", help="Let this role's model read the questions again.")] = "",
    sample: Annotated[int, typer.Option("--sample", min=0, help="With --read: questions a release; 0 for all.")] = 0,
    apart_from: Annotated[
        list[Path] | None, typer.Option("--apart-from", help="Release or benchmark file to share nothing with; repeat.")
    ] = None,
    root: Annotated[
        str, typer.Option("--root", help="sha256 that the manifest must have, as run and push print it.")
    ] = "",
    config: ConfigOption = None,
    set_: SetOption = None,
    workspace: WorkspaceOption = WORKSPACE,
    as_json: JsonOption = False,
) -> None:
    """Derive every released answer again from corpus and proof. No model is asked, unless one is to read."""
    from pipelines.cli.commands import (
        ReadingChoice,
        check_root,
        compare_releases,
        read_root,
        verify_releases,
    )
    from pipelines.cli.naming import RunChoice, make_request
    from pipelines.release.verify import describe_rows
    from pipelines.run.naming import find_release
    from pipelines.run.progress import make_reporter

    own = make_request(RunChoice("", "", tuple(config or ()), tuple(set_ or ())), workspace).config
    reading = ReadingChoice(own, read, sample) if read else None
    release = find_release(workspace, release) if release else None
    wanted = read_root(root, release)
    reports = verify_releases(release, corpus, dump, workspace, make_reporter(), reading, own.plugins)
    reports = [check_root(report, wanted) for report in reports]
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
            for what in report.underived:
                emit(f"{report.dataset} not derived: {what}")
            told = "" if report.passed else f", NOT VERIFIED: {len(report.problems)} problems, named above"
            emit(f"{report.dataset} {report.version}: {report.describe()}{told}")
            emit(f"{report.dataset} root: {report.root}")
        emit(describe_rows(reports))
    if not passed:
        raise typer.Exit(1)


@app.command("push")
def push_command(  # noqa: PLR0913 - a command line has the options it has
    releases: Annotated[
        list[Path], typer.Argument(help="Release folder, or RUN/DATASET; several share the repository as configs.")
    ],
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
    """Push releases to the Hugging Face Hub, with a plan first. One commit each, read back and tagged."""
    from pipelines.cli.pushing import check_approval, push_all
    from pipelines.release.push import PushOptions
    from pipelines.run.naming import find_release

    ask = None if as_json or not sys.stdin.isatty() else typer.confirm
    options = PushOptions(public, pr, replace, toy)
    found = [find_release(workspace, release) for release in releases]
    approve = None if dry_run else partial(check_approval, yes=yes, ask=ask)
    push_all(found, repo, options, approve, as_json)


@app.command("export")
def export_command(  # noqa: PLR0913 - a command line has the options it has
    release: ReleaseArgument,
    out: Annotated[Path, typer.Argument(help="Folder to write; it must not exist.")],
    to: Annotated[str, typer.Option("--to", help=f"Trainer that is to read it: {TRAINERS}.")],
    dialect: Annotated[
        str, typer.Option("--dialect", help="Protocol to write the turns in, if not the one they were held in.")
    ] = "",
    calls: Annotated[
        Literal["native", "text"],
        typer.Option("--calls", help="Tool calls as llamafactory's and ms-swift's own messages, or as text."),
    ] = "native",
    workspace: WorkspaceOption = WORKSPACE,
    as_json: JsonOption = False,
) -> None:
    """Write a release as a trainer's own loader reads it. The files are held to that loader's rules."""
    from pipelines.release.exporters.base import ExportOptions
    from pipelines.release.exporters.registry import export_release
    from pipelines.run.naming import find_release

    report = export_release(find_release(workspace, release), out, to, ExportOptions(dialect=dialect, calls=calls))
    if as_json:
        emit_json(to_json(report))
        return
    emit(f"{out}: {report.rows} rows for {report.to}")
    for note in report.notes:
        emit(note)


@app.command("serve-tools")
def serve_tools_command(  # noqa: PLR0913 - a command line has the options it has
    release: Annotated[
        Path | None, typer.Argument(help="Release, or RUN/DATASET, whose questions are served; else the last run's.")
    ] = None,
    dialect: Annotated[
        str, typer.Option("--dialect", help="Protocol of the tools, if not that of the configuration.")
    ] = "",
    evaluating: Annotated[
        bool, typer.Option("--evaluating", help="Open questions that are held out for evaluation, too.")
    ] = False,
    host: Annotated[str, typer.Option("--host", help="Address to listen at; there is no password.")] = "127.0.0.1",
    port: Annotated[int, typer.Option("--port", min=0, max=65535, help="0 for any that is free.")] = 8765,
    record: Annotated[
        Path | None, typer.Option("--record", help="File that every call is appended to, a JSON object a line.")
    ] = None,
    mcp: Annotated[
        Literal["", "stdio", "http"], typer.Option("--mcp", help="Speak MCP: beside HTTP, or on stdio alone.")
    ] = "",
    question: Annotated[str, typer.Option("--question", help="With --mcp stdio: id of the question.")] = "",
    config: ConfigOption = None,
    set_: SetOption = None,
    workspace: WorkspaceOption = WORKSPACE,
) -> None:
    """Serve the tools of the rollouts over HTTP or MCP. Trainers roll exported questions out with them."""
    from pipelines.cli.naming import RunChoice, make_request
    from pipelines.cli.tool_server import ServingOptions, serve_tools
    from pipelines.run.naming import find_release

    release = find_release(workspace, release) if release else None
    options = ServingOptions(release, dialect, evaluating, host, port, record, mcp, question)
    settings = make_request(RunChoice("", "", tuple(config or ()), tuple(set_ or ())), workspace).config
    with interruptible("the server is ended"):
        serve_tools(settings, workspace, options, emit)


@review.command("export")
def export_sample_command(
    release: Annotated[
        Path | None, typer.Argument(help="Release folder to draw from; left out, what the last run selected.")
    ] = None,
    size: Annotated[int, typer.Option("--size", min=1, help="Questions of the sample.")] = 100,
    seed: Annotated[int, typer.Option("--seed", help="Seed of the draw.")] = 0,
    workspace: WorkspaceOption = WORKSPACE,
    as_json: JsonOption = False,
) -> None:
    """Write a stratified sample as CSV and as Argilla records, with the paths of pictures."""
    from pipelines.run.reviewing import export_sample
    from pipelines.run.workspace import Workspace

    report = export_sample(Workspace(workspace.resolve()), release, size, seed)
    if as_json:
        emit_json(to_json(report))
        return
    emit(f"{report.folder}: {report.questions} of {report.drawn_from} questions, of {len(report.strata)} strata")
    emit("Who judges fills in decision (accept or refuse), decided_by and decided_on; then `synth review import FILE`.")


@review.command("import")
def import_decisions_command(
    file: Annotated[Path, typer.Argument(help="The filled in CSV, or JSON of Argilla.")],
    workspace: WorkspaceOption = WORKSPACE,
    as_json: JsonOption = False,
) -> None:
    """Read decisions of one or several people; the next run publishes them, with names as given."""
    from pipelines.run.reviewing import import_decisions
    from pipelines.run.workspace import Workspace

    report = import_decisions(Workspace(workspace.resolve()), [file])
    if as_json:
        emit_json(to_json(report))
        return
    from pipelines.release.quality import render_section

    emit(f"{report.file}: {report.added} decisions added, {report.known} known already")
    for name, section in report.result.items():
        emit(f"\n{name}\n\n{render_section(section)}")
    emit("\nThe next `synth run` publishes this with what is released.")
