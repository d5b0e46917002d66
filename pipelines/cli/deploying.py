"""``synth deploy``: what is asked of the process that knows Prefect, and what is to be started where."""

import json
import shlex
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

LAST_WORDS = """Start a worker for each pool, in the environment of synth and with the variables that name keys:
{workers}
A run now: {run}
Runs start in {directory}; a worker elsewhere needs that folder, and the workspace by the same path."""


@dataclass(frozen=True, slots=True)
class Schedule:
    """When and how the deployed run starts by itself."""

    cron: str
    timezone: str
    name: str = ""
    split: bool = False


def deploy_run(parameters: Mapping[str, Any], schedule: Schedule) -> dict[str, Any]:
    """Deploy a run to the Prefect server at ``PREFECT_API_URL``.

    Args:
        parameters: of the flow.
        schedule: of its runs.

    Returns:
        What was done to each pool and deployment.

    Raises:
        SystemExit: with the code of the failure, which is said on stderr.
    """
    request = {
        "parameters": dict(parameters),
        "directory": str(Path.cwd()),
        "cron": schedule.cron,
        "timezone": schedule.timezone,
        "name": schedule.name,
        "split": schedule.split,
    }
    command = [sys.executable, "-m", "flows.deployments", json.dumps(request)]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode:
        raise SystemExit(done.returncode)
    return {**json.loads(done.stdout), "scheduled": _name_scheduled(schedule)}


def _name_scheduled(schedule: Schedule) -> str:
    prefix = f"{schedule.name}-" if schedule.name else ""
    return f"{'nightly' if schedule.split else 'synthesize'}/{prefix}nightly"


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
