"""Commands about configurations: every key, where a value comes from, a file to begin with, a schema for editors."""

from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from pipelines.cli.console import (
    WORKSPACE,
    ConfigOption,
    JsonOption,
    ModelsOption,
    RecipeOption,
    SetOption,
    WorkspaceOption,
    app,
    emit,
    emit_json,
    emit_table,
    to_json,
)


class _KeysFirst(TyperGroup):
    """``synth config seeds`` is ``synth config keys seeds``: what is no command of the group is of its first one."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:  # noqa: ANN401 - of the library below typer
        named = args and (args[0] in self.commands or args[0] == "--help")
        return super().parse_args(ctx, args if named else ["keys", *args])


config = typer.Typer(
    cls=_KeysFirst, help="Every key of the configuration, and where its values come from; alone: the keys."
)
app.add_typer(config, name="config")


@config.command("keys")
def keys_command(  # noqa: PLR0913 - a command line has the options it has
    key: Annotated[
        list[str] | None, typer.Argument(help="Section or key, such as seeds or paths.hops.", metavar="[PREFIX]...")
    ] = None,
    recipe: RecipeOption = "",
    config: ConfigOption = None,
    models: ModelsOption = "",
    set_: SetOption = None,
    workspace: WorkspaceOption = WORKSPACE,
    as_json: JsonOption = False,
) -> None:
    """List every key: its type, its default, what it means, what is allowed, and its value in a recipe."""
    from pipelines.cli.commands import lay_options
    from pipelines.cli.settings import list_keys, render_keys
    from pipelines.config.loading import parse_config, read_layers

    # Nothing is run, so that what a run needs may be missing: a dump, models.
    tables = read_layers(recipe or ("" if config else "demo"), config or ())
    settings = parse_config(lay_options(tables, (), set_ or [], models))
    keys = list_keys(settings, key or ())
    emit_json(to_json(keys)) if as_json else emit_table(render_keys(keys, settings.recipe))


@config.command("show")
def show_command(  # noqa: PLR0913 - as above
    recipe: RecipeOption = "",
    config: ConfigOption = None,
    changed: Annotated[bool, typer.Option("--changed", help="Leave out what nobody sets.")] = False,
    models: ModelsOption = "",
    set_: SetOption = None,
    workspace: WorkspaceOption = WORKSPACE,
    as_json: JsonOption = False,
) -> None:
    """Print a whole configuration as TOML, and for each value who says it: a recipe, a file, --set, or the default."""
    from pipelines.cli.commands import load_config
    from pipelines.cli.settings import DEFAULT, describe_origins, list_sources, render_values, trace_values

    settings = load_config(recipe, config, set_ or [], models=models)
    sources = list_sources(recipe or ("" if config else "demo"), config or (), set_ or [], models)
    values = [each for each in trace_values(settings, sources) if not changed or each.source != DEFAULT]
    emit_json(describe_origins(values)) if as_json else emit(render_values(values))


@config.command("init")
@app.command("init")
def init_command(
    folder: Annotated[Path, typer.Argument(help="Where synth.toml and its schema are written.", metavar="DIR")],
    recipe: RecipeOption = "",
    workspace: WorkspaceOption = WORKSPACE,
    as_json: JsonOption = False,
) -> None:
    """Write a commented configuration for a recipe: models, prices, pictures and pools."""
    from pipelines.cli.init import write_starter

    path = write_starter(folder, recipe or "demo")
    emit_json({"config": str(path)}) if as_json else emit(f"{path}: fill it in, then synth doctor --config {path}")


@config.command("schema")
def schema_command(workspace: WorkspaceOption = WORKSPACE, as_json: JsonOption = False) -> None:
    """Print the JSON Schema of configuration files, by which editors complete and check them."""
    from pipelines.config.schema import make_schema

    emit_json(make_schema())
