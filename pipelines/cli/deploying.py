"""``synth deploy``: the request to the process that knows Prefect, and which workers to start where."""

import json
import shlex
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

LAST_WORDS = """Start a worker for each pool, in the environment of synth and with the variables that name keys:
{workers}
A run now: {run}
Runs start in {directory}; a worker elsewhere needs that folder, and the workspace by the same path."""


def deploy_run(parameters: Mapping[str, Any], cron: str, timezone: str, name: str, split: bool) -> dict[str, Any]:
    """Deploy a run to the Prefect server at ``PREFECT_API_URL``.

    ``name`` tells workspaces of one server apart and may be empty; ``split`` schedules the run in parts.

    Returns:
        What was done to each pool and deployment.

    Raises:
        SystemExit: with the code of the failure, which the process names on stderr.
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
