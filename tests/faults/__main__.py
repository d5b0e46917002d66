"""``python -m tests.faults [--write]``: the table of all faults, printed or written to ``table.md``."""

import sys
from pathlib import Path

from tests.faults.listed import HELD_LISTED, HELD_SURVIVED, LISTED, SURVIVED, Held, Row

TABLE = Path(__file__).parent / "table.md"
HEAD = """\
# Faults: before and after

Made by `python -m tests.faults --write` from `listed.py`; a test holds it equal. `make bench` tries each row of
its own; of the others the test is named that does. *Before* was measured when 403 faults were tried after issue 7;
*survived* says that the fault ended well then, too.
"""


def describe(row: Row | Held) -> str:
    """Return one line of the table."""
    if isinstance(row, Held):
        after, then = row.after, f"{row.then} (`{row.test.rpartition('::')[2]}`)"
    else:
        words = f": …{row.words}…" if row.words else ""
        after, then = f"exit {row.code}{words}", row.then.__doc__ or ""
    return f"| {row.fault} | {row.before or 'survived'} | {after} | {then} |"


def render_table() -> str:
    """Return the whole table as Markdown."""
    rows = (*LISTED, *HELD_LISTED, *SURVIVED, *HELD_SURVIVED)
    lines = ["| case | before | after | next run |", "|---|---|---|---|", *map(describe, rows)]
    return "\n".join([HEAD, *lines, ""])


if __name__ == "__main__":
    if "--write" in sys.argv[1:]:
        TABLE.write_text(render_table(), encoding="utf-8")
    sys.stdout.write(render_table())
