"""DuckDB views over a workspace: every stage's rows, every refused row, the funnel and the corpus.

The catalogue ``synth.duckdb`` holds views with paths relative to the workspace, so that a moved workspace stays whole:
open it inside the workspace, or after ``SET file_search_path``. Our own queries run in memory instead, with absolute
paths and without access to files outside the workspace. No extension is ever downloaded.
"""

import csv
import glob
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
from pipelines.run.naming import describe_others
from pipelines.run.workspace import StageFolder, Workspace
from schemas.reasons import STAGE_REASONS

CORPUS_TABLES = ("pages", "facts", "statements", "redirects", "aliases", "images")
USAGE = "STRUCT(calls BIGINT, cached_calls BIGINT, tokens_in BIGINT, tokens_out BIGINT, cost DOUBLE)"
COUNTS = "rows_in: 'BIGINT', kept: 'BIGINT', rejected: 'MAP(VARCHAR, BIGINT)', failed: 'BIGINT'"
STAGE_MANIFEST = (
    f"{{stage: 'VARCHAR', stage_version: 'BIGINT', key: 'VARCHAR', config_digest: 'VARCHAR', git_commit: 'VARCHAR', "
    f"{COUNTS}, rows_out: 'BIGINT', usage: '{USAGE}', seconds: 'DOUBLE', digest: 'VARCHAR'}}"
)
CORPUS_MANIFEST = f"{{name: 'VARCHAR', builder_version: 'BIGINT', digest: 'VARCHAR', {COUNTS}}}"
NO_REJECTIONS = (
    "SELECT ''::VARCHAR AS stage, ''::VARCHAR AS record_id, ''::VARCHAR AS reason, ''::VARCHAR AS detail, "
    "''::VARCHAR AS key WHERE false"
)
NO_FAILURES = NO_REJECTIONS.replace("reason", "error")


@dataclass(frozen=True, slots=True)
class View:
    """A named query."""

    name: str
    sql: str


@dataclass(frozen=True, slots=True)
class LatestStage:
    """The sealed output of a stage that the last run used."""

    stage: str
    folder: StageFolder

    @property
    def key(self) -> str:
        """The stage key."""
        return self.folder.path.name


def list_latest(root: Path) -> list[LatestStage]:
    """Return the sealed stages that ``latest.json`` names, in pipeline order; an unsealed one is left out."""
    workspace = Workspace(root)
    order = {stage: place for place, stage in enumerate(STAGE_REASONS)}
    latest = [
        LatestStage(stage, workspace.stage(stage, key))
        for stage, key in workspace.read_latest().items()
        if stage != "corpus" and workspace.stage(stage, key).manifest.is_file()
    ]
    return sorted(latest, key=lambda found: (order.get(found.stage, len(order)), found.stage))


def find_corpus(root: Path) -> Path | None:
    """Return the folder of the corpus that the last run used, or None when it is not there."""
    name = Workspace(root).read_latest().get("corpus", "")
    folder = Workspace(root).corpora / name
    return folder if name and (folder / "manifest.json").is_file() else None


def list_views(root: Path, absolute: bool) -> list[View]:
    """Return every view of a workspace.

    Args:
        root: the workspace.
        absolute: write paths from the file system's root instead of relative to the workspace.
    """
    base = root.absolute() if absolute else Path()
    stages, corpus = list_latest(root), find_corpus(root)
    folders = [(found.stage, found.key, base / found.folder.path.relative_to(root)) for found in stages]
    home = base / corpus.relative_to(root) if corpus else None
    sources = [(found[0], found[1], found[2]) for found in folders]
    if corpus is not None and home is not None:
        sources.insert(0, ("corpus", corpus.name, home))
    views = [View(stage, f"SELECT * FROM {_scan(folder / 'part-*.parquet')}") for stage, _, folder in folders]
    views.append(View("rejections", _union_refused(sources, "rejected", "reason") or NO_REJECTIONS))
    views.append(View("failures", _union_refused(sources, "failed", "error") or NO_FAILURES))
    views += _make_manifest_views([folder for _, _, folder in folders], home)
    if corpus is not None and home is not None:
        present = [name for name in CORPUS_TABLES if (corpus / f"{name}.parquet").is_file()]
        views += [View(name, f"SELECT * FROM {_scan(home / f'{name}.parquet')}") for name in present]
    return views


def quote_text(text: str) -> str:
    """Return text as an SQL string."""
    return "'" + text.replace("'", "''") + "'"


def _quote_file(path: Path) -> str:
    """Return a path as an SQL string in which only the name is a pattern: a workspace may be called ``a[1]``."""
    return quote_text(f"{glob.escape(path.parent.as_posix())}/{path.name}")


def _scan(path: Path) -> str:
    return f"read_parquet({_quote_file(path)})"


def _union_refused(sources: list[tuple[str, str, Path]], files: str, column: str) -> str:
    return " UNION ALL ".join(
        f"SELECT {quote_text(stage)} AS stage, record_id, {column}, detail, {quote_text(key)} AS key "
        f"FROM {_scan(folder / f'{files}-*.parquet')}"
        for stage, key, folder in sources
    )


