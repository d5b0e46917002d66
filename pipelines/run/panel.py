"""The live panel of a run on a terminal: its stages, requests, tokens, money, and what it waits for.

It is drawn below the lines that the run says. A terminal that changes its size is cleared and drawn anew. When the run
ends early, the last panel stays as plain lines. What goes wrong with the panel is no error of the run.
"""

import logging
import os
import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TextIO

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.table import Table
from rich.text import Text

from pipelines.run.underway import RunProgress, WorkProgress, describe_waits

_LOG = logging.getLogger(__name__)
EVERY = 0.25
"""Seconds between two drawings."""
WIDE = 110
"""Columns from which what waits at each stage is shown, too."""
MINUTE, HOUR = 60.0, 3600.0
LEAST_STAGES = 1
"""Fewest lines of stages, however low the terminal is."""


@dataclass(slots=True)
class Panel:
    """Draws a run again and again, below its lines; the first error is logged, and after it nothing is drawn."""

    console: Console
    look: Callable[[], RunProgress]
    log: Path
    _live: Live | None = None
    _size: tuple[int, int] = (0, 0)
    _said: deque[str] = field(default_factory=lambda: deque(maxlen=100))
    """The last lines, which are printed again when the terminal is cleared."""
    _lock: threading.RLock = field(default_factory=threading.RLock)
    _stop: threading.Event = field(default_factory=threading.Event)
    _broken: bool = False

    def say(self, line: str) -> None:
        """Print a line above the panel, or where the panel was."""
        with self._lock:
            self._said.append(line)
            self._try(partial(self._print, line))

    def draw(self) -> None:
        """Draw the run as it is now."""
        if not self._broken:
            self._try(self._draw)

    def keep_drawing(self) -> None:
        """Draw until the run ends."""
        while not self._stop.wait(EVERY):
            self.draw()

    def end(self, is_kept: bool) -> None:
        """Give the terminal back; the last drawing stays if ``is_kept``."""
        self._stop.set()
        self.draw()
        self._try(partial(self._give_back, is_kept))

    def _try(self, act: Callable[[], None]) -> None:
        """Use the terminal; what then goes wrong ends the panel, and neither ends the run nor hides its own error."""
        with self._lock:
            try:
                act()
            except Exception as error:  # noqa: BLE001 - the numbers may be odd, the terminal may be gone
                self._stop.set()
                if not self._broken:
                    self._broken = True
                    self._try(partial(self._give_back, True))
                    _LOG.warning("the panel ends: %s: %s", type(error).__name__, error)

    def _draw(self) -> None:
        size = self.console.size
        if self._live is None or size != self._size:
            self._begin_anew(size)
        if self._live is not None:
            self._live.update(render_panel(self.look(), self.log, size.width, size.height - 1), refresh=True)

    def _give_back(self, is_kept: bool) -> None:
        if self._live is not None:
            self._live.transient = not is_kept
            self._live.stop()

    def _begin_anew(self, size: tuple[int, int]) -> None:
        if self._live is not None:
            # Lines of another width lie nobody knows where.
            self._live.stop()
            self.console.clear()
            for line in list(self._said)[-size[1] :]:
                self._print(line)
        self._size = size
        # What goes to stdout is the result, perhaps into a file.
        self._live = Live(console=self.console, auto_refresh=False, redirect_stdout=False, transient=True)
        self._live.start()

    def _print(self, line: str) -> None:
        self.console.print(Text(line, overflow="fold"))


@contextmanager
def open_panel(out: TextIO, look: Callable[[], RunProgress], log: Path) -> Iterator[Panel]:
    """Show the panel while the block lasts; if that ends with an error, or an interrupt, the last one stays."""
    panel, is_kept = Panel(Console(file=out, highlight=False), look, log), True
    thread = threading.Thread(target=panel.keep_drawing, name="panel", daemon=True)
    try:
        panel.draw()
        thread.start()
        yield panel
        is_kept = False
    finally:
        panel.end(is_kept)


def render_panel(run: RunProgress, log: Path, width: int, height: int) -> RenderableType:
    """Return a run in at most so many columns and lines; from 110 columns on with what waits at each stage."""
    below: list[Text] = [*_list_totals(run), *_list_waits(run), _name("log", _shorten(log))]
    console = Console(width=width)
    used = 2 + sum(len(line.wrap(console, width)) for line in below)
    return Group(_render_head(run, width), _render_stages(run, width, max(height - used, LEAST_STAGES)), *below)


def _render_head(run: RunProgress, width: int) -> Text:
    what = f"synth run {run.recipe}: {_describe_place(run)}"
    spent = tell_span(run.now - run.started)
    return Text(f"{what[: width - len(spent) - 1]:<{width - len(spent)}}{spent}", style="bold", no_wrap=True)


