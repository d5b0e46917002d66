"""Tables that fit their terminal: no heading word and no number is cut where the first column fits beside any other.

A table that is too wide loses its frame, and its wordy columns are wrapped. What still does not fit is shown as several
tables below one another, each with the first column.
"""

from collections.abc import Iterator, Sequence
from copy import copy
from dataclasses import dataclass

from rich.box import SIMPLE_HEAD
from rich.console import Console, Group, RenderableType
from rich.table import Column, Table

LONGEST_WORD = 24
"""Characters of a word that is not cut; longer ones are paths and digests, which may go on in the next line."""

WIDEST = 10_000


@dataclass(frozen=True, slots=True)
class _Need:
    """A column with the widths that its text needs and would take."""

    column: Column
    least: int
    natural: int


def fit(renderable: RenderableType, console: Console) -> RenderableType:
    """Return a renderable with each of its tables made to fit the console's width."""
    if isinstance(renderable, Group):
        return Group(*(fit(part, console) for part in renderable.renderables))
    return _fit_table(renderable, console) if isinstance(renderable, Table) and renderable.columns else renderable


def _fit_table(table: Table, console: Console) -> RenderableType:
    title, caption = table.title or "", table.caption or ""
    bare = copy(table)
    bare.title = bare.caption = None
    natural = console.measure(bare, options=console.options.update(width=WIDEST)).maximum
    if natural <= console.width:
        # What stands over a table, or under it, is wrapped at its width.
        beside = max(
            console.measure(text, options=console.options.update(width=WIDEST)).maximum for text in (title, caption)
        )
        parts = [table if beside <= natural else bare]
    else:
        needs = [_measure(column, table.show_header, console) for column in table.columns]
        parts = [_draw(table, part, _share(part, console.width)) for part in _part(needs, console.width)]
    if parts == [table]:
        return table
    apart = [part for drawn in parts for part in (drawn, "")]
    return Group(*([title] if title else []), *apart[: None if caption else -1], *([caption] if caption else []))


def _measure(column: Column, has_header: bool, console: Console) -> _Need:
    options = console.options.update(width=WIDEST)
    head = [console.measure(column.header, options=options)] if has_header else []
    cells = [console.measure(cell, options=options) for cell in column.cells]
    natural = max((size.maximum for size in [*head, *cells]), default=0)
    # A heading of several words may be wrapped, a number may not.
    keeps = column.no_wrap or column.justify == "right"
    whole = [size.maximum if keeps else min(size.minimum, LONGEST_WORD) for size in cells]
    return _Need(column, max([*whole, *(size.minimum for size in head), column.min_width or 0], default=0), natural)


def _part(needs: Sequence[_Need], width: int) -> Iterator[list[_Need]]:
    """Yield the columns of each table: the first one of all, and as many as fit beside it."""
    first, part = needs[0], [needs[0]]
    for need in needs[1:]:
        if len(part) > 1 and sum(each.least + 1 for each in part) + need.least > width:
            yield part
            part = [first]
        part.append(need)
    yield part


def _share(part: Sequence[_Need], width: int) -> list[int]:
    """Return a width for each column: what it needs, and of the rest as much as it would take in proportion."""
    left = width - sum(need.least + 1 for need in part) + 1
    wanted = sum(need.natural - need.least for need in part)
    share = min(1.0, max(left, 0) / wanted) if wanted else 0.0
    return [need.least + int((need.natural - need.least) * share) for need in part]


def _draw(table: Table, part: Sequence[_Need], widths: Sequence[int]) -> Table:
    drawn = Table(box=SIMPLE_HEAD, padding=0, show_edge=False, show_header=table.show_header)
    for need, width in zip(part, widths, strict=True):
        column = need.column
        drawn.add_column(column.header, justify=column.justify, style=column.style, width=width, overflow="fold")
    for row, cells in zip(table.rows, zip(*(need.column.cells for need in part), strict=True), strict=True):
        drawn.add_row(*cells, style=row.style, end_section=row.end_section)
    return drawn