def _make_manifest_views(folders: list[Path], corpus: Path | None) -> list[View]:
    """Return ``manifests`` and ``funnel``; their rows stand in pipeline order, the corpus first."""
    selects = []
    if corpus is not None:
        path = _quote_file(corpus / "manifest.json")
        selects.append(
            "SELECT 'corpus' AS stage, builder_version AS stage_version, name AS key, '' AS config_digest, "
            "'' AS git_commit, rows_in, kept, rejected, failed, kept AS rows_out, "
            f"NULL::{USAGE} AS usage, NULL::DOUBLE AS seconds, digest "
            f"FROM read_json({path}, columns = {CORPUS_MANIFEST})"
        )
    for folder in folders:
        path = _quote_file(folder / "manifest.json")
        selects.append(f"SELECT * FROM read_json({path}, columns = {STAGE_MANIFEST})")
    if not selects:
        return []
    funnel = (
        "SELECT stage, key, rows_in, kept, coalesce(list_sum(map_values(rejected)), 0)::BIGINT AS rejected, failed, "
        "rows_out FROM manifests"
    )
    return [View("manifests", " UNION ALL ".join(selects)), View("funnel", funnel)]


CATALOGUE = "synth.duckdb"
STORAGE_VERSION = "v1.0.0"
"""Any DuckDB since 1.0 opens the catalogue."""
OFFLINE = {
    "autoinstall_known_extensions": "false",
    "autoload_known_extensions": "false",
    "python_enable_replacements": "false",
}
Form = Literal["table", "json", "csv"]
EXPLAIN = "EXPLAIN"
READABLE = ("corpus", "stages", "releases")
"""Folders of a workspace whose files a statement may read: its datasets, and neither replies nor anything else."""
LONGEST_CELL = 200
LONGEST_ERROR = 300


@dataclass(frozen=True, slots=True)
class QueryRows:
    """What a statement returned."""

    columns: tuple[str, ...]
    rows: tuple[tuple[Any, ...], ...]

    def as_dicts(self) -> list[dict[str, Any]]:
        """Return each row by column name."""
        return [dict(zip(self.columns, row, strict=True)) for row in self.rows]


def open_views(workspace_root: Path) -> duckdb.DuckDBPyConnection:
    """Open an in-memory database with every view; it can read the datasets of the workspace and nothing else.

    Raises:
        ConfigError: if there is no workspace there.
    """
    root = workspace_root.absolute()
    if not root.is_dir():
        raise ConfigError(f"workspace {workspace_root}: no such folder; run `synth run` first")
    connection = duckdb.connect(":memory:", config=dict(OFFLINE))
    _create_views(connection, list_views(root, absolute=True))
    readable = ", ".join(quote_text((root / folder).as_posix()) for folder in READABLE)
    connection.execute(f"SET allowed_directories = [{readable}]")
    connection.execute("SET enable_external_access = false")
    connection.execute("SET lock_configuration = true")
    return connection


def _create_views(connection: duckdb.DuckDBPyConnection, views: list[View]) -> None:
    for view in views:
        name = view.name.replace('"', '""')
        try:
            connection.execute(f'CREATE VIEW "{name}" AS {view.sql}')
        except duckdb.Error as error:
            said = " ".join(str(error).split())[:LONGEST_ERROR]
            raise CorruptInput(
                f"view {view.name}: {said}; `synth status --check` names what is damaged, `synth run` makes it again"
            ) from error


def write_catalogue(workspace_root: Path) -> Path:
    """Write ``synth.duckdb`` into the workspace, whole or not at all, and return its path.

    Raises:
        ConfigError: if there is no workspace there, or it cannot be written to.
        Unavailable: if the disk is full.
    """
    root = workspace_root.absolute()
    if not root.is_dir():
        raise ConfigError(f"workspace {workspace_root}: no such folder; run `synth run` first")
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
    """Run one statement that only reads, in a transaction that only reads.

    Raises:
        ConfigError: if it is not exactly one SELECT, FROM, DESCRIBE, SUMMARIZE, SHOW or plain EXPLAIN of one of them,
            or DuckDB refuses it.
    """
    with open_views(workspace_root) as connection:
        names = [
            row[0] for row in connection.execute("SELECT view_name FROM duckdb_views() WHERE NOT internal").fetchall()
        ]
        try:
            _check_reading(connection, statement)
            connection.execute("BEGIN TRANSACTION READ ONLY")
            connection.execute(statement)
            columns = tuple(column[0] for column in connection.description or ())
            return QueryRows(columns, tuple(connection.fetchall()))
        except duckdb.Error as error:
            others = describe_others(Workspace(workspace_root), set(names))
            more = f"\nof other runs: {others}" if others else ""
            raise ConfigError(f"sql: {error}\nviews: {', '.join(sorted(names))}{more}") from error


def _check_reading(connection: duckdb.DuckDBPyConnection, statement: str) -> None:
    """Refuse all but one SELECT, as DuckDB's parser calls everything that reads, or one behind a plain EXPLAIN."""
    found = connection.extract_statements(statement)
    kinds = [entry.type.name for entry in found]
    if kinds == [EXPLAIN]:
        # What EXPLAIN ANALYZE explains is run: COPY behind it writes. Behind a plain EXPLAIN stands a whole statement.
        asked = found[0].query
        behind = asked.lower().index(EXPLAIN.lower()) + len(EXPLAIN)
        try:
            kinds = [entry.type.name for entry in connection.extract_statements(asked[behind:])]
        except duckdb.Error as error:
            raise ConfigError("sql: of EXPLAIN only the plain form is allowed, without ANALYZE or options") from error
    if kinds != ["SELECT"]:
        given = ", ".join(kinds) or "nothing"
        raise ConfigError(
            f"sql: given {given}; one SELECT, FROM, DESCRIBE, SUMMARIZE, SHOW or plain EXPLAIN is allowed"
        )


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
