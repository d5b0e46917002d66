"""DuckDB views over a workspace: every stage's rows, every refused row, the funnel and the corpus.

The catalogue ``synth.duckdb`` holds views with absolute paths, so that any client of DuckDB may open it from anywhere.
In a workspace that was moved the next command writes it again. Our own queries run in memory instead, without access
to files that are no datasets of the workspace. No extension is ever downloaded.
"""

import csv
import glob
import io
import json
import re
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import duckdb
from rich.table import Column, Table
from rich.text import Text

from pipelines.checksums import read_note
from pipelines.errors import ConfigError, CorruptInput, SynthError, Unavailable
from pipelines.files import explain_os_error, replacing, write_text
from pipelines.memory import limit_duckdb
from pipelines.run.naming import describe_others
from pipelines.run.view_sql import (
    NO_HIVE,
    USAGE,
    Source,
    quote_file,
    quote_text,
    scan,
    select_attempts,
    select_costs,
    select_fates,
    select_pictures,
    select_released,
    select_rows,
    select_table,
)
from pipelines.run.workspace import StageFolder, Workspace, pick_releases
from schemas.reasons import STAGE_REASONS

CORPUS_TABLES = ("pages", "facts", "statements", "redirects", "aliases", "images")
COUNTS = "rows_in: 'BIGINT', kept: 'BIGINT', rejected: 'MAP(VARCHAR, BIGINT)', failed: 'BIGINT'"
STAGE_MANIFEST = (
    f"{{stage: 'VARCHAR', stage_version: 'BIGINT', key: 'VARCHAR', config_digest: 'VARCHAR', git_commit: 'VARCHAR', "
    f"{COUNTS}, rows_out: 'BIGINT', usage: '{USAGE}', stopped: '{USAGE}', seconds: 'DOUBLE', digest: 'VARCHAR'}}"
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
    order = {stage: float(place) for place, stage in enumerate(STAGE_REASONS)}
    latest = [
        LatestStage(stage, workspace.stage(stage, key))
        for stage, key in workspace.read_latest().items()
        if stage != "corpus" and workspace.stage(stage, key).manifest.is_file()
    ]
    # A plugin's stage stands behind the one that it reads, which may be a plugin's, too.
    waiting = [found for found in latest if found.stage not in order]
    for _ in range(len(waiting)):
        for found in waiting:
            manifest = found.folder.read_manifest()
            read = [order.get(entry.name, -1.0) for entry in (manifest.inputs if manifest else ())]
            order[found.stage] = max(read, default=-1.0) + 1 / (len(latest) + 1)
    return sorted(latest, key=lambda found: (order[found.stage], found.stage))


def find_corpus(root: Path) -> Path | None:
    """Return the folder of the corpus that the last run used, or None when it is not there."""
    name = Workspace(root).read_latest().get("corpus", "")
    folder = Workspace(root).corpora / name
    return folder if name and (folder / "manifest.json").is_file() else None


def list_views(root: Path) -> list[View]:
    """Return every view of a workspace, with paths from the file system's root."""
    root = root.resolve()
    stages, corpus = list_latest(root), find_corpus(root)
    sources = [(found.stage, found.key, found.folder.path) for found in stages]
    if corpus is not None:
        sources.insert(0, ("corpus", corpus.name, corpus))
    views = [View(found.stage, select_rows(root, found.folder.path)) for found in stages]
    views.append(View("rejections", _union_refused(sources, "rejected", "reason") or NO_REJECTIONS))
    views.append(View("failures", _union_refused(sources, "failed", "error") or NO_FAILURES))
    views += _make_manifest_views([found.folder.path for found in stages], corpus)
    views += _list_answers(root, stages)
    views += _list_plugins(stages)
    if corpus is not None:
        present = [name for name in CORPUS_TABLES if (corpus / f"{name}.parquet").is_file()]
        views += [View(name, select_table(corpus, name)) for name in present]
    return views


def _list_answers(root: Path, stages: Sequence[LatestStage]) -> list[View]:
    """Return the views over stages and releases together; each stands after those that it names."""
    sources = [Source(found.stage, _read_inputs(found.folder), found.folder.path) for found in stages]
    workspace = Workspace(root)
    published = pick_releases(workspace.read_latest())
    folders = {dataset: workspace.releases / dataset / version for dataset, version in published.items()}
    releases = {dataset: folder for dataset, folder in folders.items() if any(folder.glob("proofs/*.parquet"))}
    found = [
        View("released", select_released(root, releases)),
        View("pictures", select_pictures(root, sources)),
        View("costs", select_costs(any(found.stage == "releases" for found in stages)) if stages else ""),
        View("rejected_attempts", select_attempts(root, sources)),
        View("fates", select_fates(sources)),
    ]
    return [view for view in found if view.sql]


def _list_plugins(stages: Sequence[LatestStage]) -> list[View]:
    """Return ``plugins``: those that decided a stage, a row for each of their reasons with what it means."""
    manifests = {found.stage: manifest for found in stages if (manifest := found.folder.read_manifest()) is not None}
    rows = [
        (stage, entry.kind, entry.name, entry.distribution, entry.version, *told)
        for stage, manifest in manifests.items()
        for entry in manifest.plugins
        for told in list(zip(entry.list_reasons(), entry.reasons.values(), strict=True)) or [("", "")]
    ]
    values = ", ".join(f"({', '.join(map(quote_text, row))})" for row in rows)
    columns = "stage, kind, plugin, distribution, version, reason, meaning"
    return [View("plugins", f"SELECT * FROM (VALUES {values}) AS told({columns})")] if rows else []


def _read_inputs(folder: StageFolder) -> tuple[str, ...]:
    """Return the stages that a sealed stage was made from; any version of synth wrote the manifest."""
    manifest = json.loads(read_note(folder.manifest))
    return tuple(entry["name"] for entry in manifest.get("inputs", ()) if entry["name"] != "corpus")


def _union_refused(sources: list[tuple[str, str, Path]], files: str, column: str) -> str:
    return " UNION ALL ".join(
        f"SELECT {quote_text(stage)} AS stage, record_id, {column}, detail, {quote_text(key)} AS key "
        f"FROM {scan(folder / f'{files}-*.parquet')}"
        for stage, key, folder in sources
    )


def _make_manifest_views(folders: list[Path], corpus: Path | None) -> list[View]:
    """Return ``manifests`` and ``funnel``; their rows stand in pipeline order, the corpus first."""
    selects = []
    if corpus is not None:
        path = quote_file(corpus / "manifest.json")
        selects.append(
            "SELECT 'corpus' AS stage, builder_version AS stage_version, name AS key, '' AS config_digest, "
            "'' AS git_commit, rows_in, kept, rejected, failed, kept AS rows_out, "
            f"NULL::{USAGE} AS usage, NULL::{USAGE} AS stopped, NULL::DOUBLE AS seconds, digest "
            f"FROM read_json({path}, columns = {CORPUS_MANIFEST}, {NO_HIVE})"
        )
    for folder in folders:
        path = quote_file(folder / "manifest.json")
        selects.append(f"SELECT * FROM read_json({path}, columns = {STAGE_MANIFEST}, {NO_HIVE})")
    if not selects:
        return []
    funnel = (
        "SELECT stage, key, rows_in, kept, coalesce(list_sum(map_values(rejected)), 0)::BIGINT AS rejected, failed, "
        "rows_out FROM manifests"
    )
    return [View("manifests", " UNION ALL ".join(selects)), View("funnel", funnel)]


CATALOGUE = "synth.duckdb"
PLACE = ".catalogue"
"""File that says for which place of the workspace the catalogue was written."""
STORAGE_VERSION = "v1.0.0"
"""Any DuckDB since 1.0 opens the catalogue."""
OFFLINE: dict[str, str | bool | int | float | list[str]] = {
    "autoinstall_known_extensions": "false",
    "autoload_known_extensions": "false",
    "python_enable_replacements": "false",
}
Form = Literal["table", "json", "csv"]
EXPLAIN = "EXPLAIN"
LOGGING = re.compile(r"\bwrite_log\b", re.IGNORECASE)
"""The one function that writes: into DuckDB's log, which is in memory here."""
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


def connect_database(path: Path | None = None) -> duckdb.DuckDBPyConnection:
    """Open a database file to read it, or one in memory, which loads no extension and keeps to its share of memory."""
    if path is not None:
        return duckdb.connect(str(path), read_only=True, config=limit_duckdb())
    return duckdb.connect(":memory:", config=OFFLINE | limit_duckdb())


def open_views(workspace_root: Path) -> duckdb.DuckDBPyConnection:
    """Open an in-memory database with every view; it can read the datasets of the workspace and nothing else.

    Raises:
        ConfigError: if there is no workspace there.
    """
    root = workspace_root.resolve()
    if not root.is_dir():
        raise ConfigError(f"workspace {workspace_root}: no such folder; run `synth run` first")
    connection = connect_database()
    _create_views(connection, list_views(root))
    # A pattern is checked as it stands, and a workspace may be called ``a[1]``.
    folders = [(root / folder).as_posix() for folder in READABLE]
    readable = ", ".join(quote_text(name) for folder in folders for name in {folder, glob.escape(folder)})
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
    root = workspace_root.resolve()
    if not root.is_dir():
        raise ConfigError(f"workspace {workspace_root}: no such folder; run `synth run` first")
    try:
        _write_views(root)
        write_text(root / PLACE, f"{root}\n")
    except OSError as error:
        raise explain_os_error(error, f"catalogue of {workspace_root}") from error
    except duckdb.IOException as error:
        # DuckDB gives no number of the error, only its text, over several lines.
        said = "the disk is full" if "No space left" in str(error) else " ".join(str(error).split())
        message = f"catalogue of {workspace_root}: {said}; mend that and run the same command again"
        raise Unavailable(message) from error
    return root / CATALOGUE


def follow_move(workspace_root: Path) -> None:
    """Write the catalogue again if the workspace was moved since; it stays as it is where that cannot be done."""
    root = workspace_root.resolve()
    place = root / PLACE
    written = place.read_text(encoding="utf-8", errors="replace") if place.is_file() else ""
    if (root / CATALOGUE).is_file() and written != f"{root}\n":
        # What is damaged there, or cannot be written, is for the command to say, and the next one tries again.
        with suppress(SynthError):
            write_catalogue(root)


def _write_views(root: Path) -> None:
    with replacing(root / CATALOGUE) as temp, connect_database() as connection:
        connection.execute(f"ATTACH {quote_text(temp.as_posix())} AS made (STORAGE_VERSION '{STORAGE_VERSION}')")
        connection.execute("USE made")
        _create_views(connection, list_views(root))
        connection.execute("USE memory")
        connection.execute("DETACH made")


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
    if kinds != ["SELECT"] or LOGGING.search(statement):
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
    table = Table(*(Column(Text(name)) for name in found.columns))
    for row in found.rows:
        table.add_row(*(Text(_cut("" if cell is None else str(cell))) for cell in row))
    return table


def _cut(text: str) -> str:
    return text if len(text) <= LONGEST_CELL else f"{text[: LONGEST_CELL - 1]}…"
