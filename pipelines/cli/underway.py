"""What ``synth status`` shows of a run under way: who, where, how far, what it has spent and what it waits for."""

from datetime import UTC, datetime
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.console import Group, RenderableType
from rich.table import Column, Table
from rich.text import Text

from pipelines.run.underway import OUTCOMES, RunProgress, WorkProgress, describe_waits
from schemas.manifest import Usage

MINUTE = 60.0


def describe_run(run: RunProgress) -> dict[str, Any]:
    """Return a run as ``synth status --json`` prints it; times are UTC."""
    return {
        "run": run.run,
        "recipe": run.recipe,
        "alive": run.is_alive,
        "started": _name_time(run.started),
        "heard": _name_time(run.heard),
        "stage": run.find_stage(),
        "stages": list(run.stages),
        "work": [
            work.model_dump(mode="json") | {"seconds_left": work.seconds_left}
            for work in run.work
            if work.open or work.done
        ],
        "in_flight": run.in_flight,
        "failures": run.failures,
        "usage": run.usage.model_dump(mode="json"),
        "waits": [
            {
                "place": wait.place,
                "cause": wait.cause,
                "seconds": round(run.now - wait.since, 1),
                "requests": wait.requests,
                "until": _name_time(wait.until) if wait.until else None,
            }
            for wait in run.waits
        ],
        "processes": [
            {
                "role": process.role,
                "host": process.host,
                "pid": process.pid,
                "state": process.find_state(run.now),
                "heard_seconds_ago": round(run.now - process.heard, 1),
            }
            for process in run.processes
        ],
    }


def render_run(run: RunProgress) -> RenderableType:
    """Return what is shown of a run, above the stages of its workspace."""
    if not run.is_alive:
        return Group(*(Text(f"{line}") for line in _explain_silence(run)))
    at = run.find_stage()
    where = f"stage {at} of {len(run.stages)}" if at else "at no stage yet" if not run.stages else "between stages"
    head = (
        f"Run {run.run} of {run.recipe}, since {_name_time(run.started)} ({_tell_span(run.now - run.started)}): {where}"
    )
    table = Table("stage", *(Column(name, justify="right") for name in _COLUMNS), box=SIMPLE_HEAD, padding=(0, 1, 0, 0))
    for work in run.work:
        if work.open:
            table.add_row(Text(work.what), *_list_cells(work))
    waits = describe_waits(run.waits, run.now)
    lines = [_tell_requests(run.in_flight, run.failures, run.usage), *([waits] if waits else []), *_list_processes(run)]
    return Group(Text(head, style="bold"), table, *map(Text, lines), Text(""))


_COLUMNS = ("done", "of", "a second", "time left", *OUTCOMES, "backlog", "shards")


def _list_cells(work: WorkProgress) -> list[str]:
    left = work.seconds_left
    done = f"{work.done:,}" + ("" if work.unit == "rows" else f" {work.unit}")
    numbers = [work.outcomes.get(name, 0) for name in OUTCOMES] + [work.backlog_rows, work.backlog_shards]
    times = [f"{work.rate:,.1f}", "-" if left is None else _tell_span(left)]
    return [done, f"{work.total:,}" if work.total else "-", *times, *(f"{number:,}" for number in numbers)]


def _tell_requests(in_flight: int, failures: int, usage: Usage) -> str:
    said = f"{in_flight:,} requests in flight; {usage.calls:,} asked, {usage.cached_calls:,} recorded, "
    said += f"{failures:,} failed, {usage.retries:,} sent again; {usage.tokens_in + usage.tokens_out:,} tokens"
    return said + f"; cost {usage.cost:,.4g}"


def _list_processes(run: RunProgress) -> list[str]:
    return [
        f"{process.role} {process.pid} on {process.host}: {process.find_state(run.now)}, "
        f"last heartbeat {_tell_span(run.now - process.heard)} ago"
        for process in run.processes
    ]


def _explain_silence(run: RunProgress) -> list[str]:
    head = f"Run {run.run} of {run.recipe} did not end and has no heartbeat: `synth run` goes on from there"
    return [head, *_list_processes(run), ""]


def _tell_span(seconds: float) -> str:
    whole = max(0, round(seconds))
    if whole < 2 * MINUTE:
        return f"{whole} s"
    return f"{whole / MINUTE:,.0f} min" if whole < 120 * MINUTE else f"{whole / 3600:,.1f} h"


def _name_time(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="seconds")
