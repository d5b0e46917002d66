"""Commands about runs: make, plan and look at them."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from pipelines.cli.console import (
    WORKSPACE,
    ConfigOption,
    JsonOption,
    LimitOption,
    RecipeOption,
    RunOption,
    SetOption,
    WorkspaceOption,
    app,
    emit,
    emit_json,
    emit_prose,
    emit_table,
    interruptible,
    to_json,
)

if TYPE_CHECKING:
    from pipelines.config.settings import RunConfig


@app.command("run")
def run_command(  # noqa: PLR0913 - a command line has the options it has
    name: Annotated[
        str, typer.Argument(help="Run to begin or go on with, or a recipe; the last one if left out.", metavar="[NAME]")
    ] = "",
    recipe: RecipeOption = "",
    config: ConfigOption = None,
    stage: Annotated[list[str] | None, typer.Option("--stage", help="Run only this stage; may be repeated.")] = None,
    until: Annotated[str, typer.Option("--until", help="Stop after this stage.")] = "",
    limit: LimitOption = 0,
    fresh: Annotated[
        list[str] | None,
        typer.Option("--fresh-replies", help="Ask this role or tool anew; may be repeated. Go on without the option."),
    ] = None,
    retry: Annotated[
        list[str] | None,
        typer.Option("--retry", help="Ask rows anew that ended so: failed, unscored or a reason; may be repeated."),
    ] = None,
    preview: Annotated[
        int, typer.Option("--preview", min=0, help="First show so many questions as cards, and run no more.")
    ] = 0,
    set_: SetOption = None,
    workspace: WorkspaceOption = WORKSPACE,
    as_json: JsonOption = False,
) -> None:
    """Run a recipe, or go on with a run. What is done is not done again; its settings are kept by its name."""
    from pipelines.cli.commands import render_run, run_here
    from pipelines.cli.naming import RunChoice, make_request
    from pipelines.cli.yields import render_targets

    choice = RunChoice(name, recipe, tuple(config or ()), tuple(set_ or ()), limit)
    request = make_request(choice, workspace, until, stage or [], fresh or [], retry or [])
    if preview:
        _preview_run(request.config, workspace, preview, as_json)
        return
    with interruptible():
        document = run_here(request)
    if as_json:
        emit_json(document.as_dict())
    else:
        emit_table(render_run(document))
        if document.targets:
            emit_table(render_targets(document.targets))
        emit_prose(document.summarise())
    document.check_released()


def _preview_run(settings: "RunConfig", workspace: Path, wanted: int, as_json: bool) -> None:
    """Print a few questions that went through everything.

    Raises:
        SynthError: that ended the preview early.
    """
    from pipelines.cli.preview import preview_run, render_preview

    with interruptible():
        preview, ended = preview_run(settings, workspace, wanted)
    emit_json(to_json(preview)) if as_json else emit_table(render_preview(preview))
    if ended:
        raise ended


@app.command("status")
def status_command(
    run: RunOption = "",
    workspace: WorkspaceOption = WORKSPACE,
    as_json: JsonOption = False,
) -> None:
    """Say where the run in a workspace stands. One that is under way is not disturbed."""
    from pipelines.cli.naming import looking_at
    from pipelines.cli.status import render_status, summarise_workspace

    with looking_at(workspace, run):
        status = summarise_workspace(workspace)
    emit_json(to_json(status)) if as_json else emit_table(render_status(status))


@app.command("doctor")
def doctor_command(  # noqa: PLR0913 - as above
    recipe: RecipeOption = "",
    config: ConfigOption = None,
    set_: SetOption = None,
    deep: Annotated[bool, typer.Option("--deep", help="Read every file and compare its sha256.")] = False,
    run: RunOption = "",
    workspace: WorkspaceOption = WORKSPACE,
    as_json: JsonOption = False,
) -> None:
    """Check that configuration, input, disk and models are ready. Servers are sent a few tokens each."""
    from pipelines.cli.doctor import examine_run, is_refused, render_findings
    from pipelines.cli.naming import RunChoice, make_request
    from pipelines.run.progress import following, make_reporter

    choice = RunChoice(run, recipe, tuple(config or ()), tuple(set_ or ()))
    settings = make_request(choice, workspace).config
    with interruptible("nothing was changed"), following(make_reporter()):
        findings = examine_run(settings, workspace, deep)
    ready = not is_refused(findings)
    emit_json({"ready": ready, "findings": to_json(findings)}) if as_json else emit_table(render_findings(findings))
    if not ready:
        raise typer.Exit(2)


@app.command("plan")
def plan_command(  # noqa: PLR0913 - as above
    recipe: RecipeOption = "",
    config: ConfigOption = None,
    sample: Annotated[
        int, typer.Option("--sample", min=0, help="Run so many seeds first; say what they made and estimate by them.")
    ] = 0,
    set_: SetOption = None,
    run: RunOption = "",
    workspace: WorkspaceOption = WORKSPACE,
    as_json: JsonOption = False,
) -> None:
    """Say what a run would still do and cost. Costs are as measured here, else bounds."""
    from pipelines.cli.commands import plan_by_sample
    from pipelines.cli.naming import RunChoice, make_request
    from pipelines.cli.plan import estimate_run, render_estimate
    from pipelines.cli.yields import render_targets, render_yield

    choice = RunChoice(run, recipe, tuple(config or ()), tuple(set_ or ()))
    settings = make_request(choice, workspace).config
    with interruptible():
        estimate, ended = (
            plan_by_sample(settings, workspace, sample) if sample else (estimate_run(settings, workspace), None)
        )
    if as_json:
        emit_json(to_json(estimate))
    else:
        emit_table(render_estimate(estimate))
        if estimate.targets:
            emit_table(render_targets(estimate.targets))
        if estimate.sample:
            emit_table(render_yield(estimate.sample))
    if ended:
        raise ended


@app.command("serve-model")
def serve_model_command(
    role: Annotated[str, typer.Argument(help="Role whose model is served, or a name under models.solvers.")],
    recipe: RecipeOption = "",
    config: ConfigOption = None,
    set_: SetOption = None,
    run: RunOption = "",
    workspace: WorkspaceOption = WORKSPACE,
) -> None:
    """Start vLLM's server for a role, until Ctrl-C. The configuration says how."""
    from pipelines.cli.naming import RunChoice, make_request
    from pipelines.run.workspace import Workspace
    from pipelines.services.clients.serving import serve_model

    settings = make_request(RunChoice(run, recipe, tuple(config or ()), tuple(set_ or ())), workspace).config
    with interruptible("the server is ended"):
        serve_model(settings, role, Workspace(workspace.resolve()).logs, emit)