def _describe_place(run: RunProgress) -> str:
    """Return at which of its stages a run is; several that follow one another may be at work."""
    open_ = [work.what for work in run.work if work.open]
    if not run.stages:
        return open_[0] if open_ else "it begins"
    at = [place for place, stage in enumerate(run.stages, 1) if stage in open_]
    if not at:
        return f"between stages, {len(run.stages)} in all"
    places = f"{at[0]}" if len(at) == 1 else f"{at[0]}-{at[-1]}"
    return f"stage {places} of {len(run.stages)}, {run.stages[at[0] - 1]}" + (" and on" if len(at) > 1 else "")


def _render_stages(run: RunProgress, width: int, height: int) -> Table:
    table, is_wide = Table(box=None, padding=(0, 1, 0, 0), pad_edge=False, header_style="dim"), width >= WIDE
    table.add_column("stage", no_wrap=True)
    numbers = ["done", "kept", "rejected", "failed", "per s", *(["waiting", "shards"] if is_wide else [])]
    for name in numbers:
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("state", no_wrap=True)
    work = {each.what: each for each in run.work}
    names = [*(name for name in work if name not in run.stages and (work[name].open or not run.stages)), *run.stages]
    first, last = _choose_window(names, [name in work and work[name].open for name in names], height)
    for name in names[first:last]:
        style = "" if name in work and work[name].open else "dim"
        table.add_row(name, *_list_cells(work.get(name), is_wide), style=style)
    return table


def _choose_window(names: Sequence[str], is_open: Sequence[bool], height: int) -> tuple[int, int]:
    """Return which of the stages are shown: all, or so many that those at work are among them."""
    at = is_open.index(True) if True in is_open else 0
    first = max(0, min(at - (height > 2), len(names) - height))
    return first, first + height


def _list_cells(work: WorkProgress | None, is_wide: bool) -> list[str]:
    if work is None:
        return [*[""] * (7 if is_wide else 5), "to do"]
    if not (work.open or work.done or work.shards):
        return [*[""] * (7 if is_wide else 5), "done before" if work.unit == "rows" else "done"]
    # How many rows will come is not known while the stage before is at work.
    come = work.done + work.backlog_rows if work.open else 0
    whole = f"/{work.total:,}" if work.total else f"/{come:,}+" if come else ""
    cells = [f"{work.done:,}{whole}"]
    if work.unit != "rows":
        cells += ["", "", ""]
    else:
        cells += [f"{work.outcomes.get(name, 0):,}" for name in ("kept", "rejected", "failed")]
    cells.append((f"{work.rate:,.0f}" if work.rate >= 100 else f"{work.rate:,.1f}") if work.open else "")
    if is_wide:
        cells += [f"{work.backlog_rows:,}", f"{work.backlog_shards:,}"]
    left = work.seconds_left
    state = "done" if not work.open else "running" if left is None else f"{tell_span(left)} left"
    return [*cells, state]


def _list_totals(run: RunProgress) -> Iterator[Text]:
    usage = run.usage
    said = f"{run.in_flight:,} in flight, {usage.calls:,} answered, {usage.cached_calls:,} recorded before"
    trouble = [
        f"{count:,} {what}" for count, what in ((run.failures, "failed"), (usage.retries, "sent again")) if count
    ]
    yield _name("requests", ", ".join([said, *trouble]))
    money = f"money {usage.cost:,.2f}" if usage.cost >= 1 or not usage.cost else f"money {usage.cost:.4f}"
    if limit := max(process.money for process in run.processes):
        money += f" of {limit:,.2f} ({usage.cost / limit:.0%})"
    yield _name("tokens", f"{usage.tokens_in:,} in, {usage.tokens_out:,} out; {money}")


def _list_waits(run: RunProgress) -> Iterator[Text]:
    waits = run.waits
    for wait in waits[:2]:
        yield _name("waiting", describe_waits([wait], run.now).removeprefix("waiting "), "yellow")
    if len(waits) > 2:
        yield _name("waiting", f"for {len(waits) - 2:,} others, too", "yellow")


def _name(name: str, text: str, style: str = "") -> Text:
    return Text(f"{name:<9}{text}", style=style, overflow="fold")


def _shorten(path: Path) -> str:
    """Return a path as it is seen from here, where that is shorter."""
    return min(str(path), os.path.relpath(path), key=len)


def tell_span(seconds: float) -> str:
    """Return a time in its two largest units."""
    whole = max(0, round(seconds))
    if whole < MINUTE:
        return f"{whole} s"
    if whole < HOUR:
        return f"{whole // 60} min {whole % 60:02} s"
    return f"{whole // 3600:,} h {whole % 3600 // 60:02} min"
