"""Commands that measure the checks, and those that serve runs: worlds and deployments."""

from pathlib import Path
from typing import Annotated

import typer

from pipelines.cli.console import (
    WORKSPACE,
    ConfigOption,
    JsonOption,
    LimitOption,
    ModelsOption,
    RecipeOption,
    SetOption,
    WorkspaceOption,
    app,
    bench,
    emit,
    emit_json,
    emit_table,
    to_json,
)

NIGHTLY = "0 2 * * *"


@app.command("deploy")
def deploy_command(  # noqa: PLR0913 - a command line has the options it has
    run: Annotated[
        str, typer.Argument(help="Run that is deployed, or a recipe, as of `synth run`.", metavar="[RUN]")
    ] = "",
    recipe: RecipeOption = "",
    config: ConfigOption = None,
    limit: LimitOption = 0,
    budget: Annotated[float, typer.Option("--budget", min=0.0, help="Money a run may spend; 0 is no limit.")] = 0.0,
    models: ModelsOption = "",
    set_: SetOption = None,
    cron: Annotated[str, typer.Option("--cron", help="When the run starts: minute hour day month weekday.")] = NIGHTLY,
    timezone: Annotated[str, typer.Option("--timezone", help="Of --cron, such as Europe/Berlin.")] = "UTC",
    name: Annotated[str, typer.Option("--name", help="Of this workspace, where a server runs several.")] = "",
    split: Annotated[bool, typer.Option("--split", help="Schedule the run in parts, each in its own pool.")] = False,
    workspace: WorkspaceOption = WORKSPACE,
    as_json: JsonOption = False,
) -> None:
    """Give a Prefect server a run every night: pools, limits, schedules; a second time changes nothing."""
    from pipelines.cli.commands import name_limits
    from pipelines.cli.deploying import deploy_run, describe_deployed
    from pipelines.cli.naming import RunChoice, make_request

    # Refused now and not at two in the night; and by then another run may be the last one.
    limits = tuple(name_limits(limit, budget))
    choice = RunChoice(run, recipe, tuple(config or ()), tuple(set_ or ()), limits, models)
    parameters = {
        "workspace": str(workspace.resolve()),
        "name": make_request(choice, workspace).name,
        "recipe": recipe,
        "configs": [str(path.resolve()) for path in config or []],
        "limit": limit,
        "budget": budget,
        "settings": set_ or [],
        "models": models,
    }
    deployed = deploy_run(parameters, cron, timezone, name, split)
    emit_json(deployed) if as_json else emit(describe_deployed(deployed))


@app.command("world")
def world_command(  # noqa: PLR0913 - as above
    out: Annotated[Path, typer.Argument(help="Folder to write; it must not exist or be empty.")],
    entities: Annotated[int, typer.Option(min=60, max=200_000, help="Articles about entities.")] = 2000,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the generator.")] = 7,
    missing: Annotated[float, typer.Option(min=0.0, max=0.9, help="Share of infobox fields left to the prose.")] = 0.1,
    later: Annotated[bool, typer.Option("--later", help="The same world a year on: some facts have changed.")] = False,
    workspace: WorkspaceOption = WORKSPACE,
    as_json: JsonOption = False,
) -> None:
    """Generate a toy Wikipedia: dump, tables, Wikidata, pictures, and the truth beside them."""
    from pipelines.toy.publishing import write_world
    from pipelines.toy.world import WorldConfig

    summary = write_world(out, WorldConfig(entities=entities, seed=seed, missing=missing), later)
    emit_json(to_json(summary)) if as_json else emit(
        f"{out}: {', '.join(f'{name} {count:,}' for name, count in summary.items())}"
    )


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
    from pipelines.cli.commands import measure_judges
    from pipelines.cli.judge_card import render_judge

    report = measure_judges(pairs, seed, recipe, config, set_ or [], workspace)
    emit_json(to_json(report)) if as_json else emit_table(render_judge(report))
