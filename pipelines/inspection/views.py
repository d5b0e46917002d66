"""DuckDB over a workspace: open its views, ask them one reading statement, write the catalogue file.

The catalogue ``synth.duckdb`` holds views with paths relative to the workspace, so that a moved workspace stays whole:
open it inside the workspace, or after ``SET file_search_path``. Queries of ours run in memory instead, with absolute
paths and without access to any file outside the workspace. No extension is ever downloaded.
"""

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

from pipelines.errors import ConfigError, CorruptInput, Unavailable
from pipelines.files import clear_temps, explain_os_error, replacing
from pipelines.inspection.catalogue import View, list_views, quote_text

CATALOGUE = "synth.duckdb"
STORAGE_VERSION = "v1.0.0"
"""Any DuckDB since 1.0 opens the catalogue."""
OFFLINE = {
    "autoinstall_known_extensions": "false",
    "autoload_known_extensions": "false",
    "python_enable_replacements": "false",
}
Form = Literal["table", "json", "csv"]
READING = ("SELECT", "EXPLAIN")
LONGEST_CELL = 200


@dataclass(frozen=True, slots=True)
class QueryRows:
    """What a statement returned."""

    columns: tuple[str, ...]
    rows: tuple[tuple[Any, ...], ...]

    def as_dicts(self) -> list[dict[str, Any]]:
        """Return each row by column name."""
        return [dict(zip(self.columns, row, strict=True)) for row in self.rows]


def open_views(workspace_root: Path) -> duckdb.DuckDBPyConnection:
    """Open an in-memory database with every view; it can read files of the workspace and nothing else.

    Raises:
        ConfigError: if there is no workspace there.
    """
    root = workspace_root.absolute()
    if not root.is_dir():
        raise ConfigError(f"workspace {workspace_root}: there is no such folder; run synth run first")
    connection = duckdb.connect(":memory:", config=dict(OFFLINE))
    _create_views(connection, list_views(root, absolute=True))
    connection.execute(f"SET allowed_directories = [{quote_text(root.as_posix())}]")
    connection.execute("SET enable_external_access = false")
    connection.execute("SET lock_configuration = true")
    return connection


def _create_views(connection: duckdb.DuckDBPyConnection, views: list[View]) -> None:
    for view in views:
        name = view.name.replace('"', '""')
        try:
            connection.execute(f'CREATE VIEW "{name}" AS {view.sql}')
        except duckdb.Error as error:
            raise CorruptInput(
                f"view {view.name}: {error}; remove the folder of the damaged file and run again"
            ) from error


def write_catalogue(workspace_root: Path) -> Path:
    """Write ``synth.duckdb`` into the workspace, whole or not at all, and return its path.

    Raises:
        ConfigError: if there is no workspace there, or it cannot be written to.
        Unavailable: if the disk is full.
    """
    root = workspace_root.absolute()
    if not root.is_dir():
        raise ConfigError(f"workspace {workspace_root}: there is no such folder; run synth run first")
    clear_temps(root)
    try:
        with replacing(root / CATALOGUE) as temp, duckdb.connect(":memory:", config=dict(OFFLINE)) as connection:
            connection.execute(f"SET file_search_path = {quote_text(root.as_posix())}")
            connection.execute(f"ATTACH {quote_text(temp.as_posix())} AS made (STORAGE_VERSION '{STORAGE_VERSION}')")
            connection.execute("USE made")
            _create_views(connection, list_views(root, absolute=False))
            connection.execute("USE memory")
            connection.execute("DETACH made")
    except OSError as error:
        raise explain_os_error(error, f"catalogue of {workspace_root}") from error
    except duckdb.IOException as error:
        # DuckDB gives no number of the error, only its text, over several lines.
        said = "the disk is full" if "No space left" in str(error) else " ".join(str(error).split())
        message = f"catalogue of {workspace_root}: {said}; mend that and run the same command again"
        raise Unavailable(message) from error
    return root / CATALOGUE


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


def render_result(found: QueryRows, form: Form = "table") -> Table | str:
    """Return rows as a rich table (long cells cut), or as JSON or CSV text with nothing cut."""
    if form == "json":
        return json.dumps(found.as_dicts(), ensure_ascii=False, indent=1, default=str)
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
