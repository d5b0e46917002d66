"""How rollouts went: how many calls they made, by which tools, how they ended, and which were kept."""

from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from pipelines.inspection.rows import read_stage
from schemas.rollouts import Rollout

TOP = 12


@dataclass(frozen=True, slots=True)
class CallBar:
    """Rollouts with one number of tool calls; widths are in percent of the longest bar."""

    calls: int
    kept: int
    refused: int
    kept_width: float
    refused_width: float


@dataclass(frozen=True, slots=True)
class Share:
    """How often one value occurs, and its share in percent."""

    value: str
    count: int
    percent: float


@dataclass(frozen=True, slots=True)
class CourseReport:
    """The rollouts of a run; empty without any."""

    rollouts: int
    kept: int
    mean_calls: float
    """Of the kept ones."""
    bars: tuple[CallBar, ...]
    """By number of calls, from none to the most, those in between that nobody made included."""
    tools: tuple[Share, ...]
    """Of all calls."""
    outcomes: tuple[Share, ...]
    """Of all calls: ``ok`` or the class of the error."""
    endings: tuple[Share, ...]
    """Of all rollouts."""


def report_courses(root: Path) -> CourseReport:
    """Return how the latest rollouts of a workspace went; one at a time is held in memory."""
    kept = {row.record_id for row in read_stage(root, "trajectories")}
    calls: dict[bool, Counter[int]] = {True: Counter(), False: Counter()}
    tools, outcomes, endings = Counter[str](), Counter[str](), Counter[str]()
    for row in read_stage(root, "rollouts"):
        if not isinstance(row, Rollout):
            continue
        seen = [(step.tool, step.observation) for step in row.steps if step.observation is not None]
        calls[row.record_id in kept][sum(bool(tool) for tool, _ in seen)] += 1
        tools.update(tool or "(no call)" for tool, _ in seen)
        outcomes.update("ok" if told.ok else told.error for _, told in seen)
        endings[row.stop_reason] += 1
    number = calls[True].total()
    return CourseReport(
        rollouts=number + calls[False].total(),
        kept=number,
        mean_calls=round(sum(count * rows for count, rows in calls[True].items()) / number, 2) if number else 0.0,
        bars=_make_bars(calls[True], calls[False]),
        tools=_share(tools),
        outcomes=_share(outcomes),
        endings=_share(endings),
    )


def _make_bars(kept: Counter[int], refused: Counter[int]) -> tuple[CallBar, ...]:
    most = max([*kept, *refused], default=-1)
    longest = max((kept[calls] + refused[calls] for calls in range(most + 1)), default=1)
    return tuple(
        CallBar(
            calls,
            kept[calls],
            refused[calls],
            round(100 * kept[calls] / longest, 2),
            round(100 * refused[calls] / longest, 2),
        )
        for calls in range(most + 1)
    )


def _share(counts: Counter[str]) -> tuple[Share, ...]:
    shown = sorted(counts.items(), key=lambda pair: (-pair[1], pair[0]))[:TOP]
    return tuple(Share(value, count, round(100 * count / counts.total(), 1)) for value, count in shown)
