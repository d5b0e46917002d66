"""``synth sql``: one reading statement over a workspace's views, and its rows as a table, JSON or CSV."""

import csv
import io
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import duckdb
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from pipelines.errors import ConfigError
from pipelines.inspection.views import open_views

Form = Literal["table", "json", "csv"]
READING = ("SELECT", "EXPLAIN")
LONGEST_CELL = 200


@dataclass(frozen=True, slots=True)
class QueryRows:
    """What a statement returned."""

    columns: tuple[str, ...]
    rows: tuple[tuple[Any, ...], ...]


def run_sql(workspace_root: Path, statement: str) -> QueryRows:
    """Run one statement that only reads.

    Raises:
        ConfigError: if it is not exactly one SELECT, FROM, DESCRIBE, SUMMARIZE, SHOW or EXPLAIN, or DuckDB refuses it.
    """
    with open_views(workspace_root) as connection:
        try:
            statements = connection.extract_statements(statement)
            if len(statements) != 1 or statements[0].type.name not in READING:
                kinds = ", ".join(found.type.name for found in statements) or "nothing"
                raise ConfigError(
                    f"sql: given {kinds}; one SELECT, FROM, DESCRIBE, SUMMARIZE, SHOW or EXPLAIN is allowed"
                )
            connection.execute(statements[0])
            columns = tuple(column[0] for column in connection.description or ())
            return QueryRows(columns, tuple(connection.fetchall()))
        except duckdb.Error as error:
            names = [
                row[0]
                for row in connection.execute("SELECT view_name FROM duckdb_views() WHERE NOT internal").fetchall()
            ]
            raise ConfigError(f"sql: {error}\nviews: {', '.join(sorted(names))}") from error


def render_rows(found: QueryRows, form: Form = "table") -> Table | str:
    """Return rows as a rich table (long cells cut), or as JSON or CSV text with nothing cut."""
    if form == "json":
        rows = [dict(zip(found.columns, row, strict=True)) for row in found.rows]
        return json.dumps(rows, ensure_ascii=False, indent=1, default=str)
    if form == "csv":
        buffer = io.StringIO()
        writer = csv.writer(buffer, lineterminator="\n")
        writer.writerows([found.columns, *found.rows])
        return buffer.getvalue()
    table = Table(*map(escape, found.columns))
    for row in found.rows:
        table.add_row(*(Text(_cut("" if cell is None else str(cell))) for cell in row))
    return table


def _cut(text: str) -> str:
    return text if len(text) <= LONGEST_CELL else f"{text[: LONGEST_CELL - 1]}…"
