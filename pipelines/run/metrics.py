"""A run under way in Prometheus' text format: rates, backlog, spend and failures, summed over its processes."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from pipelines.run.underway import OUTCOMES, STATES, RunProgress

if TYPE_CHECKING:
    from prometheus_client import Metric

Values = Mapping[tuple[str, ...], float]
"""A metric's values by those of its labels."""

UNDER_WAY = (
    "Whether a process of a run was alive when this was written; after a kill nobody writes 0, so look at the age of "
    "synth_run_heard_timestamp_seconds, too."
)


def write_metrics(path: Path, run: RunProgress | None) -> None:
    """Write the metrics of a run to a file that ends in ``.prom``, for node_exporter's textfile collector.

    Raises:
        OSError: if it cannot be written.
    """
    from prometheus_client import write_to_textfile

    path.parent.mkdir(parents=True, exist_ok=True)
    write_to_textfile(str(path), RunMetrics(run))


def render_metrics(runs: Sequence[RunProgress]) -> str:
    """Return the text that :func:`write_metrics` writes, of the run that lives, else of the latest."""
    from prometheus_client import generate_latest

    chosen = next((run for run in runs if run.is_alive), runs[0] if runs else None)
    return generate_latest(RunMetrics(chosen)).decode()


@dataclass(frozen=True, slots=True)
class RunMetrics:
    """What Prometheus' library collects of a run; without one, that no run is under way."""

    run: RunProgress | None

    def collect(self) -> "Iterator[Metric]":
        """Yield each metric with its values."""
        from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily

        alive = self.run is not None and self.run.is_alive
        yield GaugeMetricFamily("synth_run_under_way", UNDER_WAY, float(alive))
        for family, described in ((GaugeMetricFamily, _list_gauges), (CounterMetricFamily, _list_counters)):
            for name, text, labels, values in described(self.run) if self.run else ():
                metric = family(name, text, labels=labels)
                for place, value in values.items():
                    metric.add_metric(place, value)
                yield metric


Described = tuple[str, str, tuple[str, ...], Values]
"""Name, help, labels and values."""


def _list_gauges(run: RunProgress) -> Iterator[Described]:
    stage, states = ("stage",), [process.find_state(run.now) for process in run.processes]
    work = [work for work in run.work if work.open and work.unit == "rows"]
    yield "synth_run_info", "The run and its recipe.", ("run", "recipe"), {(run.run, run.recipe): 1.0}
    yield "synth_run_started_timestamp_seconds", "When the run began.", (), {(): run.started}
    yield (
        "synth_run_heard_timestamp_seconds",
        "When a process of the run last wrote its file, every two seconds; older than 30 s: no process of it lives.",
        (),
        {(): run.heard},
    )
    counted: Values = {(state,): float(states.count(state)) for state in STATES}
    yield "synth_processes", "Processes of the run by what is known of them.", ("state",), counted
    yield "synth_stages", "Stages that the run goes through.", (), {(): float(len(run.stages))}
    yield "synth_stage_number", "Which of them is under way, from 1; 0 for none.", (), {(): float(run.find_stage())}
    rates: Values = {(each.what,): each.rate for each in work}
    yield "synth_rows_per_second", "Rows done a second since the stage began.", stage, rates
    rows: Values = {(each.what,): float(each.backlog_rows) for each in work}
    yield "synth_backlog_rows", "Rows that are there for a stage and not done.", stage, rows
    shards: Values = {(each.what,): float(each.backlog_shards) for each in work}
    yield "synth_backlog_shards", "Shards that are there for a stage and not done.", stage, shards
    yield "synth_requests_in_flight", "Requests that are not answered yet.", (), {(): float(run.in_flight)}
    places: Values = {(wait.place,): run.now - wait.since for wait in run.waits}
    yield "synth_service_wait_seconds", "For how long requests wait for a service that is away.", ("service",), places


def _list_counters(run: RunProgress) -> Iterator[Described]:
    usage, rows, shards = run.usage, dict[tuple[str, ...], float](), dict[tuple[str, ...], float]()
    for work in run.work:
        if work.unit == "rows":
            rows |= {(work.what, outcome): float(work.outcomes.get(outcome, 0)) for outcome in OUTCOMES}
            shards[work.what,] = float(work.shards)
    yield "synth_rows", "Rows that a stage has done, by how they ended.", ("stage", "outcome"), rows
    yield "synth_shards", "Shards that a stage has written.", ("stage",), shards
    replies: Values = {("asked",): float(usage.calls), ("recorded",): float(usage.cached_calls)}
    yield "synth_replies", "Replies of models and tools, asked for now or recorded before.", ("source",), replies
    yield "synth_failures", "Requests that ended with an error.", (), {(): float(run.failures)}
    yield "synth_retries", "Requests sent again because no complete reply came.", (), {(): float(usage.retries)}
    tokens: Values = {("in",): float(usage.tokens_in), ("out",): float(usage.tokens_out)}
    yield "synth_tokens", "Tokens of models.", ("direction",), tokens
    yield "synth_gpu_seconds", "Seconds of the GPUs behind models.", (), {(): usage.gpu_seconds}
    yield "synth_cost", "What requests cost, in the currency of the configured prices.", (), {(): usage.cost}
