"""``synth deploy``: the request to the process that knows Prefect, and which workers to start where."""

import json
import shlex
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from pipelines.cli.console import (
    WORKSPACE,
    ConfigOption,
    JsonOption,
    LimitOption,
    RecipeOption,
    SetOption,
    WorkspaceOption,
    app,
    emit,
    emit_json,
)

NIGHTLY = "0 2 * * *"
LAST_WORDS = """Start a worker for each pool, in the environment of synth and with the variables that name keys:
{workers}
A run now: {run}
Runs start in {directory}; a worker elsewhere needs that folder, and the workspace by the same path."""


def deploy_run(parameters: Mapping[str, Any], cron: str, timezone: str, name: str, split: bool) -> dict[str, Any]:
    """Deploy a run to the Prefect server at ``PREFECT_API_URL``.

    ``name`` tells workspaces of one server apart and may be empty; ``split`` schedules the run in parts.

    Returns:
        What was done to each pool and deployment.
    """
    own = {"cron": cron, "timezone": timezone, "name": name, "split": split}
    request = {"parameters": dict(parameters), "directory": str(Path.cwd()), **own}
    command = [sys.executable, "-m", "flows.deployments", json.dumps(request)]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode:
        raise SystemExit(done.returncode)
    scheduled = f"{'nightly' if split else 'synthesize'}/{f'{name}-' if name else ''}nightly"
    return {**json.loads(done.stdout), "scheduled": scheduled}


def describe_deployed(deployed: Mapping[str, Any]) -> str:
    """Return what was done, and the commands that start what runs it."""
    lines = [f"pool {name}: {done}" for name, done in deployed["pools"].items()]
    lines += [f"deployment {name}: {done}" for name, done in deployed["deployments"].items()]
    prefect = shlex.quote(str(Path(sys.executable).parent / "prefect"))
    start = f"  PREFECT_API_URL={shlex.quote(deployed['server'])} {prefect} worker start --type process --pool"
    words = LAST_WORDS.format(
        workers="\n".join(f"{start} {name}" for name in deployed["pools"]),
        run=f"{prefect} deployment run {deployed['scheduled']}",
        directory=deployed["directory"],
    )
    return "\n".join([*lines, words])


@app.command("deploy")
def deploy_command(  # noqa: PLR0913 - a command line has the options it has
    run: Annotated[
        str, typer.Argument(help="Run that is deployed, or a recipe, as of `synth run`.", metavar="[RUN]")
    ] = "",
    recipe: RecipeOption = "",
    config: ConfigOption = None,
    limit: LimitOption = 0,
    set_: SetOption = None,
    cron: Annotated[str, typer.Option("--cron", help="When the run starts: minute hour day month weekday.")] = NIGHTLY,
    timezone: Annotated[str, typer.Option("--timezone", help="Of --cron, such as Europe/Berlin.")] = "UTC",
    name: Annotated[str, typer.Option("--name", help="Of this workspace, where a server runs several.")] = "",
    split: Annotated[bool, typer.Option("--split", help="Schedule the run in parts, each in its own pool.")] = False,
    workspace: WorkspaceOption = WORKSPACE,
    as_json: JsonOption = False,
) -> None:
    """Give a Prefect server a run every night. A second time changes nothing."""
    from pipelines.cli.naming import RunChoice, make_request

    # Refused now and not at two in the night; and by then another run may be the last one.
    choice = RunChoice(run, recipe, tuple(config or ()), tuple(set_ or ()), limit)
    parameters = {
        "workspace": str(workspace.resolve()),
        "name": make_request(choice, workspace).name,
        "recipe": recipe,
        "configs": [str(path.resolve()) for path in config or []],
        "limit": limit,
        "settings": set_ or [],
    }
    deployed = deploy_run(parameters, cron, timezone, name, split)
    emit_json(deployed) if as_json else emit(describe_deployed(deployed))
