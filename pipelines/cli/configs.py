"""Commands about configurations: a file to begin with, and every key with its value and who set it."""

from pathlib import Path
from typing import Annotated

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
)


@app.command("config")
def config_command(
    prefix: Annotated[
        list[str] | None, typer.Argument(help="Section or key, such as seeds or paths.hops.", metavar="[PREFIX]...")
    ] = None,
    recipe: RecipeOption = "",
    config: ConfigOption = None,
    set_: SetOption = None,
    workspace: WorkspaceOption = WORKSPACE,
    as_json: JsonOption = False,
) -> None:
    """Print every key of a configuration, its value and its source. Beside it stands what it means."""
    from pipelines.cli.settings import describe_keys, list_keys, render_keys

    keys = list_keys(recipe, config or (), set_ or (), prefix or ())
    emit_json(describe_keys(keys)) if as_json else emit_table(render_keys(keys))


@app.command("init")
def init_command(
    folder: Annotated[Path, typer.Argument(help="Where synth.toml is written.", metavar="DIR")],
    recipe: RecipeOption = "opensearch-vl",
    workspace: WorkspaceOption = WORKSPACE,
    as_json: JsonOption = False,
) -> None:
    """Write a configuration to begin with. It has corpus, pictures, budget and two models."""
    from pipelines.cli.settings import write_starter

    path = write_starter(folder, recipe)
    emit_json({"config": str(path)}) if as_json else emit(f"{path}: fill it in, then synth doctor --config {path}")