@app.command("prune")
def prune_command(
    yes: Annotated[bool, typer.Option("--yes", help="Remove it; without it only say what would go.")] = False,
    workspace: WorkspaceOption = WORKSPACE,
    as_json: JsonOption = False,
) -> None:
    """Say, or remove, what no run and no release needs. Recorded replies and pictures stay."""
    from pipelines.cli.pruning import prune_workspace, render_leftovers

    leftovers = prune_workspace(workspace, yes)
    emit_json(to_json(leftovers)) if as_json else emit_table(render_leftovers(leftovers, yes))


@app.command("sql")
def sql_command(
    statement: Annotated[str, typer.Argument(help="SQL over seeds, paths, ..., rejections, failures, funnel, pages.")],
    run: RunOption = "",
    workspace: WorkspaceOption = WORKSPACE,
    as_json: JsonOption = False,
) -> None:
    """Ask DuckDB about every dataset, refused rows included."""
    from pipelines.cli.naming import looking_at
    from pipelines.run.views import render_result, run_sql

    with looking_at(workspace, run):
        result = run_sql(workspace, statement)
    emit_json(result.as_dicts()) if as_json else emit_table(render_result(result))


@app.command("explain")
def explain_command(
    record_id: Annotated[str, typer.Argument(help="Id, or the beginning of one, of any row of any stage.")],
    run: RunOption = "",
    workspace: WorkspaceOption = WORKSPACE,
    as_json: JsonOption = False,
) -> None:
    """Show everything known about one row. Its id may be cut to its beginning."""
    from pipelines.cli.naming import looking_at
    from pipelines.cli.view.cards import explain_record, render_card

    with looking_at(workspace, run):
        card = explain_record(workspace, record_id)
    emit_json(to_json(card)) if as_json else emit_table(render_card(card))


@app.command("view")
def view_command(
    port: Annotated[int, typer.Option("--port", min=0, max=65535, help="Of the loopback; 0 takes a free one.")] = 0,
    html: Annotated[
        Path | None, typer.Option("--html", help="Write one page to send instead: funnel, reasons, a few questions.")
    ] = None,
    no_open: Annotated[bool, typer.Option("--no-open", help="Print the address and open no browser.")] = False,
    run: RunOption = "",
    workspace: WorkspaceOption = WORKSPACE,
    as_json: JsonOption = False,
) -> None:
    """Look through a workspace in a browser, until Ctrl-C. Refused rows are shown, too."""
    from pipelines.cli.naming import looking_at
    from pipelines.cli.view.pages import write_page
    from pipelines.cli.view.server import serve_view

    def say(address: str) -> None:
        emit_json({"address": address}) if as_json else emit(f"{address}  (Ctrl-C ends it)")

    with looking_at(workspace, run):
        if html is None:
            serve_view(workspace, port, not no_open, say)
        else:
            write_page(workspace, html)
            emit_json({"page": str(html)}) if as_json else emit(str(html))


@app.command("world")
def world_command(
    out: Annotated[Path, typer.Argument(help="Folder to write; it must not exist or be empty.")],
    entities: Annotated[int, typer.Option(min=60, max=200_000, help="Articles about entities.")] = 2000,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the generator.")] = 7,
    workspace: WorkspaceOption = WORKSPACE,
    as_json: JsonOption = False,
) -> None:
    """Generate a toy Wikipedia, with the truth beside it. It has a dump, tables, Wikidata and pictures."""
    from pipelines.toy.publishing import write_world
    from pipelines.toy.world import WorldConfig

    summary = write_world(out, WorldConfig(entities=entities, seed=seed))
    emit_json(to_json(summary)) if as_json else emit(
        f"{out}: {', '.join(f'{name} {count:,}' for name, count in summary.items())}"
    )
